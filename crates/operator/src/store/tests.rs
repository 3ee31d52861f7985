use capstan_api::admission::rules::{is_dns_subdomain, label_value};
use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::ResourceExt;
use proptest::prelude::*;

use super::*;

const LABEL: &str = "infrastructure-aws";

fn owner() -> OwnerReference {
    OwnerReference {
        api_version: "management.cluster.x-k8s.io/v1alpha1".to_owned(),
        kind: "InfrastructureProvider".to_owned(),
        name: "aws".to_owned(),
        uid: "1".to_owned(),
        ..OwnerReference::default()
    }
}

/// Components that do not compress.
fn noise(bytes: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(2) + 1;
    let mut letter = || {
        // The generator of Knuth's MMIX.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + u8::try_from((state >> 33) % 94).unwrap())
    };
    (0..bytes).map(|_| letter()).collect()
}

fn release(components: &str) -> StoredRelease {
    StoredRelease {
        version: "v1.2.3".to_owned(),
        contract: "v1beta2".to_owned(),
        metadata: "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\n\
            releaseSeries: [{major: 1, minor: 2, contract: v1beta2}]\n"
            .to_owned(),
        components: components.to_owned(),
        variables: [("AWS_REGION".to_owned(), "s3cret".to_owned())].into(),
        images: "all: {repository: s3cret.io/mirror}".to_owned(),
        origin: "https://h/o/r/releases/download/v1.2.3/infrastructure-components.yaml".to_owned(),
        url: "https://h/o/r/releases".to_owned(),
    }
}

fn secrets(release: &StoredRelease) -> Vec<Secret> {
    release.to_secrets("capa-system", LABEL, &owner()).unwrap()
}

#[test]
fn a_release_is_kept_beside_its_provider() {
    let release = release(&noise(1_200_000, 1));
    let secrets = secrets(&release);
    assert!(secrets.len() > 1, "{}", secrets.len());
    for (at, secret) in secrets.iter().enumerate() {
        assert_eq!(secret.name_any(), format!("infrastructure-aws-release-v1.2.3-{}", at + 1));
        assert_eq!(secret.type_.as_deref(), Some("management.cluster.x-k8s.io/release"));
        assert_eq!(secret.owner_references(), [owner()]);
        let labels: Vec<_> = secret.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
        // Those of components would have it deleted with them.
        assert_eq!(
            labels,
            [
                "management.cluster.x-k8s.io/provider=infrastructure-aws",
                "management.cluster.x-k8s.io/version=v1.2.3"
            ]
        );
        let size: usize = secret.data.iter().flatten().map(|(_, value)| value.0.len()).sum();
        assert!(size < 900 << 10, "{size}");
    }
    assert_eq!(StoredRelease::from_secrets(&secrets).unwrap(), Some(release.clone()));
    assert_eq!(release.to_secrets("capa-system", LABEL, &owner()).unwrap(), secrets, "the same each time");
}

#[test]
fn names_and_labels_are_allowed_and_different() {
    let long = "a".repeat(240);
    let mut seen = std::collections::BTreeSet::new();
    for (label, version) in [
        ("cluster-api", "v1.2.3"),
        ("infrastructure-aws", "v1.2.3"),
        ("infrastructure-aws", "v1.2.3+build.7"),
        ("infrastructure-aws", "v1.2.3-build.7"),
        ("infrastructure-aws", "v1.2.3-RC.1"),
        ("infrastructure-aws", "v1.2.3-rc.1"),
        ("infrastructure-aws", "v1.2.3-a.-b"),
        ("infrastructure-aws", "v1.2.3-a.b-"),
        ("infrastructure-a.b", "v1.2.3"),
        (&long, "v1.2.3"),
        (&long, "v1.2.4"),
    ] {
        let release = StoredRelease { version: version.to_owned(), ..release("a: b") };
        let secrets = release.to_secrets("ns", label, &owner()).unwrap();
        let [secret] = secrets.as_slice() else { panic!("{label} {version}") };
        assert!(is_dns_subdomain(&secret.name_any()), "{}", secret.name_any());
        for value in secret.labels().values() {
            assert!(label_value(value).is_ok(), "{value}");
        }
        assert!(seen.insert(secret.name_any()), "{}", secret.name_any());
        assert!(seen.insert(format!("{:?}", secret.labels())), "{:?}", secret.labels());
    }
    assert_eq!(parts::label_of("v1.2.3-rc.1"), "v1.2.3-rc.1");
    assert!(parts::label_of("v1.2.3+build").starts_with("v1-2-3-build-"));
}

#[test]
fn only_complete_sets_are_read() {
    let (old, new) = (release(&noise(1_200_000, 1)), release(&noise(1_200_000, 2)));
    let (old_parts, new_parts) = (secrets(&old), secrets(&new));
    let read = |secrets: &[Secret]| StoredRelease::from_secrets(secrets).unwrap();
    assert_eq!(read(&[]), None);
    for (at, new_part) in new_parts.iter().enumerate() {
        let mut some = old_parts.clone();
        let left = some.remove(at);
        assert_eq!(read(&some), None, "without part {at}");
        // A write that was interrupted.
        some.insert(at, new_part.clone());
        assert_eq!(read(&some), None, "with part {at} of another write");
        some.push(left);
        assert_eq!(read(&some).as_ref(), Some(&old), "with a part too many");
    }
    // A part that is left of a longer one.
    let small = release("a: b");
    let mut with_left = secrets(&small);
    with_left.push(old_parts[1].clone());
    assert_eq!(read(&with_left), Some(small.clone()));
    let mut foreign = secrets(&small);
    foreign[0].type_ = Some("Opaque".to_owned());
    assert_eq!(read(&foreign), None);
}

#[test]
fn what_is_damaged_is_reported_by_name() {
    let mut changed = secrets(&release("a: b"));
    for value in changed[0].data.as_mut().unwrap().values_mut() {
        value.0[20] ^= 1;
    }
    let error = StoredRelease::from_secrets(&changed).unwrap_err();
    let expected = "the release in the Secrets capa-system/infrastructure-aws-release-v1.2.3-1 is damaged \
        (its digest is another one): delete them, so that it is fetched again";
    assert_eq!(error.to_string(), expected);
    assert!(!error.is_transient());

    // Well written, but nothing that we know.
    let bytes = {
        use std::io::Write;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(br#"{"variables": "s3cret"}"#).unwrap();
        encoder.finish().unwrap()
    };
    let mut other = secrets(&release("a: b"));
    let annotations = other[0].metadata.annotations.as_mut().unwrap();
    let digest = capstan_repository::remote::Sha256::of(&bytes).to_string();
    annotations.insert("management.cluster.x-k8s.io/sha256".to_owned(), digest);
    other[0].data = Some([("release".to_owned(), ByteString(bytes))].into());
    let error = StoredRelease::from_secrets(&other).unwrap_err();
    assert!(error.to_string().contains("line 1, column 22 is not as expected"), "{error}");
    assert!(!format!("{error:?}").contains("s3cret"));
}

#[test]
fn values_are_not_shown() {
    let shown = format!("{:?}", release("a: b"));
    assert!(shown.contains("AWS_REGION") && !shown.contains("s3cret"), "{shown}");
}

#[test]
fn all_missing_variables_are_listed() {
    let components = "a: ${ZONE}\nb: ${AWS_REGION} ${ACCOUNT}\nc: ${LEVEL:=0} ${NAME:=${NESTED}}\n";
    assert_eq!(release(components).missing_variables(), ["ACCOUNT", "ZONE"]);
    assert!(release("a: ${AWS_REGION}").missing_variables().is_empty());
    assert!(release("a: ${").missing_variables().is_empty());
}

#[tokio::test]
async fn a_release_that_was_kept_is_a_source() {
    let release = release("image: ${AWS_REGION}");
    let alter: Alter<'_> = Box::new(|objects| {
        objects.clear();
        Ok(())
    });
    let source = release.source(ProviderType::Infrastructure, "aws", Some(alter)).unwrap();
    assert_eq!((source.variables)("AWS_REGION").as_deref(), Some("s3cret"));
    assert_eq!((source.variables)("OTHER"), None);
    assert_eq!(source.provider.label(), LABEL);
    assert_eq!(source.images.apply(LABEL, "k8s.io/capa/manager:v1").unwrap(), "s3cret.io/mirror/manager:v1");
    assert!(source.alter.is_some());
    assert_eq!(source.repository.version(None).await.unwrap().version, "v1.2.3");
    let metadata = source.repository.metadata("v1.2.3").await.unwrap();
    assert_eq!(metadata.contract_of("v1.2.3").unwrap(), "v1beta2");
    let file = source.repository.components("1.2.3").await.unwrap();
    assert_eq!((file.text, file.origin), (release.components.clone(), release.origin.clone()));
    let error = source.repository.components("v1.2.4").await.unwrap_err();
    assert!(error.is_not_found() && error.available() == ["v1.2.3"], "{error}");

    let wrong = StoredRelease { images: "s3cret".to_owned(), ..release.clone() };
    let error = wrong.source(ProviderType::Infrastructure, "aws", None).unwrap_err().to_string();
    assert_eq!(error, "the image overrides of v1.2.3 cannot be used: it is text, and not a map");
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,40}", Just("é\u{0}\"\\\u{feff}\r\n".to_owned())]
}

fn any_release() -> impl Strategy<Value = StoredRelease> {
    let components = (0..3_usize, any::<u64>(), text())
        .prop_map(|(parts, seed, text)| format!("{text}{}", noise(parts * 700_000, seed)));
    let variables = prop::collection::btree_map("[A-Z]{1,3}", text(), 0..4);
    (components, variables, [text(), text(), text(), text()]).prop_map(
        |(components, variables, [metadata, images, origin, url])| StoredRelease {
            metadata,
            variables,
            images,
            origin,
            url,
            ..release(&components)
        },
    )
}

fn shuffled() -> impl Strategy<Value = (StoredRelease, Vec<Secret>)> {
    any_release().prop_flat_map(|release| {
        let secrets = secrets(&release);
        (Just(release), Just(secrets).prop_shuffle())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn what_is_kept_comes_back_in_whatever_order((release, mut secrets) in shuffled()) {
        prop_assert!(StoredRelease::from_secrets(&secrets).unwrap() == Some(release));
        secrets.pop();
        prop_assert!(StoredRelease::from_secrets(&secrets).unwrap().is_none());
    }
}
