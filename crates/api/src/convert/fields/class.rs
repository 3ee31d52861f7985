//! `ClusterClass`.

use super::{
    common::{
        AVAILABILITY_GATES, CLASS_STRATEGY, CONDITIONS, DELETION, HEALTH_CHECK, METADATA, NAMING,
        READINESS_GATES, TAINTS, TEMPLATE_REFERENCE, TEXTS, V1BETA2_CONDITIONS,
    },
    schema::VARIABLE_SCHEMA,
};
use crate::convert::shape::{
    Fields,
    Shape::{Anything, Flag, Map, Object, Objects, Spread, Text},
    moved, number, same, text,
};

pub(super) static SPEC: Fields = Fields {
    own: &[
        AVAILABILITY_GATES,
        same("infrastructure", Object(&TEMPLATE)),
        same("infrastructureNamingStrategy", Spread(&INFRASTRUCTURE_NAMING)),
        same("controlPlane", Object(&CONTROL_PLANE)),
        same("workers", Object(&WORKERS)),
        same("variables", Objects(&VARIABLE)),
        same("patches", Objects(&PATCH)),
        same("upgrade", Object(&UPGRADE)),
        same("kubernetesVersions", TEXTS),
    ],
    shared: &[],
};

static TEMPLATE: Fields =
    Fields { own: &[moved("ref", "templateRef", Object(&TEMPLATE_REFERENCE))], shared: &[] };

static INFRASTRUCTURE_NAMING: Fields =
    Fields { own: &[moved("template", "infrastructure.naming.template", Text)], shared: &[] };

static CONTROL_PLANE: Fields = Fields {
    own: &[
        same("metadata", Object(&METADATA)),
        same("machineInfrastructure", Object(&TEMPLATE)),
        moved("machineHealthCheck", "healthCheck", Object(&HEALTH_CHECK)),
        moved("namingStrategy", "naming", Object(&NAMING)),
        TAINTS,
        READINESS_GATES,
    ],
    shared: &[&TEMPLATE, &DELETION],
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
        text("class"),
        same("template", Spread(&MACHINES)),
        moved("machineHealthCheck", "healthCheck", Object(&HEALTH_CHECK)),
        text("failureDomain"),
        moved("namingStrategy", "naming", Object(&NAMING)),
        TAINTS,
        number("minReadySeconds").if_present(),
        READINESS_GATES,
        same("strategy", Spread(&CLASS_STRATEGY)),
    ],
    shared: &[&DELETION],
};

static MACHINE_POOL: Fields = Fields {
    own: &[
        text("class"),
        same("template", Spread(&MACHINES)),
        same("failureDomains", TEXTS),
        moved("namingStrategy", "naming", Object(&NAMING)),
        TAINTS,
        number("minReadySeconds").if_present(),
    ],
    shared: &[&DELETION],
};

static MACHINES: Fields = Fields {
    own: &[
        same("metadata", Object(&METADATA)),
        same("bootstrap", Object(&TEMPLATE)),
        same("infrastructure", Object(&TEMPLATE)),
    ],
    shared: &[],
};

static VARIABLE: Fields = Fields { own: &[text("name")], shared: &[&DEFINITION] };

/// What a variable may be.
static DEFINITION: Fields = Fields {
    own: &[
        same("required", Flag).always(),
        moved("metadata", "deprecatedV1Beta1Metadata", Object(&METADATA)),
        same("schema", Object(&VARIABLE_SCHEMA)),
    ],
    shared: &[],
};

static PATCH: Fields = Fields {
    own: &[
        text("name"),
        text("description"),
        text("enabledIf"),
        same("definitions", Objects(&PATCH_DEFINITION)),
        same("external", Object(&EXTERNAL_PATCH)).if_present(),
    ],
    shared: &[],
};

static PATCH_DEFINITION: Fields = Fields {
    own: &[same("selector", Object(&SELECTOR)), same("jsonPatches", Objects(&JSON_PATCH))],
    shared: &[],
};

static SELECTOR: Fields =
    Fields { own: &[text("apiVersion"), text("kind"), same("matchResources", Object(&MATCH))], shared: &[] };

static MATCH: Fields = Fields {
    own: &[
        same("controlPlane", Flag).if_present(),
        same("infrastructureCluster", Flag).if_present(),
        same("machineDeploymentClass", Object(&NAMES)).if_present(),
        same("machinePoolClass", Object(&NAMES)).if_present(),
    ],
    shared: &[],
};

static NAMES: Fields = Fields { own: &[same("names", TEXTS)], shared: &[] };

static JSON_PATCH: Fields = Fields {
    own: &[
        text("op"),
        text("path"),
        same("value", Anything),
        same("valueFrom", Object(&VALUE_SOURCE)).if_present(),
    ],
    shared: &[],
};

static VALUE_SOURCE: Fields = Fields { own: &[text("variable"), text("template")], shared: &[] };

static EXTERNAL_PATCH: Fields = Fields {
    own: &[
        moved("generateExtension", "generatePatchesExtension", Text),
        moved("validateExtension", "validateTopologyExtension", Text),
        text("discoverVariablesExtension"),
        same("settings", Map(&Text)),
    ],
    shared: &[],
};

static UPGRADE: Fields = Fields { own: &[same("external", Object(&EXTERNAL_UPGRADE))], shared: &[] };

static EXTERNAL_UPGRADE: Fields = Fields { own: &[text("generateUpgradePlanExtension")], shared: &[] };

pub(super) static STATUS: Fields = Fields {
    own: &[
        same("variables", Objects(&STATUS_VARIABLE)),
        number("observedGeneration"),
        same("v1beta2", Spread(&V1BETA2_CONDITIONS)),
    ],
    shared: &[&CONDITIONS],
};

static STATUS_VARIABLE: Fields = Fields {
    own: &[
        text("name"),
        same("definitionsConflict", Flag).if_present(),
        same("definitions", Objects(&STATUS_DEFINITION)),
    ],
    shared: &[],
};

static STATUS_DEFINITION: Fields = Fields { own: &[text("from")], shared: &[&DEFINITION] };
