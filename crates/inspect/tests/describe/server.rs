//! What would be read of a state, were its objects on a server.

use capstan_api::contract::ContractVersion;
use capstan_inspect::describe::{Found, Listing, Options, Reference, Snapshot, Style, Unreadable, Why};
use serde_json::Value;

use super::{objects::CLUSTER, states::State};

/// The flags of a state.
pub(crate) fn options(state: &State) -> Options {
    let mut options = Options { grouping: true, ..Options::default() };
    let mut words = state.flags.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "--show-conditions" => {
                options.show_conditions = words.next().expect("a list").parse().expect("a list");
            }
            "--show-machinesets" => options.show_machine_sets = true,
            "--show-resourcesets" => options.show_resource_sets = true,
            "--show-templates" => options.show_templates = true,
            "--echo" => options.echo = true,
            "--grouping=false" => options.grouping = false,
            "--v1beta2=false" => options.style = Style::Legacy,
            unknown => unreachable!("{unknown} is no flag"),
        }
    }
    options
}

/// What is read of a state.
pub(crate) fn snapshot(state: &State) -> Snapshot {
    let cluster = of_kind(state, "Cluster").next().expect("a Cluster").clone();
    let mut snapshot = Snapshot {
        machines: list(state, "Machine"),
        machine_sets: list(state, "MachineSet"),
        machine_deployments: list(state, "MachineDeployment"),
        machine_pools: list(state, "MachinePool"),
        health_checks: list(state, "MachineHealthCheck"),
        resource_sets: list(state, "ClusterResourceSetBinding"),
        ..Snapshot::of(cluster)
    };
    for reference in references(state) {
        let found = follow(state, &reference);
        snapshot.references.insert(reference, found);
    }
    let strays = of_kind(state, "GenericMachine").filter(|it| it["metadata"]["ownerReferences"].is_null());
    snapshot.strays = strays.cloned().collect();
    snapshot
}

fn of_kind<'a>(state: &'a State, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    state.objects.iter().filter(move |it| it["kind"] == kind)
}

fn refusal(state: &State, kind: &str) -> Option<Unreadable> {
    let message =
        format!("{kind} is forbidden: User \"guest\" cannot look at it in the namespace \"default\"");
    state.forbidden.contains(&kind).then_some(Unreadable { why: Why::Forbidden, message })
}

fn list(state: &State, kind: &str) -> Listing {
    if let Some(unreadable) = refusal(state, kind) {
        return Err(unreadable);
    }
    let belongs = |it: &&Value| {
        it["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == CLUSTER
            || it["metadata"]["name"] == CLUSTER
    };
    let mut objects: Vec<Value> = of_kind(state, kind).filter(belongs).cloned().collect();
    objects.sort_by_key(|it| it["metadata"]["name"].as_str().map(str::to_owned));
    Ok(objects)
}

/// Everything in the objects that looks like a reference.
fn references(state: &State) -> Vec<Reference> {
    let mut found = Vec::new();
    for object in &state.objects {
        collect(&object["spec"], object["metadata"]["namespace"].as_str().expect("a namespace"), &mut found);
    }
    found
}

fn collect(value: &Value, namespace: &str, found: &mut Vec<Reference>) {
    found.extend(Reference::read(Some(value), namespace));
    for child in value.as_object().into_iter().flat_map(|it| it.values()) {
        collect(child, namespace, found);
    }
}

fn follow(state: &State, reference: &Reference) -> Found {
    if let Some(unreadable) = refusal(state, &reference.kind) {
        return Found::Unreadable(unreadable);
    }
    let unreadable = |why, message: &str| Found::Unreadable(Unreadable { why, message: message.to_owned() });
    if reference.kind.starts_with("UnheardOf") {
        let message = format!(
            "it is referred to, but no kind {} of group {} is installed",
            reference.kind, reference.group
        );
        return unreadable(Why::NoSuchKind, &message);
    }
    match state.objects.iter().find(|it| reference.leads_to(it)) {
        Some(object) => {
            let is_old = object["apiVersion"].as_str().is_some_and(|it| it.ends_with("/v1beta1"));
            let contract = if is_old { ContractVersion::V1Beta1 } else { ContractVersion::V1Beta2 };
            Found::Object(Box::new(object.clone()), Some(contract))
        }
        None => unreadable(Why::NotFound, "it is referred to, but does not exist"),
    }
}
