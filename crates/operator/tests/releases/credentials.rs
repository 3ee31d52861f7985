//! Tokens and passwords of Secrets go where they are for, and nothing of a Secret is shown.

use capstan_repository::remote::{Credentials, HttpOptions};
use capstan_testkit::{
    canary::{self, CANARY},
    fakes::{FakeArtifact, FakeServer, Fault, RegistryAuth},
};

use crate::world::{COMPONENTS, REPOSITORY, Wanted, World, metadata};

const VERSION: &str = "v1.13.0";

fn files() -> [(&'static str, String); 2] {
    [("metadata.yaml", metadata(&["1.13=v1beta2"])), (COMPONENTS, "text".to_owned())]
}

/// A repository that only a token opens.
fn publish_privately(server: &FakeServer, token: &str) {
    let files = files();
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    server.github(REPOSITORY, |it| {
        it.release(VERSION, &files).private(token);
    });
}

/// The hosts that saw a token.
fn hosts_with_token(server: &FakeServer) -> Vec<String> {
    let requests = server.requests();
    let mut hosts: Vec<_> =
        requests.into_iter().filter(|it| it.authorization().is_some()).map(|it| it.host).collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

#[tokio::test]
async fn a_token_in_the_secret_goes_only_to_its_hosts() {
    let world = World::new().await;
    publish_privately(&world.server, "T");
    let at_github = Wanted::at(&format!("https://github.com/{REPOSITORY}/releases")).version(VERSION);
    let elsewhere = Wanted::at(&world.releases()).version(VERSION);
    for key in ["GITHUB_TOKEN", "github-token"] {
        world.fetch(&at_github.clone().secret(&[(key, "T")])).await.unwrap();
        assert_eq!(hosts_with_token(&world.server), ["api.github.com"]);
        world.server.forget_requests();
        // A host of the same layout is not GitHub.
        let error = world.fetch(&elsewhere.clone().secret(&[(key, "T")])).await.unwrap_err();
        assert!(
            error.to_string().contains(&format!("GITHUB_HOSTS must name {}", world.server.host())),
            "{error}"
        );
        assert!(hosts_with_token(&world.server).is_empty());
    }
    let host = world.server.host();
    world.fetch(&elsewhere.clone().secret(&[("GITHUB_TOKEN", "T"), ("GITHUB_HOSTS", &host)])).await.unwrap();
    assert_eq!(hosts_with_token(&world.server), [host]);
    world.server.forget_requests();
    // Neither the token nor what it opened is another provider's.
    let error = world.fetch(&at_github).await.unwrap_err();
    assert!(
        error.to_string().contains("a token is read from the Secret that spec.secretName names"),
        "{error}"
    );
    assert!(hosts_with_token(&world.server).is_empty());
}

#[tokio::test]
async fn what_a_token_listed_is_not_another_providers() {
    let world = World::new().await;
    publish_privately(&world.server, "T");
    let wanted = Wanted::at(&format!("https://github.com/{REPOSITORY}/releases"));
    assert_eq!(world.latest(&wanted.clone().secret(&[("GITHUB_TOKEN", "T")])).await.unwrap(), VERSION);
    let error = world.latest(&wanted).await.unwrap_err();
    assert!(error.to_string().contains("set spec.version"), "{error}");
}

#[tokio::test]
async fn tokens_of_the_process_serve_all_and_no_secret_sends_them_elsewhere() {
    let text = |it: &str| Some(it.to_owned());
    let world = World::with(|_, network| {
        let user = Credentials { username: "me".to_owned(), password: "P".to_owned() };
        *network = HttpOptions {
            github_token: text("T"),
            gitlab_token: text("T"),
            oci_credentials: Some(user),
            ..network.clone()
        };
    })
    .await;
    publish_privately(&world.server, "T");
    world.server.registry_auth(RegistryAuth::Basic("me".to_owned(), "P".to_owned()));
    let at_github = Wanted::at(&format!("https://github.com/{REPOSITORY}/releases")).version(VERSION);
    world.fetch(&at_github).await.unwrap();
    world.server.forget_requests();
    let host = world.server.host();
    let package = format!("/api/v4/projects/42/packages/generic/capi/{VERSION}/{COMPONENTS}");
    for url in [world.releases(), world.server.url(&package), format!("oci://{host}/providers/capi")] {
        let secret = [("GITHUB_HOSTS", host.as_str()), ("GITLAB_HOSTS", &host), ("OCI_HOST", &host)];
        world.fetch(&Wanted::at(&url).version(VERSION).secret(&secret)).await.unwrap_err();
        assert!(hosts_with_token(&world.server).is_empty(), "{url}");
    }
}

#[tokio::test]
async fn packages_and_registries_have_credentials_of_their_own() {
    let world = World::new().await;
    let host = world.server.host();
    world.server.gitlab_token("T");
    for (file, content) in files() {
        world.server.gitlab_file("42", "capi", VERSION, file, &content);
    }
    let files = files();
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    world.server.artifact("providers/capi", VERSION, FakeArtifact::files(&files));
    world.server.registry_auth(RegistryAuth::Token("me".to_owned(), "P".to_owned()));

    let package = format!("/api/v4/projects/42/packages/generic/capi/{VERSION}/{COMPONENTS}");
    let wanted = Wanted::at(&world.server.url(&package)).version(VERSION);
    for key in ["GITLAB_TOKEN", "GITLAB_ACCESS_TOKEN", "gitlab-access-token"] {
        world.fetch(&wanted.clone().secret(&[(key, "T"), ("GITLAB_HOSTS", &host)])).await.unwrap();
        let error = world.fetch(&wanted.clone().secret(&[(key, "T")])).await.unwrap_err();
        assert!(error.to_string().contains(&format!("GITLAB_HOSTS must name {host}")), "{error}");
    }
    let wanted = Wanted::at(&format!("oci://{host}/providers/capi")).version(VERSION);
    let user = [("OCI_USERNAME", "me"), ("OCI_PASSWORD", "P"), ("OCI_HOST", host.as_str())];
    world.fetch(&wanted.clone().secret(&user)).await.unwrap();
    let error = world.fetch(&wanted.clone().secret(&user[..2])).await.unwrap_err();
    assert!(error.to_string().contains(&format!("OCI_HOST must name {host}")), "{error}");
    let error = world.fetch(&wanted).await.unwrap_err();
    assert!(error.to_string().contains("OCI_USERNAME, OCI_PASSWORD and OCI_HOST are read from"), "{error}");
}

#[tokio::test]
async fn nothing_of_a_secret_is_shown() {
    canary::search_the_log();
    for fault in [None, Some(Fault::Status(401)), Some(Fault::Status(500)), Some(Fault::LoginPage)] {
        let world = World::new().await;
        world.publish(VERSION, &metadata(&["1.13=v1beta2"]), "a: ${REGION}\n");
        let host = world.server.host();
        let keys = ["REGION", "OTHER", "GITHUB_TOKEN", "GITLAB_TOKEN", "OCI_USERNAME", "OCI_PASSWORD"];
        let mut data: Vec<_> = keys.iter().map(|it| (*it, CANARY)).collect();
        data.extend(["GITHUB_HOSTS", "GITLAB_HOSTS", "OCI_HOST"].map(|it| (it, host.as_str())));
        let at = |url: &str| Wanted::at(url).version(VERSION).secret(&data);
        let right = at(&world.releases());
        canary::assert_not_in("the request", &format!("{:?}", right.request()));
        canary::assert_not_in("the fetcher", &format!("{:?}", world.fetcher));
        match &fault {
            None => {
                let found = world.fetch(&right).await.unwrap();
                assert_eq!(found.variables["REGION"], CANARY);
                canary::assert_not_in("the release", &format!("{found:?}"));
            }
            Some(fault) => {
                world.server.inject("", usize::MAX, fault.clone());
                assert_nothing_shown(&world, &right).await;
            }
        }

        let mut wrong = vec![
            right.clone().version("v9.9.9"),
            at(&world.server.url("/api/v4/projects/42/packages/generic/capi/v1.13.0/f.yaml")),
            at(&format!("oci://{host}/providers/capi")),
            at(&format!("https://me:{CANARY}@{host}/o/r/releases?{CANARY}")),
            at(&format!("http://me:{CANARY}@h/o/r/releases")),
        ];
        let mut binary = right.clone();
        for value in binary.secret.as_mut().unwrap().data.as_mut().unwrap().values_mut() {
            value.0.push(0xff);
        }
        wrong.push(binary);
        let overrides = [
            CANARY.to_owned(),
            format!("all: {{repository: {CANARY}, tag: [{CANARY}"),
            format!("{CANARY}: {CANARY}"),
            format!("all: {{{CANARY}: {CANARY}}}"),
        ];
        for images in &overrides {
            let data = [data.clone(), vec![("images", images.as_str())]].concat();
            wrong.push(right.clone().secret(&data));
        }
        for wanted in &wrong {
            assert_nothing_shown(&world, wanted).await;
        }
    }
    canary::assert_never_seen();
}

async fn assert_nothing_shown(world: &World, wanted: &Wanted) {
    let error = world.fetch(wanted).await.unwrap_err();
    canary::assert_not_in("an error", &format!("{error} {error:?}"));
    let with_causes = std::iter::successors(Some(&error as &dyn std::error::Error), |it| it.source());
    for cause in with_causes {
        canary::assert_not_in("a cause", &format!("{cause} {cause:?}"));
    }
}
