//! Tokens, and the hosts that may see them.

use reqwest::Url;
use reqwest::header::HeaderValue;

use super::get::{Get, bearer};

/// What a source's token is called, and who may see it.
pub(crate) struct TokenRule {
    /// The variable that it comes from.
    pub variable: &'static str,
    /// The variable that lists further hosts that may see it.
    pub hosts_variable: &'static str,
}

/// A token for one host.
#[derive(Debug, Clone, Default)]
pub(crate) struct Token {
    /// What to send; nothing if there is no token, or not for this host.
    pub authorization: Option<HeaderValue>,
    /// The variable that would have to list the host, if there is a token that it may not see.
    pub withheld: Option<&'static str>,
}

impl TokenRule {
    /// The token, if the host may see it. One that is only the trace of an unset variable is none.
    pub(crate) fn token(&self, given: Option<&str>, trusted: bool) -> Token {
        let authorization = given.map(str::trim).filter(|token| !token.is_empty()).and_then(bearer);
        match (authorization, trusted) {
            (Some(_), false) => Token { authorization: None, withheld: Some(self.hosts_variable) },
            (authorization, _) => Token { authorization, withheld: None },
        }
    }

    /// Sends the token along.
    pub(crate) fn sign(&self, get: Get, token: Token) -> Get {
        let Token { authorization, withheld } = token;
        get.variable(self.variable).withheld(withheld).authorization(authorization)
    }
}

/// Whether a host is among the listed ones. An entry without a port stands for all ports of its host.
pub(crate) fn is_listed(hosts: &[String], url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let with_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
    hosts.iter().map(|it| it.trim()).any(|it| {
        it.eq_ignore_ascii_case(host) || with_port.as_ref().is_some_and(|full| it.eq_ignore_ascii_case(full))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_listed_with_or_without_their_port() {
        for (entry, url, expected) in [
            ("git.corp", "https://git.corp/x", true),
            (" git.corp\n", "https://git.corp/x", true),
            ("Git.Corp", "https://git.corp/x", true),
            ("git.corp", "https://git.corp:8443/x", true),
            ("git.corp:8443", "https://git.corp:8443/x", true),
            ("git.corp:443", "https://git.corp/x", true),
            ("[::1]", "https://[::1]:8443/x", true),
            ("git.corp:8443", "https://git.corp/x", false),
            ("git.corp:8443", "https://git.corp:9443/x", false),
            ("corp", "https://git.corp/x", false),
            ("git.corp", "https://evil-git.corp/x", false),
            ("git.corp", "https://git.corp.evil/x", false),
            ("", "https://git.corp/x", false),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(is_listed(&["other".to_owned(), entry.to_owned()], &url), expected, "{entry} {url}");
        }
    }
}
