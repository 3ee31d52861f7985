//! The reference provider keeps every rule.

use std::{collections::BTreeSet, sync::Arc};

use capstan_conformance::dynamic::{Core, Options, check, rules};
use capstan_testkit::{Story, Which};
use serde_json::json;
use tokio::sync::Mutex;

use crate::{broken, kept, options, target, text};

#[tokio::test(flavor = "multi_thread")]
async fn the_local_provider_keeps_every_rule() {
    let story = Arc::new(Story::begin("conformance-local").await);
    let manager = Arc::new(Mutex::new(Some(story.manager(Which::Local))));
    let restart = {
        let (story, manager) = (Arc::clone(&story), Arc::clone(&manager));
        move || {
            let (story, manager) = (Arc::clone(&story), Arc::clone(&manager));
            let restarted = async move {
                let mut manager = manager.lock().await;
                manager.take().ok_or("there is no manager")?.stop().await;
                *manager = Some(story.manager(Which::Local));
                Ok(())
            };
            Box::pin(restarted) as futures::future::BoxFuture<'static, Result<(), String>>
        }
    };
    let options = Options { restart: Some(Arc::new(restart)), ..options(&story.namespace) };
    let target = target("LocalCluster", &json!({"failureDomains": [{"name": "a", "controlPlane": true}]}));
    let began = std::time::Instant::now();
    let report = check(story.client.clone(), target, options, |_| {}).await.unwrap();
    println!("{} in {:?}", text(&report), began.elapsed());
    assert_eq!(broken(&report), BTreeSet::new(), "{}", text(&report));
    // It makes its own endpoint and knows no terminal failures.
    let expected: BTreeSet<_> =
        rules::ALL.iter().map(|rule| rule.id).filter(|id| !["IC3", "G20"].contains(id)).collect();
    assert_eq!(kept(&report), expected, "{}", text(&report));
    manager.lock().await.take().unwrap().stop().await;
}

/// With the real core the same provider is found to be right, as far as such a core shows it.
#[tokio::test(flavor = "multi_thread")]
async fn a_real_core_plays_its_part() {
    let story = Story::begin("conformance-real").await;
    let manager = story.manager(Which::All);
    let options = Options { core: Core::Real, ..options(&story.namespace) };
    let report =
        check(story.client.clone(), target("LocalCluster", &json!({})), options, |_| {}).await.unwrap();
    assert_eq!(broken(&report), BTreeSet::new(), "{}", text(&report));
    let kept = kept(&report);
    for id in ["G11", "G12", "G13", "G14", "IC2", "IC4", "IC7", "IC8", "IC9", "IC10", "IC12", "IC14", "IC15"]
    {
        assert!(kept.contains(id), "{id}: {}", text(&report));
    }
    manager.stop().await;
}

/// Beside a core that runs, the fake core is not disturbed; and a core that was not announced is noticed.
#[tokio::test(flavor = "multi_thread")]
async fn a_core_that_runs_can_be_played_beside() {
    let story = Story::begin("conformance-beside").await;
    let manager = story.manager(Which::All);
    let options_beside = Options { core: Core::Beside, ..options(&story.namespace) };
    let target = target("LocalCluster", &json!({}));
    let report = check(story.client.clone(), target.clone(), options_beside, |_| {}).await.unwrap();
    assert_eq!(broken(&report), BTreeSet::new(), "{}", text(&report));
    assert!(kept(&report).contains("G12"), "{}", text(&report));

    let unannounced = Options { only: vec!["IC4".to_owned()], ..options(&story.namespace) };
    let report = check(story.client.clone(), target, unannounced, |_| {}).await.unwrap();
    assert!(report.notes.iter().any(|note| note.contains("core manager is running")), "{}", text(&report));
    manager.stop().await;
}
