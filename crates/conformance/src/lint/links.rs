//! Objects that are named, but are not there.

use std::collections::BTreeSet;

use capstan_api::names::secret;
use serde_json::Value;

use super::{
    Judged, Spot, broken,
    object::{Object, escape},
    text::Text,
    variables::{common, placeholder},
    workloads,
};
use crate::{
    rule::Rule,
    rules::{R20, T12},
};

/// A reference to another object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Link {
    /// Where the name is.
    pointer: String,
    kind: String,
    name: String,
}

/// Links of components that lead out of the file.
pub(super) fn of_components(text: &Text<'_>) -> Vec<Judged> {
    dangling(text, &R20, "add it to the components, or document who makes it and when", |object| {
        let mut links = subjects(object);
        links.extend(certificate(object));
        let services = object.webhook_services().into_iter();
        links.extend(services.filter_map(|(pointer, it)| link(&pointer, "Service", "name", it)));
        links
    })
}

/// Links of a template that lead out of it.
pub(super) fn of_template(text: &Text<'_>) -> Vec<Judged> {
    dangling(text, &T12, "add it to the template, or document who makes it and when", |object| {
        if object.kind() == "ClusterResourceSet" { resources(object) } else { Vec::new() }
    })
}

fn dangling(
    text: &Text<'_>,
    rule: &'static Rule,
    repair: &str,
    more: impl Fn(&Object<'_>) -> Vec<Link>,
) -> Vec<Judged> {
    let objects = text.objects();
    let there = present(&objects);
    let mut told = BTreeSet::new();
    let mut judged = Vec::new();
    for object in objects.iter().filter(|it| has_links(it.kind())) {
        let mut links = more(object);
        walk(object.value, "", &mut links);
        for link in links {
            let id = (link.kind.clone(), link.name.clone());
            // Each missing object is reported once.
            if there.contains(&id) || is_made_elsewhere(&link) || !told.insert(id) {
                continue;
            }
            judged.push(broken(
                rule,
                Spot::Object { document: object.document, pointer: link.pointer },
                format!("{} refers to {} {}, which is not in the file", object.title(), link.kind, link.name),
                repair,
            ));
        }
    }
    judged
}

/// Kinds that hold what is none of our business: schemas, and data for others.
fn has_links(kind: &str) -> bool {
    !matches!(kind, "ConfigMap" | "Secret")
}

/// The objects that are there, and the Secrets that will be.
fn present(objects: &[Object<'_>]) -> BTreeSet<(String, String)> {
    let mut there = BTreeSet::new();
    for object in objects {
        there.insert((object.kind().to_owned(), object.name().to_owned()));
        if let ("Certificate", Some(secret)) = (object.kind(), object.text("/spec/secretName")) {
            there.insert(("Secret".to_owned(), secret.to_owned()));
        }
    }
    there
}

/// What Kubernetes itself brings, and what core makes for each Cluster.
fn is_made_elsewhere(link: &Link) -> bool {
    let name = link.name.as_str();
    match link.kind.as_str() {
        "ClusterRole" => {
            name.starts_with("system:") || matches!(name, "cluster-admin" | "admin" | "edit" | "view")
        }
        "Role" => name == "extension-apiserver-authentication-reader",
        "ServiceAccount" => name == "default",
        // Has a rule of its own.
        "ClusterClass" => true,
        "Secret" => name
            .strip_prefix(&placeholder(common::CLUSTER_NAME))
            .and_then(|it| it.strip_prefix('-'))
            .is_some_and(|it| {
                [
                    secret::KUBECONFIG,
                    secret::CA,
                    secret::ETCD,
                    secret::SERVICE_ACCOUNT,
                    secret::FRONT_PROXY_CA,
                    secret::API_SERVER_ETCD_CLIENT,
                ]
                .contains(&it)
            }),
        _ => false,
    }
}

fn link(pointer: &str, kind: &str, field: &str, value: &Value) -> Option<Link> {
    let name = value[field].as_str().filter(|it| !it.is_empty() && value["optional"] != true)?;
    Some(Link { pointer: format!("{pointer}/{field}"), kind: kind.to_owned(), name: name.to_owned() })
}

/// Collects links from fields whose names say what they refer to.
fn walk(value: &Value, pointer: &str, links: &mut Vec<Link>) {
    match value {
        Value::Array(list) => {
            for (index, it) in list.iter().enumerate() {
                walk(it, &format!("{pointer}/{index}"), links);
            }
        }
        Value::Object(map) => {
            for (field, it) in map {
                let pointer = format!("{pointer}/{}", escape(field));
                links.extend(read_link(field, it, &pointer));
                // Schemas are full of fields that are called so.
                if field != "openAPIV3Schema" && field != "validation" {
                    walk(it, &pointer, links);
                }
            }
        }
        _ => {}
    }
}

fn read_link(field: &str, value: &Value, pointer: &str) -> Option<Link> {
    let text = |kind: &str| {
        let name = value.as_str().filter(|it| !it.is_empty())?;
        Some(Link { pointer: pointer.to_owned(), kind: kind.to_owned(), name: name.to_owned() })
    };
    match field {
        // The secret of a volume has a secretName, which is found by itself.
        "secretRef" | "secretKeyRef" | "secret" => link(pointer, "Secret", "name", value),
        "configMapRef" | "configMapKeyRef" | "configMap" => link(pointer, "ConfigMap", "name", value),
        "secretName" => text("Secret"),
        "serviceAccountName" => text("ServiceAccount"),
        _ if field.ends_with("Ref") || field == "ref" => {
            link(pointer, value["kind"].as_str().filter(|it| !it.is_empty())?, "name", value)
        }
        _ => None,
    }
}

fn subjects(object: &Object<'_>) -> Vec<Link> {
    if !matches!(object.kind(), "RoleBinding" | "ClusterRoleBinding") {
        return Vec::new();
    }
    let subjects = object.entries("/subjects").into_iter();
    subjects
        .filter(|(_, it)| it["kind"] == "ServiceAccount")
        .filter_map(|(pointer, it)| link(&pointer, "ServiceAccount", "name", it))
        .collect()
}

fn certificate(object: &Object<'_>) -> Option<Link> {
    let (pointer, value) = workloads::inject_ca_from(object)?;
    let (_, name) = value.split_once('/')?;
    Some(Link { pointer, kind: "Certificate".to_owned(), name: name.to_owned() })
}

/// What a ClusterResourceSet applies to its clusters.
fn resources(object: &Object<'_>) -> Vec<Link> {
    let entries = object.entries("/spec/resources").into_iter();
    entries.filter_map(|(pointer, it)| link(&pointer, it["kind"].as_str()?, "name", it)).collect()
}
