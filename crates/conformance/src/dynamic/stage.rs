//! The fake core: what is on the server, and what core does to it.

use std::sync::{Arc, Mutex, PoisonError};

use capstan_api::{
    cluster::v1beta2::ApiEndpoint,
    contract::ContractVersion,
    names::{annotation, finalizer, label},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    Core, Error, Options,
    cleanup::{MARK, Props},
    history::Mark,
    kinds::Kinds,
    recorder::{Recorder, uid, version},
    scenarios::Witnesses,
};

/// The name under which the fake core writes.
pub(crate) const FIELD_MANAGER: &str = "capstan-conformance";
/// Wakes providers that do not watch Clusters.
const NUDGE: &str = "conformance.capstan.dev/nudge";

/// Everything that scenarios share.
pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) kinds: Kinds,
    pub(crate) infra: Api<DynamicObject>,
    pub(crate) clusters: Api<DynamicObject>,
    pub(crate) recorder: Recorder,
    pub(crate) options: Options,
    pub(crate) props: Arc<Props>,
    pub(crate) witnesses: Witnesses,
    notes: Mutex<Vec<String>>,
}

impl Stage {
    /// Sets the stage in a namespace that exists.
    pub(crate) async fn set(
        client: Client,
        namespace: String,
        kinds: Kinds,
        options: Options,
        props: Arc<Props>,
    ) -> Result<Self, Error> {
        let infra = Api::namespaced_with(client.clone(), &namespace, &kinds.infra);
        let clusters = Api::namespaced_with(client.clone(), &namespace, &kinds.clusters);
        let real = options.core == Core::Real;
        let recorder = Recorder::start(infra.clone(), &kinds.infra.kind, options.timeout, real).await?;
        let (notes, witnesses) = (Mutex::default(), Witnesses::default());
        Ok(Self { client, namespace, kinds, infra, clusters, recorder, options, props, witnesses, notes })
    }

    /// Keeps a remark for the report; a remark is made once.
    pub(crate) fn note(&self, text: impl Into<String>) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let text = text.into();
        if !notes.contains(&text) {
            notes.push(text);
        }
    }

    /// The remarks so far.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The contract that core reads by.
    pub(crate) fn contract(&self) -> ContractVersion {
        self.kinds.contract
    }

    fn infra_name(&self, name: &str) -> String {
        format!("{} {}/{name}", self.kinds.infra.kind, self.namespace)
    }

    /// Creates a Cluster; `spec` is added to what it needs.
    pub(crate) async fn create_cluster(&self, name: &str, spec: &Value) -> Result<DynamicObject, Error> {
        let referred = match self.options.core {
            Core::Beside => format!("{name}-does-not-exist"),
            Core::Fake | Core::Real => name.to_owned(),
        };
        let infra = &self.kinds.infra;
        let reference = match self.kinds.clusters.version.as_str() {
            "v1beta1" => json!({"apiVersion": infra.api_version, "kind": infra.kind, "name": referred}),
            _ => json!({"apiGroup": infra.group, "kind": infra.kind, "name": referred}),
        };
        let mut cluster = json!({"spec": {"infrastructureRef": reference}});
        json_merge(&mut cluster["spec"], spec);
        let mut object = DynamicObject::new(name, &self.kinds.clusters).data(cluster);
        object.annotations_mut().insert(MARK.to_owned(), self.props.mark.clone());
        let doing = format!("create Cluster {}/{name}", self.namespace);
        let created = self.clusters.create(&params(), &object).await.map_err(failing(doing))?;
        self.props.made(&created);
        Ok(created)
    }

    /// Creates an InfraCluster from the user's manifest; `metadata` is added to its own.
    pub(crate) async fn create_infra(&self, name: &str, metadata: &Value) -> Result<(), Error> {
        let mut document = self.kinds.document.clone();
        document["apiVersion"] = json!(self.kinds.infra.api_version);
        json_merge(&mut document["metadata"], metadata);
        document["metadata"]["name"] = json!(name);
        document["metadata"]["namespace"] = json!(self.namespace);
        let doing = format!("create {}", self.infra_name(name));
        let mut object: DynamicObject = serde_json::from_value(document)
            .map_err(|error| failing(doing.clone())(kube::Error::SerdeError(error)))?;
        object.annotations_mut().insert(MARK.to_owned(), self.props.mark.clone());
        let created = self.infra.create(&params(), &object).await.map_err(failing(doing))?;
        self.props.made(&created);
        self.recorder.note_ours(name, version(&created));
        Ok(())
    }

    /// Merges into an InfraCluster.
    pub(crate) async fn patch_infra(&self, name: &str, patch: Value) -> Result<DynamicObject, Error> {
        let answer = self.infra.patch(name, &patch_params(), &Patch::Merge(patch)).await;
        let object = answer.map_err(failing(format!("patch {}", self.infra_name(name))))?;
        self.recorder.note_ours(name, version(&object));
        Ok(object)
    }

    /// Merges into an InfraCluster's status.
    pub(crate) async fn patch_infra_status(&self, name: &str, status: Value) -> Result<String, Error> {
        let patch = Patch::Merge(json!({ "status": status }));
        let answer = self.infra.patch_status(name, &patch_params(), &patch).await;
        let object = answer.map_err(failing(format!("patch the status of {}", self.infra_name(name))))?;
        self.recorder.note_ours(name, version(&object));
        Ok(version(&object))
    }

    /// Gives an InfraCluster to its Cluster; returns the resourceVersion from which it is adopted.
    pub(crate) async fn adopt(
        &self,
        name: &str,
        cluster: &DynamicObject,
        controller: bool,
    ) -> Result<String, Adoption> {
        let uid = uid(cluster);
        if self.options.core == Core::Real {
            let found = self.recorder.until(name, self.options.timeout, |history| {
                let states = history.states.iter();
                states.map(|state| &state.object).find(|object| is_adopted(object, &uid)).map(|object| {
                    object
                        .pointer("/metadata/resourceVersion")
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_owned()
                })
            });
            let version = found.await.ok_or(Adoption::Missing)?;
            self.recorder.note_mark(name, version.clone(), Mark::Adopted { uid });
            return Ok(version);
        }
        let mut owner = json!({
            "apiVersion": self.kinds.clusters.api_version, "kind": "Cluster", "name": name, "uid": uid,
        });
        if controller {
            owner["controller"] = json!(true);
            owner["blockOwnerDeletion"] = json!(true);
        }
        let patch = json!({"metadata": {
            "ownerReferences": [owner], "labels": {label::CLUSTER_NAME: name},
        }});
        match self.patch_infra(name, patch).await {
            Ok(object) => {
                let version = version(&object);
                self.recorder.note_mark(name, version.clone(), Mark::Adopted { uid });
                Ok(version)
            }
            Err(Error::Api { source, .. }) if matches!(&*source, kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 404) => {
                Err(Adoption::Refused(source.to_string()))
            }
            Err(error) => Err(Adoption::Failed(error)),
        }
    }

    /// Takes an InfraCluster from its Cluster.
    pub(crate) async fn release(&self, name: &str) -> Result<(), Error> {
        let patch = json!({"metadata": {"ownerReferences": null, "labels": {label::CLUSTER_NAME: null}}});
        let object = self.patch_infra(name, patch).await?;
        self.recorder.note_mark(name, version(&object), Mark::Released);
        Ok(())
    }

    /// Does what core does once it sees an InfraCluster provisioned.
    pub(crate) async fn publish(&self, name: &str, endpoint: Option<&ApiEndpoint>) -> Result<(), Error> {
        if self.options.core == Core::Real {
            return Ok(());
        }
        if let Some(endpoint) = endpoint {
            self.patch_cluster(name, json!({"controlPlaneEndpoint": endpoint})).await?;
        }
        let status = match self.kinds.clusters.version.as_str() {
            "v1beta1" => json!({"infrastructureReady": true}),
            _ => json!({"initialization": {"infrastructureProvisioned": true}}),
        };
        let patch = Patch::Merge(json!({ "status": status }));
        let answer = self.clusters.patch_status(name, &patch_params(), &patch).await;
        answer.map_err(failing(format!("patch the status of Cluster {}/{name}", self.namespace)))?;
        Ok(())
    }

    /// Merges into a Cluster's spec.
    pub(crate) async fn patch_cluster(&self, name: &str, spec: Value) -> Result<(), Error> {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let answer = self.clusters.patch(name, &patch_params(), &patch).await;
        answer.map_err(failing(format!("patch Cluster {}/{name}", self.namespace)))?;
        if self.options.core == Core::Beside {
            // The Cluster does not refer to the object, so its event may not reach the provider.
            self.patch_infra(name, json!({"metadata": {"annotations": {NUDGE: spec.to_string()}}})).await?;
        }
        Ok(())
    }

    /// Pauses or resumes.
    pub(crate) async fn pause(&self, name: &str, how: Pause, paused: bool) -> Result<(), Error> {
        match how {
            Pause::Cluster => self.patch_cluster(name, json!({ "paused": paused })).await,
            Pause::Annotation => {
                let value = if paused { json!("") } else { Value::Null };
                let patch = json!({"metadata": {"annotations": {annotation::PAUSED: value}}});
                self.patch_infra(name, patch).await.map(drop)
            }
        }
    }

    /// Deletes an InfraCluster, if it exists.
    pub(crate) async fn delete_infra(&self, name: &str) -> Result<(), Error> {
        match self.infra.delete(name, &DeleteParams::default()).await {
            Ok(answer) => {
                if let Some(object) = answer.left() {
                    self.recorder.note_ours(name, version(&object));
                }
                Ok(())
            }
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(failing(format!("delete {}", self.infra_name(name)))(error)),
        }
    }

    /// Deletes a Cluster, if it exists.
    pub(crate) async fn delete_cluster(&self, name: &str) -> Result<(), Error> {
        match self.clusters.delete(name, &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(failing(format!("delete Cluster {}/{name}", self.namespace))(error)),
        }
    }

    /// Reports a core manager that acts on our Clusters although none should run.
    pub(crate) async fn look_for_a_core(&self, name: &str) -> Result<(), Error> {
        if self.options.core != Core::Fake {
            return Ok(());
        }
        let found = self.clusters.get_opt(name).await;
        let found = found.map_err(failing(format!("read Cluster {}/{name}", self.namespace)))?;
        let held = found.and_then(|cluster| cluster.metadata.finalizers).unwrap_or_default();
        if held.iter().any(|it| it == finalizer::CLUSTER) {
            self.note(
                "a core manager is running on this cluster and acted on the Clusters of this run: \
                 run again with core `beside` or `real`",
            );
        }
        Ok(())
    }
}

/// Why an InfraCluster was not adopted.
#[derive(Debug)]
pub(crate) enum Adoption {
    /// The server or a webhook does not accept it.
    Refused(String),
    /// The real core did not do it in time.
    Missing,
    /// Something else went wrong.
    Failed(Error),
}

/// How something is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// `spec.paused` of the Cluster.
    Cluster,
    /// The annotation on the InfraCluster.
    Annotation,
}

impl Pause {
    /// A description for reports.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster spec.paused",
            Self::Annotation => "the annotation cluster.x-k8s.io/paused",
        }
    }
}

fn is_adopted(object: &Value, uid: &str) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| owner["uid"].as_str() == Some(uid))
        && object["metadata"]["labels"].get(label::CLUSTER_NAME).is_some()
}

/// Whether the server says that the object does not exist.
pub(crate) fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Says what was being done when the server failed.
pub(crate) fn failing(doing: String) -> impl FnOnce(kube::Error) -> Error {
    move |source| Error::Api { doing, source: Box::new(source) }
}

/// How the fake core creates.
pub(crate) fn params() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

/// How the fake core patches.
pub(crate) fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// Puts the fields of one object into another.
fn json_merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                json_merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_merged() {
        let mut into = json!({"a": {"b": 1}});
        json_merge(&mut into, &json!({"a": {"c": 2}, "d": 3}));
        assert_eq!(into, json!({"a": {"b": 1, "c": 2}, "d": 3}));
    }
}
