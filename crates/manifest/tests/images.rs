//! Image references are read as upstream reads them, and overrides replace what they say.

use capstan_manifest::images::{Override, Overrides, Reference, ReferenceError, pod_spec_pointer};

/// One JSON list a line: a text, whether Go takes it for a canonical reference, and whether it only lacks parts.
const READ_BY_GO: &str = include_str!("fixtures/references-by-go.jsonl");

#[test]
fn reads_what_go_reads() {
    for line in READ_BY_GO.lines() {
        let (text, is_canonical, lacks_parts): (String, bool, bool) = serde_json::from_str(line).unwrap();
        let reference = Reference::parse(&text);
        assert_eq!(reference.is_ok(), is_canonical, "{text}: {reference:?}");
        assert_eq!(matches!(reference, Err(ReferenceError::NotCanonical { .. })), lacks_parts, "{text}");
        if let Ok(reference) = reference {
            assert_eq!(reference.to_string(), text);
        }
    }
}

#[test]
fn errors_say_what_to_write() {
    for (text, expected) in [
        ("", "it is empty"),
        ("nginx:1.0", "it must name its registry; write docker.io/library/nginx:1.0"),
        ("docker.io/nginx", "it must name its registry; write docker.io/library/nginx"),
        ("index.docker.io/a/b", "it must name its registry; write docker.io/a/b"),
        ("r.io/Name", "the name \"Name\" must be lower case"),
        ("r.io/a:v1+b", "\"v1+b\" is no tag"),
        ("r.io/a@sha256:0", "\"sha256:0\" is no digest"),
        ("r.io/a..b", "\"a..b\" is no image name"),
        ("r..io/a", "\"r..io\" is no registry"),
    ] {
        assert_eq!(Reference::parse(text).unwrap_err().to_string(), expected, "{text}");
    }
    let long = format!("r.io/{}", "a".repeat(256));
    assert_eq!(Reference::parse(&long).unwrap_err(), ReferenceError::TooLong);
}

fn overrides(entries: &[(&str, [&str; 3])]) -> Overrides {
    let read = |(key, parts): &(&str, [&str; 3])| {
        let [repository, name, tag] = parts.map(str::to_owned);
        ((*key).to_owned(), Override { repository, name, tag })
    };
    entries.iter().map(read).collect()
}

#[test]
fn the_most_specific_override_wins_part_by_part() {
    let digest = format!("sha256:{}", "0".repeat(64));
    let pinned = format!("r.io/a/one:v1@{digest}");
    for (entries, image, expected) in [
        (&[][..], "r.io/a/one:v1", "r.io/a/one:v1".to_owned()),
        (&[("all", ["m.io/", "", ""])], "r.io/a/one:v1", "m.io/one:v1".to_owned()),
        (&[("all", ["m.io/b/c", "two", "v2"])], "r.io/one", "m.io/b/c/two:v2".to_owned()),
        (&[("all", ["", "", "v2"])], &pinned, format!("r.io/a/one:v2@{digest}")),
        (&[("ALL", ["m.io", "", ""])], "r.io/a/one:v1", "m.io/one:v1".to_owned()),
        (&[("core", ["m.io", "", ""])], "r.io/a/one:v1", "r.io/a/one:v1".to_owned()),
        (
            &[
                ("all", ["all.io", "all", "all"]),
                ("Infrastructure-A", ["comp.io", "", "comp"]),
                ("infrastructure-a/One", ["", "", "image"]),
            ],
            "r.io/a/one:v1",
            "comp.io/all:image".to_owned(),
        ),
        (&[("infrastructure-a/two", ["m.io", "", ""])], "r.io/a/one:v1", "r.io/a/one:v1".to_owned()),
        // The key names the image as the file has it, not as another override names it.
        (
            &[("all", ["", "two", ""]), ("infrastructure-a/two", ["", "", "v2"])],
            "r.io/a/one:v1",
            "r.io/a/two:v1".to_owned(),
        ),
    ] {
        assert_eq!(overrides(entries).apply("infrastructure-a", image).unwrap(), expected, "{entries:?}");
    }
    assert!(overrides(&[("all", ["m.io", "", ""])]).apply("a", "nginx").is_err());
}

#[test]
fn kinds_that_run_containers_have_a_pod_spec() {
    let template = Some("/spec/template/spec");
    for (group, kind, expected) in [
        ("apps", "Deployment", template),
        ("apps", "DaemonSet", template),
        ("apps", "StatefulSet", template),
        ("apps", "ReplicaSet", template),
        ("batch", "Job", template),
        ("batch", "CronJob", Some("/spec/jobTemplate/spec/template/spec")),
        ("", "Pod", Some("/spec")),
        ("batch.volcano.sh", "Job", None),
        ("apps.kruise.io", "StatefulSet", None),
        ("", "ConfigMap", None),
    ] {
        assert_eq!(pod_spec_pointer(group, kind), expected, "{group} {kind}");
    }
}

#[test]
fn lenient_overrides_keep_what_clusterctl_lets_pass() {
    let mirror = &[("all", ["m.io", "", ""])][..];
    let one_image = &[("a/nginx", ["m.io", "", ""])][..];
    let other_component = &[("b", ["m.io", "", ""])][..];
    for (entries, image, expected) in [
        (&[][..], "nginx:1", Ok("nginx:1")),
        (&[], "${IMAGE}", Ok("${IMAGE}")),
        (&[], "", Ok("")),
        (other_component, "nginx:1", Ok("nginx:1")),
        (other_component, "${IMAGE}", Ok("${IMAGE}")),
        (one_image, "r.io/x/nginx:1", Ok("m.io/nginx:1")),
        (one_image, "nginx:1", Ok("m.io/nginx:1")),
        (one_image, "${IMAGE}", Ok("${IMAGE}")),
        (mirror, "r.io/x/nginx:1", Ok("m.io/nginx:1")),
        (mirror, "nginx:1", Ok("m.io/nginx:1")),
        (mirror, "r.io/a:v1+b", Err("\"v1+b\" is no tag")),
        (&[("all", ["", "", ""])], "r.io/a:v1+b", Ok("r.io/a:v1+b")),
    ] {
        let found = overrides(entries).apply_leniently("a", image).map_err(|it| it.to_string());
        assert_eq!(found.as_deref(), expected.map_err(str::to_owned).as_deref(), "{entries:?} {image}");
    }
}
