//! A fake server of releases, and a fetcher that is led to it.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use capstan_api::{operator::FetchConfiguration, provider::ProviderType};
use capstan_operator::{
    fetch::{FetchError, FetchRequest, Fetcher},
    store::StoredRelease,
};
use capstan_repository::{
    Environment,
    remote::{HttpOptions, Retry},
};
use capstan_testkit::fakes::FakeServer;
use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::Client;

/// The repository that most addresses lead to.
pub(crate) const REPOSITORY: &str = "myorg/awesome-provider";
pub(crate) const COMPONENTS: &str = "infrastructure-components.yaml";

/// Seconds since 1970 in all tests.
static NOW: AtomicI64 = AtomicI64::new(1_800_000_000);

pub(crate) struct World {
    pub(crate) server: FakeServer,
    pub(crate) fetcher: Fetcher,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|_, _| {}).await
    }

    /// A world in which the process has another environment or network.
    pub(crate) async fn with(change: impl FnOnce(&mut Environment, &mut HttpOptions)) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Nothing listens there: who reads addresses needs no management cluster.
        let client = Client::try_from(kube::Config::new("http://127.0.0.1:9".parse().unwrap())).unwrap();
        let server = FakeServer::start().await;
        let fetcher = fetcher(client, &server, change);
        Self { server, fetcher }
    }

    /// The address of the repository, on a host that nothing is known of.
    pub(crate) fn releases(&self) -> String {
        self.server.url(&format!("/{REPOSITORY}/releases"))
    }

    /// A release in the repository.
    pub(crate) fn publish(&self, tag: &str, metadata: &str, components: &str) {
        let files = [("metadata.yaml", metadata), (COMPONENTS, components)];
        self.server.github(REPOSITORY, |repository| {
            repository.release(tag, &files);
        });
    }

    pub(crate) async fn fetch(&self, wanted: &Wanted) -> Result<StoredRelease, FetchError> {
        can_be_spawned(self.fetcher.fetch(&wanted.request())).await
    }

    pub(crate) async fn latest(&self, wanted: &Wanted) -> Result<String, FetchError> {
        can_be_spawned(self.fetcher.latest(&wanted.request())).await
    }
}

fn can_be_spawned<F: Future + Send>(future: F) -> F {
    future
}

pub(crate) fn fetcher(
    client: Client,
    server: &FakeServer,
    change: impl FnOnce(&mut Environment, &mut HttpOptions),
) -> Fetcher {
    let mut environment = Environment::default();
    let mut network = HttpOptions {
        retry: Retry { attempts: 2, first_pause: Duration::ZERO, longest_pause: Duration::ZERO },
        extra_roots: vec![server.ca_pem().to_owned()],
        // Reading those of the system takes longer than most tests.
        system_roots: false,
        resolve: server.resolve(),
        system_proxies: false,
        go_proxy: Some("off".to_owned()),
        clock: || Timestamp::from_second(NOW.load(Ordering::Relaxed)).unwrap(),
        ..HttpOptions::default()
    };
    change(&mut environment, &mut network);
    Fetcher::new(client, environment, network)
}

/// Lets time go by.
pub(crate) fn pass(time: Duration) {
    NOW.fetch_add(i64::try_from(time.as_secs()).unwrap(), Ordering::Relaxed);
}

/// What a provider object says.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) kind: ProviderType,
    pub(crate) name: &'static str,
    pub(crate) config: Option<FetchConfiguration>,
    pub(crate) version: Option<String>,
    pub(crate) secret: Option<Secret>,
}

impl Wanted {
    /// A provider by its name alone.
    pub(crate) fn named(kind: ProviderType, name: &'static str) -> Self {
        Self { kind, name, config: None, version: None, secret: None }
    }

    /// A provider at an address.
    pub(crate) fn at(url: &str) -> Self {
        let config = FetchConfiguration { url: Some(url.to_owned()), selector: None };
        Self { config: Some(config), ..Self::named(ProviderType::Infrastructure, "awesome") }
    }

    pub(crate) fn version(self, version: &str) -> Self {
        Self { version: Some(version.to_owned()), ..self }
    }

    pub(crate) fn secret(self, data: &[(&str, &str)]) -> Self {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
        let mut secret = Secret { data: Some(data.collect()), ..Secret::default() };
        secret.metadata.namespace = Some("awesome-system".to_owned());
        secret.metadata.name = Some("awesome-variables".to_owned());
        Self { secret: Some(secret), ..self }
    }

    pub(crate) fn request(&self) -> FetchRequest<'_> {
        FetchRequest {
            kind: self.kind,
            name: self.name,
            namespace: "awesome-system",
            config: self.config.as_ref(),
            version: self.version.as_deref(),
            secret: self.secret.as_ref(),
        }
    }
}

/// A metadata file with series such as `1.2=v1beta2`.
pub(crate) fn metadata(series: &[&str]) -> String {
    let entries: Vec<_> = series
        .iter()
        .map(|it| {
            let (numbers, contract) = it.split_once('=').unwrap();
            let (major, minor) = numbers.split_once('.').unwrap();
            format!("- {{major: {major}, minor: {minor}, contract: {contract}}}\n")
        })
        .collect();
    format!(
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n{}",
        entries.concat()
    )
}
