//! What the caller decides about the network.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::oci::Credentials;
use crate::FetchError;

/// How long to wait.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For the next bytes of an answer.
    pub idle: Duration,
    /// For one file, with all its retries.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            total: Duration::from_mins(10),
        }
    }
}

/// How often to try what may work next time: broken connections, 5xx, truncated files.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    /// All attempts, the first one included.
    pub attempts: u32,
    /// The pause before the second attempt; it doubles from there.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, first_pause: Duration::from_millis(500), longest_pause: Duration::from_secs(8) }
    }
}

/// The most bytes that are accepted.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Of a release file.
    pub file: u64,
    /// Of a listing or a manifest.
    pub listing: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file: 64 << 20, listing: 16 << 20 }
    }
}

/// What docker knows about registries.
#[derive(Clone, Default)]
pub struct DockerConfig {
    /// The text of a `config.json`.
    pub text: String,
    /// Whether the `docker-credential-*` programs that it names may be run.
    pub run_helpers: bool,
}

// The text has passwords.
impl fmt::Debug for DockerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DockerConfig").field("run_helpers", &self.run_helpers).finish_non_exhaustive()
    }
}

/// What happens on the way, for those who show it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// A request goes out.
    Requested {
        /// Where to.
        url: &'a str,
    },
    /// Bytes came.
    Received {
        /// Of what.
        url: &'a str,
        /// All bytes so far.
        bytes: u64,
        /// All bytes that were announced.
        total: Option<u64>,
    },
    /// An attempt failed, another follows.
    Retrying {
        /// Of what.
        url: &'a str,
        /// The number of the attempt that failed, from 1.
        attempt: u32,
        /// Why it failed.
        reason: &'a FetchError,
    },
    /// The cache had it, nothing was asked.
    Cached {
        /// What.
        what: &'a str,
    },
    /// The source could not be asked, so what the cache has is used although it may be outdated.
    Stale {
        /// What.
        what: &'a str,
        /// When it was fetched.
        fetched: Timestamp,
        /// Why the source could not be asked; nothing if the network is not to be used.
        reason: Option<&'a FetchError>,
    },
    /// Something is wrong that does not stop us.
    Warning {
        /// What, in a sentence.
        text: &'a str,
    },
}

type Listener = Arc<dyn Fn(Progress<'_>) + Send + Sync>;

/// All that [`Http`](super::Http) needs to know.
#[derive(Clone)]
pub struct HttpOptions {
    /// How we call ourselves.
    pub user_agent: String,
    /// How long to wait.
    pub timeouts: Timeouts,
    /// How often to try.
    pub retry: Retry,
    /// How much to accept.
    pub limits: Limits,
    /// Where to keep what was fetched; nothing is kept without it.
    pub cache_dir: Option<PathBuf>,
    /// The most bytes that the cache may have; what was used least recently goes first, but nothing that was used
    /// within the last hour. With 0 there is no cache.
    pub cache_limit: u64,
    /// Use the cache only.
    pub offline: bool,
    /// How long a list of versions or files is used before its source is asked again. Without it, a source is asked
    /// once in the life of an [`Http`](super::Http): right for a command, and wrong for a controller.
    pub listings_max_age: Option<Duration>,
    /// For github.com and [`github_hosts`](Self::github_hosts). An empty one counts as none.
    pub github_token: Option<String>,
    /// GitHub Enterprise hosts (`host` or `host:port`) that may see the token as well.
    pub github_hosts: Vec<String>,
    /// For gitlab.com and [`gitlab_hosts`](Self::gitlab_hosts). An empty one counts as none.
    pub gitlab_token: Option<String>,
    /// Other GitLab hosts (`host` or `host:port`) that may see the token as well.
    pub gitlab_hosts: Vec<String>,
    /// For the registry [`oci_host`](Self::oci_host) alone; wins over docker's.
    pub oci_credentials: Option<Credentials>,
    /// The registry that the credentials are for; without it they are for none. An empty one counts as none. For
    /// a registry without TLS on another machine it must begin with `http://`.
    pub oci_host: Option<String>,
    /// Token services (`host` or `host:port`) on other sites than the registries that name them, which may see
    /// the registries' credentials as well.
    pub oci_token_hosts: Vec<String>,
    /// Docker's credentials.
    pub docker_config: Option<DockerConfig>,
    /// The value of `GOPROXY`; the public proxy without it.
    pub go_proxy: Option<String>,
    /// Whether the authorities of the system are trusted (`SSL_CERT_FILE` on Linux, if it is set).
    pub system_roots: bool,
    /// Further authorities in PEM.
    pub extra_roots: Vec<String>,
    /// Where names lead instead of where DNS says; a URL's own port still wins over the address's.
    pub resolve: Vec<(String, SocketAddr)>,
    /// Whether `HTTPS_PROXY` and its like are followed.
    pub system_proxies: bool,
    /// Who wants to know what happens.
    pub progress: Option<Listener>,
    /// What time it is, for the cache's records.
    pub clock: fn() -> Timestamp,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            user_agent: concat!("capstan/", env!("CARGO_PKG_VERSION")).to_owned(),
            timeouts: Timeouts::default(),
            retry: Retry::default(),
            limits: Limits::default(),
            cache_dir: None,
            cache_limit: 512 << 20,
            offline: false,
            listings_max_age: None,
            github_token: None,
            github_hosts: Vec::new(),
            gitlab_token: None,
            gitlab_hosts: Vec::new(),
            oci_credentials: None,
            oci_host: None,
            oci_token_hosts: Vec::new(),
            docker_config: None,
            go_proxy: None,
            system_roots: true,
            extra_roots: Vec::new(),
            resolve: Vec::new(),
            system_proxies: true,
            progress: None,
            clock: Timestamp::now,
        }
    }
}

impl fmt::Debug for HttpOptions {
    // Tokens and credentials must never reach a log, and the proxy's address may have a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("cache_dir", &self.cache_dir)
            .field("offline", &self.offline)
            .finish_non_exhaustive()
    }
}

/// A token, unless it is only the trace of an unset variable.
pub(crate) fn non_empty(token: Option<&str>) -> Option<&str> {
    token.map(str::trim).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let secret = || Some("https://user:hidden@proxy.corp?hidden".to_owned());
        let options = HttpOptions {
            offline: true,
            go_proxy: secret(),
            github_token: secret(),
            gitlab_token: secret(),
            oci_credentials: Some(Credentials { username: "me".to_owned(), password: "hidden".to_owned() }),
            ..HttpOptions::default()
        };
        let shown = format!("{options:?}");
        assert!(shown.contains("offline: true") && !shown.contains("hidden"), "{shown}");
    }
}
