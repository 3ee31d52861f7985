//! Where we differ from `clusterctl convert` and from upstream's webhook on purpose, and why.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// A difference that is meant to be.
pub(super) struct Difference {
    pub(super) name: &'static str,
    pub(super) why: &'static str,
    /// Makes both sides equal in this respect.
    level: fn(&mut Sides<'_>),
}

/// An input, and what both made of it.
struct Sides<'a> {
    input: &'a Value,
    theirs: Value,
    ours: Value,
}

const EMPTY_SPEC: Difference = Difference {
    name: "empty spec",
    why: "upstream leaves a Cluster without spec, which the API server refuses; ours has an empty one",
    level: |sides| {
        if at(&sides.ours, "spec").is_some_and(|spec| spec.as_object().is_some_and(Map::is_empty)) {
            drop_added(&mut sides.ours, &sides.theirs, "spec");
        }
    },
};

/// Beside `clusterctl convert`, which leaves out the second half of what upstream's webhook does.
pub(super) const BESIDE_COMMAND: &[Difference] = &[
    Difference {
        name: "references",
        why: "upstream loses controlPlaneRef, infrastructureRef and configRef, so that its output is refused by the \
              API server; ours has them, as upstream's webhook does",
        level: |sides| {
            for path in [
                "spec.controlPlaneRef",
                "spec.infrastructureRef",
                "spec.bootstrap.configRef",
                "spec.template.spec.infrastructureRef",
                "spec.template.spec.bootstrap.configRef",
            ] {
                drop_added(&mut sides.ours, &sides.theirs, path);
            }
        },
    },
    Difference {
        name: "readiness",
        why: "upstream loses infrastructureReady, controlPlaneReady and bootstrapReady; ours says them under \
              status.initialization, as upstream's webhook does",
        level: |sides| drop_added(&mut sides.ours, &sides.theirs, "status.initialization"),
    },
    Difference {
        name: "minReadySeconds",
        why: "upstream loses it; ours moves it to the template, as upstream's webhook does",
        level: |sides| drop_added(&mut sides.ours, &sides.theirs, "spec.template.spec.minReadySeconds"),
    },
    Difference {
        name: "false",
        why: "upstream adds false where nobody said anything, also in every schema of a ClusterClass",
        level: |sides| drop_false(&mut sides.theirs, Some(&sides.ours)),
    },
    Difference {
        name: "conversion data",
        why: "upstream leaves the annotation there, where nobody reads it any more; ours takes it away, and what only \
              it says of a Machine comes back, as with upstream's webhook",
        level: |sides| {
            let annotations =
                sides.theirs.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
            if annotations.is_some_and(|it| it.remove("cluster.x-k8s.io/conversion-data").is_some()) {
                drop_shells(&mut sides.theirs["metadata"], &sides.ours["metadata"]);
                for path in ["spec.minReadySeconds", "status.failureDomain"] {
                    drop_added(&mut sides.ours, &sides.theirs, path);
                }
                sides.theirs["status"]["phase"] = sides.ours["status"]["phase"].clone();
            }
        },
    },
    Difference {
        name: "last line break",
        why: "upstream trims each document, and with it the text at its end",
        level: |sides| restore_line_break(&mut sides.theirs, &sides.ours),
    },
    UNKNOWN,
    STATUS,
    SHELLS,
];

/// Beside upstream's webhook.
pub(super) const BESIDE_WEBHOOK: &[Difference] = &[
    EMPTY_SPEC,
    Difference {
        name: "explicit false",
        why: "the webhook cannot tell false from absent; ours keeps the false that somebody wrote",
        level: |sides| drop_false(&mut sides.ours, Some(&sides.theirs)),
    },
    Difference {
        name: "counters of a MachineHealthCheck",
        why: "the webhook leaves out what is zero; ours keeps it, as upstream's command does",
        level: |sides| {
            for counter in ["expectedMachines", "currentHealthy", "remediationsAllowed"] {
                let path = format!("status.{counter}");
                if at(&sides.ours, &path) == Some(&Value::from(0)) {
                    drop_added(&mut sides.ours, &sides.theirs, &path);
                }
            }
        },
    },
    UNKNOWN,
    STATUS,
    SHELLS,
];

const UNKNOWN: Difference = Difference {
    name: "unknown fields",
    why: "upstream drops them without a word; ours keeps them, and the API server says what it thinks of them",
    level: |sides| drop_added(&mut sides.ours, &sides.theirs, "spec.unheardOf"),
};

const STATUS: Difference = Difference {
    name: "status",
    why: "upstream adds a status full of zeros to manifests that have none",
    level: |sides| {
        let is_void = |status: &Value| status.as_object().is_none_or(Map::is_empty);
        if sides.input.get("status").is_none_or(is_void) {
            take(&mut sides.theirs, "status");
        }
    },
};

const SHELLS: Difference = Difference {
    name: "empty objects",
    why: "upstream writes status.deprecated.v1beta1 also where there is nothing in it",
    level: |sides| {
        if let Some(status) = sides.theirs.get_mut("status") {
            drop_shells(status, sides.ours.get("status").unwrap_or(&Value::Null));
            let is_shell = status.as_object().is_some_and(Map::is_empty);
            if is_shell && sides.ours.get("status").is_none() {
                take(&mut sides.theirs, "status");
            }
        }
    },
};

/// Makes the two equal where they are meant to differ, and says which differences there were.
pub(super) fn level(
    differences: &'static [Difference],
    input: &Value,
    theirs: Value,
    ours: Value,
) -> (Value, Value, BTreeSet<&'static str>) {
    let mut sides = Sides { input, theirs, ours };
    let mut seen = BTreeSet::new();
    for difference in differences {
        let before = (sides.theirs.clone(), sides.ours.clone());
        (difference.level)(&mut sides);
        if before != (sides.theirs.clone(), sides.ours.clone()) {
            seen.insert(difference.name);
        }
    }
    (sides.theirs, sides.ours, seen)
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, step| value.get(step))
}

/// Removes a field, and the objects around it that are then empty.
fn take(value: &mut Value, path: &str) {
    let Some(object) = value.as_object_mut() else { return };
    match path.split_once('.') {
        None => {
            object.remove(path);
        }
        Some((first, rest)) => {
            let Some(inner) = object.get_mut(first) else { return };
            take(inner, rest);
            if inner.as_object().is_some_and(Map::is_empty) {
                object.remove(first);
            }
        }
    }
}

/// Removes a field that the other side does not have.
fn drop_added(value: &mut Value, other: &Value, path: &str) {
    if at(value, path).is_some() && at(other, path).is_none() {
        take(value, path);
    }
}

/// Removes what is false and not there on the other side.
fn drop_false(value: &mut Value, other: Option<&Value>) {
    match value {
        Value::Object(members) => {
            members.retain(|name, member| {
                let other = other.and_then(|other| other.get(name));
                let had_members = member.as_object().is_some_and(|member| !member.is_empty());
                drop_false(member, other);
                let is_emptied = had_members && member.as_object().is_some_and(Map::is_empty);
                !(other.is_none() && (is_emptied || *member == Value::Bool(false)))
            });
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter_mut().enumerate() {
                drop_false(element, other.and_then(|other| other.get(index)));
            }
        }
        _ => {}
    }
}

/// Gives texts their last line break back.
fn restore_line_break(value: &mut Value, other: &Value) {
    match (value, other) {
        (Value::Object(members), Value::Object(others)) => {
            for (name, member) in members {
                restore_line_break(member, others.get(name).unwrap_or(&Value::Null));
            }
        }
        (Value::String(text), Value::String(other)) if other.strip_suffix('\n') == Some(text) => {
            text.push('\n');
        }
        _ => {}
    }
}

/// Removes empty objects that are not there on the other side.
fn drop_shells(value: &mut Value, other: &Value) {
    if let Value::Object(members) = value {
        members.retain(|name, member| {
            let other = other.get(name);
            drop_shells(member, other.unwrap_or(&Value::Null));
            !(other.is_none() && member.as_object().is_some_and(Map::is_empty))
        });
    }
}
