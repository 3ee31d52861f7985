//! A kubeconfig from a Secret brings nothing of the manager's machine with it and gives nothing of itself away, and to
//! make a client of it does not panic. The commands find the same server in a file with the same text.

#![no_main]

use std::{env, fs, path::PathBuf, process, sync::LazyLock};

use capstan_fuzz::{CANARY, json};
use capstan_runtime::client::{ApiServer, ClientError, ClientOptions, connect_workload, find_config};
use kube::Config;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde_json::Value;
use tokio::{
    runtime::{Builder, Runtime},
    task::yield_now,
};

/// Private to its crate: compiled here by its path.
#[allow(dead_code, unreachable_pub)]
#[path = "../../crates/cluster/src/connection/access.rs"]
mod access;

const CONTEXT: &[&str] = &["cluster", "user", "namespace"];
const CLUSTER: &[&str] = &[
    "server",
    "certificate-authority",
    "certificate-authority-data",
    "insecure-skip-tls-verify",
    "tls-server-name",
    "proxy-url",
    "disable-compression",
];
const USER: &[&str] = &[
    "token",
    "tokenFile",
    "username",
    "password",
    "client-certificate",
    "client-certificate-data",
    "client-key",
    "client-key-data",
    "exec",
    "auth-provider",
    "as",
    "as-groups",
    "as-uid",
    "as-user-extra",
];

static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let others = [
        "current-context",
        "contexts",
        "clusters",
        "users",
        "name",
        "context",
        "cluster",
        "user",
        "extensions",
    ];
    [CONTEXT, CLUSTER, USER, &others].concat().into_iter().map(str::to_owned).collect()
});

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().build().expect("a runtime"));

/// A file of this process's own.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| env::temp_dir().join(format!("capstan-fuzz-kubeconfig-{}", process::id())));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    json::mutate(data, size, max_size, seed, &KEYS, |value, rng| {
        // What counts is few of all that there is, and changes as often.
        let places = [("contexts", CONTEXT), ("clusters", CLUSTER), ("users", USER)];
        let (list, keys) = places[rng.usize(..places.len())];
        let pointer = format!("/{list}/0/{}", list.trim_end_matches('s'));
        if let Some(Value::Object(members)) = value.pointer_mut(&pointer) {
            members.insert(keys[rng.usize(..keys.len())].to_owned(), json::any(rng));
        }
    })
});

fuzz_target!(|text: &[u8]| {
    let read = access::read(text);
    match &read {
        Ok(config) => check_config(config),
        Err(words) => {
            assert!(!words.is_empty() && words.len() < 500, "{words}");
            assert!(!words.contains(CANARY), "{words}");
        }
    }
    // A kubeconfig of the user's own may name any file.
    if std::str::from_utf8(text).is_ok_and(|text| !text.contains("/dev") && !text.contains("/proc")) {
        let found = read_file(text);
        if let (Ok(ours), Ok(found)) = (&read, &found) {
            assert_eq!(found.config.cluster_url, ours.cluster_url);
            assert_eq!(found.config.root_cert, ours.root_cert);
        }
    }
});

/// As the commands read it.
fn read_file(text: &[u8]) -> Result<ApiServer, ClientError> {
    fs::write(&*FILE, text).expect("a file to write");
    let options = ClientOptions { kubeconfig: Some(FILE.clone()), ..ClientOptions::default() };
    RUNTIME.block_on(find_config(&options))
}

fn check_config(config: &Config) {
    let user = &config.auth_info;
    assert!(user.exec.is_none() && user.auth_provider.is_none(), "it runs a program");
    for path in [&user.token_file, &user.client_certificate, &user.client_key] {
        assert!(path.is_none(), "it reads a file");
    }
    assert!(config.root_cert_file.is_none() && config.headers.is_empty());
    assert!(matches!(config.cluster_url.scheme_str(), Some("http" | "https")));
    assert!(config.cluster_url.host().is_some_and(|host| !host.is_empty()), "{}", config.cluster_url);

    let address = access::address(config);
    let authority = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
    let is_secret = authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(CANARY));
    let is_shown = config.cluster_url.path().contains(CANARY)
        || config.cluster_url.host().unwrap_or_default().contains(CANARY);
    assert!(!is_secret || is_shown || !address.contains(CANARY), "{address}");

    // To load the authorities that the machine trusts takes longer than all else here.
    let mut config = config.clone();
    config.root_cert.get_or_insert_default();
    RUNTIME.block_on(async {
        // An error may quote the text: the manager replaces its words.
        drop(connect_workload(&config, &ClientOptions::default()));
        // What a client leaves behind ends with it.
        yield_now().await;
    });
}
