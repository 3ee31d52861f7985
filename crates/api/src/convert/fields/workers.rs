//! The kinds that make Machines: `MachineDeployment`, `MachineSet` and `MachinePool`.

use super::{
    common::{
        CONDITIONS, FAILURE, LABEL_SELECTOR, METADATA, NAMING, STRATEGY, TEXTS, V1BETA2_COUNTERS, VERSIONS,
    },
    machine,
};
use crate::convert::shape::{
    Field, Fields,
    Shape::{Flag, Gone, Number, Object, Objects, Spread, Text, Time},
    moved, number, same, text,
};

const TEMPLATE: Field = same("template", Object(&MACHINE_TEMPLATE));
const MACHINE_NAMING: Field = moved("machineNamingStrategy", "machineNaming", Object(&NAMING));
const MIN_READY_SECONDS: Field = moved("minReadySeconds", "template.spec.minReadySeconds", Number);

static MACHINE_TEMPLATE: Fields =
    Fields { own: &[same("metadata", Object(&METADATA)), same("spec", Object(&machine::SPEC))], shared: &[] };

pub(super) static DEPLOYMENT_SPEC: Fields = Fields {
    own: &[
        text("clusterName"),
        number("replicas").if_present(),
        moved("rolloutAfter", "rollout.after", Time),
        same("selector", Object(&LABEL_SELECTOR)),
        TEMPLATE,
        same("strategy", Spread(&STRATEGY)),
        MACHINE_NAMING,
        MIN_READY_SECONDS.if_present(),
        same("revisionHistoryLimit", Gone),
        same("paused", Flag).if_present(),
        same("progressDeadlineSeconds", Gone),
    ],
    shared: &[],
};

pub(super) static DEPLOYMENT_STATUS: Fields = Fields {
    own: &[
        number("observedGeneration"),
        text("selector"),
        number("replicas").always(),
        moved("updatedReplicas", "deprecated.v1beta1.updatedReplicas", Number).always(),
        moved("readyReplicas", "deprecated.v1beta1.readyReplicas", Number).always(),
        moved("availableReplicas", "deprecated.v1beta1.availableReplicas", Number).always(),
        moved("unavailableReplicas", "deprecated.v1beta1.unavailableReplicas", Number).always(),
        text("phase"),
        VERSIONS,
        same("v1beta2", Spread(&V1BETA2_COUNTERS)),
    ],
    shared: &[&CONDITIONS],
};

pub(super) static SET_SPEC: Fields = Fields {
    own: &[
        text("clusterName"),
        number("replicas").if_present(),
        MIN_READY_SECONDS,
        moved("deletePolicy", "deletion.order", Text),
        same("selector", Object(&LABEL_SELECTOR)),
        TEMPLATE,
        MACHINE_NAMING,
    ],
    shared: &[],
};

pub(super) static SET_STATUS: Fields = Fields {
    own: &[
        text("selector"),
        number("replicas").always(),
        moved("fullyLabeledReplicas", "deprecated.v1beta1.fullyLabeledReplicas", Number).always(),
        moved("readyReplicas", "deprecated.v1beta1.readyReplicas", Number).always(),
        moved("availableReplicas", "deprecated.v1beta1.availableReplicas", Number).always(),
        number("observedGeneration"),
        VERSIONS,
        same("v1beta2", Spread(&V1BETA2_COUNTERS)),
    ],
    shared: &[&CONDITIONS, &FAILURE],
};

pub(super) static POOL_SPEC: Fields = Fields {
    own: &[
        text("clusterName"),
        number("replicas").if_present(),
        TEMPLATE,
        MIN_READY_SECONDS.if_present(),
        same("providerIDList", TEXTS),
        same("failureDomains", TEXTS),
    ],
    shared: &[],
};

pub(super) static POOL_STATUS: Fields = Fields {
    own: &[
        same("nodeRefs", Objects(&OBJECT_REFERENCE)),
        number("replicas").always(),
        moved("readyReplicas", "deprecated.v1beta1.readyReplicas", Number),
        moved("availableReplicas", "deprecated.v1beta1.availableReplicas", Number),
        moved("unavailableReplicas", "deprecated.v1beta1.unavailableReplicas", Number),
        text("phase"),
        moved("bootstrapReady", "initialization.bootstrapDataSecretCreated", Flag),
        moved("infrastructureReady", "initialization.infrastructureProvisioned", Flag),
        number("observedGeneration"),
        VERSIONS,
        same("v1beta2", Spread(&V1BETA2_COUNTERS)),
    ],
    shared: &[&CONDITIONS, &FAILURE],
};

static OBJECT_REFERENCE: Fields = Fields {
    own: &[
        text("kind"),
        text("namespace"),
        text("name"),
        text("uid"),
        text("apiVersion"),
        text("resourceVersion"),
        text("fieldPath"),
    ],
    shared: &[],
};
