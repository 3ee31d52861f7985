//! Cluster and infrastructure find each other, in whatever order they come.

use std::time::Duration;

use capstan_api::{
    cluster::v1beta2::Cluster,
    conditions::{self, Condition},
};
use capstan_runtime::install::install_crds;
use capstan_testkit::{
    Story, Which, generic,
    story::reference,
    wait::{self, LIMIT},
};
use k8s_openapi::{
    api::{
        core::v1::Event,
        rbac::v1::{ClusterRole, ClusterRoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// Long enough for a busy machine, and shorter than any timer: upstream looks again after 30 s. `make bench` measures.
const AT_ONCE: Duration = Duration::from_secs(20);

fn is_provisioned(cluster: &Cluster) -> bool {
    cluster.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Provisioned")
}

/// The whole result of the hand-shake, whatever the order was.
async fn check_result(story: &Story, name: &str) {
    let cluster = wait::until_is(&story.clusters(), name, "Provisioned", LIMIT, is_provisioned).await;
    let local = story.locals().get(name).await.unwrap();
    let status = cluster.status.clone().unwrap();

    assert_eq!(cluster.finalizers(), ["cluster.cluster.x-k8s.io"]);
    let endpoint = cluster.spec.control_plane_endpoint.clone().unwrap();
    assert_eq!(local.spec.control_plane_endpoint.as_ref(), Some(&endpoint));
    TcpStream::connect(format!("{}:{}", endpoint.host, endpoint.port)).await.expect("the endpoint answers");

    assert_eq!(local.labels()["cluster.x-k8s.io/cluster-name"], name);
    let owner = &local.owner_references()[0];
    assert_eq!((owner.api_version.as_str(), owner.kind.as_str()), ("cluster.x-k8s.io/v1beta2", "Cluster"));
    assert_eq!((&owner.uid, owner.controller), (&cluster.uid().unwrap(), None), "not the controller");

    assert_eq!(status.failure_domains, local.spec.failure_domains);
    assert_eq!(status.observed_generation, cluster.metadata.generation);
    assert_eq!(status.initialization.unwrap().infrastructure_provisioned, Some(true));
    assert!(conditions::is_true(&status.conditions, "InfrastructureReady"));
    assert!(conditions::is_false(&status.conditions, "Paused"));
    assert!(conditions::is_true(&local.status.unwrap().conditions, "Ready"));
}

#[tokio::test]
async fn cluster_first() {
    let story = Story::begin("cluster-first").await;
    let manager = story.manager(Which::All);
    story.create_cluster("c", "LocalCluster", "c").await;
    story.until_phase("c", "Provisioning", LIMIT).await;
    story.create_local("c", json!({"failureDomains": [{"name": "a", "controlPlane": true}]})).await;
    story.until_phase("c", "Provisioned", AT_ONCE).await;
    check_result(&story, "c").await;
    manager.stop().await;
}

#[tokio::test]
async fn infrastructure_first() {
    let story = Story::begin("infra-first").await;
    let manager = story.manager(Which::All);
    story.create_local("c", json!({"failureDomains": [{"name": "a", "controlPlane": true}]})).await;
    story.create_cluster("c", "LocalCluster", "c").await;
    check_result(&story, "c").await;
    manager.stop().await;
}

#[tokio::test]
async fn both_before_the_managers() {
    let story = Story::begin("objects-first").await;
    story.create_local("c", json!({})).await;
    story.create_cluster("c", "LocalCluster", "c").await;
    let core = story.manager(Which::Core);
    story.until_phase("c", "Provisioning", LIMIT).await;
    let local = story.manager(Which::Local);
    check_result(&story, "c").await;
    core.stop().await;
    local.stop().await;
}

#[tokio::test]
async fn reference_set_later() {
    let story = Story::begin("reference-later").await;
    let manager = story.manager(Which::All);
    story.create_local("c", json!({})).await;
    // The spec must not be empty, so something else is said first.
    story.create_cluster_with("c", json!({"clusterNetwork": {"serviceDomain": "cluster.local"}})).await;
    let pending = story.until_phase("c", "Pending", LIMIT).await;
    assert_eq!(pending.status.unwrap().initialization, None);
    let patch = Patch::Merge(json!({"spec": {"infrastructureRef": reference("LocalCluster", "c")}}));
    story.clusters().patch("c", &PatchParams::default(), &patch).await.unwrap();
    story.until_phase("c", "Provisioned", AT_ONCE).await;
    check_result(&story, "c").await;
    manager.stop().await;
}

#[tokio::test]
async fn kind_installed_after_the_manager_started() {
    let story = Story::begin("late-kind").await;
    let manager = story.manager(Which::Core);
    story.create_cluster("c", "LateCluster", "ic").await;
    let blocked = wait::until_is(&story.clusters(), "c", "blocked", LIMIT, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        conditions::get(&status.conditions, "InfrastructureReady")
            .is_some_and(|it| it.reason == "InternalError")
    })
    .await;
    let status = blocked.status.unwrap();
    let condition = conditions::get(&status.conditions, "InfrastructureReady").unwrap();
    for words in ["lateclusters.infrastructure.cluster.x-k8s.io", "does not exist", "spec.infrastructureRef"]
    {
        assert!(condition.message.contains(words), "{}", condition.message);
    }

    let crd = generic::crd("LateCluster", &[("v1beta2", "v1beta2")]);
    install_crds(&story.client, &[crd], "story").await.unwrap();
    story
        .create_generic("LateCluster", "ic", json!({"controlPlaneEndpoint": {"host": "h", "port": 1}}))
        .await;
    wait::until_is(&story.generics("LateCluster"), "ic", "adopted", LIMIT, |it| {
        !it.owner_references().is_empty()
    })
    .await;
    story.set_generic_status("LateCluster", "ic", json!({"initialization": {"provisioned": true}})).await;
    story.until_phase("c", "Provisioned", AT_ONCE).await;
    manager.stop().await;
}

#[tokio::test]
async fn contract_label_added_and_raised_later() {
    let story = Story::begin("late-label").await;
    let crd = generic::crd("LabelCluster", &[]);
    install_crds(&story.client, &[crd], "story").await.unwrap();
    let manager = story.manager(Which::Core);
    story
        .create_generic("LabelCluster", "ic", json!({"controlPlaneEndpoint": {"host": "h", "port": 1}}))
        .await;
    story.create_cluster("c", "LabelCluster", "ic").await;
    wait::until_is(&story.clusters(), "c", "told of the label", LIMIT, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        conditions::get(&status.conditions, "InfrastructureReady")
            .is_some_and(|it| it.message.contains("has no label cluster.x-k8s.io/v1beta2"))
    })
    .await;

    // Under the older contract `ready` is what counts.
    let older = generic::crd("LabelCluster", &[("v1beta1", "v1beta2")]);
    install_crds(&story.client, &[older], "story").await.unwrap();
    story.set_generic_status("LabelCluster", "ic", json!({"failureDomains": {"a": {}}})).await;
    wait::until_is(&story.clusters(), "c", "adopted", LIMIT, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        conditions::get(&status.conditions, "InfrastructureReady").is_some_and(|it| it.reason == "NotReady")
    })
    .await;

    // Under the newer one a map of failure domains is a mistake.
    let newer = generic::crd("LabelCluster", &[("v1beta1", "v1beta2"), ("v1beta2", "v1beta2")]);
    install_crds(&story.client, &[newer], "story").await.unwrap();
    wait::until_is(&story.clusters(), "c", "read anew", LIMIT, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        conditions::get(&status.conditions, "InfrastructureReady")
            .is_some_and(|it| it.message.contains("status.failureDomains must be a list"))
    })
    .await;
    let domains = json!({"initialization": {"provisioned": true}, "failureDomains": [{"name": "a"}]});
    story.set_generic_status("LabelCluster", "ic", domains).await;
    story.until_phase("c", "Provisioned", AT_ONCE).await;
    manager.stop().await;
}

/// Whether the infrastructure's condition says something.
fn says(words: &'static str) -> impl Fn(&Cluster) -> bool {
    move |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        conditions::get(&status.conditions, "InfrastructureReady")
            .is_some_and(|it| it.message.contains(words))
    }
}

#[tokio::test]
async fn kind_removed_and_installed_again() {
    let story = Story::begin("kind-again").await;
    let crd = generic::crd("AgainCluster", &[("v1beta2", "v1beta2")]);
    install_crds(&story.client, std::slice::from_ref(&crd), "story").await.unwrap();
    let manager = story.manager(Which::Core);
    story.create_cluster("c", "AgainCluster", "ic").await;
    wait::until_is(&story.clusters(), "c", "waiting", LIMIT, says("AgainCluster does not exist")).await;

    let crds: Api<CustomResourceDefinition> = Api::all(story.client.clone());
    crds.delete(&crd.name_any(), &DeleteParams::default()).await.unwrap();
    wait::until_is(&story.clusters(), "c", "told", LIMIT, says("install the provider")).await;
    wait::until_gone(&crds, &crd.name_any(), LIMIT).await;

    install_crds(&story.client, std::slice::from_ref(&crd), "story").await.unwrap();
    story
        .create_generic("AgainCluster", "ic", json!({"controlPlaneEndpoint": {"host": "h", "port": 1}}))
        .await;
    story.set_generic_status("AgainCluster", "ic", json!({"initialization": {"provisioned": true}})).await;
    story.until_phase("c", "Provisioned", LIMIT).await;
    manager.stop().await;
}

#[tokio::test]
async fn a_reference_that_changes_is_followed() {
    let story = Story::begin("new-reference").await;
    let manager = story.manager(Which::All);
    story.create_cluster("c", "LocalCluster", "wrong").await;
    story.until_phase("c", "Provisioning", LIMIT).await;
    let patch = Patch::Merge(json!({"spec": {"infrastructureRef": reference("LocalCluster", "right")}}));
    story.clusters().patch("c", &PatchParams::default(), &patch).await.unwrap();
    story.create_local("right", json!({})).await;
    story.until_phase("c", "Provisioned", AT_ONCE).await;
    manager.stop().await;
}

/// Grants a user rules on the whole cluster.
async fn grant(story: &Story, name: &str, user: &str, rules: Value) {
    let name = format!("{name}-{}", story.namespace);
    let role = json!({"metadata": {"name": name}, "rules": rules});
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    let (role, binding) = (serde_json::from_value(role).unwrap(), serde_json::from_value(binding).unwrap());
    let params = PostParams::default();
    Api::<ClusterRole>::all(story.client.clone()).create(&params, &role).await.unwrap();
    Api::<ClusterRoleBinding>::all(story.client.clone()).create(&params, &binding).await.unwrap();
}

/// A provider whose ClusterRole comes late: the watch is refused, then granted.
#[tokio::test]
async fn access_granted_later() {
    let story = Story::begin("rbac").await;
    let user = format!("manager-of-{}", story.namespace);
    let crd = generic::crd("GuardedCluster", &[("v1beta2", "v1beta2")]);
    install_crds(&story.client, &[crd], "story").await.unwrap();
    let all = json!(["get", "list", "watch", "create", "update", "patch", "delete"]);
    let rules = json!([
        {"apiGroups": ["cluster.x-k8s.io"], "resources": ["clusters", "clusters/status"], "verbs": all},
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": all},
        {"apiGroups": [""], "resources": ["events"], "verbs": all},
    ]);
    grant(&story, "core", &user, rules).await;
    let mut config = story.plane.config().await;
    config.auth_info.impersonate = Some(user.clone());
    let manager = story.manager_on(kube::Client::try_from(config).unwrap(), Which::Core);
    story
        .create_generic("GuardedCluster", "ic", json!({"controlPlaneEndpoint": {"host": "h", "port": 1}}))
        .await;
    story.set_generic_status("GuardedCluster", "ic", json!({"initialization": {"provisioned": true}})).await;
    story.create_cluster("c", "GuardedCluster", "ic").await;
    let told = wait::until_is(&story.clusters(), "c", "told of the refusal", LIMIT, says("forbidden")).await;
    assert!(says("aggregate-to-manager")(&told));

    let rules = json!([{"apiGroups": [generic::GROUP], "resources": ["guardedclusters"], "verbs": all}]);
    grant(&story, "provider", &user, rules).await;
    story.until_phase("c", "Provisioned", LIMIT).await;
    // Without access to Secrets only the conditions that need them say so.
    wait::until_is(&story.clusters(), "c", "told of Secrets", LIMIT, |cluster| {
        let conditions = cluster.status.clone().unwrap_or_default().conditions;
        conditions::get(&conditions, "RemoteConnectionProbe")
            .is_some_and(|it| it.message.contains("cannot watch Secrets"))
    })
    .await;
    manager.stop().await;
}

#[tokio::test]
async fn changes_of_the_infrastructure_are_followed_at_once() {
    let story = Story::begin("follow").await;
    let manager = story.manager(Which::All);
    story.create_local("c", json!({})).await;
    story.create_cluster("c", "LocalCluster", "c").await;
    story.until_phase("c", "Provisioned", LIMIT).await;
    let patch = Patch::Merge(json!({"spec": {"failureDomains": [{"name": "b", "controlPlane": false}]}}));
    story.locals().patch("c", &PatchParams::default(), &patch).await.unwrap();
    wait::until_is(&story.clusters(), "c", "with failure domain b", AT_ONCE, |cluster| {
        let domains = cluster.status.clone().unwrap_or_default().failure_domains;
        domains.iter().any(|domain| domain.name == "b")
    })
    .await;
    manager.stop().await;
}

#[tokio::test]
async fn a_finalizer_that_was_taken_off_comes_back() {
    let story = Story::begin("finalizer-back").await;
    let manager = story.manager(Which::All);
    story.create_local("c", json!({})).await;
    story.create_cluster("c", "LocalCluster", "c").await;
    story.until_phase("c", "Provisioned", LIMIT).await;
    let patch = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    story.clusters().patch("c", &PatchParams::default(), &patch).await.unwrap();
    wait::until_is(&story.clusters(), "c", "held", AT_ONCE, |cluster| !cluster.finalizers().is_empty()).await;
    manager.stop().await;
}

#[tokio::test]
async fn what_happened_is_told_by_events() {
    let story = Story::begin("events").await;
    let manager = story.manager(Which::All);
    story.create_local("c", json!({})).await;
    story.create_cluster("c", "LocalCluster", "c").await;
    story.until_phase("c", "Provisioned", LIMIT).await;
    let events: Api<Event> = Api::namespaced(story.client.clone(), &story.namespace);
    let told = || async {
        let list = events.list(&ListParams::default()).await.unwrap();
        let of_cluster =
            list.items.into_iter().filter(|it| it.involved_object.kind.as_deref() == Some("Cluster"));
        of_cluster.filter_map(|event| event.reason).collect::<Vec<_>>()
    };
    // Events are written in the background.
    let deadline = tokio::time::Instant::now() + LIMIT;
    while !told().await.contains(&"Provisioned".to_owned()) {
        assert!(tokio::time::Instant::now() < deadline, "{:?}", told().await);
        tokio::task::yield_now().await;
    }
    assert!(told().await.contains(&"InfrastructureReady".to_owned()));
    manager.stop().await;
}

/// Each condition is owned as a whole by its writer.
#[tokio::test]
async fn conditions_of_others_stay_theirs() {
    let story = Story::begin("theirs").await;
    let manager = story.manager(Which::Core);
    story.create_cluster("c", "LocalCluster", "nowhere").await;
    let apply = async |conditions: Value| {
        let object = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "c"}, "status": {"conditions": conditions},
        });
        let params = PatchParams::apply("gardener");
        story.clusters().patch_status("c", &params, &Patch::Apply(object)).await.unwrap();
    };
    let until = async |what: &str, is_so: &dyn Fn(&[Condition]) -> bool| {
        let of = |cluster: &Cluster| cluster.status.clone().unwrap_or_default().conditions;
        wait::until_is(&story.clusters(), "c", what, LIMIT, |cluster| is_so(&of(cluster))).await
    };
    let seen = until("reported on", &|it| conditions::get(it, "Available").is_some()).await;
    let ours = seen.status.unwrap_or_default().conditions.len();

    apply(json!([{"type": "Watered", "status": "True", "reason": "Rain", "message": "",
                  "lastTransitionTime": "2026-01-01T00:00:00Z"}]))
    .await;
    let paused = Patch::Merge(json!({"spec": {"paused": true}}));
    story.clusters().patch("c", &PatchParams::default(), &paused).await.unwrap();
    let seen = until("paused", &|it| conditions::is_true(it, "Paused")).await;
    assert!(conditions::is_true(&seen.status.clone().unwrap_or_default().conditions, "Watered"));
    for (who, condition) in [("gardener", "Watered"), ("capstan-cluster", "Available")] {
        let fields = seen.managed_fields().iter().filter(|it| it.manager.as_deref() == Some(who));
        let fields = fields.filter_map(|it| Some(&it.fields_v1.as_ref()?.0["f:status"]["f:conditions"]));
        let key = format!("k:{{\"type\":\"{condition}\"}}");
        let owned: Vec<_> = fields.filter_map(|it| it.get(&key)).collect();
        assert_eq!(owned, [&json!({})], "{who} owns {condition}");
    }

    apply(json!([])).await;
    let seen = until("dry", &|it| conditions::get(it, "Watered").is_none()).await;
    assert_eq!(seen.status.unwrap_or_default().conditions.len(), ours);
    manager.stop().await;
}
