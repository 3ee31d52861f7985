//! What runs, and what clusterctl changes in it.

use capstan_manifest::images::Reference;

use super::{
    Judged, Spot, broken, not_checked,
    object::{Object, escape},
    text::Text,
    variables::is_open,
};
use crate::rules::{G17B, R14, R15, R16, R17, R18};

const CONTAINERS: &str = "/spec/template/spec/containers";
const INJECT_CA_FROM: &str = "cert-manager.io/inject-ca-from";

/// Checks Deployments, their images, and the kinds that clusterctl reads as types.
pub(super) fn check(text: &Text<'_>) -> Vec<Judged> {
    let objects = text.objects();
    let mut judged = vec![not_checked(
        &R15,
        "files do not show which flags a program has: start the manager with --namespace=x, or with --help",
    )];
    judged.extend(manager(&text.of_kind("Deployment")));
    for object in &objects {
        judged.extend(api_version(object));
        judged.extend(images(object));
        judged.extend(annotation(object));
    }
    judged
}

fn manager(deployments: &[Object<'_>]) -> Option<Judged> {
    let Some(first) = deployments.first() else {
        return Some(broken(
            &R14,
            Spot::File,
            "there is no Deployment among the components",
            "deploy the controllers by a Deployment whose container is named manager",
        ));
    };
    let is_manager = |it: &Object<'_>| it.entries(CONTAINERS).iter().any(|(_, it)| it["name"] == "manager");
    // Some providers ship other programs beside their manager.
    (!deployments.iter().any(is_manager)).then(|| {
        let list = first.entries(CONTAINERS);
        let names: Vec<_> = list.iter().filter_map(|(_, it)| it["name"].as_str()).collect();
        broken(
            &G17B,
            Spot::Object {
                document: first.document,
                pointer: match list.first() {
                    Some((pointer, _)) => format!("{pointer}/name"),
                    None => CONTAINERS.to_owned(),
                },
            },
            format!("{} has the containers {}", first.title(), names.join(", ")),
            "name the container that runs the controllers manager",
        )
    })
}

/// The API versions of a kind that clusterctl reads, whatever its group.
fn readable(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "Deployment" | "DaemonSet" => &["apps/v1"],
        "ClusterRoleBinding" | "RoleBinding" => &["rbac.authorization.k8s.io/v1"],
        "CustomResourceDefinition" => &["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"],
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            &["admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1beta1"]
        }
        _ => return None,
    })
}

fn api_version(object: &Object<'_>) -> Option<Judged> {
    let versions = readable(object.kind())?;
    let found = object.text("/apiVersion").filter(|it| !versions.contains(it) && !is_open(it))?;
    Some(broken(
        &R16,
        Spot::Object { document: object.document, pointer: "/apiVersion".to_owned() },
        format!("{} is of {found}", object.title()),
        format!("write {}", versions.first().copied().unwrap_or_default()),
    ))
}

fn images(object: &Object<'_>) -> Vec<Judged> {
    if !matches!(object.kind(), "Deployment" | "DaemonSet") {
        return Vec::new();
    }
    let mut judged = Vec::new();
    for list in ["containers", "initContainers"] {
        for (pointer, container) in object.entries(&format!("/spec/template/spec/{list}")) {
            let image = container["image"].as_str().unwrap_or_default();
            if is_open(image) {
                continue;
            }
            let Err(flaw) = Reference::parse(image) else { continue };
            judged.push(broken(
                &R17,
                Spot::Object { document: object.document, pointer: format!("{pointer}/image") },
                format!("{}: the image {image:?}: {flaw}", object.title()),
                "write <registry>/<path>:<tag>, as in docker.io/library/nginx:1.29",
            ));
        }
    }
    judged
}

/// The annotation that clusterctl rewrites, with its pointer.
pub(super) fn inject_ca_from<'a>(object: &Object<'a>) -> Option<(String, &'a str)> {
    let is_read = matches!(
        object.kind(),
        "CustomResourceDefinition" | "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration"
    );
    let pointer = format!("/metadata/annotations/{}", escape(INJECT_CA_FROM));
    let value = object.text(&pointer).filter(|_| is_read)?;
    Some((pointer, value))
}

fn annotation(object: &Object<'_>) -> Option<Judged> {
    let (pointer, value) = inject_ca_from(object)?;
    let parts: Vec<_> = value.split('/').collect();
    let is_right = matches!(parts.as_slice(), [namespace, name] if !namespace.is_empty() && !name.is_empty());
    (!is_right && !is_open(value)).then(|| {
        broken(
            &R18,
            Spot::Object { document: object.document, pointer },
            format!("{}: {INJECT_CA_FROM} is {value:?}", object.title()),
            "write the namespace and the name of the Certificate, with a slash between them",
        )
    })
}
