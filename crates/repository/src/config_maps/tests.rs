use std::io::Write;

use capstan_api::operator::annotation::PART;
use flate2::{Compression, write::GzEncoder};
use k8s_openapi::ByteString;
use serde_json::json;

use super::{piece::LARGEST, *};

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

/// A part of a release: its annotation, and what it has of metadata and components.
fn part(name: &str, place: &str, metadata: Option<&str>, components: Option<&str>) -> ConfigMap {
    let mut it = config_map(name, Some("v1.2.3"), &[]);
    it.metadata.annotations = Some([(PART.to_owned(), place.to_owned())].into());
    let data = [("metadata", metadata), ("components", components)];
    let data = data.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())));
    it.data = Some(data.collect());
    it
}

fn compressed_part(name: &str, place: &str, bytes: &[u8]) -> ConfigMap {
    let mut it = part(name, place, Some("metadata"), None);
    it.metadata
        .annotations
        .get_or_insert_default()
        .insert(COMPRESSED_ANNOTATION.to_owned(), "true".to_owned());
    it.binary_data = Some([("components".to_owned(), ByteString(bytes.to_vec()))].into());
    it
}

#[test]
fn parts_are_joined_in_their_order() {
    let whole = gzip(b"one two three");
    let (front, back) = whole.split_at(whole.len() / 2);
    for parts in [
        vec![part("a", "2/2", None, Some("two three")), part("b", "1/2", Some("metadata"), Some("one "))],
        vec![
            part("a", "3/3", Some("metadata"), Some("three")),
            part("b", " 1 / 3 ", None, Some("one ")),
            part("c", "2/3", Some("metadata"), Some("two ")),
        ],
        vec![part("a", "1/2", Some("metadata"), None), part("b", "2/2", None, Some("one two three"))],
        vec![part("a", "1/1", Some("metadata"), Some("one two three"))],
        // Compressed as a whole and then cut, cut and then compressed, and only some of them.
        vec![compressed_part("a", "1/2", front), compressed_part("b", "2/2", back)],
        vec![compressed_part("a", "1/2", &gzip(b"one ")), compressed_part("b", "2/2", &gzip(b"two three"))],
        vec![part("a", "1/2", None, Some("one ")), compressed_part("b", "2/2", &gzip(b"two three"))],
    ] {
        let names: Vec<_> = parts.iter().map(full_name).collect();
        let other = config_map("v1.3.0", None, BOTH);
        for order in [parts.clone(), parts.into_iter().rev().collect()] {
            let judged = ConfigMaps::judge(&[order, vec![other.clone()]].concat(), "ConfigMaps").unwrap();
            assert_eq!(judged.versions(), ["v1.2.3", "v1.3.0"], "{names:?}");
            let (components, origin) = judged.components("1.2.3").unwrap();
            assert_eq!(String::from_utf8(components).unwrap(), "one two three", "{names:?}");
            assert!(names.iter().all(|it| origin.contains(it)), "{origin}");
            assert_eq!(judged.metadata("v1.2.3").unwrap().0, b"metadata", "{names:?}");
        }
    }
}

#[test]
fn parts_that_do_not_fit_together_are_named() {
    let bomb = gzip(&vec![0; usize::try_from(LARGEST / 2 + 1).unwrap()]);
    let full = |name, place| part(name, place, Some("metadata"), Some("text"));
    for (parts, named, problem) in [
        (vec![full("a", "1/3"), full("c", "3/3")], &["ns/a", "ns/c"][..], "part 2 of 3 is missing"),
        (vec![full("b", "2/3")], &["ns/b"], "parts 1, 3 of 3 are missing"),
        (
            vec![full("a", "1/3"), full("b", "2/2")],
            &["ns/a", "ns/b"],
            "ns/a is one of 3, and ns/b is one of 2: correct the annotations management.cluster.x-k8s.io/part",
        ),
        (vec![full("a", "1/2"), full("b", "1/2")], &["ns/a", "ns/b"], "ns/a and ns/b are both part 1"),
        (
            vec![part("a", "1/2", None, Some("x")), part("b", "2/2", None, Some("y"))],
            &["ns/a", "ns/b"],
            "none has data.metadata",
        ),
        (
            vec![part("a", "1/2", Some("x"), Some("x")), part("b", "2/2", Some("y"), Some("y"))],
            &["ns/a", "ns/b"],
            "ns/a and ns/b have different data.metadata",
        ),
        (
            vec![part("a", "1/2", Some("x"), None), part("b", "2/2", Some("x"), None)],
            &["ns/a", "ns/b"],
            "none has data.components",
        ),
        (
            vec![compressed_part("a", "1/2", &bomb), compressed_part("b", "2/2", &bomb)],
            &["ns/a", "ns/b"],
            "more than 32 MiB",
        ),
        (
            vec![compressed_part("a", "1/2", b"no"), compressed_part("b", "2/2", b"no")],
            &["ns/a", "ns/b"],
            "not gzip",
        ),
        // A release as a whole beside them.
        (
            vec![full("a", "1/2"), full("b", "2/2"), config_map("c", Some("1.2.3"), BOTH)],
            &["ns/a", "ns/c"],
            "both hold version",
        ),
        // What cannot be read may be what is missing.
        (vec![full("a", "1/2"), full("b", "2 of 2")], &["ns/a", "ns/b"], "\"2 of 2\" and not like \"1/3\""),
        (
            vec![full("a", "1/2"), part("b", "2/2", None, None)],
            &["ns/a", "ns/b"],
            "part 2 of 2 is missing; ns/b is a part of a release, but has no data.components",
        ),
    ] {
        let good = config_map("v0.1.0", None, BOTH);
        let all = [parts, vec![good]].concat();
        let message = ConfigMaps::judge(&all, "ConfigMaps").unwrap_err().to_string();
        assert!(named.iter().all(|it| message.contains(it)) && message.contains(problem), "{message}");
    }
}

#[test]
fn a_place_is_a_number_of_a_total() {
    for text in ["", "1", "0/1", "2/1", "1/0", "a/b", "-1/2", "1/2/3", "1/101", "1/99999999999999999999"] {
        let all = [part("a", text, Some("metadata"), Some("text"))];
        let message = ConfigMaps::judge(&all, "ConfigMaps").unwrap_err().to_string();
        assert!(message.contains("ns/a has an annotation management.cluster.x-k8s.io/part"), "{message}");
    }
}
