//! What is known of a repository before anything is read from it.

use capstan_api::provider::ProviderType;
use capstan_repository::{
    Config, Environment, FetchError, LATEST, Provider, ReleaseFiles, Repository, RepositoryError,
    config::Format,
};

use crate::folder::{http, metadata};

fn open(url: &str) -> Result<Repository, RepositoryError> {
    let provider =
        Provider { name: "aws".to_owned(), kind: ProviderType::Infrastructure, url: url.to_owned() };
    let config = Config::parse("", Format::Yaml, "config", &Environment::default()).unwrap();
    Repository::open(&provider, &config, &http())
}

#[tokio::test]
async fn a_named_version_needs_no_network_and_the_address_may_name_one() {
    const OWN: &str = "infrastructure-components.yaml";
    for (url, wanted, version, file) in [
        ("https://github.com/o/r/releases/latest/x.yaml", Some("v1.2.3"), Ok("v1.2.3"), "x.yaml"),
        ("https://github.com/o/r/releases/v1.0.0/x.yaml", None, Ok("v1.0.0"), "x.yaml"),
        ("https://github.com/o/r/releases/v1.0.0/x.yaml", Some("v1.2.3"), Ok("v1.2.3"), "x.yaml"),
        ("https://github.com/o/r/releases", Some("v1.2.3"), Ok("v1.2.3"), OWN),
        (
            "https://gitlab.com/api/v4/projects/p/packages/generic/n/v1.0.0/x.yaml",
            None,
            Ok("v1.0.0"),
            "x.yaml",
        ),
        ("https://files.corp/aws/v1.0.0/x.yaml", None, Ok("v1.0.0"), "x.yaml"),
        ("oci://ghcr.io/o/r", Some("v1.2.3"), Ok("v1.2.3"), OWN),
        ("oci://ghcr.io/o/r:v1.0.0", None, Ok("v1.0.0"), OWN),
        ("oci://ghcr.io/o/r:v1.0.0", Some("1.0.0"), Ok("1.0.0"), OWN),
        (
            "oci://ghcr.io/o/r:v1.0.0",
            Some("v1.2.3"),
            Err("is the address of v1.0.0 only, not of v1.2.3"),
            OWN,
        ),
        (
            "oci://ghcr.io/o/r@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            Some("v1.2.3"),
            Ok("v1.2.3"),
            OWN,
        ),
        (
            "oci://ghcr.io/o/r@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            None,
            Err("which is no version: name the version that it is"),
            OWN,
        ),
        // Only now would the network be needed, which is not to be used here.
        ("https://github.com/o/r/releases/latest/x.yaml", None, Err("infrastructure-aws: "), "x.yaml"),
        (
            "https://files.corp/aws/latest/x.yaml",
            None,
            Err("latest: \"latest\" is not a semantic version"),
            "x.yaml",
        ),
    ] {
        let repository = open(url).unwrap();
        assert_eq!(repository.components_file(), file, "{url}");
        assert_eq!(repository.label(), "infrastructure-aws");
        match (repository.version(wanted).await, version) {
            (Ok(chosen), Ok(version)) => assert_eq!(chosen.version, version, "{url}"),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{url}: {error}"),
            (outcome, _) => panic!("{url}: {outcome:?}"),
        }
    }
    let error = open("https://files.corp/aws/latest/x.yaml").unwrap().version(None).await.unwrap_err();
    let RepositoryError::NoUsableVersion { skipped, .. } = &error else { panic!("{error:?}") };
    assert_eq!(skipped.first().map(|it| it.version.as_str()), Some(LATEST));
}

#[tokio::test]
async fn a_network_that_fails_does_not_make_releases_unusable() {
    let repository = open("https://files.corp/aws/v1.0.0/x.yaml").unwrap();
    let error = repository.version(Some("latest")).await.unwrap_err();
    assert!(matches!(error, RepositoryError::Fetch { source: FetchError::Offline { .. }, .. }), "{error}");
}

#[test]
fn addresses_that_cannot_be_are_refused_at_once() {
    for url in [
        "/r/infrastructure-aws/newest/x.yaml",
        "/r/infrastructure-aws/../x.yaml",
        "/r/aws/latest/x.yaml",
        "relative/infrastructure-aws/latest/x.yaml",
        "http://github.com/o/r/releases/latest/x.yaml",
        "ftp://h/v1.0.0/x.yaml",
        "https://github.com/o/r/x.yaml",
        "words",
    ] {
        let error = open(url).err().unwrap().to_string();
        assert!(error.starts_with("infrastructure-aws: ") && error.contains(url), "{error}");
    }
}

#[tokio::test]
async fn the_secrets_of_an_address_stay_out_of_messages() {
    for url in [
        "https://user:s3cret@h/no-version/f.yaml?sig=s3cret",
        "https://user:s3cret@github.com/o/r/tags?sig=s3cret",
        "https://user:s3cret@[h/v1.0.0/f.yaml?sig=s3cret",
        "https://h/v1.0.0/f.yaml?sig=s3cret#sha256=12",
        "http://user:s3cret@h/v1.0.0/f.yaml",
        "user:s3cret@h/v1.0.0/f.yaml?sig=s3cret",
        "oci://user:s3cret@h.io/r",
        "oci://h.io/r?sig=s3cret",
    ] {
        let Err(error) = open(url) else { panic!("{url}") };
        let told = format!("{error} {error:?}");
        assert!(told.contains("cannot be used") && !told.contains("s3cret"), "{told}");
    }
    // A plain server knows no versions.
    let url = "https://user:s3cret@h/a/latest/f.yaml?sig=s3cret";
    let error = open(url).unwrap().version(None).await.unwrap_err();
    let told = format!("{error} {error:?}");
    assert!(matches!(error, RepositoryError::NoUsableVersion { .. }), "{told}");
    assert!(told.contains("https://h/a/latest/f.yaml") && !told.contains("s3cret"), "{told}");
}

#[tokio::test]
async fn an_address_on_the_network_is_no_folder_and_names_its_file_or_has_the_usual_one() {
    let open = |kind, name: &str, url: &str| {
        let provider = Provider { name: name.to_owned(), kind, url: url.to_owned() };
        Repository::on_network(&provider, &http())
    };
    let (infrastructure, extension) = (ProviderType::Infrastructure, ProviderType::RuntimeExtension);
    for (kind, name, url, file) in [
        (infrastructure, "aws", "https://git.corp/o/r/releases", "infrastructure-components.yaml"),
        (
            infrastructure,
            "docker",
            "https://git.corp/o/r/releases",
            "infrastructure-components-development.yaml",
        ),
        (infrastructure, "docker", "https://git.corp/o/r/releases/latest/x.yaml", "x.yaml"),
        (infrastructure, "docker", "oci://h.io/r", "infrastructure-components.yaml"),
        (extension, "nutanix", "https://git.corp/o/r/releases", "runtime-extensions-components.yaml"),
        (extension, "mine", "https://git.corp/o/r/releases", "runtime-extension-components.yaml"),
    ] {
        let repository = open(kind, name, url).unwrap();
        assert_eq!((repository.components_file(), repository.shown_url()), (file, url), "{kind} {name}");
    }
    for url in ["/r/infrastructure-aws/v1.0.0/x.yaml", "file:///r/infrastructure-aws/v1.0.0/x.yaml"] {
        let error = open(infrastructure, "aws", url).err().unwrap();
        let is_refused =
            matches!(error, RepositoryError::Fetch { source: FetchError::InvalidUrl { .. }, .. });
        assert!(is_refused, "{error}");
    }
}

#[tokio::test]
async fn a_release_that_the_caller_has_is_a_repository() {
    let release = ReleaseFiles {
        version: "v1.2.3".to_owned(),
        metadata: metadata("1.2=v1beta2"),
        components: "text".to_owned(),
        origin: "where it was".to_owned(),
    };
    let provider =
        Provider { name: "aws".to_owned(), kind: ProviderType::Infrastructure, url: String::new() };
    let repository = Repository::in_memory(&provider, release);
    assert_eq!(repository.version(None).await.unwrap().version, "v1.2.3");
    let file = repository.components("1.2.3").await.unwrap();
    assert_eq!((file.text.as_str(), file.origin.as_str()), ("text", "where it was"));
    let file = repository.metadata_file("v1.2.3").await.unwrap();
    assert_eq!(file.text, metadata("1.2=v1beta2"));
    assert_eq!(file.origin, "the metadata.yaml beside where it was");
    for error in [
        repository.components("v1.2.4").await.unwrap_err(),
        repository.template("v1.2.3", None).await.unwrap_err(),
    ] {
        assert!(error.is_not_found(), "{error}");
    }
}
