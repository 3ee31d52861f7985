//! The rules for `spec.topology`, as far as they need no look at the ClusterClass.

use std::collections::HashSet;

use semver::Version;
use serde_json::Value;

use crate::{
    admission::{Errors, Field, Verdict, rules},
    names::{annotation, taint},
};

/// A Machine needs that long at least to get its Node.
const SHORTEST_NODE_STARTUP: i64 = 30;

/// A topology is made from a class.
pub(super) fn require_class(topology: &Field<'_>, errors: &mut Errors) {
    let name = topology.descend("classRef.name");
    if !topology.is_blank() && name.text(errors).is_none_or(str::is_empty) {
        errors.required(name.path, "name the ClusterClass that the Cluster is made from");
    }
}

pub(super) fn check_state(cluster: &Field<'_>, topology: &Field<'_>, errors: &mut Errors) {
    if topology.is_blank() || topology.object(errors).is_none() {
        return;
    }
    require_class(topology, errors);
    check_version(&topology.child("version"), errors);
    check_upgrade_concurrency(cluster, errors);
    let control_plane = topology.child("controlPlane");
    rules::metadata(&control_plane.child("metadata"), errors);
    check_taints(&control_plane.child("taints"), errors);
    check_health(&control_plane.child("healthCheck"), errors);

    let deployments = topology.descend("workers.machineDeployments");
    check_names(&deployments, errors);
    for deployment in deployments.named_items(errors) {
        rules::metadata(&deployment.child("metadata"), errors);
        check_taints(&deployment.child("taints"), errors);
        check_health(&deployment.child("healthCheck"), errors);
        check_rolling_update(&deployment.descend("rollout.strategy.rollingUpdate"), errors);
        check_replicas(&deployment, errors);
    }
    let pools = topology.descend("workers.machinePools");
    check_names(&pools, errors);
    for pool in pools.named_items(errors) {
        rules::metadata(&pool.child("metadata"), errors);
        check_taints(&pool.child("taints"), errors);
    }
}

fn check_version(version: &Field<'_>, errors: &mut Errors) {
    match version.text(errors) {
        None | Some("") => errors.required(&version.path, "name a Kubernetes version, such as v1.35.0"),
        Some(text) => {
            if !text.starts_with('v') {
                errors.invalid(&version.path, version.value, "must start with v");
            }
            if parse(text).is_none() {
                let detail = "must be a semantic version with a leading v, such as v1.35.0";
                errors.invalid(&version.path, version.value, detail);
            }
        }
    }
}

/// A version without what comes after its patch number, which is free to change.
fn parse(version: &str) -> Option<Version> {
    let parsed = Version::parse(version.strip_prefix('v').unwrap_or(version)).ok()?;
    Some(Version::new(parsed.major, parsed.minor, parsed.patch))
}

fn check_upgrade_concurrency(cluster: &Field<'_>, errors: &mut Errors) {
    let name = annotation::TOPOLOGY_UPGRADE_CONCURRENCY;
    let annotations = cluster.descend("metadata.annotations");
    let Some(value) = annotations.value.get(name) else { return };
    let number = value.as_str().and_then(|text| text.parse::<i64>().ok());
    if number.is_none_or(|number| number < 1) {
        errors.invalid(annotations.path_to(name), value, "must be a whole number, at least 1");
    }
}

fn check_names(list: &Field<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for item in list.items(errors) {
        let name = item.child("name");
        match name.text(errors) {
            None | Some("") => errors.required(name.path, "every group of Machines needs a name"),
            Some(text) => {
                if !seen.insert(text) {
                    errors.duplicate(name.path, name.value, "must be unique in the list");
                }
            }
        }
    }
}

fn check_rolling_update(update: &Field<'_>, errors: &mut Errors) {
    let unavailable = rules::int_or_percent(&update.child("maxUnavailable"), errors);
    let surge = rules::int_or_percent(&update.child("maxSurge"), errors);
    if unavailable == Some(0) && surge == Some(0) {
        let detail = "maxUnavailable and maxSurge cannot both be 0: no Machine could ever be replaced";
        errors.invalid(&update.path, &Value::from(0), detail);
    }
}

fn check_health(check: &Field<'_>, errors: &mut Errors) {
    let startup = check.descend("checks.nodeStartupTimeoutSeconds");
    if let Some(seconds) = startup.integer(errors)
        && seconds != 0
        && seconds < SHORTEST_NODE_STARTUP
    {
        let detail = "must be at least 30, or 0 to wait for ever";
        errors.invalid(startup.path, startup.value, detail);
    }
    rules::int_or_percent(&check.descend("remediation.triggerIf.unhealthyLessThanOrEqualTo"), errors);
    rules::int_or_percent(&check.descend("remediation.maxInFlight"), errors);
}

fn check_taints(taints: &Field<'_>, errors: &mut Errors) {
    const NODE_PREFIX: &str = "node.kubernetes.io/";
    const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
    const CLOUD_PREFIX: &str = "node.cloudprovider.kubernetes.io/";
    const MASTER: &str = "node-role.kubernetes.io/master";
    for item in taints.items(errors) {
        let key = item.child("key");
        let Some(text) = key.text(errors) else { continue };
        if [taint::UNINITIALIZED, taint::OUTDATED_REVISION].contains(&text) {
            errors.invalid(&key.path, key.value, "is set by the Machine controllers themselves");
        } else if text.starts_with(NODE_PREFIX) && text != OUT_OF_SERVICE {
            let detail = "node.kubernetes.io/ belongs to Kubernetes; only node.kubernetes.io/out-of-service may be set";
            errors.invalid(&key.path, key.value, detail);
        } else if text.starts_with(CLOUD_PREFIX) {
            let detail = "node.cloudprovider.kubernetes.io/ belongs to the cloud provider";
            errors.invalid(&key.path, key.value, detail);
        } else if text == MASTER {
            let detail = "is obsolete since Kubernetes 1.24: use node-role.kubernetes.io/control-plane";
            errors.invalid(&key.path, key.value, detail);
        }
        if let Err(detail) = rules::qualified_name(text) {
            errors.invalid(&key.path, key.value, detail);
        }
        let value = item.child("value");
        if let Some(text) = value.text(errors)
            && let Err(detail) = rules::label_value(text)
        {
            errors.invalid(&value.path, value.value, detail);
        }
    }
}

/// Either the topology says how many Machines there are, or the autoscaler does.
fn check_replicas(deployment: &Field<'_>, errors: &mut Errors) {
    let replicas = deployment.child("replicas");
    if replicas.integer(errors).is_none() {
        return;
    }
    let annotations = deployment.descend("metadata.annotations");
    let scaled = [annotation::AUTOSCALER_MIN_SIZE, annotation::AUTOSCALER_MAX_SIZE];
    if let Some(name) = scaled.into_iter().find(|name| annotations.value.get(name).is_some()) {
        let detail = format!("cannot be set together with the autoscaler's annotation {name}");
        errors.invalid(&replicas.path, replicas.value, detail);
    }
}

/// Checks changes of an existing topology. (Its removal is checked with the references.)
pub(super) fn check_change(cluster: &Field<'_>, new: &Field<'_>, old: &Field<'_>, verdict: &mut Verdict) {
    if new.is_blank() {
        return;
    }
    let annotations = cluster.descend("metadata.annotations");
    let bypassed = |name: &str| annotations.value.get(name).is_some();
    if old.descend("classRef.name").is_blank() {
        let class = new.child("classRef");
        let is_changed = class.value != old.child("classRef").value;
        if !class.is_blank() && is_changed && !bypassed(annotation::UNSAFE_UPDATE_CLASS) {
            let detail = "cannot be set on a Cluster that was created without a class";
            verdict.errors.forbidden(class.path, detail);
        }
        return;
    }
    let (version, before) = (new.child("version"), old.child("version"));
    if version.value == before.value {
        return;
    }
    if bypassed(annotation::UNSAFE_UPDATE_VERSION) {
        let name = annotation::UNSAFE_UPDATE_VERSION;
        verdict.warnings.push(format!("{}: the change is not checked because of {name}", version.path));
        return;
    }
    let read = |field: &Field<'_>| field.value.as_str().and_then(parse);
    // What is no version is reported as such elsewhere, or was stored before there were rules.
    if let (Some(to), Some(from)) = (read(&version), read(&before)) {
        let too_far = Version::new(from.major, from.minor.saturating_add(2), 0);
        if to < from {
            let detail = format!("cannot be decreased from v{from} to v{to}");
            verdict.errors.invalid(&version.path, version.value, detail);
        } else if to >= too_far {
            // A ClusterClass may say that minors can be skipped, and classes are not looked at here.
            verdict.warnings.push(format!(
                "{}: v{from} to v{to} skips minor versions, which only a ClusterClass with kubernetesVersions plans for",
                version.path
            ));
        }
    }
}
