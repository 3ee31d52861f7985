//! Terminals: whatever names, conditions, files and servers say, it neither steers a terminal nor misleads who looks at it.

use std::{fmt::Write as _, fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use capstan_api::conditions;
use capstan_runtime::install::install_crds;
use capstan_testkit::{
    Which, generic,
    terminal::Terminal,
    wait::{self, LIMIT},
};
use serde_json::json;

use crate::{
    get::Caller,
    user::{COMPONENTS, User, VERSION},
};

/// Sets a terminal's title (OSC 0) and its clipboard (OSC 52), clears its screen and hides what follows (CSI), also by
/// C1 controls, returns to the start of the line, changes the direction of text, and has invisible letters.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}]52;c;Y3VybA==\u{1b}\\\u{1b}[2J\u{1b}[8m\u{9b}2J\u{9d}0;owned\u{9c}\rfine\u{202e}txt\u{2066}\u{200b}\u{e0041}end";
/// The same as people see it.
const SEEN: &str = r"\u001b]0;owned\u0007\u001b]52;c;Y3VybA==\u001b\\u001b[2J\u001b[8m\u009b2J\u009d0;owned\u009c\rfine\u202etxt\u2066\u200b\udb40\udc41end";
/// What our own codes are made of: looks, whether lines wrap, the line or the picture again.
const OURS: [&str; 14] =
    ["0m", "1m", "2m", "31m", "32m", "33m", "36m", "37m", "37;1m", "90m", "?7l", "?7h", "K", "J"];
const KIND: &str = "TerminalCluster";
/// Nothing is wrapped.
const COLUMNS: u16 = 600;
const ROWS: u16 = 80;

/// Makes sure that a terminal got no codes but ours, and gives what can be seen on it.
fn judge(terminal: &Terminal, what: &str) -> String {
    let received = terminal.received();
    let is_ours = |code: &str| {
        let goes_up = code.split_once('A').is_some_and(|(lines, _)| lines.parse::<u8>().is_ok());
        goes_up || OURS.iter().any(|ours| code.starts_with(ours))
    };
    for code in received.split("\u{1b}[").skip(1) {
        assert!(is_ours(code), "{what}: {code:?} in {received:?}");
    }
    // A terminal's driver sends line breaks as CR LF.
    let rest = received.replace("\u{1b}[", "").replace("\r\n", "").replace("\rK", "");
    let acts = |it: char| it.is_control() || ['\u{202e}', '\u{2066}', '\u{200b}', '\u{e0041}'].contains(&it);
    assert_eq!(rest.find(acts), None, "{what}: {received:?}");
    terminal.lines().join("\n")
}

/// What can be seen once a command has ended.
fn watch(command: Command, what: &str) -> String {
    let mut terminal = Terminal::start(command, COLUMNS, ROWS);
    terminal.ended();
    judge(&terminal, what)
}

fn capstan(user: &User, words: &[&str]) -> Command {
    user.command(env!("CARGO_BIN_EXE_capstan"), words)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_cluster_reports_cannot_steer_a_terminal() {
    let caller = Caller::begin("terminals").await;
    let story = &caller.story;
    let crd = generic::crd(KIND, &[("v1beta2", "v1beta2")]);
    install_crds(&story.client, &[crd], "story").await.unwrap();
    let manager = story.manager(Which::Core);
    story.create_generic(KIND, "ic", json!({})).await;
    story.create_cluster("c", KIND, "ic").await;
    let message = format!("{HOSTILE}\nhint: run this");
    // Core would quote the reason of Ready if it were no word.
    let now = "2026-01-01T00:00:00Z";
    let reported = json!([
        {"type": "Ready", "status": "False", "reason": "Hostile", "message": message, "lastTransitionTime": now},
        {"type": HOSTILE, "status": "False", "reason": HOSTILE, "message": message, "lastTransitionTime": now},
    ]);
    story.set_generic_status(KIND, "ic", json!({"conditions": reported})).await;
    wait::until_is(&story.clusters(), "c", "informed of it", LIMIT, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        conditions::get(&status.conditions, "InfrastructureReady")
            .is_some_and(|it| it.message.contains("owned"))
    })
    .await;

    for words in [
        &["describe", "cluster", "c"][..],
        &["describe", "cluster", "c", "--show-conditions=all"],
        &["describe", "cluster", "c", "--v1beta2=false", "--show-conditions=all"],
        &["describe", "cluster", "c", "-o", "yaml"],
        &["describe", "cluster", "c", "-o", "json"],
        &["explain", "cluster", "c"],
        &["explain", "cluster", "c", "-o", "json"],
    ] {
        let shown = watch(capstan(&caller.user, words), &words.join(" "));
        assert!(
            shown.contains("\\u001b]52;c;Y3VybA==") || shown.contains("\\e]52;c;Y3VybA=="),
            "{words:?}: {shown}"
        );
        assert!(!shown.lines().any(|line| line.starts_with("hint:")), "{words:?}: {shown}");
    }
    let mut terminal =
        Terminal::start(capstan(&caller.user, &["describe", "cluster", "c", "--watch"]), COLUMNS, ROWS);
    terminal.until("the condition", |lines| lines.iter().any(|line| line.contains("Y3VybA==")));
    terminal.interrupt();
    terminal.ended();
    judge(&terminal, "describe --watch");

    // Programs get it as it is.
    let piped = caller.run(&["describe", "cluster", "c", "--show-conditions=all", "-o", "json"]).only_data();
    let piped: serde_json::Value = serde_json::from_str(&piped).unwrap();
    assert!(piped.to_string().contains(&json!(message).to_string()), "{piped:#}");
    // People may read through a pipe, too.
    let piped = caller.run(&["describe", "cluster", "c"]).only_data();
    assert!(!piped.contains(['\u{1b}', '\u{9b}', '\r', '\u{202e}', '\u{200b}']), "{piped:?}");
    manager.stop().await;
}

#[test]
fn files_arguments_and_releases_cannot_steer_a_terminal() {
    let user = User::of_acme();
    let file = format!("{HOSTILE}.yaml").replace('/', "");
    user.write(&file, &format!("a: \"${{B\n{HOSTILE}\n"));
    user.write("metadata.yaml", "");
    // Control characters have to be escaped in YAML.
    let mut kind = String::new();
    for letter in HOSTILE.chars() {
        write!(kind, "\\U{:08x}", u32::from(letter)).unwrap();
    }
    let components = format!("{COMPONENTS}---\nkind: \"{kind}\"\n");
    user.release("infrastructure-acme", VERSION, &[("infrastructure-components.yaml", &components)]);
    let missing = format!("--from={HOSTILE}");
    for (words, expected) in [
        (&["generate", "yaml", &missing][..], "cannot read"),
        (&["generate", "yaml", "--from", &file], "cannot use"),
        (&["lint", "components", &file], ""),
        (&["conformance", "static", "--components", &file], ""),
        (&["convert", &file], "cannot convert"),
        (&["generate", "provider", "--infrastructure", "acme"], "kind:"),
        (&["generate", "provider", "--infrastructure", &format!("acme:{HOSTILE}")], "error:"),
        (&["generate", "cluster", HOSTILE, "-i", "acme", "--target-namespace", "default"], "error:"),
        (&["config", "repositories", HOSTILE], "unexpected argument"),
        (&[HOSTILE], "unrecognized subcommand"),
        (&["get", "clusters", "--kubeconfig", HOSTILE], "error:"),
    ] {
        let shown = watch(capstan(&user, words), &words.join(" "));
        assert!(shown.contains("owned") && shown.contains(expected), "{words:?}: {shown}");
    }
    // YAML refuses C1 controls, and JSON does not escape them.
    let hostile = HOSTILE.replace(['\u{9b}', '\u{9c}', '\u{9d}'], "");
    user.configure(&json!({"providers": [{
        "name": "x", "type": "InfrastructureProvider",
        "url": format!("https://example.com/{hostile}/latest/infrastructure-components.yaml"),
    }]}));
    let shown = watch(capstan(&user, &["config", "repositories"]), "config repositories");
    assert!(shown.contains("example.com"), "{shown}");
}

#[test]
fn plugins_cannot_steer_a_terminal() {
    let user = User::new();
    let broken = user.write(
        &format!("{HOSTILE}/capstan-broken").replace('/', "-").replace("-capstan", "/capstan"),
        "#!/nonexistent\n",
    );
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let user = user.with("PATH", broken.parent().unwrap());
    let shown = watch(capstan(&user, &["broken"]), "a plugin");
    assert!(
        shown.contains(&format!("cannot run plugin {}/{SEEN}/capstan-broken", user.home.display())),
        "{shown}"
    );
}

#[test]
fn manifests_are_piped_byte_by_byte_and_shown_without_danger() {
    let user = User::new();
    // All that YAML takes as it is between quotes.
    user.write(
        "in.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: \"\u{202e}x\u{200b}\"}\n",
    );
    let words = ["generate", "yaml", "--from", "in.yaml"];
    let piped = user.run(&words).only_data();
    assert!(piped.contains("\u{202e}x\u{200b}"), "{piped:?}");
    let shown = watch(capstan(&user, &words), "generate yaml");
    assert!(shown.contains("\\u202ex\\u200b"), "{shown}");
    let to_file = capstan(&user, &["convert", "in.yaml", "-o", "out.yaml"]);
    watch(to_file, "convert");
    assert!(fs::read_to_string(user.home.join(Path::new("out.yaml"))).unwrap().contains("\u{202e}x\u{200b}"));
}
