//! GitLab's generic packages.

use capstan_repository::FetchError;
use capstan_repository::remote::{GitLab, Http, Remote};

use crate::world::World;

const ADDRESS: &str =
    "https://gitlab.example.com/api/v4/projects/group%2Fproject/packages/generic/capi/v1.0.0/components.yaml";

async fn world() -> World {
    let world = World::new().await;
    for version in ["v1.0.0", "v1.1.0", "v1.2.0"] {
        world.server.gitlab_file("group/project", "capi", version, "components.yaml", version);
        world.server.gitlab_file("group/project", "capi", version, "metadata.yaml", "kind: Metadata");
        world.server.gitlab_file("group/project", "capi", version, "cluster-template.yaml", "kind: Cluster");
    }
    world.server.gitlab_file("group/project", "capi-other", "v9.0.0", "components.yaml", "other");
    world
}

fn source() -> GitLab {
    GitLab::parse(ADDRESS).unwrap()
}

fn with_token(world: &World, token: &str) -> Http {
    world.http_with(|options| {
        options.gitlab_token = Some(token.to_owned());
        options.gitlab_hosts = vec!["gitlab.example.com".to_owned()];
    })
}

#[tokio::test]
async fn files_of_any_version_come_from_the_registry() {
    let world = world().await;
    let content = source().file(&world.http(), "v1.1.0", "components.yaml").await.unwrap();
    assert_eq!(content, b"v1.1.0");
    assert_eq!(
        world.server.requests()[0].path,
        "/api/v4/projects/group%2Fproject/packages/generic/capi/v1.1.0/components.yaml"
    );
}

#[tokio::test]
async fn all_versions_of_this_very_package_are_listed() {
    let world = world().await;
    assert_eq!(source().versions(&world.http()).await.unwrap(), ["v1.0.0", "v1.1.0", "v1.2.0"]);
    assert_eq!(world.server.requests().len(), 2, "four packages are two pages");
}

#[tokio::test]
async fn all_files_of_a_version_are_listed() {
    let world = world().await;
    let mut files = source().files(&world.http(), "v1.1.0").await.unwrap().unwrap();
    files.sort();
    assert_eq!(files, ["cluster-template.yaml", "components.yaml", "metadata.yaml"]);
}

#[tokio::test]
async fn a_missing_version_says_which_there_are() {
    let world = world().await;
    let error = source().files(&world.http(), "v7.0.0").await.unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(error.available(), ["v1.0.0", "v1.1.0", "v1.2.0"]);
    assert!(source().file(&world.http(), "v7.0.0", "metadata.yaml").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_private_project_wants_its_token() {
    let world = world().await;
    world.server.gitlab_token("secret");
    for http in [world.http(), with_token(&world, "other"), with_token(&world, "")] {
        let error = source().file(&http, "v1.0.0", "components.yaml").await.unwrap_err();
        let FetchError::Unauthorized { status: 401, variable, .. } = &error else { panic!("{error:?}") };
        assert_eq!(variable.as_deref(), Some("GITLAB_ACCESS_TOKEN"));
    }
    let http = with_token(&world, "secret");
    assert_eq!(source().file(&http, "v1.0.0", "components.yaml").await.unwrap(), b"v1.0.0");
    assert_eq!(source().versions(&http).await.unwrap().len(), 3);
}

#[tokio::test]
async fn the_host_may_have_any_name() {
    let world = world().await;
    let address = ADDRESS.replace("gitlab.example.com", &world.server.host());
    let source = Remote::parse(&address).unwrap();
    assert!(matches!(source, Remote::GitLab(_)));
    assert_eq!(source.file(&world.http(), "v1.2.0", "components.yaml").await.unwrap(), b"v1.2.0");
}

#[tokio::test]
async fn the_token_is_only_for_hosts_that_are_listed() {
    let world = world().await;
    world.server.gitlab_token("secret");
    let host = world.server.host();
    let name = host.split(':').next().unwrap();
    let elsewhere = GitLab::parse(&ADDRESS.replace("gitlab.example.com", &host)).unwrap();
    let listing = |hosts: &[&str]| {
        world.http_with(|options| {
            options.gitlab_token = Some("secret".to_owned());
            options.gitlab_hosts = hosts.iter().map(|it| (*it).to_owned()).collect();
        })
    };
    let error = elsewhere.file(&listing(&["other.corp"]), "v1.0.0", "components.yaml").await.unwrap_err();
    let FetchError::Unauthorized { withheld: Some(withheld), .. } = &error else { panic!("{error:?}") };
    let expected = format!("GITLAB_HOSTS must name {host} before it is sent your credentials");
    assert_eq!(withheld.to_string(), expected);
    assert!(elsewhere.versions(&listing(&[])).await.is_err());
    assert!(source().versions(&listing(&["other.corp"])).await.is_err(), "a name proves nothing");
    assert!(!world.showed_credentials_to(&host) && !world.showed_credentials_to("gitlab.example.com"));

    for entry in [host.as_str(), name, &format!(" {host} ")] {
        let content = elsewhere.file(&listing(&["other.corp", entry]), "v1.0.0", "components.yaml").await;
        assert_eq!(content.unwrap(), b"v1.0.0", "{entry}");
    }
}

#[tokio::test]
async fn a_missing_file_may_be_one_that_only_the_token_shows() {
    let world = world().await;
    let elsewhere = GitLab::parse(&ADDRESS.replace("gitlab.example.com", &world.server.host())).unwrap();
    for (http, variable) in
        [(with_token(&world, "secret"), "GITLAB_HOSTS"), (world.http(), "GITLAB_ACCESS_TOKEN")]
    {
        let error = elsewhere.file(&http, "v7.0.0", "components.yaml").await.unwrap_err();
        assert!(error.is_not_found() && error.to_string().contains(variable), "{error}");
    }
}
