//! The `CustomResourceDefinition`s of the operator's kinds, generated from the Rust types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionNames, JSONSchemaProps, ValidationRule,
};
use kube::CustomResourceExt;

use super::{
    GROUP, plural,
    rules::{DEBUG_LOCK, longest_name},
    spec::CoreProvider,
};
use crate::{
    crd::{limit_name, single},
    provider::ProviderType,
};

const NAME: &str =
    "name of the provider, e.g. aws; it decides where releases come from unless fetchConfig is set.";

/// The CRDs of all kinds.
pub fn crds() -> Vec<CustomResourceDefinition> {
    ProviderType::ALL.into_iter().map(crd).collect()
}

/// The CRD of a provider type's kind.
pub fn crd(kind: ProviderType) -> CustomResourceDefinition {
    let mut crd = CoreProvider::crd();
    crd.metadata.name = Some(format!("{}.{GROUP}", plural(kind)));
    crd.spec.names = CustomResourceDefinitionNames {
        kind: kind.as_str().to_owned(),
        plural: plural(kind).to_owned(),
        singular: Some(kind.as_str().to_lowercase()),
        short_names: Some(vec![short_name(kind).to_owned()]),
        ..crd.spec.names
    };
    let mut crd = single(crd);
    for version in &mut crd.spec.versions {
        if let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            root.description = Some(description(kind).to_owned());
            // The derive makes `spec` required, but every field has a default.
            root.required = None;
            root.x_kubernetes_validations = Some(vec![debug_lock(root)]);
            limit_name(root, i64::try_from(longest_name(kind)).unwrap_or(i64::MAX), NAME);
        }
    }
    crd
}

/// The short name that upstream's operator gives a kind.
const fn short_name(kind: ProviderType) -> &'static str {
    match kind {
        ProviderType::Core => "cacp",
        ProviderType::Bootstrap => "cabp",
        ProviderType::ControlPlane => "cacpp",
        ProviderType::Infrastructure => "caip",
        ProviderType::Ipam => "caipamp",
        ProviderType::RuntimeExtension => "carep",
        ProviderType::Addon => "caap",
    }
}

const fn description(kind: ProviderType) -> &'static str {
    match kind {
        ProviderType::Core => "CoreProvider is Cluster API itself, installed and upgraded by the operator.",
        ProviderType::Bootstrap => {
            "BootstrapProvider makes machines into nodes; the operator installs and upgrades it."
        }
        ProviderType::ControlPlane => {
            "ControlPlaneProvider runs control planes; the operator installs and upgrades it."
        }
        ProviderType::Infrastructure => {
            "InfrastructureProvider makes machines and networks; the operator installs and upgrades it."
        }
        ProviderType::Ipam => "IPAMProvider hands out IP addresses; the operator installs and upgrades it.",
        ProviderType::RuntimeExtension => {
            "RuntimeExtensionProvider answers runtime hooks; the operator installs and upgrades it."
        }
        ProviderType::Addon => {
            "AddonProvider installs what runs on workload clusters; the operator installs and upgrades it."
        }
    }
}

/// The rule by which `debug` locks the other properties of the manager, see [`super::change_problems`].
///
/// It stands at the root of the schema: the API server asks no rule about a change of something that is gone.
fn debug_lock(root: &JSONSchemaProps) -> ValidationRule {
    let manager = child(root, "spec").and_then(|spec| child(spec, "manager"));
    let fields = manager.and_then(|manager| manager.properties.as_ref()).into_iter().flatten();
    let others: Vec<_> = fields
        .filter(|(field, _)| *field != "debug")
        .map(|(field, _)| format!("!has(oldSelf.spec.manager.{field})"))
        .collect();
    let debugs = |object: &str| format!("has({object}.spec.manager.debug) && {object}.spec.manager.debug");
    let (old, new, others) = (debugs("oldSelf"), debugs("self"), others.join(" && "));
    ValidationRule {
        rule: format!(
            "!(has(oldSelf.spec) && has(oldSelf.spec.manager) && {old}) || \
             (has(self.spec) && has(self.spec.manager) ? \
             !({new}) || self.spec.manager == oldSelf.spec.manager : {others})"
        ),
        message: Some(DEBUG_LOCK.to_owned()),
        field_path: Some(".spec.manager".to_owned()),
        reason: Some("FieldValueForbidden".to_owned()),
        ..ValidationRule::default()
    }
}

fn child<'a>(schema: &'a JSONSchemaProps, name: &str) -> Option<&'a JSONSchemaProps> {
    schema.properties.as_ref()?.get(name)
}
