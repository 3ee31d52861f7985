//! Releases at addresses, and those that a provider's name stands for.

use capstan_api::{
    operator::{FetchConfiguration, reason},
    provider::ProviderType,
};
use capstan_operator::fetch::LISTINGS_MAX_AGE;
use capstan_repository::Environment;
use capstan_testkit::fakes::{FakeArtifact, FakeRepository, Fault};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::world::{COMPONENTS, REPOSITORY, Wanted, World, metadata, pass};

const SERIES: &[&str] = &["0.4=v1beta2", "1.12=v1beta2", "1.13=v1beta2", "1.14=v1beta2"];

#[tokio::test]
async fn a_pinned_version_is_read_where_its_release_is_and_asks_for_no_list() {
    let world = World::new().await;
    world.publish("v0.4.9", &metadata(SERIES), "kind: ${KIND:=Namespace}\n");
    let found = world.fetch(&Wanted::at(&world.releases()).version("v0.4.9")).await.unwrap();
    assert_eq!((found.version.as_str(), found.contract.as_str()), ("v0.4.9", "v1beta2"));
    assert_eq!(
        (found.metadata, found.components),
        (metadata(SERIES), "kind: ${KIND:=Namespace}\n".to_owned())
    );
    assert_eq!(found.url, world.releases());
    assert!(found.origin.ends_with(COMPONENTS), "{}", found.origin);
    for request in world.server.requests() {
        let at_release = format!("/{REPOSITORY}/releases/download/v0.4.9/");
        let is_file = request.path.starts_with(&at_release) || request.path.starts_with("/storage/");
        assert!(is_file, "{request:?}");
    }
}

#[tokio::test]
async fn any_server_with_the_files_in_their_places_will_do() {
    let world = World::new().await;
    let (short, long) = ("/o/r/releases/download/v0.4.9", "/mirror/acme/releases/v1.13.0");
    for folder in [short, long] {
        world.server.file(&format!("{folder}/metadata.yaml"), metadata(SERIES));
        world.server.file(&format!("{folder}/{COMPONENTS}"), folder);
    }
    world.server.file(&format!("{long}/other.yaml"), "other");
    world.server.file("/plain/v1.13.0/metadata.yaml", metadata(SERIES));
    world.server.file("/plain/v1.13.0/acme.yaml", "plain");
    for (path, version, expected) in [
        ("/o/r/releases", Some("v0.4.9"), short),
        ("/o/r/releases/", Some("v0.4.9"), short),
        ("/o/r/releases/latest/infrastructure-components.yaml", Some("v0.4.9"), short),
        ("/o/r/releases/download/v0.4.9/infrastructure-components.yaml", None, short),
        ("/mirror/acme/releases/v1.13.0/infrastructure-components.yaml", None, long),
        ("/mirror/acme/releases/latest/infrastructure-components.yaml", Some("v1.13.0"), long),
        ("/mirror/acme/releases/v1.13.0/other.yaml", Some("v1.13.0"), "other"),
        ("/plain/v1.13.0/acme.yaml", None, "plain"),
        ("/plain/latest/acme.yaml", Some("v1.13.0"), "plain"),
    ] {
        let wanted = Wanted { version: version.map(str::to_owned), ..Wanted::at(&world.server.url(path)) };
        assert_eq!(world.fetch(&wanted).await.unwrap().components, expected, "{path}");
    }
    // Which releases there are, such a server cannot say.
    for path in ["/o/r/releases", "/plain/latest/acme.yaml"] {
        let wanted = Wanted::at(&world.server.url(path));
        for error in [world.latest(&wanted).await.unwrap_err(), world.fetch(&wanted).await.unwrap_err()] {
            assert!(error.to_string().contains("set spec.version"), "{error}");
            assert_eq!(error.reason(), reason::COMPONENTS_FETCH);
        }
    }
}

#[tokio::test]
async fn the_latest_is_stable_and_new_releases_are_seen() {
    let world = World::new().await;
    let text = metadata(SERIES);
    for tag in ["v1.12.0", "v1.13.0", "v1.14.0-rc.0", "nightly"] {
        world.publish(tag, &text, tag);
    }
    let wanted = Wanted::at(&world.releases());
    assert_eq!(world.latest(&wanted).await.unwrap(), "v1.13.0");
    let found = world.fetch(&wanted).await.unwrap();
    assert_eq!((found.version.as_str(), found.components.as_str()), ("v1.13.0", "v1.13.0"));
    assert_eq!(world.latest(&wanted.clone().version("")).await.unwrap(), "v1.13.0");
    assert_eq!(world.latest(&wanted.clone().version("latest")).await.unwrap(), "v1.13.0");
    world.server.forget_requests();
    assert_eq!(world.latest(&wanted.clone().version("v9.9.9")).await.unwrap(), "v9.9.9");
    assert!(world.server.requests().is_empty(), "what is given needs no search");

    world.publish("v1.13.1", &text, "v1.13.1");
    pass(LISTINGS_MAX_AGE);
    assert_eq!(world.latest(&wanted).await.unwrap(), "v1.13.1");
}

#[tokio::test]
async fn releases_without_a_v_are_found_by_versions_with_it() {
    let world = World::new().await;
    world.publish("1.13.0", &metadata(SERIES), "text");
    let wanted = Wanted::at(&world.releases());
    assert_eq!(world.latest(&wanted).await.unwrap(), "v1.13.0");
    let found = world.fetch(&wanted.version("v1.13.0")).await.unwrap();
    assert_eq!((found.version.as_str(), found.components.as_str()), ("v1.13.0", "text"));
}

#[tokio::test]
async fn a_name_stands_for_its_repository() {
    let world = World::new().await;
    let repositories = [
        (ProviderType::Infrastructure, "vsphere", "kubernetes-sigs/cluster-api-provider-vsphere", COMPONENTS),
        (ProviderType::Core, "cluster-api", "kubernetes-sigs/cluster-api", "core-components.yaml"),
        (
            ProviderType::Infrastructure,
            "docker",
            "kubernetes-sigs/cluster-api",
            "infrastructure-components-development.yaml",
        ),
        (
            ProviderType::RuntimeExtension,
            "nutanix",
            "nutanix-cloud-native/cluster-api-runtime-extensions-nutanix",
            "runtime-extensions-components.yaml",
        ),
    ];
    for (kind, name, repository, file) in repositories {
        let files = [("metadata.yaml", metadata(SERIES)), (file, format!("{name} there"))];
        let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
        world.server.github(repository, |it| {
            *it = FakeRepository::default();
            it.release("v1.13.0", &files);
        });
        let found = world.fetch(&Wanted::named(kind, name).version("v1.13.0")).await.unwrap();
        assert_eq!(found.components, format!("{name} there"));
        assert_eq!(found.url, format!("https://github.com/{repository}/releases/latest/{file}"));
        assert!(world.server.requests().iter().any(|it| it.host == "github.com"));
        // The same files are expected elsewhere.
        world.server.github("myorg/fork", |it| {
            *it = FakeRepository::default();
            it.release("v1.13.0", &files);
        });
        let fork = Wanted::at(&world.server.url("/myorg/fork/releases")).version("v1.13.0");
        assert_eq!(
            world.fetch(&Wanted { kind, name, ..fork }).await.unwrap().origin.rsplit('/').next(),
            Some(file)
        );
    }
    world.server.forget_requests();
    let error = world.fetch(&Wanted::named(ProviderType::Infrastructure, "vpshere")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no InfrastructureProvider named \"vpshere\" is built in (there is vsphere): set spec.fetchConfig.url to the \
         address of its releases, or spec.fetchConfig.selector to the labels of ConfigMaps that hold them"
    );
    assert_eq!((error.reason(), error.is_transient()), (reason::FETCH_CONFIG_INVALID, false));
    assert!(world.server.requests().is_empty());
}

#[tokio::test]
async fn packages_and_artifacts_are_releases() {
    let world = World::new().await;
    let text = metadata(SERIES);
    for version in ["v1.12.0", "v1.13.0"] {
        for (file, content) in [("metadata.yaml", text.as_str()), (COMPONENTS, version)] {
            world.server.gitlab_file("42", "capi", version, file, content);
        }
        let files = [("metadata.yaml", text.as_str()), (COMPONENTS, version)];
        world.server.artifact("providers/capi", version, FakeArtifact::files(&files));
    }
    let package = "/api/v4/projects/42/packages/generic/capi/latest/infrastructure-components.yaml";
    let host = world.server.host();
    for (url, pinned) in
        [(world.server.url(package), "v1.12.0"), (format!("oci://{host}/providers/capi"), "v1.12.0")]
    {
        let wanted = Wanted::at(&url);
        assert_eq!(world.latest(&wanted).await.unwrap(), "v1.13.0", "{url}");
        assert_eq!(world.fetch(&wanted.version(pinned)).await.unwrap().components, pinned, "{url}");
    }
    let tagged = Wanted::at(&format!("oci://{host}/providers/capi:v1.12.0"));
    assert_eq!(world.latest(&tagged).await.unwrap(), "v1.12.0");
    let error = world.fetch(&tagged.version("v1.13.0")).await.unwrap_err();
    assert!(
        error.to_string().contains("correct spec.version, or the tag in spec.fetchConfig.url"),
        "{error}"
    );
    assert!(!error.is_transient());
}

#[tokio::test]
async fn one_source_is_named_and_nothing_of_this_machine_is_read() {
    let world = World::new().await;
    let both = FetchConfiguration { url: Some(world.releases()), selector: Some(LabelSelector::default()) };
    let empty = FetchConfiguration { url: Some(" ".to_owned()), selector: None };
    for (config, found) in [
        (both, "and has both"),
        (FetchConfiguration::default(), "and has neither"),
        (empty, "and has an empty url"),
    ] {
        let error = world.fetch(&Wanted { config: Some(config), ..Wanted::at("") }).await.unwrap_err();
        assert!(error.to_string().contains(found), "{error}");
        assert_eq!((error.reason(), error.is_transient()), (reason::FETCH_CONFIG_INVALID, false));
    }
    let plain = format!("http://{}/o/r/releases", world.server.plain_host());
    for url in [
        plain.as_str(),
        "file:///etc/infrastructure-awesome/v1.0.0/f.yaml",
        "FILE:///etc/infrastructure-awesome/v1.0.0/f.yaml",
        "/etc/infrastructure-awesome/v1.0.0/f.yaml",
        " file:///etc/infrastructure-awesome/v1.0.0/f.yaml ",
        "ftp://h/o/r/releases",
        "https://h/o/r",
        "https://github.com/o/r",
        "oci://h.io/O/R",
        "git@github.com:o/r.git",
        "nonsense",
    ] {
        for version in [None, Some("v1.0.0".to_owned())] {
            let error = world.fetch(&Wanted { version, ..Wanted::at(url) }).await.unwrap_err();
            assert!(error.to_string().starts_with("spec.fetchConfig.url "), "{url}: {error}");
            assert_eq!(
                (error.reason(), error.is_transient()),
                (reason::FETCH_CONFIG_INVALID, false),
                "{url}"
            );
        }
    }
    let nightly = Wanted::at("https://github.com/o/r/releases/nightly/f.yaml");
    let error = world.latest(&nightly).await.unwrap_err();
    assert!(error.to_string().contains("it names the release nightly, which is not a version"), "{error}");
    assert!(world.server.requests().is_empty());
}

#[tokio::test]
async fn what_is_missing_or_wrong_is_told() {
    let world = World::new().await;
    world.publish("v1.12.0", &metadata(&["0.3=v1alpha3", "1.12=v1alpha4"]), "text");
    world.publish("v1.13.0", "kind: Metadata\n", "text");
    world.publish("v1.14.0", &metadata(SERIES), "a: b\nc: ${A$B}\n");
    world.server.github(REPOSITORY, |it| {
        it.release("v1.15.0", &[("metadata.yaml", &metadata(&["1.15=v1beta2"])), ("other.yaml", "text")]);
    });
    let wanted = Wanted::at(&world.releases());
    for (version, reason, transient, parts) in [
        ("v9.9.9", reason::COMPONENTS_FETCH, true, &["not found: release v9.9.9", "check spec.version"][..]),
        (
            "v1.15.0",
            reason::COMPONENTS_FETCH,
            true,
            &["not found: infrastructure-components.yaml of release v1.15.0"],
        ),
        (
            "v1.12.0",
            reason::CONTRACT_MISMATCH,
            true,
            &["v1.12.0 speaks contract v1alpha4", "set spec.version"],
        ),
        (
            "v1.13.0",
            reason::COMPONENTS_FETCH,
            true,
            &["apiVersion must be clusterctl.cluster.x-k8s.io/v1alpha3"],
        ),
        ("v1.14.0", reason::COMPONENTS_FETCH, false, &["infrastructure-components.yaml: line 2", "${A$B}"]),
        ("../v1", reason::COMPONENTS_FETCH, false, &["set spec.version to a version such as v1.2.3"]),
    ] {
        let error = world.fetch(&wanted.clone().version(version)).await.unwrap_err();
        assert!(parts.iter().all(|it| error.to_string().contains(it)), "{error}");
        assert_eq!((error.reason(), error.is_transient()), (reason, transient), "{error}");
    }
    world.server.inject("metadata.yaml$", usize::MAX, Fault::Status(503));
    world.server.inject("/api/", usize::MAX, Fault::Status(503));
    let error = world.fetch(&wanted.clone().version("v1.14.0")).await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("HTTP 503"), "{error}");
    world.server.stop();
    let error = world.fetch(&wanted.version("v1.14.0")).await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("HTTPS_PROXY"), "{error}");
}

#[tokio::test]
async fn only_variables_that_are_used_are_kept_and_the_secret_comes_first() {
    let variables = [("REGION", "environment"), ("LEVEL", "environment"), ("HOME", "environment")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let environment = Environment { variables, ..Environment::default() };
    let world = World::with(|it, _| *it = environment).await;
    let components = "a: ${REGION} ${LEVEL:=1} ${NAME:=${NESTED}} ${ACCOUNT} ${ZONE}\n";
    world.publish("v1.13.0", &metadata(SERIES), components);
    let images = "all: {repository: r.io/mirror}";
    let secret = [("REGION", "secret"), ("NESTED", "secret"), ("OTHER", "secret"), ("images", images)];
    let wanted = Wanted::at(&world.releases()).version("v1.13.0").secret(&secret);
    let found = world.fetch(&wanted).await.unwrap();
    let kept: Vec<_> = found.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(kept, ["LEVEL=environment", "NESTED=secret", "REGION=secret"]);
    assert_eq!(found.missing_variables(), ["ACCOUNT", "ZONE"]);
    assert_eq!(found.images, images);
    let source = found.source(ProviderType::Infrastructure, "awesome", None).unwrap();
    let image = source.images.apply("infrastructure-awesome", "k8s.io/capi/manager:v1").unwrap();
    assert_eq!(image, "r.io/mirror/manager:v1");
}
