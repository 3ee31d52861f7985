//! Who is measured: Capstan's core manager, or upstream's.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use tokio::process::{Child, Command};

/// A core manager.
pub(crate) enum Contender {
    /// Ours.
    Capstan {
        /// The binary.
        binary: PathBuf,
        /// Further flags.
        flags: Vec<String>,
    },
    /// Upstream's.
    Upstream {
        /// The binary.
        binary: PathBuf,
        /// Whether its limits on requests are lifted.
        unlimited: bool,
    },
}

impl Contender {
    /// What the table calls it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Capstan { .. } => "capstan".to_owned(),
            Self::Upstream { unlimited: false, .. } => "upstream".to_owned(),
            Self::Upstream { unlimited: true, .. } => "upstream, unlimited".to_owned(),
        }
    }

    /// Whether it is ours.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Capstan { .. })
    }

    /// Runs it for one namespace.
    pub(crate) fn start(&self, namespace: &str, kubeconfig: &Path) -> Result<Child> {
        let mut command = match self {
            Self::Capstan { binary, flags } => {
                let mut command = Command::new(binary);
                command
                    .args([
                        "manager",
                        "core",
                        "--webhook-port=0",
                        "--health-addr=0",
                        "--diagnostics-address=0",
                    ])
                    .arg("-v0")
                    .args(flags);
                command
            }
            Self::Upstream { binary, unlimited, .. } => {
                let certificates = webhook_certificates(kubeconfig)?;
                let mut command = Command::new(binary);
                command
                    .args(["--insecure-diagnostics", "--diagnostics-address=127.0.0.1:0"])
                    .args(["--health-addr=127.0.0.1:0"])
                    // It takes 0 for its default.
                    .arg(format!("--webhook-port={}", free_port()?))
                    .arg("--webhook-cert-dir")
                    .arg(certificates);
                if *unlimited {
                    command.args(["--kube-api-qps=5000", "--kube-api-burst=10000"]);
                }
                command
            }
        };
        command.arg(format!("--namespace={namespace}")).env("KUBECONFIG", kubeconfig);
        if self.is_ours() {
            command.arg("--kubeconfig").arg(kubeconfig);
        }
        let log = fs::File::create(kubeconfig.with_file_name("manager.log"))?;
        command.stdout(Stdio::from(log.try_clone()?)).stderr(Stdio::from(log)).kill_on_drop(true);
        command.spawn().with_context(|| format!("cannot start {}", self.name()))
    }
}

fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The kinds besides Cluster that upstream's manager watches, from the folder of its CRDs.
pub(crate) fn read_crds(folder: &Path) -> Result<Vec<CustomResourceDefinition>> {
    let mut crds = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let file = entry?.path();
        let text = fs::read_to_string(&file)?;
        let crd: CustomResourceDefinition =
            serde_saphyr::from_str(&text).with_context(|| format!("{} is not a CRD", file.display()))?;
        if crd.spec.names.kind != "Cluster" {
            crds.push(crd);
        }
    }
    Ok(crds)
}

/// Upstream's manager does not start without a certificate, although its webhooks are not called here.
pub(crate) fn webhook_certificates(beside: &Path) -> Result<PathBuf> {
    let folder = beside.with_file_name("webhook-certificates");
    fs::create_dir_all(&folder)?;
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    fs::write(folder.join("tls.crt"), made.cert.pem())?;
    fs::write(folder.join("tls.key"), made.signing_key.serialize_pem())?;
    Ok(folder)
}
