//! `Available`: all that a Cluster's users ask for, in one condition.

use capstan_api::conditions::{
    ConditionRef, ConditionStatus, Input, Polarity, Priority, Reasons, Report, Summary,
};

use crate::plan::Draft;

const TYPE: &str = "Available";
const TOPOLOGY_RECONCILED: &str = "TopologyReconciled";

/// Sums up the conditions that the draft has by now.
pub(crate) fn report(draft: &Draft<'_>) -> Report {
    let topology = Input::positive(TOPOLOGY_RECONCILED);
    let mut inputs = vec![
        Input::negative("Deleting"),
        Input::positive("RemoteConnectionProbe"),
        Input::positive("InfrastructureReady"),
        Input::positive("ControlPlaneAvailable"),
        Input::positive("WorkersAvailable"),
        if draft.cluster.has_topology() { topology } else { topology.optional() },
    ];
    let own_gates = &draft.cluster.spec.availability_gates;
    let gates = match &draft.snapshot.class_gates {
        _ if !own_gates.is_empty() => own_gates,
        Ok(gates) => gates,
        Err(reason) => {
            return Report::new(TYPE, ConditionStatus::Unknown, "InternalError")
                .with_message(format!("the availability gates of the ClusterClass are not known: {reason}"));
        }
    };
    inputs.extend(gates.iter().map(|gate| {
        let polarity = match gate.polarity.as_deref() {
            Some("Negative") => Polarity::Negative,
            _ => Polarity::Positive,
        };
        Input::new(&gate.condition_type, polarity)
    }));
    let deleting = draft.cluster.is_deleting();
    let reasons = Reasons { issue: "NotAvailable", unknown: "AvailableUnknown", info: "Available" };
    Summary::new(TYPE, &inputs)
        .reasons(reasons)
        .judge(|condition| is_of_no_account(condition, deleting).then_some(Priority::Info))
        .merge(&draft.status.conditions)
        .unwrap_or_else(|error| {
            // A gate on Available itself; the schema cannot forbid it.
            Report::new(TYPE, ConditionStatus::Unknown, "InternalError")
                .with_message(format!("spec.availabilityGates: {error}"))
        })
}

fn is_of_no_account(condition: ConditionRef<'_>, deleting: bool) -> bool {
    match condition.type_ {
        // What a Cluster stands on may well be gone before it is.
        "InfrastructureReady" | "ControlPlaneAvailable" => {
            deleting && ["ObjectDeleted", "ObjectDoesNotExist"].contains(&condition.reason)
        }
        // A topology on its way to its next state does not make the Cluster less available.
        TOPOLOGY_RECONCILED => {
            condition.status == ConditionStatus::False
                && !["ReconcileFailed", "ClusterClassNotReconciled"].contains(&condition.reason)
        }
        _ => false,
    }
}
