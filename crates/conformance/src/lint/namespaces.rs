//! The target namespace of components, and what leads out of it.

use capstan_api::names::SHARED_NAMESPACE;
use serde_json::Value;

use super::{
    Judged, Spot, broken, not_applicable, object::Object, text::Text, variables::is_open, workloads,
};
use crate::rules::{G17D, R10, R11, R12, R13};

/// Checks the namespaces of components.
pub(super) fn check(text: &Text<'_>) -> Vec<Judged> {
    // The namespace of shared objects may be among the components: it is added where it is missing.
    let mut namespaces = text.of_kind("Namespace");
    namespaces.retain(|it| it.name() != SHARED_NAMESPACE);
    let mut judged = seconds(&namespaces);
    if namespaces.is_empty() {
        judged.push(broken(
            &R10,
            Spot::File,
            "there is no Namespace among the components",
            "add one, e.g. <name>-system, and put all objects into it",
        ));
    }
    let objects = text.objects();
    let own =
        |it: &&Object<'_>| !it.is_cluster_wide() && it.namespace().is_some_and(|it| it != SHARED_NAMESPACE);
    let target =
        namespaces.first().map(Object::name).or_else(|| objects.iter().find(own).and_then(Object::namespace));
    if let Some(target) = target {
        judged.extend(objects.iter().filter_map(|it| elsewhere(it, target)));
        judged.extend(objects.iter().flat_map(|it| references(it, target)));
    }
    judged.extend(shared(&objects));
    judged
}

fn seconds(namespaces: &[Object<'_>]) -> Vec<Judged> {
    let Some((first, others)) = namespaces.split_first() else { return Vec::new() };
    let second = |object: &Object<'_>| {
        broken(
            &G17D,
            at(object, "/metadata/name"),
            format!("{} is here besides Namespace {}", object.title(), first.name()),
            "keep one Namespace in the components; clusterctl puts all objects into it",
        )
    };
    others.iter().map(second).collect()
}

fn at(object: &Object<'_>, pointer: &str) -> Spot {
    Spot::Object { document: object.document, pointer: pointer.to_owned() }
}

/// Whether a namespace is another one than the target and what is shared.
fn is_foreign(namespace: &str, target: &str) -> bool {
    namespace != target && namespace != SHARED_NAMESPACE && !is_open(namespace) && !is_open(target)
}

fn elsewhere(object: &Object<'_>, target: &str) -> Option<Judged> {
    let namespace = object.namespace().filter(|it| !object.is_cluster_wide() && is_foreign(it, target))?;
    Some(broken(
        &R11,
        at(object, "/metadata/namespace"),
        format!("{} is in namespace {namespace}, and not in {target}", object.title()),
        format!("put it into {target}, or leave it out of the release"),
    ))
}

/// What names a namespace, with the pointer to it.
fn named_namespaces<'a>(object: &Object<'a>) -> Vec<(String, String, &'a str)> {
    let mut named = Vec::new();
    let mut name = |what: &str, pointer: String, value: &'a Value| {
        if let Some(namespace) = value["namespace"].as_str().filter(|it| !it.is_empty()) {
            named.push((what.to_owned(), format!("{pointer}/namespace"), namespace));
        }
    };
    if matches!(object.kind(), "RoleBinding" | "ClusterRoleBinding") {
        for (pointer, subject) in object.entries("/subjects") {
            name("a subject", pointer, subject);
        }
    }
    for (pointer, service) in object.webhook_services() {
        name("the service of a webhook", pointer, service);
    }
    if let Some((pointer, (namespace, _))) =
        workloads::inject_ca_from(object).and_then(|(pointer, value)| Some((pointer, value.split_once('/')?)))
    {
        named.push(("the certificate to inject".to_owned(), pointer, namespace));
    }
    named
}

fn references(object: &Object<'_>, target: &str) -> Vec<Judged> {
    named_namespaces(object)
        .into_iter()
        .filter(|(_, _, namespace)| is_foreign(namespace, target))
        .map(|(what, pointer, namespace)| {
            broken(
                &R12,
                at(object, &pointer),
                format!("{}: {what} is in namespace {namespace}, and not in {target}", object.title()),
                format!("write {target}"),
            )
        })
        .collect()
}

fn shared(objects: &[Object<'_>]) -> Vec<Judged> {
    if !objects.iter().any(|it| it.namespace() == Some(SHARED_NAMESPACE)) {
        return vec![not_applicable(&R13, format!("no object is in namespace {SHARED_NAMESPACE}"))];
    }
    let mut judged = Vec::new();
    for object in objects {
        for (pointer, service) in object.webhook_services() {
            let Some(namespace) = service["namespace"].as_str().filter(|it| *it != SHARED_NAMESPACE) else {
                continue;
            };
            judged.push(broken(
                &R13,
                at(object, &format!("{pointer}/namespace")),
                format!("{}: the service of a webhook is in namespace {namespace}", object.title()),
                format!("put the webhooks' Deployment, Service and Certificate into {SHARED_NAMESPACE}"),
            ));
        }
    }
    judged
}
