//! What the environment says about the network.

use std::path::PathBuf;

use super::{Credentials, DockerConfig, HttpOptions};
use crate::{Config, Environment, FetchError};

const CACHE_LIMIT: &str = "CAPSTAN_CACHE_LIMIT";

impl HttpOptions {
    /// The options that environment variables set; all others are the defaults.
    ///
    /// | variable | sets |
    /// |---|---|
    /// | `CAPSTAN_CACHE_DIR`, else `XDG_CACHE_HOME` | `cache_dir` |
    /// | `CAPSTAN_CACHE_LIMIT`, such as `512Mi` | `cache_limit` |
    /// | `CAPSTAN_OFFLINE` | `offline`, unless it is `false`, `0` or empty |
    /// | `GITHUB_HOSTS`, `GITLAB_HOSTS` | the hosts that may see a token, with commas between them |
    /// | `OCI_USERNAME` and `OCI_PASSWORD`, `OCI_HOST` | `oci_credentials`, `oci_host` |
    /// | `OCI_TOKEN_HOSTS` | `oci_token_hosts`, with commas between them |
    /// | `GOPROXY` | `go_proxy` |
    ///
    /// Tokens are settings of the configuration: see [`Self::with_tokens`]. Docker's credentials are in a file: see
    /// [`DockerConfig::read`].
    pub fn from_environment(environment: &Environment) -> Result<Self, FetchError> {
        let variable = |name: &str| environment.get(name).map(str::to_owned).filter(|it| !it.is_empty());
        let hosts =
            |name: &str| variable(name).iter().flat_map(|it| it.split(',')).map(str::to_owned).collect();
        let defaults = Self::default();
        let cache_limit = match variable(CACHE_LIMIT) {
            None => defaults.cache_limit,
            Some(text) => {
                parse_size(&text).ok_or(FetchError::NotASize { variable: CACHE_LIMIT, value: text })?
            }
        };
        Ok(Self {
            cache_dir: environment.cache_folder().map(|it| it.join("repository")),
            cache_limit,
            offline: variable("CAPSTAN_OFFLINE").is_some_and(|it| it != "false" && it != "0"),
            github_hosts: hosts("GITHUB_HOSTS"),
            gitlab_hosts: hosts("GITLAB_HOSTS"),
            oci_credentials: variable("OCI_USERNAME")
                .zip(variable("OCI_PASSWORD"))
                .map(|(username, password)| Credentials { username, password }),
            oci_host: variable("OCI_HOST"),
            oci_token_hosts: hosts("OCI_TOKEN_HOSTS"),
            go_proxy: variable("GOPROXY"),
            ..defaults
        })
    }

    /// The same options with the tokens that a configuration has.
    #[must_use]
    pub fn with_tokens(self, config: &Config) -> Self {
        Self { github_token: config.github_token(), gitlab_token: config.gitlab_token(), ..self }
    }
}

impl DockerConfig {
    /// Reads docker's `config.json`, if there is one. The credential helpers that it names may be run.
    pub fn read(environment: &Environment) -> Result<Option<Self>, FetchError> {
        let Some(path) = Self::path(environment) else { return Ok(None) };
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(Self { text, run_helpers: true })),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(FetchError::Local { path, source }),
        }
    }

    /// Where docker keeps its configuration.
    fn path(environment: &Environment) -> Option<PathBuf> {
        let folder = environment.get("DOCKER_CONFIG").filter(|it| !it.is_empty()).map(PathBuf::from);
        let folder = folder.or_else(|| Some(environment.home.as_ref()?.join(".docker")))?;
        Some(folder.join("config.json"))
    }
}

/// Bytes, with or without one of Kubernetes' suffixes.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, suffix) = text.split_at(text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len()));
    let unit = match suffix {
        "" => 1,
        "k" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Format;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Environment { variables: variables.collect(), home: Some("/h".into()), ..Environment::default() }
    }

    #[test]
    fn every_option_has_its_variable() {
        let nothing = HttpOptions::from_environment(&environment(&[])).unwrap();
        assert_eq!(nothing.cache_dir, Some("/h/.cache/capstan/repository".into()));
        assert!(!nothing.offline && nothing.oci_credentials.is_none() && nothing.go_proxy.is_none());
        assert!(nothing.github_hosts.is_empty() && nothing.gitlab_hosts.is_empty());

        let all = HttpOptions::from_environment(&environment(&[
            ("CAPSTAN_CACHE_DIR", "/c"),
            ("CAPSTAN_OFFLINE", "true"),
            ("GITHUB_HOSTS", "a.corp,b.corp:8443"),
            ("GITLAB_HOSTS", "c.corp"),
            ("OCI_USERNAME", "me"),
            ("OCI_PASSWORD", "secret"),
            ("OCI_HOST", "ghcr.io"),
            ("OCI_TOKEN_HOSTS", "auth.corp,login.corp:8443"),
            ("GOPROXY", "off"),
            ("GITHUB_TOKEN", "not from here"),
        ]))
        .unwrap();
        assert_eq!(all.cache_dir, Some("/c/repository".into()));
        assert!(all.offline);
        assert_eq!(
            (all.github_hosts.join(" "), all.gitlab_hosts.join(" ")),
            ("a.corp b.corp:8443".into(), "c.corp".into())
        );
        assert_eq!(all.oci_token_hosts.join(" "), "auth.corp login.corp:8443");
        let credentials = all.oci_credentials.unwrap();
        assert_eq!((credentials.username.as_str(), credentials.password.as_str()), ("me", "secret"));
        assert_eq!((all.oci_host.as_deref(), all.go_proxy.as_deref()), (Some("ghcr.io"), Some("off")));
        assert_eq!(all.github_token, None);
    }

    #[test]
    fn the_limit_of_the_cache_is_a_size() {
        for (text, expected) in [
            ("", Some(512 << 20)),
            ("0", Some(0)),
            ("1000", Some(1000)),
            (" 5k", Some(5000)),
            ("5M", Some(5_000_000)),
            ("5G", Some(5_000_000_000)),
            ("5Ki", Some(5 << 10)),
            ("5Mi", Some(5 << 20)),
            ("5Gi", Some(5 << 30)),
            ("17179869184Gi", None),
            ("99999999999999999999", None),
            ("-1", None),
            ("1.5Gi", None),
            ("5MB", None),
            ("5 Mi", None),
            ("Mi", None),
            ("é", None),
        ] {
            let found = HttpOptions::from_environment(&environment(&[(CACHE_LIMIT, text)]));
            match (found, expected) {
                (Ok(options), Some(expected)) => assert_eq!(options.cache_limit, expected, "{text}"),
                (Err(error), None) => assert_eq!(
                    error.to_string(),
                    format!("CAPSTAN_CACHE_LIMIT is {text:?}, which is not a size in bytes")
                ),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_variable_that_says_nothing_sets_nothing() {
        for (name, value, is_offline) in [
            ("CAPSTAN_OFFLINE", "", false),
            ("CAPSTAN_OFFLINE", "false", false),
            ("CAPSTAN_OFFLINE", "0", false),
            ("CAPSTAN_OFFLINE", "1", true),
            ("CAPSTAN_OFFLINE", "yes", true),
            ("OCI_USERNAME", "me", false),
            ("GOPROXY", "", false),
            ("GITHUB_HOSTS", "", false),
        ] {
            let options = HttpOptions::from_environment(&environment(&[(name, value)])).unwrap();
            assert_eq!(options.offline, is_offline, "{name}={value}");
            assert!(options.oci_credentials.is_none() && options.go_proxy.is_none(), "{name}={value}");
            assert!(options.github_hosts.is_empty(), "{name}={value}");
        }
    }

    #[test]
    fn tokens_come_from_the_configuration() {
        let environment = environment(&[("GITLAB_ACCESS_TOKEN", "lab")]);
        let config = Config::parse("github-token: hub", Format::Yaml, "config", &environment).unwrap();
        let options = HttpOptions::from_environment(&environment).unwrap().with_tokens(&config);
        assert_eq!(options.github_token.as_deref(), Some("hub"));
        assert_eq!(options.gitlab_token.as_deref(), Some("lab"));
        assert_eq!(options.cache_dir, Some("/h/.cache/capstan/repository".into()));
    }

    #[test]
    fn docker_is_read_where_it_keeps_its_configuration() {
        let path = |variables| DockerConfig::path(&environment(variables));
        assert_eq!(path(&[]), Some("/h/.docker/config.json".into()));
        assert_eq!(path(&[("DOCKER_CONFIG", "")]), Some("/h/.docker/config.json".into()));
        assert_eq!(path(&[("DOCKER_CONFIG", "/d")]), Some("/d/config.json".into()));
        assert_eq!(DockerConfig::path(&Environment::default()), None);
        assert!(DockerConfig::read(&environment(&[("DOCKER_CONFIG", "/does/not/exist")])).unwrap().is_none());

        let folder = std::env::temp_dir().join(format!("capstan-docker-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("config.json")).unwrap();
        let unreadable = environment(&[("DOCKER_CONFIG", folder.to_str().unwrap())]);
        let error = DockerConfig::read(&unreadable).unwrap_err().to_string();
        assert!(error.contains("config.json: "), "{error}");
        std::fs::remove_dir(folder.join("config.json")).unwrap();
        std::fs::write(folder.join("config.json"), "{}").unwrap();
        assert_eq!(DockerConfig::read(&unreadable).unwrap().unwrap().text, "{}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
