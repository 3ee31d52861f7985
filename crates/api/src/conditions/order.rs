//! The order of conditions in an object's list, made for the reader of `kubectl get -o yaml`.

use std::cmp::Ordering;

/// What a reader looks for first. Types that are in neither list come between the two.
const FIRST: [&str; 35] = [
    // Is it usable?
    "Available",
    "Ready",
    "UpToDate",
    "RemoteConnectionProbe",
    "BootstrapConfigReady",
    "InfrastructureReady",
    "ControlPlaneInitialized",
    "ControlPlaneAvailable",
    "WorkersAvailable",
    "CertificatesAvailable",
    "Initialized",
    "EtcdClusterHealthy",
    "ControlPlaneComponentsHealthy",
    "NodeHealthy",
    "NodeReady",
    "NodeKubeadmLabelsAndTaintsSet",
    "EtcdPodHealthy",
    "EtcdMemberHealthy",
    "APIServerPodHealthy",
    "ControllerManagerPodHealthy",
    "SchedulerPodHealthy",
    "HealthCheckSucceeded",
    "OwnerRemediated",
    // What is being done to it?
    "TopologyReconciled",
    "Updating",
    "RollingOut",
    "Remediating",
    "ScalingDown",
    "ScalingUp",
    // What do its Machines say?
    "MachinesReady",
    "ControlPlaneMachinesReady",
    "WorkerMachinesReady",
    "MachinesUpToDate",
    "ControlPlaneMachinesUpToDate",
    "WorkerMachinesUpToDate",
];

const LAST: [&str; 2] = ["Paused", "Deleting"];

/// Compares two condition types by their place in a list: a total order.
pub fn compare(a: &str, b: &str) -> Ordering {
    rank(a).cmp(&rank(b)).then_with(|| a.cmp(b))
}

fn rank(type_: &str) -> usize {
    let position = |list: &[&str]| list.iter().position(|listed| *listed == type_);
    position(&FIRST).or_else(|| position(&LAST).map(|at| FIRST.len() + 1 + at)).unwrap_or(FIRST.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn listed_types_come_first_and_last() {
        let mut types =
            vec!["Deleting", "B", "Available", "A", "Paused", "Ready", "C!", "example.com/Gate", "ScalingUp"];
        types.sort_by(|a, b| compare(a, b));
        assert_eq!(
            types,
            ["Available", "Ready", "ScalingUp", "A", "B", "C!", "example.com/Gate", "Paused", "Deleting"]
        );
    }

    #[test]
    fn a_list_is_as_it_is_listed() {
        let listed: Vec<&str> = FIRST.iter().chain(&["Other"]).chain(&LAST).copied().collect();
        assert!(listed.is_sorted_by(|a, b| compare(a, b) == Ordering::Less));
    }

    fn types() -> impl Strategy<Value = String> {
        prop_oneof![
            prop::sample::select(FIRST.to_vec()).prop_map(str::to_owned),
            prop::sample::select(LAST.to_vec()).prop_map(str::to_owned),
            "[A-Za-z/.]{0,4}",
        ]
    }

    proptest! {
        #[test]
        fn the_order_is_total(a in types(), b in types(), c in types()) {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            prop_assert_eq!(compare(&a, &b) == Ordering::Equal, a == b);
            if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
                prop_assert!(compare(&a, &c).is_le());
            }
        }
    }
}
