//! Validation and defaulting of Clusters.
//!
//! Rules are of two kinds. *State rules* look at the new object alone. They may be newer than an object that is
//! stored already, so on update only what the update itself breaks counts: a violation that the stored object has
//! in the same place and with the same value becomes a warning (and only if the spec is being changed, so that
//! controllers do not get it again and again). State rules do not apply to an object that is being deleted:
//! nothing may keep its finalizers from being removed. *Change rules* compare the two objects; they always hold.

mod topology;
mod webhooks;

use std::collections::HashSet;

use serde_json::{Value, json};
pub use webhooks::{MUTATE_PATH, VALIDATE_PATH, webhook_configurations};

use super::conversion;
pub use crate::admission::Address;
use crate::admission::{Errors, Field, FieldError, Verdict, rules, shown};

/// The name becomes the value of a label, so it can be no longer than one.
const LONGEST_NAME: usize = 63;
/// The references with the group that most of their kinds are in.
const REFERENCES: [(&str, &str); 2] = [
    ("infrastructureRef", "infrastructure.cluster.x-k8s.io"),
    ("controlPlaneRef", "controlplane.cluster.x-k8s.io"),
];
/// The warning on a Cluster that refers to nothing yet.
const NO_REFERENCE: &str =
    "spec has no infrastructureRef, controlPlaneRef or topology: the Cluster stays Pending until one is set";

/// Fills in what a new state of a Cluster leaves out. It also refuses what the schema, which is asked next, would
/// refuse in words that help less.
pub fn default(new: &Value, old: Option<&Value>) -> Verdict {
    let mut verdict = Verdict::default();
    // v1beta1 accepts a Cluster without spec, but what is stored must have one to be written again.
    if new.is_object() && Field::root(new).child("spec").value.is_null() {
        verdict.set("/spec", json!({}));
    }
    if is_deleting(new) {
        return verdict;
    }
    let topology = Field::root(new).descend("spec.topology");
    if let Some(version) = topology.child("version").value.as_str()
        && !version.is_empty()
        && !version.starts_with('v')
    {
        verdict.set("/spec/topology/version", format!("v{version}"));
    }
    let known: HashSet<FieldError> = old.into_iter().flat_map(check_early).collect();
    verdict.errors.extend(check_early(new).into_iter().filter(|it| !known.contains(it)));
    verdict
}

/// Judges a new Cluster, or a new state of one.
pub fn validate(new: &Value, old: Option<&Value>) -> Verdict {
    let mut verdict = Verdict::default();
    if let Some(old) = old {
        check_change(&Field::root(new), &Field::root(old), &mut verdict);
    }
    if is_deleting(new) {
        return verdict;
    }
    let changes_spec = old.is_none_or(|old| old.get("spec") != new.get("spec"));
    let broken = check_state(new);
    match old {
        // A list that was cut short cannot be compared.
        Some(old) if !broken.is_full() => {
            let known: HashSet<FieldError> = check_state(old).into_iter().collect();
            let (tolerated, fresh): (Vec<_>, Vec<_>) = broken.into_iter().partition(|it| known.contains(it));
            verdict.errors.extend(fresh);
            if changes_spec {
                let words = tolerated.iter().take(5).map(|it| format!("left as it was, but not valid: {it}"));
                verdict.warnings.extend(words);
            }
        }
        _ => verdict.errors.extend(broken),
    }
    let spec = Field::root(new).child("spec");
    let pending =
        ["infrastructureRef", "controlPlaneRef", "topology"].iter().all(|it| spec.child(it).is_blank());
    if pending && changes_spec {
        verdict.warnings.push(NO_REFERENCE.to_owned());
    }
    verdict
}

fn is_deleting(object: &Value) -> bool {
    !Field::root(object).descend("metadata.deletionTimestamp").is_blank()
}

/// The state rules that are checked before the schema is.
fn check_early(object: &Value) -> Errors {
    let mut errors = Errors::default();
    let root = Field::root(object);
    check_name(&root.descend("metadata.name"), &mut errors);
    check_references(&root.child("spec"), &mut errors);
    topology::require_class(&root.descend("spec.topology"), &mut errors);
    errors
}

fn check_name(name: &Field<'_>, errors: &mut Errors) {
    let Some(text) = name.text(errors) else { return };
    if text.len() > LONGEST_NAME {
        let detail = format!(
            "may not be more than {LONGEST_NAME} bytes, but is {}: objects that belong to the Cluster carry its name as a label",
            text.len()
        );
        errors.too_long(&name.path, detail);
    } else if let Err(detail) = rules::label_value(text) {
        errors.invalid(&name.path, name.value, format!("must be a valid label value: {detail}"));
    }
}

/// A reference is complete or not there at all.
fn check_references(spec: &Field<'_>, errors: &mut Errors) {
    for (name, group) in REFERENCES {
        let reference = spec.child(name);
        if reference.is_blank() || !reference.value.is_object() {
            continue;
        }
        if reference.child("apiGroup").is_blank() {
            let detail = format!(
                "name the API group of the kind, such as {group} (in v1beta1: apiVersion must have a group, such as {group}/v1beta1)"
            );
            errors.required(reference.path_to("apiGroup"), detail);
        }
        for (part, detail) in [("kind", "name the kind of the object"), ("name", "name the object")] {
            if reference.child(part).is_blank() {
                errors.required(reference.path_to(part), detail);
            }
        }
    }
}

/// References of a v1beta1 object that leave the Cluster's namespace. A v1beta2 object cannot say so.
fn check_namespaces(object: &Value, errors: &mut Errors) {
    let root = Field::root(object);
    let Some(own) = root.descend("metadata.namespace").value.as_str().filter(|it| !it.is_empty()) else {
        return;
    };
    for (name, namespace) in conversion::reference_namespaces(object) {
        if namespace != own {
            let path = root.descend(&format!("spec.{name}.namespace")).path;
            let detail =
                format!("must be the Cluster's own namespace {}, or left out", shown(&Value::from(own)));
            errors.invalid(path, &Value::from(namespace), detail);
        }
    }
}

fn check_state(object: &Value) -> Errors {
    let mut errors = Errors::default();
    let root = Field::root(object);
    check_name(&root.descend("metadata.name"), &mut errors);
    check_namespaces(object, &mut errors);
    let spec = root.child("spec");
    if spec.object(&mut errors).is_none() {
        return errors;
    }
    check_references(&spec, &mut errors);
    for network in ["pods", "services"] {
        let blocks = spec.descend(&format!("clusterNetwork.{network}.cidrBlocks"));
        for block in blocks.items(&mut errors) {
            if let Some(text) = block.text(&mut errors)
                && !rules::is_cidr(text)
            {
                let detail = "must be a network in CIDR notation, such as 192.168.0.0/16 or fd00:10::/48";
                errors.invalid(block.path, block.value, detail);
            }
        }
    }
    topology::check_state(&root, &spec.child("topology"), &mut errors);
    errors
}

fn check_change(new: &Field<'_>, old: &Field<'_>, verdict: &mut Verdict) {
    let (new_spec, old_spec) = (new.child("spec"), old.child("spec"));
    for name in ["infrastructureRef", "controlPlaneRef", "topology"] {
        let field = new_spec.child(name);
        if field.is_blank() && !old_spec.child(name).is_blank() {
            verdict.errors.forbidden(field.path, "cannot be removed; it may be changed");
        }
    }
    topology::check_change(new, &new_spec.child("topology"), &old_spec.child("topology"), verdict);
}

#[cfg(test)]
mod tests;
