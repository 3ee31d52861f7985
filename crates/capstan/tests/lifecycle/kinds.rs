//! The kinds of a management cluster, and what its CRDs say about core.

use std::sync::Arc;

use capstan_management::{contract, served};
use serde_json::{Value, json};

use crate::estate::{Estate, Release};

#[tokio::test(flavor = "multi_thread")]
async fn kinds_are_discovered_once_and_again_when_asked() {
    let estate = Estate::bare().await;
    let (cluster, [core, ..]) = (estate.cluster(), Release::all("v1.0.0"));
    let (one, other) = futures::try_join!(cluster.kinds(), cluster.kinds()).unwrap();
    assert!(Arc::ptr_eq(&one, &other), "there was one discovery");
    assert_eq!(contract::installed_core_contract(&cluster).await.unwrap(), None);

    let crd = core.components().into_iter().find(|it| it["kind"] == "CustomResourceDefinition").unwrap();
    estate.apply(std::slice::from_ref(&crd)).await;
    let is_known = |kinds: &capstan_management::Kinds| {
        kinds.find("cluster.x-k8s.io/v1beta2", "Cluster").is_some_and(|it| it.is_namespaced)
    };
    assert!(!is_known(&cluster.kinds().await.unwrap()), "what was discovered stays");
    served::wait(&cluster, vec![&crd]).await.unwrap();
    assert!(is_known(&cluster.clone().refresh_kinds().await.unwrap()));
    assert!(is_known(&cluster.kinds().await.unwrap()), "clones share what was discovered");
    assert!(!is_known(&one));

    // The labels of the Cluster CRD come before its storage version.
    let contract = async || contract::installed_core_contract(&cluster).await.unwrap();
    assert_eq!(contract().await.as_deref(), Some("v1beta2"));
    estate.apply(&[with_labels(&crd, &json!({"cluster.x-k8s.io/v1beta1": "v1beta1"}))]).await;
    assert_eq!(contract().await.as_deref(), Some("v1beta1"));
    estate.apply(&[with_labels(&crd, &json!({}))]).await;
    assert_eq!(contract().await.as_deref(), Some("v1beta2"), "as it is stored");
}

fn with_labels(crd: &Value, labels: &Value) -> Value {
    let mut crd = crd.clone();
    crd["metadata"]["labels"] = labels.clone();
    crd
}
