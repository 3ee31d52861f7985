//! Which version is taken.

use std::fs;

use capstan_repository::{CertManager, Config, Repository, config::Format};

use crate::folder::{Folder, http, metadata};

#[tokio::test]
async fn named_versions_cost_nothing_and_others_are_looked_up() {
    let folder = Folder::new("versions");
    folder
        .release("v1.0.0", "1.0=v1beta2")
        .release("v1.1.0", "1.1=v1beta2")
        .release("v2.0.0-rc.0", "2.0=v1beta2");
    for (address, wanted, expected) in [
        ("latest", None, Ok("v1.1.0")),
        ("latest", Some("latest"), Ok("v1.1.0")),
        ("v1.0.0", None, Ok("v1.0.0")),
        ("v1.0.0", Some("latest"), Ok("v1.1.0")),
        ("latest", Some("v1.0.0"), Ok("v1.0.0")),
        ("v1.0.0", Some("v2.0.0-rc.0"), Ok("v2.0.0-rc.0")),
        // Whether they exist is reported when their files are read.
        ("latest", Some("v9.9.9"), Ok("v9.9.9")),
        ("latest", Some("main"), Ok("main")),
        ("latest", Some(".."), Err("the version \"..\" cannot be part of a file name")),
        ("latest", Some("a/b"), Err("the version \"a/b\"")),
        ("latest", Some("a\\b"), Err("the version")),
        ("latest", Some("a\u{0}b"), Err("the version")),
        ("latest", Some(""), Err("the version \"\"")),
    ] {
        let chosen = folder.repository(address).unwrap().version(wanted).await;
        match (chosen, expected) {
            (Ok(chosen), Ok(version)) => assert_eq!(chosen.version, version, "{address} {wanted:?}"),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (chosen, _) => panic!("{address} {wanted:?}: {chosen:?}"),
        }
    }
}

#[tokio::test]
async fn a_named_version_with_overrides_needs_no_repository() {
    let folder = Folder::new("overrides-only");
    folder.write("o/infrastructure-mine/v1.0.0/metadata.yaml", metadata("1.0=v1beta2"));
    folder.write("o/infrastructure-mine/v1.0.0/infrastructure-components.yaml", "replaced");
    let config = format!("overridesFolder: {}", folder.text("o"));
    let repository = folder.repository_with("latest", &config).unwrap();
    let chosen = repository.version(Some("v1.0.0")).await.unwrap();
    assert!(repository.metadata(&chosen.version).await.is_ok());
    assert_eq!(repository.components(&chosen.version).await.unwrap().text, "replaced");
    let message = repository.version(None).await.unwrap_err().to_string();
    assert!(message.contains("infrastructure-mine: not found: the folder"), "{message}");
}

#[tokio::test]
async fn what_cannot_be_used_is_passed_over_with_its_reason() {
    let folder = Folder::new("passed-over");
    folder
        .release("v1.0.0", "1.0=v1beta2")
        .release("nightly", "1.0=v1beta2")
        .release(".hidden", "1.0=v1beta2");
    folder.write("r/infrastructure-mine/v1.9.0/infrastructure-components.yaml", "no metadata");
    folder.write("r/infrastructure-mine/v1.8.0/metadata.yaml", "<!DOCTYPE html><html>Log in</html>");
    folder.write("r/infrastructure-mine/v1.7.0/metadata.yaml", "kind: Metadata\n");
    folder.write("r/infrastructure-mine/v1.6.0/metadata.yaml", [0xff, 0xfe]);
    folder.release("v1.5.0", "1.5=v1alpha4").release("v1.4.0", "1.3=v1beta2");
    folder.write("r/infrastructure-mine/v9.9.9", "a file, not a folder");
    let chosen = folder.repository("latest").unwrap().version(None).await.unwrap();
    assert_eq!(chosen.version, "v1.0.0");
    let expected = [
        ("nightly", "is not a semantic version"),
        ("v1.9.0", "not found: "),
        ("v1.8.0", "is a web page"),
        ("v1.7.0", "apiVersion must be"),
        ("v1.6.0", "is not UTF-8"),
        ("v1.5.0", "speaks contract v1alpha4"),
        ("v1.4.0", "does not list the release series of v1.4.0; it lists 1.3 (v1beta2)"),
    ];
    assert_eq!(chosen.skipped.len(), expected.len(), "{:?}", chosen.skipped);
    for (skipped, (version, part)) in chosen.skipped.iter().zip(expected) {
        assert_eq!(skipped.version, version);
        assert!(skipped.reason.contains(part), "{}", skipped.reason);
    }

    let (versions, skipped) = folder.repository("latest").unwrap().versions().await.unwrap();
    let versions: Vec<_> = versions.iter().map(ToString::to_string).collect();
    assert_eq!(versions, ["v1.9.0", "v1.8.0", "v1.7.0", "v1.6.0", "v1.5.0", "v1.4.0", "v1.0.0"]);
    assert_eq!(skipped.len(), 1);
}

#[tokio::test]
async fn an_override_of_the_metadata_counts_for_the_choice() {
    let folder = Folder::new("override-choice");
    folder.release("v1.0.0", "1.0=v1beta2").release("v1.1.0", "1.0=v1beta2");
    folder.write(
        "home/.config/cluster-api/overrides/infrastructure-mine/v1.1.0/metadata.yaml",
        metadata("1.1=v1beta2"),
    );
    let chosen = folder.repository("latest").unwrap().version(None).await.unwrap();
    assert_eq!((chosen.version.as_str(), chosen.skipped.len()), ("v1.1.0", 0));
}

#[tokio::test]
async fn folders_without_v_are_versions_too() {
    let folder = Folder::new("without-v");
    folder.release("1.0.0", "1.0=v1beta2").release("1.1.0", "1.1=v1beta2");
    let repository = folder.repository("latest").unwrap();
    let chosen = repository.version(None).await.unwrap();
    assert_eq!(chosen.version, "1.1.0");
    assert_eq!(repository.components(&chosen.version).await.unwrap().text, "components of 1.1.0\n");
}

#[tokio::test]
async fn a_repository_without_usable_versions_tells_why() {
    let folder = Folder::new("no-usable");
    folder.release("v0.1.0", "0.1=v1alpha3").release("main", "0.1=v1beta2");
    let error = folder.repository("latest").unwrap().version(None).await.unwrap_err();
    let message = error.to_string();
    for part in ["infrastructure-mine", "main: ", "v0.1.0: ", "only v1beta2 and v1beta1 can be managed"] {
        assert!(message.contains(part), "{message}");
    }

    folder.write("r/infrastructure-mine/v0.2.0/other.yaml", "");
    let error = folder.repository("latest").unwrap().version(None).await.unwrap_err();
    let message = error.to_string();
    assert!(message.contains("; v0.2.0: not found: "), "{message}");
    assert_eq!(message.matches("infrastructure-mine: ").count(), 0, "a provider is named once: {message}");

    fs::remove_dir_all(folder.path("r/infrastructure-mine")).unwrap();
    fs::create_dir_all(folder.path("r/infrastructure-other")).unwrap();
    let error = folder.repository("latest").unwrap().version(None).await.unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(error.available(), ["infrastructure-other"]);
}

#[tokio::test]
async fn cert_manager_has_a_repository_of_its_own() {
    let folder = Folder::new("cert-manager");
    folder.write("r/cert-manager/v1.0.0/cert-manager.yaml", "manifest");
    let config = Config::parse("", Format::Yaml, "config", &folder.environment()).unwrap();
    let url = folder.text("r/cert-manager/v1.0.0/cert-manager.yaml");
    let cert_manager = CertManager { url, ..config.cert_manager().unwrap() };
    let repository = Repository::open_cert_manager(&cert_manager, &config, &http()).unwrap();
    assert_eq!(repository.label(), "cert-manager");
    let version = repository.version(None).await.unwrap().version;
    assert_eq!(repository.components(&version).await.unwrap().text, "manifest");
}
