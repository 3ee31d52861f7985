//! A registry's challenge means what an independent reader makes of it, and other challenges beside it change nothing.

#![no_main]

use http_auth::ChallengeRef;
use libfuzzer_sys::fuzz_target;

use self::challenge::Challenge;

/// Private to its crate, and of use to nobody else: compiled here by its path.
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
        let mut written = format!("Bearer realm={}", quoted(&realm));
        for (name, value) in [("service", &service), ("scope", &scope)] {
            written.extend(value.iter().map(|value| format!(", {name}={}", quoted(value))));
        }
        assert_eq!(challenge::read(&written), Some(Challenge::Bearer { realm, service, scope }), "{written}");
    }
});

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
