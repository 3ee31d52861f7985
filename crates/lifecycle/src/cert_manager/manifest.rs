//! cert-manager's manifest, from its repository to objects that can be applied.

use capstan_api::names::{CERT_MANAGER, label};
use capstan_management::ObjectRef;
use capstan_manifest::{
    components::ComponentsError,
    images::{Overrides, pod_spec_pointer},
    objects::{ObjectError, ObjectId, Problem},
    yaml,
};
use capstan_repository::{CertManager, File};
use serde_json::{Map, Value};

use super::VERSION_ANNOTATION;
use crate::{
    catalog::CertManagerSource,
    release::{ReleaseError, aside},
};

/// A version of cert-manager, ready to be applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The version.
    pub version: String,
    /// Its objects, labelled as clusterctl labels them.
    pub objects: Vec<Value>,
}

impl Manifest {
    /// Fetches a version. Its text has no variables, whatever it looks like.
    pub async fn fetch(source: &CertManagerSource) -> Result<Self, ReleaseError> {
        let File { text, origin, .. } = source.repository.components(&source.version).await?;
        let documents = aside(move || yaml::read(&text))
            .await
            .map_err(|error| ReleaseError::Text { origin: origin.clone(), source: Box::new(error.into()) })?;
        let objects: Vec<Value> = documents.into_iter().map(|it| it.value).collect();
        Self::new(&source.version, objects, &source.images)
            .map_err(|source| ReleaseError::Components { origin, source: Box::new(source) })
    }

    /// The images of its workloads.
    pub fn images(&self) -> impl Iterator<Item = &str> {
        self.objects.iter().flat_map(images)
    }

    /// Replaces images, and marks all objects as those of a version.
    pub fn new(
        version: &str,
        mut objects: Vec<Value>,
        overrides: &Overrides,
    ) -> Result<Self, ComponentsError> {
        for (document, object) in objects.iter_mut().enumerate() {
            replace_images(object, document, overrides)?;
            mark(object, version);
        }
        Ok(Self { version: version.to_owned(), objects })
    }
}

/// The images of a workload's containers and init containers.
pub(crate) fn images(object: &Value) -> impl Iterator<Item = &str> {
    let pod = pod_spec_pointer(ObjectRef::of(object).group(), object["kind"].as_str().unwrap_or_default());
    let pod = pod.and_then(|it| object.pointer(it));
    let lists = ["containers", "initContainers"].map(|field| pod.and_then(|it| it.get(field)?.as_array()));
    lists.into_iter().flatten().flatten().filter_map(|it| it["image"].as_str())
}

fn replace_images(object: &mut Value, document: usize, overrides: &Overrides) -> Result<(), ComponentsError> {
    let ObjectRef { kind, name, .. } = ObjectRef::of(object);
    let Some(pod) = pod_spec_pointer(ObjectRef::of(object).group(), &kind) else { return Ok(()) };
    // The kinds that clusterctl reads; the others are left alone where an image is not understood.
    let is_strict = matches!(kind.as_str(), "Deployment" | "DaemonSet");
    let id = ObjectId { document, kind, name };
    for field in ["containers", "initContainers"] {
        let list = object.pointer_mut(&format!("{pod}/{field}")).and_then(Value::as_array_mut);
        for container in list.into_iter().flatten() {
            let image = container["image"].as_str().unwrap_or_default().to_owned();
            let replaced = if is_strict {
                overrides.apply(CertManager::LABEL, &image)
            } else {
                overrides.apply_leniently(CertManager::LABEL, &image)
            };
            match replaced {
                Ok(replaced) if replaced.is_empty() => {}
                Ok(replaced) => container["image"] = Value::from(replaced),
                Err(reason) => {
                    let container = container["name"].as_str().unwrap_or_default().to_owned();
                    let problem = Box::new(Problem::Image { container, image, reason });
                    return Err(ObjectError { object: Box::new(id), problem }.into());
                }
            }
        }
    }
    Ok(())
}

fn mark(object: &mut Value, version: &str) {
    let mut put = |map: &str, name: &str, value: &str| {
        let metadata = object.as_object_mut().map(|it| it.entry("metadata").or_insert(Value::Null));
        let Some(metadata) = metadata else { return };
        let map = &mut metadata[map];
        if !map.is_object() {
            *map = Value::Object(Map::new());
        }
        map[name] = Value::from(value);
    };
    put("labels", label::CLUSTERCTL, "");
    put("labels", label::CLUSTERCTL_CORE, CERT_MANAGER);
    put("annotations", VERSION_ANNOTATION, version);
}

#[cfg(test)]
mod tests {
    use capstan_manifest::images::Override;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_object_is_marked_and_images_are_replaced() {
        let deployment = |image: &str| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "cm"},
                   "spec": {"template": {"spec": {"containers": [{"name": "cm", "image": image}]}}}})
        };
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
                             "metadata": {"name": "cm", "labels": {"app": "cm"}, "annotations": null}});
        let overrides: Overrides = [(
            "cert-manager".to_owned(),
            Override {
                repository: "mirror.example.com/cm".to_owned(),
                name: String::new(),
                tag: String::new(),
            },
        )]
        .into_iter()
        .collect();
        let objects = vec![deployment("quay.io/jetstack/controller:v1"), account];
        let made = Manifest::new("v1.2.3", objects, &overrides).unwrap();
        assert_eq!(images(&made.objects[0]).collect::<Vec<_>>(), ["mirror.example.com/cm/controller:v1"]);
        assert_eq!(
            made.objects[1]["metadata"],
            json!({"name": "cm",
                   "labels": {"app": "cm", "clusterctl.cluster.x-k8s.io": "",
                              "clusterctl.cluster.x-k8s.io/core": "cert-manager"},
                   "annotations": {"cert-manager.clusterctl.cluster.x-k8s.io/version": "v1.2.3"}})
        );
        let mut job = deployment("nginx");
        (job["apiVersion"], job["kind"]) = (json!("batch/v1"), json!("Job"));
        let made = Manifest::new("v1.2.3", vec![job], &overrides).unwrap();
        assert_eq!(made.images().collect::<Vec<_>>(), ["mirror.example.com/cm/nginx"]);
        let error = Manifest::new("v1.2.3", vec![deployment("nginx")], &overrides).unwrap_err().to_string();
        assert!(error.contains("Deployment cm") && error.contains("nginx"), "{error}");
    }
}
