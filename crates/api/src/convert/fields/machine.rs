//! `Machine`, and the kinds that are about single Machines: `MachineHealthCheck` and `MachineDrainRule`.

use super::common::{
    CONDITIONS, DELETION, FAILURE, HEALTH_CHECK, LABEL_SELECTOR, READINESS_GATES, REFERENCE, TAINTS, TEXTS,
    V1BETA2_CONDITIONS,
};
use crate::convert::shape::{
    Field, Fields,
    Shape::{Flag, Implied, Object, Objects, Spread, Time},
    moved, number, same, text,
};

pub(super) static SPEC: Fields = Fields {
    own: &[
        text("clusterName"),
        same("bootstrap", Object(&BOOTSTRAP)),
        same("infrastructureRef", Object(&REFERENCE)),
        text("version"),
        text("providerID"),
        text("failureDomain"),
        READINESS_GATES,
        TAINTS,
    ],
    shared: &[&DELETION],
};

static BOOTSTRAP: Fields = Fields {
    own: &[same("configRef", Object(&REFERENCE)), text("dataSecretName").if_present()],
    shared: &[],
};

pub(super) static STATUS: Fields = Fields {
    own: &[
        same("nodeRef", Object(&NODE_REFERENCE)),
        same("nodeInfo", Object(&NODE_INFO)).if_present(),
        same("lastUpdated", Time),
        same("addresses", Objects(&ADDRESS)),
        text("phase"),
        same("certificatesExpiryDate", Time),
        moved("bootstrapReady", "initialization.bootstrapDataSecretCreated", Flag),
        moved("infrastructureReady", "initialization.infrastructureProvisioned", Flag),
        number("observedGeneration"),
        same("deletion", Object(&DELETION_PROGRESS)).if_present(),
        same("v1beta2", Spread(&V1BETA2_CONDITIONS)),
    ],
    shared: &[&CONDITIONS, &FAILURE],
};

/// Nodes have one kind and no namespace.
static NODE_REFERENCE: Fields = Fields {
    own: &[
        text("name"),
        same("apiVersion", Implied),
        same("kind", Implied),
        same("namespace", Implied),
        same("uid", Implied),
        same("resourceVersion", Implied),
        same("fieldPath", Implied),
    ],
    shared: &[],
};

static NODE_INFO: Fields = Fields {
    own: &[
        text("machineID").always(),
        text("systemUUID").always(),
        text("bootID").always(),
        text("kernelVersion").always(),
        text("osImage").always(),
        text("containerRuntimeVersion").always(),
        text("kubeletVersion").always(),
        text("kubeProxyVersion").always(),
        text("operatingSystem").always(),
        text("architecture").always(),
        same("swap", Object(&SWAP)).if_present(),
    ],
    shared: &[],
};

static SWAP: Fields = Fields { own: &[number("capacity").if_present()], shared: &[] };

static ADDRESS: Fields = Fields { own: &[text("type"), text("address")], shared: &[] };

static DELETION_PROGRESS: Fields = Fields {
    own: &[
        same("nodeDrainStartTime", Time),
        same("waitForNodeVolumeDetachStartTime", Time),
        same("waitForPreDrainHookStartTime", Time),
        same("waitForPreTerminateHookStartTime", Time),
    ],
    shared: &[],
};

pub(super) static HEALTH_CHECK_SPEC: Fields = Fields {
    own: &[text("clusterName"), same("selector", Object(&LABEL_SELECTOR))],
    shared: &[&HEALTH_CHECK],
};

pub(super) static HEALTH_CHECK_STATUS: Fields = Fields {
    own: &[
        number("expectedMachines").always(),
        number("currentHealthy").always(),
        number("remediationsAllowed").always(),
        number("observedGeneration"),
        same("targets", TEXTS),
        same("v1beta2", Spread(&V1BETA2_CONDITIONS)),
    ],
    shared: &[&CONDITIONS],
};

pub(super) static DRAIN_RULE_SPEC: Fields = Fields {
    own: &[
        same("drain", Object(&DRAIN)),
        same("machines", Objects(&MACHINE_SELECTOR)),
        same("pods", Objects(&POD_SELECTOR)),
    ],
    shared: &[],
};

static DRAIN: Fields = Fields { own: &[text("behavior"), number("order").if_present()], shared: &[] };

static MACHINE_SELECTOR: Fields =
    Fields { own: &[selector("selector"), selector("clusterSelector")], shared: &[] };

static POD_SELECTOR: Fields =
    Fields { own: &[selector("selector"), selector("namespaceSelector")], shared: &[] };

/// A selector that selects everything is something else than none.
const fn selector(name: &'static str) -> Field {
    same(name, Object(&LABEL_SELECTOR)).if_present()
}
