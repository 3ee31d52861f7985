//! Addresses as they may be shown.

use reqwest::Url;

/// An address without the secrets that may hide in it: passwords, signatures.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail only for addresses that have no host, and those have no user either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// Host and port of an address, and the scheme where it is not https.
pub(crate) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let scheme = if url.scheme() == "http" { "http://" } else { "" };
    format!("{scheme}{host}{port}")
}

/// What may be shown of a text that is meant as an address: neither user nor query nor fragment, for those may
/// hold passwords and signatures. Absolute paths stay as they are.
pub fn shown_address(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) if url.has_host() => shown(&url),
        _ if text.starts_with('/') => text.to_owned(),
        _ => cut(text),
    }
}

/// Where a password ends in a text that is no address is unknown: too much is left out rather than too little.
fn cut(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    let kept = match rest.rsplit_once('@') {
        // A password with these characters, or a query with an @.
        Some((before, _)) if before.contains(['?', '#']) => "...",
        Some((_, after)) => without_query(after),
        None => without_query(rest),
    };
    format!("{scheme}{kept}")
}

fn without_query(text: &str) -> &str {
    text.split(['?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_shown_without_their_secrets() {
        for (text, expected) in [
            ("https://u:p@h:8443/a%2Fb?X-Signature=s#sha256=1", "https://h:8443/a%2Fb"),
            ("https://h/a/b.yaml", "https://h/a/b.yaml"),
            ("https:/u:p@h/a?s", "https://h/a"),
            ("https:u:p@h/a", "https://h/a"),
            ("https://u:p@[h/a?s", "https://[h/a"),
            ("https://u:p/w@h/a", "https://h/a"),
            ("https://u:p#w@h/a", "https://..."),
            ("https://[h/a?mail=me@s", "https://..."),
            ("https://h:port/a?s#f", "https://h:port/a"),
            ("oci://ghcr.io/O/R:v1", "oci://ghcr.io/O/R:v1"),
            ("oci://h.io/r@sha256:00", "oci://h.io/r@sha256:00"),
            ("oci://u:p@h.io/r?s", "oci://h.io/r"),
            ("u:p@h/a?s", "h/a"),
            ("/r/me@home/a#b?c", "/r/me@home/a#b?c"),
            ("file:///r/v1.0.0/f.yaml", "file:///r/v1.0.0/f.yaml"),
            ("nonsense", "nonsense"),
            ("", ""),
        ] {
            assert_eq!(shown_address(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_secret_is_shown(
            scheme in "https?|oci",
            password in "[a-z][a-z/:#?]{0,3}hidden[a-z:]{0,3}",
            host in "[a-z]{1,5}|\\[[a-z]|h:99999",
            query in "[a-z=&@/]{0,5}hidden[a-z=&/]{0,5}",
        ) {
            let text = format!("{scheme}://user:{password}@{host}/path?{query}");
            let shown = shown_address(&text);
            prop_assert!(!shown.contains("hidden"), "{}", shown);
        }
    }
}
