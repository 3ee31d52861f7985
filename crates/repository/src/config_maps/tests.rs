use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use k8s_openapi::ByteString;
use serde_json::json;

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn config_map(name: &str, label: Option<&str>, data: &[&str]) -> ConfigMap {
    let mut value = json!({"metadata": {"name": name, "namespace": "ns", "labels": {"a": "b"}}});
    if let Some(label) = label {
        value["metadata"]["labels"][VERSION_LABEL] = json!(label);
    }
    for key in data {
        value["data"][key] = json!(format!("{key} of {name}"));
    }
    serde_json::from_value(value).unwrap()
}

fn compressed(name: &str, annotation: &str, binary: Option<Vec<u8>>) -> ConfigMap {
    let mut it = config_map(name, None, &["metadata"]);
    it.metadata.annotations = Some([(COMPRESSED_ANNOTATION.to_owned(), annotation.to_owned())].into());
    it.binary_data = binary.map(|it| [("components".to_owned(), ByteString(it))].into());
    it
}

const BOTH: &[&str] = &["metadata", "components"];

#[test]
fn every_good_one_is_a_release_and_the_others_are_reported() {
    let bomb = gzip(&vec![0; usize::try_from(LARGEST + 1).unwrap()]);
    for (one, expected) in [
        (config_map("v1.2.3", None, BOTH), Ok("v1.2.3")),
        (config_map("1.2.3", None, BOTH), Ok("1.2.3")),
        (config_map("any-name", Some("v1.2.3-rc.0"), BOTH), Ok("v1.2.3-rc.0")),
        (compressed("v1.2.3", "true", Some(gzip(b"text"))), Ok("v1.2.3")),
        (
            config_map("any-name", None, BOTH),
            Err("has no label provider.cluster.x-k8s.io/version, and its name"),
        ),
        (
            config_map("v1.2.3", Some("new"), BOTH),
            Err("has a label provider.cluster.x-k8s.io/version that is no version: \"new\""),
        ),
        (config_map("v1.2.3", None, &["components"]), Err("has no data.metadata")),
        (config_map("v1.2.3", None, &["metadata"]), Err("has no data.components")),
        (config_map("v1.2.3", None, &[]), Err("has no data.metadata")),
        (compressed("v1.2.3", "true", None), Err("has no binaryData.components, although")),
        (
            compressed("v1.2.3", "false", Some(gzip(b"text"))),
            Err("has binaryData.components, but not the annotation"),
        ),
        (compressed("v1.2.3", "true", Some(b"plain".to_vec())), Err("is not gzip")),
        (compressed("v1.2.3", "true", Some(gzip(b"text")[..12].to_vec())), Err("is not gzip")),
        (compressed("v1.2.3", "true", Some(bomb)), Err("more than 32 MiB")),
    ] {
        // A good one beside it is not harmed, whichever comes first.
        let good = config_map("v0.1.0", None, BOTH);
        let name = full_name(&one);
        let judged = ConfigMaps::judge(&[one.clone(), good], "ConfigMaps").unwrap();
        match expected {
            Ok(version) => {
                assert_eq!(judged.versions(), ["v0.1.0", version]);
                assert!(judged.skipped().is_empty());
                assert_eq!(judged.metadata(version).unwrap().1, format!("the metadata in ConfigMap {name}"));
            }
            Err(part) => {
                assert_eq!(judged.versions(), ["v0.1.0"]);
                let [skipped] = judged.skipped() else { panic!("{:?}", judged.skipped()) };
                assert_eq!(skipped.version, name);
                assert!(skipped.reason.contains(part), "{}", skipped.reason);
                let alone = ConfigMaps::judge(&[one], "ConfigMaps x").unwrap_err().to_string();
                assert!(
                    alone.contains("none of the ConfigMaps x")
                        && alone.contains(&name)
                        && alone.contains(part)
                );
            }
        }
    }
}

#[test]
fn files_are_found_by_version_however_it_is_written() {
    let all = vec![
        config_map("v1.2.3", None, BOTH),
        compressed("1.3.0", "true", Some([gzip(b"one "), gzip(b"two")].concat())),
    ];
    let judged = ConfigMaps::judge(&all, "ConfigMaps").unwrap();
    assert_eq!(judged.components("1.2.3").unwrap().0, b"components of v1.2.3");
    assert_eq!(judged.components("v1.3.0").unwrap().0, b"one two");
    assert_eq!(judged.components("v1.3.0").unwrap().1, "the components in ConfigMap ns/1.3.0");
    assert!(judged.components("v1.2.4").is_none());
    assert!(judged.metadata("latest").is_none());
}

#[test]
fn two_of_the_same_version_are_one_too_many() {
    for (first, second) in [("v1.2.3", Some("v1.2.3")), ("v1.2.3", Some("1.2.3"))] {
        let all = vec![
            config_map("other", second, BOTH),
            config_map("v1.0.0", None, BOTH),
            config_map(first, None, BOTH),
        ];
        let message = ConfigMaps::judge(&all, "ConfigMaps").unwrap_err().to_string();
        for part in ["ns/other", "ns/v1.2.3", "version", VERSION_LABEL] {
            assert!(message.contains(part), "{message}");
        }
    }
    let different = vec![config_map("v1.2.3", None, BOTH), config_map("b", Some("v1.2.3-rc.0"), BOTH)];
    assert_eq!(ConfigMaps::judge(&different, "ConfigMaps").unwrap().versions().len(), 2);
}

#[test]
fn none_at_all_is_told_with_the_selector() {
    let message = ConfigMaps::judge(&[], "ConfigMaps in namespace ns that match a=b").unwrap_err();
    assert_eq!(message.to_string(), "there are no ConfigMaps in namespace ns that match a=b");
}
