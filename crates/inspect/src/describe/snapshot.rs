//! All that was read of a Cluster, and what of it refers to what else.

use std::collections::{BTreeMap, BTreeSet};

use capstan_api::contract::ContractVersion;
use serde_json::Value;

use super::{Options, Reference};

/// Why something could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The object does not exist.
    NotFound,
    /// Its kind is not installed.
    NoSuchKind,
    /// The user may not look at it.
    Forbidden,
    /// The server could not answer.
    ServerError,
    /// It is there, but its conditions are none.
    Malformed,
}

impl Why {
    /// One word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "NotFound",
            Self::NoSuchKind => "NoSuchKind",
            Self::Forbidden => "Forbidden",
            Self::ServerError => "ServerError",
            Self::Malformed => "Malformed",
        }
    }
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Why.
    pub why: Why,
    /// The same for a person.
    pub message: String,
}

/// Where a reference leads.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// To an object, and the contract that its kind speaks, if that is known.
    Object(Box<Value>, Option<ContractVersion>),
    /// Nowhere that could be read.
    Unreadable(Unreadable),
}

/// The objects of a kind that belong to the Cluster, in the order of their names.
pub type Listing = Result<Vec<Value>, Unreadable>;

/// All that was read of a Cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The Cluster.
    pub cluster: Value,
    /// Its Machines.
    pub machines: Listing,
    /// Its MachineSets.
    pub machine_sets: Listing,
    /// Its MachineDeployments.
    pub machine_deployments: Listing,
    /// Its MachinePools.
    pub machine_pools: Listing,
    /// Its MachineHealthChecks.
    pub health_checks: Listing,
    /// The ClusterResourceSetBinding of its name, of which there is one or none.
    pub resource_sets: Listing,
    /// What those refer to.
    pub references: BTreeMap<Reference, Found>,
    /// Objects of the same kinds as a Machine's that bear the Cluster's name, but that nobody owns or refers to.
    pub strays: Vec<Value>,
}

impl Snapshot {
    /// A Cluster alone.
    pub fn of(cluster: Value) -> Self {
        Self {
            cluster,
            machines: Ok(Vec::new()),
            machine_sets: Ok(Vec::new()),
            machine_deployments: Ok(Vec::new()),
            machine_pools: Ok(Vec::new()),
            health_checks: Ok(Vec::new()),
            resource_sets: Ok(Vec::new()),
            references: BTreeMap::new(),
            strays: Vec::new(),
        }
    }

    /// What a Cluster or one of its parts is led to by a field.
    pub(super) fn follow(&self, reference: &Reference) -> Option<&Found> {
        self.references.get(reference)
    }

    /// The references whose objects are to be read, as far as they are known by now.
    pub(super) fn wanted(&self, options: &Options) -> BTreeSet<Reference> {
        let mut wanted: BTreeSet<_> = [infrastructure_of(&self.cluster), control_plane_of(&self.cluster)]
            .into_iter()
            .flatten()
            .collect();
        wanted.extend(self.of_machines());
        if options.show_templates {
            wanted.extend(self.templates());
        }
        wanted
    }

    /// The references of Machines and MachinePools.
    pub(super) fn of_machines(&self) -> BTreeSet<Reference> {
        let machines = self.machines.iter().flatten().flat_map(machine_references);
        let pools = self.machine_pools.iter().flatten().flat_map(template_references);
        machines.chain(pools).map(|(_, reference)| reference).collect()
    }

    fn templates(&self) -> BTreeSet<Reference> {
        let deployments = self.machine_deployments.iter().flatten().flat_map(template_references);
        let control_plane = control_plane_of(&self.cluster).and_then(|it| match self.follow(&it)? {
            Found::Object(object, contract) => control_plane_template(object, *contract),
            Found::Unreadable(_) => None,
        });
        deployments.map(|(_, reference)| reference).chain(control_plane).collect()
    }
}

/// The InfraCluster.
pub(super) fn infrastructure_of(cluster: &Value) -> Option<Reference> {
    Reference::read(cluster.pointer("/spec/infrastructureRef"), namespace(cluster))
}

/// The control plane object.
pub(super) fn control_plane_of(cluster: &Value) -> Option<Reference> {
    Reference::read(cluster.pointer("/spec/controlPlaneRef"), namespace(cluster))
}

/// The template that a control plane makes its Machines' infrastructure from.
pub(super) fn control_plane_template(object: &Value, contract: Option<ContractVersion>) -> Option<Reference> {
    let place = match contract {
        Some(ContractVersion::V1Beta1) => "/spec/machineTemplate/infrastructureRef",
        _ => "/spec/machineTemplate/spec/infrastructureRef",
    };
    Reference::read(object.pointer(place), namespace(object))
}

/// What a reference of a Machine is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What it runs on.
    Infrastructure,
    /// What makes a Node of it.
    Bootstrap,
}

/// The infrastructure and the bootstrap configuration of a Machine.
pub(super) fn machine_references(machine: &Value) -> Vec<(Part, Reference)> {
    references_below(machine, "/spec")
}

/// Those of what is made by a template in the object.
pub(super) fn template_references(object: &Value) -> Vec<(Part, Reference)> {
    references_below(object, "/spec/template/spec")
}

fn references_below(object: &Value, place: &str) -> Vec<(Part, Reference)> {
    let read = |(part, field): (Part, &str)| {
        let reference = Reference::read(object.pointer(&format!("{place}/{field}")), namespace(object))?;
        Some((part, reference))
    };
    let fields = [(Part::Infrastructure, "infrastructureRef"), (Part::Bootstrap, "bootstrap/configRef")];
    fields.into_iter().filter_map(read).collect()
}

/// The namespace of an object.
pub(super) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// The name of an object.
pub(super) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// The text at a place; empty where there is none.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
