//! Kubeconfigs of workload clusters that have no control plane provider to make them.

use capstan_api::conditions;
use capstan_runtime::install::install_crds;
use capstan_testkit::{
    Story, Which,
    canary::CANARY,
    generic,
    story::reference,
    wait::{self, LIMIT},
};
use k8s_openapi::api::{
    core::v1::{Event, Namespace, Secret},
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;

use crate::workload::{
    AT_ONCE, create_kubeconfig, own_kubeconfig, probe_condition, until_connected, until_failed,
};

const KIND: &str = "EndpointCluster";
/// An authority as kubeadm makes it: RSA, its key in PKCS#1.
pub(crate) const OTHER: (&str, &str) = (
    include_str!("../../../cluster/src/kubeconfig/testdata/rsa.crt"),
    include_str!("../../../cluster/src/kubeconfig/testdata/rsa-pkcs1.key"),
);

/// A Cluster without a control plane provider, whose endpoint is the story's own API server.
async fn create_cluster(story: &Story, name: &str) {
    let crd = generic::crd(KIND, &[("v1beta2", "v1beta2")]);
    install_crds(&story.client, &[crd], "testkit").await.unwrap();
    let url = story.plane.config().await.cluster_url;
    let endpoint = json!({"host": url.host().unwrap(), "port": url.port_u16().unwrap()});
    story.create_generic(KIND, name, json!({"controlPlaneEndpoint": endpoint})).await;
    story.set_generic_status(KIND, name, json!({"initialization": {"provisioned": true}})).await;
    story.create_cluster(name, KIND, name).await;
    story.until_phase(name, "Provisioned", LIMIT).await;
}

pub(crate) async fn create_authority(story: &Story, cluster: &str, label: Option<&str>, pair: (&str, &str)) {
    let data = [("tls.crt", pair.0.as_bytes()), ("tls.key", pair.1.as_bytes())];
    story.create_secret(&format!("{cluster}-ca"), label, &data).await;
}

pub(crate) async fn change_authority(story: &Story, cluster: &str, pair: (&str, &str)) {
    let data = [("tls.crt", pair.0.as_bytes()), ("tls.key", pair.1.as_bytes())];
    story.change_secret(&format!("{cluster}-ca"), &data).await;
}

fn text(secret: &Secret) -> String {
    String::from_utf8(secret.data.as_ref().unwrap()["value"].0.clone()).unwrap()
}

async fn until_made(story: &Story, cluster: &str) -> Secret {
    wait::until_is(&story.secrets(), &format!("{cluster}-kubeconfig"), "made", AT_ONCE, |_| true).await
}

/// Waits until a kubeconfig trusts another authority.
async fn until_trusts(story: &Story, cluster: &str, authority: &str) -> Secret {
    let trusted = serde_json::to_value(k8s_openapi::ByteString(authority.as_bytes().to_vec())).unwrap();
    let trusted = trusted.as_str().unwrap().to_owned();
    wait::until_is(&story.secrets(), &format!("{cluster}-kubeconfig"), "recreated", AT_ONCE, |secret| {
        text(secret).contains(&trusted)
    })
    .await
}

#[tokio::test]
async fn it_is_made_from_the_clusters_authority_and_works() {
    let story = Story::begin("kubeconfig").await;
    let manager = story.manager(Which::Core);
    create_cluster(&story, "c").await;
    let (certificate, key) = story.plane.authority();
    create_authority(&story, "c", Some("c"), (&certificate, &key)).await;

    let secret = until_made(&story, "c").await;
    let cluster = story.clusters().get("c").await.unwrap();
    assert_eq!(secret.type_.as_deref(), Some("cluster.x-k8s.io/secret"));
    assert_eq!(secret.labels()["cluster.x-k8s.io/cluster-name"], "c");
    let owner = &secret.owner_references()[0];
    assert_eq!((owner.api_version.as_str(), owner.kind.as_str()), ("cluster.x-k8s.io/v1beta2", "Cluster"));
    assert_eq!((&owner.uid, owner.controller), (&cluster.uid().unwrap(), None));
    let endpoint = cluster.spec.control_plane_endpoint.unwrap();
    let server = format!("server: https://{}:{}\n", endpoint.host, endpoint.port);
    assert!(text(&secret).contains(&server), "{server} is not in it");

    until_connected(&story, "c").await;
    let kubeconfig = Kubeconfig::from_yaml(&text(&secret)).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let admin = Client::try_from(config).unwrap();
    let namespaces = Api::<Namespace>::all(admin).list(&ListParams::default()).await.unwrap();
    assert!(namespaces.iter().any(|it| it.name_any() == story.namespace), "its user may do all");

    // What is deleted by mistake is made again.
    story.secrets().delete("c-kubeconfig", &DeleteParams::default()).await.unwrap();
    let again = wait::until_is(&story.secrets(), "c-kubeconfig", "made again", AT_ONCE, |it| {
        it.uid() != secret.uid()
    })
    .await;
    assert_ne!(text(&again), text(&secret), "with a new key");
    until_connected(&story, "c").await;
    manager.stop().await;
}

#[tokio::test]
async fn an_authority_without_the_label_is_found_by_its_name() {
    let story = Story::begin("kubeconfig-bare").await;
    let manager = story.manager(Which::Core);
    let (certificate, key) = story.plane.authority();
    create_authority(&story, "c", None, (&certificate, &key)).await;
    create_cluster(&story, "c").await;
    until_made(&story, "c").await;
    until_connected(&story, "c").await;
    manager.stop().await;
}

#[tokio::test]
async fn without_an_authority_nothing_is_made_and_nothing_is_wrong() {
    let story = Story::begin("kubeconfig-none").await;
    let manager = story.manager(Which::Core);
    create_cluster(&story, "without").await;
    let cluster = until_failed(&story, "without", "").await;
    assert_eq!(probe_condition(&cluster).unwrap().2, "Remote connection not established yet");

    // Another Cluster's, made meanwhile, shows that there was time enough.
    let (certificate, key) = story.plane.authority();
    create_authority(&story, "with", Some("with"), (&certificate, &key)).await;
    create_cluster(&story, "with").await;
    until_connected(&story, "with").await;
    assert!(story.secrets().get_opt("without-kubeconfig").await.unwrap().is_none());
    let now = story.clusters().get("without").await.unwrap();
    let reported = now.status.unwrap().conditions;
    assert!(reported.iter().all(|it| it.reason != "InternalError"), "{reported:?}");
    assert!(conditions::get(&reported, "RemoteConnectionProbe").is_some());
    manager.stop().await;
}

#[tokio::test]
async fn an_authority_that_cannot_be_used_is_explained() {
    let story = Story::begin("kubeconfig-bad").await;
    let manager = story.manager(Which::Core);
    create_cluster(&story, "c").await;
    // Words that a library would quote.
    let spoilt = format!("-----BEGIN {CANARY}");
    create_authority(&story, "c", Some("c"), (&spoilt, &spoilt)).await;
    let words = "no kubeconfig can be made from Secret c-ca: key tls.crt holds no certificate in PEM";
    let cluster = until_failed(&story, "c", words).await;
    let events = Api::<Event>::namespaced(story.client.clone(), &story.namespace);
    let is_told = |it: &Event| it.reason.as_deref() == Some("KubeconfigNotMade");
    // Events come a moment after the condition.
    let until_told = async |words: &str| {
        let says = |it: &Event| is_told(it) && it.message.as_deref().is_some_and(|it| it.contains(words));
        wait::until_any(&events, words, LIMIT, says).await;
    };
    until_told(words).await;
    let (certificate, key) = story.plane.authority();
    change_authority(&story, "c", (&certificate, OTHER.1)).await;
    let words_of_key = "does not belong to the certificate in tls.crt";
    until_failed(&story, "c", words_of_key).await;
    until_told(words_of_key).await;
    change_authority(&story, "c", (&certificate, &key)).await;
    until_connected(&story, "c").await;
    let events: Vec<_> =
        events.list(&ListParams::default()).await.unwrap().into_iter().filter(is_told).collect();
    assert_eq!(events.len(), 2, "one for each trouble: {events:?}");
    assert_eq!(events[0].involved_object.uid, cluster.metadata.uid);
    assert!(events.iter().any(|it| it.message.as_deref() == Some(words)));
    manager.stop().await;
}

#[tokio::test]
async fn it_follows_the_authority_and_the_endpoint() {
    let story = Story::begin("kubeconfig-anew").await;
    let manager = story.manager(Which::Core);
    create_cluster(&story, "c").await;
    create_authority(&story, "c", Some("c"), OTHER).await;
    // The API server does not know this authority: it says so, in words.
    let first = until_trusts(&story, "c", OTHER.0).await;
    until_failed(&story, "c", "not signed by the kubeconfig's certificate-authority-data").await;

    let (certificate, key) = story.plane.authority();
    change_authority(&story, "c", (&certificate, &key)).await;
    let second = until_trusts(&story, "c", &certificate).await;
    assert_eq!(first.uid(), second.uid(), "changed in place");
    until_connected(&story, "c").await;

    let port = story.clusters().get("c").await.unwrap().spec.control_plane_endpoint.unwrap().port;
    let patch = Patch::Merge(json!({"spec": {"controlPlaneEndpoint": {"host": "localhost"}}}));
    story.clusters().patch("c", &PatchParams::default(), &patch).await.unwrap();
    wait::until_is(&story.secrets(), "c-kubeconfig", "moved", AT_ONCE, |secret| {
        text(secret).contains(&format!("server: https://localhost:{port}\n"))
    })
    .await;
    manager.stop().await;
}

#[tokio::test]
async fn an_authority_without_the_label_is_looked_at_when_it_is_not_trusted_any_more() {
    let story = Story::begin("kubeconfig-anew-bare").await;
    let manager = story.manager(Which::Core);
    create_authority(&story, "c", None, OTHER).await;
    create_cluster(&story, "c").await;
    until_trusts(&story, "c", OTHER.0).await;
    let (certificate, key) = story.plane.authority();
    change_authority(&story, "c", (&certificate, &key)).await;
    // A restarted manager meets the trouble for the first time.
    manager.stop().await;
    let manager = story.manager(Which::Core);
    until_trusts(&story, "c", &certificate).await;
    until_connected(&story, "c").await;
    manager.stop().await;
}

#[tokio::test]
async fn trouble_is_not_forgotten_over_a_pause() {
    let story = Story::begin("kubeconfig-pause").await;
    let manager = story.manager(Which::Core);
    create_authority(&story, "c", None, OTHER).await;
    create_cluster(&story, "c").await;
    until_trusts(&story, "c", OTHER.0).await;
    until_failed(&story, "c", "not signed by the kubeconfig's certificate-authority-data").await;
    let paused = async |paused: bool| {
        let patch = Patch::Merge(json!({"spec": {"paused": paused}}));
        story.clusters().patch("c", &PatchParams::default(), &patch).await.unwrap();
        wait::until_is(&story.clusters(), "c", "told", LIMIT, |cluster| {
            let status = cluster.status.as_ref().unwrap();
            conditions::is_true(&status.conditions, "Paused") == paused
        })
        .await;
    };
    paused(true).await;
    let (certificate, key) = story.plane.authority();
    change_authority(&story, "c", (&certificate, &key)).await;
    paused(false).await;
    until_trusts(&story, "c", &certificate).await;
    until_connected(&story, "c").await;
    manager.stop().await;
}

#[tokio::test]
async fn a_lasting_refusal_is_told_and_then_mended() {
    let story = Story::begin("kubeconfig-refused").await;
    let user = story.namespace.clone();
    let role = |verbs: &[&str]| {
        json!({
            "metadata": {"name": user},
            "rules": [
                {"apiGroups": [""], "resources": ["secrets"], "verbs": verbs},
                {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
                {
                    "apiGroups": ["cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "apiextensions.k8s.io"],
                    "resources": ["*"], "verbs": ["*"],
                },
            ],
        })
    };
    let roles = Api::<ClusterRole>::all(story.client.clone());
    let reads = serde_json::from_value(role(&["get", "list", "watch"])).unwrap();
    roles.create(&PostParams::default(), &reads).await.unwrap();
    let binding = json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    Api::<ClusterRoleBinding>::all(story.client.clone())
        .create(&PostParams::default(), &serde_json::from_value(binding).unwrap())
        .await
        .unwrap();
    let mut config = story.plane.config().await;
    config.auth_info.impersonate = Some(user.clone());
    let manager = story.manager_on(Client::try_from(config).unwrap(), Which::Core);
    create_cluster(&story, "c").await;
    let (certificate, key) = story.plane.authority();
    create_authority(&story, "c", Some("c"), (&certificate, &key)).await;
    let words = format!("no kubeconfig can be made: cannot create Secret {user}/c-kubeconfig: ");
    until_failed(&story, "c", &words).await;

    let all = Patch::Merge(role(&["get", "list", "watch", "create", "patch"]));
    roles.patch(&user, &PatchParams::default(), &all).await.unwrap();
    wait::until_is(&story.clusters(), "c", "connected", LIMIT, |cluster| {
        probe_condition(cluster).is_some_and(|(status, ..)| status == "True")
    })
    .await;
    manager.stop().await;
}

#[tokio::test]
async fn a_moved_endpoint_without_an_authority_is_told() {
    let story = Story::begin("kubeconfig-moved").await;
    let manager = story.manager(Which::Core);
    create_cluster(&story, "c").await;
    let (certificate, key) = story.plane.authority();
    create_authority(&story, "c", Some("c"), (&certificate, &key)).await;
    until_connected(&story, "c").await;
    story.secrets().delete("c-ca", &DeleteParams::default()).await.unwrap();
    let patch = Patch::Merge(json!({"spec": {"controlPlaneEndpoint": {"host": "localhost"}}}));
    story.clusters().patch("c", &PatchParams::default(), &patch).await.unwrap();
    let events = Api::<Event>::namespaced(story.client.clone(), &story.namespace);
    let told = |event: &Event| {
        event.reason.as_deref() == Some("KubeconfigNotMade")
            && event
                .message
                .as_deref()
                .is_some_and(|it| it.contains("cannot be recreated without Secret c-ca"))
    };
    wait::until_any(&events, "told", AT_ONCE, told).await;
    create_authority(&story, "c", Some("c"), (&certificate, &key)).await;
    wait::until_is(&story.secrets(), "c-kubeconfig", "moved", AT_ONCE, |it| {
        text(it).contains("//localhost:")
    })
    .await;
    manager.stop().await;
}

#[tokio::test]
async fn what_others_made_is_left_alone() {
    let story = Story::begin("kubeconfig-foreign").await;
    let manager = story.manager(Which::Core);
    create_kubeconfig(&story, "users", &own_kubeconfig(&story)).await;
    create_kubeconfig(&story, "with-provider", b"garbage").await;
    let endpoint = json!({"host": "127.0.0.1", "port": 1});
    let spec =
        json!({"controlPlaneEndpoint": endpoint, "controlPlaneRef": reference("NoControlPlane", "cp")});
    for name in ["users", "with-provider", "ours", "provided"] {
        create_authority(&story, name, Some(name), OTHER).await;
    }
    story.create_cluster_with("with-provider", spec.clone()).await;
    story.create_cluster_with("provided", spec).await;
    create_cluster(&story, "users").await;
    create_cluster(&story, "ours").await;
    until_trusts(&story, "ours", OTHER.0).await;
    let get = async |name: &str| story.secrets().get(name).await.unwrap().resource_version();
    let before = (get("users-kubeconfig").await, get("with-provider-kubeconfig").await);

    let (certificate, key) = story.plane.authority();
    for name in ["users", "with-provider", "provided", "ours"] {
        change_authority(&story, name, (&certificate, &key)).await;
    }
    until_trusts(&story, "ours", &certificate).await;
    assert_eq!((get("users-kubeconfig").await, get("with-provider-kubeconfig").await), before);
    assert!(story.secrets().get_opt("provided-kubeconfig").await.unwrap().is_none());
    until_connected(&story, "users").await;
    manager.stop().await;
}

#[tokio::test]
async fn a_kubeconfig_without_the_label_is_pointed_out() {
    let story = Story::begin("kubeconfig-unlabelled").await;
    let manager = story.manager(Which::Core);
    story.create_secret("c-kubeconfig", None, &[("value", &own_kubeconfig(&story))]).await;
    create_authority(&story, "c", Some("c"), OTHER).await;
    create_cluster(&story, "c").await;
    until_failed(&story, "c", "Secret c-kubeconfig is not used because it has no label").await;
    let labels = json!({"metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "c"}}});
    story.secrets().patch("c-kubeconfig", &PatchParams::default(), &Patch::Merge(labels)).await.unwrap();
    until_connected(&story, "c").await;
    manager.stop().await;
}
