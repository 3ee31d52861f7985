//! GitHub in its moods.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use capstan_repository::FetchError;
use capstan_repository::remote::{GitHub, Http, Remote};
use capstan_testkit::fakes::Fault;
use jiff::Timestamp;

use crate::world::{NOW, World};

const FILES: [(&str, &str); 2] =
    [("metadata.yaml", "kind: Metadata"), ("components.yaml", "kind: Namespace")];

fn source() -> GitHub {
    GitHub::parse("https://github.com/o/r/releases/latest/components.yaml").unwrap()
}

async fn world() -> World {
    let world = World::new().await;
    world.server.github("o/r", |repository| {
        repository.release("v1.0.0", &FILES).release("v1.1.0", &FILES);
    });
    world
}

fn with_token(world: &World, token: &str) -> Http {
    world.http_with(|options| options.github_token = Some(token.to_owned()))
}

fn sorted(mut versions: Vec<String>) -> Vec<String> {
    versions.sort();
    versions
}

#[tokio::test]
async fn a_public_file_costs_no_quota() {
    let world = world().await;
    let fetched = source().fetch(&world.http(), "v1.0.0", "metadata.yaml").await.unwrap();
    assert_eq!(fetched.bytes, b"kind: Metadata");
    assert_eq!(fetched.url, "https://github.com/o/r/releases/download/v1.0.0/metadata.yaml");
    assert!(world.server.requests().iter().all(|request| request.host != "api.github.com"));
    assert_eq!(world.server.count("/storage/"), 1, "it lies on another host");
}

#[tokio::test]
async fn versions_come_from_the_proxy_major_by_major() {
    let world = World::new().await;
    world.server.go_module("github.com/!azure/capz", &["v1.0.0", "v1.1.0", "nonsense"]);
    world.server.go_module("github.com/!azure/capz/v2", &["v2.0.0-rc.0"]);
    let http = world.http_with(|options| options.go_proxy = None);
    let source = GitHub::parse("https://github.com/Azure/capz/releases").unwrap();
    assert_eq!(sorted(source.versions(&http).await.unwrap()), ["v1.0.0", "v1.1.0", "v2.0.0-rc.0"]);
    assert!(world.server.requests().iter().all(|request| request.host == "proxy.golang.org"));
}

#[tokio::test]
async fn a_proxy_below_a_path_works() {
    let world = World::new().await;
    world.server.go_module("api/go/x/github.com/o/r", &["v1.0.0"]);
    let proxy = format!("{},direct", world.server.url("/api/go/x"));
    let http = world.http_with(|options| options.go_proxy = Some(proxy));
    assert_eq!(source().versions(&http).await.unwrap(), ["v1.0.0"]);
}

#[tokio::test]
async fn the_api_helps_where_the_proxy_cannot() {
    // A module that it does not know, one without versions, and a proxy that is broken.
    for (module, fault, warned) in [(false, None, 0), (true, None, 0), (true, Some(Fault::Status(500)), 1)] {
        let world = world().await;
        if module {
            world.server.go_module("github.com/o/r", &[]);
        }
        if let Some(fault) = fault {
            world.server.inject("/@v/list", usize::MAX, fault);
        }
        let http = world.http_with(|options| options.go_proxy = None);
        assert_eq!(sorted(source().versions(&http).await.unwrap()), ["v1.0.0", "v1.1.0"]);
        assert_eq!(world.reports("Warning"), warned);
        assert!(world.server.count("/@v/list") <= 2, "the proxy is not worth waiting for");
    }
}

#[tokio::test]
async fn a_proxy_that_fails_half_way_does_not_shorten_the_list() {
    let world = world().await;
    world.server.go_module("github.com/o/r", &["v0.1.0"]);
    world.server.inject("/v2/@v/list", usize::MAX, Fault::Status(500));
    let http = world.http_with(|options| options.go_proxy = None);
    assert_eq!(sorted(source().versions(&http).await.unwrap()), ["v1.0.0", "v1.1.0"]);
}

#[tokio::test]
async fn all_pages_of_releases_are_read_and_drafts_are_not() {
    let world = World::new().await;
    world.server.github("o/r", |repository| {
        for minor in 0..7 {
            repository.release(&format!("v1.{minor}.0"), &[]);
        }
        repository.draft("v9.0.0").release("v2.0.0-rc.0", &[]);
    });
    let versions = sorted(source().versions(&world.http()).await.unwrap());
    assert_eq!(versions.len(), 8);
    assert_eq!(versions.last().unwrap(), "v2.0.0-rc.0");
    assert_eq!(world.server.count("/repos/o/r/releases"), 3);
}

#[tokio::test]
async fn a_listing_is_asked_for_once_a_process() {
    let world = world().await;
    let http = world.http();
    for _ in 0..3 {
        source().versions(&http).await.unwrap();
        source().files(&http.clone(), "v1.0.0").await.unwrap();
    }
    assert_eq!(world.server.requests().len(), 2);
    http.forget_listings();
    source().versions(&http).await.unwrap();
    assert_eq!(world.server.requests().len(), 3, "unless it is to be forgotten");
}

#[tokio::test]
async fn a_process_that_lives_long_sees_new_releases() {
    static SECONDS: AtomicI64 = AtomicI64::new(NOW);
    let world = world().await;
    let http = world.http_with(|options| {
        options.listings_max_age = Some(Duration::from_mins(10));
        options.clock = || Timestamp::from_second(SECONDS.load(Ordering::Relaxed)).unwrap();
    });
    let versions = async || sorted(source().versions(&http).await.unwrap());
    let before = versions().await;
    world.server.github("o/r", |repository| {
        repository.release("v9.9.9", &[]);
    });
    SECONDS.fetch_add(599, Ordering::Relaxed);
    assert_eq!(versions().await, before);
    SECONDS.fetch_add(1, Ordering::Relaxed);
    assert_eq!(versions().await.last().map(String::as_str), Some("v9.9.9"));
    assert_eq!(world.server.count("/repos/o/r/releases"), 2);
}

#[tokio::test]
async fn many_at_once_ask_once() {
    let world = world().await;
    let http = world.http();
    let all = (0..8).map(|_| {
        let http = http.clone();
        tokio::spawn(async move { source().versions(&http).await.unwrap().len() })
    });
    for task in all.collect::<Vec<_>>() {
        assert_eq!(task.await.unwrap(), 2);
    }
    assert_eq!(world.server.requests().len(), 1);
}

#[tokio::test]
async fn a_next_page_on_another_server_is_not_asked_for() {
    let world = world().await;
    let elsewhere = "https://other.example.com/repos/o/r/releases?page=2&sig=s3cret".to_owned();
    world.server.inject("/repos/o/r/releases", 1, Fault::NextPage(elsewhere));
    let error = source().versions(&with_token(&world, "t")).await.unwrap_err();
    assert!(error.to_string().contains("its next page is on another server"), "{error}");
    assert!(!error.to_string().contains("s3cret"), "{error}");
    assert!(world.server.requests().iter().all(|request| request.host != "other.example.com"));
}

#[tokio::test]
async fn a_tag_without_release_says_so() {
    let world = world().await;
    world.server.github("o/r", |repository| {
        repository.tag("v1.2.0");
    });
    let error = source().file(&world.http(), "v1.2.0", "metadata.yaml").await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    assert!(error.to_string().contains("the tag is there, but no release has been published"), "{error}");
    let error = source().file(&world.http(), "v1.3.0", "metadata.yaml").await.unwrap_err();
    assert!(error.is_not_found() && !error.to_string().contains("the tag is there"), "{error}");
}

#[tokio::test]
async fn a_missing_release_is_missing_even_if_its_tag_cannot_be_asked_about() {
    let world = world().await;
    world.server.inject("/git/ref/", usize::MAX, Fault::RateLimit { reset: NOW });
    let error = source().file(&with_token(&world, "t"), "v1.2.0", "metadata.yaml").await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
}

#[tokio::test]
async fn a_missing_asset_says_what_there_is() {
    let world = world().await;
    let error = source().file(&world.http(), "v1.0.0", "nothing.yaml").await.unwrap_err();
    assert_eq!(error.to_string(), "not found: nothing.yaml of release v1.0.0 of github.com/o/r");
    assert_eq!(error.available(), ["metadata.yaml", "components.yaml"]);
}

#[tokio::test]
async fn an_asset_that_is_gone_from_the_download_page_comes_by_the_api() {
    let world = world().await;
    world.server.inject("/o/r/releases/download/v1.0.0/metadata.yaml", 1, Fault::Status(404));
    let fetched = source().fetch(&world.http(), "v1.0.0", "metadata.yaml").await.unwrap();
    assert_eq!(fetched.bytes, b"kind: Metadata");
    assert_eq!(fetched.vouched_by.as_deref(), Some("GitHub's digest"));
}

#[tokio::test]
async fn a_damaged_asset_from_the_api_is_refused() {
    let world = world().await;
    world.server.inject("/releases/download/v1.0.0/metadata.yaml", 1, Fault::Status(404));
    world.server.inject("/storage/", usize::MAX, Fault::Corrupt);
    let error = source().fetch(&world.http(), "v1.0.0", "metadata.yaml").await.unwrap_err();
    assert!(matches!(error, FetchError::Checksum { .. }), "{error:?}");
}

#[tokio::test]
async fn the_rate_limit_is_told_with_its_end_and_never_tried_again() {
    let world = world().await;
    world.server.inject("/repos/", usize::MAX, Fault::RateLimit { reset: NOW + 600 });
    let error = source().versions(&world.http()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "api.github.com takes no more requests for now, until 2027-01-15T08:10:00Z"
    );
    assert!(matches!(&error, FetchError::RateLimited { variable: Some(it), .. } if it == "GITHUB_TOKEN"));
    assert_eq!(world.server.requests().len(), 1);
    // Whoever has a token need not be told to get one.
    let error = source().versions(&with_token(&world, "t")).await.unwrap_err();
    assert!(matches!(&error, FetchError::RateLimited { variable: None, withheld: None, .. }), "{error:?}");
}

#[tokio::test]
async fn too_many_requests_at_once_are_a_limit_too() {
    let world = world().await;
    world.server.inject("/repos/", usize::MAX, Fault::TooManyRequests { retry_after: 60 });
    let error = source().versions(&world.http()).await.unwrap_err();
    assert!(error.to_string().ends_with("until 2027-01-15T08:01:00Z"), "{error}");
    assert_eq!(world.server.requests().len(), 1);
}

#[tokio::test]
async fn a_used_up_quota_does_not_hide_that_a_file_is_missing() {
    let world = world().await;
    world.server.inject("/repos/", usize::MAX, Fault::RateLimit { reset: NOW + 600 });
    let error = source().file(&world.http(), "v1.2.0", "metadata.yaml").await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
}

#[tokio::test]
async fn a_private_repository_opens_to_its_token() {
    let world = World::new().await;
    world.server.github("o/r", |repository| {
        repository.release("v1.0.0", &FILES).private("secret");
    });
    let http = with_token(&world, "secret");
    assert_eq!(source().versions(&http).await.unwrap(), ["v1.0.0"]);
    assert_eq!(source().file(&http, "v1.0.0", "metadata.yaml").await.unwrap(), b"kind: Metadata");
    assert!(world.showed_credentials_to("api.github.com"));
    assert!(!world.showed_credentials_to("github.com"));
    assert!(!world.showed_credentials_to("objects.githubusercontent.com"));
}

#[tokio::test]
async fn a_private_repository_is_missing_for_strangers_and_they_are_told_why() {
    let world = World::new().await;
    world.server.github("o/r", |repository| {
        repository.release("v1.0.0", &FILES).private("secret");
    });
    let error = source().versions(&world.http()).await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    assert!(error.to_string().contains("if it is private, set GITHUB_TOKEN"), "{error}");
}

#[tokio::test]
async fn an_empty_token_is_none() {
    let world = world().await;
    for token in ["", "  \n"] {
        let http = with_token(&world, token);
        assert_eq!(source().versions(&http).await.unwrap().len(), 2);
    }
    assert!(!world.showed_credentials_to("api.github.com"));
}

#[tokio::test]
async fn an_expired_token_is_named() {
    let world = world().await;
    let error = source().versions(&with_token(&world, "expired")).await.unwrap_err();
    assert!(error.to_string().ends_with("was refused (HTTP 401): Bad credentials"), "{error}");
    assert!(matches!(&error, FetchError::Unauthorized { variable: Some(it), .. } if it == "GITHUB_TOKEN"));
}

#[tokio::test]
async fn an_expired_token_does_not_stop_public_downloads() {
    let world = world().await;
    let http = with_token(&world, "expired");
    assert_eq!(source().file(&http, "v1.0.0", "metadata.yaml").await.unwrap(), b"kind: Metadata");
    assert!(world.reported(&["Warning", "checksum of metadata.yaml cannot be looked up"]));
}

#[tokio::test]
async fn an_enterprise_server_is_known_by_its_paths() {
    let world = world().await;
    let address = world.server.url("/o/r/releases/latest/components.yaml");
    let source = Remote::parse(&address).unwrap();
    let http = world.http();
    assert_eq!(sorted(source.versions(&http).await.unwrap()), ["v1.0.0", "v1.1.0"]);
    assert_eq!(source.file(&http, "v1.0.0", "components.yaml").await.unwrap(), b"kind: Namespace");
    assert_eq!(source.files(&http, "v1.0.0").await.unwrap().unwrap().len(), 2);
    assert!(world.server.count("/api/v3/repos/o/r/") > 0);
}

#[tokio::test]
async fn the_token_of_github_is_not_for_other_hosts_unless_they_are_listed() {
    let world = World::new().await;
    world.server.github("o/r", |repository| {
        repository.release("v1.0.0", &FILES).private("secret");
    });
    let source = GitHub::parse(&world.server.url("/o/r/releases")).unwrap();
    let host = world.server.host();
    let http = with_token(&world, "secret");
    for error in [
        source.versions(&http).await.unwrap_err(),
        source.file(&http, "v1.0.0", "metadata.yaml").await.unwrap_err(),
    ] {
        assert!(error.is_not_found(), "{error:?}");
        assert!(error.to_string().contains(&format!("GITHUB_HOSTS must name {host} before")), "{error}");
        assert!(!error.to_string().contains("GITHUB_TOKEN"), "{error}");
    }
    assert!(!world.showed_credentials_to(&host));
    // The same where only the public address has an answer.
    world.server.inject("/api/v3/", 1, Fault::RateLimit { reset: NOW + 600 });
    let error = source.file(&with_token(&world, "secret"), "v1.0.0", "metadata.yaml").await.unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("GITHUB_HOSTS"), "{error}");
    for entry in [host.as_str(), " 127.0.0.1 "] {
        let http = world.http_with(|options| {
            options.github_token = Some("secret".to_owned());
            options.github_hosts = vec!["other.corp".to_owned(), entry.to_owned()];
        });
        assert_eq!(source.file(&http, "v1.0.0", "metadata.yaml").await.unwrap(), b"kind: Metadata");
    }
    assert!(world.showed_credentials_to(&host));
    let storage = host.replace("127.0.0.1", "localhost");
    assert!(!world.showed_credentials_to(&storage));
}

#[tokio::test]
async fn a_plain_server_with_githubs_paths_works_too() {
    let world = World::new().await;
    world.server.file("/mirror/capi/releases/v1.0.0/components.yaml", "kind: Mirrored");
    let source = Remote::parse(&world.server.url("/mirror/capi/releases/v1.0.0/components.yaml")).unwrap();
    assert_eq!(source.file(&world.http(), "v1.0.0", "components.yaml").await.unwrap(), b"kind: Mirrored");
}

#[tokio::test]
async fn the_public_proxy_never_hears_of_private_hosts() {
    let world = world().await;
    let source = GitHub::parse(&world.server.url("/o/r/releases")).unwrap();
    let http = world.http_with(|options| options.go_proxy = None);
    source.versions(&http).await.unwrap();
    assert_eq!(world.server.count("/@v/list"), 0);
    // One that was configured is asked.
    world.server.go_module("127.0.0.1/o/r", &["v3.0.0"]);
    let http = world.http_with(|options| options.go_proxy = Some(world.server.url("")));
    assert_eq!(source.versions(&http).await.unwrap(), ["v3.0.0"]);
}

#[tokio::test]
async fn a_login_page_of_an_enterprise_server_leads_to_the_api() {
    let world = world().await;
    world.server.inject("/releases/download/", usize::MAX, Fault::LoginPage);
    let source = GitHub::parse(&world.server.url("/o/r/releases")).unwrap();
    let content = source.file(&world.http(), "v1.0.0", "metadata.yaml").await.unwrap();
    assert_eq!(content, b"kind: Metadata");
}
