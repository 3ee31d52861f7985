//! What can be done about configurations and releases that cannot be had.

use capstan_repository::{ConfigError, FetchError, LATEST, MetadataError, RepositoryError};

use super::Hint;
use crate::program;

impl Hint for FetchError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::NotFound { available, .. } => return list_available(available),
            Self::RateLimited { withheld: Some(withheld), .. }
            | Self::Unauthorized { withheld: Some(withheld), .. } => return Some(withheld.to_string()),
            Self::RateLimited { variable: Some(variable), .. } => {
                return Some(format!(
                    "set {variable} to a personal access token: its requests are counted separately"
                ));
            }
            Self::Unauthorized { variable: Some(variable), status: 401, .. } => {
                return Some(format!("set {variable} to a valid token, or unset it if the source is public"));
            }
            Self::Unauthorized { variable: Some(variable), .. } => {
                return Some(format!(
                    "give the token in {variable} permission to read this; some organisations require it to be \
                     authorised for single sign-on"
                ));
            }
            Self::RefusedElsewhere { .. } => {
                "credentials do not follow a redirect to another server: configure the address that it leads to, if that \
                 is where the release is"
            }
            Self::Unreachable { .. } if self.is_certificate_problem() => {
                "the certificate is not trusted: set SSL_CERT_FILE to a bundle that has its authority"
            }
            Self::Unreachable { .. } | Self::TimedOut { .. } => {
                "check the network and HTTPS_PROXY, or use a local copy of the release"
            }
            Self::WebPage { .. } => {
                "this is often the login page of a proxy or of a private server: log in, or give a token"
            }
            Self::Checksum { .. } => "the file was damaged or changed on its way; nothing of it was kept",
            Self::Offline { .. } => "run once with the network to fill the cache",
            Self::NotASize { .. } => {
                "set it to a size such as 512Mi or 2Gi, to 0 to keep nothing, or unset it"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }
}

/// As many names as a hint lists.
const LISTED: usize = 10;

fn list_available(available: &[String]) -> Option<String> {
    let listed = available.get(..LISTED).unwrap_or(available).join(", ");
    match available.len() {
        0 => None,
        all if all > LISTED => Some(format!("available: {listed}, and {} more", all - LISTED)),
        _ => Some(format!("available: {listed}")),
    }
}

impl Hint for ConfigError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Download { source, .. } => source.hint(),
            Self::Offline { .. } => Some(
                "give a local copy of it: a configuration may hold secrets, so that it is never cached"
                    .to_owned(),
            ),
            Self::UnknownProvider { .. } => Some(format!(
                "`{} config repositories` lists all providers; add others under providers in the configuration file",
                program::name()
            )),
            _ => None,
        }
    }
}

impl Hint for RepositoryError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Config(error) => error.hint(),
            Self::Fetch { source, .. } => source.hint(),
            Self::NoUsableVersion { skipped, .. } if skipped.iter().any(|it| it.version == LATEST) => {
                Some("this source does not list its versions: name one, as in NAME:v1.2.3".to_owned())
            }
            Self::NoUsableVersion { .. } => Some(
                "name a version, as in NAME:v1.2.3, or replace the release's files in the overrides folder"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

impl Hint for MetadataError {
    fn hint(&self) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use capstan_repository::{Skipped, Withheld};

    use super::*;

    #[test]
    fn what_is_available_is_listed_but_not_too_much_of_it() {
        let with = |count: usize| FetchError::NotFound {
            what: "x".to_owned(),
            available: (0..count).map(|n| format!("f{n}")).collect(),
        };
        assert_eq!(with(0).hint(), None);
        assert_eq!(with(2).hint().unwrap(), "available: f0, f1");
        assert_eq!(with(10).hint().unwrap().matches('f').count(), 10);
        assert!(with(12).hint().unwrap().ends_with("f9, and 2 more"));
    }

    fn unauthorized(status: u16, withheld: bool) -> FetchError {
        FetchError::Unauthorized {
            url: "https://h/f".to_owned(),
            status,
            detail: String::new(),
            variable: Some("GITHUB_TOKEN".to_owned()),
            withheld: withheld.then(|| Box::new(made_withheld())),
        }
    }

    fn made_withheld() -> Withheld {
        Withheld { host: "h".to_owned(), variable: "GITHUB_HOSTS".to_owned() }
    }

    fn unreachable(cause: &str) -> FetchError {
        FetchError::Unreachable { url: "https://h/f".to_owned(), source: cause.to_owned().into() }
    }

    #[test]
    fn every_refusal_says_what_helps() {
        let limited = |withheld: bool| FetchError::RateLimited {
            host: "h".to_owned(),
            reset: None,
            variable: Some("GITHUB_TOKEN".to_owned()),
            withheld: withheld.then(|| Box::new(made_withheld())),
        };
        let url = || "https://h/f".to_owned();
        for (error, expected) in [
            (limited(false), "set GITHUB_TOKEN to a personal access token"),
            (limited(true), "GITHUB_HOSTS must name h"),
            (unauthorized(401, false), "set GITHUB_TOKEN to a valid token"),
            (unauthorized(403, false), "permission to read this"),
            (unauthorized(401, true), "GITHUB_HOSTS must name h"),
            (
                FetchError::RefusedElsewhere { url: url(), target: url(), status: 401 },
                "configure the address that it leads to",
            ),
            (unreachable("invalid peer certificate: UnknownIssuer"), "SSL_CERT_FILE"),
            (unreachable("connection refused"), "HTTPS_PROXY"),
            (FetchError::TimedOut { url: url(), after: Duration::from_secs(1) }, "HTTPS_PROXY"),
            (FetchError::WebPage { url: url() }, "login page"),
            (FetchError::NotASize { variable: "V", value: url() }, "such as 512Mi"),
            (FetchError::Offline { what: url() }, "run once with the network"),
            (
                FetchError::Checksum { what: url(), expected: String::new(), found: String::new() },
                "nothing of it was kept",
            ),
        ] {
            let hint = error.hint().unwrap();
            assert!(hint.contains(expected), "{error}: {hint}");
            // A token that the host may not see is not asked for.
            assert!(!(hint.contains("GITHUB_HOSTS") && hint.contains("GITHUB_TOKEN")), "{hint}");
        }
        assert_eq!(FetchError::TooLarge { url: url(), limit: 1 }.hint(), None);
    }

    #[test]
    fn hints_pass_through_to_the_commands() {
        let source = || unreachable("connection refused");
        let download = ConfigError::Download { origin: "o".to_owned(), source: Box::new(source()) };
        assert!(download.hint().unwrap().contains("HTTPS_PROXY"));
        let offline = || ConfigError::Offline { origin: "o".to_owned() };
        assert!(offline().hint().unwrap().contains("a local copy"));
        assert!(RepositoryError::Config(offline()).hint().unwrap().contains("a local copy"));
        let fetch = RepositoryError::Fetch { label: "l".to_owned(), source: source() };
        assert!(fetch.hint().unwrap().contains("HTTPS_PROXY"));
        let missing = ConfigError::UnknownProvider {
            kind: capstan_api::provider::ProviderType::Core,
            name: "x".to_owned(),
            similar: Vec::new(),
        };
        assert!(missing.hint().unwrap().contains(" config repositories` lists all providers"));
    }

    #[test]
    fn a_source_without_a_list_of_versions_needs_one_named() {
        let with = |version: &str| RepositoryError::NoUsableVersion {
            label: "l".to_owned(),
            url: "u".to_owned(),
            skipped: vec![Skipped { version: version.to_owned(), reason: "r".to_owned() }],
        };
        assert!(with("latest").hint().unwrap().starts_with("this source does not list its versions"));
        assert!(with("v1.0.0").hint().unwrap().contains("overrides folder"));
    }
}
