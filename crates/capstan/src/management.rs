//! A management cluster that is only looked at.

use std::{path::PathBuf, time::Duration};

use capstan_api::names::CORE_GROUP;
use capstan_management::{
    ManagementCluster, ServerError,
    inventory::{Installed, Inventory},
};
use capstan_runtime::{
    client::{self, ApiServer, ClientError, ClientOptions},
    metrics::Metrics,
    proxy::ProxyVariables,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
    config::KubeconfigError,
    core::GroupVersionKind,
    discovery::{self, ApiResource},
};
use serde_json::Value;

use crate::{cli::generate::KubeconfigArgs, error::CommandError};

/// More would not make a server faster, and each of them takes a connection.
const REQUESTS_AT_ONCE: usize = 16;

/// How long a server may be silent before a command gives up, as long as clusterctl's.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// How a command speaks to a cluster.
pub(crate) fn client_options(kubeconfig: Option<PathBuf>, context: Option<String>) -> ClientOptions {
    ClientOptions {
        kubeconfig,
        context,
        proxies: ProxyVariables::of_process(),
        answer_limit: Some(ANSWER_LIMIT),
        ..ClientOptions::default()
    }
}

/// A management cluster that flags, environment or the Pod name. Nothing was asked of it yet, and nothing that only a
/// connection needs was looked at: neither credentials nor a proxy.
pub(crate) struct Located {
    server: ApiServer,
    options: ClientOptions,
}

impl Located {
    /// The cluster; none if nothing names one.
    pub(crate) async fn find(args: &KubeconfigArgs) -> Result<Option<Self>, CommandError> {
        let options = ClientOptions {
            at_once: REQUESTS_AT_ONCE,
            ..client_options(
                given(args.kubeconfig.as_ref()).map(Into::into),
                given(args.kubeconfig_context.as_ref()),
            )
        };
        match client::find_config(&options).await {
            Ok(server) => Ok(Some(Self { server, options })),
            Err(error) if is_nowhere(&error) => Ok(None),
            Err(error) => Err(unusable(error)),
        }
    }

    /// The namespace that the kubeconfig's context names.
    pub(crate) fn namespace(&self) -> &str {
        &self.server.config.default_namespace
    }

    /// Makes a client for it.
    pub(crate) fn connect(&self) -> Result<Management, CommandError> {
        let client =
            client::connect(self.server.clone(), &self.options, &Metrics::default()).map_err(unusable)?;
        let cluster = ManagementCluster::new(client.clone(), &self.server.url());
        Ok(Management { client, cluster, namespace: self.namespace().to_owned() })
    }
}

fn unusable(error: ClientError) -> CommandError {
    let hint = match &error {
        ClientError::Proxy(_) => Some("correct the proxy's address, or remove it to connect directly"),
        _ => None,
    };
    CommandError::new("cannot use the management cluster", error).hint_if(hint.map(str::to_owned))
}

/// A management cluster and the namespace that the kubeconfig's context names.
pub(crate) struct Management {
    client: Client,
    cluster: ManagementCluster,
    pub(crate) namespace: String,
}

impl Management {
    /// The cluster that flags, environment or the Pod name; none if nothing names one.
    pub(crate) async fn find(args: &KubeconfigArgs) -> Result<Option<Self>, CommandError> {
        Located::find(args).await?.map(|located| located.connect()).transpose()
    }

    /// The same, where a command cannot do without.
    pub(crate) async fn open(args: &KubeconfigArgs) -> Result<Self, CommandError> {
        Self::find(args).await?.ok_or_else(|| {
            CommandError::plain(
                "no management cluster is named: there is no kubeconfig, or it has no current context",
            )
            .hint("name one by --kubeconfig and --kubeconfig-context, or by $KUBECONFIG")
        })
    }

    /// What can be done to it.
    pub(crate) fn cluster(&self) -> &ManagementCluster {
        &self.cluster
    }

    /// The namespace that a flag names, or else that of the context; scripts pass empty flags for none.
    pub(crate) fn namespace_or<'a>(&'a self, flag: Option<&'a str>) -> &'a str {
        flag.filter(|it| !it.is_empty()).unwrap_or(&self.namespace)
    }

    /// The providers of the inventory; none where nothing was ever installed.
    pub(crate) async fn providers(&self) -> Result<Vec<Installed>, CommandError> {
        Ok(Inventory::read(&self.cluster).await?.providers)
    }

    /// The text under a key of a ConfigMap.
    pub(crate) async fn config_map(
        &self,
        namespace: &str,
        name: &str,
        key: &str,
    ) -> Result<String, CommandError> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let found = api.get_opt(name).await;
        let found =
            found.map_err(|error| self.failed(&format!("read ConfigMap {namespace}/{name}"), error))?;
        let Some(found) = found else {
            return Err(CommandError::plain(format!(
                "there is no ConfigMap {namespace}/{name} in {}",
                self.cluster.url()
            ))
            .hint("name it by --from-config-map and --from-config-map-namespace"));
        };
        let mut data = found.data.unwrap_or_default();
        data.remove(key).ok_or_else(|| {
            let keys = data.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            CommandError::plain(format!("ConfigMap {namespace}/{name} has no key {key}"))
                .hint(format!("choose one of its keys by --from-config-map-key: {keys}"))
        })
    }

    /// Whether a namespace exists.
    pub(crate) async fn has_namespace(&self, name: &str) -> Result<bool, CommandError> {
        let found = Api::<Namespace>::all(self.client.clone()).get_metadata_opt(name).await;
        Ok(found.map_err(|error| self.failed(&format!("look for namespace {name}"), error))?.is_some())
    }

    /// The names of the namespaces.
    pub(crate) async fn namespaces(&self) -> Result<Vec<String>, CommandError> {
        let list = Api::<Namespace>::all(self.client.clone()).list_metadata(&ListParams::default()).await;
        let list = list.map_err(|error| self.failed("list namespaces", error))?;
        Ok(list.items.into_iter().filter_map(|it| it.metadata.name).collect())
    }

    /// Whether a ClusterClass exists, in any version that the server has.
    pub(crate) async fn has_cluster_class(&self, namespace: &str, name: &str) -> Result<bool, CommandError> {
        for version in ["v1beta2", "v1beta1"] {
            let kind = GroupVersionKind::gvk(CORE_GROUP, version, "ClusterClass");
            let resource = ApiResource::from_gvk_with_plural(&kind, "clusterclasses");
            let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
            match api.get_metadata(name).await {
                Ok(_) => return Ok(true),
                Err(error) if is_not_found(&error) => {}
                Err(error) => {
                    return Err(self
                        .failed(&format!("look for ClusterClass {namespace}/{name}"), error)
                        .into());
                }
            }
        }
        Ok(false)
    }

    /// Whether an object of that kind, namespace and name exists.
    pub(crate) async fn has(&self, object: &Value) -> Result<bool, CommandError> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (version, kind) = (text("/apiVersion"), text("/kind"));
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let doing = || format!("look for {kind} {namespace}/{name}");
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let resource = match discovery::pinned_kind(&self.client, &gvk).await {
            Ok((resource, _)) => resource,
            // A kind that the server does not know has no objects there.
            Err(kube::Error::Discovery(_)) => return Ok(false),
            Err(error) if is_not_found(&error) => return Ok(false),
            Err(error) => return Err(self.failed(&doing(), error).into()),
        };
        let api: Api<DynamicObject> = if namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        };
        let found = api.get_metadata_opt(name).await;
        Ok(found.map_err(|error| self.failed(&doing(), error))?.is_some())
    }

    fn failed(&self, doing: &str, error: kube::Error) -> ServerError {
        self.cluster.failed(doing, error)
    }
}

/// What a flag says; scripts pass empty values for none.
fn given(flag: Option<&String>) -> Option<String> {
    flag.filter(|it| !it.is_empty()).cloned()
}

/// Whether nothing says where a cluster would be, rather than something wrong.
fn is_nowhere(error: &ClientError) -> bool {
    match error {
        ClientError::Infer(KubeconfigError::FindPath | KubeconfigError::CurrentContextNotSet) => true,
        ClientError::Infer(KubeconfigError::ReadConfig(error, _)) => {
            error.kind() == std::io::ErrorKind::NotFound
        }
        _ => false,
    }
}

/// Whether an object is missing, or its whole kind: for that one a server answers with a page instead of a status.
fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_server_that_accepts_and_never_answers_is_given_up() {
        // Another test may have been faster.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c"}}],
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{}", listener.local_addr().unwrap())}}],
            "users": [],
        });
        let file = std::env::temp_dir().join(format!("capstan-silent-{}", std::process::id()));
        std::fs::write(&file, kubeconfig.to_string()).unwrap();
        let args =
            KubeconfigArgs { kubeconfig: Some(file.to_str().unwrap().to_owned()), kubeconfig_context: None };
        let mut located = Located::find(&args).await.unwrap().unwrap();
        std::fs::remove_file(file).unwrap();
        assert_eq!(located.options.answer_limit, Some(ANSWER_LIMIT));
        located.options.answer_limit = Some(Duration::from_millis(50));
        let error = located.connect().unwrap().namespaces().await.unwrap_err();
        let words = format!("cannot list namespaces in http://{}/:", listener.local_addr().unwrap());
        assert!(error.message.starts_with(&words), "{error:?}");
        assert!(error.message.contains("the server did not answer within 50ms"), "{error:?}");
        assert!(error.hint.is_some());
    }
}
