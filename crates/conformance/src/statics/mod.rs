//! What CRDs, RBAC and release files show of the contract. No I/O.

mod common;
mod crd;
mod fields;
mod kind;
mod rbac;
mod release;
mod role;
mod schema;

use capstan_api::{
    contract::{ContractVersion, NoCompatibleContract, labelled_versions, list_labels, pick_served_version},
    names::CORE_GROUP,
};

pub(crate) use release::Broken;
pub use release::Origin;
use serde_json::Value;

use self::{
    crd::Crd,
    kind::{Kind, Picked, not_applicable, not_checked},
    rbac::ClusterRoles,
    role::Family,
};
use crate::{
    input::Source,
    report::{Finding, Outcome, Report},
    rule::{Contracts, Rule},
    rules::{self, Role},
};

/// There is nothing that the contract speaks of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NothingToCheck {
    /// No CRDs at all.
    #[error("{about} has no CustomResourceDefinitions")]
    NoCrds {
        /// What was looked at.
        about: String,
    },
    /// Core's own components.
    #[error(
        "{about} holds core's own kinds ({kinds}): the contract binds providers of infrastructure, bootstrap and \
         control planes, and core reads no contract from its own kinds"
    )]
    Core {
        /// What was looked at.
        about: String,
        /// Some of the kinds.
        kinds: String,
    },
    /// Other CRDs.
    #[error(
        "{about} has no kind that core reads: of {kinds} none is an InfraCluster, InfraMachine, InfraMachinePool, \
         BootstrapConfig, ControlPlane or a template of one by group, name and fields"
    )]
    NoContractKinds {
        /// What was looked at.
        about: String,
        /// The kinds found.
        kinds: String,
    },
    /// Two different CRDs of one kind.
    #[error("{name} is defined in {first} and differently in {second}: check one release at a time")]
    Twice {
        /// The CRD.
        name: String,
        /// A file.
        first: String,
        /// Another file.
        second: String,
    },
}

/// Checks all that was given. `about` names it for people.
pub fn check(about: &str, sources: &[Source], origin: Origin) -> Result<Report, NothingToCheck> {
    let crds = crds(sources)?;
    let mut kinds: Vec<Kind<'_>> =
        crds.iter().filter_map(|crd| Some(Kind::new(crd, role::part(crd, &crds)?))).collect();
    if kinds.is_empty() {
        return Err(nothing(about, &crds));
    }
    kinds.sort_by_cached_key(|it| (it.part.role, it.crd.id.clone()));
    let cluster_roles = ClusterRoles::among(sources);
    let mut findings = Vec::new();
    for kind in &kinds {
        let mut outcomes = common::check(kind);
        outcomes.push((&rules::G9, cluster_roles.check(kind)));
        if kind.part.template {
            let why = why_not(kind.part.role);
            outcomes.extend(rules::running_template(kind.part.role).map(|rule| (rule, not_checked(why))));
        } else {
            outcomes.extend(fields::check(kind, &crds));
            let why = why_not(kind.part.role);
            outcomes.extend(rules::running(kind.part.role).map(|rule| (rule, not_checked(why))));
        }
        for (rule, outcome) in &mut outcomes {
            if let Some(why) = of_another_contract(rule, kind) {
                *outcome = why;
            }
        }
        outcomes.sort_by_cached_key(|(rule, _)| rules::position(rule));
        let subject = kind.subject();
        findings
            .extend(outcomes.into_iter().map(|(rule, outcome)| Finding::new(rule, subject.clone(), outcome)));
    }
    let release = release::check(sources, &kinds, origin).into_iter();
    findings.extend(release.map(|(rule, subject, outcome)| Finding::new(rule, subject, outcome)));
    Ok(Report { about: about.to_owned(), notes: notes(&kinds, &crds), findings })
}

/// What is wrong with the metadata.yaml of components, if anything is. `folders` are those that it is in, nearest first.
pub(crate) fn broken_metadata(metadata: &Value, folders: &[String], components: &[Source]) -> Option<Broken> {
    // What is wrong with the CRDs themselves has rules of its own.
    let crds = crds(components).unwrap_or_default();
    let kinds: Vec<_> = crds.iter().filter_map(|crd| Some(Kind::new(crd, role::part(crd, &crds)?))).collect();
    release::broken_series(metadata, folders, &kinds)
}

/// A rule of a contract that core does not speak with a kind does not bind it.
fn of_another_contract(rule: &Rule, kind: &Kind<'_>) -> Option<Outcome> {
    let Picked::View(view) = kind.picked else { return None };
    let bound = match rule.contracts {
        Contracts::All => true,
        Contracts::V1Beta1 => view.contract == ContractVersion::V1Beta1,
        Contracts::V1Beta2 => view.contract == ContractVersion::V1Beta2,
    };
    (!bound)
        .then(|| not_applicable(format!("core speaks contract {}, which does not have it", view.contract)))
}

/// Why a rule needs a running provider.
fn why_not(role: Role) -> &'static str {
    match role {
        Role::InfraCluster => {
            "files do not show what a provider does: `capstan conformance infracluster` checks a running one"
        }
        _ => {
            "files do not show what a provider does, and running providers are checked for InfraClusters only"
        }
    }
}

fn crds(sources: &[Source]) -> Result<Vec<Crd<'_>>, NothingToCheck> {
    let mut taken: Vec<(&Source, Crd<'_>)> = Vec::new();
    for source in sources {
        let Some(crd) = Crd::read(source) else { continue };
        match taken.iter().find(|(_, it)| it.name == crd.name) {
            None => taken.push((source, crd)),
            Some((other, _)) if other.object["spec"] == source.object["spec"] => {}
            Some((other, _)) => {
                return Err(NothingToCheck::Twice {
                    name: crd.name.to_owned(),
                    first: other.file.clone(),
                    second: source.file.clone(),
                });
            }
        }
    }
    Ok(taken.into_iter().map(|(_, crd)| crd).collect())
}

fn nothing(about: &str, crds: &[Crd<'_>]) -> NothingToCheck {
    let about = about.to_owned();
    let kinds = |crds: &[&Crd<'_>]| crds.iter().map(|it| it.id.kind.as_str()).collect::<Vec<_>>().join(", ");
    if crds.is_empty() {
        return NothingToCheck::NoCrds { about };
    }
    let core: Vec<_> = crds.iter().filter(|it| it.id.group == CORE_GROUP).collect();
    if core.iter().any(|it| it.id.kind == "Cluster") {
        return NothingToCheck::Core { about, kinds: kinds(&core) };
    }
    NothingToCheck::NoContractKinds { about, kinds: kinds(&crds.iter().collect::<Vec<_>>()) }
}

/// What core will make of each kind.
fn notes(kinds: &[Kind<'_>], crds: &[Crd<'_>]) -> Vec<String> {
    let mut notes: Vec<_> = kinds.iter().map(note).collect();
    let passed_over: Vec<_> = crds
        .iter()
        .filter(|crd| {
            let labelled = ContractVersion::PREFERENCE.iter().any(|it| crd.labels.contains_key(&it.label()));
            let family = role::family(&crd.id.group);
            family != Family::Core && (family != Family::Foreign || labelled)
        })
        .filter(|crd| !kinds.iter().any(|it| it.crd.name == crd.name))
        .map(|it| it.id.kind.as_str())
        .collect();
    if !passed_over.is_empty() {
        notes.push(format!("not judged, because core does not read them: {}", passed_over.join(", ")));
    }
    notes
}

fn note(kind: &Kind<'_>) -> String {
    let crd = kind.crd;
    let template = if kind.part.template { "Template" } else { "" };
    let what = format!("{} is an {}{template} ({})", crd.id.kind, kind.part.role.as_str(), kind.part.why)
        .replace("is an BootstrapConfig", "is a BootstrapConfig")
        .replace("is an ControlPlane", "is a ControlPlane");
    let pick = match pick_served_version(crd.name, &crd.labels, &crd.served()) {
        Ok(pick) => pick,
        Err(NoCompatibleContract::Unlabelled { .. }) => {
            return format!("{what}; core picks no version of it, because no label names a contract");
        }
        Err(NoCompatibleContract::Unserved { named, .. }) => {
            return format!(
                "{what}; core picks no version of it, because none is served that a label names ({})",
                list_labels(&named)
            );
        }
    };
    let label = pick.contract.label();
    let value = crd.labels.get(&label).map(String::as_str).unwrap_or_default();
    let other = ContractVersion::PREFERENCE
        .into_iter()
        .find(|it| *it < pick.contract && crd.labels.contains_key(&it.label()))
        .map(|it| format!("; {} comes before {it}", pick.contract))
        .unwrap_or_default();
    let all_served = labelled_versions(&crd.labels, pick.contract).all(|it| crd.served().contains(&it));
    let greatest = match (value == pick.version, all_served) {
        (true, _) => "",
        (false, true) => ", the greatest of its list",
        (false, false) => ", the greatest of its list that is served",
    };
    format!(
        "{what}; core speaks contract {} with its version {} (label {label}: {value}{greatest}{other})",
        pick.contract, pick.version
    )
}
