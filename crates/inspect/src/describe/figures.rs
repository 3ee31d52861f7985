//! How many replicas an object has, and in which state.

use serde_json::Value;

use crate::fields::number;

use super::condition::{AVAILABLE, Condition, READY, UP_TO_DATE, find};

/// Counters of an object; those that are not reported are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Replicas that exist.
    pub current: Option<i64>,
    /// Replicas that are wanted.
    pub desired: Option<i64>,
    /// Replicas that are available.
    pub available: Option<i64>,
    /// Replicas that are ready.
    pub ready: Option<i64>,
    /// Replicas that are as their template says.
    pub up_to_date: Option<i64>,
}

impl Figures {
    /// Those of a Cluster: control plane and workers together.
    pub(super) fn of_cluster(cluster: &Value) -> Self {
        let sum = |field: &str| {
            let parts = ["controlPlane", "workers"].map(|part| {
                let place = |prefix: &str| number(cluster, &format!("/status/{prefix}{part}/{field}"));
                place("").or_else(|| place("v1beta2/"))
            });
            add(parts[0], parts[1])
        };
        let (current, desired) = (sum("replicas"), sum("desiredReplicas"));
        Self {
            current,
            desired: desired.or(current.map(|_| 0)),
            available: sum("availableReplicas"),
            ready: sum("readyReplicas"),
            up_to_date: sum("upToDateReplicas"),
        }
    }

    /// Those of a MachineDeployment, MachineSet or MachinePool.
    pub(super) fn of_workers(object: &Value) -> Self {
        let desired = number(object, "/spec/replicas");
        let first = |places: &[&str]| places.iter().find_map(|place| number(object, place));
        Self {
            current: desired.and(number(object, "/status/replicas").or(Some(0))),
            desired,
            available: first(&["/status/v1beta2/availableReplicas", "/status/availableReplicas"]),
            ready: first(&["/status/v1beta2/readyReplicas", "/status/readyReplicas"]),
            up_to_date: first(&[
                "/status/v1beta2/upToDateReplicas",
                "/status/upToDateReplicas",
                "/status/updatedReplicas",
            ]),
        }
    }

    /// Those of a provider's control plane object.
    pub(super) fn of_control_plane(object: &Value, up_to_date: Option<i64>) -> Self {
        let both = number(object, "/status/replicas").zip(number(object, "/spec/replicas"));
        Self {
            current: both.map(|it| it.0),
            desired: both.map(|it| it.1),
            available: number(object, "/status/availableReplicas"),
            ready: number(object, "/status/readyReplicas"),
            up_to_date,
        }
    }

    /// Those of a MachineHealthCheck: Machines that are healthy among those that it looks at.
    pub(super) fn of_health_check(object: &Value) -> Self {
        let (current, desired) =
            (number(object, "/status/currentHealthy"), number(object, "/status/expectedMachines"));
        Self { current, desired, ..Self::default() }
    }

    /// Those of one Machine, by its conditions.
    pub(super) fn of_machine(conditions: &[Condition]) -> Self {
        let one = |type_: &str| Some(i64::from(find(conditions, type_).is_some_and(Condition::is_true)));
        Self {
            current: Some(1),
            desired: None,
            available: one(AVAILABLE),
            ready: one(READY),
            up_to_date: one(UP_TO_DATE),
        }
    }

    /// Those of several Machines together.
    pub(super) fn sum(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().fold(Self::default(), |sum, it| Self {
            current: None,
            desired: None,
            available: add(sum.available, it.available),
            ready: add(sum.ready, it.ready),
            up_to_date: add(sum.up_to_date, it.up_to_date),
        })
    }
}

fn add(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_has_the_replicas_of_its_parts() {
        for (status, expected) in [
            (json!({}), (None, None)),
            (json!({"controlPlane": {"replicas": 3, "desiredReplicas": 3}}), (Some(3), Some(3))),
            (
                json!({"controlPlane": {"replicas": 1}, "workers": {"replicas": 2, "desiredReplicas": 5}}),
                (Some(3), Some(5)),
            ),
            (json!({"workers": {"replicas": 2}}), (Some(2), Some(0))),
            (json!({"workers": {"desiredReplicas": 2}}), (None, Some(2))),
            (json!({"v1beta2": {"workers": {"desiredReplicas": 2, "replicas": 1}}}), (Some(1), Some(2))),
        ] {
            let figures = Figures::of_cluster(&json!({"status": status}));
            assert_eq!((figures.current, figures.desired), expected, "{status}");
        }
    }

    #[test]
    fn workers_report_in_the_words_of_their_version() {
        let of = |status: Value| Figures::of_workers(&json!({"spec": {"replicas": 2}, "status": status}));
        let figures = |ready, up_to_date| Figures {
            current: Some(0),
            desired: Some(2),
            available: None,
            ready,
            up_to_date,
        };
        assert_eq!(of(json!({})), figures(None, None));
        assert_eq!(of(json!({"readyReplicas": 1, "upToDateReplicas": 2})), figures(Some(1), Some(2)));
        assert_eq!(of(json!({"readyReplicas": 1, "updatedReplicas": 2})), figures(Some(1), Some(2)));
        let both = json!({"readyReplicas": 1, "v1beta2": {"readyReplicas": 2, "upToDateReplicas": 0}});
        assert_eq!(of(both), figures(Some(2), Some(0)));
        assert_eq!(Figures::of_workers(&json!({"status": {"replicas": 3}})), Figures::default());
    }
}
