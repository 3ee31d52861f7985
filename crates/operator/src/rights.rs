//! Rights that the operator lacks, read from the API server's refusals.
//!
//! The API server refuses to grant rights that the requester does not hold. Its refusal names the rules in Go's notation:
//! `{APIGroups:["apps"], Resources:["daemonsets"], Verbs:["get" "list"]}`.

/// What stands before the rules of a role that grants more than its writer holds.
const NOT_HELD: &str = "not currently held:";
/// The most rules that a message names.
const NAMED: usize = 20;

/// The rights that a refusal says are missing, in words; none if the message is no such refusal.
pub fn missing(message: &str) -> Option<String> {
    let mut rules: Vec<String> = granted_beyond(message).chain(requested(message)).collect();
    let mut seen = std::collections::BTreeSet::new();
    rules.retain(|it| seen.insert(it.clone()));
    let more = rules.len().saturating_sub(NAMED);
    rules.truncate(NAMED);
    let named = rules.join("; ");
    match (rules.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(named),
        (false, more) => Some(format!("{named}; and {more} more")),
    }
}

/// The rules of roles that grant more than their writer holds.
fn granted_beyond(message: &str) -> impl Iterator<Item = String> {
    let lists = message.split(NOT_HELD).skip(1);
    lists.flat_map(|list| {
        let mut rest = list.trim_start();
        std::iter::from_fn(move || {
            let (rule, after) = rest.strip_prefix('{')?.split_once('}')?;
            rest = after.trim_start();
            Some(rule_in_words(rule))
        })
    })
}

/// A rule in words, e.g. `get, list of apps/daemonsets`.
fn rule_in_words(rule: &str) -> String {
    let list = |field: &str| -> Vec<&str> {
        let found = rule.split_once(&format!("{field}:[")).and_then(|it| it.1.split_once(']'));
        found.map(|it| it.0.split('"').skip(1).step_by(2).collect()).unwrap_or_default()
    };
    let groups = list("APIGroups");
    let resources = list("Resources").into_iter().flat_map(|resource| {
        groups.iter().map(move |group| match *group {
            "" => resource.to_owned(),
            group => format!("{group}/{resource}"),
        })
    });
    let subjects: Vec<String> =
        resources.chain(list("NonResourceURLs").into_iter().map(str::to_owned)).collect();
    let names = list("ResourceNames");
    let only = if names.is_empty() { String::new() } else { format!(" named {}", names.join(", ")) };
    format!("{} of {}{only}", list("Verbs").join(", "), subjects.join(", "))
}

/// Requests that were refused: `User "u" cannot create resource "pods" in API group "" in the namespace "n"`.
fn requested(message: &str) -> impl Iterator<Item = String> {
    message.split(" cannot ").skip(1).filter_map(|rest| {
        let (verb, rest) = rest.split_once(" resource \"")?;
        let (resource, rest) = rest.split_once("\" in API group \"")?;
        let (group, rest) = rest.split_once('"')?;
        let is_word = verb.bytes().all(|it| it.is_ascii_lowercase());
        let place = match rest.strip_prefix(" in the namespace \"").and_then(|it| it.split_once('"')) {
            Some((namespace, _)) => format!(" in namespace {namespace}"),
            None => String::new(),
        };
        let resource = if group.is_empty() { resource.to_owned() } else { format!("{group}/{resource}") };
        is_word.then(|| format!("{verb} of {resource}{place}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rights_are_read_from_refusals() {
        for (message, expected) in [
            ("the server is busy", None),
            ("it cannot be parsed", None),
            (
                concat!(
                    "clusterroles.rbac.authorization.k8s.io \"a\" is forbidden: user \"system:serviceaccount:s:o\" ",
                    "(groups=[\"system:serviceaccounts\"]) is attempting to grant RBAC permissions not currently held:\n",
                    "{APIGroups:[\"\" \"apps\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}\n",
                    "{APIGroups:[\"a.io\"], Resources:[\"*\"], ResourceNames:[\"x\"], Verbs:[\"*\"]}\n",
                    "{NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}",
                ),
                Some("get, list of pods, apps/pods; * of a.io/* named x; get of /metrics"),
            ),
            (
                "a is forbidden: User \"u\" cannot patch resource \"secrets\" in API group \"\" in the namespace \"kube-system\"",
                Some("patch of secrets in namespace kube-system"),
            ),
            (
                "User \"u\" cannot create resource \"foos\" in API group \"f.io\" at the cluster scope",
                Some("create of f.io/foos"),
            ),
        ] {
            assert_eq!(missing(message).as_deref(), expected, "{message}");
        }
        let rule = |it| format!("{{APIGroups:[\"g\"], Resources:[\"r{it}\"], Verbs:[\"get\"]}}");
        let many = (0..22).map(rule).collect::<Vec<_>>().join("\n");
        let text = missing(&format!("{NOT_HELD}\n{many}\n{many}")).unwrap();
        assert!(text.starts_with("get of g/r0; ") && text.ends_with("get of g/r19; and 2 more"), "{text}");
    }
}
