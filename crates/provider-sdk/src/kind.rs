//! What a kind's CRD says: which contract it speaks, and where its schema has the contract's fields.

use std::fmt;

use capstan_api::{
    contract::{ContractVersion, crd_name, pick_version},
    names::label,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};

/// Puts the labels on a CRD by which core and clusterctl know it: the provider's, and for each contract the versions
/// that speak it.
#[must_use]
pub fn labelled(
    mut crd: CustomResourceDefinition,
    provider: &str,
    contracts: &[(ContractVersion, &[&str])],
) -> CustomResourceDefinition {
    let labels = crd.metadata.labels.get_or_insert_default();
    labels.insert(label::PROVIDER.to_owned(), provider.to_owned());
    for (contract, versions) in contracts {
        labels.insert(contract.label(), versions.join("_"));
    }
    crd.spec.names.list_kind.get_or_insert_with(|| format!("{}List", crd.spec.names.kind));
    crd
}

/// A rule of the contract that a CRD breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is no CRD of the kind.
    #[error("no CustomResourceDefinition of kind {0} was given")]
    NoCrd(String),
    /// Core could not find the CRD.
    #[error("the CRD is named {found}, but core looks for {expected}: set the plural to {}", expected.split('.').next().unwrap_or_default())]
    Name {
        /// The name that the contract asks for.
        expected: String,
        /// The name that it has.
        found: String,
    },
    /// It is not namespaced.
    #[error("{0} is cluster-scoped: the contract asks for namespaced kinds")]
    Scope(String),
    /// The list kind has another name.
    #[error("the list kind of {0} must be named {0}List")]
    ListKind(String),
    /// No contract is named.
    #[error("{0} names no contract: label it with labelled()")]
    NoContract(String),
    /// A label names a version that is not served.
    #[error("the label {label} of {kind} names version {version}, which is not served")]
    NotServed {
        /// The kind.
        kind: String,
        /// The label.
        label: String,
        /// The version.
        version: String,
    },
    /// The stored version speaks no contract.
    #[error("version {version} of {kind}, which the provider works with, is in no contract label")]
    Mute {
        /// The kind.
        kind: String,
        /// The version.
        version: String,
    },
    /// The version that the provider works with is not there.
    #[error("{kind} has no version {version}, which the provider works with")]
    NoVersion {
        /// The kind.
        kind: String,
        /// The version.
        version: String,
    },
    /// Kubernetes allows no finalizer that is so long.
    #[error("the finalizer {0} is longer than 63 characters: choose a shorter kind or group")]
    Finalizer(String),
    /// There is no status subresource.
    #[error("version {version} of {kind} has no status subresource")]
    NoStatus {
        /// The kind.
        kind: String,
        /// The version.
        version: String,
    },
    /// A field is missing in the schema, or is something else.
    #[error("version {version} of {kind} speaks contract {contract} and must have {field}")]
    Field {
        /// The kind.
        kind: String,
        /// The version.
        version: String,
        /// The contract.
        contract: ContractVersion,
        /// The field and its type.
        field: &'static str,
    },
}

/// A provider's CRDs break the contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenContract(pub Vec<Problem>);

impl fmt::Display for BrokenContract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the provider's CRDs break the contract: ")?;
        for (place, problem) in self.0.iter().enumerate() {
            write!(f, "{}{problem}", if place == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl std::error::Error for BrokenContract {}

/// Where a version of a kind has the contract's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether a field exists")]
pub(crate) struct Shape {
    /// `status.initialization.provisioned`.
    pub(crate) provisioned: bool,
    /// `status.ready`.
    pub(crate) ready: bool,
    pub(crate) failure_domains: Option<Domains>,
    pub(crate) failure: Option<FailureAt>,
    /// `status.conditions`.
    pub(crate) conditions: bool,
    /// `observedGeneration` in a condition.
    pub(crate) observed_generation: bool,
    /// A condition must have a message, if only an empty one.
    pub(crate) message_required: bool,
}

/// The shape of `status.failureDomains`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domains {
    List,
    Map,
}

/// Where terminal failures are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureAt {
    /// `status.failureReason` and `status.failureMessage`.
    Status,
    /// The same in `status.deprecated.v1beta1`.
    Deprecated,
}

impl Shape {
    /// Reads the CRD of a kind, and judges it.
    pub(crate) fn of(
        crds: &[CustomResourceDefinition],
        group: &str,
        kind: &str,
        version: &str,
        makes_endpoint: bool,
    ) -> Result<Self, BrokenContract> {
        let Some(crd) = crds.iter().find(|crd| crd.spec.group == group && crd.spec.names.kind == kind) else {
            return Err(BrokenContract(vec![Problem::NoCrd(kind.to_owned())]));
        };
        let mut problems = Vec::new();
        for crd in crds {
            judge_form(crd, &mut problems);
        }
        let finalizer = finalizer(kind, group);
        if finalizer.len() > 63 {
            problems.push(Problem::Finalizer(finalizer));
        }
        let shape = judge_version(crd, version, makes_endpoint, &mut problems);
        match shape {
            Some(shape) if problems.is_empty() => Ok(shape),
            _ => Err(BrokenContract(problems)),
        }
    }
}

/// The finalizer of a kind.
pub(crate) fn finalizer(kind: &str, group: &str) -> String {
    format!("{}.{group}", kind.to_lowercase())
}

/// What the contract asks of every kind: scope, names and labels.
fn judge_form(crd: &CustomResourceDefinition, problems: &mut Vec<Problem>) {
    let kind = crd.spec.names.kind.clone();
    let expected = crd_name(&crd.spec.group, &kind);
    let found = crd.metadata.name.clone().unwrap_or_default();
    if found != expected {
        problems.push(Problem::Name { expected, found: found.clone() });
    }
    if crd.spec.scope != "Namespaced" {
        problems.push(Problem::Scope(kind.clone()));
    }
    if crd.spec.names.list_kind.as_ref().is_some_and(|name| *name != format!("{kind}List")) {
        problems.push(Problem::ListKind(kind.clone()));
    }
    let labels = crd.metadata.labels.clone().unwrap_or_default();
    if pick_version(&found, &labels).is_err() {
        problems.push(Problem::NoContract(kind.clone()));
    }
    for contract in ContractVersion::PREFERENCE {
        let versions = labels.get(&contract.label()).into_iter().flat_map(|versions| versions.split('_'));
        for version in versions {
            if !crd.spec.versions.iter().any(|it| it.served && it.name == version) {
                let (kind, label, version) = (kind.clone(), contract.label(), version.to_owned());
                problems.push(Problem::NotServed { kind, label, version });
            }
        }
    }
}

/// What the contract asks of the version that the provider works with.
fn judge_version(
    crd: &CustomResourceDefinition,
    version: &str,
    makes_endpoint: bool,
    problems: &mut Vec<Problem>,
) -> Option<Shape> {
    let kind = crd.spec.names.kind.clone();
    let labels = crd.metadata.labels.as_ref();
    let contracts: Vec<_> = ContractVersion::PREFERENCE
        .into_iter()
        .filter(|contract| {
            let versions = labels.and_then(|labels| labels.get(&contract.label()));
            versions.is_some_and(|versions| versions.split('_').any(|it| it == version))
        })
        .collect();
    let Some(found) = crd.spec.versions.iter().find(|it| it.name == version) else {
        problems.push(Problem::NoVersion { kind, version: version.to_owned() });
        return None;
    };
    if contracts.is_empty() {
        problems.push(Problem::Mute { kind: kind.clone(), version: version.to_owned() });
    }
    if found.subresources.as_ref().is_none_or(|it| it.status.is_none()) {
        problems.push(Problem::NoStatus { kind: kind.clone(), version: version.to_owned() });
    }
    let schema = found.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
    let field = |path: &str| schema.and_then(|schema| property(schema, path));
    let is = |path: &str, type_: &str| field(path).is_some_and(|it| it.type_.as_deref() == Some(type_));
    let domains = field("status.failureDomains").map(|it| match it.type_.as_deref() {
        Some("array") => Domains::List,
        _ => Domains::Map,
    });
    let failure = if is("status.failureReason", "string") {
        Some(FailureAt::Status)
    } else if is("status.deprecated.v1beta1.failureReason", "string") {
        Some(FailureAt::Deprecated)
    } else {
        None
    };
    let condition = field("status.conditions").and_then(items);
    let shape = Shape {
        provisioned: is("status.initialization.provisioned", "boolean"),
        ready: is("status.ready", "boolean"),
        failure_domains: domains,
        failure,
        conditions: condition.is_some(),
        observed_generation: condition
            .and_then(|it| it.properties.as_ref())
            .is_some_and(|fields| fields.contains_key("observedGeneration")),
        message_required: condition
            .and_then(|it| it.required.as_ref())
            .is_some_and(|names| names.iter().any(|name| name == "message")),
    };
    let mut expect = |holds: bool, contract, field| {
        if !holds {
            let (kind, version) = (kind.clone(), version.to_owned());
            problems.push(Problem::Field { kind, version, contract, field });
        }
    };
    for contract in contracts {
        if makes_endpoint {
            let endpoint = is("spec.controlPlaneEndpoint.host", "string")
                && is("spec.controlPlaneEndpoint.port", "integer");
            expect(endpoint, contract, "spec.controlPlaneEndpoint with a string host and an integer port");
        }
        match contract {
            ContractVersion::V1Beta2 => {
                expect(shape.provisioned, contract, "the boolean status.initialization.provisioned");
                expect(domains != Some(Domains::Map), contract, "status.failureDomains as a list");
            }
            ContractVersion::V1Beta1 => {
                expect(shape.ready, contract, "the boolean status.ready");
                expect(domains != Some(Domains::List), contract, "status.failureDomains as a map");
            }
        }
    }
    Some(shape)
}

fn property<'a>(schema: &'a JSONSchemaProps, path: &str) -> Option<&'a JSONSchemaProps> {
    path.split('.').try_fold(schema, |schema, name| schema.properties.as_ref()?.get(name))
}

fn items(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.items.as_ref()? {
        JSONSchemaPropsOrArray::Schema(item) => Some(item),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A CRD that keeps the contract, for tests to break.
    fn crd() -> Value {
        let condition = json!({"type": "object", "required": ["message"], "properties": {"observedGeneration": {"type": "integer"}}});
        let status = json!({"type": "object", "properties": {
            "initialization": {"type": "object", "properties": {"provisioned": {"type": "boolean"}}},
            "failureDomains": {"type": "array", "items": {"type": "object"}},
            "conditions": {"type": "array", "items": condition},
        }});
        let spec = json!({"type": "object", "properties": {"controlPlaneEndpoint": {"type": "object", "properties": {
            "host": {"type": "string"}, "port": {"type": "integer"},
        }}}});
        json!({
            "metadata": {"name": "fooclusters.infrastructure.foo.com"},
            "spec": {
                "group": "infrastructure.foo.com", "scope": "Namespaced",
                "names": {"kind": "FooCluster", "plural": "fooclusters"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
                }],
            },
        })
    }

    fn judge(crd: Value) -> Result<Shape, Vec<String>> {
        let crd: CustomResourceDefinition = serde_json::from_value(crd).unwrap();
        let crd = labelled(crd, "infrastructure-foo", &[(ContractVersion::V1Beta2, &["v1"])]);
        Shape::of(&[crd], "infrastructure.foo.com", "FooCluster", "v1", true)
            .map_err(|broken| broken.0.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_kind_that_keeps_the_contract_is_read() {
        let shape = judge(crd()).unwrap();
        assert_eq!(
            shape,
            Shape {
                provisioned: true,
                ready: false,
                failure_domains: Some(Domains::List),
                failure: None,
                conditions: true,
                observed_generation: true,
                message_required: true,
            }
        );
    }

    #[test]
    fn each_breach_is_named() {
        let version = "/spec/versions/0";
        let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
        let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        for (place, name, value, expected) in [
            (
                "/metadata",
                "name",
                json!("foocluster.infrastructure.foo.com"),
                "set the plural to fooclusters",
            ),
            ("/spec", "scope", json!("Cluster"), "cluster-scoped"),
            ("/spec/names", "listKind", json!("Foos"), "FooClusterList"),
            (version, "served", json!(false), "which is not served"),
            (version, "subresources", json!({}), "no status subresource"),
            (status, "initialization", json!({"type": "object"}), "status.initialization.provisioned"),
            (status, "failureDomains", json!({"type": "object"}), "status.failureDomains as a list"),
            (spec, "controlPlaneEndpoint", json!({"type": "object"}), "spec.controlPlaneEndpoint"),
        ] {
            let mut broken = crd();
            broken.pointer_mut(place).unwrap()[name] = value;
            let problems = judge(broken).unwrap_err();
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(problems[0].contains(expected), "{problems:?}");
        }
        let mute: CustomResourceDefinition = serde_json::from_value(crd()).unwrap();
        let problems = Shape::of(&[mute], "infrastructure.foo.com", "FooCluster", "v1", true).unwrap_err();
        assert!(problems.to_string().contains("names no contract"), "{problems}");
        let crd: CustomResourceDefinition = serde_json::from_value(crd()).unwrap();
        let crd = labelled(crd, "infrastructure-foo", &[(ContractVersion::V1Beta2, &["v1"])]);
        let other = Shape::of(&[crd], "infrastructure.foo.com", "FooCluster", "v2", true).unwrap_err();
        assert!(other.to_string().contains("has no version v2"), "{other}");
        let none = Shape::of(&[], "infrastructure.foo.com", "FooCluster", "v1", true).unwrap_err();
        assert_eq!(none.0, [Problem::NoCrd("FooCluster".into())]);
    }
}
