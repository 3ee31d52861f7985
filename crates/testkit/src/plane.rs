//! Control planes for stories.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use capstan_api::{cluster, crd::Conversion};
use capstan_control_plane::{Binaries, ControlPlane, Options, Sources};
use capstan_provider_local::api as local;
use capstan_runtime::{
    client::{self, ApiServer, ClientOptions},
    install::install_crds,
    metrics::Metrics,
};
use kube::{Client, Config};
use tokio::sync::{Semaphore, SemaphorePermit};

/// A control plane with our kinds on it. It stops when the last story on it is over.
#[derive(Debug)]
pub struct Plane {
    process: Mutex<ControlPlane>,
    kubeconfig: PathBuf,
    _turn: Option<SemaphorePermit<'static>>,
}

/// The control plane that the stories of one test binary share. It ends with the process.
pub async fn shared_plane() -> Arc<Plane> {
    static PLANE: tokio::sync::OnceCell<Arc<Plane>> = tokio::sync::OnceCell::const_new();
    let start = async || {
        let plane = Plane::start_with(|_| {}, None).await;
        plane.install(Conversion::Nobody).await;
        Arc::new(plane)
    };
    Arc::clone(PLANE.get_or_init(start).await)
}

impl Plane {
    /// A control plane of a story's own, without any kinds of ours. There is one at a time: the machine is small.
    pub async fn start() -> Arc<Self> {
        static TURN: Semaphore = Semaphore::const_new(1);
        let turn = TURN.acquire().await.expect("never closed");
        Arc::new(Self::start_with(|_| {}, Some(turn)).await)
    }

    /// The same without Kubernetes' own controllers, for measuring ours alone.
    pub async fn start_bare() -> Arc<Self> {
        Arc::new(Self::start_with(|options| options.controller_manager = false, None).await)
    }

    async fn start_with(
        adjust: impl FnOnce(&mut Options) + Send + 'static,
        turn: Option<SemaphorePermit<'static>>,
    ) -> Self {
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
        Self { process: Mutex::new(process), kubeconfig, _turn: turn }
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

    /// The certificate and key in PEM of the authority that the API server trusts its clients by.
    pub fn authority(&self) -> (String, String) {
        let folder = self.process().state_dir().join("pki");
        let pair = std::fs::read_to_string(folder.join("cluster-ca.pem")).expect("the authority");
        let (certificate, key) = pair.split_at(pair.find("-----BEGIN PRIVATE KEY-----").expect("a key"));
        (certificate.to_owned(), key.to_owned())
    }

    /// An admin's configuration, as managers find it.
    pub async fn config(&self) -> Config {
        self.server().await.config
    }

    /// An admin's client, made as managers make theirs. A client belongs to the runtime that it was made on, so each
    /// story makes its own.
    pub async fn client(&self) -> Client {
        client::connect(self.server().await, &self.client_options(), &Metrics::default()).expect("client")
    }

    async fn server(&self) -> ApiServer {
        client::find_config(&self.client_options()).await.expect("config")
    }

    fn client_options(&self) -> ClientOptions {
        ClientOptions { kubeconfig: Some(self.kubeconfig.clone()), ..ClientOptions::default() }
    }

    /// The processes.
    pub fn process(&self) -> MutexGuard<'_, ControlPlane> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
