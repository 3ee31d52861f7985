//! Releases in Secrets of a management cluster.

use capstan_operator::store::{self, PROVIDER_LABEL, SECRET_TYPE, StoredRelease};
use capstan_testkit::shared_plane;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace, Secret},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::json;

const NAMESPACE: &str = "kept-system";
const LABEL: &str = "infrastructure-aws";

/// A release of some bytes that do not compress.
fn release(version: &str, bytes: u32) -> StoredRelease {
    let mut state = 1_u64;
    let mut letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'!' + u8::try_from((state >> 33) % 94).unwrap())
    };
    StoredRelease {
        version: version.to_owned(),
        contract: "v1beta2".to_owned(),
        metadata: "metadata".to_owned(),
        components: (0..bytes).map(&mut letter).collect(),
        variables: [("AWS_REGION".to_owned(), "eu".to_owned())].into(),
        images: String::new(),
        origin: "origin".to_owned(),
        url: "url".to_owned(),
    }
}

async fn names(client: &Client) -> Vec<String> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    secrets.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_are_saved_loaded_and_pruned() {
    let client = shared_plane().await.client().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    // A live owner, so that the garbage collector keeps what it owns.
    let owner = serde_json::from_value(json!({"metadata": {"name": "aws"}})).unwrap();
    let owner: ConfigMap =
        Api::namespaced(client.clone(), NAMESPACE).create(&PostParams::default(), &owner).await.unwrap();
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: "aws".to_owned(),
        uid: owner.uid().unwrap(),
        ..OwnerReference::default()
    };
    let save = async |label: &str, release: &StoredRelease| {
        store::save(&client, NAMESPACE, label, &owner, release).await.unwrap();
    };
    let load = async |version: &str| store::load(&client, NAMESPACE, LABEL, version).await.unwrap();

    assert_eq!(load("v1.2.3").await, None);
    // Full parts are as large as a Secret may be.
    let (large, small) = (release("v1.2.3", 2_500_000), release("v1.2.3", 10));
    let (next, build) = (release("v1.3.0", 20), release("v1.3.0+build.1", 30));
    save(LABEL, &large).await;
    assert!(names(&client).await.len() == 3, "{:?}", names(&client).await);
    assert!(load("v1.2.3").await == Some(large));
    let before = versions(&client).await;
    save(LABEL, &release("v1.2.3", 2_500_000)).await;
    assert_eq!(versions(&client).await, before, "the same again changes nothing");

    // A smaller one leaves nothing of it.
    for release in [&small, &next, &build] {
        save(LABEL, release).await;
    }
    save("infrastructure-azure", &small).await;
    for release in [small, next.clone(), build] {
        assert_eq!(load(&release.version).await, Some(release.clone()));
    }
    assert_eq!(names(&client).await.len(), 4);
    store::prune(&client, NAMESPACE, LABEL, Some("v1.3.0")).await.unwrap();
    assert_eq!(load("v1.3.0").await, Some(next));
    assert_eq!(load("v1.2.3").await, None);
    let kept = ["infrastructure-aws-release-v1.3.0-1", "infrastructure-azure-release-v1.2.3-1"];
    assert_eq!(names(&client).await, kept);

    a_secret_of_somebody_else_is_left_alone(&client, &owner).await;
}

async fn versions(client: &Client) -> Vec<Option<String>> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    secrets.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::resource_version).collect()
}

async fn a_secret_of_somebody_else_is_left_alone(client: &Client, owner: &OwnerReference) {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let foreign = json!({
        "metadata": {"name": "infrastructure-aws-release-v2.0.0-1", "labels": {PROVIDER_LABEL: LABEL}},
        "stringData": {"release": "mine"},
    });
    let foreign: Secret = serde_json::from_value(foreign).unwrap();
    secrets.create(&PostParams::default(), &foreign).await.unwrap();
    let error = store::save(client, NAMESPACE, LABEL, owner, &release("v2.0.0", 10)).await.unwrap_err();
    let expected = "cannot apply Secret kept-system/infrastructure-aws-release-v2.0.0-1: ";
    assert!(error.to_string().starts_with(expected) && !error.is_transient(), "{error}");
    store::prune(client, NAMESPACE, LABEL, Some("v1.3.0")).await.unwrap();
    let found = secrets.get("infrastructure-aws-release-v2.0.0-1").await.unwrap();
    assert_ne!(found.type_.as_deref(), Some(SECRET_TYPE));
    assert_eq!(found.data.unwrap()["release"].0, b"mine");
}
