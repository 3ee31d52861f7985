//! Bad input ends in a condition or a rejection that names the field, and disturbs no other object.

use capstan_api::{cluster::v1beta2::Cluster, conditions};
use capstan_runtime::install::install_crds;
use capstan_testkit::{
    Story, Which, generic,
    wait::{self, LIMIT},
};
use kube::{
    ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

async fn until_infrastructure_says(story: &Story, name: &str, words: &str) -> Cluster {
    wait::until_is(&story.clusters(), name, words, LIMIT, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        conditions::get(&status.conditions, "InfrastructureReady")
            .is_some_and(|it| it.message.contains(words))
    })
    .await
}

/// Every kind of bad input at once, beside a good Cluster.
#[tokio::test]
async fn each_is_explained_and_the_good_go_on() {
    let story = Story::begin("bad-input").await;
    let labelled = generic::crd("OddCluster", &[("v1beta2", "v1beta2")]);
    let unlabelled = generic::crd("UnlabelledCluster", &[]);
    let wrong_version = generic::crd("WrongVersionCluster", &[("v1beta2", "v1beta9")]);
    install_crds(&story.client, &[labelled, unlabelled, wrong_version], "story").await.unwrap();
    let manager = story.manager(Which::All);

    let odd = [
        (
            "port",
            json!({"controlPlaneEndpoint": {"host": "h", "port": "https"}}),
            json!({"initialization": {"provisioned": true}}),
            "OddCluster port: spec.controlPlaneEndpoint.port must be an integer between 1 and 65535",
        ),
        (
            "domains",
            json!({"controlPlaneEndpoint": {"host": "h", "port": 1}}),
            json!({"initialization": {"provisioned": true}, "failureDomains": "everywhere"}),
            "OddCluster domains: status.failureDomains must be a list",
        ),
        (
            "half",
            json!({"controlPlaneEndpoint": {"host": "h"}}),
            json!({"initialization": {"provisioned": true}}),
            "OddCluster half: spec.controlPlaneEndpoint.port must be set as well",
        ),
        (
            "reason",
            json!({}),
            json!({"conditions": [{"type": "Ready", "status": "False", "reason": "not yet!"}]}),
            "OddCluster reason: the reason \"not yet!\" of condition Ready must be a word",
        ),
        (
            "flag",
            json!({}),
            json!({"initialization": {"provisioned": "soon"}}),
            "OddCluster flag: status.initialization.provisioned must be a boolean",
        ),
        (
            "condition",
            json!({}),
            json!({"conditions": [{"type": "Ready", "status": 7}]}),
            "OddCluster condition sets status.conditions[0].status to 7, but it must be a string",
        ),
        (
            "conditions",
            json!({}),
            json!({"conditions": "none"}),
            "OddCluster conditions sets status.conditions to \"none\", but it must be a list of conditions",
        ),
    ];
    for (name, spec, status, _) in &odd {
        story.create_generic("OddCluster", name, spec.clone()).await;
        story.set_generic_status("OddCluster", name, status.clone()).await;
        story.create_cluster(name, "OddCluster", name).await;
    }
    story.create_cluster("unknown-kind", "NoSuchCluster", "x").await;
    story.create_cluster("unlabelled", "UnlabelledCluster", "x").await;
    story.create_cluster("wrong-version", "WrongVersionCluster", "x").await;
    story.create_local("good", json!({})).await;
    story.create_cluster("good", "LocalCluster", "good").await;

    story.until_phase("good", "Provisioned", LIMIT).await;
    for (name, _, _, words) in &odd {
        let cluster = until_infrastructure_says(&story, name, words).await;
        assert_eq!(cluster.status.unwrap().initialization, None, "{name}: nothing is taken from it");
    }
    until_infrastructure_says(
        &story,
        "unknown-kind",
        "nosuchclusters.infrastructure.cluster.x-k8s.io does not exist: install the provider",
    )
    .await;
    until_infrastructure_says(&story, "unlabelled", "has no label cluster.x-k8s.io/v1beta2").await;
    until_infrastructure_says(
        &story,
        "wrong-version",
        "serves none of the versions that its contract labels name (cluster.x-k8s.io/v1beta2: v1beta9); it serves v1beta2",
    )
    .await;

    // Mending the input is all it takes.
    let mended = Patch::Merge(json!({"spec": {"controlPlaneEndpoint": {"port": 6443}}}));
    story.generics("OddCluster").patch("port", &PatchParams::default(), &mended).await.unwrap();
    story.until_phase("port", "Provisioned", LIMIT).await;
    manager.stop().await;
}

#[tokio::test]
async fn what_the_schema_can_see_is_rejected() {
    let story = Story::begin("rejected").await;
    let reference = json!({"apiGroup": "g.io", "kind": "Foo", "name": "x"});
    let long = "c".repeat(64);
    for (name, spec, words) in [
        (long.as_str(), json!({"infrastructureRef": reference}), "metadata.name"),
        (
            "c",
            json!({"infrastructureRef": {"apiGroup": "g.io", "kind": "Foo"}}),
            "spec.infrastructureRef.name",
        ),
        (
            "c",
            json!({"infrastructureRef": {"apiGroup": "G!", "kind": "Foo", "name": "x"}}),
            "spec.infrastructureRef.apiGroup",
        ),
        (
            "c",
            json!({"controlPlaneEndpoint": {"host": "h", "port": 70000}}),
            "spec.controlPlaneEndpoint.port",
        ),
        ("c", json!({"controlPlaneEndpoint": {}}), "spec.controlPlaneEndpoint"),
    ] {
        let error = create_raw(&story, name, &spec).await.unwrap_err();
        assert!(error.contains(words), "{spec}: {error}");
    }
    create_raw(&story, &"c".repeat(63), &json!({"infrastructureRef": reference})).await.unwrap();
}

async fn create_raw(story: &Story, name: &str, spec: &Value) -> Result<(), String> {
    let resource = kube::core::ApiResource::erase::<Cluster>(&());
    let api = kube::Api::namespaced_with(story.client.clone(), &story.namespace, &resource);
    let object = DynamicObject::new(name, &resource).data(json!({ "spec": spec }));
    api.create(&PostParams::default(), &object)
        .await
        .map(|it| assert_eq!(it.name_any(), name))
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn nesting_without_end_harms_nobody_else() {
    let story = Story::begin("deep").await;
    let crd = generic::crd("DeepCluster", &[("v1beta2", "v1beta2")]);
    install_crds(&story.client, &[crd], "story").await.unwrap();
    let manager = story.manager(Which::Core);
    let deep = (0..300).fold(json!(1), |inner, _| json!({ "a": inner }));
    let object = DynamicObject::new("deep", &generic::resource("DeepCluster"));
    let object = object.data(json!({"spec": { "deep": deep }}));
    // The server takes it; this client cannot read the answer.
    let answer = story.generics("DeepCluster").create(&PostParams::default(), &object).await;
    assert!(matches!(answer, Err(kube::Error::SerdeError(_))), "{answer:?}");
    story.create_cluster("odd", "DeepCluster", "deep").await;
    let endpoint = json!({"controlPlaneEndpoint": {"host": "h", "port": 1}});
    story.create_generic("DeepCluster", "plain", endpoint).await;
    story.set_generic_status("DeepCluster", "plain", json!({"initialization": {"provisioned": true}})).await;
    story.create_cluster("c", "DeepCluster", "plain").await;
    story.until_phase("c", "Provisioned", LIMIT).await;
    story.until_phase("odd", "Provisioning", LIMIT).await;
    manager.stop().await;
}
