//! Registries.

use capstan_repository::FetchError;
use capstan_repository::remote::{Credentials, DockerConfig, Http, Oci, Remote};
use capstan_testkit::fakes::{FakeArtifact, Fault, RegistryAuth, digest_of};

use crate::world::{ATTEMPTS, World};

const ADDRESS: &str = "oci://registry.example.com/providers/capi";
const FILES: [(&str, &str); 3] = [
    ("metadata.yaml", "kind: Metadata"),
    ("components.yaml", "kind: Namespace"),
    ("again.yaml", "kind: Namespace"),
];

async fn world() -> World {
    let world = World::new().await;
    world.server.artifact("providers/capi", "v1.0.0", FakeArtifact::files(&FILES));
    world
}

fn source() -> Oci {
    Oci::parse(ADDRESS).unwrap()
}

fn with_credentials(world: &World, username: &str, password: &str) -> Http {
    let (username, password) = (username.to_owned(), password.to_owned());
    world.http_with(|options| {
        options.oci_credentials = Some(Credentials { username, password });
        options.oci_host = Some("registry.example.com".to_owned());
    })
}

#[tokio::test]
async fn files_are_layers_with_titles() {
    let world = world().await;
    let http = world.http();
    let fetched = source().fetch(&http, "v1.0.0", "metadata.yaml").await.unwrap();
    assert_eq!(fetched.bytes, b"kind: Metadata");
    assert_eq!(fetched.vouched_by.as_deref(), Some("the artifact's manifest"));
    let titles = source().files(&http, "v1.0.0").await.unwrap().unwrap();
    assert_eq!(titles, ["again.yaml", "components.yaml", "metadata.yaml"]);
    assert_eq!(world.server.count("/manifests/"), 1, "once a process");
}

#[tokio::test]
async fn one_content_may_have_two_titles() {
    let world = world().await;
    for title in ["components.yaml", "again.yaml"] {
        assert_eq!(source().file(&world.http(), "v1.0.0", title).await.unwrap(), b"kind: Namespace");
    }
}

#[tokio::test]
async fn missing_things_are_told_apart() {
    let world = world().await;
    let error = source().file(&world.http(), "v1.0.0", "nothing.yaml").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "not found: nothing.yaml in oci://registry.example.com/providers/capi:v1.0.0"
    );
    assert_eq!(error.available(), ["again.yaml", "components.yaml", "metadata.yaml"]);
    let error = source().file(&world.http(), "v9.0.0", "metadata.yaml").await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    assert!(error.to_string().contains("v9.0.0"), "{error}");
}

#[tokio::test]
async fn what_cannot_be_a_tag_is_not_asked_for() {
    let world = world().await;
    for version in ["../../other/manifests/v1.0.0", "", "v1.0.0?x", "v1.0.0+build"] {
        let error = source().file(&world.http(), version, "metadata.yaml").await.unwrap_err();
        assert!(error.is_not_found() && error.to_string().contains("cannot be a tag"), "{error}");
    }
    assert!(world.server.requests().is_empty());
}

#[tokio::test]
async fn all_pages_of_tags_are_read() {
    let world = world().await;
    for tag in ["v1.1.0", "v1.2.0", "v1.3.0", "v1.4.0"] {
        world.server.artifact("providers/capi", tag, FakeArtifact::files(&[]));
    }
    let expected = ["v1.0.0", "v1.1.0", "v1.2.0", "v1.3.0", "v1.4.0"];
    assert_eq!(source().versions(&world.cached_http()).await.unwrap(), expected);
    assert_eq!(world.server.count("/tags/list"), 3);
    assert_eq!(source().versions(&world.offline_http()).await.unwrap(), expected);
}

#[tokio::test]
async fn a_tag_in_the_address_wins_over_the_version() {
    let world = world().await;
    let source = Oci::parse(&format!("{ADDRESS}:v1.0.0")).unwrap();
    assert_eq!(source.file(&world.http(), "v7.0.0", "metadata.yaml").await.unwrap(), b"kind: Metadata");
    assert_eq!(source.versions(&world.http()).await.unwrap(), ["v1.0.0"]);
}

#[tokio::test]
async fn a_digest_in_the_address_must_be_that_of_the_manifest() {
    let world = world().await;
    source().files(&world.http(), "v1.0.0").await.unwrap();
    let manifest = manifest_of(&world).await;
    let pinned = Oci::parse(&format!("{ADDRESS}@{}", digest_of(manifest.as_bytes()))).unwrap();
    assert_eq!(pinned.file(&world.http(), "latest", "metadata.yaml").await.unwrap(), b"kind: Metadata");
    world.server.inject("/manifests/", usize::MAX, Fault::Corrupt);
    let error = pinned.file(&world.http(), "latest", "metadata.yaml").await.unwrap_err();
    assert!(matches!(error, FetchError::Checksum { .. }), "{error:?}");
}

async fn manifest_of(world: &World) -> String {
    source().files(&world.cached_http(), "v1.0.0").await.unwrap();
    let blobs = crate::world::files_in(&world.cache.join("blobs"));
    let texts = blobs.iter().map(|blob| std::fs::read_to_string(blob).unwrap());
    texts.into_iter().find(|text| text.contains("layers")).unwrap()
}

#[tokio::test]
async fn damaged_content_is_refused_and_not_asked_for_again() {
    for part in ["/blobs/", "/manifests/"] {
        let world = world().await;
        world.server.inject(part, usize::MAX, Fault::Corrupt);
        let error = source().file(&world.cached_http(), "v1.0.0", "metadata.yaml").await.unwrap_err();
        assert!(matches!(error, FetchError::Checksum { .. }), "{part}: {error:?}");
        assert_eq!(world.server.count(part), 1);
    }
}

#[tokio::test]
async fn a_truncated_layer_is_tried_again() {
    let world = world().await;
    world.server.inject("/blobs/", ATTEMPTS - 1, Fault::Truncate);
    assert_eq!(source().file(&world.http(), "v1.0.0", "metadata.yaml").await.unwrap(), b"kind: Metadata");
}

#[tokio::test]
async fn a_large_layer_is_not_even_asked_for() {
    let world = world().await;
    let http = world.http_with(|options| options.limits.file = 3);
    let error = source().file(&http, "v1.0.0", "metadata.yaml").await.unwrap_err();
    assert!(matches!(error, FetchError::TooLarge { limit: 3, .. }), "{error:?}");
    assert_eq!(world.server.count("/blobs/"), 0);
}

#[tokio::test]
async fn an_index_holds_the_files_of_all_its_manifests() {
    let world = World::new().await;
    let one = |title: &str, content: &str| vec![(title.to_owned(), content.to_owned())];
    let index = FakeArtifact::Index(vec![one("a.yaml", "a"), one("b.yaml", "b"), one("a.yaml", "a")]);
    world.server.artifact("providers/capi", "v1.0.0", index);
    assert_eq!(source().file(&world.http(), "v1.0.0", "b.yaml").await.unwrap(), b"b");
    assert_eq!(source().files(&world.http(), "v1.0.0").await.unwrap().unwrap(), ["a.yaml", "b.yaml"]);
}

#[tokio::test]
async fn hostile_titles_spoil_the_whole_artifact() {
    for title in ["../../.bashrc", "/etc/passwd", "a/../../b", "a\0b", "..\\x", ""] {
        let world = World::new().await;
        let files = [("metadata.yaml", "kind: Metadata"), (title, "evil")];
        world.server.artifact("providers/capi", "v1.0.0", FakeArtifact::files(&files));
        for outcome in [
            source().file(&world.http(), "v1.0.0", "metadata.yaml").await.map(drop),
            source().file(&world.http(), "v1.0.0", title).await.map(drop),
            source().files(&world.http(), "v1.0.0").await.map(drop),
        ] {
            let error = outcome.unwrap_err();
            assert!(matches!(error, FetchError::HostileName { .. }), "{title:?}: {error:?}");
            assert!(error.to_string().contains(&format!("{title:?}")), "{error}");
        }
        assert_eq!(world.server.count("/blobs/"), 0);
    }
}

#[tokio::test]
async fn one_title_for_two_contents_is_refused() {
    let world = World::new().await;
    let files = [("metadata.yaml", "kind: Metadata"), ("metadata.yaml", "evil")];
    world.server.artifact("providers/capi", "v1.0.0", FakeArtifact::files(&files));
    let error = source().file(&world.http(), "v1.0.0", "metadata.yaml").await.unwrap_err();
    assert!(error.to_string().contains("same name and different content"), "{error}");
}

#[tokio::test]
async fn anybody_gets_a_token_and_uses_it_for_everything() {
    let world = world().await;
    world.server.registry_auth(RegistryAuth::AnonymousToken);
    let http = world.http();
    assert_eq!(source().file(&http, "v1.0.0", "metadata.yaml").await.unwrap(), b"kind: Metadata");
    assert_eq!(source().file(&http, "v1.0.0", "components.yaml").await.unwrap(), b"kind: Namespace");
    assert_eq!(source().versions(&http).await.unwrap(), ["v1.0.0"]);
    assert_eq!(world.server.count("/token"), 1);
    assert_eq!(world.server.count("scope=repository%3Aproviders%2Fcapi%3Apull"), 1);
    assert_eq!(world.server.count("service=fake"), 1);
}

#[tokio::test]
async fn a_token_that_expires_is_replaced() {
    let world = world().await;
    world.server.registry_auth(RegistryAuth::AnonymousToken);
    let http = world.http();
    source().file(&http, "v1.0.0", "metadata.yaml").await.unwrap();
    world.server.expire_registry_tokens();
    source().file(&http, "v1.0.0", "components.yaml").await.unwrap();
    assert_eq!(world.server.count("/token"), 2);
}

#[tokio::test]
async fn users_are_let_in_with_their_password() {
    let user = || ("me".to_owned(), "p:w".to_owned());
    for auth in [RegistryAuth::Basic(user().0, user().1), RegistryAuth::Token(user().0, user().1)] {
        let world = world().await;
        world.server.registry_auth(auth);
        let http = with_credentials(&world, "me", "p:w");
        assert_eq!(source().file(&http, "v1.0.0", "metadata.yaml").await.unwrap(), b"kind: Metadata");
        for http in [with_credentials(&world, "me", "wrong"), world.http()] {
            let error = source().file(&http, "v1.0.0", "metadata.yaml").await.unwrap_err();
            assert!(matches!(error, FetchError::Unauthorized { status: 401, .. }), "{error:?}");
        }
    }
}

#[tokio::test]
async fn dockers_passwords_are_used_for_their_registry_only() {
    let world = world().await;
    world.server.registry_auth(RegistryAuth::Token("me".to_owned(), "pw".to_owned()));
    let with_docker = |registry: &str| {
        let text = format!(r#"{{"auths":{{"{registry}":{{"username":"me","password":"pw"}}}}}}"#);
        world.http_with(|options| options.docker_config = Some(DockerConfig { text, run_helpers: false }))
    };
    let http = with_docker("https://registry.example.com/v2/");
    assert_eq!(source().file(&http, "v1.0.0", "metadata.yaml").await.unwrap(), b"kind: Metadata");
    let http = with_docker("other.example.com");
    assert!(source().file(&http, "v1.0.0", "metadata.yaml").await.is_err());
}

#[tokio::test]
async fn credential_helpers_run_only_if_allowed() {
    let world = world().await;
    world.server.registry_auth(RegistryAuth::AnonymousToken);
    let with_helper = |run_helpers: bool| {
        let text = r#"{"credsStore":"capstan-has-no-such-helper"}"#.to_owned();
        world.http_with(|options| options.docker_config = Some(DockerConfig { text, run_helpers }))
    };
    source().file(&with_helper(false), "v1.0.0", "metadata.yaml").await.unwrap();
    let error = source().file(&with_helper(true), "v1.0.0", "metadata.yaml").await.unwrap_err();
    assert!(error.to_string().contains("docker-credential-capstan-has-no-such-helper"), "{error}");
}

#[tokio::test]
async fn a_password_is_not_sent_where_anybody_can_read_it() {
    let world = world().await;
    let realm = format!("http://{}/token", world.server.plain_host());
    world.server.registry_auth(RegistryAuth::TokenFrom(realm));
    let http = with_credentials(&world, "me", "pw");
    let error = source().file(&http, "v1.0.0", "metadata.yaml").await.unwrap_err();
    assert!(error.to_string().contains("without encryption"), "{error}");
    assert_eq!(world.server.count("/token"), 0);
}

#[tokio::test]
async fn a_layer_that_lies_elsewhere_is_fetched_without_credentials() {
    let world = world().await;
    world.server.registry_auth(RegistryAuth::AnonymousToken);
    world.server.file("/stored", "kind: Metadata");
    let http = world.http();
    source().files(&http, "v1.0.0").await.unwrap();
    world.server.inject("/blobs/", 1, Fault::Redirect("https://other.example.com/stored".to_owned()));
    assert_eq!(source().file(&http, "v1.0.0", "metadata.yaml").await.unwrap(), b"kind: Metadata");
    assert!(!world.showed_credentials_to("other.example.com"));
}

#[tokio::test]
async fn a_registry_on_this_machine_may_do_without_tls() {
    let world = world().await;
    let hosts = [world.server.host(), world.server.plain_host()];
    for (host, scheme) in hosts.iter().zip(["https", "http"]) {
        world.server.forget_requests();
        let source = Remote::parse(&format!("oci://{host}/providers/capi")).unwrap();
        assert_eq!(source.file(&world.http(), "v1.0.0", "metadata.yaml").await.unwrap(), b"kind: Metadata");
        assert!(world.server.requests().iter().all(|request| request.scheme == scheme));
    }
}

#[tokio::test]
async fn an_untrusted_registry_on_this_machine_is_not_downgraded() {
    let world = world().await;
    let http = world.http_with(|options| options.extra_roots.clear());
    let source = Oci::parse(&format!("oci://{}/providers/capi", world.server.host())).unwrap();
    let error = source.file(&http, "v1.0.0", "metadata.yaml").await.unwrap_err();
    assert!(error.is_certificate_problem(), "{error:?}");
}

#[tokio::test]
async fn plain_http_is_used_when_the_user_says_so() {
    let world = world().await;
    let source = Oci::parse(&format!("http://{}/providers/capi", world.server.plain_host())).unwrap();
    assert_eq!(source.file(&world.http(), "v1.0.0", "metadata.yaml").await.unwrap(), b"kind: Metadata");
    assert!(world.server.requests().iter().all(|request| request.scheme == "http"));
}

#[tokio::test]
async fn pinned_artifacts_are_kept() {
    let world = world().await;
    source().file(&world.cached_http(), "v1.0.0", "metadata.yaml").await.unwrap();
    world.server.forget_requests();
    for http in [world.cached_http(), world.offline_http()] {
        let fetched = source().fetch(&http, "v1.0.0", "metadata.yaml").await.unwrap();
        assert_eq!((fetched.bytes.as_slice(), fetched.cached), (&b"kind: Metadata"[..], true));
    }
    assert!(world.server.requests().is_empty());
}

#[tokio::test]
async fn a_moving_tag_is_asked_for_again() {
    let world = World::new().await;
    for content in ["one", "two"] {
        world.server.artifact("providers/capi", "latest", FakeArtifact::files(&[("f", content)]));
        let found = source().file(&world.cached_http(), "latest", "f").await.unwrap();
        assert_eq!(found, content.as_bytes());
    }
}

#[tokio::test]
async fn credentials_are_for_the_registry_that_is_named() {
    let world = world().await;
    world.server.registry_auth(RegistryAuth::Basic("me".to_owned(), "pw".to_owned()));
    let for_host = |host: &str| {
        world.http_with(|options| {
            let (username, password) = ("me".to_owned(), "pw".to_owned());
            options.oci_credentials = Some(Credentials { username, password });
            options.oci_host = Some(host.to_owned());
        })
    };
    let fetch = async |http: Http| source().file(&http, "v1.0.0", "metadata.yaml").await;
    let user = || ("me".to_owned(), "pw".to_owned());
    for auth in [RegistryAuth::Basic(user().0, user().1), RegistryAuth::Token(user().0, user().1)] {
        world.server.registry_auth(auth);
        for host in ["ghcr.io", "registry.example.com:8443", ""] {
            let error = fetch(for_host(host)).await.unwrap_err();
            let FetchError::Unauthorized { status: 401, withheld: Some(withheld), .. } = &error else {
                panic!("{error:?}")
            };
            assert!(withheld.to_string().contains("OCI_HOST must name registry.example.com"), "{error:?}");
        }
    }
    assert!(!world.showed_credentials_to("registry.example.com"));
    for host in ["registry.example.com", "Registry.Example.Com:443", "https://registry.example.com/v2/"] {
        assert_eq!(fetch(for_host(host)).await.unwrap(), b"kind: Metadata", "{host:?}");
    }
}
