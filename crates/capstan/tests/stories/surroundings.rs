//! What the binary does about programs beside it, and about newer versions of itself.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    time::{Duration, Instant},
};

use crate::user::{Told, User};

/// Adds a program to the user's PATH.
fn add_program(user: &User, name: &str, script: &str) -> PathBuf {
    let path = user.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn with_programs() -> User {
    let user = User::new();
    let path = format!("{}:{}", user.path("bin"), std::env::var("PATH").unwrap());
    user.with("PATH", path).with("COLOUR", "blue")
}

#[test]
fn a_program_on_the_path_is_a_command() {
    let user = with_programs();
    add_program(&user, "capstan-hello", r#"echo "hello $COLOUR $*"; exit 7"#);
    add_program(&user, "clusterctl-hello-my_world", r#"echo "$0 $*""#);
    add_program(&user, "capstan-version", "echo never");
    let told = user.run(&["hello", "there", "--loud"]);
    assert_eq!((told.code, told.out.as_str()), (Some(7), "hello blue there --loud\n"), "{told:?}");
    let told = user.run(&["hello", "my-world", "again"]);
    assert_eq!(told.data(), format!("{} again\n", user.path("bin/clusterctl-hello-my_world")));
    assert!(user.run(&["version"]).data().starts_with("capstan version"), "a command is not replaced");
    let told = user.run(&["helo"]);
    assert_eq!(told.code, Some(1));
    assert!(told.err.contains("unrecognized subcommand 'helo'"), "{told:?}");
}

/// The user is in the home folder, where `bin` is.
#[test]
fn a_program_in_a_relative_folder_of_the_path_is_no_command() {
    let user = with_programs();
    add_program(&user, "capstan-hello", "echo never");
    fs::copy(user.path("bin/capstan-hello"), user.path("capstan-hello")).unwrap();
    for path in ["bin", "./bin", ".", "", ":/nonexistent", "/nonexistent::bin"] {
        let mut command = user.command(env!("CARGO_BIN_EXE_capstan"), &["hello"]);
        let told: Told = command.env("PATH", path).output().unwrap().into();
        assert_eq!((told.code, told.out.as_str()), (Some(1), ""), "{path:?}: {told:?}");
        assert!(told.err.contains("unrecognized subcommand 'hello'"), "{path:?}: {told:?}");
    }
}

#[test]
fn a_program_that_cannot_be_run_says_why() {
    let user = with_programs();
    let path = add_program(&user, "capstan-broken", "");
    fs::write(&path, "#!/nonexistent/interpreter\n").unwrap();
    let told = user.run(&["broken"]);
    assert_eq!(told.code, Some(1));
    assert!(told.err.contains(&format!("cannot run plugin {}", path.display())), "{told:?}");
}

/// A user who knows where releases of Capstan are.
fn with_releases(versions: &[&str]) -> User {
    let user = User::new();
    for version in versions {
        user.write(&format!("capstan/{version}/metadata.yaml"), "");
    }
    let releases = user.home.join("capstan");
    user.with("CAPSTAN_RELEASES", releases)
}

#[test]
fn a_newer_version_is_told_once_somebody_found_it() {
    let user = with_releases(&["v0.0.1", "v9.8.7", "v10.0.0-rc.1"]);
    assert_eq!(user.run(&["version", "--check"]).data(), "v9.8.7 is available, this is v0.1.0\n");
    let told = user.run(&["version", "-o", "short"]);
    assert_eq!((told.code, told.out.as_str()), (Some(0), "v0.1.0\n"));
    assert!(told.err.contains("Capstan v9.8.7 is available, this is v0.1.0"), "{told:?}");
    // Scripts that turned it off for clusterctl need not learn another word.
    for variable in ["CLUSTERCTL_DISABLE_VERSIONCHECK", "CAPSTAN_DISABLE_VERSIONCHECK"] {
        let user = with_releases(&["v9.8.7"]).with(variable, "true");
        assert_eq!(user.run(&["version", "-o", "short"]).only_data(), "v0.1.0\n");
        assert!(!user.home.join(".cache/capstan/version-check.json").exists());
    }
}

#[test]
fn nobody_waits_for_the_answer_and_nobody_asks_twice_a_day() {
    let user = with_releases(&["v9.8.7"]);
    assert_eq!(user.run(&["version", "-o", "short"]).only_data(), "v0.1.0\n");
    let file = user.home.join(".cache/capstan/version-check.json");
    let deadline = Instant::now() + Duration::from_secs(30);
    while !fs::read_to_string(&file).unwrap().contains("v9.8.7") {
        assert!(Instant::now() < deadline, "nobody asked");
        std::thread::sleep(Duration::from_millis(10));
    }
    let kept = fs::read(&file).unwrap();
    assert!(user.run(&["version", "-o", "short"]).err.contains("v9.8.7"));
    assert_eq!(fs::read(&file).unwrap(), kept);
}

#[test]
fn trouble_with_the_question_is_not_the_commands_trouble() {
    let user = User::new().with("CAPSTAN_RELEASES", "https://127.0.0.1:1/releases");
    user.write(".cache/capstan/version-check.json", "{not json");
    assert_eq!(user.run(&["version", "-o", "short"]).only_data(), "v0.1.0\n");
    let user = User::new().with("CAPSTAN_RELEASES", "/nonexistent").with("CAPSTAN_CACHE_DIR", "/dev/null");
    assert_eq!(user.run(&["version", "-o", "short"]).only_data(), "v0.1.0\n");
    let told = user.run(&["version", "--check"]);
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(told.err.contains("/nonexistent"), "{told:?}");
    let told = User::new().run(&["version", "--check"]);
    assert!(told.err.contains("set CAPSTAN_RELEASES"), "{told:?}");
}
