//! From a snapshot to a tree.

use std::collections::BTreeSet;

use capstan_api::{
    contract::ContractVersion,
    names::{CORE_GROUP, label},
};
use serde_json::Value;

use super::{
    Condition, Figures, Found, Node, Options, Reference, Snapshot, Style, Unreadable, What, Why,
    condition::{self, AVAILABLE, READY, find},
    figures::number,
    grouping,
    snapshot::{
        Listing, Part, control_plane_of, control_plane_template, infrastructure_of, machine_references, name,
        namespace, template_references, text,
    },
};

const REMEDIATION_ALLOWED: &str = "RemediationAllowed";

/// The tree of a Cluster.
pub fn build(snapshot: &Snapshot, options: &Options) -> Node {
    let mut builder = Builder { snapshot, options, placed: BTreeSet::new() };
    builder.cluster().ordered()
}

struct Builder<'a> {
    snapshot: &'a Snapshot,
    options: &'a Options,
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
        let infrastructure =
            infrastructure_of(cluster).and_then(|it| self.referred(&it, "ClusterInfrastructure"));
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
        let reference = control_plane_of(&self.snapshot.cluster)?;
        let mut node = match self.snapshot.follow(&reference)? {
            Found::Unreadable(unreadable) => self.not_read(&reference, unreadable, "ControlPlane"),
            Found::Object(object, contract) => self.control_plane_object(object, *contract),
        };
        let machines = of(&self.snapshot.machines).iter().filter(|it| is_control_plane_machine(it)).collect();
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
        for deployment in of(&self.snapshot.machine_deployments) {
            children.push(self.machine_deployment(deployment));
        }
        for pool in of(&self.snapshot.machine_pools) {
            children.push(self.machine_pool(pool));
        }
        children.extend(self.other_workers());
        let namespace = namespace(&self.snapshot.cluster);
        (!children.is_empty()).then(|| Node::group_of("WorkerGroup", namespace, "Workers", children))
    }

    fn machine_deployment(&mut self, deployment: &'a Value) -> Node {
        let mut node = self.with_replicas(deployment, &[AVAILABLE]);
        if self.options.show_templates {
            node.children.push(self.templates(deployment, &template_references(deployment)));
        }
        let sets = of(&self.snapshot.machine_sets);
        let sets = sets.iter().filter(|it| is_controlled_by(it, deployment)).collect::<Vec<_>>();
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
        for set in of(&self.snapshot.machine_sets) {
            if !self.placed.contains(&("MachineSet", name(set))) {
                children.push(self.machine_set(set));
            }
        }
        let rest = of(&self.snapshot.machines).iter().collect();
        children.extend(self.machines(rest));
        let namespace = namespace(&self.snapshot.cluster);
        (!children.is_empty()).then(|| Node::group_of("OtherGroup", namespace, "Other", children))
    }

    fn machines_controlled_by(&mut self, owner: &Value) -> Vec<Node> {
        let machines = of(&self.snapshot.machines).iter().filter(|it| is_controlled_by(it, owner)).collect();
        self.machines(machines)
    }

    /// Those of the Machines that hang nowhere yet.
    fn machines(&mut self, machines: Vec<&'a Value>) -> Vec<Node> {
        let fresh = machines.into_iter().filter(|it| self.placed.insert(("Machine", name(it))));
        let fresh: Vec<_> = fresh.collect();
        fresh.into_iter().map(|it| self.machine(it)).collect()
    }

    fn machine(&self, machine: &Value) -> Node {
        let mut node = self.summed_up(machine, &[READY]);
        node.version = Some(text(machine, "/spec/version").to_owned());
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
            node.children
                .extend(child.filter(|child| self.options.echo || !is_echo(child, &node.conditions)));
        }
    }

    fn templates(&self, owner: &Value, references: &[(Part, Reference)]) -> Node {
        let template = |(part, reference): &(Part, Reference)| {
            let role = match part {
                Part::Bootstrap => "BootstrapConfigTemplate",
                Part::Infrastructure => "MachineInfrastructureTemplate",
            };
            match self.snapshot.follow(reference)? {
                // A template has no state of its own.
                Found::Object(object, _) => Some(Node {
                    role: Some(role),
                    api_version: Some(text(object, "/apiVersion").to_owned()),
                    ..Node::new(What::Object, &reference.kind, &reference.namespace, &reference.name)
                }),
                Found::Unreadable(unreadable) => Some(self.not_read(reference, unreadable, role)),
            }
        };
        let children = references.iter().filter_map(template).collect();
        let node = Node::group_of("TemplateGroup", namespace(owner), name(owner), children);
        Node { role: Some("Templates"), is_first: true, ..node }
    }

    fn resource_sets(&self) -> Option<Node> {
        if !self.options.show_resource_sets {
            return None;
        }
        let binding = of(&self.snapshot.resource_sets).first()?;
        let bindings = binding.pointer("/spec/bindings").and_then(Value::as_array);
        let names = bindings.into_iter().flatten().map(|it| text(it, "/clusterResourceSetName"));
        let set = |name: &str| {
            let api_version = Some(text(binding, "/apiVersion").to_owned());
            Node { api_version, ..Node::new(What::Object, "ClusterResourceSet", namespace(binding), name) }
        };
        let children = names.map(set).collect();
        Some(Node::group_of("ClusterResourceSetGroup", namespace(binding), "ClusterResourceSets", children))
    }

    /// Those that have something to tell: that nothing is repaired any more.
    fn health_checks(&self) -> Option<Node> {
        let checks = of(&self.snapshot.health_checks).iter().filter(|it| is_owned(it));
        let children: Vec<_> = checks.map(|it| self.health_check(it)).filter(is_stuck).collect();
        let namespace = namespace(&self.snapshot.cluster);
        let group =
            || Node::group_of("MachineHealthCheckGroup", namespace, "MachineHealthChecks", children.clone());
        (!children.is_empty()).then(group)
    }

    fn health_check(&self, check: &Value) -> Node {
        let mut node = self.summed_up(check, &[REMEDIATION_ALLOWED]);
        node.figures = Figures::of_health_check(check);
        node
    }

    /// Objects that bear the Cluster's name, but that nobody owns: nobody deletes them either.
    fn unowned(&self) -> Option<Node> {
        let checks = of(&self.snapshot.health_checks).iter().filter(|it| !is_owned(it));
        let checks = checks.map(|it| self.health_check(it));
        let strays = self.snapshot.strays.iter().map(|it| self.summed_up(it, &[READY]));
        let children: Vec<_> = checks.chain(strays).collect();
        let namespace = namespace(&self.snapshot.cluster);
        (!children.is_empty()).then(|| Node::group_of("UnownedGroup", namespace, "Unowned", children))
    }

    fn unreadable_lists(&self) -> Vec<Node> {
        let snapshot = self.snapshot;
        let sets =
            self.options.show_resource_sets.then_some(("ClusterResourceSets", &snapshot.resource_sets));
        let lists = [
            ("Machines", &snapshot.machines),
            ("MachineSets", &snapshot.machine_sets),
            ("MachineDeployments", &snapshot.machine_deployments),
            ("MachinePools", &snapshot.machine_pools),
            ("MachineHealthChecks", &snapshot.health_checks),
        ];
        let node = |(name, list): (&str, &Listing)| {
            let unreadable = list.as_ref().err()?;
            let node = Node::group_of("UnreadableGroup", namespace(&snapshot.cluster), name, Vec::new());
            Some(with_trouble(node, unreadable))
        };
        lists.into_iter().chain(sets).filter_map(node).collect()
    }

    /// What a reference leads to.
    fn referred(&self, reference: &Reference, role: &'static str) -> Option<Node> {
        match self.snapshot.follow(reference)? {
            Found::Object(object, _) => Some(Node { role: Some(role), ..self.summed_up(object, &[READY]) }),
            Found::Unreadable(unreadable) => Some(self.not_read(reference, unreadable, role)),
        }
    }

    fn not_read(&self, reference: &Reference, unreadable: &Unreadable, role: &'static str) -> Node {
        let node = Node::new(What::Object, &reference.kind, &reference.namespace, &reference.name);
        let shown = self.options.show_conditions.of(&reference.kind, &reference.name);
        with_trouble(Node { role: Some(role), shown, ..node }, unreadable)
    }

    fn with_replicas(&self, object: &Value, summary: &[&str]) -> Node {
        let mut node = self.summed_up(object, summary);
        node.version = Some(text(object, "/spec/template/spec/version").to_owned());
        node.figures = Figures::of_workers(object);
        node
    }

    /// An object, and the first of these conditions that it has as its summary; in the legacy style that is always Ready.
    fn summed_up(&self, object: &Value, summary: &[&str]) -> Node {
        let (kind, name) = (text(object, "/kind"), name(object));
        let mut node = Node::new(What::Object, kind, namespace(object), name);
        node.api_version = Some(text(object, "/apiVersion").to_owned());
        node.is_deleting = object.pointer("/metadata/deletionTimestamp").is_some_and(|it| !it.is_null());
        node.shown = self.options.show_conditions.of(kind, name);
        match condition::read(object, self.options.style) {
            Ok(conditions) => node.conditions = conditions,
            Err(error) => {
                return with_trouble(node, &Unreadable { why: Why::Malformed, message: error.to_string() });
            }
        }
        let summary = if self.options.style == Style::Legacy { &[READY] } else { summary };
        node.summary = summary.iter().find_map(|it| find(&node.conditions, it)).cloned();
        node
    }
}

/// What cannot be read is told in the place of its summary.
fn with_trouble(node: Node, unreadable: &Unreadable) -> Node {
    let status = if unreadable.why == Why::NotFound { "Missing" } else { "Unknown" };
    let summary = Condition {
        type_: String::new(),
        status: status.to_owned(),
        severity: "Error".to_owned(),
        reason: unreadable.why.as_str().to_owned(),
        message: unreadable.message.clone(),
        since: None,
    };
    Node { summary: Some(summary), unreadable: Some(unreadable.clone()), ..node }
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

fn is_control_plane_machine(machine: &Value) -> bool {
    let labels = machine.pointer("/metadata/labels").and_then(Value::as_object);
    labels.is_some_and(|it| it.contains_key(label::CONTROL_PLANE))
}

fn is_owned(object: &Value) -> bool {
    object.pointer("/metadata/ownerReferences").and_then(Value::as_array).is_some_and(|it| !it.is_empty())
}

/// Whether the owner that acts for an object is this one: of core's group and by kind and name.
fn is_controlled_by(object: &Value, owner: &Value) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let controller = owners.into_iter().flatten().find(|it| it["controller"] == true);
    controller.is_some_and(|it| {
        text(it, "/apiVersion").split_once('/').is_some_and(|(group, _)| group == CORE_GROUP)
            && text(it, "/kind") == text(owner, "/kind")
            && text(it, "/name") == name(owner)
    })
}

fn of(listing: &Listing) -> &[Value] {
    listing.as_deref().unwrap_or_default()
}
