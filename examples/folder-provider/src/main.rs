//! A provider whose infrastructure is a folder: the example of docs/writing-a-provider.md.

use std::{io, path::PathBuf};

use capstan_provider_sdk::{
    ApiEndpoint, ContractVersion, EndpointSource, InfraClusterStatus, Infrastructure, ManagerOptions,
    Progress, Provider, Removal, Request, TemplateResource, crd, run,
};
use clap::Parser;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const NAME: &str = "infrastructure-folder";

/// What a cluster's infrastructure should be.
#[derive(Clone, Debug, Default, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "FolderCluster",
    namespaced,
    category = "cluster-api",
    status = "InfraClusterStatus"
)]
#[serde(default, rename_all = "camelCase")]
struct FolderClusterSpec {
    /// controlPlaneEndpoint is where the control plane can be reached; made by the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    control_plane_endpoint: Option<ApiEndpoint>,
    /// note is written into the folder.
    note: String,
}

/// What FolderClusters made from a template look like.
#[derive(Clone, Debug, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "FolderClusterTemplate",
    namespaced,
    category = "cluster-api"
)]
struct FolderClusterTemplateSpec {
    /// template is the FolderCluster to make.
    template: TemplateResource<FolderClusterSpec>,
}

/// Folders, all of them in one.
struct Folders {
    root: PathBuf,
}

impl Folders {
    /// The id is what a folder is found again by, so its name is made from nothing else.
    fn of(&self, request: &Request<'_, Self>) -> PathBuf {
        self.root.join(request.id.as_str().replace('/', "."))
    }
}

impl Provider for Folders {
    type Cluster = FolderCluster;
    type Error = io::Error;
    const NAME: &'static str = NAME;
    const ENDPOINT: EndpointSource = EndpointSource::Provider;

    async fn provision(&self, request: Request<'_, Self>) -> Result<Progress, io::Error> {
        let folder = self.of(&request);
        tokio::fs::create_dir_all(&folder).await?;
        tokio::fs::write(folder.join("note"), &request.spec.note).await?;
        let endpoint = ApiEndpoint { host: format!("{}.example.com", request.key.name), port: 6443 };
        let endpoint = request.endpoint.unwrap_or(endpoint);
        Ok(Progress::Done(Infrastructure { endpoint: Some(endpoint), ..Infrastructure::default() }))
    }

    async fn deprovision(&self, request: Request<'_, Self>) -> Result<Removal, io::Error> {
        match tokio::fs::remove_dir_all(self.of(&request)).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Removal::Gone),
        }
    }
}

/// A provider whose infrastructure is a folder.
#[derive(Parser)]
struct Args {
    /// Where the folders are
    #[arg(long, default_value = "folders")]
    root: PathBuf,
    /// Print the CRDs and end
    #[arg(long)]
    print_crds: bool,
    #[command(flatten)]
    manager: ManagerOptions,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let crds = [
        crd::<FolderCluster>(NAME, ContractVersion::V1Beta2),
        crd::<FolderClusterTemplate>(NAME, ContractVersion::V1Beta2),
    ];
    if args.print_crds {
        serde_json::to_writer(
            io::stdout(),
            &serde_json::json!({"apiVersion": "v1", "kind": "List", "items": crds}),
        )?;
        return Ok(());
    }
    tracing_subscriber::fmt().with_writer(io::stderr).init();
    run(Folders { root: args.root }, &crds, args.manager).await?;
    Ok(())
}
