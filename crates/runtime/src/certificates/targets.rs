//! The objects by which API servers know whom to trust.

use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{
        MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
    },
};
use kube::api::{DynamicObject, ObjectMeta};
use serde_json::{Value, json};

use super::WebhookIdentity;

/// By these cert-manager is asked for a bundle. An object that came from somebody who used it may have one still: two
/// that write the same field would do so for ever, and what the webhooks really show is ours.
const INJECTORS: [&str; 3] = [
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
];

/// The kinds of object that hold a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum TargetKind {
    Definition,
    Mutating,
    Validating,
}

impl TargetKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Definition => "CustomResourceDefinition",
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
        }
    }
}

/// An object that sends API servers to our webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) resource_version: Option<String>,
    /// Annotations that ask somebody else for a bundle.
    injectors: Vec<&'static str>,
    /// The webhooks that are ours, by name, each with its bundle. A CRD's only one has no name.
    webhooks: Vec<(String, Vec<u8>)>,
}

impl Target {
    /// A CRD, if its objects are converted by us.
    pub(super) fn of_definition(crd: &DynamicObject, us: &WebhookIdentity) -> Option<Self> {
        let config = crd.data.pointer("/spec/conversion/webhook/clientConfig")?;
        let config: WebhookClientConfig = serde_json::from_value(config.clone()).ok()?;
        Self::new(&crd.metadata, [(String::new(), &config)], us)
    }

    /// A configuration, if any of its webhooks is ours.
    pub(super) fn of_mutating(object: &MutatingWebhookConfiguration, us: &WebhookIdentity) -> Option<Self> {
        let webhooks = object.webhooks.iter().flatten().map(|it| (it.name.clone(), &it.client_config));
        Self::new(&object.metadata, webhooks, us)
    }

    /// A configuration, if any of its webhooks is ours.
    pub(super) fn of_validating(
        object: &ValidatingWebhookConfiguration,
        us: &WebhookIdentity,
    ) -> Option<Self> {
        let webhooks = object.webhooks.iter().flatten().map(|it| (it.name.clone(), &it.client_config));
        Self::new(&object.metadata, webhooks, us)
    }

    fn new<'a>(
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
        let resource_version = metadata.resource_version.clone();
        (!webhooks.is_empty()).then_some(Self { resource_version, injectors, webhooks })
    }

    /// Whether every webhook of ours has this bundle, and nobody is asked for another.
    pub(super) fn carries(&self, bundle: &str) -> bool {
        self.injectors.is_empty() && self.webhooks.iter().all(|(_, found)| found == bundle.as_bytes())
    }

    /// The same with this bundle everywhere, as far as it is known here.
    pub(super) fn set(&mut self, bundle: &str) {
        self.injectors.clear();
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
        if kind == TargetKind::Definition {
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

    fn definition(conversion: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "metadata": {"name": "c", "resourceVersion": "7"}, "spec": {"conversion": conversion},
        }))
        .unwrap()
    }

    #[test]
    fn only_what_is_ours_is_a_target() {
        let webhook =
            |config: Value| definition(&json!({"strategy": "Webhook", "webhook": {"clientConfig": config}}));
        for (crd, expected) in [
            (webhook(config("n", "s", None)), true),
            (webhook(config("n", "s", Some("old"))), true),
            (webhook(config("n", "other", None)), false),
            (webhook(config("other", "s", None)), false),
            (webhook(json!({"url": "https://127.0.0.1/convert"})), false),
            (webhook(json!("text")), false),
            (definition(&json!({"strategy": "None"})), false),
        ] {
            assert_eq!(Target::of_definition(&crd, &us()).is_some(), expected, "{:?}", crd.data);
        }
        let target = Target::of_definition(&webhook(config("n", "s", Some("old"))), &us()).unwrap();
        assert!(target.carries("old") && !target.carries("new"));
        assert_eq!(
            target.patch(TargetKind::Definition, "new"),
            json!({"metadata": {"resourceVersion": "7"},
                "spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": "bmV3"}}}}})
        );
    }

    #[test]
    fn nobody_else_is_asked_for_a_bundle() {
        let conversion =
            json!({"strategy": "Webhook", "webhook": {"clientConfig": config("n", "s", Some("ours"))}});
        let mut crd = definition(&conversion);
        crd.metadata.annotations = Some(
            [(INJECTORS[0].to_owned(), "n/serving-cert".to_owned()), ("kept".to_owned(), String::new())]
                .into(),
        );
        let mut target = Target::of_definition(&crd, &us()).unwrap();
        assert!(!target.carries("ours"));
        let patch = target.patch(TargetKind::Definition, "ours");
        assert_eq!(patch["metadata"], json!({"resourceVersion": "7", "annotations": {INJECTORS[0]: null}}));
        target.set("ours");
        assert!(target.carries("ours"));
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
