//! The fake core: what is on the server, and what core does to it.

use std::sync::{Mutex, PoisonError};

use capstan_api::{
    cluster::v1beta2::ApiEndpoint,
    contract::{ContractVersion, PickedVersion, crd_name, pick_version},
    names::{CORE_GROUP, annotation, finalizer, label},
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

use super::{
    Core, Error, Options, Target,
    history::Mark,
    recorder::{Recorder, uid, version},
};

/// The name under which the fake core writes.
pub(crate) const FIELD_MANAGER: &str = "capstan-conformance";
/// Wakes providers that are not told of a change of the Cluster.
const NUDGE: &str = "conformance.capstan.dev/nudge";

/// The kinds that the play is about.
#[derive(Clone, Debug)]
pub(crate) struct Kinds {
    pub(crate) infra: ApiResource,
    pub(crate) clusters: ApiResource,
    pub(crate) contract: ContractVersion,
    pub(crate) document: Value,
    pub(crate) others: Vec<Value>,
    pub(crate) notes: Vec<String>,
}

impl Kinds {
    /// Finds out what is served, and by which contract core would read it.
    pub(crate) async fn find(client: &Client, target: &Target) -> Result<Self, Error> {
        let (document, others) = split(target)?;
        let group = match &target.group {
            Some(group) => group.clone(),
            None => group_of(&document).to_owned(),
        };
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let name = crd_name(&group, &target.kind);
        let crd = crds.get_opt(&name).await.map_err(failing(format!("read CRD {name}")))?;
        let crd = crd.ok_or_else(|| Error::NoCrd { name: name.clone() })?;
        let labels = crd.metadata.labels.unwrap_or_default();
        let picked = match &target.version {
            None => pick_version(&name, &labels)?,
            Some(version) => {
                let names = |contract: &ContractVersion| {
                    let listed = labels.get(&contract.label());
                    listed.is_some_and(|listed| listed.split('_').any(|it| it == version))
                };
                let contract = ContractVersion::PREFERENCE.into_iter().find(names);
                let contract =
                    contract.ok_or_else(|| Error::Version { crd: name.clone(), version: version.clone() })?;
                PickedVersion { contract, version: version.clone() }
            }
        };
        let kind = GroupVersionKind::gvk(&group, &picked.version, &target.kind);
        let infra = ApiResource::from_gvk_with_plural(&kind, &crd.spec.names.plural);
        let notes = vec![format!(
            "core reads {} as {} under contract {}",
            target.kind, infra.api_version, picked.contract
        )];
        let clusters = find_clusters(&crds).await?;
        Ok(Self { infra, clusters, contract: picked.contract, document, others, notes })
    }
}

async fn find_clusters(crds: &Api<CustomResourceDefinition>) -> Result<ApiResource, Error> {
    let name = crd_name(CORE_GROUP, "Cluster");
    let crd = crds.get_opt(&name).await.map_err(failing(format!("read CRD {name}")))?;
    let served: Vec<_> = crd.into_iter().flat_map(|crd| crd.spec.versions).filter(|it| it.served).collect();
    let version = ["v1beta2", "v1beta1"].into_iter().find(|name| served.iter().any(|it| it.name == *name));
    let kind = GroupVersionKind::gvk(CORE_GROUP, version.ok_or(Error::NoClusters)?, "Cluster");
    Ok(ApiResource::from_gvk_with_plural(&kind, "clusters"))
}

/// The document of the kind, and the others.
fn split(target: &Target) -> Result<(Value, Vec<Value>), Error> {
    for (index, document) in target.documents.iter().enumerate() {
        for (pointer, field) in
            [("/apiVersion", "apiVersion"), ("/kind", "kind"), ("/metadata/name", "metadata.name")]
        {
            let named = document.pointer(pointer).is_some_and(Value::is_string);
            let is_target = document["kind"] == json!(target.kind);
            if !named && !(is_target && field == "metadata.name") {
                return Err(Error::Document { number: index + 1, field });
            }
        }
    }
    let wanted = |document: &Value| {
        document["kind"] == json!(target.kind)
            && target.group.as_ref().is_none_or(|group| group_of(document) == group)
    };
    let (mut documents, others): (Vec<_>, Vec<_>) = target.documents.iter().cloned().partition(wanted);
    match (documents.pop(), documents.len()) {
        (Some(document), 0) => Ok((document, others)),
        (popped, rest) => {
            let count = rest + usize::from(popped.is_some());
            Err(Error::Documents { kind: target.kind.clone(), count })
        }
    }
}

fn group_of(document: &Value) -> &str {
    let api_version = document["apiVersion"].as_str().unwrap_or_default();
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Everything that scenarios share.
pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) kinds: Kinds,
    pub(crate) infra: Api<DynamicObject>,
    pub(crate) clusters: Api<DynamicObject>,
    pub(crate) recorder: Recorder,
    pub(crate) options: Options,
    notes: Mutex<Vec<String>>,
}

impl Stage {
    /// Sets the stage in a namespace that exists.
    pub(crate) async fn set(
        client: Client,
        namespace: String,
        kinds: Kinds,
        options: Options,
    ) -> Result<Self, Error> {
        let infra = Api::namespaced_with(client.clone(), &namespace, &kinds.infra);
        let clusters = Api::namespaced_with(client.clone(), &namespace, &kinds.clusters);
        let real = options.core == Core::Real;
        let recorder = Recorder::start(infra.clone(), &kinds.infra.kind, options.timeout, real).await?;
        Ok(Self { client, namespace, kinds, infra, clusters, recorder, options, notes: Mutex::default() })
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
        let object = DynamicObject::new(name, &self.kinds.clusters).data(cluster);
        let doing = format!("create Cluster {}/{name}", self.namespace);
        self.clusters.create(&params(), &object).await.map_err(failing(doing))
    }

    /// Creates an InfraCluster from the user's manifest; `metadata` is added to its own.
    pub(crate) async fn create_infra(&self, name: &str, metadata: &Value) -> Result<(), Error> {
        let mut document = self.kinds.document.clone();
        document["apiVersion"] = json!(self.kinds.infra.api_version);
        json_merge(&mut document["metadata"], metadata);
        document["metadata"]["name"] = json!(name);
        document["metadata"]["namespace"] = json!(self.namespace);
        let doing = format!("create {}", self.infra_name(name));
        let object: DynamicObject = serde_json::from_value(document)
            .map_err(|error| failing(doing.clone())(kube::Error::SerdeError(error)))?;
        let created = self.infra.create(&params(), &object).await.map_err(failing(doing))?;
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

    /// Gives an InfraCluster to its Cluster; gives back the resourceVersion from which it is adopted.
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

    /// Pauses, or lets go on.
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

    /// Asks for an InfraCluster's deletion; what is gone already is fine.
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

    /// Asks for a Cluster's deletion; tells of a core that should not be there.
    pub(crate) async fn delete_cluster(&self, name: &str) -> Result<(), Error> {
        let doing = || format!("delete Cluster {}/{name}", self.namespace);
        match self.clusters.delete(name, &DeleteParams::default()).await {
            Ok(answer) => {
                let held = answer.left().and_then(|object| object.metadata.finalizers).unwrap_or_default();
                if self.options.core == Core::Fake && held.iter().any(|it| it == finalizer::CLUSTER) {
                    self.note(
                        "a core manager is running on this cluster and acted on the Clusters of this run: \
                         run again with core `beside` or `real`",
                    );
                }
                Ok(())
            }
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(failing(doing())(error)),
        }
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
    /// In words.
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

    fn target(documents: &[Value]) -> Target {
        Target { kind: "FooCluster".into(), group: None, version: None, documents: documents.to_vec() }
    }

    #[test]
    fn the_manifest_has_one_document_of_the_kind() {
        let foo = json!({"apiVersion": "g.io/v1", "kind": "FooCluster", "metadata": {}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        let (document, others) = split(&target(&[secret.clone(), foo.clone()])).unwrap();
        assert_eq!((document, others), (foo.clone(), vec![secret.clone()]));
        for (documents, expected) in [
            (vec![secret.clone()], "the manifest has 0 documents of kind FooCluster, but one is needed"),
            (
                vec![foo.clone(), foo.clone()],
                "the manifest has 2 documents of kind FooCluster, but one is needed",
            ),
            (vec![foo, json!({"kind": "Secret"})], "document 2 of the manifest has no apiVersion"),
        ] {
            assert_eq!(split(&target(&documents)).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn fields_are_merged() {
        let mut into = json!({"a": {"b": 1}});
        json_merge(&mut into, &json!({"a": {"c": 2}, "d": 3}));
        assert_eq!(into, json!({"a": {"b": 1, "c": 2}, "d": 3}));
    }
}
