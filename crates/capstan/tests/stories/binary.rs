//! The binary as its users run it.

use std::{
    os::unix::fs::PermissionsExt,
    process::{Command, Output},
};

fn capstan(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_capstan")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn quickstart_ends_in_a_provisioned_cluster() {
    let run = capstan(&["quickstart", "--exit-when-ready"]);
    let (out, err) = (text(&run.stdout), text(&run.stderr));
    assert!(run.status.success(), "{out}\n{err}");
    assert!(out.contains("Provisioned"), "{out}");
    assert!(err.contains("accepts connections"), "{err}");
}

/// The second run goes on from the first one's data.
#[test]
fn quickstart_can_be_repeated_in_a_state_folder() {
    let folder = std::env::temp_dir().join(format!("capstan-story-{}", std::process::id()));
    for _ in 0..2 {
        let run = capstan(&["quickstart", "--exit-when-ready", "--state-dir", folder.to_str().unwrap()]);
        assert!(run.status.success(), "{}\n{}", text(&run.stdout), text(&run.stderr));
        let mode = |path: &str| std::fs::metadata(folder.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("logs"), mode("logs/controllers.log")), (0o700, 0o600));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn crds_are_printed_for_those_who_ask() {
    let run = capstan(&["crds", "core"]);
    let out = text(&run.stdout);
    assert!(run.status.success());
    assert!(out.contains("name: clusters.cluster.x-k8s.io") && !out.contains("localclusters"), "{out:.400}");
    let run = capstan(&["crds", "local", "--webhooks=false"]);
    let out = text(&run.stdout);
    assert!(out.contains("name: localclusters.infrastructure.cluster.x-k8s.io") && !out.contains("Webhook"));
    let run = capstan(&["crds", "operator"]);
    let out = text(&run.stdout);
    assert_eq!(out.matches("kind: CustomResourceDefinition").count(), 7, "{out:.400}");
    assert!(out.contains("name: ipamproviders.management.cluster.x-k8s.io") && !out.contains("Webhook"));
    let run = capstan(&["crds"]);
    assert_eq!(text(&run.stdout).matches("kind: CustomResourceDefinition").count(), 10);
}

#[test]
fn mistakes_on_the_command_line_exit_with_1_and_say_what_is_possible() {
    for (arguments, words) in [
        (&["manager", "cor"][..], "possible values: core, local, operator, all"),
        (&["manager", "core", "--sync-period", "soon"], "write it like 30s, 10m or 1h30m"),
        (&["manager", "core", "--kubeconfig", "/nonexistent/config"], "/nonexistent/config"),
        (
            &["manager", "core", "--namespace", "BAD NS"],
            "--namespace \"BAD NS\" is not the name of a namespace",
        ),
        (
            &["manager", "core", "--watch-filter", "a b!"],
            "--watch-filter \"a b!\" is not the value of a label",
        ),
        (&["quickstart", "--state-dir"], "--state-dir"),
    ] {
        let run = capstan(arguments);
        let err = text(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{arguments:?}: {err}");
        assert!(err.contains(words), "{arguments:?}: {err}");
    }
    assert!(capstan(&["version", "-o", "short"]).status.success());
}
