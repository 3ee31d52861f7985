//! Single files by their address.

use capstan_repository::FetchError;
use capstan_repository::remote::{Sha256, fetch_url};
use capstan_testkit::fakes::Fault;

use crate::world::World;

async fn world() -> World {
    let world = World::new().await;
    world.server.github("o/r", |repository| {
        repository
            .release("v1.0.0", &[("cluster-template.yaml", "released")])
            .content("main", "templates/a.yaml", "on main")
            .content("feature/x", "templates/a.yaml", "on a branch");
    });
    world
}

async fn fetch(world: &World, url: &str) -> Result<Vec<u8>, FetchError> {
    fetch_url(&world.http(), url).await.map(|fetched| fetched.bytes)
}

#[tokio::test]
async fn files_come_from_where_the_browser_showed_them() {
    let world = world().await;
    world.server.file("/t/a.yaml", "plain");
    for (url, content) in [
        ("https://github.com/o/r/blob/main/templates/a.yaml", "on main"),
        ("https://github.com/o/r/blob/feature/x/templates/a.yaml", "on a branch"),
        ("https://github.com/o/r/releases/download/v1.0.0/cluster-template.yaml", "released"),
        ("https://files.example.com/t/a.yaml", "plain"),
        (&world.server.url("/o/r/blob/main/templates/a.yaml"), "on main"),
        (&world.server.url("/t/a.yaml?x=1"), "plain"),
    ] {
        assert_eq!(fetch(&world, url).await.unwrap(), content.as_bytes(), "{url}");
    }
}

#[tokio::test]
async fn a_branch_without_slashes_costs_one_request() {
    let world = world().await;
    fetch(&world, "https://github.com/o/r/blob/main/templates/a.yaml").await.unwrap();
    assert_eq!(world.server.requests().len(), 1);
}

#[tokio::test]
async fn a_missing_blob_is_not_found() {
    let world = world().await;
    let error = fetch(&world, "https://github.com/o/r/blob/main/templates/b.yaml").await.unwrap_err();
    assert!(error.is_not_found());
    assert!(error.to_string().contains("templates/b.yaml at main of github.com/o/r"), "{error}");
}

#[tokio::test]
async fn a_limit_is_not_taken_for_a_missing_blob() {
    let world = world().await;
    world.server.inject("/contents/", 1, Fault::RateLimit { reset: 0 });
    let error = fetch(&world, "https://github.com/o/r/blob/main/templates/a.yaml").await.unwrap_err();
    assert!(matches!(error, FetchError::RateLimited { .. }), "{error:?}");
    assert_eq!(world.server.requests().len(), 1);
}

#[tokio::test]
async fn promises_are_checked_everywhere() {
    let world = world().await;
    world.server.file("/t/a.yaml", "plain");
    for (url, content) in [
        ("https://github.com/o/r/blob/main/templates/a.yaml", "on main"),
        ("https://github.com/o/r/releases/download/v1.0.0/cluster-template.yaml", "released"),
        ("https://files.example.com/t/a.yaml", "plain"),
    ] {
        for mark in ["#", "?"] {
            let right = format!("{url}{mark}sha256={}", Sha256::of(content.as_bytes()));
            assert_eq!(fetch(&world, &right).await.unwrap(), content.as_bytes());
            let wrong = format!("{url}{mark}sha256={}", Sha256::of(b"x"));
            let error = fetch(&world, &wrong).await.unwrap_err();
            assert!(matches!(error, FetchError::Checksum { .. }), "{error:?}");
        }
    }
}

#[tokio::test]
async fn plain_http_and_other_schemes_are_refused() {
    let world = world().await;
    for url in
        [format!("http://{}/t/a.yaml", world.server.plain_host()), "ftp://h/f".to_owned(), "x".to_owned()]
    {
        let error = fetch(&world, &url).await.unwrap_err();
        assert!(matches!(error, FetchError::InvalidUrl { .. }), "{error:?}");
    }
    assert!(world.server.requests().is_empty());
}

#[tokio::test]
async fn a_login_page_is_not_a_template() {
    let world = world().await;
    world.server.file("/t/a.yaml", "plain");
    world.server.inject("/t/a.yaml", 1, Fault::LoginPage);
    let error = fetch(&world, "https://files.example.com/t/a.yaml").await.unwrap_err();
    assert!(matches!(error, FetchError::WebPage { .. }), "{error:?}");
}

#[tokio::test]
async fn a_template_is_asked_for_again_and_kept_for_bad_times() {
    let world = world().await;
    let url = "https://github.com/o/r/blob/main/templates/a.yaml";
    fetch_url(&world.cached_http(), url).await.unwrap();
    assert!(fetch_url(&world.cached_http(), url).await.unwrap().cached);
    assert_eq!(world.server.requests().len(), 2);
    assert!(fetch_url(&world.offline_http(), url).await.unwrap().cached);
    assert_eq!(world.server.requests().len(), 2);
}

#[tokio::test]
async fn the_query_tells_templates_apart_in_the_cache_too() {
    let world = world().await;
    for query in ["", "?flavor=a", "?flavor=b"] {
        world.server.file("/t/a.yaml", format!("for {query}"));
        fetch_url(&world.cached_http(), &format!("https://files.example.com/t/a.yaml{query}")).await.unwrap();
    }
    for query in ["", "?flavor=a", "?flavor=b"] {
        let address = format!("https://files.example.com/t/a.yaml{query}");
        let fetched = fetch_url(&world.offline_http(), &address).await.unwrap();
        assert_eq!(fetched.bytes, format!("for {query}").as_bytes());
    }
}
