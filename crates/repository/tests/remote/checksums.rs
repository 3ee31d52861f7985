//! Sums that are promised, and kept or not.

use capstan_repository::FetchError;
use capstan_repository::remote::{Fetched, GitHub, Http, HttpsRelease, Remote, Sha256};
use capstan_testkit::fakes::Fault;

use crate::world::World;

const ADDRESS: &str = "https://files.example.com/capi/v1.0.0/f.yaml";
const CONTENT: &str = "kind: Something";

async fn world() -> World {
    let world = World::new().await;
    world.server.file("/capi/v1.0.0/f.yaml", CONTENT);
    world
}

async fn fetch(http: &Http, address: &str) -> Result<Fetched, FetchError> {
    HttpsRelease::parse(address).unwrap().fetch(http, "v1.0.0", "f.yaml").await
}

fn right() -> Sha256 {
    Sha256::of(CONTENT.as_bytes())
}

fn wrong() -> Sha256 {
    Sha256::of(b"something else")
}

#[tokio::test]
async fn sums_beside_the_file_vouch_for_it() {
    for (file, text, by) in [
        ("SHA256SUMS", format!("{}  g.yaml\n{}  f.yaml\n", wrong(), right()), "SHA256SUMS"),
        ("f.yaml.sha256", format!("{}\n", right()), "f.yaml.sha256"),
    ] {
        let world = world().await;
        world.server.file(&format!("/capi/v1.0.0/{file}"), text);
        let fetched = fetch(&world.http(), ADDRESS).await.unwrap();
        assert_eq!(fetched.vouched_by.as_deref(), Some(by));
    }
}

#[tokio::test]
async fn a_wrong_sum_beside_the_file_is_an_error_and_nothing_is_kept() {
    for (file, text) in
        [("SHA256SUMS", format!("{}  f.yaml\n", wrong())), ("f.yaml.sha256", wrong().to_string())]
    {
        let world = world().await;
        world.server.file(&format!("/capi/v1.0.0/{file}"), text);
        let error = fetch(&world.cached_http(), ADDRESS).await.unwrap_err();
        let FetchError::Checksum { what, expected, found } = &error else { panic!("{error:?}") };
        assert!(what.contains(&format!("promised by {file}")), "{what}");
        assert_eq!((expected, found), (&wrong().to_string(), &right().to_string()));
        assert_eq!(world.reports("Retrying"), 0);
        assert!(!world.cache.exists(), "nothing of it may be kept");
    }
}

#[tokio::test]
async fn sums_of_other_files_do_not_vouch() {
    let world = world().await;
    world.server.file("/capi/v1.0.0/SHA256SUMS", format!("{}  g.yaml\n", wrong()));
    assert_eq!(fetch(&world.http(), ADDRESS).await.unwrap().vouched_by, None);
}

#[tokio::test]
async fn sums_that_cannot_be_read_are_not_passed_over() {
    let world = world().await;
    world.server.file("/capi/v1.0.0/f.yaml.sha256", "to be done");
    let error = fetch(&world.http(), ADDRESS).await.unwrap_err();
    assert!(error.to_string().contains("no SHA-256 of f.yaml"), "{error}");
}

#[tokio::test]
async fn sums_that_cannot_be_had_are_not_passed_over() {
    let world = world().await;
    world.server.file("/capi/v1.0.0/SHA256SUMS", format!("{}  f.yaml\n", right()));
    world.server.inject("SHA256SUMS", usize::MAX, Fault::Status(500));
    let error = fetch(&world.http(), ADDRESS).await.unwrap_err();
    assert!(matches!(error, FetchError::Status { status: 500, .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_that_answers_everything_with_a_page_has_no_sums() {
    let world = world().await;
    world.server.inject("SHA256SUMS", usize::MAX, Fault::LoginPage);
    world.server.inject(".sha256", usize::MAX, Fault::LoginPage);
    assert_eq!(fetch(&world.http(), ADDRESS).await.unwrap().vouched_by, None);
}

#[tokio::test]
async fn sums_are_asked_for_once_a_release() {
    let world = world().await;
    world.server.file("/capi/v1.0.0/g.yaml", CONTENT);
    let http = world.http();
    let release = HttpsRelease::parse(ADDRESS).unwrap();
    release.file(&http, "v1.0.0", "f.yaml").await.unwrap();
    release.file(&http, "v1.0.0", "g.yaml").await.unwrap();
    assert_eq!(world.server.count("SHA256SUMS"), 1);
}

#[tokio::test]
async fn the_address_can_promise() {
    let world = world().await;
    let fetched = fetch(&world.http(), &format!("{ADDRESS}#sha256={}", right())).await.unwrap();
    assert_eq!(fetched.vouched_by.as_deref(), Some("the address"));
    let error = fetch(&world.http(), &format!("{ADDRESS}#sha256={}", wrong())).await.unwrap_err();
    assert!(error.to_string().contains("promised by the address"), "{error}");
}

#[tokio::test]
async fn a_promise_is_for_the_named_file_only() {
    let world = world().await;
    world.server.file("/capi/v1.0.0/g.yaml", "other");
    let release = HttpsRelease::parse(&format!("{ADDRESS}#sha256={}", right())).unwrap();
    assert_eq!(release.file(&world.http(), "v1.0.0", "g.yaml").await.unwrap(), b"other");
}

#[tokio::test]
async fn what_the_cache_has_must_keep_the_promise_too() {
    let world = world().await;
    fetch(&world.cached_http(), ADDRESS).await.unwrap();
    world.server.file("/capi/v1.0.0/f.yaml", "kind: Replaced");
    let promised = format!("{ADDRESS}#sha256={}", Sha256::of(b"kind: Replaced"));
    let fetched = fetch(&world.cached_http(), &promised).await.unwrap();
    assert_eq!((fetched.bytes.as_slice(), fetched.cached), (&b"kind: Replaced"[..], false));
}

#[tokio::test]
async fn githubs_digest_vouches_for_those_with_a_token() {
    let world = World::new().await;
    world.server.github("o/r", |repository| {
        repository.release("v1.0.0", &[("f.yaml", CONTENT)]);
    });
    let source = GitHub::parse("https://github.com/o/r/releases/latest/f.yaml").unwrap();
    let http = world.http_with(|options| options.github_token = Some("t".to_owned()));
    let fetched = source.fetch(&http, "v1.0.0", "f.yaml").await.unwrap();
    assert_eq!(fetched.vouched_by.as_deref(), Some("GitHub's digest"));

    world.server.inject("/storage/o/r/v1.0.0/f.yaml", usize::MAX, Fault::Corrupt);
    let error = source.fetch(&http, "v1.0.0", "f.yaml").await.unwrap_err();
    assert!(matches!(error, FetchError::Checksum { .. }), "{error:?}");
    // Without a token the quota is too small to look every sum up.
    let fetched = source.fetch(&world.http(), "v1.0.0", "f.yaml").await.unwrap();
    assert_eq!(fetched.vouched_by, None);
}

#[tokio::test]
async fn assets_from_before_the_digests_have_nobody_to_vouch_for_them() {
    let world = World::new().await;
    world.server.github("o/r", |repository| {
        repository.release("v1.0.0", &[("f.yaml", CONTENT)]).without_digests();
    });
    let source = GitHub::parse("https://github.com/o/r/releases/latest/f.yaml").unwrap();
    let http = world.http_with(|options| options.github_token = Some("t".to_owned()));
    let fetched = source.fetch(&http, "v1.0.0", "f.yaml").await.unwrap();
    assert_eq!((fetched.bytes.as_slice(), fetched.vouched_by), (CONTENT.as_bytes(), None));
}

/// The same file on GitHub, GitHub Enterprise, GitLab and a plain server.
async fn everywhere() -> (World, [String; 4]) {
    let world = world().await;
    world.server.github("o/r", |repository| {
        repository.release("v1.0.0", &[("f.yaml", CONTENT), ("g.yaml", "other")]);
    });
    world.server.gitlab_file("g/p", "capi", "v1.0.0", "f.yaml", CONTENT);
    world.server.gitlab_file("g/p", "capi", "v1.0.0", "g.yaml", "other");
    world.server.file("/capi/v1.0.0/g.yaml", "other");
    let addresses = [
        "https://github.com/o/r/releases/VERSION/f.yaml".to_owned(),
        world.server.url("/o/r/releases/VERSION/f.yaml"),
        "https://gitlab.example.com/api/v4/projects/g%2Fp/packages/generic/capi/VERSION/f.yaml".to_owned(),
        ADDRESS.replace("v1.0.0", "VERSION"),
    ];
    (world, addresses)
}

#[tokio::test]
async fn every_address_can_promise() {
    let (world, addresses) = everywhere().await;
    for address in addresses {
        for (version, mark) in [("v1.0.0", '#'), ("v1.0.0", '?'), ("latest", '#')] {
            let promising = |sum: Sha256| {
                let address = address.replace("VERSION", version);
                Remote::parse(&format!("{address}{mark}sha256={sum}")).unwrap()
            };
            let fetched = promising(right()).fetch(&world.http(), "v1.0.0", "f.yaml").await.unwrap();
            assert_eq!(fetched.vouched_by.as_deref(), Some("the address"), "{address}");
            // What another address has left in the cache must keep the promise, too.
            promising(right()).fetch(&world.cached_http(), "v1.0.0", "f.yaml").await.unwrap();
            for http in [world.http(), world.cached_http()] {
                let error = promising(wrong()).fetch(&http, "v1.0.0", "f.yaml").await.unwrap_err();
                assert!(matches!(error, FetchError::Checksum { .. }), "{address}: {error:?}");
                assert!(error.to_string().contains("promised by the address"), "{error}");
            }
            let other = promising(right()).file(&world.http(), "v1.0.0", "g.yaml").await.unwrap();
            assert_eq!(other, b"other", "the promise is for the named file only");
        }
    }
}
