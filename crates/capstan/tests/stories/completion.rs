//! Completion in a shell, as the script of the binary asks for it.

use std::process::Command;

use serde_json::json;

use crate::user::{Told, User, VERSION};

const KUBECONFIG: &str = "\
apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {server: 'https://127.0.0.1:1'}}
users: []
contexts:
- {name: staging, context: {cluster: c, user: u}}
- {name: production, context: {cluster: c, user: u}}
";

fn user() -> User {
    let user = User::of_acme();
    let files = [("cluster-template-eks.yaml", ""), ("cluster-template-gpu.yaml", "")];
    user.release("infrastructure-acme", VERSION, &files);
    user.release("infrastructure-acme", "v1.1.0", &[("cluster-template-arm.yaml", "")]);
    user.write("kubeconfig", KUBECONFIG);
    user
}

/// What is offered for the last word, by the protocol that the scripts speak; nothing else is said.
fn offered(user: &User, words: &[&str]) -> Vec<String> {
    let mut command = user.command(env!("CARGO_BIN_EXE_capstan"), &["--", "capstan"]);
    command.args(words).env("CAPSTAN_COMPLETE", "bash").env("_CLAP_IFS", "\n");
    command.env("_CLAP_COMPLETE_INDEX", words.len().to_string()).env("_CLAP_COMPLETE_COMP_TYPE", "9");
    let told = Told::from(command.output().unwrap()).only_data();
    told.lines().map(str::to_owned).collect()
}

#[test]
fn providers_versions_flavors_and_contexts_are_offered() {
    let user = user();
    for (words, expected) in [
        (&["gener"][..], &["generate"][..]),
        (&["generate", "provider", "-i", "ac"], &["acme"]),
        (&["generate", "provider", "--infrastructure=ac"], &["--infrastructure=acme"]),
        (&["generate", "provider", "-b", "kubea"], &["kubeadm"]),
        (&["generate", "provider", "-i", "kubea"], &[]),
        (&["generate", "provider", "-i", "acme:"], &["acme:v1.1.0", "acme:v1.0.0"]),
        (&["generate", "provider", "-i", "acme:v1.0"], &["acme:v1.0.0"]),
        (&["init", "list-images", "-i", "aws,ac"], &["aws,acme"]),
        (&["generate", "cluster", "c", "-i", "acme", "-f", ""], &["arm"]),
        (&["generate", "cluster", "c", "-i", "acme:v1.0.0", "-f", ""], &["eks", "gpu"]),
        (&["generate", "cluster", "c", "--infrastructure=acme:v1.0.0", "--flavor", "g"], &["gpu"]),
        (&["generate", "cluster", "c", "-f", ""], &[]),
        (
            &["generate", "cluster", "c", "--kubeconfig", "kubeconfig", "--kubeconfig-context", ""],
            &["staging", "production"],
        ),
    ] {
        assert_eq!(offered(&user, words), expected, "{words:?}");
    }
    let kubeconfig = user.path("kubeconfig");
    let user = user.with("KUBECONFIG", kubeconfig);
    let words = ["init", "list-images", "--kubeconfig-context", "prod"];
    assert_eq!(offered(&user, &words), ["production"]);
}

/// A line that is being typed is no place for warnings and errors.
#[test]
fn what_goes_wrong_stays_silent() {
    let user = user();
    user.configure(&json!({"providers": [], "images": {"all": {"unknown": "x"}}}));
    let run = user.run(&["config", "repositories"]);
    assert!(run.err.contains("warning:"), "{}", run.err);
    assert_eq!(offered(&user, &["generate", "provider", "-i", "aw"]), ["aws"]);
    user.write(".cluster-api/clusterctl.yaml", "not: [yaml");
    assert!(offered(&user, &["generate", "provider", "-i", "aw"]).is_empty());
    assert!(offered(&user, &["generate", "cluster", "c", "--kubeconfig", "gone", "-n", "d"]).is_empty());
}

/// The script in a real shell, which breaks words at colons and equal signs.
#[test]
fn bash_completes_by_the_script() {
    if Command::new("bash").arg("--version").output().is_err() {
        return;
    }
    let user = user();
    user.write("capstan.bash", &user.run(&["completion", "bash"]).only_data());
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_capstan"), user.home.join("capstan")).unwrap();
    user.write("ask.bash", ASK);
    for (words, expected) in [
        (&["gener"][..], "generate"),
        (&["generate", "provider", "-i", "ac"], "acme"),
        (&["generate", "provider", "-i", "acme", ":"], "v1.1.0 v1.0.0"),
        (&["generate", "provider", "-i", "acme", ":", "v1.0"], "v1.0.0"),
        (&["generate", "provider", "--infrastructure", "=", "ac"], "acme"),
        (&["generate", "cluster", "c", "-i", "acme", ":", "v1.0.0", "-f", "e"], "eks"),
    ] {
        let mut command = user.command("bash", &["--norc", "ask.bash"]);
        let path = format!("{}:{}", user.home.display(), std::env::var("PATH").unwrap());
        let told = Told::from(command.args(words).env("PATH", path).output().unwrap());
        assert_eq!(told.only_data().trim(), expected, "{words:?}");
    }
}

/// Calls what the script has registered as bash does: a word of breaks alone is no text yet.
const ASK: &str = r#"
source capstan.bash
COMP_WORDS=(capstan "$@")
COMP_CWORD=$#
COMP_TYPE=9
COMP_LINE=capstan
for word in "$@"; do
    case "$word${COMP_LINE: -1}" in
        [:=]* | *[:=]) COMP_LINE+=$word ;;
        *) COMP_LINE+=" $word" ;;
    esac
done
COMP_POINT=${#COMP_LINE}
current=${COMP_WORDS[COMP_CWORD]}
function=$(complete -p capstan)
function=${function##*-F }
"${function%% *}" capstan "${current#[:=]}" "${COMP_WORDS[COMP_CWORD-1]}"
echo "${COMPREPLY[@]}"
"#;

#[test]
fn every_shell_has_its_script() {
    let user = User::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = user.run(&["completion", shell]).only_data();
        assert!(script.contains("CAPSTAN_COMPLETE"), "{shell}: {script}");
    }
}
