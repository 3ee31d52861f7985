//! A management cluster: one client, one discovery.

use std::{sync::Arc, time::Duration};

use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, ObjectList, PartialObjectMeta},
};
use tokio::{sync::Mutex, time::Instant};

use crate::{
    Kind, Kinds, ServerError, error,
    retry::{Backoff, retry},
};

/// How many objects to list at a time.
const PAGE: u32 = 500;
/// How long to retry a list while the server is too busy.
const RETRY_LIMIT: Duration = Duration::from_secs(15);
/// How long the apply of an object retries transient failures, unless a caller sets another limit.
const APPLY_LIMIT: Duration = Duration::from_mins(1);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(500));

/// A management cluster.
#[derive(Clone)]
pub struct ManagementCluster {
    client: Client,
    url: Arc<str>,
    kinds: Arc<Mutex<Option<Arc<Kinds>>>>,
    apply_limit: Duration,
}

impl std::fmt::Debug for ManagementCluster {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ManagementCluster").field("url", &self.url).finish_non_exhaustive()
    }
}

impl ManagementCluster {
    /// The cluster behind a client. Messages name it by its URL.
    pub fn new(client: Client, url: &str) -> Self {
        Self { client, url: url.into(), kinds: Arc::default(), apply_limit: APPLY_LIMIT }
    }

    /// The same cluster, with another limit for [`Self::apply_limit`].
    #[must_use]
    pub fn with_apply_limit(self, apply_limit: Duration) -> Self {
        Self { apply_limit, ..self }
    }

    /// How long the apply of an object retries transient failures.
    pub fn apply_limit(&self) -> Duration {
        self.apply_limit
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The URL of the API server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The kinds of the server when they were discovered: with the first call, or the last [`Self::refresh_kinds`].
    pub async fn kinds(&self) -> Result<Arc<Kinds>, ServerError> {
        // Concurrent callers wait for one discovery.
        let mut known = self.kinds.lock().await;
        if let Some(kinds) = &*known {
            return Ok(Arc::clone(kinds));
        }
        let kinds = self.discover().await?;
        *known = Some(Arc::clone(&kinds));
        Ok(kinds)
    }

    /// Discovers the kinds of the server again, for this cluster and its clones. Callers that have the old kinds keep
    /// them.
    pub async fn refresh_kinds(&self) -> Result<Arc<Kinds>, ServerError> {
        let kinds = self.discover().await?;
        *self.kinds.lock().await = Some(Arc::clone(&kinds));
        Ok(kinds)
    }

    async fn discover(&self) -> Result<Arc<Kinds>, ServerError> {
        let kinds = Kinds::discover(&self.client).await;
        kinds.map(Arc::new).map_err(|error| self.failed("discover the API kinds", error))
    }

    /// The objects of a kind, in one namespace or in all.
    pub fn objects(&self, kind: &Kind, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace.filter(|_| kind.is_namespaced) {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind.resource),
            None => Api::all_with(self.client.clone(), &kind.resource),
        }
    }

    /// All objects of a kind that a selector matches, page by page; none if the kind is not served.
    pub async fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<DynamicObject>, ServerError> {
        let api = self.objects(kind, namespace);
        let page = |params: ListParams| {
            let api = api.clone();
            async move { api.list(&params).await }
        };
        self.pages(kind, selector, page).await
    }

    /// The same with metadata only.
    pub async fn list_metadata(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<PartialObjectMeta<DynamicObject>>, ServerError> {
        let api = self.objects(kind, namespace);
        let page = |params: ListParams| {
            let api = api.clone();
            async move { api.list_metadata(&params).await }
        };
        self.pages(kind, selector, page).await
    }

    async fn pages<T: Clone, F>(
        &self,
        kind: &Kind,
        selector: &str,
        page: impl Fn(ListParams) -> F,
    ) -> Result<Vec<T>, ServerError>
    where
        F: Future<Output = Result<ObjectList<T>, kube::Error>>,
    {
        let mut params = ListParams::default().labels(selector).limit(PAGE);
        let mut items = Vec::new();
        let start = Instant::now();
        // The server answers for a new kind a moment after its CRD is created.
        let is_busy = |error: &kube::Error, _| error::is_busy(error) && start.elapsed() < RETRY_LIMIT;
        loop {
            match retry(BACKOFF, || page(params.clone()), is_busy, |_| {}).await {
                Ok(list) => {
                    items.extend(list.items);
                    params.continue_token = list.metadata.continue_.filter(|it| !it.is_empty());
                    if params.continue_token.is_none() {
                        return Ok(items);
                    }
                }
                // The list expired between two pages: list again, in one page.
                Err(kube::Error::Api(status)) if status.code == 410 && params.limit.is_some() => {
                    items.clear();
                    params = ListParams { limit: None, continue_token: None, ..params };
                }
                Err(error) if error::is_not_found(&error) => return Ok(Vec::new()),
                Err(error) => {
                    return Err(self.failed(format!("list objects of kind {}", kind.resource.kind), error));
                }
            }
        }
    }

    /// The error of a request that failed.
    pub fn failed(&self, doing: impl Into<String>, error: kube::Error) -> ServerError {
        ServerError { doing: doing.into(), url: self.url.to_string(), source: Box::new(error) }
    }
}
