//! What can go wrong between asking for a file and having it.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

/// Why a file or a list of versions could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address cannot be one of a release.
    #[error("the address {url} cannot be used: {reason}")]
    InvalidUrl {
        /// The address, as it may be shown.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The source answers, but has no such thing.
    #[error("not found: {what}")]
    NotFound {
        /// What was looked for, and where.
        what: String,
        /// What there is instead, where that is known.
        available: Vec<String>,
    },
    /// The source wants fewer requests.
    #[error("{host} takes no more requests for now{}", until(*.reset))]
    RateLimited {
        /// Who refused.
        host: String,
        /// When it will take requests again.
        reset: Option<Timestamp>,
        /// The variable whose token would have been counted separately, if none was sent.
        variable: Option<String>,
        /// Why an existing token was not sent.
        withheld: Option<Box<Withheld>>,
    },
    /// The source wants a token, or another one.
    #[error("access to {url} was refused (HTTP {status}){}", said(.detail))]
    Unauthorized {
        /// What was asked for.
        url: String,
        /// 401 or 403.
        status: u16,
        /// What the server had to say.
        detail: String,
        /// The variable that the token comes from.
        variable: Option<String>,
        /// Why an existing token was not sent.
        withheld: Option<Box<Withheld>>,
    },
    /// Another server, which was only redirected to, wants credentials. They are not for it.
    #[error("{url} was redirected to {target}, which refused access (HTTP {status})")]
    RefusedElsewhere {
        /// What was asked for.
        url: String,
        /// Where the last redirect led to.
        target: String,
        /// 401 or 403.
        status: u16,
    },
    /// An answer that is neither success nor any of the refusals above.
    #[error("{url} answered with HTTP {status}{}", said(.detail))]
    Status {
        /// What was asked for.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What the server had to say.
        detail: String,
    },
    /// No connection, or one that broke before the answer.
    #[error("{url} cannot be reached: {}", innermost(.source.as_ref()))]
    Unreachable {
        /// What was asked for.
        url: String,
        /// What the network said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Nothing came for too long, or everything took too long.
    #[error("{url} gave no answer within {} s", .after.as_secs_f64())]
    TimedOut {
        /// What was asked for.
        url: String,
        /// The limit that was hit.
        after: Duration,
    },
    /// The connection ended in the middle of the file.
    #[error("{url} broke off after {found} bytes{}", of_expected(*.expected))]
    Truncated {
        /// What was asked for.
        url: String,
        /// How many bytes were announced.
        expected: Option<u64>,
        /// How many came.
        found: u64,
    },
    /// More than anybody needs to send.
    #[error("{url} is larger than {limit} bytes")]
    TooLarge {
        /// What was asked for.
        url: String,
        /// The most that is accepted.
        limit: u64,
    },
    /// The content is not what was promised.
    #[error("the checksum of {what} is wrong: expected {expected}, found {found}")]
    Checksum {
        /// Which file, and who promised.
        what: String,
        /// The promised digest.
        expected: String,
        /// The digest of what came.
        found: String,
    },
    /// A redirect that must not be followed.
    #[error("{url} was redirected {reason}")]
    Redirect {
        /// What was asked for.
        url: String,
        /// Where to, and why that is refused.
        reason: String,
    },
    /// A page for a browser came where a file was wanted.
    #[error("{url} answered with a web page instead of a file")]
    WebPage {
        /// What was asked for.
        url: String,
    },
    /// An answer that cannot be understood.
    #[error("the answer of {url} cannot be understood: {reason}")]
    Malformed {
        /// What was asked for.
        url: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// A file name in an artifact that could lead out of the folder it is written to, or that is ambiguous.
    #[error("the artifact {artifact} has a file named {title:?}, which is refused: {reason}")]
    HostileName {
        /// Which artifact.
        artifact: String,
        /// The name as it is in the artifact.
        title: String,
        /// Why it is refused.
        reason: &'static str,
    },
    /// The network is not to be used, and the cache does not have it.
    #[error("{what} is not in the cache, and the network is not to be used")]
    Offline {
        /// What was looked for.
        what: String,
    },
    /// Credentials for a registry could not be read.
    #[error("the credentials for {registry} cannot be read: {reason}")]
    Credentials {
        /// The registry's host.
        registry: String,
        /// What is wrong.
        reason: String,
    },
    /// The HTTP client cannot be made: no usable roots, a broken CA, no TLS provider.
    #[error("the HTTP client cannot be set up: {reason}")]
    Client {
        /// What is wrong.
        reason: String,
    },
    /// A variable that should be a size and is none.
    #[error("{variable} is {value:?}, which is not a size in bytes")]
    NotASize {
        /// The variable.
        variable: &'static str,
        /// What it says.
        value: String,
    },
    /// A file on disk.
    #[error("{}: {source}", .path.display())]
    Local {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Existing credentials that are not for this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// The host.
    pub host: String,
    /// The variable that names the hosts that may see them.
    pub variable: String,
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must name {} before it is sent your credentials", self.variable, self.host)
    }
}

impl FetchError {
    /// Whether the source was asked and does not have it, so that another version may be tried.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::NotFound { .. } => true,
            Self::Local { source, .. } => source.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// Whether the other side's certificate is what keeps it from being reached.
    pub fn is_certificate_problem(&self) -> bool {
        matches!(self, Self::Unreachable { source, .. } if speaks_of_certificates(source.as_ref()))
    }

    /// What there is instead of what was not found, where that is known.
    pub fn available(&self) -> &[String] {
        match self {
            Self::NotFound { available, .. } => available,
            _ => &[],
        }
    }
}

fn until(reset: Option<Timestamp>) -> String {
    reset.map(|reset| format!(", until {reset}")).unwrap_or_default()
}

fn said(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!(": {detail}") }
}

fn of_expected(expected: Option<u64>) -> String {
    expected.map(|expected| format!(" of {expected}")).unwrap_or_default()
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (**error).source())
}

/// The cause that says most: the outer ones only repeat that a request failed.
fn innermost(error: &(dyn Error + Send + Sync + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

pub(crate) fn speaks_of_certificates(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    causes(error).any(|cause| cause.to_string().contains("certificate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_local_file_is_not_found_and_a_forbidden_one_is_an_error() {
        let local = |kind: io::ErrorKind| FetchError::Local { path: "/x".into(), source: kind.into() };
        assert!(local(io::ErrorKind::NotFound).is_not_found());
        assert!(!local(io::ErrorKind::PermissionDenied).is_not_found());
    }

    #[test]
    fn texts_name_the_place_and_the_reason() {
        let reset = Timestamp::from_second(1_800_000_000).ok();
        let error = FetchError::RateLimited {
            host: "api.github.com".to_owned(),
            reset,
            variable: Some("GITHUB_TOKEN".to_owned()),
            withheld: None,
        };
        assert_eq!(
            error.to_string(),
            "api.github.com takes no more requests for now, until 2027-01-15T08:00:00Z"
        );
        let error = FetchError::Truncated { url: "https://h/f".to_owned(), expected: Some(9), found: 4 };
        assert_eq!(error.to_string(), "https://h/f broke off after 4 bytes of 9");
    }
}
