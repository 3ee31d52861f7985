//! Rules for all kinds that core reads.

use capstan_api::contract::{ContractVersion, compare_versions, crd_name, labelled_versions};

use super::{
    crd::Crd,
    kind::{Kind, Picked, failed, keep_or, not_applicable, not_checked},
    role::completion,
    schema::{Field, Type},
};
use crate::{
    report::Outcome,
    rule::Rule,
    rules::{self, Role},
};

/// Checks a kind by the rules that hold for all.
pub(super) fn check(kind: &Kind<'_>) -> Vec<(&'static Rule, Outcome)> {
    let mut outcomes = vec![
        (&rules::G1, scope(kind)),
        (&rules::G2, name(kind)),
        (&rules::G3, label(kind)),
        (&rules::G4, some_version_is_served(kind)),
        (&rules::G4B, all_versions_are_served(kind)),
        (&rules::G21, order(kind)),
        (&rules::G7, list_kind(kind)),
        (&rules::G8, category(kind)),
    ];
    if kind.part.template {
        outcomes.push((&rules::G19, template_spec(kind)));
        outcomes.push((&rules::G22, template_metadata(kind)));
    } else {
        outcomes.push((&rules::G5, contract(kind)));
        outcomes.push((&rules::G6, status_subresource(kind)));
    }
    outcomes
}

fn scope(kind: &Kind<'_>) -> Outcome {
    keep_or(kind.crd.scope == "Namespaced", || {
        failed(
            format!("{}: {} has spec.scope {:?}", kind.crd.file, kind.crd.name, kind.crd.scope),
            "set spec.scope to Namespaced; an existing CRD must be deleted and recreated",
        )
    })
}

fn name(kind: &Kind<'_>) -> Outcome {
    let crd = kind.crd;
    let expected = crd_name(&crd.id.group, &crd.id.kind);
    keep_or(crd.name == expected, || {
        let plural = expected.split('.').next().unwrap_or_default();
        failed(
            format!("{}: the CRD is named {}, but core looks for {expected}", crd.file, crd.name),
            format!(
                "set spec.names.plural to {plural} (kubebuilder: resource:path={plural}) and the name to match"
            ),
        )
    })
}

fn label(kind: &Kind<'_>) -> Outcome {
    let crd = kind.crd;
    let labels = ContractVersion::PREFERENCE.map(ContractVersion::label);
    let named =
        labels.iter().any(|it| crd.labels.get(it).is_some_and(|it| it.split('_').any(|it| !it.is_empty())));
    keep_or(named, || {
        let served = crd.versions.iter().filter(|it| it.served).map(|it| it.name);
        let greatest = served.max_by(|a, b| compare_versions(a, b)).unwrap_or("v1beta2");
        failed(
            format!("{}: {} has neither label {} nor {}", crd.file, crd.name, labels[0], labels[1]),
            format!(
                "label the CRD with the contract that its versions speak, e.g. {}: {greatest}",
                labels[0]
            ),
        )
    })
}

/// The labels of contracts that core understands, with the versions that they name.
fn labelled<'a>(kind: &'a Kind<'_>) -> impl Iterator<Item = (String, Vec<&'a str>)> {
    ContractVersion::PREFERENCE.into_iter().filter_map(|contract| {
        let versions: Vec<_> = labelled_versions(&kind.crd.labels, contract).collect();
        (!versions.is_empty()).then(|| (contract.label(), versions))
    })
}

/// Whether each label names a version that is served.
fn some_version_is_served(kind: &Kind<'_>) -> Outcome {
    served(kind, |unserved, all| unserved == all)
}

/// Whether a label that names a version that is served names no others.
fn all_versions_are_served(kind: &Kind<'_>) -> Outcome {
    served(kind, |unserved, all| unserved < all)
}

/// Fails for the versions that are not served, of labels for which their number beside that of all matters.
fn served(kind: &Kind<'_>, matters: impl Fn(usize, usize) -> bool) -> Outcome {
    let served = kind.crd.served();
    let mut missing = Vec::new();
    let mut labels = 0;
    for (label, versions) in labelled(kind) {
        labels += 1;
        let unserved: Vec<_> = versions.iter().copied().filter(|it| !served.contains(it)).collect();
        if !matters(unserved.len(), versions.len()) {
            continue;
        }
        for version in unserved {
            let why = if kind.crd.version(version).is_some() { "served" } else { "in spec.versions" };
            missing.push(format!("label {label} names {version}, which is not {why}"));
        }
    }
    match (labels, missing.is_empty()) {
        (0, _) => not_checked("there is no contract label: see G3"),
        (_, true) => Outcome::Passed,
        (_, false) => failed(
            format!("{}: {}: {}", kind.crd.file, kind.crd.name, missing.join("; ")),
            "serve the version, or take it out of the label",
        ),
    }
}

/// Whether the version that core takes is the last one in its label. Versions that are not served have G4 and G4b.
fn order(kind: &Kind<'_>) -> Outcome {
    let served = kind.crd.served();
    let mut labels = 0;
    for (label, versions) in labelled(kind) {
        labels += 1;
        let available: Vec<_> = versions.iter().copied().filter(|it| served.contains(it)).collect();
        let greatest = available.iter().copied().max_by(|a, b| compare_versions(a, b));
        if let (Some(greatest), Some(last)) = (greatest, available.last().copied())
            && greatest != last
        {
            let mut ordered = versions.clone();
            ordered.sort_by(|a, b| compare_versions(a, b));
            return failed(
                format!(
                    "{}: {} has the label {label}: {}, of which core takes {greatest} and not the last",
                    kind.crd.file,
                    kind.crd.name,
                    versions.join("_")
                ),
                format!("write {label}: {}", ordered.join("_")),
            );
        }
    }
    if labels == 0 { not_checked("there is no contract label: see G3") } else { Outcome::Passed }
}

/// Whether completion is reported where only the other contract looks for it.
pub(super) fn speaks_the_other_contract(kind: &Kind<'_>) -> Option<(&'static str, &'static str)> {
    let Picked::View(view) = kind.picked else { return None };
    let other = match view.contract {
        ContractVersion::V1Beta1 => ContractVersion::V1Beta2,
        ContractVersion::V1Beta2 => ContractVersion::V1Beta1,
    };
    let (own, others) = (completion(kind.part.role, view.contract), completion(kind.part.role, other));
    let speaks = view.find(own) == Field::Absent && matches!(view.find(others), Field::Found(_));
    speaks.then_some((own, others))
}

fn contract(kind: &Kind<'_>) -> Outcome {
    kind.with_view(|view| match speaks_the_other_contract(kind) {
        None => Outcome::Passed,
        Some((own, others)) => failed(
            view.seen(&format!(
                "is labelled with contract {}, but has {others} and not {own}",
                view.contract
            )),
            format!("report completion in {own}, or label the version with the contract that it speaks"),
        ),
    })
}

fn status_subresource(kind: &Kind<'_>) -> Outcome {
    kind.with_view(|view| {
        keep_or(view.version.subresources["status"].is_object(), || {
            failed(
                view.seen("subresources.status is missing"),
                "add subresources: {status: {}} (kubebuilder: +kubebuilder:subresource:status)",
            )
        })
    })
}

fn list_kind(kind: &Kind<'_>) -> Outcome {
    let crd = kind.crd;
    let expected = format!("{}List", crd.id.kind);
    // The API server fills in a list kind that is missing.
    if let Some(found) = crd.list_kind
        && found != expected
    {
        let seen = format!("{}: {} has the list kind {found}", crd.file, crd.name);
        return failed(seen, format!("set spec.names.listKind to {expected}"));
    }
    let metadata = crd.versions.iter().find(|it| {
        let metadata = &it.schema["properties"]["metadata"];
        !metadata.is_null() && metadata["type"] != "object"
    });
    match metadata {
        None => Outcome::Passed,
        Some(version) => failed(
            format!("{}: {} version {}: metadata is not an object", crd.file, crd.name, version.name),
            "make metadata an object in the schema, or leave it out",
        ),
    }
}

fn category(kind: &Kind<'_>) -> Outcome {
    keep_or(kind.crd.categories.contains(&"cluster-api"), || {
        failed(
            format!("{}: {} has the categories {:?}", kind.crd.file, kind.crd.name, kind.crd.categories),
            "add cluster-api to spec.names.categories (kubebuilder: resource:categories=cluster-api)",
        )
    })
}

fn template_spec(kind: &Kind<'_>) -> Outcome {
    kind.with_view(|view| view.require("spec.template.spec", Type::Object, ""))
}

fn template_metadata(kind: &Kind<'_>) -> Outcome {
    kind.with_view(|view| match view.find("spec.template") {
        // Another rule reports what is missing altogether.
        Field::Absent => not_applicable("there is no spec.template: see G19"),
        _ => view.require("spec.template.metadata", Type::Object, ""),
    })
}

/// Whether a kind has its template, which its rule asks for.
pub(super) fn template(kind: &Kind<'_>, crds: &[Crd<'_>]) -> Outcome {
    let crd = kind.crd;
    let expected = format!("{}Template", crd.id.kind);
    if kind.part.role == Role::InfraMachine && crd.id.kind.ends_with("MachinePoolMachine") {
        return not_applicable("machines of a pool are made by the pool, not from a template");
    }
    let found = crds.iter().any(|it| it.id.group == crd.id.group && it.id.kind == expected);
    keep_or(found, || {
        failed(
            format!("{}: there is no CRD for {expected} in group {}", crd.file, crd.id.group),
            format!("add the kind {expected}, with spec.template.spec like the spec of {}", crd.id.kind),
        )
    })
}
