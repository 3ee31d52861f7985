//! Which kinds live in a namespace.

use std::collections::HashMap;

use serde_json::Value;

use crate::objects::Object;

/// Kinds of Kubernetes and its closest companions that live in no namespace, by group.
const CLUSTER_SCOPED: &[(&str, &[&str])] = &[
    ("", &["ComponentStatus", "Namespace", "Node", "PersistentVolume"]),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    ("authentication.k8s.io", &["SelfSubjectReview", "TokenReview"]),
    ("authorization.k8s.io", &["SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"]),
    ("cert-manager.io", &["ClusterIssuer"]),
    ("certificates.k8s.io", &["CertificateSigningRequest", "ClusterTrustBundle"]),
    ("extensions", &["PodSecurityPolicy"]),
    ("flowcontrol.apiserver.k8s.io", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("gateway.networking.k8s.io", &["GatewayClass"]),
    ("internal.apiserver.k8s.io", &["StorageVersion"]),
    ("networking.k8s.io", &["IPAddress", "IngressClass", "ServiceCIDR"]),
    ("node.k8s.io", &["RuntimeClass"]),
    ("policy", &["PodSecurityPolicy"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"]),
    ("resource.k8s.io", &["DeviceClass", "DeviceTaintRule", "ResourceSlice"]),
    ("runtime.cluster.x-k8s.io", &["ExtensionConfig"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    (
        "storage.k8s.io",
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"],
    ),
    ("storagemigration.k8s.io", &["StorageVersionMigration"]),
    ("trust.cert-manager.io", &["Bundle"]),
];

/// Whether a kind is known to live in no namespace.
pub fn is_cluster_scoped(group: &str, kind: &str) -> bool {
    CLUSTER_SCOPED.iter().any(|(known, kinds)| *known == group && kinds.contains(&kind))
}

/// What is known of the scopes of kinds: what a file's own CRDs say, then Kubernetes' own kinds.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    is_namespaced: HashMap<(String, String), bool>,
}

impl Scopes {
    /// The scopes that the CRDs among some objects declare.
    pub(crate) fn of(objects: &[Object]) -> Self {
        Self { is_namespaced: objects.iter().filter_map(declared).collect() }
    }

    /// Whether a kind is namespaced; unknown kinds are.
    pub(crate) fn is_namespaced(&self, object: &Object) -> bool {
        let (group, kind) = (object.group(), object.kind());
        let declared = self.is_namespaced.get(&(group.to_owned(), kind.to_owned()));
        declared.copied().unwrap_or_else(|| !is_cluster_scoped(group, kind))
    }
}

fn declared(object: &Object) -> Option<((String, String), bool)> {
    let spec = object
        .is("apiextensions.k8s.io", "CustomResourceDefinition")
        .then(|| object.content.get("spec"))??;
    let text = |value: Option<&Value>| Some(value?.as_str()?.to_owned());
    let kind = text(spec.get("names")?.get("kind"))?;
    Some(((text(spec.get("group"))?, kind), text(spec.get("scope"))? != "Cluster"))
}
