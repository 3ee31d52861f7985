//! What docker knows about the users of registries.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;

use super::super::options::DockerConfig;
use super::Credentials;
use crate::FetchError;

/// The user that stands for "the password is a token".
const TOKEN_USER: &str = "00000000-0000-0000-0000-000000000000";

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    auths: BTreeMap<String, Login>,
    cred_helpers: BTreeMap<String, String>,
    creds_store: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Login {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// The credentials for a registry, if docker has any.
pub(super) async fn find(config: &DockerConfig, registry: &str) -> Result<Option<Credentials>, FetchError> {
    let parsed: Config = serde_json::from_str(&config.text)
        .map_err(|error| failure(registry, format!("docker's config.json: {error}")))?;
    if let Some(name) = helper_for(&parsed, registry).filter(|_| config.run_helpers) {
        let (name, server) = (name.to_owned(), registry.to_owned());
        let run = tokio::task::spawn_blocking(move || ask_helper(&name, &server));
        let found = run.await.map_err(|error| failure(registry, error.to_string()))??;
        if found.is_some() {
            return Ok(found);
        }
    }
    stored(&parsed, registry)
}

fn stored(config: &Config, registry: &str) -> Result<Option<Credentials>, FetchError> {
    let Some((_, login)) = config.auths.iter().find(|(key, _)| host_of(key) == host_of(registry)) else {
        return Ok(None);
    };
    let (mut username, mut password) = (login.username.clone(), login.password.clone());
    if !login.auth.is_empty() {
        let pair =
            BASE64_STANDARD.decode(login.auth.trim()).ok().and_then(|pair| String::from_utf8(pair).ok());
        let pair = pair.as_deref().and_then(|pair| pair.split_once(':'));
        let (user, secret) = pair.ok_or_else(|| {
            failure(registry, "docker's config.json: auth is not user:password in base64".to_owned())
        })?;
        (username, password) = (user.to_owned(), secret.trim_end_matches('\0').to_owned());
    }
    if !login.identitytoken.is_empty() {
        (username, password) = (TOKEN_USER.to_owned(), login.identitytoken.clone());
    }
    Ok((!username.is_empty()).then_some(Credentials { username, password }))
}

fn helper_for<'a>(config: &'a Config, registry: &str) -> Option<&'a str> {
    let own = config.cred_helpers.iter().find(|(key, _)| host_of(key) == host_of(registry));
    own.map(|(_, name)| name)
        .or(config.creds_store.as_ref())
        .map(String::as_str)
        .filter(|name| !name.is_empty())
}

/// Keys are hosts, or addresses from older times: `https://index.docker.io/v1/`.
fn host_of(key: &str) -> &str {
    let key = key.split_once("://").map_or(key, |(_, rest)| rest);
    match key.split('/').next().unwrap_or(key) {
        "index.docker.io" | "registry-1.docker.io" => "docker.io",
        host => host,
    }
}

fn ask_helper(name: &str, registry: &str) -> Result<Option<Credentials>, FetchError> {
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        return Err(failure(registry, format!("{name:?} is not the name of a credential helper")));
    }
    run_helper(&format!("docker-credential-{name}"), registry)
}

/// Helpers read the server's name and answer in JSON, or fail with a sentence on their standard output.
fn run_helper(program: &str, registry: &str) -> Result<Option<Credentials>, FetchError> {
    let explain = |error: &dyn std::fmt::Display| failure(registry, format!("{program}: {error}"));
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| explain(&error))?;
    if let Some(mut input) = child.stdin.take() {
        let server = if registry == "docker.io" { "https://index.docker.io/v1/" } else { registry };
        input.write_all(server.as_bytes()).map_err(|error| explain(&error))?;
    }
    let output = child.wait_with_output().map_err(|error| explain(&error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        return if said.contains("credentials not found") { Ok(None) } else { Err(explain(&said)) };
    }
    let answer: Answer = serde_json::from_slice(&output.stdout).map_err(|error| explain(&error))?;
    let username = if answer.username == "<token>" { TOKEN_USER.to_owned() } else { answer.username };
    Ok(Some(Credentials { username, password: answer.secret }))
}

fn failure(registry: &str, reason: String) -> FetchError {
    FetchError::Credentials { registry: registry.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(config: &str, registry: &str) -> Result<Option<(String, String)>, FetchError> {
        let config: Config = serde_json::from_str(config).unwrap();
        Ok(stored(&config, registry)?.map(|credentials| (credentials.username, credentials.password)))
    }

    #[test]
    fn credentials_are_found_by_host() {
        let pair = BASE64_STANDARD.encode("u:p:q");
        for (key, registry) in [
            ("ghcr.io", "ghcr.io"),
            ("https://ghcr.io/v2/", "ghcr.io"),
            ("https://index.docker.io/v1/", "docker.io"),
            ("h:5000", "h:5000"),
        ] {
            let config = format!(r#"{{"auths":{{"{key}":{{"auth":"{pair}"}}}}}}"#);
            assert_eq!(found(&config, registry).unwrap(), Some(("u".to_owned(), "p:q".to_owned())), "{key}");
            assert_eq!(found(&config, "other.io").unwrap(), None);
        }
    }

    #[test]
    fn other_forms_are_known() {
        let plain = r#"{"auths":{"h.io":{"username":"u","password":"p"}}}"#;
        assert_eq!(found(plain, "h.io").unwrap(), Some(("u".to_owned(), "p".to_owned())));
        let token = r#"{"auths":{"h.io":{"auth":"dTo=","identitytoken":"t"}}}"#;
        assert_eq!(found(token, "h.io").unwrap(), Some((TOKEN_USER.to_owned(), "t".to_owned())));
        assert_eq!(found(r#"{"auths":{"h.io":{}}}"#, "h.io").unwrap(), None);
        assert!(found(r#"{"auths":{"h.io":{"auth":"???"}}}"#, "h.io").is_err());
    }

    #[test]
    fn the_helper_of_a_registry_comes_before_the_common_one() {
        let config: Config =
            serde_json::from_str(r#"{"credHelpers":{"a.io":"ecr"},"credsStore":"desktop"}"#).unwrap();
        assert_eq!(
            (helper_for(&config, "a.io"), helper_for(&config, "b.io")),
            (Some("ecr"), Some("desktop"))
        );
        assert!(ask_helper("../evil", "a.io").unwrap_err().to_string().contains("not the name"));
    }
    #[cfg(unix)]
    #[test]
    fn helpers_are_told_the_server_and_answer_in_json() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("docker-credential-capstan-{}", std::process::id()));
        let script = r#"#!/bin/sh
[ "$1" = get ] || exit 2
read -r server
case "$server" in
  known.io) printf '{"ServerURL":"known.io","Username":"u","Secret":"p"}' ;;
  token.io) printf '{"Username":"<token>","Secret":"t"}' ;;
  https://index.docker.io/v1/) printf '{"Username":"docker","Secret":"d"}' ;;
  broken.io) printf 'no keychain'; exit 1 ;;
  *) printf 'credentials not found in native keychain'; exit 1 ;;
esac
"#;
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let ask = |registry: &str| {
            let found = run_helper(path.to_str().unwrap(), registry)?;
            Ok::<_, FetchError>(found.map(|credentials| (credentials.username, credentials.password)))
        };
        let pair = |user: &str, secret: &str| Some((user.to_owned(), secret.to_owned()));
        assert_eq!(ask("known.io").unwrap(), pair("u", "p"));
        assert_eq!(ask("token.io").unwrap(), pair(TOKEN_USER, "t"));
        assert_eq!(ask("docker.io").unwrap(), pair("docker", "d"));
        assert_eq!(ask("other.io").unwrap(), None);
        assert!(ask("broken.io").unwrap_err().to_string().ends_with("no keychain"));
        std::fs::remove_file(&path).unwrap();
    }
}
