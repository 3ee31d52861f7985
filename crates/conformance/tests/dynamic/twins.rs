//! For every rule there is a provider that breaks it, and only the rules that it breaks are reported.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use capstan_api::contract::ContractVersion;
use capstan_conformance::{
    Report,
    dynamic::{Options, check, rules},
};
use capstan_runtime::install::install_crds;
use capstan_testkit::{Plane, Story, generic};
use futures::{StreamExt, stream};
use serde_json::json;
use tokio::sync::{Mutex, OnceCell};

use crate::{
    broken, kept, options, target, text,
    twin::{Fault, Nature, Twin},
};

/// Faults that upset everything that comes after them: only the rule that they break is looked at.
const SPREADING: &[(Fault, &str)] = &[(Fault::ActsWithoutOwner, "G11"), (Fault::DropsOwner, "IC9")];

/// Every fault, and the rules that it breaks.
const FAULTS: &[(Fault, &[&str])] = &[
    // It takes longest and begins first.
    (Fault::NeverReleases, &["G13", "G14", "IC10", "IC13"]),
    (Fault::ActsWithoutOwner, &["G11"]),
    (Fault::WantsControllerOwner, &["G12"]),
    (Fault::RefusesControllerOwner, &["G12"]),
    (Fault::IgnoresClusterPause, &["G13", "IC15"]),
    (Fault::IgnoresAnnotationPause, &["G13", "IC15"]),
    (Fault::DeletesWhilePaused, &["G13"]),
    (Fault::StuckAfterPause, &["G13"]),
    (Fault::HidesPause, &["IC15"]),
    (Fault::ShowsPauseForEver, &["IC15"]),
    (Fault::HasNoFinalizer, &["G14"]),
    (Fault::AddsFinalizerLate, &["G14"]),
    (Fault::KeepsOrphans, &["G14"]),
    (Fault::WritesOddTimes, &["G15"]),
    (Fault::WritesOddStatus, &["G15"]),
    (Fault::WritesFailureAsNumber, &["G20"]),
    (Fault::SetsHalfAnEndpoint, &["IC2"]),
    (Fault::SetsEndpointLate, &["IC2"]),
    (Fault::DoesNotWaitForEndpoint, &["IC3"]),
    (Fault::NeverProvisions, &["IC4"]),
    (Fault::ProvisionsInText, &["IC4"]),
    (Fault::SpeaksAnotherContract, &["IC4"]),
    (Fault::Flaps, &["IC5"]),
    (Fault::ShapesDomainsWrong, &["IC6"]),
    (Fault::HasNoReady, &["IC7"]),
    (Fault::DropsReadyOnDeletion, &["IC7"]),
    (Fault::WritesAnnotatedExternal, &["IC8"]),
    (Fault::WritesLabelledExternal, &["IC8"]),
    (Fault::DropsLabel, &["IC9"]),
    (Fault::DropsOwner, &["IC9"]),
    (Fault::ReportsOnlyOnce, &["IC12"]),
    (Fault::MovesWithoutStatus, &["IC12"]),
    (Fault::ForgetsOnRestart, &["IC13"]),
    (Fault::BeatsItsHeart, &["IC14"]),
];

const TWIN: Nature = Nature {
    kind: "TwinCluster",
    contract: ContractVersion::V1Beta2,
    clusters: "v1beta2",
    waits: false,
    fault: None,
};

/// Puts a twin to the test.
async fn report_on(name: &str, nature: Nature, adjust: impl FnOnce(&mut Options)) -> Report {
    static KINDS: OnceCell<()> = OnceCell::const_new();
    let story = Story::begin(name).await;
    let install = async || {
        let crds = [
            generic::crd("TwinCluster", &[("v1beta2", "v1beta2")]),
            generic::crd("OldTwinCluster", &[("v1beta1", "v1beta2")]),
        ];
        install_crds(&story.client, &crds, "twins").await.unwrap();
    };
    KINDS.get_or_init(install).await;
    report_in(&story, nature, adjust).await
}

async fn report_in(story: &Story, nature: Nature, adjust: impl FnOnce(&mut Options)) -> Report {
    let start = {
        let (client, namespace) = (story.client.clone(), story.namespace.clone());
        move || Twin::start(&client, &namespace, nature)
    };
    let twin = Arc::new(Mutex::new(Some(start())));
    let restart = {
        let twin = Arc::clone(&twin);
        move || {
            let (twin, start) = (Arc::clone(&twin), start.clone());
            let restarted = async move {
                let mut twin = twin.lock().await;
                twin.take().ok_or("there is no twin")?.stop().await;
                *twin = Some(start());
                Ok(())
            };
            Box::pin(restarted) as futures::future::BoxFuture<'static, Result<(), String>>
        }
    };
    let mut options = Options { restart: Some(Arc::new(restart)), ..options(&story.namespace) };
    adjust(&mut options);
    let report = check(story.client.clone(), target(nature.kind, &json!({})), options, |_| {}).await.unwrap();
    let left = story.generics(nature.kind).list(&kube::api::ListParams::default()).await.unwrap();
    assert!(left.items.is_empty(), "{} objects are left of {nature:?}", left.items.len());
    twin.lock().await.take().unwrap().stop().await;
    report
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_provider_keeps_every_rule() {
    let report = report_on("twin-good", TWIN, |_| {}).await;
    assert_eq!(broken(&report), BTreeSet::new(), "{}", text(&report));
    let expected: BTreeSet<_> =
        rules::ALL.iter().map(|rule| rule.id).filter(|id| !["IC3", "G20"].contains(id)).collect();
    assert_eq!(kept(&report), expected, "{}", text(&report));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_provider_of_the_old_contract_keeps_every_rule() {
    let nature = Nature { kind: "OldTwinCluster", contract: ContractVersion::V1Beta1, ..TWIN };
    let report = report_on("twin-old", nature, |_| {}).await;
    assert_eq!(broken(&report), BTreeSet::new(), "{}", text(&report));
    assert!(report.notes[0].contains("contract v1beta1"), "{}", text(&report));
    assert!(kept(&report).is_superset(&["IC4", "IC6", "IC12", "IC13"].into()), "{}", text(&report));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_provider_may_wait_for_the_clusters_endpoint() {
    let report = report_on("twin-waits", Nature { waits: true, ..TWIN }, |_| {}).await;
    assert_eq!(broken(&report), BTreeSet::new(), "{}", text(&report));
    assert!(kept(&report).contains("IC3"), "{}", text(&report));
    assert!(!kept(&report).contains("IC2"), "{}", text(&report));
}

/// A management cluster that was not upgraded yet.
#[tokio::test(flavor = "multi_thread")]
async fn clusters_may_be_served_in_their_old_version_only() {
    let plane = Plane::start().await;
    let story = Story::begin_on(plane, "twin-v1beta1").await;
    let mut clusters = generic::core_crd("Cluster");
    clusters.spec.versions[0].name = "v1beta1".to_owned();
    let kinds = [clusters, generic::crd("TwinCluster", &[("v1beta2", "v1beta2")])];
    install_crds(&story.client, &kinds, "twins").await.unwrap();
    let report = report_in(&story, Nature { clusters: "v1beta1", ..TWIN }, |_| {}).await;
    assert_eq!(broken(&report), BTreeSet::new(), "{}", text(&report));
    assert!(kept(&report).is_superset(&["G12", "G13", "IC4", "IC10"].into()), "{}", text(&report));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_rules_that_were_asked_for_are_reported() {
    let report = report_on("twin-only", TWIN, |options| options.only = vec!["IC12".to_owned()]).await;
    let ids: Vec<_> = report.findings.iter().map(|finding| finding.rule.id).collect();
    assert_eq!(ids, ["IC12"], "{}", text(&report));
}

/// What the lifecycle of one InfraCluster shows, whatever else is played.
const LIFECYCLE: &[&str] =
    &["G12", "G15", "G20", "IC2", "IC3", "IC4", "IC5", "IC6", "IC7", "IC9", "IC10", "IC14"];

/// How long a step of a broken twin may take: most of them use all of it.
const QUICK: Duration = Duration::from_secs(6);
/// Longer than any step takes a provider that keeps to the contract, however busy the machine is.
const PATIENT: Duration = Duration::from_secs(40);

/// Puts one twin to the test.
async fn judge(fault: Fault, expected: &[&str], full: bool, adjust: impl FnOnce(&mut Options)) -> Report {
    let name = format!("twin-{}", format!("{fault:?}").to_lowercase());
    let nature = Nature { fault: Some(fault), ..TWIN };
    let spreading = SPREADING.iter().find(|(it, _)| *it == fault);
    let only: Vec<_> = match spreading {
        Some((_, id)) => vec![*id],
        None if full => Vec::new(),
        None => LIFECYCLE.iter().chain(expected).copied().collect(),
    };
    let only = only.into_iter().map(str::to_owned).collect();
    report_on(&name, nature, |options| {
        options.only = only;
        adjust(options);
    })
    .await
}

/// Puts all twins to the test; `full` checks all rules on each of them.
#[expect(clippy::print_stdout, reason = "the table of faults and rules is worth reading")]
async fn judge_the_family(full: bool) {
    let began = std::time::Instant::now();
    let judged = stream::iter(FAULTS).map(async |(fault, expected)| {
        (fault, expected, judge(*fault, expected, full, |it| it.timeout = QUICK).await)
    });
    let judged: Vec<_> = judged.buffer_unordered(10).collect().await;
    let mut wrong = Vec::new();
    for (fault, expected, report) in &judged {
        let expected_ids: BTreeSet<_> = expected.iter().copied().collect();
        let mut found = broken(report);
        if found != expected_ids {
            // Ten at a time on a busy machine may be slower than the limit, which is no fault of the twin.
            let alone = judge(**fault, expected, full, |it| it.timeout = PATIENT).await;
            found = broken(&alone);
            if found != expected_ids {
                wrong.push(format!("{fault:?}: expected {expected:?}, found {found:?}\n{}", text(&alone)));
            }
        }
        println!("{fault:?} -> {found:?}");
    }
    println!("{} twins in {:?}", judged.len(), began.elapsed());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_a_twin_that_breaks_it() {
    let told: BTreeSet<_> = FAULTS.iter().flat_map(|(_, ids)| ids.iter().copied()).collect();
    assert_eq!(told, rules::ALL.iter().map(|rule| rule.id).collect());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_is_found() {
    judge_the_family(false).await;
}

#[ignore = "every scenario for every twin takes more than a minute"]
#[tokio::test(flavor = "multi_thread")]
async fn every_fault_is_found_and_nothing_else() {
    judge_the_family(true).await;
}
