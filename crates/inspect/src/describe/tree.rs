//! From a snapshot to a tree.

use std::collections::BTreeSet;

use capstan_api::{
    contract::ContractVersion,
    names::{ADDONS_GROUP, CORE_GROUP},
};
use capstan_management::{ObjectRef, ownership::OwnershipGraph};
use serde_json::Value;

use super::{
    Condition, ConditionStyle, DescribeOptions, Figures, Node, NodeKind, UnreadNode, UnreadReason,
    condition::{self, AVAILABLE, READY, find},
    grouping,
};
use crate::{
    fields::{
        api_version, group, is_control_plane, is_deleting, is_owned, kind, name, namespace, number, text,
    },
    snapshot::{
        Part, Reference, Target, Unreadable, WorkloadIndex, WorkloadSnapshot, control_plane_template,
        machine_references, template_references,
    },
};

const REMEDIATION_ALLOWED: &str = "RemediationAllowed";

/// The tree of a Cluster.
pub fn build(snapshot: &WorkloadSnapshot, options: &DescribeOptions) -> Node {
    let (index, ownership) = (snapshot.index(), snapshot.ownership());
    let mut builder = Builder { snapshot, index, ownership, options, placed: BTreeSet::new() };
    builder.cluster().ordered()
}

struct Builder<'a> {
    snapshot: &'a WorkloadSnapshot,
    index: WorkloadIndex<'a>,
    ownership: OwnershipGraph,
    options: &'a DescribeOptions,
    /// The Machines and MachineSets that hang somewhere, by kind and name.
    placed: BTreeSet<(&'static str, &'a str)>,
}

impl<'a> Builder<'a> {
    fn cluster(&mut self) -> Node {
        let cluster = &self.snapshot.cluster;
        let topology =
            cluster.pointer("/spec/topology").and_then(Value::as_object).filter(|it| !it.is_empty());
        let mut node = self.summed_up(cluster, &[AVAILABLE]);
        node.version =
            topology.map(|it| it.get("version").and_then(Value::as_str).unwrap_or_default().to_owned());
        node.figures = Figures::of_cluster(cluster);
        let infrastructure = Reference::at(cluster, "/spec/infrastructureRef")
            .map(|it| self.referred(&it, "ClusterInfrastructure"));
        node.children.extend(infrastructure);
        node.children.extend(self.control_plane());
        node.children.extend(self.workers());
        node.children.extend(self.resource_sets());
        node.children.extend(self.health_checks());
        node.children.extend(self.unowned());
        node.children.extend(self.unreadable_lists());
        node
    }

    fn control_plane(&mut self) -> Option<Node> {
        let reference = Reference::at(&self.snapshot.cluster, "/spec/controlPlaneRef")?;
        let mut node = match self.index.follow(&reference) {
            Target::Object(object, contract) => self.control_plane_object(object, contract),
            target => not_read(&reference, target, "ControlPlane"),
        };
        let machines = self.of_core("Machine").filter(|it| is_control_plane(it)).collect();
        let machines = self.machines(machines);
        node.children.extend(self.grouped(machines));
        Some(node)
    }

    fn control_plane_object(&self, object: &Value, contract: Option<ContractVersion>) -> Node {
        let mut node = self.summed_up(object, &[AVAILABLE, READY]);
        let up_to_date = |field: &str| number(object, &format!("/status/{field}"));
        let up_to_date = match contract {
            Some(ContractVersion::V1Beta1) => up_to_date("updatedReplicas"),
            Some(ContractVersion::V1Beta2) => up_to_date("upToDateReplicas"),
            None => up_to_date("upToDateReplicas").or_else(|| up_to_date("updatedReplicas")),
        };
        node.role = Some("ControlPlane");
        node.version = object.pointer("/spec/version").and_then(Value::as_str).map(str::to_owned);
        node.figures = Figures::of_control_plane(object, up_to_date);
        if self.options.show_templates
            && let Some(template) = control_plane_template(object, contract)
        {
            node.children.push(self.templates(object, &[(Part::Infrastructure, template)]));
        }
        node
    }

    fn workers(&mut self) -> Option<Node> {
        let mut children = Vec::new();
        for deployment in self.of_core("MachineDeployment") {
            children.push(self.machine_deployment(deployment));
        }
        for pool in self.of_core("MachinePool") {
            children.push(self.machine_pool(pool));
        }
        children.extend(self.other_workers());
        self.together("WorkerGroup", "Workers", children)
    }

    fn machine_deployment(&mut self, deployment: &'a Value) -> Node {
        let mut node = self.with_replicas(deployment, &[AVAILABLE]);
        if self.options.show_templates {
            node.children.push(self.templates(deployment, &template_references(deployment)));
        }
        let sets = self.controlled_by(deployment, "MachineSet");
        if self.options.show_machine_sets {
            node.children.extend(sets.into_iter().map(|it| self.machine_set(it)).collect::<Vec<_>>());
        } else {
            let machines = sets.into_iter().flat_map(|it| self.machines_of_set(it)).collect();
            node.children.extend(self.grouped(machines));
        }
        node
    }

    fn machine_set(&mut self, set: &'a Value) -> Node {
        let mut node = self.with_replicas(set, &[]);
        let machines = self.machines_of_set(set);
        node.children.extend(self.grouped(machines));
        node
    }

    fn machines_of_set(&mut self, set: &'a Value) -> Vec<Node> {
        self.placed.insert(("MachineSet", name(set)));
        self.machines_controlled_by(set)
    }

    fn machine_pool(&mut self, pool: &'a Value) -> Node {
        let mut node = self.with_replicas(pool, &[AVAILABLE, READY]);
        self.add_belongings(&mut node, &template_references(pool), "MachinePoolInfrastructure");
        let machines = self.machines_controlled_by(pool);
        node.children.extend(self.grouped(machines));
        node
    }

    /// Machines and MachineSets that hang nowhere else.
    fn other_workers(&mut self) -> Option<Node> {
        let mut children = Vec::new();
        for set in self.of_core("MachineSet") {
            if !self.placed.contains(&("MachineSet", name(set))) {
                children.push(self.machine_set(set));
            }
        }
        let rest = self.of_core("Machine").collect();
        children.extend(self.machines(rest));
        self.together("OtherGroup", "Other", children)
    }

    /// Nodes below one that stands for them, if there are any.
    fn together(&self, kind: &str, name: &str, children: Vec<Node>) -> Option<Node> {
        let namespace = namespace(&self.snapshot.cluster);
        (!children.is_empty()).then(|| Node::group_of(kind, namespace, name, children))
    }

    fn machines_controlled_by(&mut self, owner: &Value) -> Vec<Node> {
        self.machines(self.controlled_by(owner, "Machine"))
    }

    /// The objects of one of core's kinds.
    fn of_core(&self, kind: &'static str) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.snapshot.all(CORE_GROUP, kind)
    }

    /// The objects of one of core's kinds that another object controls.
    fn controlled_by(&self, owner: &Value, kind: &str) -> Vec<&'a Value> {
        let Some(owner) = self.ownership.find(&ObjectRef::of(owner)) else { return Vec::new() };
        let dependents = self.ownership.dependents(owner);
        let controlled = dependents.filter(|it| self.ownership.controller(*it) == Some(owner));
        let objects = controlled.map(|it| &self.ownership.node(it).object).filter(|it| it.kind == kind);
        objects.filter_map(|it| self.index.get(CORE_GROUP, kind, &it.name)).collect()
    }

    /// Those of the Machines that hang nowhere yet.
    fn machines(&mut self, machines: Vec<&'a Value>) -> Vec<Node> {
        let fresh = machines.into_iter().filter(|it| self.placed.insert(("Machine", name(it))));
        let fresh: Vec<_> = fresh.collect();
        fresh.into_iter().map(|it| self.machine(it)).collect()
    }

    fn machine(&self, machine: &Value) -> Node {
        let mut node = self.summed_up(machine, &[READY]);
        node.version = Some(text(machine, "/spec/version").unwrap_or_default().to_owned());
        node.figures = Figures::of_machine(&node.conditions);
        self.add_belongings(&mut node, &machine_references(machine), "MachineInfrastructure");
        node
    }

    fn grouped(&self, machines: Vec<Node>) -> Vec<Node> {
        if self.options.grouping { grouping::group(machines, self.options.style) } else { machines }
    }

    /// What a Machine or MachinePool refers to, unless it says no more than that.
    fn add_belongings(
        &self,
        node: &mut Node,
        references: &[(Part, Reference)],
        infrastructure: &'static str,
    ) {
        for (part, reference) in references {
            let role = if *part == Part::Bootstrap { "BootstrapConfig" } else { infrastructure };
            let child = self.referred(reference, role);
            if self.options.echo || !is_echo(&child, &node.conditions) {
                node.children.push(child);
            }
        }
    }

    fn templates(&self, owner: &Value, references: &[(Part, Reference)]) -> Node {
        let template = |(part, reference): &(Part, Reference)| {
            let role = match part {
                Part::Bootstrap => "BootstrapConfigTemplate",
                Part::Infrastructure => "MachineInfrastructureTemplate",
            };
            match self.index.follow(reference) {
                // A template has no state of its own.
                Target::Object(object, _) => Node {
                    role: Some(role),
                    api_version: Some(api_version(object).to_owned()),
                    ..Node::new(NodeKind::Object, &reference.kind, &reference.namespace, &reference.name)
                },
                target => not_read(reference, target, role),
            }
        };
        let children = references.iter().map(template).collect();
        let node = Node::group_of("TemplateGroup", namespace(owner), name(owner), children);
        Node { role: Some("Templates"), is_first: true, ..node }
    }

    fn resource_sets(&self) -> Option<Node> {
        if !self.options.show_resource_sets {
            return None;
        }
        let binding = self.snapshot.all(ADDONS_GROUP, "ClusterResourceSetBinding").next()?;
        let bindings = binding.pointer("/spec/bindings").and_then(Value::as_array);
        let set = |binding_of: &Value| Node {
            api_version: Some(api_version(binding).to_owned()),
            ..Node::new(
                NodeKind::Object,
                "ClusterResourceSet",
                namespace(binding),
                text(binding_of, "/clusterResourceSetName").unwrap_or_default(),
            )
        };
        let children = bindings.into_iter().flatten().map(set).collect();
        Some(Node::group_of("ClusterResourceSetGroup", namespace(binding), "ClusterResourceSets", children))
    }

    /// Those that do not remediate any more.
    fn health_checks(&self) -> Option<Node> {
        let checks = self.of_core("MachineHealthCheck").filter(|it| is_owned(it));
        let children = checks.map(|it| self.health_check(it)).filter(is_stuck).collect();
        self.together("MachineHealthCheckGroup", "MachineHealthChecks", children)
    }

    fn health_check(&self, check: &Value) -> Node {
        let mut node = self.summed_up(check, &[REMEDIATION_ALLOWED]);
        node.figures = Figures::of_health_check(check);
        node
    }

    /// Objects with the Cluster's label, but without owner: no controller deletes them.
    fn unowned(&self) -> Option<Node> {
        let checks = self.of_core("MachineHealthCheck").filter(|it| !is_owned(it));
        let checks = checks.map(|it| self.health_check(it));
        let strays = self.strays().map(|it| self.summed_up(it, &[READY]));
        self.together("UnownedGroup", "Unowned", checks.chain(strays).collect())
    }

    /// Providers' objects that carry the Cluster's label, but that nothing owns or refers to.
    fn strays(&self) -> impl Iterator<Item = &'a Value> {
        let references = self.snapshot.references(self.options.show_templates);
        let referred: BTreeSet<_> = references.into_iter().map(|it| (it.group, it.kind, it.name)).collect();
        self.snapshot.objects.iter().filter(move |it| {
            let parts = (group(it).to_owned(), kind(it).to_owned(), name(it).to_owned());
            ![CORE_GROUP, ADDONS_GROUP].contains(&group(it)) && !is_owned(it) && !referred.contains(&parts)
        })
    }

    fn unreadable_lists(&self) -> Vec<Node> {
        let lists = [
            (CORE_GROUP, "Machine", "Machines"),
            (CORE_GROUP, "MachineSet", "MachineSets"),
            (CORE_GROUP, "MachineDeployment", "MachineDeployments"),
            (CORE_GROUP, "MachinePool", "MachinePools"),
            (CORE_GROUP, "MachineHealthCheck", "MachineHealthChecks"),
            (ADDONS_GROUP, "ClusterResourceSetBinding", "ClusterResourceSets"),
        ];
        let cluster = &self.snapshot.cluster;
        let node = |(group, kind, title)| {
            let unreadable = self.snapshot.unreadable(group, kind, name(cluster))?;
            let node = Node::group_of("UnreadableGroup", namespace(cluster), title, Vec::new());
            Some(with_trouble(node, unread(unreadable)))
        };
        lists.into_iter().filter_map(node).collect()
    }

    /// What a reference leads to.
    fn referred(&self, reference: &Reference, role: &'static str) -> Node {
        match self.index.follow(reference) {
            Target::Object(object, _) => Node { role: Some(role), ..self.summed_up(object, &[READY]) },
            target => not_read(reference, target, role),
        }
    }

    fn with_replicas(&self, object: &Value, summary: &[&str]) -> Node {
        let mut node = self.summed_up(object, summary);
        node.version = Some(text(object, "/spec/template/spec/version").unwrap_or_default().to_owned());
        node.figures = Figures::of_workers(object);
        node
    }

    /// An object, and the first of these conditions that it has as its summary; in the legacy style that is always Ready.
    fn summed_up(&self, object: &Value, summary: &[&str]) -> Node {
        let mut node = Node::new(NodeKind::Object, kind(object), namespace(object), name(object));
        node.api_version = Some(api_version(object).to_owned());
        node.is_deleting = is_deleting(object);
        match condition::read(object, self.options.style) {
            Ok(conditions) => node.conditions = conditions,
            Err(error) => {
                let unreadable = UnreadNode { why: UnreadReason::Malformed, message: error.to_string() };
                return with_trouble(node, unreadable);
            }
        }
        let summary = if self.options.style == ConditionStyle::Legacy { &[READY] } else { summary };
        node.summary = summary.iter().find_map(|it| find(&node.conditions, it)).cloned();
        node
    }
}

/// A reference that does not lead to an object.
fn not_read(reference: &Reference, target: Target<'_>, role: &'static str) -> Node {
    let Reference { group, kind, namespace, name, .. } = reference;
    let unreadable = match target {
        Target::Unreadable(unreadable) => unread(unreadable),
        Target::NoSuchKind => UnreadNode {
            why: UnreadReason::NoSuchKind,
            message: format!("it is referred to, but no kind {kind} of group {group} is installed"),
        },
        Target::NotFound | Target::Object(..) => UnreadNode {
            why: UnreadReason::NotFound,
            message: "it is referred to, but does not exist".to_owned(),
        },
    };
    let node = Node::new(NodeKind::Object, kind, namespace, name);
    with_trouble(Node { role: Some(role), ..node }, unreadable)
}

/// What cannot be read takes the place of the summary.
fn with_trouble(node: Node, unreadable: UnreadNode) -> Node {
    let status = if unreadable.why == UnreadReason::NotFound { "Missing" } else { "Unknown" };
    let summary = Condition {
        type_: String::new(),
        status: status.to_owned(),
        severity: "Error".to_owned(),
        reason: unreadable.why.as_str().to_owned(),
        message: unreadable.message.clone(),
        since: None,
    };
    Node { summary: Some(summary), unreadable: Some(unreadable), ..node }
}

/// Whether an object of a Machine is fine, or says no more than the Machine itself.
fn is_echo(child: &Node, parent: &[Condition]) -> bool {
    let ready = find(&child.conditions, READY);
    let says = |it: Option<&Condition>| it.map(Condition::verdict);
    child.unreadable.is_none()
        && (ready.is_some_and(Condition::is_true) || says(ready) == says(find(parent, READY)))
}

fn is_stuck(check: &Node) -> bool {
    check.unreadable.is_some() || find(&check.conditions, REMEDIATION_ALLOWED).is_some_and(|it| !it.is_true())
}

fn unread(unreadable: &Unreadable) -> UnreadNode {
    let why = if unreadable.is_forbidden { UnreadReason::Forbidden } else { UnreadReason::ServerError };
    UnreadNode { why, message: unreadable.reason.clone() }
}
