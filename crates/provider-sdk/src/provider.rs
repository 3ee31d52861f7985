//! What an author writes, and what they are given.

use std::{collections::BTreeMap, error::Error, fmt, time::Duration};

use capstan_api::{
    cluster::v1beta2::{ApiEndpoint, ClusterSpec, FailureDomain},
    conditions::Report,
};
use capstan_runtime::{
    ObjectKey,
    cache::Cache,
    writer::{WriteError, Writer},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{NamespaceResourceScope, Resource, object::HasSpec};
use serde::de::DeserializeOwned;

use crate::{identity::InfrastructureId, record::Record};

/// A provider of cluster infrastructure.
pub trait Provider: Send + Sync + 'static {
    /// The InfraCluster kind, as kube's derive makes it, in the version that is stored.
    type Cluster: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + HasSpec<Spec: DeserializeOwned + Default + Send + Sync>
        + 'static;
    /// A transient error. It is reported in the condition `Ready` and retried; a text that differs from try to
    /// try, such as the number of a request, cost a write each time.
    type Error: Error + Send + Sync + 'static;

    /// The provider's name as in the label `cluster.x-k8s.io/provider`, e.g. `infrastructure-foo`.
    const NAME: &'static str;
    /// Who makes the control plane's endpoint.
    const ENDPOINT: EndpointSource;

    /// Creates or updates the infrastructure as the spec says.
    ///
    /// A call has 50 seconds: what takes longer is begun here and looked at again ([`Progress::Wait`]).
    fn provision(
        &self,
        request: Request<'_, Self>,
    ) -> impl Future<Output = Result<Progress, Self::Error>> + Send;

    /// Deletes the infrastructure. Under this id there may never have been any.
    fn deprovision(
        &self,
        request: Request<'_, Self>,
    ) -> impl Future<Output = Result<Removal, Self::Error>> + Send;

    /// An object was deleted, or is not watched by this process any more: release what the process holds for it.
    fn forget(&self, _key: &ObjectKey) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// Who makes the control plane's endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointSource {
    /// The provider: [`Infrastructure::endpoint`] is recorded in `spec.controlPlaneEndpoint`.
    Provider,
    /// Elsewhere: nothing is provisioned before the Cluster has it.
    Cluster,
    /// Elsewhere, and the provider does not need it: e.g. from a control plane that waits for the infrastructure first.
    Elsewhere,
}

/// One object to act on.
pub struct Request<'a, P: Provider + ?Sized> {
    /// The name of its infrastructure.
    pub id: &'a InfrastructureId,
    /// The object.
    pub key: &'a ObjectKey,
    /// Its metadata, less managed fields.
    pub metadata: &'a ObjectMeta,
    /// Its desired state.
    pub spec: &'a <P::Cluster as HasSpec>::Spec,
    /// The endpoint on record, or else the one that users asked of the Cluster.
    pub endpoint: Option<ApiEndpoint>,
    /// The Cluster that it belongs to; `None` if that was deleted.
    pub owner: Option<&'a Owner>,
    pub(crate) writer: &'a Writer,
    pub(crate) objects: &'a Cache<Record<<P::Cluster as HasSpec>::Spec>>,
}

impl<P: Provider + ?Sized> fmt::Debug for Request<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("id", self.id).field("key", self.key).finish_non_exhaustive()
    }
}

/// What is read of the Cluster that an object belongs to.
#[derive(Clone, Debug, Default)]
pub struct Owner {
    /// The metadata.
    pub metadata: ObjectMeta,
    /// The desired state.
    pub spec: ClusterSpec,
    /// Why the desired state cannot be read; it is empty then, and nothing is done.
    pub(crate) unreadable: Option<String>,
}

/// What a Secret holds. Only its keys are shown by `Debug`: keep its values out of errors and conditions as well, which
/// more people may read than the Secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretContents(BTreeMap<String, Vec<u8>>);

impl SecretContents {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        self.0.get(key).map(Vec::as_slice)
    }
}

impl FromIterator<(String, Vec<u8>)> for SecretContents {
    fn from_iter<I: IntoIterator<Item = (String, Vec<u8>)>>(contents: I) -> Self {
        Self(contents.into_iter().collect())
    }
}

impl fmt::Debug for SecretContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A Secret cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// It does not exist.
    #[error("Secret {0} does not exist")]
    Missing(ObjectKey),
    /// The API server does not give it.
    #[error(transparent)]
    Unreadable(#[from] WriteError),
}

impl<P: Provider + ?Sized> Request<'_, P> {
    /// The contents of a Secret in the object's namespace, e.g. a tenant's credentials. It is not cached.
    pub async fn secret(&self, name: &str) -> Result<SecretContents, SecretError> {
        let key = self.key.beside(name);
        let secret = self.writer.read_secret(&key).await?.ok_or(SecretError::Missing(key))?;
        Ok(secret.data.into_iter().map(|(name, content)| (name, content.0)).collect())
    }

    /// The endpoints that are on record for other objects of the kind.
    pub fn other_endpoints(&self) -> impl Iterator<Item = ApiEndpoint> {
        let others = self.objects.keys().into_iter().filter(|key| key != self.key);
        others.filter_map(|key| self.objects.get(&key)?.endpoint.clone())
    }
}

/// How far provisioning is.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// The infrastructure is complete.
    Done(Infrastructure),
    /// Not yet.
    Wait(Wait),
    /// It will never be: only a new Cluster helps. Where the kind has `failureReason` and `failureMessage`, this is final.
    Failed(Failure),
}

/// How far taking down is.
#[derive(Clone, Debug, PartialEq)]
pub enum Removal {
    /// Nothing is left.
    Gone,
    /// Not yet.
    Wait(Wait),
}

/// Existing infrastructure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Infrastructure {
    /// Where the control plane can be reached, if the provider makes that.
    pub endpoint: Option<ApiEndpoint>,
    /// The places that machines can be put in.
    pub failure_domains: Vec<FailureDomain>,
    /// Further conditions. A `Ready` among them takes the place of the one that says that all is well.
    pub conditions: Vec<Report>,
}

/// Something that is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// One CamelCase word.
    pub reason: String,
    /// What is waited for, for a person. Counters or times in it would cause a write at each look.
    pub message: String,
    /// When to look again; without it, when something changes.
    pub again: Option<Duration>,
}

impl Wait {
    /// Waits for something that will show itself by an event.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into(), again: None }
    }

    /// The same, with a look after a while.
    #[must_use]
    pub fn look_again(mut self, after: Duration) -> Self {
        self.again = Some(after);
        self
    }
}

/// A failure that cannot be recovered from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// One CamelCase word.
    pub reason: String,
    /// What happened, for a person.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_the_keys_of_a_secret_alone() {
        let contents = [("user".to_owned(), b"canary".to_vec()), ("token".to_owned(), Vec::new())];
        let contents = SecretContents::from_iter(contents);
        assert_eq!(contents.get("user"), Some(b"canary".as_slice()));
        assert_eq!(format!("{contents:?}"), r#"{"token", "user"}"#);
    }
}
