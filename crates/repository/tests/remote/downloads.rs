//! What every download goes through, whoever it is from.

use std::time::Duration;

use capstan_repository::FetchError;
use capstan_repository::remote::{GitLab, Http, HttpsRelease, Sha256};
use capstan_testkit::fakes::Fault;

use crate::world::{ATTEMPTS, World};

const ADDRESS: &str = "https://files.example.com/capi/v1.0.0/f.yaml";
const FILE: &str = "/capi/v1.0.0/f.yaml";
/// The file, and none of the sums beside it.
const EXACT: &str = "/capi/v1.0.0/f.yaml$";
const CONTENT: &str = "kind: A file that is long enough to be broken in the middle";

async fn world() -> World {
    let world = World::new().await;
    world.server.file(FILE, CONTENT);
    world
}

async fn fetch(http: &Http) -> Result<Vec<u8>, FetchError> {
    HttpsRelease::parse(ADDRESS).unwrap().file(http, "v1.0.0", "f.yaml").await
}

/// The requests for the file itself, without the sums beside it.
fn asked(world: &World) -> usize {
    world.server.requests().iter().filter(|request| request.path == FILE).count()
}

#[tokio::test]
async fn a_file_comes_whole_and_with_its_sum() {
    let world = world().await;
    let release = HttpsRelease::parse(ADDRESS).unwrap();
    let fetched = release.fetch(&world.http(), "v1.0.0", "f.yaml").await.unwrap();
    assert_eq!(fetched.bytes, CONTENT.as_bytes());
    assert_eq!(fetched.sha256, Sha256::of(CONTENT.as_bytes()));
    assert_eq!((fetched.url.as_str(), fetched.vouched_by, fetched.cached), (ADDRESS, None, false));
    assert_eq!(asked(&world), 1);
}

#[tokio::test]
async fn progress_is_told_in_bytes() {
    let world = world().await;
    fetch(&world.http()).await.unwrap();
    let length = CONTENT.len();
    assert!(world.reported(&["Requested", ADDRESS]));
    assert!(world.reported(&["Received", ADDRESS, &format!("bytes: {length}, total: Some({length})")]));
}

#[tokio::test]
async fn a_truncated_download_is_tried_again() {
    let world = world().await;
    world.server.inject(EXACT, 1, Fault::Truncate);
    assert_eq!(fetch(&world.http()).await.unwrap(), CONTENT.as_bytes());
    assert_eq!(asked(&world), 2);
    assert!(world.reported(&["Retrying", "attempt: 1", "Truncated"]));
}

#[tokio::test]
async fn a_download_that_is_always_truncated_is_an_error() {
    let world = world().await;
    world.server.inject(EXACT, usize::MAX, Fault::Truncate);
    let error = fetch(&world.http()).await.unwrap_err();
    let length = CONTENT.len();
    assert!(
        matches!(error, FetchError::Truncated { expected: Some(e), found, .. }
            if e == length as u64 && found == (length / 2) as u64),
        "{error:?}"
    );
    assert_eq!(asked(&world), ATTEMPTS);
}

#[tokio::test]
async fn a_server_error_that_passes_is_survived() {
    let world = world().await;
    world.server.inject(EXACT, ATTEMPTS - 1, Fault::Status(503));
    assert_eq!(fetch(&world.http()).await.unwrap(), CONTENT.as_bytes());
    assert_eq!(asked(&world), ATTEMPTS);
}

#[tokio::test]
async fn a_server_error_that_stays_is_told() {
    let world = world().await;
    world.server.inject(EXACT, usize::MAX, Fault::Status(500));
    let error = fetch(&world.http()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("{ADDRESS} answered with HTTP 500: spoilt"));
    assert_eq!(asked(&world), ATTEMPTS);
}

#[tokio::test]
async fn a_missing_file_is_asked_for_once() {
    let world = World::new().await;
    let error = fetch(&world.http()).await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    assert_eq!(error.to_string(), "not found: f.yaml of v1.0.0 at https://files.example.com/capi");
    assert_eq!(asked(&world), 1);
}

#[tokio::test]
async fn a_refusal_is_not_tried_again() {
    let world = world().await;
    world.server.inject(EXACT, 1, Fault::Status(418));
    let error = fetch(&world.http()).await.unwrap_err();
    assert!(matches!(error, FetchError::Status { status: 418, .. }), "{error:?}");
    assert_eq!(asked(&world), 1);
}

#[tokio::test]
async fn a_silent_server_is_left() {
    let world = world().await;
    world.server.inject(EXACT, usize::MAX, Fault::Silence);
    let http = world.http_with(|options| options.timeouts.idle = Duration::from_millis(50));
    let error = fetch(&http).await.unwrap_err();
    assert!(matches!(error, FetchError::TimedOut { .. }), "{error:?}");
    assert!(error.to_string().ends_with("gave no answer within 0.05 s"), "{error}");
    assert_eq!(world.reports(&format!("Retrying {{ url: {ADDRESS:?}")), ATTEMPTS - 1);
}

#[tokio::test]
async fn a_download_that_stalls_is_left() {
    let world = world().await;
    world.server.inject(EXACT, 1, Fault::Stall);
    let http = world.http_with(|options| {
        options.timeouts.idle = Duration::from_secs(3);
        options.retry.attempts = 1;
    });
    let error = fetch(&http).await.unwrap_err();
    assert!(matches!(error, FetchError::TimedOut { .. }), "{error:?}");
    assert!(world.reported(&["Received", &format!("bytes: {}", CONTENT.len() / 2)]));
}

#[tokio::test]
async fn all_attempts_together_have_a_limit() {
    let world = world().await;
    world.server.inject(EXACT, usize::MAX, Fault::Silence);
    let http = world.http_with(|options| options.timeouts.total = Duration::from_millis(500));
    let error = fetch(&http).await.unwrap_err();
    assert!(matches!(error, FetchError::TimedOut { after, .. } if after.as_millis() == 500), "{error:?}");
}

#[tokio::test]
async fn a_file_that_is_announced_too_large_is_not_read() {
    let world = world().await;
    world.server.inject(EXACT, 1, Fault::AnnounceLength(1 << 40));
    let error = fetch(&world.http()).await.unwrap_err();
    assert!(matches!(error, FetchError::TooLarge { limit, .. } if limit == 64 << 20), "{error:?}");
    assert_eq!(asked(&world), 1);
}

#[tokio::test]
async fn a_file_that_turns_out_too_large_is_given_up() {
    let world = world().await;
    world.server.inject(EXACT, 1, Fault::Padding(5000));
    let http = world.http_with(|options| options.limits.file = 4000);
    let error = fetch(&http).await.unwrap_err();
    assert!(matches!(error, FetchError::TooLarge { limit: 4000, .. }), "{error:?}");
    // Just as large as allowed is fine.
    world.server.file(FILE, vec![b'a'; 4000]);
    assert_eq!(fetch(&http).await.unwrap().len(), 4000);
}

#[tokio::test]
async fn a_redirect_on_the_same_host_keeps_the_token() {
    let world = World::new().await;
    world.server.file("/moved", "moved");
    world.server.inject("/f.yaml$", 1, Fault::Redirect("/moved".to_owned()));
    assert_eq!(fetch_with_token(&world).await.unwrap(), b"moved");
    let requests = world.server.requests();
    let moved = requests.iter().find(|request| request.path == "/moved").unwrap();
    assert_eq!(moved.authorization(), Some("Bearer secret"));
}

#[tokio::test]
async fn a_redirect_to_another_host_loses_the_token() {
    let world = World::new().await;
    world.server.file("/moved", "moved");
    world.server.inject("/f.yaml$", 1, Fault::Redirect("https://other.example.com/moved".to_owned()));
    assert_eq!(fetch_with_token(&world).await.unwrap(), b"moved");
    assert!(world.showed_credentials_to("gitlab.example.com"));
    assert!(!world.showed_credentials_to("other.example.com"));
}

async fn fetch_with_token(world: &World) -> Result<Vec<u8>, FetchError> {
    let address = "https://gitlab.example.com/api/v4/projects/p/packages/generic/capi/v1.0.0/f.yaml";
    let http = world.http_with(|options| {
        options.gitlab_token = Some("secret".to_owned());
        options.gitlab_hosts = vec!["gitlab.example.com".to_owned()];
    });
    GitLab::parse(address).unwrap().file(&http, "v1.0.0", "f.yaml").await
}

#[tokio::test]
async fn a_redirect_to_plain_http_is_never_followed() {
    let world = world().await;
    world.server.file("/moved", "moved");
    let target = format!("http://{}/moved", world.server.plain_host());
    world.server.inject(EXACT, usize::MAX, Fault::Redirect(target));
    let error = fetch(&world.http()).await.unwrap_err();
    assert!(matches!(error, FetchError::Redirect { .. }), "{error:?}");
    assert!(error.to_string().contains("only https is followed"), "{error}");
    assert_eq!(world.server.count("/moved"), 0);
    assert_eq!(asked(&world), 1);
}

#[tokio::test]
async fn endless_redirects_end() {
    let world = world().await;
    world.server.inject(EXACT, usize::MAX, Fault::Redirect(String::new()));
    let error = fetch(&world.http()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("{ADDRESS} was redirected more than 8 times"));
    assert_eq!(asked(&world), 9);
}

#[tokio::test]
async fn a_login_page_is_not_a_file() {
    let world = world().await;
    world.server.inject(EXACT, 1, Fault::LoginPage);
    let error = fetch(&world.http()).await.unwrap_err();
    assert!(matches!(error, FetchError::WebPage { .. }), "{error:?}");
}

#[tokio::test]
async fn an_unknown_authority_is_not_trusted() {
    let world = world().await;
    let http = world.http_with(|options| {
        options.extra_roots.clear();
        options.system_roots = true;
    });
    let error = fetch(&http).await.unwrap_err();
    assert!(error.is_certificate_problem(), "{error:?}");
    assert_eq!(asked(&world), 0);
    assert_eq!(world.reports("Retrying"), 0, "a certificate does not get better by asking again");
}

#[tokio::test]
async fn nobody_at_home_is_told_with_the_address() {
    let world = world().await;
    world.server.stop();
    let error = fetch(&world.http()).await.unwrap_err();
    assert!(matches!(error, FetchError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().starts_with(ADDRESS), "{error}");
    assert!(!error.is_certificate_problem(), "{error:?}");
}

#[tokio::test]
async fn a_broken_authority_is_told_with_the_first_request() {
    let world = World::new().await;
    let mut options = world.options();
    options.extra_roots = vec!["-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned()];
    let error = fetch(&Http::new(options)).await.unwrap_err();
    assert!(matches!(error, FetchError::Client { .. }), "{error:?}");
}
