//! Rules for the fields of each kind that core reads.

use capstan_api::contract::ContractVersion;

use super::{
    common::{speaks_the_other_contract, template},
    crd::Crd,
    kind::{Kind, View, all, failed, keep_or, not_applicable, not_checked},
    role::completion,
    schema::{Field, Type, describe, is},
};
use crate::{
    report::Outcome,
    rule::Rule,
    rules::{self, Role},
};

/// Checks a kind by the rules of its role.
pub(super) fn check(kind: &Kind<'_>, crds: &[Crd<'_>]) -> Vec<(&'static Rule, Outcome)> {
    let with = |check: fn(View<'_>) -> Outcome| kind.with_view(check);
    match kind.part.role {
        Role::InfraCluster => vec![
            (&rules::IC1, with(spec_and_status)),
            (&rules::IC2, with(endpoint)),
            (&rules::IC4, completed(kind)),
            (&rules::IC6, with(failure_domains)),
            (&rules::IC11, template(kind, crds)),
        ],
        Role::InfraMachine => vec![
            (&rules::IM1, with(provider_id)),
            (&rules::IM2, completed(kind)),
            (&rules::IM8, template(kind, crds)),
        ],
        Role::InfraMachinePool => vec![
            (&rules::MP1, with(provider_ids)),
            (&rules::MP2, with(pool_replicas)),
            (&rules::MP3, completed(kind)),
            (&rules::MP5, template(kind, crds)),
        ],
        Role::BootstrapConfig => vec![
            (&rules::BC3, all([completed(kind), with(data_secret)])),
            (&rules::BC8, template(kind, crds)),
        ],
        Role::ControlPlane => vec![
            (&rules::CP1, completed(kind)),
            (&rules::CP3, with(endpoint)),
            (&rules::CP4, with(replicas)),
            (&rules::CP5, with(version)),
            (&rules::CP6, with(machine_template)),
            (&rules::CP13, template(kind, crds)),
        ],
    }
}

fn completed(kind: &Kind<'_>) -> Outcome {
    kind.with_view(|view| {
        if speaks_the_other_contract(kind).is_some() {
            return not_checked("completion is reported as another contract has it: see G5");
        }
        let path = completion(kind.part.role, view.contract);
        view.require(path, Type::Boolean, ", and let the controller set it to true on completion")
    })
}

fn spec_and_status(view: View<'_>) -> Outcome {
    all(["spec", "status"].map(|path| view.require(path, Type::Object, "")))
}

fn endpoint(view: View<'_>) -> Outcome {
    const PATH: &str = "spec.controlPlaneEndpoint";
    match view.find(PATH) {
        Field::Absent => not_applicable(
            "the schema has no spec.controlPlaneEndpoint, so that the endpoint must come from elsewhere",
        ),
        Field::Open => view.open(PATH),
        Field::Found(_) => {
            let whole = view.expect(PATH, Type::Object, "");
            if whole != Outcome::Passed {
                return whole;
            }
            all([
                view.require("spec.controlPlaneEndpoint.host", Type::String, ""),
                view.require("spec.controlPlaneEndpoint.port", Type::Integer, ""),
            ])
        }
    }
}

fn failure_domains(view: View<'_>) -> Outcome {
    const PATH: &str = "status.failureDomains";
    let schema = match view.find(PATH) {
        Field::Absent => return not_applicable("the schema has no status.failureDomains"),
        Field::Open => return view.open(PATH),
        Field::Found(schema) => schema,
    };
    let (shape, entry) = match view.contract {
        ContractVersion::V1Beta2 => ("a list of {name, controlPlane, attributes}", &schema["items"]),
        ContractVersion::V1Beta1 => {
            ("a map from name to {controlPlane, attributes}", &schema["additionalProperties"])
        }
    };
    let repair = || {
        format!("make {PATH} {shape} in version {}, as contract {} has it", view.version.name, view.contract)
    };
    let outer = match view.contract {
        ContractVersion::V1Beta2 => schema["type"] == "array",
        ContractVersion::V1Beta1 => {
            is(schema, Type::Object)
                && (entry.is_object() || schema["x-kubernetes-preserve-unknown-fields"] == true)
        }
    };
    if !outer {
        return failed(view.seen(&format!("{PATH} is {}, not {shape}", describe(schema))), repair());
    }
    if !entry.is_object() {
        return view.open(PATH);
    }
    let mut wrong = Vec::new();
    let mut expect = |field: &str, expected: Type, required: bool| match entry["properties"].get(field) {
        Some(schema) if !is(schema, expected) => {
            wrong.push(format!("{field} in {PATH} is {}, not {}", describe(schema), expected.as_str()));
        }
        None if required && entry["x-kubernetes-preserve-unknown-fields"] != true => {
            wrong.push(format!("entries of {PATH} have no {field}"));
        }
        _ => {}
    };
    expect("name", Type::String, view.contract == ContractVersion::V1Beta2);
    expect("controlPlane", Type::Boolean, false);
    expect("attributes", Type::Object, false);
    keep_or(wrong.is_empty(), || failed(view.seen(&wrong.join("; ")), repair()))
}

fn provider_id(view: View<'_>) -> Outcome {
    view.require("spec.providerID", Type::String, ", and let the controller set it no later than completion")
}

fn provider_ids(view: View<'_>) -> Outcome {
    view.require("spec.providerIDList", Type::Strings, ", and let the controller keep it current")
}

fn pool_replicas(view: View<'_>) -> Outcome {
    view.require("status.replicas", Type::Integer, ", and let the controller keep it current")
}

fn data_secret(view: View<'_>) -> Outcome {
    view.require("status.dataSecretName", Type::String, ", and let the controller name the Secret in it")
}

fn replicas(view: View<'_>) -> Outcome {
    match view.find("spec.replicas") {
        Field::Absent => return not_applicable("the schema has no spec.replicas"),
        Field::Open => return view.open("spec.replicas"),
        Field::Found(_) => {}
    }
    let counters = match view.contract {
        ContractVersion::V1Beta2 => ["status.availableReplicas", "status.upToDateReplicas"],
        ContractVersion::V1Beta1 => ["status.unavailableReplicas", "status.updatedReplicas"],
    };
    let counters = ["status.replicas", "status.readyReplicas"].into_iter().chain(counters);
    let scale = &view.version.subresources["scale"];
    let paths = [
        ("specReplicasPath", ".spec.replicas"),
        ("statusReplicasPath", ".status.replicas"),
        ("labelSelectorPath", ".status.selector"),
    ];
    let scale = keep_or(paths.iter().all(|(name, path)| scale[*name] == *path), || {
        let found = if scale.is_object() { scale.to_string() } else { "missing".to_owned() };
        let wanted: Vec<_> = paths.iter().map(|(name, path)| format!("{name}: {path}")).collect();
        failed(
            view.seen(&format!("subresources.scale is {found}")),
            format!("set subresources.scale to {{{}}}", wanted.join(", ")),
        )
    });
    all([view.expect("spec.replicas", Type::Integer, ""), view.require("status.selector", Type::String, "")]
        .into_iter()
        .chain(counters.map(|path| view.require(path, Type::Integer, "")))
        .chain([scale]))
}

fn version(view: View<'_>) -> Outcome {
    match view.find("spec.version") {
        Field::Absent => return not_applicable("the schema has no spec.version"),
        Field::Open => return view.open("spec.version"),
        Field::Found(_) => {}
    }
    let reported = match (view.find("status.versions"), view.find("status.version")) {
        (Field::Found(list), _) => keep_or(
            list["type"] == "array" && list["items"]["properties"]["version"]["type"] == "string",
            || {
                failed(
                    view.seen(&format!(
                        "status.versions is {}, not a list of {{version, replicas}}",
                        describe(list)
                    )),
                    "make status.versions a list of {version, replicas}",
                )
            },
        ),
        (_, Field::Found(_)) => view.expect("status.version", Type::String, ""),
        (Field::Open, _) | (_, Field::Open) => view.open("status.versions"),
        (Field::Absent, Field::Absent) => failed(
            view.seen("there is spec.version, but neither status.versions nor status.version"),
            "add status.versions, a list of {version, replicas} from the oldest to the newest",
        ),
    };
    all([view.expect("spec.version", Type::String, ""), reported])
}

fn machine_template(view: View<'_>) -> Outcome {
    match view.find("spec.machineTemplate") {
        Field::Absent => return not_applicable("the schema has no spec.machineTemplate"),
        Field::Open => return view.open("spec.machineTemplate"),
        Field::Found(_) => {}
    }
    // Managed control planes have the field for ClusterClasses only, and nothing in it that leads to machines.
    let references =
        ["spec.machineTemplate.infrastructureRef", "spec.machineTemplate.spec.infrastructureRef"];
    if references.iter().all(|path| view.find(path) == Field::Absent) {
        return not_applicable(
            "spec.machineTemplate has no infrastructureRef, so that no Machines are made from it",
        );
    }
    let fields: &[(&str, Type)] = match view.contract {
        ContractVersion::V1Beta2 => &[
            ("spec.infrastructureRef.apiGroup", Type::String),
            ("spec.infrastructureRef.kind", Type::String),
            ("spec.infrastructureRef.name", Type::String),
            ("spec.deletion.nodeDrainTimeoutSeconds", Type::Integer),
            ("spec.deletion.nodeVolumeDetachTimeoutSeconds", Type::Integer),
            ("spec.deletion.nodeDeletionTimeoutSeconds", Type::Integer),
        ],
        ContractVersion::V1Beta1 => &[
            ("infrastructureRef.apiVersion", Type::String),
            ("infrastructureRef.kind", Type::String),
            ("infrastructureRef.name", Type::String),
            ("nodeDrainTimeout", Type::String),
            ("nodeVolumeDetachTimeout", Type::String),
            ("nodeDeletionTimeout", Type::String),
        ],
    };
    let fields = [("metadata", Type::Object)].iter().chain(fields);
    all(fields.map(|(path, expected)| view.require(&format!("spec.machineTemplate.{path}"), *expected, "")))
}
