//! Content that must be what its digest says.

use ring::digest::{SHA256, SHA512, digest};

use super::super::checksum::encode_hex;
use super::super::get::Reply;
use crate::FetchError;

/// Whether this is a digest that can be checked.
pub(super) fn is_digest(text: &str) -> bool {
    let Some((algorithm, hex)) = text.split_once(':') else { return false };
    let digits = match algorithm {
        "sha256" => 64,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == digits && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Compares content with its digest; one that cannot be computed is as bad as a wrong one.
pub(super) fn check(what: &str, expected: &str, bytes: &[u8]) -> Result<(), FetchError> {
    let found = match expected.split_once(':') {
        Some(("sha256", _)) => format!("sha256:{}", encode_hex(digest(&SHA256, bytes).as_ref())),
        Some(("sha512", _)) => format!("sha512:{}", encode_hex(digest(&SHA512, bytes).as_ref())),
        _ => "no digest of a kind that can be checked".to_owned(),
    };
    if found == expected {
        return Ok(());
    }
    Err(FetchError::Checksum { what: what.to_owned(), expected: expected.to_owned(), found })
}

/// A manifest is checked against the digest it was asked for by, or else against the one it came with.
pub(super) fn check_manifest(what: &str, wanted: &str, reply: &Reply) -> Result<(), FetchError> {
    let announced = reply.headers.get("docker-content-digest").and_then(|value| value.to_str().ok());
    match (is_digest(wanted), announced) {
        (true, _) => check(what, wanted, &reply.body),
        (false, Some(announced)) if is_digest(announced) => check(what, announced, &reply.body),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn digests_are_known_by_their_form() {
        let long = format!("sha512:{}", "0".repeat(128));
        for (text, known) in [
            (EMPTY, true),
            (long.as_str(), true),
            ("sha256:00", false),
            (&EMPTY.to_uppercase().replace("SHA", "sha"), false),
            (&EMPTY.replace("sha256", "md5"), false),
            ("v1.0.0", false),
        ] {
            assert_eq!(is_digest(text), known, "{text}");
        }
    }

    #[test]
    fn content_is_compared() {
        assert!(check("x", EMPTY, b"").is_ok());
        assert!(check("x", EMPTY, b"y").is_err());
        assert!(check("x", "md5:d41d8cd98f00b204e9800998ecf8427e", b"").is_err());
    }
}
