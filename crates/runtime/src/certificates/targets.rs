//! The objects that hold the webhooks' CA bundle.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{
        MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
    },
};
use kube::api::{DynamicObject, ObjectMeta};
use serde_json::{Value, json};

use super::{FIELD_MANAGER, WebhookIdentity};

/// Annotations that ask cert-manager for a bundle. They are removed: otherwise two controllers would write the same
/// field for ever, and ours is the certificate that the webhooks serve.
const INJECTORS: [&str; 3] = [
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
];

/// The kinds of object that hold a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum TargetKind {
    Crd,
    Mutating,
    Validating,
}

impl TargetKind {
    fn api_version(self) -> &'static str {
        match self {
            Self::Crd => "apiextensions.k8s.io/v1",
            Self::Mutating | Self::Validating => "admissionregistration.k8s.io/v1",
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Crd => "CustomResourceDefinition",
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
        }
    }
}

/// An object that points API servers at our webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) resource_version: Option<String>,
    uid: Option<String>,
    /// Other field managers of our webhooks' bundles.
    rivals: Vec<String>,
    /// Annotations that ask cert-manager for a bundle.
    injectors: Vec<&'static str>,
    /// The webhooks that are ours, by name, each with its bundle. A CRD's only one has no name.
    webhooks: Vec<(String, Vec<u8>)>,
}

impl Target {
    /// A CRD, if our webhook converts its objects.
    pub(super) fn of_crd(crd: &DynamicObject, us: &WebhookIdentity) -> Option<Self> {
        let config = crd.data.pointer("/spec/conversion/webhook/clientConfig")?;
        let config: WebhookClientConfig = serde_json::from_value(config.clone()).ok()?;
        Self::new(TargetKind::Crd, &crd.metadata, [(String::new(), &config)], us)
    }

    /// A configuration, if any of its webhooks is ours.
    pub(super) fn of_mutating(object: &MutatingWebhookConfiguration, us: &WebhookIdentity) -> Option<Self> {
        let webhooks = object.webhooks.iter().flatten().map(|it| (it.name.clone(), &it.client_config));
        Self::new(TargetKind::Mutating, &object.metadata, webhooks, us)
    }

    /// A configuration, if any of its webhooks is ours.
    pub(super) fn of_validating(
        object: &ValidatingWebhookConfiguration,
        us: &WebhookIdentity,
    ) -> Option<Self> {
        let webhooks = object.webhooks.iter().flatten().map(|it| (it.name.clone(), &it.client_config));
        Self::new(TargetKind::Validating, &object.metadata, webhooks, us)
    }

    fn new<'a>(
        kind: TargetKind,
        metadata: &ObjectMeta,
        webhooks: impl IntoIterator<Item = (String, &'a WebhookClientConfig)>,
        us: &WebhookIdentity,
    ) -> Option<Self> {
        let is_ours = |config: &WebhookClientConfig| {
            let service = config.service.as_ref();
            service.is_some_and(|it| it.name == us.service && it.namespace == us.namespace)
        };
        let bundle = |config: &WebhookClientConfig| config.ca_bundle.as_ref().map(|it| it.0.clone());
        let webhooks: Vec<_> = webhooks
            .into_iter()
            .filter(|(_, config)| is_ours(config))
            .map(|(name, config)| (name, bundle(config).unwrap_or_default()))
            .collect();
        let annotations = metadata.annotations.as_ref();
        let annotated = |name: &&str| annotations.is_some_and(|it| it.contains_key(*name));
        let injectors = INJECTORS.into_iter().filter(annotated).collect();
        let (resource_version, uid) = (metadata.resource_version.clone(), metadata.uid.clone());
        let rivals = rivals(kind, metadata, &webhooks);
        (!webhooks.is_empty()).then_some(Self { resource_version, uid, rivals, injectors, webhooks })
    }

    /// The field managers that write the same bundle.
    pub(super) fn rival(&self) -> String {
        if self.rivals.is_empty() { "another writer".to_owned() } else { self.rivals.join(" and ") }
    }

    /// What an event about this object refers to.
    pub(super) fn reference(&self, kind: TargetKind, name: &str) -> ObjectReference {
        ObjectReference {
            api_version: Some(kind.api_version().to_owned()),
            kind: Some(kind.name().to_owned()),
            name: Some(name.to_owned()),
            uid: self.uid.clone(),
            ..ObjectReference::default()
        }
    }

    /// Whether every webhook of ours has this bundle, and no annotation asks for another.
    pub(super) fn carries(&self, bundle: &str) -> bool {
        self.injectors.is_empty() && self.webhooks.iter().all(|(_, found)| found == bundle.as_bytes())
    }

    /// Records that the bundle was written.
    pub(super) fn set(&mut self, bundle: &str) {
        self.injectors.clear();
        self.rivals.clear();
        for (_, found) in &mut self.webhooks {
            *found = bundle.as_bytes().to_vec();
        }
    }

    /// Puts the bundle where it is missing, if the object is still as it was seen: a merge patch for a CRD, a
    /// strategic one (which finds webhooks by their names) for the others.
    pub(super) fn patch(&self, kind: TargetKind, bundle: &str) -> Value {
        let bundle = ByteString(bundle.as_bytes().to_vec());
        let mut patch = json!({"metadata": {"resourceVersion": self.resource_version}});
        for name in &self.injectors {
            patch["metadata"]["annotations"][*name] = Value::Null;
        }
        if kind == TargetKind::Crd {
            patch["spec"] = json!({"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}});
        } else {
            let webhooks = self.webhooks.iter();
            patch["webhooks"] = webhooks
                .map(|(name, _)| json!({"name": name, "clientConfig": {"caBundle": bundle}}))
                .collect();
        }
        patch
    }
}

/// The other field managers of our webhooks' bundles.
fn rivals(kind: TargetKind, metadata: &ObjectMeta, webhooks: &[(String, Vec<u8>)]) -> Vec<String> {
    let owns = |fields: &Value| {
        webhooks.iter().any(|(name, _)| {
            let config = if kind == TargetKind::Crd {
                fields.pointer("/f:spec/f:conversion/f:webhook/f:clientConfig")
            } else {
                let key = format!("k:{}", json!({ "name": name }));
                fields.get("f:webhooks").and_then(|it| it.get(&key)?.get("f:clientConfig"))
            };
            config.is_some_and(|it| it.get("f:caBundle").is_some())
        })
    };
    let entries = metadata.managed_fields.iter().flatten();
    let mut names: Vec<_> = entries
        .filter(|entry| entry.fields_v1.as_ref().is_some_and(|it| owns(&it.0)))
        .filter_map(|entry| entry.manager.clone())
        .filter(|manager| manager != FIELD_MANAGER)
        .collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us() -> WebhookIdentity {
        WebhookIdentity { namespace: "n".into(), service: "s".into(), secret: "x".into() }
    }

    fn config(namespace: &str, service: &str, bundle: Option<&str>) -> Value {
        let bundle = bundle.map(|it| ByteString(it.as_bytes().to_vec()));
        json!({"service": {"namespace": namespace, "name": service, "path": "/p"}, "caBundle": bundle})
    }

    fn crd(conversion: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "metadata": {"name": "c", "resourceVersion": "7"}, "spec": {"conversion": conversion},
        }))
        .unwrap()
    }

    #[test]
    fn only_what_is_ours_is_a_target() {
        let webhook =
            |config: Value| crd(&json!({"strategy": "Webhook", "webhook": {"clientConfig": config}}));
        for (crd, expected) in [
            (webhook(config("n", "s", None)), true),
            (webhook(config("n", "s", Some("old"))), true),
            (webhook(config("n", "other", None)), false),
            (webhook(config("other", "s", None)), false),
            (webhook(json!({"url": "https://127.0.0.1/convert"})), false),
            (webhook(json!("text")), false),
            (crd(&json!({"strategy": "None"})), false),
        ] {
            assert_eq!(Target::of_crd(&crd, &us()).is_some(), expected, "{:?}", crd.data);
        }
        let target = Target::of_crd(&webhook(config("n", "s", Some("old"))), &us()).unwrap();
        assert!(target.carries("old") && !target.carries("new"));
        assert_eq!(
            target.patch(TargetKind::Crd, "new"),
            json!({"metadata": {"resourceVersion": "7"},
                "spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": "bmV3"}}}}})
        );
    }

    #[test]
    fn no_annotation_asks_for_another_bundle() {
        let conversion =
            json!({"strategy": "Webhook", "webhook": {"clientConfig": config("n", "s", Some("ours"))}});
        let mut crd = crd(&conversion);
        crd.metadata.annotations = Some(
            [(INJECTORS[0].to_owned(), "n/serving-cert".to_owned()), ("kept".to_owned(), String::new())]
                .into(),
        );
        let mut target = Target::of_crd(&crd, &us()).unwrap();
        assert!(!target.carries("ours"));
        let patch = target.patch(TargetKind::Crd, "ours");
        assert_eq!(patch["metadata"], json!({"resourceVersion": "7", "annotations": {INJECTORS[0]: null}}));
        target.set("ours");
        assert!(target.carries("ours"));
    }

    #[test]
    fn who_else_writes_the_bundle_is_named() {
        let entry = |manager: &str, fields: Value| json!({"manager": manager, "operation": "Update", "fieldsV1": fields});
        let bundle = json!({"f:clientConfig": {"f:caBundle": {}}});
        let crd = json!({
            "metadata": {"name": "c", "managedFields": [
                entry(FIELD_MANAGER, json!({"f:spec": {"f:conversion": {"f:webhook": bundle}}})),
                entry("rival", json!({"f:spec": {"f:conversion": {"f:webhook": bundle}}})),
                entry("maker", json!({"f:spec": {"f:conversion": {"f:strategy": {}}}})),
            ]},
            "spec": {"conversion": {"webhook": {"clientConfig": config("n", "s", None)}}},
        });
        let mut target = Target::of_crd(&serde_json::from_value(crd).unwrap(), &us()).unwrap();
        assert_eq!(target.rival(), "rival");
        target.set("ours");
        assert_eq!(target.rival(), "another writer");

        let webhook = |name: &str, service: &str| json!({"name": name, "clientConfig": config("n", service, None), "sideEffects": "None", "admissionReviewVersions": ["v1"]});
        let object = json!({
            "metadata": {"name": "m", "managedFields": [
                entry("one", json!({"f:webhooks": {"k:{\"name\":\"a\"}": bundle}})),
                entry("other", json!({"f:webhooks": {"k:{\"name\":\"b\"}": bundle}})),
            ]},
            "webhooks": [webhook("a", "s"), webhook("b", "theirs")],
        });
        let target = Target::of_mutating(&serde_json::from_value(object).unwrap(), &us()).unwrap();
        assert_eq!(target.rival(), "one", "what they do to their own webhooks is their business");
        assert_eq!(target.reference(TargetKind::Mutating, "m").name.as_deref(), Some("m"));
    }

    #[test]
    fn other_peoples_webhooks_in_the_same_object_are_left_alone() {
        let webhook = |name: &str, config: Value| json!({"name": name, "clientConfig": config, "sideEffects": "None", "admissionReviewVersions": ["v1"]});
        let object = json!({"metadata": {"name": "m", "resourceVersion": "7"}, "webhooks": [
            webhook("a", config("n", "s", Some("new"))),
            webhook("b", config("n", "other", Some("theirs"))),
            webhook("c", config("n", "s", None)),
        ]});
        let mutating = serde_json::from_value(object.clone()).unwrap();
        let validating = serde_json::from_value(object).unwrap();
        let mut target = Target::of_mutating(&mutating, &us()).unwrap();
        assert_eq!(Some(&target), Target::of_validating(&validating, &us()).as_ref());
        assert!(!target.carries("new"), "one of two has it");
        let patch = target.patch(TargetKind::Mutating, "new");
        assert_eq!(
            patch["webhooks"],
            json!([{"name": "a", "clientConfig": {"caBundle": "bmV3"}}, {"name": "c", "clientConfig": {"caBundle": "bmV3"}}])
        );
        target.set("new");
        assert!(target.carries("new"));
    }
}
