//! Against the real programs, which the first run may have to build; and the build itself against a pretended
//! `go`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "helpers of tests are tests")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use capstan_control_plane::{Binaries, Client, ControlPlane, Error, Options, Progress, Sources};

#[path = "../src/scratch.rs"]
mod scratch;
use scratch::Scratch;

/// Says to [`role`] what to do, in a process started for it.
const ROLE: &str = "CAPSTAN_IT_ROLE";
const ROLE_DIR: &str = "CAPSTAN_IT_DIR";

fn binaries() -> Binaries {
    static BINARIES: OnceLock<Binaries> = OnceLock::new();
    let locate = || {
        let sources = Sources::from_env(|name| std::env::var_os(name));
        Binaries::locate(&sources, &mut |progress| eprintln!("{progress}")).unwrap()
    };
    BINARIES.get_or_init(locate).clone()
}

/// One control plane at a time: several at once are slow on a small machine, and show nothing more.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[track_caller]
fn eventually(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn create(client: &Client, path: &str, object: &str) -> String {
    let response = client.request("POST", path, "application/json", object).unwrap();
    assert_eq!(response.status, 201, "{path}: {}", response.body);
    response.body
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config_map(name: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"kept":"yes"}}}}"#)
}

fn is_there(client: &Client, path: &str) -> bool {
    match client.get(path).unwrap() {
        response if response.status == 200 => true,
        response if response.status == 404 => false,
        response => panic!("{path}: {response:?}"),
    }
}

/// The text of the one field of this name.
fn field<'a>(json: &'a str, name: &str) -> &'a str {
    let start = json.find(&format!("\"{name}\":")).unwrap() + name.len() + 3;
    json[start..].split('"').nth(1).unwrap()
}

fn decode(base64: &str) -> String {
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for character in base64.trim_end_matches('=').chars() {
        bits = bits << 6 | u32::try_from(alphabet.find(character).unwrap()).unwrap();
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xff).unwrap());
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// A client made of nothing but the kubeconfig file.
fn client_of(kubeconfig: &Path) -> Client {
    let text = fs::read_to_string(kubeconfig).unwrap();
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("no {key} in {text}")).to_owned()
    };
    let port = value("server").strip_prefix("https://127.0.0.1:").unwrap().parse().unwrap();
    let pem = |key| decode(&value(key));
    let (authority, certificate) = (pem("certificate-authority-data"), pem("client-certificate-data"));
    Client::new(port, &authority, &certificate, &pem("client-key-data")).unwrap()
}

fn authority_of(plane: &ControlPlane) -> String {
    let line = plane.kubeconfig_text().lines().find(|line| line.contains("certificate-authority-data"));
    line.unwrap().to_owned()
}

/// Processes that mention the directory in their command lines.
fn processes_of(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let number = entry.file_name().to_string_lossy().into_owned();
        // Processes come and go while they are listed.
        let Ok(line) = fs::read(entry.path().join("cmdline")) else {
            continue;
        };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if number.parse::<u32>().is_ok() && line.contains(&*dir.to_string_lossy()) {
            found.push(format!("{number} {line}"));
        }
    }
    found
}

#[test]
fn a_temporary_control_plane_works_and_leaves_nothing() {
    let _alone = alone();
    let scratch = Scratch::new();
    let start = Instant::now();
    let mut plane = ControlPlane::start(Options::temporary(binaries(), scratch.path())).unwrap();
    eprintln!("ready in {:?}", start.elapsed());
    assert!(plane.state_dir().starts_with(scratch.path()));
    assert_eq!(fs::metadata(plane.state_dir()).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(plane.kubeconfig()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(plane.kubeconfig()).unwrap(), plane.kubeconfig_text());

    let client = client_of(plane.kubeconfig());
    assert_eq!(client.get("/readyz").unwrap().body, "ok");
    let version = client.get("/version").unwrap();
    assert!(field(&version.body, "gitVersion").starts_with("v1."), "{}", version.body);
    plane.check().unwrap();

    // A token signed with the service account key is believed.
    let token = create(&client, "/api/v1/namespaces/default/serviceaccounts/default/token", "{}");
    let review = format!(r#"{{"spec":{{"token":"{}"}}}}"#, field(&token, "token"));
    let review = create(&client, "/apis/authentication.k8s.io/v1/tokenreviews", &review);
    assert_eq!(field(&review, "username"), "system:serviceaccount:default:default");

    // The controllers work: what an object owned goes with it, and what is in a namespace goes with that.
    let owner = create(&client, CONFIG_MAPS, &config_map("owner"));
    let reference = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"{}"}}"#,
        field(&owner, "uid")
    );
    let owned = format!(r#"{{"metadata":{{"name":"owned","ownerReferences":[{reference}]}}}}"#);
    create(&client, CONFIG_MAPS, &owned);
    create(&client, "/api/v1/namespaces", r#"{"metadata":{"name":"passing"}}"#);
    for path in [&format!("{CONFIG_MAPS}/owner"), "/api/v1/namespaces/passing"] {
        let response = client.request("DELETE", path, "application/json", "").unwrap();
        assert_eq!(response.status, 200, "{}", response.body);
    }
    let gone = |path: &str| !is_there(&client, path);
    eventually("the owned object is collected", Duration::from_mins(1), || {
        gone(&format!("{CONFIG_MAPS}/owned"))
    });
    eventually("the namespace is deleted", Duration::from_mins(1), || gone("/api/v1/namespaces/passing"));

    // Clients come back to the same place after a restart of the API server.
    create(&client, CONFIG_MAPS, &config_map("before"));
    plane.stop_api_server().unwrap();
    assert!(client.get("/readyz").is_err());
    plane.check().unwrap();
    plane.stop_api_server().unwrap();
    plane.start_api_server().unwrap();
    assert!(is_there(&client, &format!("{CONFIG_MAPS}/before")));
    plane.restart_api_server().unwrap();
    plane.start_api_server().unwrap();
    assert!(is_there(&client, &format!("{CONFIG_MAPS}/before")));

    let dir = plane.state_dir().to_owned();
    assert_ne!(processes_of(&dir), Vec::<String>::new());
    let start = Instant::now();
    plane.stop().unwrap();
    eprintln!("stopped in {:?}", start.elapsed());
    assert!(!dir.exists());
    eventually("no process is left", Duration::from_secs(5), || processes_of(&dir).is_empty());
}

#[test]
fn a_persistent_control_plane_keeps_its_data_and_finds_other_ports() {
    let _alone = alone();
    let scratch = Scratch::new();
    let dir = scratch.path().join("kept");
    let options = || {
        let mut options = Options::persistent(binaries(), &dir);
        options.controller_manager = false;
        options
    };

    let first = ControlPlane::start(options()).unwrap();
    create(first.client(), CONFIG_MAPS, &config_map("kept"));
    // Service accounts need the controller manager; Pods must do without.
    let pod = r#"{"metadata":{"name":"pod"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    create(first.client(), "/api/v1/namespaces/default/pods", pod);
    let refused = ControlPlane::start(options()).unwrap_err();
    assert!(matches!(&refused, Error::StateDirInUse { dir: named } if *named == dir), "{refused}");
    let (authority, url) = (authority_of(&first), first.url());
    first.stop().unwrap();
    assert!(dir.exists());

    let second = ControlPlane::start(options()).unwrap();
    assert_eq!((authority_of(&second), second.url()), (authority.clone(), url.clone()));
    let kept = format!("{CONFIG_MAPS}/kept");
    assert!(is_there(&client_of(second.kubeconfig()), &kept));
    drop(second);

    let squatted: u16 = url.rsplit_once(':').unwrap().1.parse().unwrap();
    let squatter = TcpListener::bind(("127.0.0.1", squatted)).unwrap();
    let third = ControlPlane::start(options()).unwrap();
    assert_ne!(third.url(), url);
    assert_eq!(authority_of(&third), authority);
    assert!(is_there(&client_of(third.kubeconfig()), &kept));
    drop(squatter);
    let (url, ports) = (third.url(), dir.join("ports"));
    drop(third);

    // A port that is taken after it was found free: here, because another of the processes takes it.
    let port = url.rsplit_once(':').unwrap().1;
    fs::write(&ports, format!("etcd {port}\netcd-peer {squatted}\napi-server {port}\n")).unwrap();
    let fourth = ControlPlane::start(options()).unwrap();
    assert_ne!(fourth.url(), url);
    assert!(is_there(&client_of(fourth.kubeconfig()), &kept));
}

#[test]
fn a_start_that_fails_says_why() {
    let _alone = alone();
    let scratch = Scratch::new();
    let mut options = Options::temporary(binaries(), scratch.path());
    options.api_server_flags = vec!["--no-such-flag".to_owned()];
    let error = ControlPlane::start(options).unwrap_err();
    let Error::Exited { program, log, .. } = &error else { panic!("{error}") };
    assert_eq!(*program, "kube-apiserver");
    assert!(log.exists());
    assert!(error.to_string().contains("unknown flag: --no-such-flag"), "{error}");
    let left = || processes_of(scratch.path());
    eventually("no process is left", Duration::from_secs(5), || left().is_empty());
}

#[test]
fn nothing_outlives_a_killed_parent() {
    let _alone = alone();
    let scratch = Scratch::new();
    let dir = scratch.path().join("state of the killed");
    // Built here, if at all: the parent to be killed is to find them ready.
    binaries();
    let mut parent = start_role("hold", &dir);
    eventually("the parent has started its control plane", Duration::from_mins(2), || {
        assert!(parent.try_wait().unwrap().is_none(), "the parent ended");
        dir.with_extension("ready").exists()
    });
    // For each of three programs: itself, its watchdog, and the one that waits for the parent.
    assert_eq!(processes_of(&dir).len(), 9, "{:#?}", processes_of(&dir));

    let pid = parent.id().to_string();
    assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    parent.wait().unwrap();
    let start = Instant::now();
    eventually("no process is left", Duration::from_secs(15), || processes_of(&dir).is_empty());
    eprintln!("all gone {:?} after the parent", start.elapsed());

    // The directory is as good as after an orderly stop.
    let plane = ControlPlane::start(Options::persistent(binaries(), &dir)).unwrap();
    assert!(is_there(plane.client(), &format!("{CONFIG_MAPS}/of-the-killed")));
}

fn start_role(role: &str, dir: &Path) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "role", "--nocapture"]).env(ROLE, role).env(ROLE_DIR, dir);
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// Not a test, but what a test needs a process of its own for.
#[test]
fn role() {
    let Some(role) = std::env::var_os(ROLE) else {
        return;
    };
    let dir = PathBuf::from(std::env::var_os(ROLE_DIR).unwrap());
    if role == "hold" {
        let plane = ControlPlane::start(Options::persistent(binaries(), &dir)).unwrap();
        create(plane.client(), CONFIG_MAPS, &config_map("of-the-killed"));
        fs::write(dir.with_extension("ready"), "").unwrap();
        // To be killed; if the test is gone, not to stay for ever.
        thread::sleep(Duration::from_mins(5));
    } else {
        Pretended { dir }.locate(&mut |_| {}).unwrap();
    }
}

/// A `go` that builds by writing its output's name, as soon as the file `go-on` is there.
struct Pretended {
    dir: PathBuf,
}

impl Pretended {
    fn install(dir: &Path) -> Self {
        let script = format!(
            r#"#!/bin/sh
echo started >> '{dir}/runs'
until [ -e '{dir}/go-on' ]; do sleep 0.02; done
if [ -e '{dir}/fail' ]; then echo some/package >&2; echo 'cannot find module' >&2; exit 1; fi
while [ "$1" != -o ]; do shift; done
echo 'echo pretended' > "$2"
chmod +x "$2"
"#,
            dir = dir.display()
        );
        fs::create_dir(dir.join("bin")).unwrap();
        fs::write(dir.join("bin/go"), script).unwrap();
        fs::set_permissions(dir.join("bin/go"), fs::Permissions::from_mode(0o755)).unwrap();
        Self { dir: dir.to_owned() }
    }

    fn locate(&self, progress: &mut dyn FnMut(Progress)) -> Result<Binaries, Error> {
        let path = std::env::join_paths([self.dir.join("bin"), "/usr/bin".into(), "/bin".into()]).unwrap();
        let cache_dir = Some(self.dir.join("cache"));
        Binaries::locate(&Sources { kubebuilder_assets: None, path: Some(path), cache_dir }, progress)
    }

    fn go_on(&self) {
        fs::write(self.dir.join("go-on"), "").unwrap();
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.dir.join("runs")).map_or(0, |runs| runs.lines().count())
    }
}

#[test]
fn of_two_that_build_at_once_one_waits_for_the_other() {
    let scratch = Scratch::new();
    let pretended = Pretended::install(scratch.path());
    let (send_started, started) = mpsc::channel();
    let (first, second, said) = thread::scope(|scope| {
        let first = scope.spawn(|| {
            let mut said = Vec::new();
            let found = pretended.locate(&mut |progress| {
                if matches!(progress, Progress::Started { .. }) {
                    send_started.send(()).unwrap();
                }
                said.push(progress.to_string());
            });
            (found, said)
        });
        started.recv_timeout(Duration::from_secs(30)).unwrap();
        let mut waited = false;
        let second = pretended.locate(&mut |progress| {
            assert!(matches!(progress, Progress::Waiting { .. }), "{progress}");
            waited = true;
            pretended.go_on();
        });
        assert!(waited);
        let (first, said) = first.join().unwrap();
        (first.unwrap(), second.unwrap(), said)
    });
    assert_eq!(first, second);
    assert_eq!(pretended.runs(), 3);
    assert!(said[0].starts_with("building etcd, kube-apiserver, kube-controller-manager ("), "{said:?}");
    assert_eq!(said.len(), 5, "{said:?}");
    let output = Command::new("/bin/sh").arg(&first.kube_controller_manager).output().unwrap();
    assert_eq!(output.stdout, b"pretended\n");

    let again = pretended.locate(&mut |progress| panic!("{progress}")).unwrap();
    assert_eq!(again, first);
    assert_eq!(pretended.runs(), 3);
}

#[test]
fn a_killed_build_leaves_no_process_and_nothing_broken() {
    let scratch = Scratch::new();
    let pretended = Pretended::install(scratch.path());
    let mut builder = start_role("build", scratch.path());
    eventually("the build has started", Duration::from_secs(30), || pretended.runs() == 1);
    builder.kill().unwrap();
    builder.wait().unwrap();
    eventually("no process is left", Duration::from_secs(10), || processes_of(scratch.path()).is_empty());
    pretended.go_on();
    pretended.locate(&mut |_| {}).unwrap();
    assert_eq!(pretended.runs(), 4);
}

#[test]
fn a_failed_build_says_what_go_said() {
    let scratch = Scratch::new();
    let pretended = Pretended::install(scratch.path());
    fs::write(scratch.path().join("fail"), "").unwrap();
    pretended.go_on();
    let error = pretended.locate(&mut |_| {}).unwrap_err().to_string();
    for part in ["etcd", "go.etcd.io/etcd/server/v3 v3.6.5", "exit code 1", "KUBEBUILDER_ASSETS"] {
        assert!(error.contains(part), "{part} not in: {error}");
    }
    assert!(error.ends_with("\ncannot find module"), "{error}");
}

#[test]
fn without_go_nothing_is_built() {
    let scratch = Scratch::new();
    let sources =
        Sources { kubebuilder_assets: None, path: None, cache_dir: Some(scratch.path().join("cache")) };
    let error = Binaries::locate(&sources, &mut |_| {}).unwrap_err();
    assert!(matches!(error, Error::GoMissing { .. }), "{error}");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}
