//! Which fields each kind has in v1beta1, and what becomes of them.
//!
//! A field that is missing here is carried over as it is, so a table that is behind upstream's loses nothing.

mod class;
mod cluster;
mod common;
mod machine;
mod schema;
mod workers;

use super::shape::{Fields, Shape::Object, same};

/// The tables of a kind, if it is one that v1beta2 has as well.
pub(super) fn of(kind: &str) -> Option<&'static Fields> {
    KINDS.iter().find(|(name, _)| *name == kind).map(|(_, fields)| *fields)
}

/// An object with spec and status.
macro_rules! kind {
    ($spec:expr $(, $status:expr)?) => {
        kind!(@ same("spec", Object(&$spec)) $(, $status)?)
    };
    (@ $spec:expr $(, $status:expr)?) => {
        &Fields {
            own: &[
                same("metadata", Object(&common::OBJECT_METADATA)).always(),
                $spec,
                $(same("status", Object(&$status)),)?
            ],
            shared: &[],
        }
    };
}

static KINDS: [(&str, &Fields); 8] = [
    // v1beta1 accepts a Cluster without spec, v1beta2 does not.
    ("Cluster", kind!(@ same("spec", Object(&cluster::SPEC)).always(), cluster::STATUS)),
    ("ClusterClass", kind!(class::SPEC, class::STATUS)),
    ("Machine", kind!(machine::SPEC, machine::STATUS)),
    ("MachineDeployment", kind!(workers::DEPLOYMENT_SPEC, workers::DEPLOYMENT_STATUS)),
    ("MachineDrainRule", kind!(machine::DRAIN_RULE_SPEC)),
    ("MachineHealthCheck", kind!(machine::HEALTH_CHECK_SPEC, machine::HEALTH_CHECK_STATUS)),
    ("MachinePool", kind!(workers::POOL_SPEC, workers::POOL_STATUS)),
    ("MachineSet", kind!(workers::SET_SPEC, workers::SET_STATUS)),
];
