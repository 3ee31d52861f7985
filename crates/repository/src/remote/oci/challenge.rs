//! What a registry asks to be shown, and which token services may see credentials.

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

/// Reads `WWW-Authenticate`; tokens are preferred, since they allow less.
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

/// Where to get a token, or why not there.
pub(super) fn token_url(
    realm: &str,
    service: Option<&str>,
    scope: &str,
    plain_http: bool,
) -> Result<Url, String> {
    let mut url = Url::parse(realm).map_err(|error| error.to_string())?;
    // A password must not go out unencrypted because a header says so.
    if url.scheme() != "https" && !(plain_http && url.scheme() == "http") {
        return Err("a registry wants the password sent there without encryption".to_owned());
    }
    // Fails for no address that has a host. A user in it would be sent beside ours.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    if let Some(service) = service {
        url.query_pairs_mut().append_pair("service", service);
    }
    url.query_pairs_mut().append_pair("scope", scope);
    Ok(url)
}

/// Second levels of countries' domains in which anyone can have a domain, as in `co.uk` and `com.au`.
const OPEN_TO_ALL: &[&str] = &[
    "ac", "asn", "co", "com", "edu", "go", "gob", "gouv", "gov", "govt", "id", "ltd", "me", "mil", "ne",
    "net", "nhs", "nom", "or", "org", "plc", "sch", "web",
];

/// Whether the token service at `realm` may see the credentials for the registry that names it: at the registry's own
/// origin always, elsewhere only if both use TLS and it is of the same site or was named by the user. Over an
/// unencrypted connection, anyone may have written the challenge.
pub(super) fn may_see_credentials(registry: &Url, realm: &Url, is_named: bool) -> bool {
    let is_encrypted = registry.scheme() == "https" && realm.scheme() == "https";
    realm.origin() == registry.origin() || (is_encrypted && (is_named || is_same_site(registry, realm)))
}

/// Whether a host is the registry's own, below it, or in the same domain: `auth.docker.io` for `registry-1.docker.io`.
fn is_same_site(registry: &Url, other: &Url) -> bool {
    let (Some(own), Some(other)) = (registry.domain(), other.domain()) else {
        return registry.host_str() == other.host_str();
    };
    let is_in =
        |domain: &str| other == domain || other.strip_suffix(domain).is_some_and(|host| host.ends_with('.'));
    is_in(own) || parent(own).is_some_and(is_in)
}

/// The domain that a host is in, unless that is one like `io` or `co.uk`, whose other hosts are of other owners.
fn parent(host: &str) -> Option<&str> {
    let (_, parent) = host.split_once('.')?;
    let (rest, top) = parent.rsplit_once('.')?;
    let is_open = top.is_empty() || (top.len() == 2 && OPEN_TO_ALL.contains(&rest));
    (!is_open).then_some(parent)
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
    fn credentials_are_for_the_registry_and_token_services_of_its_site() {
        for (registry, realm, expected) in [
            ("https://r.io/v2/", "https://r.io/token", true),
            ("https://r.io/v2/", "https://r.io:443/token", true),
            ("https://r.io/v2/", "https://r.io:8443/token", true),
            ("https://r.io/v2/", "https://auth.r.io/token", true),
            // Docker Hub, GitLab, GitLab on a server of one's own, and others that have a host for tokens.
            ("https://registry-1.docker.io/v2/", "https://auth.docker.io/token", true),
            ("https://registry.gitlab.com/v2/", "https://gitlab.com/jwt/auth", true),
            ("https://registry.example.com/v2/", "https://gitlab.example.com/jwt/auth", true),
            ("https://gitlab.example.com:5050/v2/", "https://gitlab.example.com/jwt/auth", true),
            ("https://registry.example.co.uk/v2/", "https://auth.example.co.uk/token", true),
            ("https://registry.digitalocean.com/v2/", "https://api.digitalocean.com/token", true),
            // Themselves: ghcr.io, quay.io, Google's.
            ("https://ghcr.io/v2/", "https://ghcr.io/token", true),
            ("https://quay.io/v2/", "https://quay.io/v2/auth", true),
            ("https://gcr.io/v2/", "https://gcr.io/v2/token", true),
            ("https://us-docker.pkg.dev/v2/", "https://us-docker.pkg.dev/v2/token", true),
            ("https://10.0.0.1/v2/", "https://10.0.0.1:8443/token", true),
            ("https://[::1]:5000/v2/", "https://[::1]/token", true),
            // Other sites.
            ("https://r.io/v2/", "https://evil.io/token", false),
            ("https://r.io/v2/", "https://io/token", false),
            ("https://r.io./v2/", "https://evil.io./token", false),
            ("https://r.io/v2/", "https://evilr.io/token", false),
            ("https://r.co.uk/v2/", "https://evil.co.uk/token", false),
            ("https://registry.docker.io/v2/", "https://docker.io.evil.com/token", false),
            ("https://registry.docker.io/v2/", "https://evildocker.io/token", false),
            ("https://registry.example.com/v2/", "https://example.org/token", false),
            ("https://10.0.0.1/v2/", "https://11.0.0.1/token", false),
            ("https://10.0.0.1/v2/", "https://auth.r.io/token", false),
            ("https://localhost/v2/", "https://other/token", false),
            // Without TLS.
            ("https://r.io/v2/", "http://r.io/token", false),
            ("https://r.io/v2/", "http://auth.r.io/token", false),
            ("http://localhost:5000/v2/", "http://localhost:5000/token", true),
            ("http://localhost:5000/v2/", "http://localhost:5001/token", false),
            ("http://localhost:5000/v2/", "https://localhost:5000/token", false),
            ("http://localhost:5000/v2/", "https://auth.r.io/token", false),
        ] {
            let (from, to) = (Url::parse(registry).unwrap(), Url::parse(realm).unwrap());
            assert_eq!(may_see_credentials(&from, &to, false), expected, "{registry} {realm}");
            let both_encrypted = from.scheme() == "https" && to.scheme() == "https";
            assert_eq!(
                may_see_credentials(&from, &to, true),
                expected || both_encrypted,
                "{registry} {realm}, named"
            );
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
