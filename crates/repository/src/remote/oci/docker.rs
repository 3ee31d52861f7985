//! What docker knows about the users of registries.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;
use std::{env, io};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Deserializer};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::super::get::describe_json;
use super::super::options::DockerConfig;
use super::Credentials;
use crate::{FetchError, find_program};

/// The user that stands for "the password is a token".
const TOKEN_USER: &str = "00000000-0000-0000-0000-000000000000";

/// A helper that takes longer waits for a user who is not there.
const LONGEST_HELP: Duration = Duration::from_secs(10);

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    #[serde(deserialize_with = "null_as_default")]
    auths: BTreeMap<String, Option<Login>>,
    #[serde(deserialize_with = "null_as_default")]
    cred_helpers: BTreeMap<String, String>,
    creds_store: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Login {
    #[serde(deserialize_with = "null_as_default")]
    auth: String,
    #[serde(deserialize_with = "null_as_default")]
    username: String,
    #[serde(deserialize_with = "null_as_default")]
    password: String,
    #[serde(deserialize_with = "null_as_default")]
    identitytoken: String,
}

/// Go reads null as if nothing was there.
fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// How a registry is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Encrypted,
    /// Without TLS, within this machine.
    Loopback,
    /// Without TLS, because the user's address says `http://`.
    Plain,
}

impl Wire {
    /// Whether credentials may be sent that are stored under a key, as far as the key's scheme decides. Without TLS
    /// others can read them on the way, so that they must have been meant for that.
    pub(super) fn carries(self, key: &str) -> bool {
        match self {
            Self::Encrypted => true,
            Self::Loopback => !key.starts_with("https://"),
            Self::Plain => key.starts_with("http://"),
        }
    }
}

/// The credentials for a registry, if docker has any that may be sent to it.
pub(super) async fn find(
    config: &DockerConfig,
    registry: &str,
    wire: Wire,
) -> Result<Option<Credentials>, FetchError> {
    let parsed: Config = serde_json::from_str(&config.text)
        .map_err(|error| failure(registry, format!("docker's config.json: {}", describe_json(&error))))?;
    if let Some(name) = helper_for(&parsed, registry, wire).filter(|_| config.run_helpers) {
        let server = match wire {
            Wire::Plain => format!("http://{registry}"),
            _ => registry.to_owned(),
        };
        let found = ask_helper(name, &server, env::var_os("PATH").as_deref()).await?;
        if found.is_some() {
            return Ok(found);
        }
    }
    stored(&parsed, registry, wire)
}

/// Whether docker has credentials for a registry that may not be sent to it.
pub(super) fn find_withheld(config: &DockerConfig, registry: &str, wire: Wire) -> bool {
    serde_json::from_str::<Config>(&config.text).is_ok_and(|config| {
        config.auths.keys().any(|key| host_of(key) == host_of(registry) && !wire.carries(key))
    })
}

fn is_for(key: &str, registry: &str, wire: Wire) -> bool {
    host_of(key) == host_of(registry) && wire.carries(key)
}

fn stored(config: &Config, registry: &str, wire: Wire) -> Result<Option<Credentials>, FetchError> {
    let own = config.auths.iter().find(|(key, _)| is_for(key, registry, wire));
    let Some(login) = own.and_then(|(_, login)| login.as_ref()) else { return Ok(None) };
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

fn helper_for<'a>(config: &'a Config, registry: &str, wire: Wire) -> Option<&'a str> {
    let own = config.cred_helpers.iter().find(|(key, _)| is_for(key, registry, wire));
    own.map(|(_, name)| name)
        .or(config.creds_store.as_ref())
        .map(String::as_str)
        .filter(|name| !name.is_empty())
}

/// Keys are hosts, or addresses from older times: `https://index.docker.io/v1/`.
pub(super) fn host_of(key: &str) -> &str {
    let key = key.split_once("://").map_or(key, |(_, rest)| rest);
    match key.split('/').next().unwrap_or(key) {
        "index.docker.io" | "registry-1.docker.io" => "docker.io",
        host => host,
    }
}

async fn ask_helper(
    name: &str,
    registry: &str,
    path: Option<&OsStr>,
) -> Result<Option<Credentials>, FetchError> {
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        return Err(failure(registry, format!("{name:?} is not the name of a credential helper")));
    }
    let program = format!("docker-credential-{name}{}", env::consts::EXE_SUFFIX);
    match find_program(path, &program) {
        Some(found) => run_helper(&found, registry, LONGEST_HELP).await,
        None => Err(failure(registry, format!("{program} is in no absolute folder of the PATH"))),
    }
}

/// Helpers read the server's name and answer in JSON, or fail with a sentence on their standard output.
async fn run_helper(
    program: &Path,
    registry: &str,
    limit: Duration,
) -> Result<Option<Credentials>, FetchError> {
    let explain =
        |error: &dyn std::fmt::Display| failure(registry, format!("{}: {error}", program.display()));
    let server = if registry == "docker.io" { "https://index.docker.io/v1/" } else { registry };
    let output = match tokio::time::timeout(limit, talk_to(program, server)).await {
        Ok(outcome) => outcome.map_err(|error| explain(&error))?,
        Err(_) => return Err(explain(&format!("it gave no answer within {} s", limit.as_secs_f64()))),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        return if said.contains("credentials not found") { Ok(None) } else { Err(explain(&said)) };
    }
    let answer: Answer =
        serde_json::from_slice(&output.stdout).map_err(|error| explain(&describe_json(&error)))?;
    let username = if answer.username == "<token>" { TOKEN_USER.to_owned() } else { answer.username };
    Ok(Some(Credentials { username, password: answer.secret }))
}

/// Runs a helper; dropping the future kills it.
async fn talk_to(program: &Path, server: &str) -> io::Result<Output> {
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        match input.write_all(server.as_bytes()).await {
            // One that ends without reading says why in its output.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            outcome => outcome?,
        }
    }
    child.wait_with_output().await
}

fn failure(registry: &str, reason: String) -> FetchError {
    FetchError::Credentials { registry: registry.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(config: &str, registry: &str) -> Result<Option<(String, String)>, FetchError> {
        let config: Config = serde_json::from_str(config).unwrap();
        Ok(stored(&config, registry, Wire::Encrypted)?
            .map(|credentials| (credentials.username, credentials.password)))
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

    #[tokio::test]
    async fn a_broken_file_is_not_quoted() {
        for text in [
            r#"{"auths":{"h.io":"canary"}}"#,
            r#"{"auths":"canary"}"#,
            r#"{"auths":{"h.io":{"password":["canary"]}}}"#,
            r#"{"auths":{"h.io":{"auth":"canary"}}}"#,
            r#"{"auths":{"h.io":{"password":"canary}}}"#,
        ] {
            let config = DockerConfig { text: text.to_owned(), run_helpers: false };
            let error = find(&config, "h.io", Wire::Encrypted).await.unwrap_err();
            assert!(!format!("{error} {error:?} {config:?}").contains("canary"), "{error}");
        }
    }

    #[test]
    fn null_is_nothing() {
        for text in [
            r#"{"auths":null,"credHelpers":null,"credsStore":null}"#,
            r#"{"auths":{"h.io":null}}"#,
            r#"{"auths":{"h.io":{"auth":null,"username":null,"password":null,"identitytoken":null}}}"#,
        ] {
            assert_eq!(found(text, "h.io").unwrap(), None, "{text}");
        }
    }

    #[tokio::test]
    async fn the_helper_of_a_registry_comes_before_the_common_one() {
        let config: Config =
            serde_json::from_str(r#"{"credHelpers":{"a.io":"ecr"},"credsStore":"desktop"}"#).unwrap();
        assert_eq!(
            ["a.io", "b.io"].map(|registry| helper_for(&config, registry, Wire::Encrypted)),
            [Some("ecr"), Some("desktop")]
        );
        assert!(ask_helper("../evil", "a.io", None).await.unwrap_err().to_string().contains("not the name"));
    }

    #[cfg(unix)]
    struct Helper(std::path::PathBuf);

    #[cfg(unix)]
    impl Helper {
        fn new(name: &str, script: &str) -> Self {
            use std::os::unix::fs::PermissionsExt;
            let file = format!("docker-credential-capstan-{name}-{}", std::process::id());
            let path = env::temp_dir().join(file);
            std::fs::write(&path, script).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            Self(path)
        }

        async fn ask(&self, registry: &str, limit: Duration) -> Result<Option<(String, String)>, FetchError> {
            let found = run_helper(&self.0, registry, limit).await?;
            Ok(found.map(|credentials| (credentials.username, credentials.password)))
        }
    }

    #[cfg(unix)]
    impl Drop for Helper {
        fn drop(&mut self) {
            std::fs::remove_file(&self.0).unwrap();
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn helpers_are_told_the_server_and_answer_in_json() {
        let helper = Helper::new(
            "answers",
            r#"#!/bin/sh
[ "$1" = get ] || exit 2
read -r server
case "$server" in
  known.io) printf '{"ServerURL":"known.io","Username":"u","Secret":"p"}' ;;
  token.io) printf '{"Username":"<token>","Secret":"t"}' ;;
  https://index.docker.io/v1/) printf '{"Username":"docker","Secret":"d"}' ;;
  broken.io) printf 'no keychain'; exit 1 ;;
  *) printf 'credentials not found in native keychain'; exit 1 ;;
esac
"#,
        );
        let ask = |registry| helper.ask(registry, LONGEST_HELP);
        let pair = |user: &str, secret: &str| Some((user.to_owned(), secret.to_owned()));
        assert_eq!(ask("known.io").await.unwrap(), pair("u", "p"));
        assert_eq!(ask("token.io").await.unwrap(), pair(TOKEN_USER, "t"));
        assert_eq!(ask("docker.io").await.unwrap(), pair("docker", "d"));
        assert_eq!(ask("other.io").await.unwrap(), None);
        assert!(ask("broken.io").await.unwrap_err().to_string().ends_with("no keychain"));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn helpers_are_run_from_absolute_folders_alone() {
        let helper = Helper::new("elsewhere", "#!/bin/sh\nprintf '{\"Username\":\"u\",\"Secret\":\"p\"}'\n");
        let folder = helper.0.parent().unwrap();
        let name = helper.0.file_name().unwrap().to_str().unwrap().trim_start_matches("docker-credential-");
        // The same folder, as seen from the current one.
        let depth = env::current_dir().unwrap().components().count() - 1;
        let relative = Path::new(&"../".repeat(depth)).join(folder.strip_prefix("/").unwrap());
        assert!(relative.join(format!("docker-credential-{name}")).is_file());
        let ask = async |path: &Path| ask_helper(name, "h.io", Some(path.as_os_str())).await;
        assert_eq!(ask(folder).await.unwrap().unwrap().username, "u");
        let error = ask(&relative).await.unwrap_err().to_string();
        assert!(error.ends_with("is in no absolute folder of the PATH"), "{error}");
    }

    #[test]
    fn without_encryption_only_entries_that_say_so_count() {
        let text = |key: &str| format!(r#"{{"auths":{{"{key}":{{"username":"u","password":"p"}}}}}}"#);
        for (key, encrypted, loopback, plain) in [
            ("h:5000", true, true, false),
            ("https://h:5000", true, false, false),
            ("https://h:5000/v2/", true, false, false),
            ("http://h:5000", true, true, true),
            ("http://h:5000/v2/", true, true, true),
            ("http://other:5000", false, false, false),
        ] {
            let config: Config = serde_json::from_str(&text(key)).unwrap();
            let found = [Wire::Encrypted, Wire::Loopback, Wire::Plain]
                .map(|wire| stored(&config, "h:5000", wire).unwrap().is_some());
            assert_eq!(found, [encrypted, loopback, plain], "{key}");
        }
        let helpers = r#"{"credHelpers":{"h":"of-h","http://h":"of-plain-h"}}"#;
        let config: Config = serde_json::from_str(helpers).unwrap();
        assert_eq!(helper_for(&config, "h", Wire::Plain), Some("of-plain-h"));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_helper_that_hangs_is_killed_and_named() {
        let helper = Helper::new("hangs", "#!/bin/sh\necho $$ > \"$0.pid\"\nexec sleep 60\n");
        let limit = Duration::from_secs(5);
        let error = helper.ask("h.io", limit).await.unwrap_err().to_string();
        assert!(error.contains("docker-credential-capstan-hangs"), "{error}");
        assert!(error.ends_with("it gave no answer within 5 s"), "{error}");
        let note = format!("{}.pid", helper.0.display());
        let pid = std::fs::read_to_string(&note).unwrap();
        std::fs::remove_file(note).unwrap();
        // The runtime collects it in its own time.
        let process = Path::new("/proc").join(pid.trim());
        for _ in 0..100 {
            if !process.exists() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{} is still there", process.display());
    }
}
