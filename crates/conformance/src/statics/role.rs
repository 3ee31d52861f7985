//! Which kinds core reads, and as what.
//!
//! Nothing in a CRD says that its kind is, say, an InfraMachine: only a reference does. Here it is taken from three
//! things that must fit together: the group, the end of the kind's name, and at least one field that only the
//! contract has. A provider's other kinds (identities, settings, hosts, networks) lack one of the three.

use capstan_api::{
    contract::ContractVersion,
    names::{
        BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP, CORE_GROUP, INFRASTRUCTURE_GROUP, label::AGGREGATE_TO_MANAGER,
    },
};

use super::{
    crd::Crd,
    schema::{Field, find},
};
use crate::rules::Role;

/// The label by which a provider lets core in; named here for messages.
pub(super) const AGGREGATION: &str = AGGREGATE_TO_MANAGER;

/// Groups of Cluster API whose kinds are no provider's, and the groups of its tools.
const OTHER_GROUPS: [&str; 7] = [
    CORE_GROUP,
    "addons.cluster.x-k8s.io",
    "clusterctl.cluster.x-k8s.io",
    "ipam.cluster.x-k8s.io",
    "management.cluster.x-k8s.io",
    "operator.cluster.x-k8s.io",
    "runtime.cluster.x-k8s.io",
];

/// Whose group it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Infrastructure,
    Bootstrap,
    ControlPlane,
    /// A provider's own group, or one outside Cluster API.
    Foreign,
    /// Core's, or a tool's.
    Core,
}

/// Whose group it is.
pub(super) fn family(group: &str) -> Family {
    match group {
        INFRASTRUCTURE_GROUP => Family::Infrastructure,
        BOOTSTRAP_GROUP => Family::Bootstrap,
        CONTROL_PLANE_GROUP => Family::ControlPlane,
        _ if OTHER_GROUPS.contains(&group) => Family::Core,
        _ => Family::Foreign,
    }
}

/// What a kind is to core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) role: Role,
    /// Whether it is the template of such a kind.
    pub(super) template: bool,
    /// The evidence.
    pub(super) why: String,
}

/// Where a kind of a role reports completion.
pub(super) fn completion(role: Role, contract: ContractVersion) -> &'static str {
    match (role, contract) {
        (Role::ControlPlane, ContractVersion::V1Beta2) => "status.initialization.controlPlaneInitialized",
        (Role::ControlPlane, ContractVersion::V1Beta1) => "status.initialized",
        (Role::BootstrapConfig, ContractVersion::V1Beta2) => "status.initialization.dataSecretCreated",
        (_, ContractVersion::V1Beta2) => "status.initialization.provisioned",
        (_, ContractVersion::V1Beta1) => "status.ready",
    }
}

/// Fields that only such a kind has.
fn own_fields(role: Role) -> &'static [&'static str] {
    match role {
        Role::InfraCluster => {
            &["spec.controlPlaneEndpoint", "status.failureDomains", "status.initialization.provisioned"]
        }
        Role::InfraMachine => &["spec.providerID", "status.initialization.provisioned"],
        Role::InfraMachinePool => &["spec.providerIDList", "status.initialization.provisioned"],
        Role::BootstrapConfig => &["status.dataSecretName", "status.initialization.dataSecretCreated"],
        Role::ControlPlane => &[
            "status.initialization.controlPlaneInitialized",
            "status.initialized",
            "spec.controlPlaneEndpoint",
            "status.externalManagedControlPlane",
        ],
    }
}

/// What the end of a name says. `FooMachinePoolMachine` is a machine, `FooControlPlane` no plane of machines.
fn by_name(kind: &str) -> Option<Role> {
    [
        ("MachinePool", Role::InfraMachinePool),
        ("ControlPlane", Role::ControlPlane),
        ("Cluster", Role::InfraCluster),
        ("Machine", Role::InfraMachine),
        ("Config", Role::BootstrapConfig),
    ]
    .into_iter()
    .find_map(|(end, role)| (kind.len() > end.len() && kind.ends_with(end)).then_some(role))
}

fn is_home(family: Family, role: Role) -> bool {
    match family {
        Family::Infrastructure => role != Role::BootstrapConfig,
        Family::Bootstrap => role == Role::BootstrapConfig,
        Family::ControlPlane => role == Role::ControlPlane,
        Family::Foreign | Family::Core => false,
    }
}

fn has_contract_label(crd: &Crd<'_>) -> bool {
    ContractVersion::PREFERENCE.iter().any(|it| crd.labels.contains_key(&it.label()))
}

/// The fields of a role that any version of a kind has, and whether some version would keep them unnamed.
fn signs(crd: &Crd<'_>, role: Role) -> (Vec<&'static str>, bool) {
    let paths = own_fields(role).iter().copied().chain(["status.ready"]);
    let mut found: Vec<&str> = Vec::new();
    let mut open = false;
    for path in paths {
        for version in &crd.versions {
            match find(version.schema, path) {
                Field::Found(_) if !found.contains(&path) => found.push(path),
                Field::Open => open = true,
                Field::Found(_) | Field::Absent => {}
            }
        }
    }
    (found, open)
}

/// What a kind is to core by itself: templates are distinguished by what they are templates of.
fn by_itself(crd: &Crd<'_>) -> Option<Part> {
    let kind = &crd.id.kind;
    let family = family(&crd.id.group);
    if family == Family::Core {
        return None;
    }
    let part = |role, found: &[&str]| {
        let fields = match found.first() {
            Some(field) => format!("it has {field}"),
            None => "its schema is open".to_owned(),
        };
        Some(Part { role, template: false, why: format!("its name, and {fields}") })
    };
    let Some(role) = by_name(kind) else {
        // In these two groups there is but one kind to look for, and fields that nothing else has.
        let (role, marks) = match family {
            Family::Bootstrap => (Role::BootstrapConfig, own_fields(Role::BootstrapConfig)),
            Family::ControlPlane => (Role::ControlPlane, &own_fields(Role::ControlPlane)[..2]),
            _ => return None,
        };
        let found: Vec<_> = signs(crd, role).0.into_iter().filter(|it| marks.contains(it)).collect();
        let why = format!("its group, and it has {}", found.first()?);
        return Some(Part { role, template: false, why });
    };
    let (found, open) = signs(crd, role);
    let fits = if is_home(family, role) {
        !found.is_empty() || open
    } else if family == Family::Foreign {
        (has_contract_label(crd) && (!found.is_empty() || open)) || found.len() > 1
    } else {
        // At home elsewhere: only what nothing else has will do.
        own_fields(role)[..2].iter().any(|it| found.contains(it))
    };
    if fits { part(role, &found) } else { None }
}

/// What a kind is to core, if anything. `others` are all CRDs that were given.
pub(super) fn part(crd: &Crd<'_>, others: &[Crd<'_>]) -> Option<Part> {
    if let Some(base) = crd.id.kind.strip_suffix("Template") {
        if let Some(other) = others.iter().find(|it| it.id.group == crd.id.group && it.id.kind == base) {
            let part = by_itself(other)?;
            return Some(Part { template: true, why: format!("it is the template of {base}"), ..part });
        }
        // The object's own CRD may be in a file that was not given.
        let role = by_name(base)?;
        let family = family(&crd.id.group);
        let fits = is_home(family, role) || (family == Family::Foreign && has_contract_label(crd));
        return fits.then(|| Part { role, template: true, why: "its name".to_owned() });
    }
    by_itself(crd)
}
