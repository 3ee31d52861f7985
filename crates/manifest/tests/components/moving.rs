//! Objects and what refers to them go to the target namespace; what is shared stays.

use serde_json::{Value, json};

use crate::{SHARED, names, namespace, object, refused, render, rendered};

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
fn shared_objects_stay_where_they_are() {
    let in_shared = |api_version, kind, name| {
        let mut object = object(api_version, kind, name);
        object["metadata"]["namespace"] = json!(SHARED);
        object
    };
    let with = |namespaces: Vec<Value>| {
        let mut documents = namespaces;
        documents.extend([
            object("v1", "ConfigMap", "own"),
            in_shared("v1", "Service", "webhook"),
            object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "crd"),
            in_shared("rbac.authorization.k8s.io/v1", "ClusterRole", "cluster-wide"),
            in_shared("cert-manager.io/v1", "Certificate", "serving"),
            object("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutating"),
        ]);
        render(documents)
    };
    // The namespace is added where the file does not bring it.
    let mut without = with(vec![namespace("own-system")]).into_objects();
    without.swap(0, 1);
    assert_eq!(without, with(vec![namespace(SHARED), namespace("own-system")]).into_objects());
    let rendered = with(vec![namespace(SHARED)]);
    let all = [SHARED, "new", "serving", "own", "webhook", "crd", "new-cluster-wide", "mutating"];
    assert_eq!(names(rendered.objects()), all);
    for (object, namespace) in [("serving", SHARED), ("webhook", SHARED), ("own", "new")] {
        let object = rendered.objects().iter().find(|it| it["metadata"]["name"] == object).unwrap();
        assert_eq!(object["metadata"]["namespace"], namespace);
    }
    for object in rendered.objects() {
        assert_eq!(object["metadata"]["labels"]["cluster.x-k8s.io/provider"], "infrastructure-made-up");
    }
}

#[test]
fn the_shared_namespace_is_added_only_for_objects_in_it() {
    let in_shared = |api_version, kind| {
        let mut object = object(api_version, kind, "x");
        object["metadata"]["namespace"] = json!(SHARED);
        object
    };
    let mut webhooks =
        object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "references-it");
    webhooks["webhooks"] = json!([{"clientConfig": {"service": {"name": "s", "namespace": SHARED}}}]);
    for (document, expected) in [
        (in_shared("v1", "Service"), &["new", SHARED][..]),
        (in_shared("rbac.authorization.k8s.io/v1", "ClusterRole"), &["new"]),
        (webhooks, &["new"]),
    ] {
        let rendered = render(vec![document]).into_objects();
        let namespaces: Vec<Value> = rendered.into_iter().filter(|it| it["kind"] == "Namespace").collect();
        assert_eq!(names(&namespaces), expected);
        for namespace in &namespaces {
            assert_eq!(
                namespace["metadata"]["labels"]["cluster.x-k8s.io/provider"],
                "infrastructure-made-up"
            );
        }
    }
}
