//! The files of a release.

use std::os::unix::fs::symlink;

use crate::folder::{Folder, metadata};

/// What `sha256sum` says of the components of v1.0.0.
const SUM: &str = "21837b1ee383e77516f37557609d22ce6402c3012532aba88aef4ee1f60779fc";

#[tokio::test]
async fn files_are_given_with_what_is_known_about_them() {
    let folder = Folder::new("known");
    folder.release("v1.0.0", "1.0=v1beta2");
    let file = folder.repository("latest").unwrap().components("v1.0.0").await.unwrap();
    assert_eq!(file.name, "infrastructure-components.yaml");
    assert_eq!(file.origin, folder.text("r/infrastructure-mine/v1.0.0/infrastructure-components.yaml"));
    assert_eq!(file.sha256, SUM);
    assert!(!file.is_override);
}

#[tokio::test]
async fn templates_are_found_by_flavor_and_classes_by_name() {
    let folder = Folder::new("templates");
    folder.release("v1.0.0", "1.0=v1beta2").release("v1.1.0", "1.1=v1beta2");
    for name in [
        "cluster-template.yaml",
        "cluster-template-ha.yaml",
        "cluster-template-dev.yaml",
        "clusterclass-quick.yaml",
    ] {
        folder.write(&format!("r/infrastructure-mine/v1.0.0/{name}"), name);
    }
    let repository = folder.repository("latest").unwrap();
    for (version, flavor, expected) in [
        ("v1.0.0", None, Ok("cluster-template.yaml")),
        ("v1.0.0", Some(""), Ok("cluster-template.yaml")),
        ("v1.0.0", Some("ha"), Ok("cluster-template-ha.yaml")),
        (
            "v1.0.0",
            Some("hq"),
            Err(
                "has no cluster template of flavor \"hq\": there is no file cluster-template-hq.yaml; there is cluster-template.yaml, dev, ha",
            ),
        ),
        (
            "v1.1.0",
            None,
            Err("has no cluster template: there is no file cluster-template.yaml, and none of the kind"),
        ),
        ("v1.0.0", Some("../x"), Err("the flavor \"../x\" cannot be part of a file name")),
        ("v1.0.0", Some("a/b"), Err("the flavor \"a/b\"")),
        ("v1.0.0", Some(".."), Err("the flavor \"..\"")),
        ("../v1.0.0", None, Err("the version \"../v1.0.0\"")),
        ("v1.2.0", Some("ha"), Err("not found: the version v1.2.0 in")),
    ] {
        match (repository.template(version, flavor).await, expected) {
            (Ok(file), Ok(name)) => assert_eq!((file.name.as_str(), file.text.as_str()), (name, name)),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (outcome, _) => panic!("{version} {flavor:?}: {outcome:?}"),
        }
    }
    let missing = repository.template("v1.2.0", None).await.unwrap_err();
    assert_eq!(missing.available(), ["v1.0.0", "v1.1.0"]);

    assert_eq!(repository.cluster_class("v1.0.0", "quick").await.unwrap().name, "clusterclass-quick.yaml");
    for (name, part) in [
        ("other", "has no ClusterClass \"other\": there is no file clusterclass-other.yaml; there is quick"),
        ("../x", "the ClusterClass name \"../x\""),
    ] {
        let message = repository.cluster_class("v1.0.0", name).await.unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test]
async fn links_may_not_lead_out_of_the_repository() {
    let folder = Folder::new("links");
    folder.release("v1.0.0", "1.0=v1beta2");
    folder.write("secret", "secret").write("away/metadata.yaml", metadata("1.3=v1beta2"));
    let repository = folder.path("r/infrastructure-mine");
    symlink(folder.path("secret"), repository.join("v1.0.0/cluster-template.yaml")).unwrap();
    symlink(repository.join("v1.0.0"), repository.join("v1.2.0")).unwrap();
    symlink(folder.path("away"), repository.join("v1.3.0")).unwrap();

    let repository = folder.repository("latest").unwrap();
    assert_eq!(repository.components("v1.2.0").await.unwrap().text, "components of v1.0.0\n");
    for outcome in [
        repository.template("v1.0.0", None).await.map(|it| it.text),
        repository.metadata("v1.3.0").await.map(|it| it.origin),
    ] {
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains("outside of the repository") && message.contains("links/r"), "{message}");
    }
    // The others can still be used.
    let chosen = repository.version(None).await.unwrap();
    assert_eq!(chosen.version, "v1.0.0");
    assert_eq!(chosen.skipped[0].version, "v1.3.0");
    assert!(chosen.skipped[0].reason.contains("outside of the repository"), "{:?}", chosen.skipped);
}

#[tokio::test]
async fn overrides_take_the_place_of_files() {
    let folder = Folder::new("overrides");
    folder.release("v1.0.0", "1.0=v1beta2");
    let file = "infrastructure-mine/v1.0.0/infrastructure-components.yaml";
    // Each one comes before those that were written earlier.
    for (place, config) in [
        ("home/.cluster-api/overrides", String::new()),
        ("home/.config/cluster-api/overrides", String::new()),
        ("configured", format!("overridesFolder: {}", folder.text("configured"))),
    ] {
        folder.write(&format!("{place}/{file}"), place);
        let found = folder.repository_with("latest", &config).unwrap().components("v1.0.0").await.unwrap();
        assert_eq!((found.text.as_str(), found.is_override), (place, true));
        assert_eq!(found.origin, folder.text(&format!("{place}/{file}")));
    }
    // A folder that is there hides the older place even if it does not have the file.
    std::fs::remove_file(folder.path(&format!("home/.config/cluster-api/overrides/{file}"))).unwrap();
    let found = folder.repository("latest").unwrap().components("v1.0.0").await.unwrap();
    assert!(!found.is_override);
    let none =
        folder.repository_with("latest", &format!("overridesFolder: {}", folder.text("nowhere"))).unwrap();
    assert!(!none.components("v1.0.0").await.unwrap().is_override);
    // It is only the files of a version that are replaced.
    let found = folder.repository("latest").unwrap().metadata("v1.0.0").await.unwrap();
    assert!(found.origin.contains("/r/"), "{}", found.origin);
}

#[tokio::test]
async fn pages_and_bytes_are_not_components() {
    let folder = Folder::new("pages");
    let file = "r/infrastructure-mine/v1.0.0/infrastructure-components.yaml";
    for (content, part) in [
        (&b"<!DOCTYPE html>\n<html>Sign in</html>"[..], Some("is a web page, not YAML")),
        (b"\n  <HTML><body>", Some("is a web page")),
        (b"\xef\xbb\xbf<html>", Some("is a web page")),
        (b"\xff\xfe\x00", Some("is not UTF-8 text: invalid utf-8")),
        (b"a: <html>\n", None),
        (b"", None),
    ] {
        folder.write(file, content);
        let outcome = folder.repository("latest").unwrap().components("v1.0.0").await;
        match (outcome, part) {
            (Ok(_), None) => {}
            (Err(error), Some(part)) => {
                let message = error.to_string();
                assert!(message.contains(part) && message.contains(&folder.text(file)), "{message}");
            }
            (outcome, _) => panic!("{content:?}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn what_is_missing_is_told_with_what_is_there() {
    let folder = Folder::new("missing");
    folder.release("v1.0.0", "1.0=v1beta2");
    std::fs::create_dir_all(folder.path("r/infrastructure-mine/v1.1.0/infrastructure-components.yaml"))
        .unwrap();
    let repository = folder.repository("latest").unwrap();
    let error = repository.components("v1.0.1").await.unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("the version v1.0.1 in"), "{error}");
    assert_eq!(error.available(), ["v1.0.0", "v1.1.0"]);
    let error = repository.metadata("v1.1.0").await.unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("v1.1.0/metadata.yaml"), "{error}");
    let error = repository.components("v1.1.0").await.unwrap_err();
    assert!(!error.is_not_found() && error.to_string().contains("directory"), "{error}");
}
