//! `capstan convert` beside upstream's `clusterctl convert`, and beside upstream's conversion webhook.

mod differences;
mod documents;

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use capstan_manifest::yaml;
use capstan_runtime::install::install_crds;
use capstan_testkit::{Plane, Story, wait::LIMIT};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, Config};
use serde_json::{Value, json};

use self::{
    differences::{BESIDE_COMMAND, BESIDE_WEBHOOK, Difference, level},
    documents::{Case, generate},
};
use crate::management::{folder, start_upstreams_core};

/// What people have in their files.
const WRITTEN: [&str; 5] = [
    include_str!("convert/clusters.yaml"),
    include_str!("convert/classes.yaml"),
    include_str!("convert/machines.yaml"),
    include_str!("convert/workers.yaml"),
    include_str!("convert/others.yaml"),
];

fn module() -> PathBuf {
    let module = fs::read_to_string(folder("CAPSTAN_UPSTREAM_DIR").join("cluster-api.dir")).unwrap();
    PathBuf::from(module.trim())
}

fn cases() -> Vec<Case> {
    let written = WRITTEN.iter().flat_map(|file| documents_of(file)).map(|text| {
        let document = yaml::read_one(text).unwrap();
        let name = format!("{} {}", document["kind"], document["metadata"]["name"]);
        Case { name, document }
    });
    let cases: Vec<_> = written.chain(generate(&module())).collect();
    assert!(cases.len() >= 120, "{} cases", cases.len());
    cases
}

fn documents_of(text: &str) -> Vec<&str> {
    text.split("---\n").filter(|text| !text.trim().is_empty()).collect()
}

/// Sends documents through a binary that is to take them.
fn convert(binary: &Path, input: &str) -> String {
    let output = run(binary, input);
    assert!(output.status.success(), "{}: {}", binary.display(), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn run(binary: &Path, input: &str) -> Output {
    let home = std::env::temp_dir().join("capstan-compat-convert");
    fs::create_dir_all(&home).unwrap();
    let mut child = Command::new(binary)
        .arg("convert")
        .envs([("CLUSTERCTL_DISABLE_VERSIONCHECK", "true"), ("NO_COLOR", "1"), ("GOPROXY", "off")])
        .env("HOME", &home)
        .env("XDG_CONFIG_HOME", &home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}

/// Holds both sides against each other, and every difference in the table against what was seen.
#[derive(Default)]
struct Tally {
    equal: usize,
    levelled: usize,
    seen: BTreeSet<&'static str>,
    wrong: Vec<String>,
}

impl Tally {
    fn compare(&mut self, differences: &'static [Difference], case: &Case, theirs: &str, ours: &str) {
        if theirs == ours {
            self.equal += 1;
            return;
        }
        let read = |text| yaml::read_one(text).unwrap();
        let (left, right, seen) = level(differences, &case.document, read(theirs), read(ours));
        if yaml::to_string(&left) == yaml::to_string(&right) {
            self.levelled += 1;
            self.seen.extend(seen);
        } else {
            let input = yaml::to_string(&case.document);
            self.wrong.push(format!("# {}\n{input}# upstream\n{theirs}# ours\n{ours}", case.name));
        }
    }

    #[expect(clippy::print_stdout, reason = "the count is what a reader of the test's output looks for")]
    fn finish(self, differences: &'static [Difference], beside: &str) {
        println!(
            "{} documents beside {beside}: {} equal byte by byte, {} but for intended differences ({:?}), {} wrong",
            self.equal + self.levelled + self.wrong.len(),
            self.equal,
            self.levelled,
            self.seen,
            self.wrong.len()
        );
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
        for difference in differences {
            assert!(self.seen.contains(difference.name), "{} is none: {}", difference.name, difference.why);
        }
    }
}

#[test]
#[ignore = "needs upstream's clusterctl: make test-compat"]
fn convert_is_upstreams_command_where_that_loses_nothing() {
    let cases = cases();
    let documents: Vec<_> = cases.iter().map(|case| case.document.clone()).collect();
    let input = yaml::to_multi_document(&documents);
    let theirs = convert(&folder("CAPSTAN_UPSTREAM_DIR").join("clusterctl"), &input);
    let ours = convert(Path::new(env!("CARGO_BIN_EXE_capstan")), &input);
    let (theirs, ours) = (documents_of(&theirs), documents_of(&ours));
    assert_eq!((theirs.len(), ours.len()), (cases.len(), cases.len()));
    let mut tally = Tally::default();
    for (case, (theirs, ours)) in cases.iter().zip(theirs.into_iter().zip(ours)) {
        tally.compare(BESIDE_COMMAND, case, theirs, ours);
    }
    tally.finish(BESIDE_COMMAND, "clusterctl convert");
}

#[test]
#[ignore = "needs upstream's clusterctl: make test-compat"]
fn what_upstreams_command_refuses_is_refused_or_done_better() {
    let machine = "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Machine\nmetadata:\n  name: x\n";
    let refused = [
        "kind: Cluster\n".to_owned(),
        "apiVersion: cluster.x-k8s.io/v1beta1\n".to_owned(),
        "- a\n".to_owned(),
        "a: [\n".to_owned(),
        format!("{machine}spec:\n  version: 1.30\n"),
        format!("{machine}spec:\n  nodeDrainTimeout: 10\n"),
        format!("{machine}spec:\n  nodeDrainTimeout: soon\n"),
        format!("{machine}spec: []\n"),
        format!("{machine}status:\n  observedGeneration: many\n"),
        format!("{machine}status:\n  lastUpdated: today\n"),
    ];
    let better = [
        format!("# Nothing but a comment\n---\n{machine}"),
        "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Flotilla\n".to_owned(),
        "apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineSet\nspec:\n  replicas: ${COUNT}\n".to_owned(),
    ];
    let cases = refused.iter().map(|input| (input, false)).chain(better.iter().map(|input| (input, true)));
    for (input, is_taken) in cases {
        let theirs = run(&folder("CAPSTAN_UPSTREAM_DIR").join("clusterctl"), input);
        let ours = run(Path::new(env!("CARGO_BIN_EXE_capstan")), input);
        let said = String::from_utf8_lossy(&ours.stderr);
        assert_eq!((theirs.status.success(), ours.status.success()), (false, is_taken), "{input}{said}");
        assert!(is_taken || ours.stdout.is_empty() && said.contains("standard input"), "{input}{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs upstream's core manager: make test-compat"]
async fn convert_is_upstreams_webhook() {
    let plane = Plane::start_bare().await;
    let story = Story::begin_on(Arc::clone(&plane), "convert").await;
    let (mut core, webhook) = start_core(&plane, &story).await;
    let cases: Vec<_> = cases()
        .into_iter()
        .filter(|case| case.document["apiVersion"] == "cluster.x-k8s.io/v1beta1")
        .collect();
    let mut tally = Tally::default();
    let documents: Vec<_> = cases.iter().map(|case| case.document.clone()).collect();
    let ours = convert(Path::new(env!("CARGO_BIN_EXE_capstan")), &yaml::to_multi_document(&documents));
    let theirs = review(&webhook, documents).await;
    assert!(core.try_wait().unwrap().is_none(), "upstream's core manager has ended");
    for (case, (theirs, ours)) in cases.iter().zip(theirs.iter().zip(documents_of(&ours))) {
        tally.compare(BESIDE_WEBHOOK, case, &yaml::to_string(theirs), ours);
    }
    tally.finish(BESIDE_WEBHOOK, "upstream's webhook");
    core.kill().await.unwrap();
}

/// Upstream's core manager, and a client of its webhooks.
async fn start_core(plane: &Plane, story: &Story) -> (tokio::process::Child, Client) {
    let mut crds = Vec::new();
    for entry in fs::read_dir(module().join("core/config/crd/bases")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let mut crd: CustomResourceDefinition = serde_saphyr::from_str(&text).unwrap();
        crd.spec.conversion = None;
        crds.push(crd);
    }
    install_crds(&story.client, &crds, "compat").await.unwrap();
    let (core, port) = start_upstreams_core(plane, &story.namespace);
    let mut config = Config::new(format!("https://127.0.0.1:{port}").parse().unwrap());
    config.accept_invalid_certs = true;
    (core, Client::try_from(config).unwrap())
}

/// What the webhook makes of documents, once it answers.
async fn review(webhook: &Client, documents: Vec<Value>) -> Vec<Value> {
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {"uid": "1", "desiredAPIVersion": "cluster.x-k8s.io/v1beta2", "objects": documents},
    });
    let body = serde_json::to_vec(&review).unwrap();
    // Nothing tells when a foreign process listens, so it is asked until it answers.
    let deadline = Instant::now() + LIMIT;
    let answer = loop {
        let request = http::Request::post("/convert").header("content-type", "application/json");
        match webhook.request::<Value>(request.body(body.clone()).unwrap()).await {
            Ok(answer) => break answer,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(answer["response"]["result"]["status"], "Success", "{}", answer["response"]["result"]);
    answer["response"]["convertedObjects"].as_array().unwrap().clone()
}
