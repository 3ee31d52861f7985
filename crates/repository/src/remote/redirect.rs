//! Which redirects are followed, and with what.

use reqwest::Url;

use super::shown::{shown, shown_address};

/// More hops than this lead in circles.
pub(crate) const LONGEST_CHAIN: usize = 8;

/// The next hop.
#[derive(PartialEq, Eq)]
pub(crate) struct Hop {
    pub url: Url,
    /// Whether scheme, host and port stay the same. Only then the credentials go along.
    pub same_origin: bool,
}

/// Decides where `location` leads, or says why it is not followed.
pub(crate) fn follow(from: &Url, location: &str, plain_http: bool) -> Result<Hop, String> {
    let url = from
        .join(location)
        .map_err(|error| format!("to {:?}, which is no address: {error}", shown_address(location)))?;
    let allowed = url.scheme() == "https" || (plain_http && url.scheme() == "http");
    if !allowed || url.host_str().is_none() {
        return Err(format!("to {}, and only https is followed", shown(&url)));
    }
    let same_origin = url.origin() == from.origin();
    Ok(Hop { url, same_origin })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_encrypted_and_leave_credentials_at_home() {
        let from = Url::parse("https://github.com/o/r").unwrap();
        for (location, expected) in [
            ("/x", Some(("https://github.com/x", true))),
            ("https://github.com/x", Some(("https://github.com/x", true))),
            ("https://github.com:8443/x", Some(("https://github.com:8443/x", false))),
            ("https://api.github.com/x", Some(("https://api.github.com/x", false))),
            ("//evil.example/x", Some(("https://evil.example/x", false))),
            ("http://github.com/x", None),
            ("file:///etc/passwd", None),
            ("https://", None),
        ] {
            let found = follow(&from, location, false).ok();
            let found = found.as_ref().map(|hop| (hop.url.as_str(), hop.same_origin));
            assert_eq!(found, expected, "{location}");
        }
    }

    #[test]
    fn the_secrets_of_an_address_stay_out_of_the_reason() {
        let from = Url::parse("https://github.com/o/r").unwrap();
        for location in ["https://u:s3cret@[h/f?sig=s3cret", "http://u:s3cret@h/f?sig=s3cret"] {
            let reason = follow(&from, location, false).err().unwrap();
            assert!(!reason.contains("s3cret"), "{reason}");
        }
    }

    #[test]
    fn plain_http_is_followed_only_by_those_who_asked_for_it() {
        let from = Url::parse("http://localhost:5000/v2/").unwrap();
        assert!(follow(&from, "/x", true).unwrap().same_origin);
        assert!(follow(&from, "/x", false).err().unwrap().contains("only https"));
    }
}
