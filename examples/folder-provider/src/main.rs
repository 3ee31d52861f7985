//! A provider whose infrastructure is a folder: the example of docs/writing-a-provider.md.

use std::{
    io,
    path::{Path, PathBuf},
};

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
        write_if_changed(&folder.join("note"), &request.spec.note).await?;
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

/// Provisioning is repeated, so it changes only what differs, and a reader never sees a half-written file.
async fn write_if_changed(file: &Path, text: &str) -> io::Result<()> {
    match tokio::fs::read(file).await {
        Ok(found) if found == text.as_bytes() => return Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let new = file.with_extension("new");
    tokio::fs::write(&new, text).await?;
    tokio::fs::rename(&new, file).await
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

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::MetadataExt};

    use super::*;

    #[tokio::test]
    async fn a_file_is_replaced_as_a_whole_and_only_if_it_differs() {
        let folder = std::env::temp_dir().join(format!("folder-provider-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("note");
        let inode = || fs::metadata(&file).unwrap().ino();

        write_if_changed(&file, "one").await.unwrap();
        let mut reader = fs::File::open(&file).unwrap();
        let first = inode();
        write_if_changed(&file, "one").await.unwrap();
        assert_eq!(inode(), first, "what does not differ is not written");

        write_if_changed(&file, "two").await.unwrap();
        assert_ne!(inode(), first);
        assert_eq!(
            io::read_to_string(&mut reader).unwrap(),
            "one",
            "a reader keeps the whole file that it opened"
        );
        let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), names), ("two", vec!["note".into()]));
        fs::remove_dir_all(&folder).unwrap();
    }
}
