//! What would be done to a management cluster, asked of a real server.

use std::collections::BTreeMap;

use capstan_lifecycle::diff::{self, Action, Intent, Preview};
use capstan_management::{
    dry_run::{self, Crds, Detail, Known, Outcome},
    sweep,
};
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ConfigMap},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
    core::ObjectMeta,
};
use serde_json::{Value, json};

use crate::estate::{Estate, Release, cert_manager};

fn actions(preview: &Preview) -> BTreeMap<String, Action> {
    let objects = preview.providers.iter().flat_map(|it| &it.objects);
    objects.map(|it| (it.object.to_string(), it.action)).collect()
}

fn those(preview: &Preview, action: Action) -> Vec<String> {
    actions(preview).into_iter().filter(|it| it.1 == action).map(|it| it.0).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_shown_before_it_is_made() {
    let estate = Estate::bare().await;
    let [.., acme] = Release::all("v1.0.0");
    everything_is_tried_that_can_be(&estate, &acme).await;
    all_refusals_are_collected(&estate, &acme).await;
    unreachable_webhooks_do_not_block(&estate).await;
    assert!(estate.labelled().await.is_empty(), "nothing was written");
    estate.furnish().await;
    estate.put_in(std::slice::from_ref(&acme)).await;
    crds_are_tried_over_those_that_are_there(&estate, &acme).await;
    upgrades_are_compared(&estate, &acme).await;
}

/// On an empty server: neither the namespace nor the kinds are there.
async fn everything_is_tried_that_can_be(estate: &Estate, acme: &Release) {
    let (cert_manager, components) = (cert_manager(), acme.rendered(acme.components()));
    let intents = [("cert-manager", &cert_manager), ("acme", &components)].map(|(provider, wanted)| Intent {
        provider,
        wanted: wanted.iter().collect(),
        removed: &[],
    });
    let preview = diff::preview(&estate.cluster(), &intents).await.unwrap();
    assert_eq!((preview.refusals.as_slice(), preview.notes.as_slice()), (&[][..], &[][..]));
    assert_eq!(those(&preview, Action::Created).len(), cert_manager.len() + components.len());
    let summary = &preview.providers[1].summary;
    assert_eq!(summary.crds[0].versions_added, ["v1beta1", "v1beta2"]);
    assert_eq!(summary.images[0].to.as_deref(), Some("registry.example.com/acme:v1.0.0"));

    let objects = [cert_manager, components].concat();
    for detail in [Detail::Whole, Detail::Brief] {
        let trials = dry_run::try_all(&estate.cluster(), &objects, detail).await.unwrap();
        for (object, trial) in objects.iter().zip(trials) {
            // What is of a kind that comes with it cannot be asked for.
            let is_asked = trial.object.group() != "cert-manager.io";
            assert_eq!(matches!(trial.outcome, Outcome::Stored(_)), is_asked, "{trial:?}");
            let Outcome::Stored(stored) = trial.outcome else { continue };
            assert_eq!(stored["metadata"]["name"], object["metadata"]["name"]);
            let is_whole = detail == Detail::Whole || !is_crd(object);
            assert_eq!(stored["kind"] == object["kind"], is_whole, "{}", trial.object);
        }
    }
}

async fn all_refusals_are_collected(estate: &Estate, acme: &Release) {
    let mut objects = acme.rendered(acme.components());
    let mut break_it = |kind: &str, pointer: &str, value: Value| {
        let object = objects.iter_mut().find(|it| it["kind"] == kind).unwrap();
        *object.pointer_mut(pointer).unwrap() = value;
    };
    break_it("Deployment", "/spec/selector/matchLabels", json!({"app": "other"}));
    break_it("Service", "/spec/ports/0/port", json!("many"));
    break_it("ClusterRole", "/rules/0/verbs", json!([]));
    break_it("CustomResourceDefinition", "/spec/scope", json!("Nowhere"));
    let lost =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "nowhere"}});
    let strange = json!({"apiVersion": "example.com/v1", "kind": "Strange", "metadata": {"name": "s"}});
    let misspelt = json!({"apiVersion": "v1", "kind": "ConfigMap", "dat": {},
                          "metadata": {"name": "c", "namespace": "acme-system"}});
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "dat": {},
                         "metadata": {"name": "c", "namespace": "default"}});
    objects.extend([lost, strange, misspelt, applied]);
    objects.extend(cert_manager());
    let trials = dry_run::try_all(&estate.cluster(), &objects, Detail::Brief).await.unwrap();
    let refusals: BTreeMap<String, String> = trials
        .into_iter()
        .filter_map(|it| match it.outcome {
            Outcome::Refused(refusal) => Some((refusal.object.to_string(), refusal.reason)),
            _ => None,
        })
        .collect();
    let expected = [
        ("ClusterRole acme-system-acme-manager-role", "verbs must contain at least one value"),
        ("ConfigMap acme-system/c", "unknown field \"dat\""),
        ("ConfigMap default/c", ".dat: field not declared in schema"),
        ("ConfigMap nowhere/c", "namespace nowhere is neither on the server nor among the objects"),
        ("CustomResourceDefinition acmeclusters.infrastructure.cluster.x-k8s.io", "Nowhere"),
        ("Deployment acme-system/acme-controller-manager", "`selector` does not match template `labels`"),
        ("Service acme-system/acme-webhook-service", "port"),
        ("Strange s", "the server does not serve kind Strange in example.com/v1"),
    ];
    assert_eq!(refusals.keys().map(String::as_str).collect::<Vec<_>>(), expected.map(|it| it.0));
    for (object, words) in expected {
        assert!(refusals[object].contains(words), "{object}: {}", refusals[object]);
    }
}

/// A caller that knows the CRDs gets the same answers as one that does not, and nothing is written.
async fn crds_are_tried_over_those_that_are_there(estate: &Estate, acme: &Release) {
    let same = acme.rendered(acme.components()).into_iter().find(is_crd).unwrap();
    let with = |object: &Value, pointer: &str, name: &str, value: Value| {
        let mut changed = object.clone();
        changed.pointer_mut(pointer).unwrap()[name] = value;
        changed
    };
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    let described = with(&same, schema, "description", "anew".into());
    let annotated = with(&same, "/metadata", "annotations", json!({"note": "new"}));
    let misspelt = with(&described, "/spec", "scpoe", "Cluster".into());
    let invalid = with(&same, schema, "type", "thing".into());

    let crds: Api<CustomResourceDefinition> = Api::all(estate.client.clone());
    let name = same["metadata"]["name"].as_str().unwrap();
    let live = crds.get(name).await.unwrap();
    let outdated = ObjectMeta { resource_version: Some("1".to_owned()), ..live.metadata.clone() };
    for known in [live.metadata.clone(), outdated] {
        let crds = Crds::from([(name.to_owned(), known)]);
        let known = Known { crds, ..Known::default() };
        for (object, generation, words) in [
            (&same, 0, ""),
            (&described, 1, ""),
            (&annotated, 0, ""),
            (&misspelt, 0, "field not declared in schema"),
            (&invalid, 0, "type: Unsupported value: \"thing\""),
        ] {
            let objects = std::slice::from_ref(object);
            let trial = dry_run::try_over(&estate.cluster(), objects, &known).await.unwrap().remove(0);
            match trial.outcome {
                Outcome::Stored(stored) => {
                    let expected = live.metadata.generation.map(|it| it + generation);
                    assert_eq!(stored["metadata"]["generation"].as_i64(), expected);
                    let wanted = &object["metadata"]["annotations"]["note"];
                    assert_eq!(stored["metadata"]["annotations"]["note"], *wanted);
                    assert_eq!(words, "");
                }
                Outcome::Refused(refusal) => {
                    assert!(!words.is_empty() && refusal.reason.contains(words), "{refusal}");
                }
                Outcome::Unknown => panic!("{} was not tried", trial.object),
            }
        }
    }
    assert_eq!(crds.get(name).await.unwrap(), live);
}

fn is_crd(object: &Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
}

async fn unreachable_webhooks_do_not_block(estate: &Estate) {
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "nobody"},
        "webhooks": [{
            "name": "nobody.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "timeoutSeconds": 1, "failurePolicy": "Fail",
            "clientConfig": {"service": {"name": "nobody", "namespace": "nowhere"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["configmaps"]}],
        }],
    });
    let map = |value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "guarded", "namespace": "default"},
               "data": {"key": value}})
    };
    let maps: Api<ConfigMap> = Api::namespaced(estate.client.clone(), "default");
    maps.create(&PostParams::default(), &serde_json::from_value(map("1")).unwrap()).await.unwrap();
    estate.apply(&[webhook]).await;
    let webhooks: Api<k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration> =
        Api::all(estate.client.clone());
    // Servers hear of a webhook a moment later.
    let refuses = async || {
        maps.create(
            &PostParams { dry_run: true, ..PostParams::default() },
            &serde_json::from_value(json!({"metadata": {"name": "probe"}})).unwrap(),
        )
        .await
        .is_err()
    };
    let deadline = std::time::Instant::now() + capstan_testkit::wait::LIMIT;
    while !refuses().await {
        assert!(std::time::Instant::now() < deadline, "the webhook is never asked");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let wanted = [map("2")];
    let intent = Intent { provider: "p", wanted: wanted.iter().collect(), removed: &[] };
    let preview = diff::preview(&estate.cluster(), &[intent]).await.unwrap();
    assert_eq!(preview.refusals, []);
    assert!(preview.notes[0].contains("ConfigMap default/guarded could not be tried"), "{:?}", preview.notes);
    assert!(preview.notes[0].contains("nobody.example.com"), "{:?}", preview.notes);
    // It can still be guessed what it would be like.
    let lines: Vec<_> = preview.providers[0].objects[0].difference.iter().map(ToString::to_string).collect();
    assert!(
        lines.contains(&"-  key: \"1\"".to_owned()) && lines.contains(&"+  key: \"2\"".to_owned()),
        "{lines:?}"
    );
    webhooks.delete("nobody", &kube::api::DeleteParams::default()).await.unwrap();
}

async fn upgrades_are_compared(estate: &Estate, acme: &Release) {
    let deployments: Api<Deployment> = Api::namespaced(estate.client.clone(), acme.namespace);
    let name = "acme-controller-manager";
    let by_hand = json!({"spec": {"replicas": 3, "template": {"spec": {"containers": [
        {"name": "manager", "args": ["--leader-elect", "--v=5"], "env": [{"name": "DEBUG", "value": "1"}]}]}}}});
    let hand = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    deployments.patch(name, &hand, &Patch::Strategic(&by_hand)).await.unwrap();

    let before = estate.labelled().await;
    let next = Release { version: "v1.1.0", kind: (acme.kind.0, acme.kind.1, &["v1beta2"]), ..acme.clone() };
    let mut components = next.components();
    components.retain(|it| it["kind"] != "ServiceAccount");
    let wanted = next.rendered(components);
    let removed = sweep::sweep(&estate.cluster(), &sweep::selector_of(acme.label)).await.unwrap();
    let intent = Intent { provider: acme.label, wanted: wanted.iter().collect(), removed: &removed };
    let preview = diff::preview(&estate.cluster(), &[intent]).await.unwrap();
    assert_eq!(those(&preview, Action::Created), [] as [&str; 0]);
    assert_eq!(
        those(&preview, Action::Deleted),
        ["Provider acme-system/infrastructure-acme", "ServiceAccount acme-system/acme-manager"]
    );
    let summary = &preview.providers[0].summary;
    assert_eq!(summary.images[0].to.as_deref(), Some("registry.example.com/acme:v1.1.0"));
    assert_eq!(preview.refusals, []);
    assert_eq!(summary.crds[0].versions_removed, ["v1beta1"]);
    let lost = |preview: &Preview| -> Vec<(String, String)> {
        preview.providers[0].summary.lost.iter().map(|it| (it.field.clone(), it.manager.clone())).collect()
    };
    let container = "spec.template.spec.containers[manager]";
    let field = |name: String| (name, "kubectl-edit".to_owned());
    let args = field(format!("{container}.args"));
    assert_eq!(lost(&preview), [field("spec.replicas".to_owned()), args]);
    // The rest stays as it is.
    let unchanged = those(&preview, Action::Unchanged);
    assert!(unchanged.contains(&"ClusterRole acme-system-acme-manager-role".to_owned()), "{unchanged:?}");
    assert_eq!(estate.labelled().await, before, "nothing was written");
}
