//! A registry's challenge means what an independent reader makes of it, and other challenges beside it change nothing.
//! Credentials go only to the registry and the token services of its site.

#![no_main]

use http_auth::ChallengeRef;
use libfuzzer_sys::fuzz_target;
use reqwest::Url;

use self::challenge::Challenge;

/// Private to its crate: compiled here by its path.
#[allow(dead_code, unreachable_pub)]
#[path = "../../crates/repository/src/remote/oci/challenge.rs"]
mod challenge;

fuzz_target!(|header: &str| {
    let read = challenge::read(header);
    if let Ok(challenges) = http_auth::parse_challenges(header) {
        assert_eq!(read, meant(&challenges), "{header}");
        // A token is still preferred, and what was nothing to us is still nothing.
        let more = challenge::read(&format!("{header}, Basic realm=\"x\""));
        assert_eq!(more, read.clone().or(Some(Challenge::Basic)), "{header}");
        assert_eq!(challenge::read(&format!("Negotiate, {header}")), read, "{header}");
    }
    if let Some(Challenge::Bearer { realm, service, scope }) = read {
        check_realm(&realm, service.as_deref(), scope.as_deref());
        let mut written = format!("Bearer realm={}", quoted(&realm));
        for (name, value) in [("service", &service), ("scope", &scope)] {
            written.extend(value.iter().map(|value| format!(", {name}={}", quoted(value))));
        }
        assert_eq!(challenge::read(&written), Some(Challenge::Bearer { realm, service, scope }), "{written}");
    }
});

/// Registries of each kind: with a host for tokens, alone, by address, without TLS.
const REGISTRIES: &[&str] = &[
    "https://registry-1.docker.io/v2/",
    "https://r.io/v2/",
    "https://a/v2/",
    "https://10.0.0.1:5000/v2/",
    "http://localhost:5000/v2/",
];

fn check_realm(realm: &str, service: Option<&str>, scope: Option<&str>) {
    for registry in REGISTRIES {
        let registry = Url::parse(registry).expect("it is an address");
        let is_plain = registry.scheme() == "http";
        let scope = scope.unwrap_or("pull");
        let Ok(url) = challenge::token_url(realm, service, scope, is_plain) else { continue };
        assert!(url.scheme() == "https" || (is_plain && url.scheme() == "http"), "{url}");
        assert!(url.username().is_empty() && url.password().is_none(), "{url}");
        let last = url.query_pairs().last().expect("it has a query");
        assert_eq!((last.0.as_ref(), last.1.as_ref()), ("scope", scope), "{url}");
        for is_named in [false, true] {
            let is_shown = challenge::may_see_credentials(&registry, &url, is_named);
            let is_same = registry.origin() == url.origin();
            let is_encrypted = !is_plain && url.scheme() == "https";
            let is_near = is_named || is_of_site(&registry, &url);
            assert!(!is_shown || is_same || (is_encrypted && is_near), "{registry} {url} {is_named}");
        }
    }
}

/// Whether two hosts are the same, or share two labels at least and all of the registry's but its first.
fn is_of_site(registry: &Url, other: &Url) -> bool {
    let labels = |url: &Url| -> Vec<String> {
        url.host_str().unwrap_or_default().rsplit('.').map(str::to_owned).collect()
    };
    let (own, others) = (labels(registry), labels(other));
    let shared = own.iter().zip(&others).take_while(|(a, b)| a == b).count();
    let is_enough = shared == own.len() || (shared >= 2 && shared + 1 == own.len());
    own == others || (registry.domain().is_some() && is_enough)
}

/// What RFC 9110 says that it means, if a token is preferred.
fn meant(challenges: &[ChallengeRef<'_>]) -> Option<Challenge> {
    let of = |scheme: &str| challenges.iter().find(|it| it.scheme.eq_ignore_ascii_case(scheme));
    let bearer = of("bearer").and_then(|bearer| {
        let get = |name: &str| {
            let found = bearer.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_unescaped())
        };
        Some(Challenge::Bearer { realm: get("realm")?, service: get("service"), scope: get("scope") })
    });
    bearer.or_else(|| of("basic").map(|_| Challenge::Basic))
}

fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}
