//! Writes: minimal merge patches, guarded by resourceVersion, only by the leader, each with a limit.

use std::{fmt, time::Duration};

use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
    core::{ApiResource, Request, Resource},
};
use serde_json::{Value, json};

use crate::{
    ObjectKey,
    fence::NotLeading,
    leadership::Leadership,
    observed::{Observed, ObservedMetadata, ObservedSecret},
};

/// A write that takes longer than this has failed.
const WRITE_LIMIT: Duration = Duration::from_secs(15);

/// Sends the writes of controllers.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    leadership: Leadership,
    field_manager: &'static str,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("field_manager", &self.field_manager).finish_non_exhaustive()
    }
}

/// Which part of an object a patch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Metadata and spec.
    Main,
    /// The status subresource.
    Status,
}

/// Why a write failed, or why its outcome is unknown.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The object has changed since it was read: read it again and decide again.
    #[error("{kind} {key} was changed by another writer meanwhile")]
    Conflict {
        /// The kind.
        kind: String,
        /// The object.
        key: ObjectKey,
    },
    /// An object of that name exists already.
    #[error("{kind} {key} exists already")]
    Exists {
        /// The kind.
        kind: String,
        /// The object.
        key: ObjectKey,
    },
    /// The object does not exist.
    #[error("{kind} {key} does not exist")]
    NotFound {
        /// The kind.
        kind: String,
        /// The object.
        key: ObjectKey,
    },
    /// This process does not lead any more.
    #[error("{kind} {key} was not written: this process lost leadership, and only the leader writes")]
    NotLeading {
        /// The kind.
        kind: String,
        /// The object.
        key: ObjectKey,
    },
    /// No answer came in time.
    #[error("writing {kind} {key} took longer than {WRITE_LIMIT:?}")]
    TooSlow {
        /// The kind.
        kind: String,
        /// The object.
        key: ObjectKey,
    },
    /// The server refused, or could not be reached.
    #[error("cannot {verb} {kind} {key}: {reason}")]
    Refused {
        /// The verb of the request.
        verb: &'static str,
        /// The kind.
        kind: String,
        /// The object.
        key: ObjectKey,
        /// The server's message.
        reason: String,
        /// The server has decided: the same request would be refused again.
        lasting: bool,
    },
}

impl WriteError {
    /// Whether reading the object again and deciding again helps.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    /// The server's message, if the same request would be refused again.
    pub fn lasting_refusal(&self) -> Option<&str> {
        match self {
            Self::Refused { reason, lasting: true, .. } => Some(reason),
            _ => None,
        }
    }

    /// Whether it is expected now and then, and not worth a warning.
    pub fn is_ordinary(&self) -> bool {
        matches!(
            self,
            Self::Conflict { .. } | Self::Exists { .. } | Self::NotFound { .. } | Self::NotLeading { .. }
        )
    }

    /// Whether an object of that name exists already.
    pub fn is_already_there(&self) -> bool {
        matches!(self, Self::Exists { .. })
    }

    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}

impl Writer {
    /// A writer under one field manager's name.
    pub fn new(client: Client, leadership: Leadership, field_manager: &'static str) -> Self {
        Self { client, leadership, field_manager }
    }

    /// Sends a merge patch; returns the object as patched.
    ///
    /// The patch should carry `metadata.resourceVersion` wherever it could overwrite another writer's change.
    pub async fn patch(
        &self,
        resource: &ApiResource,
        key: &ObjectKey,
        part: Part,
        patch: &Value,
    ) -> Result<Observed, WriteError> {
        let api = self.api(resource, key);
        let params = self.patch_params();
        let patch = Patch::Merge(patch);
        self.send("patch", resource, key, async {
            match part {
                Part::Main => api.patch(&key.name, &params, &patch).await,
                Part::Status => api.patch_status(&key.name, &params, &patch).await,
            }
        })
        .await
    }

    /// Creates an object; an existing one is not changed.
    pub async fn create(
        &self,
        resource: &ApiResource,
        key: &ObjectKey,
        object: &Value,
    ) -> Result<(), WriteError> {
        let request = || -> Result<_, kube::Error> {
            let namespace = Some(&*key.namespace).filter(|namespace| !namespace.is_empty());
            let url = <Observed as Resource>::url_path(resource, namespace);
            let params =
                PostParams { field_manager: Some(self.field_manager.to_owned()), ..PostParams::default() };
            let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
            Request::new(url).create(&params, body).map_err(kube::Error::BuildRequest)
        };
        self.send("create", resource, key, async {
            self.client.request::<ObservedMetadata>(request()?).await.map(|_| ())
        })
        .await
    }

    /// Sends operations of a JSON patch for the object with that uid; returns the object as patched.
    ///
    /// A test that fails is a conflict.
    pub async fn patch_by_operations(
        &self,
        resource: &ApiResource,
        key: &ObjectKey,
        part: Part,
        uid: &str,
        operations: Vec<Value>,
    ) -> Result<Observed, WriteError> {
        let api = self.api(resource, key);
        let params = self.patch_params();
        let mut all = vec![json!({"op": "test", "path": "/metadata/uid", "value": uid})];
        all.extend(operations);
        let patch = serde_json::from_value(Value::Array(all)).map_err(|error| WriteError::Refused {
            verb: "patch",
            kind: resource.kind.clone(),
            key: key.clone(),
            reason: error.to_string(),
            lasting: true,
        })?;
        let patch = Patch::Json::<()>(patch);
        let sent = self.send("patch", resource, key, async {
            let sent = match part {
                Part::Main => api.patch(&key.name, &params, &patch).await,
                Part::Status => api.patch_status(&key.name, &params, &patch).await,
            };
            match sent {
                Err(kube::Error::Api(status)) if is_failed_test(&status) => Ok(None),
                other => other.map(Some),
            }
        });
        let conflict = || WriteError::Conflict { kind: resource.kind.clone(), key: key.clone() };
        sent.await?.ok_or_else(conflict)
    }

    /// Deletes the object with that uid; a successor of the same name is left alone.
    pub async fn delete(&self, resource: &ApiResource, key: &ObjectKey, uid: &str) -> Result<(), WriteError> {
        let api = self.api(resource, key);
        let params = DeleteParams {
            preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
            ..DeleteParams::default()
        };
        self.send("delete", resource, key, async { api.delete(&key.name, &params).await.map(|_| ()) }).await
    }

    /// Reads an object past all caches.
    pub async fn read(
        &self,
        resource: &ApiResource,
        key: &ObjectKey,
    ) -> Result<Option<Observed>, WriteError> {
        let api = self.api(resource, key);
        match self.limited("read", resource, key, api.get_opt(&key.name)).await {
            Err(WriteError::NotFound { .. }) => Ok(None),
            other => other,
        }
    }

    /// Reads a Secret with its contents past all caches.
    pub async fn read_secret(&self, key: &ObjectKey) -> Result<Option<ObservedSecret>, WriteError> {
        let resource = ApiResource::erase::<Secret>(&());
        let api: Api<ObservedSecret> = Api::namespaced_with(self.client.clone(), &key.namespace, &resource);
        self.limited("read", &resource, key, api.get_opt(&key.name)).await
    }

    /// Lists the metadata of objects past all caches.
    pub async fn list_metadata(
        &self,
        resource: &ApiResource,
        namespace: &str,
        label_selector: &str,
    ) -> Result<Vec<ObjectMeta>, WriteError> {
        let api: Api<ObservedMetadata> = Api::namespaced_with(self.client.clone(), namespace, resource);
        let params = ListParams::default().labels(label_selector);
        let list = self.limited("list", resource, &ObjectKey::new(namespace, "*"), api.list(&params)).await?;
        Ok(list.items.into_iter().map(|ObservedMetadata(object)| object.metadata).collect())
    }

    /// Fields that the server does not know are pruned in any case: it need not read every patch a second time to warn of
    /// them.
    fn patch_params(&self) -> PatchParams {
        PatchParams { field_manager: Some(self.field_manager.to_owned()), ..PatchParams::default() }
            .validation_ignore()
    }

    fn api(&self, resource: &ApiResource, key: &ObjectKey) -> Api<Observed> {
        if key.namespace.is_empty() {
            Api::all_with(self.client.clone(), resource)
        } else {
            Api::namespaced_with(self.client.clone(), &key.namespace, resource)
        }
    }

    async fn send<T>(
        &self,
        verb: &'static str,
        resource: &ApiResource,
        key: &ObjectKey,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, WriteError> {
        if !self.leadership.is_held() {
            return Err(WriteError::NotLeading { kind: resource.kind.clone(), key: key.clone() });
        }
        self.limited(verb, resource, key, request).await
    }

    async fn limited<T>(
        &self,
        verb: &'static str,
        resource: &ApiResource,
        key: &ObjectKey,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, WriteError> {
        let (kind, key) = (resource.kind.clone(), key.clone());
        match tokio::time::timeout(WRITE_LIMIT, request).await {
            Ok(Ok(done)) => Ok(done),
            Err(_) => Err(WriteError::TooSlow { kind, key }),
            Ok(Err(error)) if NotLeading::is_cause_of(&error) => Err(WriteError::NotLeading { kind, key }),
            Ok(Err(kube::Error::Api(status))) if status.is_already_exists() => {
                Err(WriteError::Exists { kind, key })
            }
            Ok(Err(kube::Error::Api(status))) if status.is_conflict() => {
                Err(WriteError::Conflict { kind, key })
            }
            Ok(Err(kube::Error::Api(status))) if status.is_not_found() => {
                Err(WriteError::NotFound { kind, key })
            }
            Ok(Err(error)) => {
                let (reason, lasting) = match &error {
                    kube::Error::Api(status) => (status.message.clone(), is_lasting(status)),
                    other => (crate::controller::with_causes(other), false),
                };
                Err(WriteError::Refused { verb, kind, key, reason, lasting })
            }
        }
    }
}

/// The server has no reason of its own for a failed test; for an invalid object it lists what is wrong.
fn is_failed_test(status: &kube::core::Status) -> bool {
    const WORDS: &str = "the server rejected our request due to an error in our request";
    status.code == 422 && status.message.starts_with(WORDS)
}

/// Whether the server would answer the same again: it rejected the request, or it cannot reach a webhook.
fn is_lasting(status: &kube::core::Status) -> bool {
    ((400..500).contains(&status.code) && status.code != 429) || status.message.contains("webhook")
}
