//! What a registry wants to be shown.

use reqwest::Url;

/// How a registry asks for credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    Basic,
    /// Get a token at `realm` first.
    Bearer {
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

/// Reads `WWW-Authenticate`; tokens are preferred, for they are good for less.
pub(super) fn read(header: &str) -> Option<Challenge> {
    let challenges = split(header);
    let bearer = challenges.iter().find(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    if let Some((_, parameters)) = bearer {
        let get = |name: &str| {
            parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v.clone())
        };
        if let Some(realm) = get("realm") {
            return Some(Challenge::Bearer { realm, service: get("service"), scope: get("scope") });
        }
    }
    challenges.iter().any(|(scheme, _)| scheme.eq_ignore_ascii_case("basic")).then_some(Challenge::Basic)
}

/// Whether the token service that a registry names in its own answer may see the credentials for the registry. Over
/// an unencrypted connection anybody may have named it.
pub(super) fn may_see_credentials(registry: &Url, realm: &Url) -> bool {
    realm.origin() == registry.origin() || (registry.scheme() == "https" && realm.scheme() == "https")
}

type Parameters = Vec<(String, String)>;

/// Splits a header into schemes with their parameters.
fn split(header: &str) -> Vec<(String, Parameters)> {
    let mut challenges: Vec<(String, Parameters)> = Vec::new();
    for part in split_unquoted(header) {
        let (before, value) = part.split_once('=').map_or((part, None), |(key, value)| (key, Some(value)));
        let words: Vec<_> = before.split_whitespace().collect();
        // "Bearer realm": a scheme stands before its first parameter.
        let (scheme, key) = match (words.as_slice(), value) {
            ([scheme], None) => (Some(*scheme), None),
            ([scheme, key], Some(_)) => (Some(*scheme), Some(*key)),
            ([key], Some(_)) => (None, Some(*key)),
            _ => continue,
        };
        if let Some(scheme) = scheme {
            challenges.push((scheme.to_owned(), Vec::new()));
        }
        if let (Some(key), Some(value), Some((_, parameters))) = (key, value, challenges.last_mut()) {
            parameters.push((key.to_owned(), unquoted(value.trim())));
        }
    }
    challenges
}

fn split_unquoted(header: &str) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    header
        .split(move |c| {
            let is_escaped = std::mem::take(&mut escaped);
            quoted ^= c == '"' && !is_escaped;
            escaped = c == '\\' && quoted && !is_escaped;
            c == ',' && !quoted
        })
        .map(str::trim)
}

/// A value without its quotes, and without the backslashes that are part of the quoting.
fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"') else { return value.to_owned() };
    let mut text = String::new();
    let mut characters = inner.strip_suffix('"').unwrap_or(inner).chars();
    while let Some(c) = characters.next() {
        text.push(if c == '\\' { characters.next().unwrap_or(c) } else { c });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Challenge {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Challenge::Bearer { realm: realm.to_owned(), service: owned(service), scope: owned(scope) }
    }

    #[test]
    fn credentials_are_for_the_registry_and_who_it_names_over_https() {
        for (registry, realm, expected) in [
            ("https://r.io/v2/", "https://r.io/token", true),
            ("https://r.io/v2/", "https://r.io:443/token", true),
            ("https://r.io/v2/", "https://auth.r.io/token", true),
            ("https://r.io/v2/", "http://r.io/token", false),
            ("https://r.io/v2/", "http://auth.r.io/token", false),
            ("http://localhost:5000/v2/", "http://localhost:5000/token", true),
            ("http://localhost:5000/v2/", "http://localhost:5001/token", false),
            ("http://localhost:5000/v2/", "https://localhost:5000/token", false),
            ("http://localhost:5000/v2/", "https://auth.r.io/token", false),
        ] {
            let (from, to) = (Url::parse(registry).unwrap(), Url::parse(realm).unwrap());
            assert_eq!(may_see_credentials(&from, &to), expected, "{registry} {realm}");
        }
    }

    #[test]
    fn challenges_are_read() {
        for (header, expected) in [
            (
                r#"Bearer realm="https://a/token",service="r.io",scope="repository:o/r:pull,push""#,
                Some(bearer("https://a/token", Some("r.io"), Some("repository:o/r:pull,push"))),
            ),
            (r"bearer realm=https://a/token?x=1", Some(bearer("https://a/token?x=1", None, None))),
            (r#"Basic realm="x", Bearer realm="https://a""#, Some(bearer("https://a", None, None))),
            (r#"Basic realm="Registry, of sorts""#, Some(Challenge::Basic)),
            (r#"Bearer realm="https://a/\"x, y\"""#, Some(bearer(r#"https://a/"x, y""#, None, None))),
            (
                r#"Basic realm="\", Bearer realm=https://b", Bearer realm="https://a",service="""#,
                Some(bearer("https://a", Some(""), None)),
            ),
            ("Basic", Some(Challenge::Basic)),
            (r#"Bearer error="x""#, None),
            ("Negotiate", None),
            ("", None),
        ] {
            assert_eq!(read(header), expected, "{header}");
        }
    }
}
