//! What becomes of a components file, rule by rule.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

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
    let mut object = render(vec![document]).into_objects().remove(1);
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
    include_str!("fixtures/components.jsonl")
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
        include_str!("fixtures/components-by-clusterctl.yaml")
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
    let expected = include_str!("fixtures/components-moved-by-clusterctl.yaml");
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
fn only_namespaced_kinds_get_the_namespace() {
    let crd = |scope: &str| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": scope},
            "spec": {"group": "a.io", "names": {"kind": scope}, "scope": scope}})
    };
    let cases = [
        ("v1", "ConfigMap", true),
        ("v1", "Node", false),
        ("a.io/v1", "Node", true),
        ("a.io/v1", "Unknown", true),
        ("a.io/v1", "Namespaced", true),
        ("a.io/v2", "Cluster", false),
        ("b.io/v2", "Cluster", true),
        ("cert-manager.io/v1", "Issuer", true),
        ("cert-manager.io/v1", "ClusterIssuer", false),
        ("apiregistration.k8s.io/v1", "APIService", false),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", false),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", false),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", false),
        ("rbac.authorization.k8s.io/v1", "Role", true),
        ("scheduling.k8s.io/v1", "PriorityClass", false),
        ("networking.k8s.io/v1", "IngressClass", false),
        ("runtime.cluster.x-k8s.io/v1beta2", "ExtensionConfig", false),
    ];
    for (api_version, kind, is_namespaced) in cases {
        let documents = vec![crd("Namespaced"), object(api_version, kind, "x"), crd("Cluster")];
        let rendered = render(documents).into_objects();
        let object = rendered.iter().find(|it| it["kind"] == kind).unwrap();
        let expected = if is_namespaced { json!("new") } else { Value::Null };
        assert_eq!(object["metadata"]["namespace"], expected, "{api_version} {kind}");
    }
}

#[test]
fn where_a_ca_comes_from_follows_on_every_kind() {
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("apiregistration.k8s.io/v1", "APIService"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    ] {
        for annotation in ["cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret"] {
            let annotated = |value: Value| {
                let mut document = object(api_version, kind, "x");
                document["metadata"]["annotations"] = json!({annotation: value, "other": "old/x"});
                document
            };
            let after = |value: &str| rendered(annotated(json!(value)))["metadata"]["annotations"].clone();
            assert_eq!(after("old/cert"), json!({annotation: "new/cert", "other": "old/x"}));
            assert_eq!(after("capi-webhook-system/cert")[annotation], "capi-webhook-system/cert");
            for wrong in ["cert", "a/b/c", "/cert", "old/", ""] {
                let expected = format!(
                    "{kind} x: annotation {annotation}: expected namespace/name, found the string {wrong:?}"
                );
                assert_eq!(refused(vec![annotated(json!(wrong))]), (expected, Some(0)));
            }
        }
    }
    let mut wrong = object("v1", "ConfigMap", "x");
    wrong["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": 1});
    let (text, _) = refused(vec![wrong]);
    assert!(text.ends_with("expected namespace/name, found the number 1"), "{text}");
}

#[test]
fn references_to_services_follow() {
    let service = |namespace: &str| json!({"service": {"name": "s", "namespace": namespace}});
    let crd = |version: &str, conversion: Value| {
        json!({"apiVersion": format!("apiextensions.k8s.io/{version}"), "kind": "CustomResourceDefinition",
            "metadata": {"name": "x"}, "spec": {"conversion": conversion}})
    };
    let webhooks = |kind: &str, version: &str, namespace: &str| {
        json!({"apiVersion": format!("admissionregistration.k8s.io/{version}"), "kind": kind, "metadata": {"name": "x"},
            "webhooks": [{"clientConfig": {"url": "u"}}, {"clientConfig": service(namespace)}]})
    };
    for (before, after) in [("old", "new"), ("elsewhere", "new"), (SHARED, SHARED)] {
        let expected = json!({"name": "s", "namespace": after});
        let new = rendered(crd("v1", json!({"webhook": {"clientConfig": service(before)}})));
        assert_eq!(new["spec"]["conversion"]["webhook"]["clientConfig"]["service"], expected);
        let old = rendered(crd("v1beta1", json!({"webhookClientConfig": service(before)})));
        assert_eq!(old["spec"]["conversion"]["webhookClientConfig"]["service"], expected);
        for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
            for version in ["v1", "v1beta1"] {
                let object = rendered(webhooks(kind, version, before));
                assert_eq!(object["webhooks"][0]["clientConfig"], json!({"url": "u"}));
                assert_eq!(object["webhooks"][1]["clientConfig"]["service"], expected);
            }
        }
        let mut api = object("apiregistration.k8s.io/v1", "APIService", "x");
        api["spec"] = service(before);
        assert_eq!(rendered(api)["spec"]["service"], expected);
    }
}

#[test]
fn subjects_follow() {
    for kind in ["RoleBinding", "ClusterRoleBinding"] {
        let mut binding = object("rbac.authorization.k8s.io/v1", kind, "new-x");
        binding["subjects"] = json!([
            {"kind": "ServiceAccount", "name": "a", "namespace": "old"},
            {"kind": "ServiceAccount", "name": "b", "namespace": "kube-system"},
            {"kind": "ServiceAccount", "name": "c", "namespace": SHARED},
            {"kind": "User", "name": "d"},
        ]);
        let object = rendered(binding);
        let namespaces: Vec<_> =
            object["subjects"].as_array().unwrap().iter().map(|it| &it["namespace"]).collect();
        assert_eq!(namespaces, [&json!("new"), &json!("new"), &json!(SHARED), &Value::Null]);
    }
}

#[test]
fn host_names_of_certificates_follow() {
    let certificate = |namespace: &str, spec: Value| {
        json!({"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": {"name": "x", "namespace": namespace}, "spec": spec})
    };
    let spec = |ns: &str| {
        json!({"commonName": format!("a.{ns}.svc"), "uris": [format!("spiffe://a.{ns}.svc/x")],
            "dnsNames": [format!("a.{ns}.svc"), format!("b.{ns}.svc.cluster.local"), "a.other.svc", "old"]})
    };
    assert_eq!(rendered(certificate("old", spec("old")))["spec"], spec("new"));
    assert_eq!(
        rendered(certificate("old", json!({"dnsNames": ["a.old.old.old.svc"]})))["spec"]["dnsNames"][0],
        "a.new.old.old.svc"
    );
    assert_eq!(rendered(certificate(SHARED, spec(SHARED)))["spec"], spec(SHARED));
    assert_eq!(rendered(certificate("", json!({"dnsNames": ["a..b"]})))["spec"]["dnsNames"][0], "a..b");
    assert_eq!(rendered(certificate("old", json!({"dnsNames": null})))["spec"], json!({"dnsNames": null}));
    let (text, _) = refused(vec![certificate("old", json!({"dnsNames": ["a", 1]}))]);
    assert_eq!(text, "Certificate x: spec.dnsNames[1]: expected a string, found the number 1");
    let (text, _) = refused(vec![certificate("old", json!({"uris": "a"}))]);
    assert_eq!(text, "Certificate x: spec.uris: expected a list, found the string \"a\"");
}

#[test]
fn cluster_wide_roles_get_a_prefix_and_references_follow() {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let api_version = "rbac.authorization.k8s.io/v1";
    let role = |kind: &str, name: &str, rules: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "rules": rules});
    let binding = |kind: &str, name: &str, role: [&str; 2]| {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name},
            "roleRef": {"apiGroup": GROUP, "kind": role[0], "name": role[1]}, "subjects": []})
    };
    let rules = json!([
        {"apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["manager", "cluster-admin", "binding"]},
        {"apiGroups": [GROUP], "resources": ["clusterrolebindings"], "resourceNames": ["manager", "binding"]},
        {"apiGroups": [GROUP], "resources": ["clusterroles", "roles"], "resourceNames": ["manager"]},
        {"apiGroups": [GROUP], "resources": ["clusterroles", "clusterrolebindings"], "resourceNames": ["manager", "both"]},
        {"apiGroups": ["*"], "resources": ["*"], "resourceNames": ["manager"]},
        {"apiGroups": [""], "resources": ["clusterroles"], "resourceNames": ["manager"]},
        {"apiGroups": [GROUP], "resources": ["clusterroles"]},
    ]);
    let documents = vec![
        role("ClusterRole", "manager", rules.clone()),
        role("ClusterRole", "new-already", json!([])),
        role("ClusterRole", "both", json!([])),
        role("Role", "manager", rules),
        binding("ClusterRoleBinding", "binding", ["ClusterRole", "manager"]),
        binding("ClusterRoleBinding", "both", ["ClusterRole", "cluster-admin"]),
        binding("ClusterRoleBinding", "new-binding-too", ["ClusterRole", "new-already"]),
        binding("RoleBinding", "one", ["ClusterRole", "manager"]),
        binding("RoleBinding", "two", ["Role", "manager"]),
    ];
    let objects = render(documents.clone()).into_objects();
    let objects = &objects[1..];
    let expected = [
        "new-manager",
        "new-already",
        "new-both",
        "manager",
        "new-binding",
        "new-both",
        "new-binding-too",
        "one",
        "two",
    ];
    assert_eq!(names(objects), expected);
    let roles: Vec<_> = objects[4..].iter().map(|it| it["roleRef"]["name"].as_str().unwrap()).collect();
    assert_eq!(roles, ["new-manager", "cluster-admin", "new-already", "new-manager", "manager"]);
    for role in [&objects[0], &objects[3]] {
        let named: Vec<_> =
            role["rules"].as_array().unwrap().iter().map(|it| it["resourceNames"].clone()).collect();
        let expected = [
            json!(["new-manager", "cluster-admin", "binding"]),
            json!(["manager", "new-binding"]),
            json!(["manager", "new-manager"]),
            json!(["manager", "new-manager", "new-both"]),
            json!(["manager", "new-manager"]),
            json!(["manager"]),
            Value::Null,
        ];
        assert_eq!(named, expected);
    }

    let left_alone = render_with(documents, |options| Options { rbac_prefix: false, ..options }).unwrap();
    let roles: Vec<_> =
        left_alone.objects()[5..].iter().map(|it| it["roleRef"]["name"].as_str().unwrap()).collect();
    assert_eq!(roles, ["manager", "cluster-admin", "new-already", "manager", "manager"]);
    assert_eq!(names(left_alone.objects())[1], "manager");
}

#[test]
fn a_prefix_makes_no_two_roles_one() {
    let role = |name| object("rbac.authorization.k8s.io/v1", "ClusterRole", name);
    let expected = "ClusterRole a cannot be renamed to new-a, which is there already".to_owned();
    assert_eq!(refused(vec![role("new-a"), role("a")]), (expected, Some(1)));
}

#[test]
fn the_manager_is_told_what_to_watch() {
    let watching = |container: Value| {
        let documents = vec![deployment(&json!([{"name": "sidecar", "image": "r.io/a"}, container]))];
        let rendered =
            render_with(documents, |options| Options { watching_namespace: Some("team"), ..options });
        let pod = rendered.unwrap().objects()[1]["spec"]["template"]["spec"]["containers"].clone();
        assert_eq!(pod[0].get("args"), None);
        json!([pod[1]["command"], pod[1]["args"]])
    };
    let manager = |command: Value, args: Value| json!({"name": "manager", "image": "r.io/a", "command": command, "args": args});
    for (command, args, expected) in [
        (json!(null), json!(null), json!([null, ["--namespace=team"]])),
        (json!(["/m"]), json!(["--v=2"]), json!([["/m"], ["--v=2", "--namespace=team"]])),
        (json!(["/m"]), json!(["--namespace=x", "--v=2"]), json!([["/m"], ["--namespace=team", "--v=2"]])),
        (json!(["/m"]), json!(["--namespace", "x", "--v=2"]), json!([["/m"], ["--namespace=team", "--v=2"]])),
        (json!(["/m"]), json!(["--v=2", "--namespace"]), json!([["/m"], ["--v=2", "--namespace=team"]])),
        (json!(["/m", "--namespace="]), json!(["--v=2"]), json!([["/m", "--namespace=team"], ["--v=2"]])),
        (json!(["/m"]), json!(["--namespaces=x"]), json!([["/m"], ["--namespaces=x", "--namespace=team"]])),
    ] {
        assert_eq!(watching(manager(command.clone(), args.clone())), expected, "{command} {args}");
    }
}

#[test]
fn without_a_manager_nobody_can_be_told_what_to_watch() {
    let other = deployment(&json!([{"name": "other", "image": "r.io/a"}]));
    let mut shared = deployment(&json!([{"name": "manager", "image": "r.io/a"}]));
    shared["metadata"]["namespace"] = json!(SHARED);
    let watch = |namespace| {
        let documents = vec![other.clone(), shared.clone()];
        render_with(documents, |options| Options { watching_namespace: namespace, ..options })
    };
    let expected = "cannot watch only namespace team: no Deployment has a container named \"manager\"";
    assert_eq!(watch(Some("team")).unwrap_err().to_string(), expected);
    assert!(watch(Some("")).is_ok());
    assert!(watch(None).is_ok());
}

#[test]
fn shared_objects_stay_where_they_are() {
    let in_shared = |api_version, kind, name| {
        let mut object = object(api_version, kind, name);
        object["metadata"]["namespace"] = json!(SHARED);
        object
    };
    let rendered = render(vec![
        object("v1", "ConfigMap", "own"),
        in_shared("v1", "Service", "webhook"),
        object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "crd"),
        namespace(SHARED),
        in_shared("rbac.authorization.k8s.io/v1", "ClusterRole", "cluster-wide"),
        in_shared("cert-manager.io/v1", "Certificate", "serving"),
        object("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutating"),
    ]);
    let all = [SHARED, "new", "serving", "own", "webhook", "crd", "new-cluster-wide", "mutating"];
    assert_eq!(names(rendered.objects()), all);
    let shared: Vec<Value> = rendered.shared().cloned().collect();
    assert_eq!(names(&shared), [SHARED, "serving", "webhook", "crd", "mutating"]);
    let instance: Vec<Value> = rendered.instance().cloned().collect();
    assert_eq!(names(&instance), ["new", "own", "new-cluster-wide"]);
    for object in &shared[1..3] {
        assert_eq!(object["metadata"]["namespace"], SHARED);
    }
    for object in rendered.objects() {
        assert_eq!(object["metadata"]["labels"]["cluster.x-k8s.io/provider"], "infrastructure-made-up");
    }
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
fn listing_images_looks_at_nothing_else() {
    let documents =
        [json!(["no object"]), json!({}), deployment(&json!([{"name": "c", "image": "r.io/a:1"}]))];
    let images = Overrides::default();
    assert_eq!(components::images(&documents, &images, "a").unwrap(), ["r.io/a:1"]);
    let wrong = [json!({}), deployment(&json!([{"name": "c", "image": "a"}]))];
    assert_eq!(components::images(&wrong, &images, "a").unwrap_err().document(), Some(1));
}
