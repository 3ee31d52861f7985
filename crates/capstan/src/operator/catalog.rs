//! Where the operator gets the releases of providers from: what their objects say, and the local configuration for the
//! others.

use capstan_api::provider::ProviderType;
use capstan_lifecycle::{
    catalog::{Catalog, Source},
    release::{ReleaseError, ReleaseNotice, Releases},
};
use capstan_management::ManagementCluster;
use capstan_repository::{Config, ConfigMaps, Provider, Repository};
use futures::future::BoxFuture;
use kube::core::Selector;

use super::{OperatorState, ProviderObject, draft::is_input_selector};
use crate::session::Session;

/// The releases of a cluster with provider objects.
pub(crate) struct OperatorCatalog<'a> {
    pub(crate) session: &'a Session,
    pub(crate) state: &'a OperatorState,
    pub(crate) cluster: &'a ManagementCluster,
}

impl OperatorCatalog<'_> {
    /// The releases of all providers.
    pub(crate) fn releases<'a>(&'a self, report: &'a (dyn Fn(ReleaseNotice<'_>) + Sync)) -> Releases<'a> {
        Releases { catalog: self, report }
    }

    async fn source_of(&self, object: &ProviderObject) -> Result<Source<'_>, ReleaseError> {
        let (kind, name) = (object.kind, object.name.as_str());
        let fetch_config = object.fetch_config().unwrap_or_default();
        if let Some(url) = fetch_config.url {
            return self.at(Provider { name: name.to_owned(), kind, url });
        }
        let Some(selector) = fetch_config.selector else {
            return match Config::default().provider(kind, name) {
                Ok(built_in) => self.at(built_in),
                Err(_) => self.session.source(kind, name).await,
            };
        };
        // An upgrade puts new versions into ConfigMaps from where the local configuration has them.
        let is_known = self.session.config.provider(kind, name).is_ok();
        if is_known && is_input_selector(&selector, &object.label()) {
            return self.session.source(kind, name).await;
        }
        let selector =
            Selector::try_from(selector).map_err(|error| ReleaseError::Catalog(Box::new(error)))?;
        let found = ConfigMaps::list(self.cluster.client().clone(), &object.namespace, &selector).await;
        let found = found.map_err(|error| ReleaseError::Catalog(Box::new(error)))?;
        let provider = Provider { name: name.to_owned(), kind, url: String::new() };
        let repository = Repository::in_config_maps(&provider, found);
        self.with(provider, repository)
    }

    fn at(&self, provider: Provider) -> Result<Source<'_>, ReleaseError> {
        // The operator sees nothing of this machine.
        let repository = Repository::on_network(&provider, &self.session.http)?;
        self.with(provider, repository)
    }

    fn with(&self, provider: Provider, repository: Repository) -> Result<Source<'_>, ReleaseError> {
        let variables = Box::new(|name: &str| self.session.config.variable(name));
        Ok(Source { provider, repository, variables, images: self.session.config.images()?, alter: None })
    }
}

impl Catalog for OperatorCatalog<'_> {
    fn source<'a>(
        &'a self,
        kind: ProviderType,
        name: &str,
    ) -> BoxFuture<'a, Result<Source<'a>, ReleaseError>> {
        match self.state.find(kind, name) {
            Some(object) => Box::pin(self.source_of(object)),
            None => self.session.source(kind, name),
        }
    }
}
