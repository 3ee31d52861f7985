//! Whatever happens, nothing is left behind, and what cannot be checked is said.

use std::time::Duration;

use capstan_api::contract::ContractVersion;
use capstan_conformance::{
    Outcome,
    dynamic::{Error, Options, Target, check},
};
use capstan_runtime::install::install_crds;
use capstan_testkit::{
    Story, generic,
    wait::{self, LIMIT},
};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{Api, api::ListParams};
use serde_json::json;

use crate::{
    options, target, text,
    twin::{Fault, Nature, Twin},
};

const KIND: &str = "SweptCluster";

async fn story(name: &str) -> Story {
    let story = Story::begin(name).await;
    let crd = generic::crd(KIND, &[("v1beta2", "v1beta2")]);
    install_crds(&story.client, &[crd], "cleanup").await.unwrap();
    story
}

fn twin(story: &Story, fault: Option<Fault>) -> Twin {
    let nature =
        Nature { kind: KIND, contract: ContractVersion::V1Beta2, clusters: "v1beta2", waits: false, fault };
    Twin::start(&story.client, &story.namespace, nature)
}

async fn left(story: &Story) -> usize {
    let clusters = story.clusters().list(&ListParams::default()).await.unwrap().items.len();
    clusters + story.generics(KIND).list(&ListParams::default()).await.unwrap().items.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_provider_nothing_is_claimed() {
    let story = story("swept-nobody").await;
    let options = Options { timeout: Duration::from_secs(3), ..options(&story.namespace) };
    let options = Options { quiet_time: Duration::from_millis(300), ..options };
    let report = check(story.client.clone(), target(KIND, &json!({})), options, |_| {}).await.unwrap();
    for finding in &report.findings {
        let expected = match finding.rule.id {
            "IC4" => {
                matches!(&finding.outcome, Outcome::Failed { seen, .. } if seen.contains("wrote nothing at all"))
            }
            // The fake core's own writes were accepted.
            "IC9" => finding.outcome == Outcome::Passed,
            _ => !matches!(finding.outcome, Outcome::Passed | Outcome::Failed { .. }),
        };
        assert!(expected, "{} {:?}\n{}", finding.rule.id, finding.outcome, text(&report));
    }
    assert_eq!(left(&story).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_never_releases_is_removed_and_told() {
    let story = story("swept-stuck").await;
    let twin = twin(&story, Some(Fault::NeverReleases));
    let options = Options { only: vec!["IC10".to_owned()], ..options(&story.namespace) };
    let options = Options { timeout: Duration::from_secs(8), ..options };
    let report = check(story.client.clone(), target(KIND, &json!({})), options, |_| {}).await.unwrap();
    assert!(report.is_failed());
    assert!(report.notes.iter().any(|note| note.contains("removed by force")), "{}", text(&report));
    assert_eq!(left(&story).await, 0);
    twin.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_stopped_or_dropped_leaves_nothing() {
    let story = story("swept-stopped").await;
    let twin = twin(&story, None);
    let stopped = options(&story.namespace);
    let stop = stopped.stop.clone();
    let progress = move |text: &str| {
        if text.contains("has provisioned") {
            stop.cancel();
        }
    };
    let error = check(story.client.clone(), target(KIND, &json!({})), stopped, progress).await.unwrap_err();
    assert!(matches!(error, Error::Stopped), "{error}");
    assert_eq!(left(&story).await, 0);

    // A run may be a task of its own, too.
    let dropped = check(story.client.clone(), target(KIND, &json!({})), options(&story.namespace), |_| {});
    let dropped = tokio::spawn(tokio::time::timeout(Duration::from_secs(1), dropped));
    assert!(dropped.await.unwrap().is_err());
    wait::until_gone(&story.generics(KIND), "no-owner", LIMIT).await;
    wait::until_gone(&story.generics(KIND), "lifecycle", LIMIT).await;
    wait::until_gone(&story.clusters(), "lifecycle", LIMIT).await;
    twin.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_manifest_brings_along_comes_first_and_goes_last() {
    let story = story("swept-extras").await;
    let namespace = format!("{}-new", story.namespace);
    let mut target = target(KIND, &json!({}));
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"}, "stringData": {"a": "b"},
    });
    target.documents.push(secret);
    let secrets: Api<Secret> = Api::namespaced(story.client.clone(), &namespace);
    let options = Options { timeout: Duration::from_secs(3), ..options(&namespace) };
    let options = Options { quiet_time: Duration::from_millis(100), only: vec!["IC4".to_owned()], ..options };
    let check = check(story.client.clone(), target, options, |_| {});
    let seen = wait::until(&secrets, "credentials", "created", LIMIT, |it| it.is_some());
    let (report, _) = tokio::join!(check, seen);
    report.unwrap();
    wait::until_gone(&secrets, "credentials", LIMIT).await;
    let namespaces: Api<Namespace> = Api::all(story.client.clone());
    wait::until_gone(&namespaces, &namespace, LIMIT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_tested_is_refused_with_the_reason() {
    let story = story("swept-refused").await;
    let odd = |change: &dyn Fn(&mut Target, &mut Options)| {
        let (mut target, mut options) = (target(KIND, &json!({})), options(&story.namespace));
        change(&mut target, &mut options);
        let client = story.client.clone();
        async move { check(client, target, options, |_| {}).await.unwrap_err().to_string() }
    };
    for (error, expected) in [
        (odd(&|_, options| options.only = vec!["IC99".to_owned()]).await, "there is no rule IC99"),
        (odd(&|target, _| target.version = Some("v9".to_owned())).await, "names version v9"),
        (odd(&|target, _| target.group = Some("g.io".to_owned())).await, "0 documents of kind SweptCluster"),
        (odd(&|target, _| target.documents.clear()).await, "0 documents of kind SweptCluster"),
        (
            odd(&|target, _| target.documents[0]["apiVersion"] = json!("other.io/v1")).await,
            "no CustomResourceDefinition sweptclusters.other.io",
        ),
    ] {
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_have_under_the_same_names_is_spared() {
    let story = story("swept-others").await;
    let theirs = story.create_cluster("lifecycle", KIND, "lifecycle").await;
    story.create_generic(KIND, "lifecycle", json!({})).await;
    let options = Options { only: vec!["IC4".to_owned()], ..options(&story.namespace) };
    let error = check(story.client.clone(), target(KIND, &json!({})), options, |_| {}).await.unwrap_err();
    assert!(error.to_string().contains("lifecycle"), "{error}");
    assert_eq!(story.clusters().get("lifecycle").await.unwrap().metadata.uid, theirs.metadata.uid);
    assert_eq!(left(&story).await, 2);
}
