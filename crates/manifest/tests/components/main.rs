//! What becomes of a components file, rule by rule.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod instances;
mod laws;
mod moving;

use capstan_manifest::components::{self, Components, ComponentsError, Options};
use capstan_manifest::images::{Override, Overrides};
use capstan_manifest::yaml;
use serde_json::{Value, json};

const SHARED: &str = "capi-webhook-system";

fn options(images: &Overrides) -> Options<'_> {
    Options {
        label: "infrastructure-made-up",
        target_namespace: None,
        watching_namespace: None,
        rbac_prefix: true,
        images,
    }
}

/// Renders documents into namespace `new`, with the given changes to the options.
fn render_with(
    documents: Vec<Value>,
    change: impl FnOnce(Options<'_>) -> Options<'_>,
) -> Result<Components, ComponentsError> {
    let images = Overrides::default();
    components::render(documents, &change(Options { target_namespace: Some("new"), ..options(&images) }))
}

fn render(documents: Vec<Value>) -> Components {
    render_with(documents, |options| options).unwrap()
}

/// What becomes of one document, whose labels are of no interest.
fn rendered(document: Value) -> Value {
    let mut object = render(vec![document]).into_objects().pop().unwrap();
    object["metadata"].as_object_mut().unwrap().remove("labels");
    object
}

fn refused(documents: Vec<Value>) -> (String, Option<usize>) {
    let error = render_with(documents, |options| options).unwrap_err();
    (error.to_string(), error.document())
}

fn names(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect()
}

fn object(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
}

fn namespace(name: &str) -> Value {
    object("v1", "Namespace", name)
}

fn deployment(containers: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "old"},
        "spec": {"template": {"spec": {"containers": containers}}}})
}

fn made_up_provider() -> Vec<Value> {
    include_str!("../fixtures/components.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn comes_out_as_from_clusterctl() {
    let images = Overrides::default();
    let rendered =
        components::render(made_up_provider(), &Options { rbac_prefix: false, ..options(&images) }).unwrap();
    assert_eq!(
        yaml::to_multi_document(rendered.objects()),
        include_str!("../fixtures/components-by-clusterctl.yaml")
    );
    assert_eq!(rendered.target_namespace, "made-up-system");
}

#[test]
fn comes_out_as_from_clusterctl_with_other_images_elsewhere() {
    let all = Override { repository: "mirror.local/all/".to_owned(), ..Override::default() };
    let agent = Override { tag: "v9".to_owned(), ..Override::default() };
    let keys = ["all".to_owned(), "Infrastructure-Made-Up/agent".to_owned()];
    let images: Overrides = keys.into_iter().zip([all, agent]).collect();
    let target_namespace = Some("elsewhere-system");
    let options = Options { rbac_prefix: false, target_namespace, ..options(&images) };
    let rendered = components::render(made_up_provider(), &options).unwrap();
    let expected = include_str!("../fixtures/components-moved-by-clusterctl.yaml");
    assert_eq!(yaml::to_multi_document(rendered.objects()), expected);

    let expected = [
        "mirror.local/all/manager:v1.0.0".to_owned(),
        format!("mirror.local/all/kube-rbac-proxy@sha256:{}", "0123456789abcdef".repeat(4)),
        "mirror.local/all/busybox:1".to_owned(),
        "mirror.local/all/agent:v9".to_owned(),
    ];
    assert_eq!(rendered.images, expected);
    let listed = components::images(&made_up_provider(), &images, "infrastructure-made-up").unwrap();
    assert_eq!(listed, expected);
}

#[test]
fn the_target_is_what_is_asked_for_or_the_only_namespace() {
    let images = Overrides::default();
    let target = |documents: Vec<Value>, wanted| {
        let options = Options { target_namespace: wanted, ..options(&images) };
        components::render(documents, &options).map(|it| (it.target_namespace.clone(), it.objects().len()))
    };
    let found = |name: &str, objects| Ok((name.to_owned(), objects));
    assert_eq!(target(vec![namespace("own")], None), found("own", 1));
    assert_eq!(target(vec![namespace("own")], Some("")), found("own", 1));
    assert_eq!(target(vec![namespace("own")], Some("new")), found("new", 1));
    assert_eq!(target(vec![], Some("new")), found("new", 1));
    assert_eq!(target(vec![namespace(SHARED), namespace("own")], None), found("own", 2));
    assert_eq!(target(vec![namespace(SHARED)], Some("new")), found("new", 2));
    assert_eq!(target(vec![object("a.io/v1", "Namespace", "x")], Some("new")), found("new", 2));
    assert_eq!(target(vec![], None), Err(ComponentsError::NoTargetNamespace));
    assert_eq!(target(vec![namespace(SHARED)], None), Err(ComponentsError::NoTargetNamespace));
    assert_eq!(target(vec![], Some(SHARED)), Err(ComponentsError::SharedTarget));
    let error = target(vec![Value::Null, namespace("a"), namespace("b")], Some("new")).unwrap_err();
    let text = "there must be one Namespace among the components, but there are two: \"a\" and \"b\"";
    assert_eq!((error.to_string().as_str(), error.document()), (text, Some(2)));
}

#[test]
fn namespaces_come_first_and_certificates_in_reverse() {
    let documents = vec![
        object("v1", "A", "1"),
        object("cert-manager.io/v1", "Issuer", "2"),
        object("acme.cert-manager.io/v1", "Order", "3"),
        object("cert-manager.io/v1alpha2", "Certificate", "4"),
        namespace("5"),
        object("v1", "B", "6"),
        object("cert-manager.io/v1", "Certificate", "7"),
    ];
    assert_eq!(names(render(documents).objects()), ["new", "7", "4", "2", "1", "3", "6"]);
}

#[test]
fn labels_are_added_to_those_that_are_there() {
    let labels = |labels: Value| {
        let mut document = object("v1", "ConfigMap", "x");
        document["metadata"]["labels"] = labels;
        document
    };
    let ours =
        json!({"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": "infrastructure-made-up"});
    assert_eq!(render(vec![labels(json!(null))]).objects()[1]["metadata"]["labels"], ours);
    let mut both = ours;
    both["a"] = json!("b");
    let theirs = json!({"a": "b", "cluster.x-k8s.io/provider": "other"});
    assert_eq!(render(vec![labels(theirs)]).objects()[1]["metadata"]["labels"], both);
    for (wrong, expected) in [
        (json!({"a": "b", "c": true}), "ConfigMap x: label c: expected a string, found the boolean true"),
        (json!({"a": null}), "ConfigMap x: label a: expected a string, found nothing"),
        (json!(["a"]), "ConfigMap x: metadata.labels: expected an object, found a list"),
    ] {
        assert_eq!(refused(vec![labels(wrong)]), (expected.to_owned(), Some(0)));
    }
}

#[test]
fn errors_name_the_object() {
    let image = |image: &str| deployment(&json!([{"name": "c", "image": image}]));
    let unsupported = |object: &str, found: &str, only: &str| {
        format!("{object} x: apiVersion {found:?} is not supported for this kind, only {only}")
    };
    let crds = "apiextensions.k8s.io/v1 and apiextensions.k8s.io/v1beta1";
    let mut replicas = image("r.io/a");
    replicas["spec"]["replicas"] = json!("x");
    for (document, expected) in [
        (json!("text"), "document 2: expected an object, found the string \"text\"".to_owned()),
        (json!({}), "document 2: it has no kind".to_owned()),
        (json!({"kind": 1}), "document 2: it has no kind".to_owned()),
        (json!({"kind": "A", "metadata": []}), "A without a name (document 2): metadata: expected an object, found a list".to_owned()),
        (image("nginx"), "Deployment d: image \"nginx\" of container \"c\": it must name its registry; write docker.io/library/nginx".to_owned()),
        (image(""), "Deployment d: image \"\" of container \"c\": it is empty".to_owned()),
        (replicas, "Deployment d: spec.replicas: expected an integer of 32 bits, found the string \"x\"".to_owned()),
        (object("apps/v1beta1", "Deployment", "x"), unsupported("Deployment", "apps/v1beta1", "apps/v1")),
        (object("a.io/v1", "DaemonSet", "x"), unsupported("DaemonSet", "a.io/v1", "apps/v1")),
        (json!({"kind": "Deployment", "metadata": {"name": "x"}}), unsupported("Deployment", "", "apps/v1")),
        (
            object("a.io/v1", "ClusterRoleBinding", "x"),
            unsupported("ClusterRoleBinding", "a.io/v1", "rbac.authorization.k8s.io/v1"),
        ),
        (
            object("apiextensions.k8s.io/v2", "CustomResourceDefinition", "x"),
            unsupported("CustomResourceDefinition", "apiextensions.k8s.io/v2", crds),
        ),
    ] {
        assert_eq!(refused(vec![object("v1", "ConfigMap", "fine"), document]), (expected, Some(1)));
    }
}

#[test]
fn a_list_is_what_is_in_it() {
    let list = |items: Vec<Value>| json!({"apiVersion": "v1", "kind": "List", "items": items});
    let image = deployment(&json!([{"name": "c", "image": "r.io/a:1"}]));
    let rendered = render(vec![list(vec![namespace("own"), image.clone()]), object("v1", "Secret", "s")]);
    assert_eq!(names(rendered.objects()), ["new", "d", "s"]);
    assert!(rendered.objects()[1..].iter().all(|it| it["metadata"]["namespace"] == "new"));
    assert_eq!(rendered.images, ["r.io/a:1"]);
    assert_eq!(components::images(&[list(vec![image])], &Overrides::default(), "a").unwrap(), ["r.io/a:1"]);
    let two = vec![namespace("a"), list(vec![namespace("b")])];
    assert_eq!(refused(two).1, Some(1), "a second Namespace does not hide in a list");
}

#[test]
fn listing_images_looks_at_nothing_else() {
    let documents =
        [json!(["no object"]), json!({}), deployment(&json!([{"name": "c", "image": "r.io/a:1"}]))];
    let images = Overrides::default();
    assert_eq!(components::images(&documents, &images, "a").unwrap(), ["r.io/a:1"]);
    let wrong = [json!({}), deployment(&json!([{"name": "c", "image": "a"}]))];
    assert_eq!(components::images(&wrong, &images, "a").unwrap_err().document(), Some(1));
}

#[test]
fn images_are_replaced_in_every_kind_of_workload() {
    let pod = |prefix: &str| {
        json!({"containers": [{"name": "c", "image": format!("{prefix}c:1")}],
            "initContainers": [{"name": "i", "image": format!("{prefix}i:1")}]})
    };
    let workload = |api_version: &str, kind: &str, spec: Value| {
        let mut object = object(api_version, kind, "x");
        object["spec"] = spec;
        object
    };
    let template = |prefix: &str| json!({"template": {"spec": pod(prefix)}});
    let all = Override { repository: "mirror.local".to_owned(), ..Override::default() };
    let images: Overrides = [("all".to_owned(), all)].into_iter().collect();
    let options = Options { target_namespace: Some("new"), ..options(&images) };
    let replaced = &["mirror.local/c:1", "mirror.local/i:1"][..];
    for (api_version, kind, spec, expected, pod_at) in [
        ("apps/v1", "Deployment", template("r.io/"), replaced, "/spec/template/spec"),
        ("apps/v1", "DaemonSet", template("r.io/"), replaced, "/spec/template/spec"),
        ("apps/v1", "StatefulSet", template("r.io/"), replaced, "/spec/template/spec"),
        ("apps/v1", "ReplicaSet", template("r.io/"), replaced, "/spec/template/spec"),
        ("batch/v1", "Job", template("r.io/"), replaced, "/spec/template/spec"),
        ("batch/v1", "Job", template(""), replaced, "/spec/template/spec"),
        (
            "batch/v1",
            "CronJob",
            json!({"jobTemplate": {"spec": template("r.io/")}}),
            replaced,
            "/spec/jobTemplate/spec/template/spec",
        ),
        ("v1", "Pod", pod("r.io/"), replaced, "/spec"),
        // Kinds of other groups are not ours to understand.
        ("batch.volcano.sh/v1", "Job", template("r.io/"), &[], "/spec/template/spec"),
        ("apps.kruise.io/v1", "StatefulSet", template("r.io/"), &[], "/spec/template/spec"),
    ] {
        let document = workload(api_version, kind, spec);
        let listed =
            components::images(std::slice::from_ref(&document), &images, "infrastructure-made-up").unwrap();
        assert_eq!(listed, expected, "{api_version} {kind}");
        let rendered = components::render(vec![document], &options).unwrap();
        assert_eq!(rendered.images, expected, "{api_version} {kind}");
        let pod = rendered.objects()[1].pointer(pod_at).unwrap();
        let found = [&pod["containers"][0]["image"], &pod["initContainers"][0]["image"]];
        let expected = if expected.is_empty() { &["r.io/c:1", "r.io/i:1"][..] } else { expected };
        assert_eq!(found, expected, "{api_version} {kind}");
    }
}

#[test]
fn workloads_that_clusterctl_does_not_look_at_stay_as_they_are() {
    for (kind, image) in [("Job", json!("nginx")), ("Job", json!("${IMAGE}")), ("Job", Value::Null)] {
        let mut job = object("batch/v1", kind, "x");
        job["spec"] = json!({"template": {"spec": {"containers": [{"name": "c", "image": image}]}}});
        let listed: Vec<&str> = image.as_str().into_iter().collect();
        assert_eq!(render(vec![job.clone()]).images, listed);
        assert_eq!(rendered(job.clone())["spec"], job["spec"]);
    }
    let mut job = object("batch/v1", "Job", "x");
    job["spec"] = json!({"template": {"spec": {"containers": [{"name": "c", "image": "Not Valid"}]}}});
    let all = Override { repository: "mirror.local".to_owned(), ..Override::default() };
    let images: Overrides = [("all".to_owned(), all)].into_iter().collect();
    let error = components::images(&[job], &images, "a").unwrap_err();
    assert!(error.to_string().starts_with("Job x: image \"Not Valid\" of container \"c\""), "{error}");
}
