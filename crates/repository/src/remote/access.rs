//! Tokens and passwords, each with the hosts that may see it.

use std::fmt;

use super::{Credentials, Http, HttpOptions};

/// Tokens and passwords, each with the hosts that may see it: see [`HttpOptions`].
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// For github.com and [`github_hosts`](Self::github_hosts).
    pub github_token: Option<String>,
    /// GitHub Enterprise hosts that may see the token as well.
    pub github_hosts: Vec<String>,
    /// For gitlab.com and [`gitlab_hosts`](Self::gitlab_hosts).
    pub gitlab_token: Option<String>,
    /// Other GitLab hosts that may see the token as well.
    pub gitlab_hosts: Vec<String>,
    /// For the registry [`oci_host`](Self::oci_host) alone.
    pub oci_credentials: Option<Credentials>,
    /// The registry that the credentials are for.
    pub oci_host: Option<String>,
}

// Tokens and passwords must never reach a log.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("github_hosts", &self.github_hosts)
            .field("gitlab_hosts", &self.gitlab_hosts)
            .field("oci_host", &self.oci_host)
            .finish_non_exhaustive()
    }
}

impl HttpOptions {
    /// The tokens and passwords among the options.
    pub fn access(&self) -> Access {
        Access {
            github_token: self.github_token.clone(),
            github_hosts: self.github_hosts.clone(),
            gitlab_token: self.gitlab_token.clone(),
            gitlab_hosts: self.gitlab_hosts.clone(),
            oci_credentials: self.oci_credentials.clone(),
            oci_host: self.oci_host.clone(),
        }
    }

    /// The same options with other tokens and passwords.
    #[must_use]
    pub fn with_access(self, access: Access) -> Self {
        let Access { github_token, github_hosts, gitlab_token, gitlab_hosts, oci_credentials, oci_host } =
            access;
        Self { github_token, github_hosts, gitlab_token, gitlab_hosts, oci_credentials, oci_host, ..self }
    }
}

impl Http {
    /// The same network with other tokens and passwords. Connections are shared; what was fetched is not, on
    /// disk or in memory, since they may not give access to it.
    #[must_use]
    pub fn with_access(&self, access: Access) -> Self {
        let options = HttpOptions { cache_dir: None, ..(*self.options).clone() };
        let mut http = Self::new(options.with_access(access));
        http.client = self.client.clone();
        http
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_the_access_that_they_are_given() {
        let text = |it: &str| Some(it.to_owned());
        let access = Access {
            github_token: text("hidden"),
            github_hosts: vec!["a".to_owned()],
            gitlab_token: text("hidden"),
            gitlab_hosts: vec!["b".to_owned()],
            oci_credentials: Some(Credentials { username: "me".to_owned(), password: "hidden".to_owned() }),
            oci_host: text("c"),
        };
        let shown = format!("{access:?}");
        assert!(!shown.contains("hidden") && shown.contains("\"c\""), "{shown}");
        let options = HttpOptions { offline: true, ..HttpOptions::default() }.with_access(access.clone());
        assert!(options.access() == access && options.offline);
        assert!(HttpOptions::default().access() == Access::default());
    }
}
