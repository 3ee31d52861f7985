//! What would be read of a state, were its objects on a server.

use capstan_inspect::{
    describe::{ConditionStyle, DescribeOptions},
    snapshot::{Crd, Reference, Unreadable, WorkloadSnapshot},
};
use capstan_management::ObjectRef;
use serde_json::Value;

use super::{objects::CLUSTER, states::State};

/// The flags of a state.
pub(crate) fn options(state: &State) -> DescribeOptions {
    let mut options = DescribeOptions { grouping: true, ..DescribeOptions::default() };
    let mut words = state.flags.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            // The list is for the drawing; the tree has all conditions.
            "--show-conditions" => {
                words.next();
            }
            "--show-machinesets" => options.show_machine_sets = true,
            "--show-resourcesets" => options.show_resource_sets = true,
            "--show-templates" => options.show_templates = true,
            "--echo" => options.echo = true,
            "--grouping=false" => options.grouping = false,
            "--v1beta2=false" => options.style = ConditionStyle::Legacy,
            unknown => unreachable!("{unknown} is no flag"),
        }
    }
    options
}

/// What is read of a state.
pub(crate) fn snapshot(state: &State) -> WorkloadSnapshot {
    let cluster = state.objects.iter().find(|it| it["kind"] == "Cluster").expect("a Cluster").clone();
    let (core, others): (Vec<&Value>, Vec<&Value>) = state.objects.iter().partition(|it| is_listed(it));
    let is_allowed = |it: &&&Value| !state.forbidden.iter().any(|kind| it["kind"] == *kind);
    let mut snapshot = WorkloadSnapshot {
        cluster,
        objects: core.iter().filter(is_allowed).map(|it| (*it).clone()).collect(),
        unreadable: state.forbidden.iter().map(|kind| refusal(kind)).collect(),
        ..WorkloadSnapshot::default()
    };
    // A control plane names its template only when it has been read.
    for _ in 0..2 {
        let machines = snapshot.machine_references();
        for reference in snapshot.references(options(state).show_templates) {
            if !reference.kind.starts_with("UnheardOf") {
                let crd = crd(&reference, &others);
                snapshot.crds.insert(crd.name.clone(), crd);
            }
            let is_it = |it: &&&Value| it["kind"] == reference.kind.as_str();
            let named = |it: &&&Value| it["metadata"]["name"] == reference.name.as_str();
            let carries_label = |it: &&&Value| {
                machines.contains(&reference)
                    && it["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == CLUSTER
            };
            for object in others.iter().filter(is_allowed).filter(is_it) {
                if (named(&object) || carries_label(&object)) && !snapshot.objects.contains(object) {
                    snapshot.objects.push((*object).clone());
                }
            }
        }
    }
    snapshot
}

/// Whether an object is found by the Cluster's label or, the binding, by its name.
fn is_listed(object: &Value) -> bool {
    let is_core = ["Machine", "MachineSet", "MachineDeployment", "MachinePool", "MachineHealthCheck"]
        .iter()
        .any(|it| object["kind"] == *it);
    let labels = &object["metadata"]["labels"];
    is_core && labels["cluster.x-k8s.io/cluster-name"] == CLUSTER
        || object["kind"] == "ClusterResourceSetBinding" && object["metadata"]["name"] == CLUSTER
}

fn refusal(kind: &str) -> Unreadable {
    let group = match kind {
        "ClusterResourceSetBinding" => "addons.cluster.x-k8s.io",
        kind if kind.starts_with("Generic") => "infrastructure.cluster.x-k8s.io",
        _ => "cluster.x-k8s.io",
    };
    Unreadable {
        what: ObjectRef::new(&format!("{group}/v1beta2"), kind, None, ""),
        is_forbidden: true,
        reason: format!("{kind} is forbidden: User \"guest\" cannot look at it in the namespace \"default\""),
    }
}

/// The CRD of a kind, which speaks the contract that its objects are written in.
fn crd(reference: &Reference, objects: &[&Value]) -> Crd {
    let is_old = objects.iter().any(|it| {
        it["kind"] == reference.kind.as_str()
            && it["apiVersion"].as_str().is_some_and(|it| it.ends_with("/v1beta1"))
    });
    let contract = if is_old { "v1beta1" } else { "v1beta2" };
    let plural = format!("{}s", reference.kind.to_lowercase());
    Crd {
        name: format!("{plural}.{}", reference.group),
        group: reference.group.clone(),
        plural,
        labels: [(format!("cluster.x-k8s.io/{contract}"), contract.to_owned())].into(),
        is_namespaced: true,
        versions: vec![(contract.to_owned(), true)],
        converter: None,
    }
}
