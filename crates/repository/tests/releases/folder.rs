//! Folders to read from, each test's own.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use capstan_api::provider::ProviderType;
use capstan_repository::{
    Config, Environment, Provider, Repository, RepositoryError,
    config::Format,
    remote::{Http, HttpOptions},
};

/// A folder that is empty at first.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("releases").join(name);
        if path.exists() {
            fs::remove_dir_all(&path).unwrap();
        }
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// A release of the provider `mine` in the repository `r`.
    pub(crate) fn release(&self, version: &str, series: &str) -> &Self {
        self.write(&format!("r/infrastructure-mine/{version}/metadata.yaml"), metadata(series));
        self.write(
            &format!("r/infrastructure-mine/{version}/infrastructure-components.yaml"),
            format!("components of {version}\n"),
        )
    }

    /// The provider `mine`, with `latest` or a version in its address.
    pub(crate) fn provider(&self, version: &str) -> Provider {
        Provider {
            name: "mine".to_owned(),
            kind: ProviderType::Infrastructure,
            url: self.text(&format!("r/infrastructure-mine/{version}/infrastructure-components.yaml")),
        }
    }

    /// A home here, and nothing in the environment.
    pub(crate) fn environment(&self) -> Environment {
        Environment { home: Some(self.path("home")), ..Environment::default() }
    }

    pub(crate) fn repository(&self, version: &str) -> Result<Repository, RepositoryError> {
        self.repository_with(version, "")
    }

    pub(crate) fn repository_with(&self, version: &str, config: &str) -> Result<Repository, RepositoryError> {
        let config = Config::parse(config, Format::Yaml, "config", &self.environment()).unwrap();
        Repository::open(&self.provider(version), &config, &http())
    }
}

/// `1.0=v1beta2 1.1=v1beta1` as a metadata file.
pub(crate) fn metadata(series: &str) -> String {
    let entry = |one: &str| {
        let (numbers, contract) = one.split_once('=').unwrap();
        let (major, minor) = numbers.split_once('.').unwrap();
        format!("{{major: {major}, minor: {minor}, contract: {contract}}}")
    };
    let entries: Vec<_> = series.split(' ').map(entry).collect();
    format!(
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries: [{}]\n",
        entries.join(", ")
    )
}

/// A client that is not to use the network.
pub(crate) fn http() -> Http {
    // Reading the system's authorities takes a while.
    static SHARED: LazyLock<Http> = LazyLock::new(|| client(true));
    SHARED.clone()
}

/// A client that may or may not use the network.
pub(crate) fn client(offline: bool) -> Http {
    // Another test may have installed it first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Http::new(HttpOptions { offline, system_proxies: false, ..HttpOptions::default() })
}
