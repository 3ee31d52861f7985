//! What is kept on disk.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use capstan_repository::FetchError;
use capstan_repository::remote::{Fetched, GitHub, Http, HttpOptions, Progress, Remote, Sha256};
use capstan_testkit::fakes::Fault;
use jiff::{SignedDuration, Timestamp};

use crate::world::{NOW, World, files_in};

const CONTENT: &str = "kind: Namespace";

async fn world() -> World {
    let world = World::new().await;
    world.server.github("o/r", |repository| {
        for minor in 0..4 {
            repository.release(&format!("v1.{minor}.0"), &[("f.yaml", CONTENT)]);
        }
    });
    world
}

fn source() -> GitHub {
    GitHub::parse("https://github.com/o/r/releases/latest/f.yaml").unwrap()
}

async fn fetch(http: &Http) -> Result<Vec<u8>, FetchError> {
    source().file(http, "v1.0.0", "f.yaml").await
}

#[tokio::test]
async fn a_pinned_file_is_fetched_once_and_for_all() {
    let world = world().await;
    assert!(!source().fetch(&world.cached_http(), "v1.0.0", "f.yaml").await.unwrap().cached);
    world.server.forget_requests();
    let fetched = source().fetch(&world.cached_http(), "v1.0.0", "f.yaml").await.unwrap();
    assert_eq!((fetched.bytes.as_slice(), fetched.cached), (CONTENT.as_bytes(), true));
    assert_eq!(fetched.sha256, Sha256::of(CONTENT.as_bytes()));
    assert!(world.server.requests().is_empty());
    assert!(world.reported(&["Cached", "f.yaml of v1.0.0 of github.com/o/r"]));
}

#[tokio::test]
async fn the_index_records_what_was_fetched() {
    let world = world().await;
    fetch(&world.cached_http()).await.unwrap();
    let [entry] = files_in(&world.cache.join("index")).try_into().unwrap();
    let entry: serde_json::Value = serde_json::from_slice(&std::fs::read(entry).unwrap()).unwrap();
    let sum = Sha256::of(CONTENT.as_bytes()).to_string();
    assert_eq!(entry["source"], "github.com/o/r");
    assert_eq!(entry["version"], "v1.0.0");
    assert_eq!(entry["file"], "f.yaml");
    assert_eq!(entry["sha256"], sum);
    assert_eq!(entry["size"], CONTENT.len());
    assert_eq!(entry["fetched"], "2027-01-15T08:00:00Z");
    assert_eq!(entry["url"], "https://github.com/o/r/releases/download/v1.0.0/f.yaml");
    assert!(entry["etag"].is_string());
    assert!(world.cache.join("blobs").join(sum).exists());
}

#[tokio::test]
async fn offline_with_a_warm_cache_works_and_says_so() {
    let world = world().await;
    let http = world.cached_http();
    let versions = source().versions(&http).await.unwrap();
    fetch(&http).await.unwrap();
    world.server.forget_requests();

    let http = world.offline_http();
    assert_eq!(source().versions(&http).await.unwrap(), versions, "all pages");
    assert_eq!(fetch(&http).await.unwrap(), CONTENT.as_bytes());
    assert!(world.server.requests().is_empty());
    assert!(world.reported(&["Stale", "/repos/o/r/releases", "2027-01-15T08:00:00Z", "reason: None"]));
}

/// How many majors a module has is known only while its proxy answers.
#[tokio::test]
async fn the_versions_of_a_proxy_are_remembered_as_a_whole() {
    let world = world().await;
    world.server.go_module("github.com/o/r", &["v1.9.0"]);
    world.server.go_module("github.com/o/r/v2", &["v2.0.0"]);
    let http = |offline| {
        world.http_with(|options| {
            options.cache_dir = Some(world.cache.clone());
            options.go_proxy = None;
            options.offline = offline;
        })
    };
    assert_eq!(source().versions(&http(false)).await.unwrap(), ["v1.9.0", "v2.0.0"]);
    assert_eq!(source().versions(&http(true)).await.unwrap(), ["v1.9.0", "v2.0.0"]);
    assert_eq!(world.reports("Stale"), 1);
    // The API knows more than memory does, as long as it can be asked.
    world.server.inject("/@v/list", 3, Fault::Status(503));
    assert_eq!(source().versions(&http(false)).await.unwrap().len(), 4);
    std::fs::remove_dir_all(&world.cache).unwrap();
    assert_eq!(source().versions(&http(false)).await.unwrap(), ["v1.9.0", "v2.0.0"]);
    world.server.inject("/", usize::MAX, Fault::Status(503));
    assert_eq!(source().versions(&http(false)).await.unwrap(), ["v1.9.0", "v2.0.0"]);
}

#[tokio::test]
async fn offline_with_a_cold_cache_is_an_error() {
    let world = world().await;
    let http = world.offline_http();
    let error = fetch(&http).await.unwrap_err();
    assert!(matches!(error, FetchError::Offline { .. }), "{error:?}");
    assert!(
        error.to_string().starts_with("f.yaml of v1.0.0 of github.com/o/r is not in the cache"),
        "{error}"
    );
    assert!(matches!(source().versions(&http).await, Err(FetchError::Offline { .. })));
    assert!(world.server.requests().is_empty());
}

#[tokio::test]
async fn when_the_network_is_away_the_last_listing_is_used() {
    let world = world().await;
    let versions = source().versions(&world.cached_http()).await.unwrap();
    world.server.stop();
    assert_eq!(source().versions(&world.cached_http()).await.unwrap(), versions);
    assert!(world.reported(&["Stale", "/repos/o/r/releases", "Unreachable"]));
}

#[tokio::test]
async fn when_the_quota_is_used_up_the_last_listing_is_used() {
    let world = world().await;
    let versions = source().versions(&world.cached_http()).await.unwrap();
    world.server.inject("/repos/", usize::MAX, Fault::RateLimit { reset: NOW });
    assert_eq!(source().versions(&world.cached_http()).await.unwrap(), versions);
    assert!(world.reported(&["Stale", "RateLimited"]));
}

#[tokio::test]
async fn a_listing_that_is_gone_is_not_replaced_by_the_last_one() {
    let world = world().await;
    source().versions(&world.cached_http()).await.unwrap();
    world.server.inject("/repos/", usize::MAX, Fault::Status(404));
    assert!(source().versions(&world.cached_http()).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn listings_are_revalidated_page_by_page() {
    let world = world().await;
    let versions = source().versions(&world.cached_http()).await.unwrap();
    world.server.forget_requests();
    assert_eq!(source().versions(&world.cached_http()).await.unwrap(), versions);
    let requests = world.server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|request| request.headers.contains_key("if-none-match")));
    assert!(world.reported(&["Cached", "/repos/o/r/releases"]), "304 means that ours is good");

    world.server.github("o/r", |repository| {
        repository.release("v2.0.0", &[]);
    });
    assert_eq!(source().versions(&world.cached_http()).await.unwrap().len(), versions.len() + 1);
}

#[tokio::test]
async fn a_spoilt_blob_is_dropped_and_fetched_again() {
    for damage in [&b""[..], b"kind: Namespac", b"kind: Damespace"] {
        let world = world().await;
        fetch(&world.cached_http()).await.unwrap();
        let blob = world.cache.join("blobs").join(Sha256::of(CONTENT.as_bytes()).to_string());
        std::fs::write(&blob, damage).unwrap();
        world.server.forget_requests();
        assert_eq!(fetch(&world.cached_http()).await.unwrap(), CONTENT.as_bytes());
        assert!(!world.server.requests().is_empty());
        assert!(world.reported(&["Warning", "f.yaml of v1.0.0 of github.com/o/r was spoilt"]));
        assert_eq!(std::fs::read(&blob).unwrap(), CONTENT.as_bytes(), "it is whole again");
    }
}

#[tokio::test]
async fn a_spoilt_entry_offline_is_not_used() {
    let world = world().await;
    fetch(&world.cached_http()).await.unwrap();
    let blob = world.cache.join("blobs").join(Sha256::of(CONTENT.as_bytes()).to_string());
    std::fs::write(&blob, "kind: Evil").unwrap();
    let error = fetch(&world.offline_http()).await.unwrap_err();
    assert!(matches!(error, FetchError::Offline { .. }), "{error:?}");
    assert!(!blob.exists());
}

#[tokio::test]
async fn a_spoilt_index_is_dropped_and_fetched_again() {
    let world = world().await;
    fetch(&world.cached_http()).await.unwrap();
    let [index] = files_in(&world.cache.join("index")).try_into().unwrap();
    let whole = std::fs::read_to_string(&index).unwrap();
    // Torn, empty, not ours, leading elsewhere.
    for damage in [
        &whole[..whole.len() / 2],
        "",
        "{}",
        &whole.replace("o/r", "x/y"),
        &whole.replace("\"sha256\": \"", "\"sha256\": \"../"),
    ] {
        std::fs::write(&index, damage).unwrap();
        world.server.forget_requests();
        assert_eq!(fetch(&world.cached_http()).await.unwrap(), CONTENT.as_bytes());
        assert!(!world.server.requests().is_empty(), "{damage}");
    }
}

#[tokio::test]
async fn a_cache_that_cannot_be_written_is_no_obstacle() {
    let world = world().await;
    std::fs::write(&world.cache, "a file where the folder should be").unwrap();
    assert_eq!(fetch(&world.cached_http()).await.unwrap(), CONTENT.as_bytes());
    assert!(world.reported(&["Warning", "does not work"]));
    std::fs::remove_file(&world.cache).unwrap();
}

#[tokio::test]
async fn a_failed_download_leaves_nothing_behind() {
    let world = world().await;
    world.server.inject("/storage/", usize::MAX, Fault::Truncate);
    fetch(&world.cached_http()).await.unwrap_err();
    let blob =
        world.cache.join("blobs").join(Sha256::of(&CONTENT.as_bytes()[..CONTENT.len() / 2]).to_string());
    assert!(!blob.exists());
    world.server.inject("/storage/", 0, Fault::Truncate);
    assert!(matches!(fetch(&world.offline_http()).await, Err(FetchError::Offline { .. })));
}

#[cfg(unix)]
#[tokio::test]
async fn the_cache_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let world = world().await;
    fetch(&world.cached_http()).await.unwrap();
    for folder in ["", "blobs", "index"] {
        let mode = std::fs::metadata(world.cache.join(folder)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{folder}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tasks_can_share_a_cache() {
    let world = world().await;
    let tasks: Vec<_> = (0..12)
        .map(|n| {
            let http = world.cached_http();
            tokio::spawn(async move {
                let version = format!("v1.{}.0", n % 4);
                Remote::GitHub(source()).file(&http, &version, "f.yaml").await.unwrap()
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), CONTENT.as_bytes());
    }
    assert_cache_is_whole(&world, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_processes_can_share_a_cache() {
    let world = world().await;
    share_with_processes(&world, None).await;
    assert_cache_is_whole(&world, 4);
}

/// The cache is full of what nobody has used for a day, and all processes have to make room at once.
#[tokio::test(flavor = "multi_thread")]
async fn several_processes_can_share_a_full_cache() {
    let world = world().await;
    let yesterday = limited(&world, u64::MAX, || Timestamp::now() - SignedDuration::from_hours(24));
    for n in 0..30 {
        fetch_large(&world, &yesterday, n).await;
    }
    let full = size_of(&world.cache);
    share_with_processes(&world, Some(full)).await;
    assert!(size_of(&world.cache) <= full - full / 10, "{} of {full}", size_of(&world.cache));
    let source = GitHub::parse(&world.server.url("/o/r/releases/latest/f.yaml")).unwrap();
    for minor in 0..4 {
        let version = format!("v1.{minor}.0");
        assert!(source.fetch(&world.cached_http(), &version, "f.yaml").await.unwrap().cached, "{version}");
    }
}

async fn share_with_processes(world: &World, limit: Option<u64>) {
    let authority = world.cache.with_extension("pem");
    std::fs::write(&authority, world.server.ca_pem()).unwrap();
    let children: Vec<_> = (0..3)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--ignored", "--exact", "cache::one_of_several_processes"])
                .env("CAPSTAN_STORY_SERVER", world.server.url(""))
                .env("CAPSTAN_STORY_CACHE", &world.cache)
                .env("SSL_CERT_FILE", &authority)
                .envs(limit.map(|limit| ("CAPSTAN_STORY_LIMIT", limit.to_string())))
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap()).await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
    std::fs::remove_file(&authority).unwrap();
}

/// Not a story of its own: those above run it. It is led to the fake as a binary would be.
#[tokio::test]
#[ignore = "run by several_processes_can_share_a_cache and several_processes_can_share_a_full_cache"]
async fn one_of_several_processes() {
    let Ok(server) = std::env::var("CAPSTAN_STORY_SERVER") else { return };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let limit = std::env::var("CAPSTAN_STORY_LIMIT").ok().map(|limit| limit.parse().unwrap());
    let warn =
        |progress: Progress<'_>| assert!(!matches!(progress, Progress::Warning { .. }), "{progress:?}");
    let defaults = HttpOptions::default();
    let http = Http::new(HttpOptions {
        cache_dir: std::env::var_os("CAPSTAN_STORY_CACHE").map(Into::into),
        cache_limit: limit.unwrap_or(defaults.cache_limit),
        system_proxies: false,
        progress: Some(Arc::new(warn)),
        ..defaults
    });
    let source = GitHub::parse(&format!("{server}/o/r/releases/latest/f.yaml")).unwrap();
    for round in 0..20 {
        let version = format!("v1.{}.0", round % 4);
        let fetched = source.fetch(&http, &version, "f.yaml").await.unwrap();
        assert_eq!(fetched.bytes, CONTENT.as_bytes());
        assert!(fetched.cached || round < 4, "what a command has used stays while it runs");
    }
}

fn assert_cache_is_whole(world: &World, entries: usize) {
    assert_eq!(files_in(&world.cache.join("index")).len(), entries);
    assert_eq!(files_in(&world.cache.join("tmp")).len(), 0, "nothing half-written is left");
    let blobs = files_in(&world.cache.join("blobs"));
    assert_eq!(blobs.len(), 1, "the same content is kept once");
    for blob in blobs {
        let sum = Sha256::of(&std::fs::read(&blob).unwrap()).to_string();
        assert_eq!(blob.file_name().unwrap().to_str().unwrap(), sum);
    }
}

/// The size of a file that [`fetch_large`] fetches.
const LARGE: usize = 10_000;

/// A client with a small cache, as if of a new process at some time.
fn limited(world: &World, limit: u64, clock: fn() -> Timestamp) -> Http {
    world.http_with(|options| {
        options.cache_dir = Some(world.cache.clone());
        options.cache_limit = limit;
        options.clock = clock;
    })
}

async fn fetch_large(world: &World, http: &Http, n: usize) -> Fetched {
    let version = format!("v1.{n}.0");
    world.server.file(&format!("/capi/{version}/f.yaml"), format!("{n:LARGE$}"));
    let source = Remote::parse(&format!("https://files.example.com/capi/{version}/f.yaml")).unwrap();
    let fetched = source.fetch(http, &version, "f.yaml").await.unwrap();
    assert_eq!(fetched.bytes, format!("{n:LARGE$}").as_bytes());
    fetched
}

/// All bytes below a folder.
fn size_of(folder: &Path) -> u64 {
    let sizes = files_in(folder).into_iter().map(|path| match std::fs::metadata(&path).unwrap() {
        metadata if metadata.is_dir() => size_of(&path),
        metadata => metadata.len(),
    });
    sizes.sum()
}

#[tokio::test]
async fn what_was_used_least_recently_makes_room() {
    static HOUR: AtomicI64 = AtomicI64::new(0);
    let clock = || Timestamp::from_second(NOW + 3600 * HOUR.load(Ordering::Relaxed)).unwrap();
    let world = world().await;
    let limit = 36_000;
    for (hour, n, cached) in
        [(0, 0, false), (2, 1, false), (4, 2, false), (6, 0, true), (8, 3, false), (8, 0, true), (8, 2, true)]
    {
        HOUR.store(hour, Ordering::Relaxed);
        let fetched = fetch_large(&world, &limited(&world, limit, clock), n).await;
        assert_eq!(fetched.cached, cached, "{n} at {hour}");
        assert!(size_of(&world.cache) <= limit, "{n} at {hour}");
    }
    assert_eq!(files_in(&world.cache.join("blobs")).len(), 3);
    assert_eq!(files_in(&world.cache.join("index")).len(), 3);
    assert!(
        !fetch_large(&world, &limited(&world, limit, clock), 1).await.cached,
        "it made room for the fourth"
    );
    assert_eq!(world.reports("Warning"), 1, "and the fourth is still in use: {limit}");
}

#[tokio::test]
async fn what_a_command_uses_stays_and_what_does_not_fit_is_not_kept() {
    let world = world().await;
    let http = limited(&world, 25_000, || Timestamp::from_second(NOW).unwrap());
    for n in 0..4 {
        assert!(!fetch_large(&world, &http, n).await.cached);
    }
    for (n, cached) in [(0, true), (1, true), (2, false), (3, false)] {
        assert_eq!(fetch_large(&world, &http, n).await.cached, cached, "{n}");
    }
    assert!(size_of(&world.cache) <= 25_000);
    assert!(world.reported(&["Warning", "is full: f.yaml of v1.2.0 of", "its limit of 25000 bytes"]));
    assert_eq!(world.reports("Warning"), 1, "once a process");
}

#[tokio::test]
async fn a_limit_of_nothing_keeps_nothing() {
    let world = world().await;
    fetch_large(&world, &limited(&world, 0, Timestamp::now), 0).await;
    assert!(!world.cache.exists());
    assert_eq!(world.reports("Warning"), 0);
}

#[tokio::test]
async fn what_an_unfinished_write_left_is_removed() {
    let world = world().await;
    let clock = || Timestamp::now() + SignedDuration::from_hours(2);
    fetch_large(&world, &limited(&world, 25_000, Timestamp::now), 0).await;
    let left = world.cache.join("tmp").join("1-0");
    std::fs::write(&left, [0; LARGE]).unwrap();
    fetch_large(&world, &limited(&world, 25_000, clock), 1).await;
    assert!(!left.exists());
}
