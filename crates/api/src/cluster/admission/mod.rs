//! What a Cluster must be like to be let in, and what is filled in on the way.
//!
//! Rules are of two kinds. *State rules* look at the new object alone. They may be newer than an object that is
//! stored already, so on update only what the update itself breaks counts: a violation that the stored object has
//! in the same place and with the same value becomes a warning (and only if the spec is being changed, so that
//! controllers are not told again and again). An object that is being deleted is not held against them at all:
//! nothing may keep its finalizers from being removed. *Change rules* compare the two objects; they always hold.

mod topology;
mod webhooks;

use std::collections::HashSet;

use serde_json::Value;
pub use webhooks::{Address, MUTATE_PATH, VALIDATE_PATH, webhook_configurations};

use crate::admission::{Errors, Field, FieldError, Verdict, rules};

/// Told to whoever makes a Cluster that nothing stands behind yet.
const NO_REFERENCE: &str =
    "spec has no infrastructureRef, controlPlaneRef or topology: the Cluster stays Pending until one is set";

/// Fills in what a new state of a Cluster leaves out. Only Clusters with a topology are changed.
pub fn default(new: &Value, old: Option<&Value>) -> Verdict {
    let mut verdict = Verdict::default();
    let topology = Field::root(new).descend("spec.topology");
    if topology.is_blank() || is_deleting(new) {
        return verdict;
    }
    if let Some(version) = topology.child("version").value.as_str()
        && !version.is_empty()
        && !version.starts_with('v')
    {
        verdict.set("/spec/topology/version", format!("v{version}"));
    }
    let mut errors = Errors::default();
    topology::require_class(&topology, &mut errors);
    let mut known = Errors::default();
    if let Some(old) = old {
        topology::require_class(&Field::root(old).descend("spec.topology"), &mut known);
    }
    if known.is_empty() {
        verdict.errors = errors;
    }
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

fn check_state(object: &Value) -> Errors {
    let mut errors = Errors::default();
    let root = Field::root(object);
    let name = root.descend("metadata.name");
    // Objects that belong to the Cluster carry its name as a label.
    if let Some(text) = name.text(&mut errors)
        && let Err(detail) = rules::label_value(text)
    {
        errors.invalid(&name.path, name.value, format!("must be a valid label value: {detail}"));
    }
    let spec = root.child("spec");
    if spec.object(&mut errors).is_none() {
        return errors;
    }
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
