//! A fake server, a folder, and a client that knows both.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_repository::remote::{Http, HttpOptions, Retry, Timeouts};
use capstan_testkit::fakes::FakeServer;
use jiff::Timestamp;

/// What time it is in all stories.
pub(crate) const NOW: i64 = 1_800_000_000;

/// How often the stories' client tries.
pub(crate) const ATTEMPTS: usize = 3;

pub(crate) struct World {
    pub(crate) server: FakeServer,
    pub(crate) cache: PathBuf,
    seen: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub(crate) async fn new() -> Self {
        // The first story installs it, the others find it there.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { server: FakeServer::start().await, cache: unique_folder(), seen: Arc::default() }
    }

    /// Options that lead to the fake, without a cache.
    pub(crate) fn options(&self) -> HttpOptions {
        let seen = self.seen.clone();
        HttpOptions {
            timeouts: Timeouts {
                connect: Duration::from_secs(20),
                idle: Duration::from_secs(20),
                total: Duration::from_mins(1),
            },
            retry: Retry {
                attempts: u32::try_from(ATTEMPTS).unwrap(),
                first_pause: Duration::ZERO,
                longest_pause: Duration::ZERO,
            },
            extra_roots: vec![self.server.ca_pem().to_owned()],
            // Reading those of the system takes longer than most stories.
            system_roots: false,
            resolve: self.server.resolve(),
            system_proxies: false,
            go_proxy: Some("off".to_owned()),
            progress: Some(Arc::new(move |progress| seen.lock().unwrap().push(format!("{progress:?}")))),
            clock: || Timestamp::from_second(NOW).unwrap(),
            ..HttpOptions::default()
        }
    }

    pub(crate) fn http(&self) -> Http {
        Http::new(self.options())
    }

    pub(crate) fn http_with(&self, change: impl FnOnce(&mut HttpOptions)) -> Http {
        let mut options = self.options();
        change(&mut options);
        Http::new(options)
    }

    /// A client with a cache, as if of a new process.
    pub(crate) fn cached_http(&self) -> Http {
        self.http_with(|options| options.cache_dir = Some(self.cache.clone()))
    }

    /// A client with a cache that must not use the network.
    pub(crate) fn offline_http(&self) -> Http {
        self.http_with(|options| {
            options.cache_dir = Some(self.cache.clone());
            options.offline = true;
        })
    }

    /// Whether something was reported that has all of these in it.
    pub(crate) fn reported(&self, parts: &[&str]) -> bool {
        self.seen.lock().unwrap().iter().any(|line| parts.iter().all(|part| line.contains(part)))
    }

    /// How many reports begin like this.
    pub(crate) fn reports(&self, start: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|line| line.starts_with(start)).count()
    }

    /// Whether any request to a host showed credentials.
    pub(crate) fn showed_credentials_to(&self, host: &str) -> bool {
        let requests = self.server.requests();
        let to_host: Vec<_> = requests.iter().filter(|request| request.host == host).collect();
        assert!(!to_host.is_empty(), "nobody asked {host}");
        to_host.iter().any(|request| request.authorization().is_some())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A story without a cache has no folder.
        let _ = std::fs::remove_dir_all(&self.cache);
    }
}

fn unique_folder() -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("capstan-remote-{}-{count}", std::process::id()))
}

/// All files in a folder of the cache.
pub(crate) fn files_in(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}
