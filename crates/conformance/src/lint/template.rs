//! The template of a workload cluster.

mod common_variables;

use std::collections::BTreeMap;

use super::{
    Judged, Spot, broken, links, not_checked, object::Object, repository::is_cluster_template, text::Text,
    variables::is_open,
};
use crate::rules::{T1, T2, T3, T4, T5, T6, T13};

/// Checks a template and what is beside it.
pub(super) fn check(text: &Text<'_>) -> Vec<Judged> {
    let mut judged = file_name(text);
    judged.extend(folder(text));
    judged.extend(scopes(text));
    judged.extend(one_namespace(text));
    judged.extend(cluster(text));
    judged.extend(common_variables::check(text));
    judged.extend(links::of_template(text));
    judged.extend(classes(text));
    judged
}

/// The pointer to a spot of an object.
fn at(object: &Object<'_>, pointer: &str) -> Spot {
    Spot::Object { document: object.document, pointer: pointer.to_owned() }
}

fn file_name(text: &Text<'_>) -> Vec<Judged> {
    if text.given.folder.is_none() {
        return vec![not_checked(&T1, "standard input has no name: give the file of a release")];
    }
    let name = text.given.base_name();
    if is_cluster_template(name) || is_class_file(name) {
        return Vec::new();
    }
    let repair = "name it cluster-template.yaml, or cluster-template-<flavor>.yaml";
    vec![broken(&T1, Spot::File, format!("the file is named {name}"), repair)]
}

fn is_class_file(name: &str) -> bool {
    let class = name.strip_prefix("clusterclass-").and_then(|it| it.strip_suffix(".yaml"));
    class.is_some_and(|it| !it.is_empty())
}

fn folder(text: &Text<'_>) -> Option<Judged> {
    let Some(folder) = &text.given.folder else {
        return Some(not_checked(&T2, "standard input has no folder: give the file of a release"));
    };
    if folder.files.iter().any(|it| it.ends_with("-components.yaml")) {
        return None;
    }
    if folder.metadata.is_none() {
        return Some(not_checked(
            &T2,
            "the folder is not that of a release, because it has no metadata.yaml",
        ));
    }
    Some(broken(
        &T2,
        Spot::File,
        "there is no components file in the folder of the template",
        "publish the template with the components, e.g. with infrastructure-components.yaml",
    ))
}

fn scopes(text: &Text<'_>) -> Vec<Judged> {
    let objects = text.objects().into_iter().filter(Object::is_cluster_wide);
    objects
        .map(|it| match it.kind() {
            "Namespace" => broken(
                &T3,
                at(&it, "/kind"),
                format!("{} is in the template", it.title()),
                "leave it out; who uses the template makes the namespace before",
            ),
            _ => broken(
                &T5,
                at(&it, "/kind"),
                format!("{} is cluster-wide", it.title()),
                "take it out of the template, e.g. into the components, or use a namespaced kind",
            ),
        })
        .collect()
}

/// A namespace that is named, where, and by which object.
type Named<'a> = (&'a str, Spot, String);

fn one_namespace(text: &Text<'_>) -> Vec<Judged> {
    let mut named: Vec<Named<'_>> = Vec::new();
    let objects = text.objects();
    for object in objects.iter().filter(|it| !it.is_cluster_wide()) {
        let own = object.namespace().map(|it| (it, at(object, "/metadata/namespace"), object.title()));
        named.extend(own);
        for pointer in ["/spec/infrastructureRef", "/spec/controlPlaneRef"] {
            let pointer = format!("{pointer}/namespace");
            let namespace = object.text(&pointer).filter(|it| object.is_core("Cluster") && !it.is_empty());
            named.extend(
                namespace.map(|it| (it, at(object, &pointer), format!("a reference of {}", object.title()))),
            );
        }
    }
    let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
    for (namespace, _, _) in &named {
        *votes.entry(namespace).or_default() += 1;
    }
    let Some((target, _)) = votes.iter().max_by_key(|(_, count)| **count) else { return Vec::new() };
    let others = named.iter().filter(|(it, _, _)| it != target);
    others
        .map(|(namespace, spot, what)| {
            broken(
                &T4,
                spot.clone(),
                format!("{what} is in namespace {namespace}, while others are in {target}"),
                format!("write {target}, or leave the namespace out"),
            )
        })
        .collect()
}

fn cluster(text: &Text<'_>) -> Option<Judged> {
    let objects = text.objects();
    let is_there = objects.iter().any(|it| it.is_core("Cluster") || it.is_core("ClusterClass"));
    (!is_there).then(|| {
        broken(
            &T6,
            Spot::File,
            "there is neither a Cluster nor a ClusterClass in the template",
            "add the Cluster, with all that it refers to",
        )
    })
}

/// The class of a Cluster's topology, with its pointer.
fn class<'a>(cluster: &Object<'a>) -> Option<(&'static str, &'a str)> {
    let pointers = ["/spec/topology/classRef/name", "/spec/topology/class"];
    pointers.into_iter().find_map(|pointer| Some((pointer, cluster.text(pointer)?)))
}

fn classes(text: &Text<'_>) -> Vec<Judged> {
    let objects = text.objects();
    let mut judged = Vec::new();
    for cluster in objects.iter().filter(|it| it.is_core("Cluster")) {
        let Some((pointer, class)) = class(cluster) else { continue };
        if objects.iter().any(|it| it.is_core("ClusterClass") && it.name() == class) {
            continue;
        }
        if is_open(class) {
            judged.push(not_checked(
                &T13,
                "the class has a variable in its name: who uses the template picks it",
            ));
            continue;
        }
        let Some(folder) = &text.given.folder else {
            judged.push(not_checked(&T13, "standard input has no folder: give the file of a release"));
            continue;
        };
        let file = format!("clusterclass-{class}.yaml");
        if !folder.files.contains(&file) {
            judged.push(broken(
                &T13,
                at(cluster, pointer),
                format!(
                    "{} is of class {class}, and there is no {file} beside the template",
                    cluster.title()
                ),
                format!("publish {file} with the release, or document who makes the ClusterClass"),
            ));
        }
    }
    judged
}
