//! All that belongs to a workload cluster, read once.
//!
//! [`Reader`] reads the Cluster, core's objects with its label and the objects that they refer to. What is derived from
//! them is pure.

mod crd;
mod read;
mod reference;
mod watched;

use std::collections::{BTreeMap, BTreeSet};

use capstan_api::{
    contract::{ContractVersion, crd_name},
    names::CORE_GROUP,
};
use capstan_management::{ObjectRef, ownership::OwnershipGraph};
use serde_json::Value;

use crate::fields::{group, kind, name};

pub use crd::Crd;
pub(crate) use read::{CrdDetail, Reader, Wanted, selector};
pub use reference::Reference;
pub use watched::Watched;

/// An object, or all objects of a kind if it has no name, that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The object or the kind.
    pub what: ObjectRef,
    /// Whether the user lacks the permission.
    pub is_forbidden: bool,
    /// The server's words.
    pub reason: String,
}

/// All that belongs to a workload cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkloadSnapshot {
    /// The Cluster.
    pub cluster: Value,
    /// Core's objects with the Cluster's label, the objects that they and the Cluster refer to, and others of the same
    /// kinds with the label.
    pub objects: Vec<Value>,
    /// The CRDs of the kinds that are referred to, by the names that the contract asks for. A kind without one is not
    /// installed, unless its CRD is unreadable.
    pub crds: BTreeMap<String, Crd>,
    /// Names of CRDs that are not called as the contract asks, by the names that it asks for.
    pub misnamed: BTreeMap<String, String>,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// Where a reference leads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// To an object, and the contract of its kind where that is known.
    Object(&'a Value, Option<ContractVersion>),
    /// To an object that could not be read.
    Unreadable(&'a Unreadable),
    /// To a kind that is not installed.
    NoSuchKind,
    /// To an object that does not exist.
    NotFound,
}

impl WorkloadSnapshot {
    /// The objects by name.
    pub(crate) fn index(&self) -> WorkloadIndex<'_> {
        let by_name = self.objects.iter().map(|it| ((group(it), kind(it), name(it)), it)).collect();
        WorkloadIndex { snapshot: self, by_name }
    }

    /// All objects of a kind.
    pub(crate) fn all<'a>(&'a self, of_group: &'a str, of_kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |it| kind(it) == of_kind && group(it) == of_group)
    }

    /// The CRD of a kind, if it has the name that the contract asks for.
    pub(crate) fn crd(&self, of_group: &str, of_kind: &str) -> Option<&Crd> {
        self.crds.get(&crd_name(of_group, of_kind))
    }

    /// Why an object could not be read, or its whole kind.
    pub(crate) fn unreadable(&self, of_group: &str, of_kind: &str, of_name: &str) -> Option<&Unreadable> {
        self.unreadable.iter().find(|it| {
            it.what.kind == of_kind
                && it.what.group() == of_group
                && (it.what.name == of_name || it.what.name.is_empty())
        })
    }

    /// Whether the CRD of a kind may exist though it is not known.
    pub(crate) fn is_crd_unreadable(&self, of_group: &str, of_kind: &str) -> bool {
        let crd = crd_name(of_group, of_kind);
        self.unreadable("apiextensions.k8s.io", "CustomResourceDefinition", &crd).is_some()
    }

    /// Who owns what among the objects.
    pub(crate) fn ownership(&self) -> OwnershipGraph {
        OwnershipGraph::of(self.objects.iter().chain([&self.cluster]))
    }

    /// The references whose objects belong to the snapshot, as far as they are known by now.
    pub fn references(&self, with_templates: bool) -> BTreeSet<Reference> {
        let own = ["/spec/infrastructureRef", "/spec/controlPlaneRef"];
        let own = own.iter().filter_map(|it| Reference::at(&self.cluster, it));
        let templates = if with_templates { self.templates() } else { BTreeSet::new() };
        own.chain(self.machine_references()).chain(templates).collect()
    }

    /// The references of Machines and MachinePools.
    pub fn machine_references(&self) -> BTreeSet<Reference> {
        let machines = self.all(CORE_GROUP, "Machine").flat_map(machine_references);
        let pools = self.all(CORE_GROUP, "MachinePool").flat_map(template_references);
        machines.chain(pools).map(|(_, reference)| reference).collect()
    }

    fn templates(&self) -> BTreeSet<Reference> {
        let deployments = self.all(CORE_GROUP, "MachineDeployment").flat_map(template_references);
        let control_plane = Reference::at(&self.cluster, "/spec/controlPlaneRef");
        let control_plane = control_plane.and_then(|it| match self.index().follow(&it) {
            Target::Object(object, contract) => control_plane_template(object, contract),
            _ => None,
        });
        deployments.map(|(_, reference)| reference).chain(control_plane).collect()
    }
}

/// The objects of a snapshot by group, kind and name.
#[derive(Clone, Debug)]
pub(crate) struct WorkloadIndex<'a> {
    snapshot: &'a WorkloadSnapshot,
    by_name: BTreeMap<(&'a str, &'a str, &'a str), &'a Value>,
}

impl<'a> WorkloadIndex<'a> {
    /// The object that a reference names.
    pub(crate) fn object(&self, reference: &Reference) -> Option<&'a Value> {
        self.get(&reference.group, &reference.kind, &reference.name)
    }

    /// An object.
    pub(crate) fn get(&self, of_group: &str, of_kind: &str, of_name: &str) -> Option<&'a Value> {
        self.by_name.get(&(of_group, of_kind, of_name)).copied()
    }

    /// Where a reference leads.
    pub(crate) fn follow(&self, reference: &Reference) -> Target<'a> {
        let Reference { group, kind, name, .. } = reference;
        let crd = self.snapshot.crd(group, kind);
        if let Some(object) = self.object(reference) {
            return Target::Object(object, crd.and_then(|it| it.picked().ok()).map(|it| it.contract));
        }
        match self.snapshot.unreadable(group, kind, name) {
            Some(unreadable) => Target::Unreadable(unreadable),
            None if crd.is_some() || self.snapshot.is_crd_unreadable(group, kind) => Target::NotFound,
            None => Target::NoSuchKind,
        }
    }
}

/// The template that a control plane makes its Machines' infrastructure from.
pub(crate) fn control_plane_template(object: &Value, contract: Option<ContractVersion>) -> Option<Reference> {
    let place = match contract {
        Some(ContractVersion::V1Beta1) => "/spec/machineTemplate/infrastructureRef",
        _ => "/spec/machineTemplate/spec/infrastructureRef",
    };
    Reference::at(object, place)
}

/// What a reference of a Machine is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// What it runs on.
    Infrastructure,
    /// What makes a Node of it.
    Bootstrap,
}

/// The infrastructure and the bootstrap configuration of a Machine.
pub(crate) fn machine_references(machine: &Value) -> Vec<(Part, Reference)> {
    references_below(machine, "/spec")
}

/// Those of the Machines that are created from a template in the object.
pub(crate) fn template_references(object: &Value) -> Vec<(Part, Reference)> {
    references_below(object, "/spec/template/spec")
}

fn references_below(object: &Value, place: &str) -> Vec<(Part, Reference)> {
    let fields = [(Part::Infrastructure, "infrastructureRef"), (Part::Bootstrap, "bootstrap/configRef")];
    let read = |(part, field)| Some((part, Reference::at(object, &format!("{place}/{field}"))?));
    fields.into_iter().filter_map(read).collect()
}
