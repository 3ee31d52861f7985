//! `init list-images`, which upstream does only where there is an API server: a bare one with its inventory's kind.

use std::{fs, path::Path};

use capstan_runtime::install::install_crds;
use capstan_testkit::Plane;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::{Batch, harness::Case, releases};

/// Without its kind, upstream looks for the inventory for a quarter of a minute in each run.
pub(crate) async fn install_inventory(plane: &Plane, upstream: &Path) {
    let module = fs::read_to_string(upstream.join("cluster-api.dir")).unwrap();
    let bases = Path::new(module.trim()).join("cmd/clusterctl/config/crd/bases");
    let text = fs::read_to_string(bases.join("clusterctl.cluster.x-k8s.io_providers.yaml")).unwrap();
    let crd: CustomResourceDefinition = serde_saphyr::from_str(&text).unwrap();
    install_crds(&plane.client().await, &[crd], "compat").await.unwrap();
}

/// Cases on a control plane with nothing installed.
pub(crate) fn cases(upstream: &Path, kubeconfig: &Path) -> Vec<Batch> {
    let config = format!("{}{}", releases::config(&upstream.join("releases")), cert_manager(upstream));
    let mirrored = format!("{config}images: {{all: {{repository: mirror.io/all}}}}\n");
    let case = |name: &str, arguments: &str| {
        let case = Case::new("list-images", name, &format!("init list-images {arguments}"));
        case.argument("--kubeconfig").argument(kubeconfig.display().to_string()).config(config.clone())
    };
    let cases = [
        case("defaults", ""),
        case("infrastructure", "-i gcp"),
        case("several", "--infrastructure gcp,aws"),
        case("several-flags", "-i gcp -i aws"),
        case("versions", "--core cluster-api:v1.9.0 -b kubeadm:v1.9.0 -c kubeadm:v1.9.0 -i gcp:v1.10.0"),
        case("turned-down", "-b - -c -"),
        case("mirrored", "-i aws").argument("--config=mirror.yaml").file("mirror.yaml", mirrored),
        case("core-turned-down", "--core -").refused(),
        case("unknown", "-i nope").refused(),
        case("bad-name", "-i a.b").refused(),
        case("missing-version", "-i gcp:v0.0.1").refused(),
        Case::new("list-images", "no-such-kubeconfig", "init list-images --kubeconfig /nowhere")
            .config(config.clone())
            .refused(),
    ];
    cases.map(Batch::from).into()
}

/// Its repository has kinds and nothing that runs, and so no image.
fn cert_manager(upstream: &Path) -> String {
    let folder = upstream.join("cert-manager");
    let version = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().file_name().into_string().unwrap();
    let url = folder.join(&version).join("cert-manager.yaml");
    format!("cert-manager: {{url: {}, version: {version}}}\n", url.display())
}
