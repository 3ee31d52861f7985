//! The schema of a ClusterClass's variable.

use super::common::{METADATA, TEXTS};
use crate::convert::shape::{
    Field, Fields,
    Shape::{Anything, Flag, List, Map, Object, Objects},
    number, same, text,
};

pub(super) static VARIABLE_SCHEMA: Fields =
    Fields { own: &[same("openAPIV3Schema", Object(&SCHEMA))], shared: &[] };

static SCHEMA: Fields = Fields {
    own: &[
        text("description"),
        same("example", Anything),
        text("type"),
        same("properties", Map(&Object(&SCHEMA))),
        schema("additionalProperties"),
        limit("maxProperties"),
        limit("minProperties"),
        same("required", TEXTS),
        schema("items"),
        limit("maxItems"),
        limit("minItems"),
        flag("uniqueItems"),
        text("format"),
        limit("maxLength"),
        limit("minLength"),
        text("pattern"),
        limit("maximum"),
        flag("exclusiveMaximum"),
        limit("minimum"),
        flag("exclusiveMinimum"),
        flag("x-kubernetes-preserve-unknown-fields"),
        same("enum", List(&Anything)),
        same("default", Anything),
        same("x-kubernetes-validations", Objects(&VALIDATION)),
        same("x-metadata", Object(&METADATA)),
        flag("x-kubernetes-int-or-string"),
        schemas("allOf"),
        schemas("oneOf"),
        schemas("anyOf"),
        schema("not"),
    ],
    shared: &[],
};

static VALIDATION: Fields = Fields {
    own: &[text("rule"), text("message"), text("messageExpression"), text("reason"), text("fieldPath")],
    shared: &[],
};

const fn limit(name: &'static str) -> Field {
    number(name).if_present()
}

const fn flag(name: &'static str) -> Field {
    same(name, Flag).if_present()
}

const fn schema(name: &'static str) -> Field {
    same(name, Object(&SCHEMA)).if_present()
}

const fn schemas(name: &'static str) -> Field {
    same(name, Objects(&SCHEMA))
}
