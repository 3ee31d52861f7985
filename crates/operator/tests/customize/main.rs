//! What becomes of a release's objects, rule by rule.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests are tests")]

mod deployments;
mod examples;
mod flags;
mod laws;

use capstan_api::operator::ProviderSpec;
use capstan_manifest::yaml;
use capstan_operator::customize::customize;
use serde_json::{Value, json};

/// The Cluster API Provider AWS of today: one container.
const AWS: &str = include_str!("fixtures/aws.yaml");
/// The Cluster API Provider AWS when the specification was written: a sidecar, and webhooks that instances share.
const AWS_V0_6: &str = include_str!("fixtures/aws-v0.6.0.yaml");
/// Cluster API's core, with an init container.
const CORE: &str = include_str!("fixtures/core.yaml");

fn objects(fixture: &str) -> Vec<Value> {
    yaml::read(fixture).unwrap().into_iter().map(|document| document.value).collect()
}

/// A spec that is written as YAML.
fn spec(text: &str) -> ProviderSpec {
    serde_json::from_value(yaml::read_one(text).unwrap()).unwrap()
}

fn customized(fixture: &str, text: &str) -> Vec<Value> {
    let mut objects = objects(fixture);
    customize(&mut objects, &spec(text)).unwrap_or_else(|error| panic!("{text}: {error}"));
    objects
}

/// Why objects cannot be changed; they are as they were then.
fn refused(before: &[Value], text: &str) -> String {
    let mut objects = before.to_vec();
    let error = customize(&mut objects, &spec(text)).expect_err(text);
    assert_eq!(objects, before, "{text}");
    error.to_string()
}

/// The Deployment of a namespace.
fn deployment<'a>(objects: &'a [Value], namespace: &str) -> &'a Value {
    let is_wanted = |it: &&Value| it["kind"] == "Deployment" && it["metadata"]["namespace"] == namespace;
    objects.iter().find(is_wanted).unwrap()
}

/// A container of the only Deployment outside the namespace of shared objects.
fn container<'a>(objects: &'a [Value], name: &str) -> &'a Value {
    let is_own =
        |it: &&Value| it["kind"] == "Deployment" && it["metadata"]["namespace"] != "capi-webhook-system";
    let pod = &objects.iter().find(is_own).unwrap()["spec"]["template"]["spec"];
    let lists = ["containers", "initContainers"].into_iter().filter_map(|list| pod[list].as_array());
    lists.flatten().find(|it| it["name"] == name).unwrap()
}

/// The args of a container, one per line.
fn args(objects: &[Value], name: &str) -> String {
    let args = container(objects, name)["args"].as_array().cloned().unwrap_or_default();
    args.iter().map(|arg| arg.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_spec_that_asks_for_nothing_changes_nothing() {
    for text in [
        "{}",
        "{version: v2.7.1, secretName: aws-variables, paused: true, fetchConfig: {url: https://example.com}}",
        "{manager: {}, deployment: {}}",
        "{manager: {gracefulShutDown: 10s, cacheNamespace: x, metrics: {}, health: {}, webhook: {}, leaderElection: {}}}",
        "{manager: {leaderElection: {resourceLock: leases}, metricsAddress: '', profilerAddress: '', verbosity: null}}",
        "{manager: {featureGates: {}, debug: false}, deployment: {containers: []}}",
        "{deployment: {containers: [{name: manager, args: {}, env: [], image: ''}]}}",
        "{deployment: {containers: [{name: manager, args: {namespace: x, --namespace: y, -namespace: z}, image: {tag: ''}}]}}",
    ] {
        for fixture in [AWS, CORE, AWS_V0_6] {
            assert_eq!(customized(fixture, text), objects(fixture), "{text}");
        }
        // Where nothing is asked for, there is no need for a Deployment either.
        if !text.contains("name: manager") {
            let mut none = vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})];
            customize(&mut none, &spec(text)).unwrap();
        }
    }
}
