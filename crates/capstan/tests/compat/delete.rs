//! Upstream's clusterctl and ours delete what either of them has installed.

use std::{collections::BTreeSet, env, fs, path::PathBuf, sync::Arc, time::Duration};

use capstan_api::names::label::{CLUSTERCTL as LABEL, PROVIDER};
use capstan_management::{ManagementCluster, sweep};
use capstan_testkit::{
    Plane,
    wait::{self, LIMIT},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use tokio::process::Command;

use super::management::{configure_releases, folder};

/// As compat/fetch-upstream.sh lays them out.
const INIT: [&str; 5] = [
    "init",
    "--core=cluster-api:v1.14.2",
    "--bootstrap=kubeadm:v1.14.2",
    "--control-plane=kubeadm:v1.14.2",
    "--infrastructure=gcp:v1.13.1",
];
const NAMESPACES: [&str; 4] =
    ["capg-system", "capi-kubeadm-bootstrap-system", "capi-kubeadm-control-plane-system", "capi-system"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Clusterctl,
    Capstan,
}

/// A control plane and both programs, with the same configuration.
struct Site {
    plane: Arc<Plane>,
    client: Client,
    home: PathBuf,
}

impl Site {
    async fn new() -> Self {
        let plane = Plane::start().await;
        let client = plane.client().await;
        let home = env::temp_dir().join(format!("capstan-compat-delete-{}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        configure_releases(&home);
        Self { plane, client, home }
    }

    /// Runs a command that must succeed.
    async fn run(&self, program: Program, arguments: &[&str]) {
        let binary = match program {
            Program::Clusterctl => folder("CAPSTAN_UPSTREAM_DIR").join("clusterctl"),
            Program::Capstan => env!("CARGO_BIN_EXE_capstan").into(),
        };
        let run = Command::new(binary)
            .args(arguments)
            .arg("--config")
            .arg(self.home.join("clusterctl.yaml"))
            .arg("--kubeconfig")
            .arg(self.plane.kubeconfig())
            .env("HOME", &self.home)
            .env("XDG_CONFIG_HOME", &self.home)
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
            .env("GOPROXY", "off")
            .output();
        let run = tokio::time::timeout(Duration::from_mins(3), run).await.expect("it ends").unwrap();
        let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success(), "{program:?} {arguments:?}: {out}{err}");
    }

    /// What is labelled for providers, but for what controllers make of Services, as `Kind namespace/name`.
    async fn labelled(&self) -> BTreeSet<String> {
        let cluster = ManagementCluster::new(self.client.clone(), "the suite's server");
        let found = sweep::sweep(&cluster, &format!("{LABEL}=,{PROVIDER}")).await.unwrap();
        let is_derived = |kind: &str| matches!(kind, "Endpoints" | "EndpointSlice");
        found.iter().filter(|it| !is_derived(&it.id.kind)).map(|it| it.id.to_string()).collect()
    }

    /// Deletes all providers, by whichever tool they were installed, and all leftovers.
    async fn wipe(&self) {
        self.run(Program::Capstan, &["delete", "--all", "--include-crd", "--include-namespace"]).await;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        for name in NAMESPACES {
            wait::until_gone(&namespaces, name, LIMIT).await;
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // What is left in a temporary folder is no reason for a test to fail.
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// What is left after one provider went, and after all did.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    without_gcp: BTreeSet<String>,
    nothing_but: BTreeSet<String>,
}

/// One program deletes what another one has installed.
async fn play(site: &Site, installer: Program, deleter: Program) -> Left {
    site.run(installer, &INIT).await;
    site.run(deleter, &["delete", "--infrastructure", "gcp:v1.13.1"]).await;
    let without_gcp = site.labelled().await;
    site.run(deleter, &["delete", "--all"]).await;
    let nothing_but = site.labelled().await;
    site.wipe().await;
    Left { without_gcp, nothing_but }
}

/// Intended: upstream forgets ClusterRoles and their bindings, which clusterctl does not give the prefix that it looks
/// for; ours finds them by their labels. Everything else that is left is the same.
fn is_forgotten(id: &str) -> bool {
    id.starts_with("ClusterRole ") || id.starts_with("ClusterRoleBinding ")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs upstream's clusterctl and releases: make test-compat"]
async fn either_deletes_what_the_other_installed() {
    let site = Site::new().await;
    let theirs = play(&site, Program::Clusterctl, Program::Clusterctl).await;
    assert_eq!(site.labelled().await, BTreeSet::new(), "ours takes away what upstream forgets");

    let ours_on_theirs = play(&site, Program::Clusterctl, Program::Capstan).await;
    let without = |left: &BTreeSet<String>, forgotten: &dyn Fn(&str) -> bool| -> BTreeSet<String> {
        left.iter().filter(|it| !forgotten(it)).cloned().collect()
    };
    let of_gcp = |id: &str| is_forgotten(id) && id.contains(" capg-");
    assert!(theirs.without_gcp.iter().any(|it| of_gcp(it)), "upstream forgets: {:?}", theirs.without_gcp);
    assert_eq!(ours_on_theirs.without_gcp, without(&theirs.without_gcp, &of_gcp));
    assert_eq!(ours_on_theirs.nothing_but, without(&theirs.nothing_but, &is_forgotten));

    // What ours installs has the prefix, so that upstream finds everything.
    let theirs_on_ours = play(&site, Program::Capstan, Program::Clusterctl).await;
    assert_eq!(theirs_on_ours.nothing_but, ours_on_theirs.nothing_but);
    let ours = play(&site, Program::Capstan, Program::Capstan).await;
    assert_eq!(ours, theirs_on_ours);
}
