//! Fields that several kinds have.

use crate::convert::shape::{
    Field, Fields,
    Shape::{
        self, Anything, Flag, Group, Implied, List, Map, Number, NumberOrText, Object, Objects, Seconds,
        Spread, Text, Time,
    },
    moved, number, same, text,
};

pub(super) const TEXTS: Shape = List(&Text);

pub(super) static OBJECT_METADATA: Fields = Fields {
    own: &[
        text("name"),
        text("generateName"),
        text("namespace"),
        text("selfLink"),
        text("uid"),
        text("resourceVersion"),
        number("generation"),
        same("creationTimestamp", Time),
        same("deletionTimestamp", Time),
        number("deletionGracePeriodSeconds").if_present(),
        same("ownerReferences", Objects(&OWNER_REFERENCE)),
        same("finalizers", TEXTS),
        same("managedFields", List(&Anything)),
    ],
    shared: &[&METADATA],
};

static OWNER_REFERENCE: Fields = Fields {
    own: &[
        text("apiVersion").always(),
        text("kind").always(),
        text("name").always(),
        text("uid").always(),
        same("controller", Flag).if_present(),
        same("blockOwnerDeletion", Flag).if_present(),
    ],
    shared: &[],
};

/// Labels and annotations, as templates have them.
pub(super) static METADATA: Fields =
    Fields { own: &[same("labels", Map(&Text)), same("annotations", Map(&Text))], shared: &[] };

/// A reference whose version follows from the contract.
pub(super) static REFERENCE: Fields = Fields {
    own: &[moved("apiVersion", "apiGroup", Group), text("kind"), text("name")],
    shared: &[&IMPLIED],
};

/// A reference that says its version.
pub(super) static TEMPLATE_REFERENCE: Fields =
    Fields { own: &[text("apiVersion"), text("kind"), text("name")], shared: &[&IMPLIED] };

/// References are to objects in the same namespace, and to nothing in particular about them.
static IMPLIED: Fields = Fields {
    own: &[
        same("namespace", Implied),
        same("uid", Implied),
        same("resourceVersion", Implied),
        same("fieldPath", Implied),
    ],
    shared: &[],
};

pub(super) static LABEL_SELECTOR: Fields = Fields {
    own: &[same("matchLabels", Map(&Text)), same("matchExpressions", Objects(&LABEL_REQUIREMENT))],
    shared: &[],
};

static LABEL_REQUIREMENT: Fields =
    Fields { own: &[text("key").always(), text("operator").always(), same("values", TEXTS)], shared: &[] };

pub(super) static GATE: Fields = Fields { own: &[text("conditionType"), text("polarity")], shared: &[] };

pub(super) static TAINT: Fields =
    Fields { own: &[text("key"), text("value"), text("effect"), text("propagation")], shared: &[] };

pub(super) const TAINTS: Field = same("taints", Objects(&TAINT));
pub(super) const READINESS_GATES: Field = same("readinessGates", Objects(&GATE));
pub(super) const AVAILABILITY_GATES: Field = same("availabilityGates", Objects(&GATE));
pub(super) const VERSIONS: Field = same("versions", Objects(&VERSION));

static VERSION: Fields = Fields { own: &[text("version"), number("replicas")], shared: &[] };

/// How long a Machine's deletion may take.
pub(super) static DELETION: Fields = Fields {
    own: &[
        moved("nodeDrainTimeout", "deletion.nodeDrainTimeoutSeconds", Seconds).if_present(),
        moved("nodeVolumeDetachTimeout", "deletion.nodeVolumeDetachTimeoutSeconds", Seconds).if_present(),
        moved("nodeDeletionTimeout", "deletion.nodeDeletionTimeoutSeconds", Seconds).if_present(),
    ],
    shared: &[],
};

/// What makes a Machine unhealthy, and what is done about it.
pub(super) static HEALTH_CHECK: Fields = Fields {
    own: &[
        moved("nodeStartupTimeout", "checks.nodeStartupTimeoutSeconds", Seconds).if_present(),
        moved("unhealthyConditions", "checks.unhealthyNodeConditions", UNHEALTHY_CONDITIONS),
        moved("unhealthyMachineConditions", "checks.unhealthyMachineConditions", UNHEALTHY_CONDITIONS),
        moved("maxUnhealthy", "remediation.triggerIf.unhealthyLessThanOrEqualTo", NumberOrText).if_present(),
        moved("unhealthyRange", "remediation.triggerIf.unhealthyInRange", Text),
        moved("remediationTemplate", "remediation.templateRef", Object(&TEMPLATE_REFERENCE)),
    ],
    shared: &[],
};

const UNHEALTHY_CONDITIONS: Shape = Objects(&UNHEALTHY_CONDITION);

static UNHEALTHY_CONDITION: Fields = Fields {
    own: &[text("type"), text("status"), moved("timeout", "timeoutSeconds", Seconds).always()],
    shared: &[],
};

/// A strategy whose remediation stays with the workers.
pub(super) static STRATEGY: Fields =
    Fields { own: &[same("remediation", Spread(&MAX_IN_FLIGHT))], shared: &[&ROLLOUT_STRATEGY] };

/// A strategy whose remediation goes to the health check.
pub(super) static CLASS_STRATEGY: Fields =
    Fields { own: &[same("remediation", Spread(&HEALTH_CHECK_MAX_IN_FLIGHT))], shared: &[&ROLLOUT_STRATEGY] };

static ROLLOUT_STRATEGY: Fields = Fields {
    own: &[moved("type", "rollout.strategy.type", Text), same("rollingUpdate", Spread(&ROLLING_UPDATE))],
    shared: &[],
};

static ROLLING_UPDATE: Fields = Fields {
    own: &[
        moved("maxUnavailable", "rollout.strategy.rollingUpdate.maxUnavailable", NumberOrText).if_present(),
        moved("maxSurge", "rollout.strategy.rollingUpdate.maxSurge", NumberOrText).if_present(),
        moved("deletePolicy", "deletion.order", Text),
    ],
    shared: &[],
};

static MAX_IN_FLIGHT: Fields = Fields {
    own: &[moved("maxInFlight", "remediation.maxInFlight", NumberOrText).if_present()],
    shared: &[],
};

static HEALTH_CHECK_MAX_IN_FLIGHT: Fields = Fields {
    own: &[moved("maxInFlight", "healthCheck.remediation.maxInFlight", NumberOrText).if_present()],
    shared: &[],
};

pub(super) static NAMING: Fields = Fields { own: &[text("template")], shared: &[] };

/// The conditions of v1beta1 are put aside, and those of v1beta2 take their place.
pub(super) static CONDITIONS: Fields = Fields {
    own: &[moved("conditions", "deprecated.v1beta1.conditions", Objects(&OLD_CONDITION))],
    shared: &[],
};

pub(super) const NEW_CONDITIONS: Field = same("conditions", Objects(&CONDITION));

/// A status under `v1beta2` that has conditions and nothing else.
pub(super) static V1BETA2_CONDITIONS: Fields = Fields { own: &[NEW_CONDITIONS], shared: &[] };

/// A status under `v1beta2` with conditions and the counters that mean something else than those of v1beta1.
pub(super) static V1BETA2_COUNTERS: Fields = Fields {
    own: &[
        NEW_CONDITIONS,
        number("readyReplicas").if_present(),
        number("availableReplicas").if_present(),
        number("upToDateReplicas").if_present(),
    ],
    shared: &[],
};

pub(super) static FAILURE: Fields = Fields {
    own: &[
        moved("failureReason", "deprecated.v1beta1.failureReason", Text).if_present(),
        moved("failureMessage", "deprecated.v1beta1.failureMessage", Text).if_present(),
    ],
    shared: &[],
};

static OLD_CONDITION: Fields = Fields {
    own: &[
        text("type").always(),
        text("status").always(),
        text("severity"),
        same("lastTransitionTime", Time).always(),
        text("reason"),
        text("message"),
    ],
    shared: &[],
};

static CONDITION: Fields = Fields {
    own: &[
        text("type").always(),
        text("status").always(),
        same("observedGeneration", Number),
        same("lastTransitionTime", Time).always(),
        text("reason").always(),
        text("message").always(),
    ],
    shared: &[],
};
