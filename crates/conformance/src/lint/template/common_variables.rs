//! The variables that all templates have in common.

use serde_json::Value;

use super::at;
use crate::{
    lint::{
        Judged, broken,
        object::Object,
        text::Text,
        variables::{common, placeholder},
    },
    rule::Rule,
    rules::{T7, T8, T9, T10, T11},
};

/// Checks that what clusterctl has flags for is taken from them.
pub(super) fn check(text: &Text<'_>) -> Vec<Judged> {
    let objects = text.objects();
    let mut judged: Vec<_> = namespaces(&objects).into_iter().collect();
    let clusters: Vec<_> = objects.iter().filter(|it| it.is_core("Cluster")).collect();
    for cluster in &clusters {
        judged.extend(expect(&T8, cluster, "/metadata/name", common::CLUSTER_NAME));
        judged.extend(expect(&T9, cluster, "/spec/topology/version", common::KUBERNETES_VERSION));
        let count = common::CONTROL_PLANE_MACHINE_COUNT;
        judged.extend(expect(&T10, cluster, "/spec/topology/controlPlane/replicas", count));
    }
    for control_plane in control_planes(&clusters, &objects) {
        judged.extend(expect(&T9, control_plane, "/spec/version", common::KUBERNETES_VERSION));
        let count = common::CONTROL_PLANE_MACHINE_COUNT;
        judged.extend(expect(&T10, control_plane, "/spec/replicas", count));
    }
    for workers in objects.iter().filter(|it| is_workers(it)) {
        judged.extend(expect(&T9, workers, "/spec/template/spec/version", common::KUBERNETES_VERSION));
    }
    judged.extend(worker_count(&objects));
    judged
}

fn is_workers(object: &Object<'_>) -> bool {
    object.is_core("MachineDeployment") || object.is_core("MachinePool")
}

/// A field that is there has a variable in it.
fn expect(rule: &'static Rule, object: &Object<'_>, pointer: &str, variable: &str) -> Option<Judged> {
    let value = object.value.pointer(pointer).filter(|it| !it.is_null())?;
    (!has(value, variable)).then(|| {
        let field = pointer.trim_start_matches('/').replace('/', ".");
        broken(
            rule,
            at(object, pointer),
            format!("{}: {field} is {}", object.title(), plain(value)),
            format!("write ${{{variable}}}"),
        )
    })
}

fn has(value: &Value, variable: &str) -> bool {
    value.as_str().is_some_and(|it| it.contains(&placeholder(variable)))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// One finding for the file: who writes a namespace down does so in all objects.
fn namespaces(objects: &[Object<'_>]) -> Option<Judged> {
    let written = |it: &&Object<'_>| {
        it.namespace().is_some_and(|namespace| namespace != placeholder(common::NAMESPACE))
            && !it.is_cluster_wide()
    };
    let mut found = objects.iter().filter(written);
    let first = found.next()?;
    let others = match found.count() {
        0 => String::new(),
        1 => ", and another object is".to_owned(),
        many => format!(", and {many} other objects are"),
    };
    Some(broken(
        &T7,
        at(first, "/metadata/namespace"),
        format!("{} is in namespace {}{others}", first.title(), first.namespace().unwrap_or_default()),
        format!("write ${{{}}}", common::NAMESPACE),
    ))
}

/// The objects that Clusters refer to as their control planes.
fn control_planes<'a>(clusters: &[&Object<'a>], objects: &'a [Object<'a>]) -> Vec<&'a Object<'a>> {
    let referred = |it: &&Object<'_>| {
        clusters.iter().any(|cluster| {
            cluster.text("/spec/controlPlaneRef/kind") == Some(it.kind())
                && cluster.text("/spec/controlPlaneRef/name") == Some(it.name())
        })
    };
    objects.iter().filter(referred).collect()
}

/// The size of one group of workers is the user's to say; others may be fixed.
fn worker_count(objects: &[Object<'_>]) -> Option<Judged> {
    let mut sizes = Vec::new();
    for object in objects {
        if is_workers(object) {
            sizes.push((object, "/spec/replicas".to_owned()));
        }
        if object.is_core("Cluster") {
            for list in ["machineDeployments", "machinePools"] {
                let groups = object.entries(&format!("/spec/topology/workers/{list}")).into_iter();
                sizes.extend(groups.map(|(pointer, _)| (object, format!("{pointer}/replicas"))));
            }
        }
    }
    let variable = common::WORKER_MACHINE_COUNT;
    let is_asked =
        sizes.iter().any(|(object, at)| object.value.pointer(at).is_some_and(|it| has(it, variable)));
    if is_asked {
        return None;
    }
    // Groups without a size are scaled by others.
    let (object, pointer, value) =
        sizes.iter().find_map(|(object, at)| Some((object, at, object.value.pointer(at)?)))?;
    Some(broken(
        &T11,
        at(object, pointer),
        format!("{}: the number of workers is {}", object.title(), plain(value)),
        format!("write ${{{variable}}}"),
    ))
}
