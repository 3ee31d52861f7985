//! Control planes for stories.

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use capstan_api::{cluster, crd::Conversion};
use capstan_control_plane::{Binaries, ControlPlane, Options, Sources};
use capstan_provider_local::api as local;
use capstan_runtime::install::install_crds;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// A control plane with our kinds on it.
#[derive(Debug)]
pub struct Plane {
    process: Mutex<ControlPlane>,
    kubeconfig: PathBuf,
}

/// The control plane that the stories of one test binary share. It ends with the process.
pub async fn shared_plane() -> &'static Plane {
    static PLANE: OnceLock<Plane> = OnceLock::new();
    static STARTING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _guard = STARTING.lock().await;
    if PLANE.get().is_none() {
        let plane = Plane::start().await;
        plane.install(Conversion::Nobody).await;
        PLANE.set(plane).expect("nobody else starts it");
    }
    PLANE.get().expect("it was just started")
}

impl Plane {
    /// A control plane of a story's own, without any kinds of ours.
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// The same without Kubernetes' own controllers, for measuring ours alone.
    pub async fn start_bare() -> Self {
        Self::start_with(|options| options.controller_manager = false).await
    }

    async fn start_with(adjust: impl FnOnce(&mut Options) + Send + 'static) -> Self {
        // Another test may have been faster.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let start = move || {
            let sources = Sources::from_env(|name| std::env::var_os(name));
            let binaries = Binaries::locate(&sources, &mut |_| {}).expect("control plane binaries");
            let mut options = Options::temporary(binaries, std::env::temp_dir());
            adjust(&mut options);
            ControlPlane::start(options).expect("control plane")
        };
        let process = tokio::task::spawn_blocking(start).await.expect("control plane starts");
        let kubeconfig = process.kubeconfig().to_owned();
        Self { process: Mutex::new(process), kubeconfig }
    }

    /// Puts our kinds on it.
    pub async fn install(&self, conversion: Conversion<'_>) {
        let mut crds = vec![cluster::crd(conversion)];
        crds.extend(local::crds(conversion));
        install_crds(&self.client().await, &crds, "testkit").await.expect("CRDs");
    }

    /// An admin's kubeconfig.
    pub fn kubeconfig(&self) -> &PathBuf {
        &self.kubeconfig
    }

    /// An admin's configuration.
    pub async fn config(&self) -> Config {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig).expect("kubeconfig");
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("config")
    }

    /// An admin's client. A client belongs to the runtime that it was made on, so each story makes its own.
    pub async fn client(&self) -> Client {
        Client::try_from(self.config().await).expect("client")
    }

    /// The processes.
    pub fn process(&self) -> MutexGuard<'_, ControlPlane> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
