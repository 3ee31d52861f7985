//! What roles allow, whatever the form in which their rules say it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// One thing that a role allows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Permit {
    what: What,
    verb: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Resource { group: String, resource: String, name: Option<String> },
    Url(String),
}

/// What a role allows and another does not, a line for each resource.
pub(crate) fn allowed_beyond(role: Option<&Value>, other: Option<&Value>) -> Vec<String> {
    let (mine, others) = (permits(role), permits(other));
    let mut verbs: BTreeMap<&What, BTreeSet<&str>> = BTreeMap::new();
    for permit in mine.iter().filter(|it| !others.iter().any(|other| other.covers(it))) {
        verbs.entry(&permit.what).or_default().insert(&permit.verb);
    }
    // Resources with the same verbs are read best in one line.
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (what, verbs) in verbs {
        let verbs = verbs.into_iter().collect::<Vec<_>>().join(", ");
        lines.entry(verbs).or_default().push(what.to_string());
    }
    lines.into_iter().map(|(verbs, what)| format!("{verbs}: {}", what.join(", "))).collect()
}

impl Permit {
    fn covers(&self, other: &Self) -> bool {
        let is_wide = |mine: &str, others: &str| mine == "*" || mine == others;
        is_wide(&self.verb, &other.verb)
            && match (&self.what, &other.what) {
                (
                    What::Resource { group, resource, name },
                    What::Resource { group: other_group, resource: other_resource, name: other_name },
                ) => {
                    let is_same_sub = match (resource.strip_prefix("*/"), other_resource.split_once('/')) {
                        (Some(sub), Some((_, other_sub))) => sub == other_sub,
                        _ => false,
                    };
                    is_wide(group, other_group)
                        && (is_wide(resource, other_resource) || is_same_sub)
                        && (name.is_none() || name == other_name)
                }
                (What::Url(url), What::Url(other)) => match url.strip_suffix('*') {
                    Some(begin) => other.starts_with(begin),
                    None => url == other,
                },
                _ => false,
            }
    }
}

impl std::fmt::Display for What {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Resource { group, resource, name } => {
                out.write_str(resource)?;
                if !group.is_empty() {
                    write!(out, ".{group}")?;
                }
                name.as_ref().map_or(Ok(()), |name| write!(out, " {name:?}"))
            }
            Self::Url(url) => out.write_str(url),
        }
    }
}

fn permits(role: Option<&Value>) -> BTreeSet<Permit> {
    let rules = role.and_then(|it| it.get("rules")).and_then(Value::as_array);
    rules.into_iter().flatten().flat_map(permits_of_rule).collect()
}

fn permits_of_rule(rule: &Value) -> Vec<Permit> {
    let texts = |field: &str| -> Vec<String> {
        let items = rule.get(field).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut names: Vec<Option<String>> = texts("resourceNames").into_iter().map(Some).collect();
    if names.is_empty() {
        names.push(None);
    }
    let mut whats: Vec<What> = texts("nonResourceURLs").into_iter().map(What::Url).collect();
    for group in texts("apiGroups") {
        for resource in texts("resources") {
            whats.extend(names.iter().map(|name| What::Resource {
                group: group.clone(),
                resource: resource.clone(),
                name: name.clone(),
            }));
        }
    }
    let verbs = texts("verbs");
    let pairs = whats.into_iter().flat_map(|what| verbs.iter().map(move |verb| (what.clone(), verb.clone())));
    pairs.map(|(what, verb)| Permit { what, verb }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn role(rules: &[(&str, &str, &str)]) -> Value {
        let list = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let rules = rules.iter().map(|(groups, resources, verbs)| {
            json!({"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)})
        });
        json!({"rules": rules.collect::<Vec<_>>()})
    }

    #[test]
    fn rules_are_compared_by_what_they_allow() {
        for (mine, other, expected) in [
            (role(&[("a", "x y", "get list")]), role(&[]), vec!["get, list: x.a, y.a"]),
            // The same in another form is the same.
            (
                role(&[("a", "x y", "get list")]),
                role(&[("a", "x", "list get"), ("a", "y", "get"), ("a", "y", "list")]),
                vec![],
            ),
            // What a wildcard allows is not lost when it is said at length, but the wildcard is.
            (role(&[("a", "x", "get")]), role(&[("*", "*", "*")]), vec![]),
            (role(&[("*", "*", "*")]), role(&[("a", "x", "get")]), vec!["*: *.*"]),
            (role(&[("a", "x/status", "patch")]), role(&[("a", "*/status", "patch")]), vec![]),
            (role(&[("a", "x/status", "patch")]), role(&[("a", "x", "patch")]), vec!["patch: x/status.a"]),
            (role(&[("a", "x", "get"), ("b", "y", "watch")]), role(&[]), vec!["get: x.a", "watch: y.b"]),
        ] {
            assert_eq!(allowed_beyond(Some(&mine), Some(&other)), expected, "{mine} {other}");
        }
        let named = json!({"rules": [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"],
                                      "verbs": ["get"]}]});
        assert_eq!(allowed_beyond(Some(&named), None), ["get: secrets \"s\""]);
        assert_eq!(allowed_beyond(Some(&role(&[("", "secrets", "get")])), Some(&named)), ["get: secrets"]);
        let urls = json!({"rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]});
        assert_eq!(allowed_beyond(Some(&urls), None), ["get: /metrics"]);
        assert_eq!(allowed_beyond(None, Some(&named)), [] as [&str; 0]);
    }
}
