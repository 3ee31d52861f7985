//! `Cluster`.

use super::common::{
    AVAILABILITY_GATES, CLASS_STRATEGY, CONDITIONS, DELETION, FAILURE, HEALTH_CHECK, METADATA,
    NEW_CONDITIONS, READINESS_GATES, REFERENCE, TAINTS, TEXTS, VERSIONS,
};
use crate::convert::shape::{
    Fields,
    Shape::{self, Anything, Flag, Gone, Map, NamedList, Object, Objects, Spread, Text, Time},
    moved, number, same, text,
};

pub(super) static SPEC: Fields = Fields {
    own: &[
        same("paused", Flag).if_present(),
        same("clusterNetwork", Object(&NETWORK)),
        same("controlPlaneEndpoint", Object(&ENDPOINT)),
        same("controlPlaneRef", Object(&REFERENCE)),
        same("infrastructureRef", Object(&REFERENCE)),
        same("topology", Object(&TOPOLOGY)),
        AVAILABILITY_GATES,
    ],
    shared: &[],
};

static NETWORK: Fields = Fields {
    own: &[
        number("apiServerPort"),
        same("services", Object(&RANGES)),
        same("pods", Object(&RANGES)),
        text("serviceDomain"),
    ],
    shared: &[],
};

static RANGES: Fields = Fields { own: &[same("cidrBlocks", TEXTS)], shared: &[] };

static ENDPOINT: Fields = Fields { own: &[text("host"), number("port")], shared: &[] };

static TOPOLOGY: Fields = Fields {
    own: &[
        moved("class", "classRef.name", Text),
        moved("classNamespace", "classRef.namespace", Text),
        text("version"),
        same("rolloutAfter", Gone),
        same("controlPlane", Object(&CONTROL_PLANE)),
        same("workers", Object(&WORKERS)),
        same("variables", VARIABLES),
    ],
    shared: &[],
};

static CONTROL_PLANE: Fields = Fields {
    own: &[
        same("metadata", Object(&METADATA)),
        number("replicas").if_present(),
        same("rollout", Object(&ROLLOUT)),
        moved("machineHealthCheck", "healthCheck", Object(&SWITCHED_HEALTH_CHECK)),
        TAINTS,
        READINESS_GATES,
        same("variables", Object(&OVERRIDES)),
    ],
    shared: &[&DELETION],
};

static WORKERS: Fields = Fields {
    own: &[
        same("machineDeployments", Objects(&MACHINE_DEPLOYMENT)),
        same("machinePools", Objects(&MACHINE_POOL)),
    ],
    shared: &[],
};

static MACHINE_DEPLOYMENT: Fields = Fields {
    own: &[
        same("metadata", Object(&METADATA)),
        text("class"),
        text("name"),
        text("failureDomain"),
        number("replicas").if_present(),
        moved("machineHealthCheck", "healthCheck", Object(&SWITCHED_HEALTH_CHECK)),
        TAINTS,
        number("minReadySeconds").if_present(),
        READINESS_GATES,
        same("rollout", Object(&ROLLOUT)),
        same("strategy", Spread(&CLASS_STRATEGY)),
        same("variables", Object(&OVERRIDES)),
    ],
    shared: &[&DELETION],
};

static MACHINE_POOL: Fields = Fields {
    own: &[
        same("metadata", Object(&METADATA)),
        text("class"),
        text("name"),
        same("failureDomains", TEXTS),
        TAINTS,
        number("minReadySeconds").if_present(),
        number("replicas").if_present(),
        same("variables", Object(&OVERRIDES)),
    ],
    shared: &[&DELETION],
};

static ROLLOUT: Fields = Fields { own: &[same("after", Time)], shared: &[] };

/// A health check that can be switched off.
static SWITCHED_HEALTH_CHECK: Fields =
    Fields { own: &[moved("enable", "enabled", Flag).if_present()], shared: &[&HEALTH_CHECK] };

static OVERRIDES: Fields = Fields { own: &[same("overrides", VARIABLES)], shared: &[] };

const VARIABLES: Shape = Objects(&VARIABLE);

static VARIABLE: Fields =
    Fields { own: &[text("name"), same("definitionFrom", Gone), same("value", Anything)], shared: &[] };

pub(super) static STATUS: Fields = Fields {
    own: &[
        moved("infrastructureReady", "initialization.infrastructureProvisioned", Flag),
        moved("controlPlaneReady", "initialization.controlPlaneInitialized", Flag),
        same("failureDomains", NamedList(&FAILURE_DOMAIN)),
        text("phase"),
        number("observedGeneration"),
        same("v1beta2", Spread(&V1BETA2)),
    ],
    shared: &[&CONDITIONS, &FAILURE],
};

static FAILURE_DOMAIN: Fields =
    Fields { own: &[same("controlPlane", Flag).always(), same("attributes", Map(&Text))], shared: &[] };

static V1BETA2: Fields = Fields {
    own: &[
        NEW_CONDITIONS,
        same("controlPlane", Object(&COUNTERS)).if_present(),
        same("workers", Object(&COUNTERS)).if_present(),
    ],
    shared: &[],
};

static COUNTERS: Fields = Fields {
    own: &[
        number("desiredReplicas").if_present(),
        number("replicas").if_present(),
        number("upToDateReplicas").if_present(),
        number("readyReplicas").if_present(),
        number("availableReplicas").if_present(),
        VERSIONS,
        same("upgradePlan", Objects(&PLANNED_VERSION)),
    ],
    shared: &[],
};

static PLANNED_VERSION: Fields = Fields { own: &[text("version")], shared: &[] };
