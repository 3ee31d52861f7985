//! What holds for all components, whatever is in the file.

use capstan_manifest::components::{self, Components, ComponentsError, Options};
use capstan_manifest::images::Overrides;
use capstan_manifest::template;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn render(documents: Vec<Value>) -> Result<Components, ComponentsError> {
    let images = Overrides::default();
    let options = Options {
        label: "infrastructure-made-up",
        target_namespace: Some("target"),
        watching_namespace: None,
        rbac_prefix: true,
        images: &images,
    };
    components::render(documents, &options)
}

/// Kinds that are treated in ways of their own, and some that are not.
const KINDS: &[(&str, &str)] = &[
    ("v1", "ConfigMap"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "DaemonSet"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("cert-manager.io/v1", "Certificate"),
    ("cert-manager.io/v1", "Issuer"),
    ("made-up.io/v1", "Thing"),
];

/// Those of the kinds above that live in no namespace.
const CLUSTER_SCOPED: &[&str] =
    &["ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration", "CustomResourceDefinition"];

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b"), Just("manager"), Just("target-a")].prop_map(str::to_owned)
}

fn namespace() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!("old")),
        Just(json!("capi-webhook-system")),
        Just(json!("target")),
        Just(Value::Null)
    ]
}

/// Objects that an API server might take.
fn object() -> impl Strategy<Value = Value> {
    let parts = (prop::sample::select(KINDS), name(), namespace(), name(), namespace());
    parts.prop_map(|((api_version, kind), name, namespace, other, elsewhere)| {
        let host = format!("a.{}.svc", namespace.as_str().unwrap_or_default());
        let client = json!({"service": {"name": other, "namespace": elsewhere}});
        let mut object = json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"dnsNames": [host], "conversion": {"webhook": {"clientConfig": client}}},
            "webhooks": [{"name": other, "clientConfig": client}],
            "roleRef": {"kind": "ClusterRole", "name": other},
            "subjects": [{"kind": "ServiceAccount", "name": other, "namespace": elsewhere}],
            "rules": [{"apiGroups": ["*"], "resources": ["clusterroles", "roles"], "resourceNames": [other]}]});
        if kind == "Deployment" {
            let container = json!({"name": other, "image": "r.io/a/b:c", "resources": {"limits": {"cpu": "0.1"}}});
            object["spec"] = json!({"template": {"spec": {"containers": [container]}}});
        }
        object
    })
}

/// Any JSON, often with names that mean something.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9./:@-]{0,8}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        prop::sample::select(
            &["metadata", "spec", "labels", "annotations", "template", "containers", "rules"][..]
        ),
        prop::sample::select(
            &["name", "namespace", "subjects", "roleRef", "webhooks", "resourceNames", "image"][..]
        ),
        prop::sample::select(
            &["dnsNames", "cert-manager.io/inject-ca-from", "versions", "schema", "args"][..]
        ),
    ];
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..4).prop_map(|entries| {
                Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

/// Documents of any content that begin like objects.
fn document() -> impl Strategy<Value = Value> {
    (prop::sample::select(KINDS), prop::collection::vec(anything(), 3)).prop_map(
        |((api_version, kind), parts)| {
            let mut object = Map::new();
            object.insert("apiVersion".to_owned(), json!(api_version));
            object.insert("kind".to_owned(), json!(kind));
            object.extend(["metadata", "spec", "rules"].map(str::to_owned).into_iter().zip(parts));
            Value::Object(object)
        },
    )
}

/// Kinds and names, with the prefix that some names get.
fn identities(objects: &[Value]) -> Vec<String> {
    let mut all: Vec<String> = objects
        .iter()
        .map(|object| {
            let (kind, name) =
                (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
            let name =
                if kind.starts_with("ClusterRole") { name.trim_start_matches("target-") } else { name };
            format!("{kind} {name}")
        })
        .collect();
    all.sort();
    all
}

proptest! {
    #[test]
    fn rendering_again_changes_nothing(documents in prop::collection::vec(object(), 0..12)) {
        if let Ok(once) = render(documents) {
            let twice = render(once.objects().to_vec()).unwrap();
            prop_assert_eq!(&once, &twice);
        }
    }

    #[test]
    fn nothing_is_lost(documents in prop::collection::vec(object(), 0..12)) {
        let mut expected = documents.clone();
        expected.push(json!({"kind": "Namespace", "metadata": {"name": "target"}}));
        let is_shared = |it: &Value| {
            let (kind, namespace) = (it["kind"].as_str().unwrap(), &it["metadata"]["namespace"]);
            !CLUSTER_SCOPED.contains(&kind) && namespace == "capi-webhook-system"
        };
        if documents.iter().any(is_shared) {
            expected.push(json!({"kind": "Namespace", "metadata": {"name": "capi-webhook-system"}}));
        }
        if let Ok(rendered) = render(documents) {
            prop_assert_eq!(identities(&expected), identities(rendered.objects()));
        }
    }

    /// Where an object comes depends on the order of the input only: those of the same rank keep theirs.
    #[test]
    fn order_is_that_of_the_input(documents in prop::collection::vec(object(), 0..12)) {
        let numbered = documents.into_iter().enumerate().map(|(at, mut document)| {
            document["metadata"]["annotations"] = json!({"at": at.to_string()});
            document
        });
        if let Ok(rendered) = render(numbered.collect()) {
            let place = |object: &Value| -> Option<i64> {
                object["metadata"]["annotations"]["at"].as_str()?.parse().ok()
            };
            let rank = |object: &Value| -> (u8, i64) {
                let place = place(object).unwrap_or(-1);
                match (object["kind"].as_str(), object["apiVersion"].as_str()) {
                    (Some("Namespace"), _) => (0, place),
                    (_, Some("cert-manager.io/v1")) => (1, -place),
                    _ => (2, place),
                }
            };
            prop_assert!(rendered.objects().iter().map(rank).is_sorted());
        }
    }

    #[test]
    fn any_document_is_taken_or_refused(documents in prop::collection::vec(prop_oneof![document(), anything()], 0..4)) {
        let count = documents.len();
        if let Err(error) = render(documents.clone()) {
            prop_assert!(error.document().is_none_or(|document| document < count), "{}", error);
        }
        if let Ok(objects) = template::render(documents, Some("target")) {
            prop_assert!(objects.len() <= count);
        }
    }
}
