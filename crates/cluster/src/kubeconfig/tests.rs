//! Kubeconfigs from authorities of every form, and their renewal.
#![expect(clippy::needless_pass_by_value, reason = "tables read best with values in place")]

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use kube::config::Kubeconfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use serde_json::{Value, json};
use x509_parser::parse_x509_certificate;

use super::*;
use crate::connection::secrets::Mark;

macro_rules! testdata {
    ($name:literal) => {
        include_str!(concat!("testdata/", $name))
    };
}

const RSA: &str = testdata!("rsa.crt");
const RSA_KEY: &str = testdata!("rsa-pkcs1.key");
const P256: &str = testdata!("p256.crt");
const P256_KEY: &str = testdata!("p256-sec1.key");

fn now() -> Timestamp {
    "2026-11-20T10:00:00Z".parse().unwrap()
}

fn data(certificate: &str, key: &str) -> BTreeMap<String, ByteString> {
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    [("tls.crt".to_owned(), bytes(certificate)), ("tls.key".to_owned(), bytes(key))].into()
}

fn make(certificate: &str, key: &str) -> Result<made::Fresh, String> {
    let authority = Authority::read(&data(certificate, key))?;
    made::make("c", "https://example.com:6443", authority, now())
}

fn decode(base64: &str) -> Vec<u8> {
    serde_json::from_value::<ByteString>(json!(base64)).unwrap().0
}

#[test]
fn a_kubeconfig_is_made_from_any_authority() {
    let doubled = format!("# the authority\n{RSA}{P256}");
    for (name, certificate, key) in [
        ("RSA, PKCS#1", RSA, RSA_KEY),
        ("RSA, PKCS#8", RSA, testdata!("rsa-pkcs8.key")),
        ("P-256, SEC1 after its parameters", P256, P256_KEY),
        ("P-256, PKCS#8", P256, testdata!("p256-pkcs8.key")),
        ("P-384, SEC1", testdata!("p384.crt"), testdata!("p384-sec1.key")),
        ("several certificates, of which the first counts", &*doubled, RSA_KEY),
    ] {
        let fresh = make(certificate, key).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(fresh.text.starts_with("apiVersion: v1\nclusters:\n- cluster:\n"), "{name}: {}", fresh.text);
        let kubeconfig = Kubeconfig::from_yaml(&fresh.text).unwrap();
        assert_eq!(kubeconfig.current_context.as_deref(), Some("c-admin@c"), "{name}");
        let (cluster, user) = (&kubeconfig.clusters[0], &kubeconfig.auth_infos[0]);
        assert_eq!((cluster.name.as_str(), user.name.as_str()), ("c", "c-admin"), "{name}");
        let remote = cluster.cluster.as_ref().unwrap();
        assert_eq!(remote.server.as_deref(), Some("https://example.com:6443"), "{name}");

        let trusted = decode(remote.certificate_authority_data.as_deref().unwrap());
        let trusted = CertificateDer::from_pem_slice(&trusted).unwrap();
        assert_eq!(trusted, CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap(), "{name}");
        let (_, authority) = parse_x509_certificate(&trusted).unwrap();
        let user = user.auth_info.as_ref().unwrap();
        let certificate = decode(user.client_certificate_data.as_deref().unwrap());
        let certificate = CertificateDer::from_pem_slice(&certificate).unwrap();
        let (_, parsed) = parse_x509_certificate(&certificate).unwrap();
        parsed
            .verify_signature(Some(authority.public_key()))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(parsed.issuer().as_raw(), authority.subject().as_raw(), "{name}");
        assert_eq!(parsed.subject().to_string(), "O=system:masters, CN=kubernetes-admin", "{name}");
        let usage = parsed.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.client_auth && !usage.server_auth && !parsed.is_ca(), "{name}");
        let second = |time: Timestamp| time.as_second();
        assert!(parsed.validity().not_before.timestamp() < second(now()), "{name}");
        let year = SignedDuration::from_hours(365 * 24);
        assert_eq!(parsed.validity().not_after.timestamp(), second(now() + year), "{name}");

        // The client can use what it got.
        let key = serde_json::to_value(&kubeconfig).unwrap();
        let key = decode(key["users"][0]["user"]["client-key-data"].as_str().unwrap());
        let key = PrivateKeyDer::from_pem_slice(&key).unwrap();
        let provider = rustls::crypto::ring::default_provider();
        let identity = rustls::sign::CertifiedKey::from_der(vec![certificate.clone()], key, &provider);
        identity.unwrap().keys_match().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn an_authority_that_cannot_be_used_says_why() {
    let only = |key: &str| {
        let mut data = data(RSA, RSA_KEY);
        data.remove(key);
        data
    };
    for (data, expected) in [
        (BTreeMap::new(), "key tls.crt is missing"),
        (only("tls.crt"), "key tls.crt is missing"),
        (only("tls.key"), "key tls.key is missing"),
        (data("", RSA_KEY), "key tls.crt holds no certificate in PEM"),
        (data("garbage", RSA_KEY), "key tls.crt holds no certificate in PEM"),
        (
            data("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", RSA_KEY),
            "key tls.crt holds no X.509 certificate",
        ),
        (data(RSA, "garbage"), "key tls.key holds no private key in PEM"),
        (data(RSA, RSA), "key tls.key holds no private key in PEM"),
        (data(RSA, P256_KEY), "does not belong to the certificate in tls.crt"),
        (data(testdata!("leaf.crt"), P256_KEY), "is not one of an authority"),
        (data(testdata!("p521.crt"), testdata!("p521-sec1.key")), "is none of RSA"),
    ] {
        let words = Authority::read(&data).unwrap_err();
        assert!(words.contains(expected), "{words:?} instead of {expected:?}");
    }
    let words = make(testdata!("twice.crt"), P256_KEY).err().unwrap();
    assert!(words.contains("each attribute once"), "{words}");
    let late = Authority::read(&data(RSA, RSA_KEY)).unwrap();
    let words = made::make("c", "https://h:1", late, "2200-01-01T00:00:00Z".parse().unwrap()).err().unwrap();
    assert!(words.contains("expired at "), "{words}");
}

#[test]
fn an_authority_is_never_quoted() {
    // As it is, and as libraries print bytes and base64.
    let numbers = "canary".bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ");
    let quotes = |words: &str| ["canary", numbers.as_str(), "Y2FuYXJ5"].iter().any(|it| words.contains(it));
    let pem = |label: &str, text: &str| format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n");
    let spoilt = [
        "canary".to_owned(),
        "-----BEGIN canary".to_owned(),
        "-----BEGIN CERTIFICATE-----\ncanary\n".to_owned(),
        "-----BEGIN RSA PRIVATE KEY-----\ncanary\n".to_owned(),
        pem("canary", "canary"),
        pem("CERTIFICATE", "canary!"),
        pem("CERTIFICATE", "Y2FuYXJ5"),
        pem("PRIVATE KEY", "canary!"),
        pem("PRIVATE KEY", "Y2FuYXJ5"),
        pem("EC PRIVATE KEY", "Y2FuYXJ5"),
        pem("RSA PRIVATE KEY", "Y2FuYXJ5"),
        "-----BEGIN CERTIFICATE-----\nMAA=\n-----END canary-----\n".to_owned(),
    ];
    for text in &spoilt {
        for data in [data(text, RSA_KEY), data(RSA, text), data(text, text)] {
            let words = Authority::read(&data).unwrap_err();
            assert!(!quotes(&words), "{text}: {words}");
        }
    }
    // A subject that the library can read and cannot write.
    let key = rcgen::KeyPair::generate().unwrap();
    let mut ca = rcgen::CertificateParams::default();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let name = rcgen::string::PrintableString::try_from("canary-bird").unwrap();
    ca.distinguished_name.push(rcgen::DnType::CommonName, rcgen::DnValue::PrintableString(name));
    let mut der = ca.self_signed(&key).unwrap().der().to_vec();
    for at in 0..der.len() - 11 {
        if der[at..].starts_with(b"canary-bird") {
            der[at + 6] = b'*';
        }
    }
    let Value::String(body) = json!(ByteString(der)) else { panic!("no text") };
    let words = make(&pem("CERTIFICATE", &body), &key.serialize_pem()).err().unwrap();
    assert_eq!(words, "no certificate can be signed with it");
}

#[test]
fn a_certificate_does_not_outlive_its_authority() {
    let authority = Authority::read(&data(RSA, RSA_KEY)).unwrap();
    let end = authority.not_after();
    let fresh = made::make("c", "https://h:1", authority, end - SignedDuration::from_hours(48)).unwrap();
    assert_eq!(fresh.not_after, end);
}

#[test]
fn it_is_made_anew_when_something_is_different_or_half_its_life_is_over() {
    let text = make(RSA, RSA_KEY).unwrap().text;
    let made = Made::recognize("c", text.as_bytes()).expect("ours");
    let (server, same) = ("https://example.com:6443", Mark::of_pem(RSA.as_bytes()));
    let other = Mark::of_pem(P256.as_bytes());
    let half = now() + SignedDuration::from_hours(365 * 12);
    for (name, server, authority, at, expected) in [
        ("fresh", server, same, now(), None),
        ("the authority is not known", server, None, now(), None),
        ("another endpoint", "https://example.com:6444", same, now(), Some(Why::Endpoint)),
        ("another authority", server, other, now(), Some(Why::Authority)),
        ("nearly half", server, same, half - SignedDuration::from_secs(1), None),
        ("half", server, same, half, Some(Why::Age)),
        ("over", server, same, half + SignedDuration::from_hours(24 * 365), Some(Why::Age)),
    ] {
        let why = match made.renewal(server, authority, at) {
            Renewal::Due(why) => Some(why),
            Renewal::In(left) => {
                let then = at + SignedDuration::try_from(left).unwrap();
                assert_eq!(made.renewal(server, authority, then), Renewal::Due(Why::Age), "{name}");
                None
            }
        };
        assert_eq!(why, expected, "{name}");
    }
}

#[test]
fn what_somebody_else_made_is_not_recognized() {
    let text = make(RSA, RSA_KEY).unwrap().text;
    assert!(Made::recognize("c", text.as_bytes()).is_some());
    for (name, changed) in [
        ("another cluster's", text.replace("c-admin@c", "d-admin@d")),
        ("another user", text.replace("c-admin", "someone")),
        ("a token as well", text.replace("    client-key-data", "    token: t\n    client-key-data")),
        ("through a proxy", text.replace("    server:", "    proxy-url: http://p\n    server:")),
        ("unverified", text.replace("    server:", "    insecure-skip-tls-verify: true\n    server:")),
        ("a second user", text.replace("users:\n", "users:\n- name: x\n  user: {}\n")),
        ("not a kubeconfig", "garbage".to_owned()),
    ] {
        assert_ne!(changed, text, "{name}: nothing was changed");
        assert_eq!(Made::recognize("c", changed.as_bytes()), None, "{name}");
    }
    assert_eq!(Made::recognize("c", b"\xff"), None);
}

#[test]
fn addresses_are_urls() {
    for (host, expected) in [
        ("example.com", "https://example.com:6443"),
        ("10.0.0.1", "https://10.0.0.1:6443"),
        ("fd00::1", "https://[fd00::1]:6443"),
        ("[fd00::1]", "https://[fd00::1]:6443"),
    ] {
        let endpoint = capstan_api::cluster::v1beta2::ApiEndpoint { host: host.to_owned(), port: 6443 };
        assert_eq!(made::server_url(&endpoint), expected);
    }
}

fn cluster(spec: Value) -> ClusterRecord {
    ClusterRecord::new(
        serde_json::from_value(json!({
            "metadata": {"name": "c", "namespace": "n", "uid": "uid-c"}, "spec": spec,
        }))
        .unwrap(),
    )
}

#[test]
fn only_a_cluster_without_a_control_plane_provider_wants_one() {
    let endpoint = json!({"host": "h", "port": 1});
    let wants = |cluster: &ClusterRecord| Wish::of(cluster).map(|wish| wish.server);
    assert_eq!(wants(&cluster(json!({"controlPlaneEndpoint": endpoint}))).as_deref(), Some("https://h:1"));
    assert_eq!(wants(&cluster(json!({}))), None);
    assert_eq!(wants(&cluster(json!({"controlPlaneEndpoint": {"host": "h"}}))), None);
    assert_eq!(wants(&cluster(json!({"controlPlaneEndpoint": endpoint, "paused": true}))), None);
    let reference = json!({"apiGroup": "g", "kind": "K", "name": "n"});
    assert_eq!(
        wants(&cluster(json!({"controlPlaneEndpoint": endpoint, "controlPlaneRef": reference}))),
        None
    );
    let mut deleting = cluster(json!({"controlPlaneEndpoint": endpoint}));
    deleting.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    assert_eq!(wants(&deleting), None);
}

#[test]
fn the_secret_is_as_upstream_writes_it() {
    let secret = made::secret(&cluster(json!({})), "text");
    assert_eq!(
        secret,
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": {
                "name": "c-kubeconfig", "namespace": "n",
                "labels": {"cluster.x-k8s.io/cluster-name": "c"},
                "ownerReferences": [
                    {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "uid-c"},
                ],
            },
            "data": {"value": "dGV4dA=="},
        })
    );
    let record = SecretRecord::new(serde_json::from_value(secret).unwrap()).unwrap();
    assert!(record.is_owned_by(cluster(json!({})).uid()));
    assert!(!record.is_owned_by("another"));
}

#[test]
fn the_many_who_look_for_an_authority_do_not_flood_the_server() {
    for (who_look, seconds) in [(1, 30), (300, 30), (600, 60), (10_000, 1000)] {
        assert_eq!(look_period(who_look).as_secs(), seconds, "{who_look}");
    }
}

#[test]
fn a_cluster_is_looked_at_when_its_wish_changes() {
    let depth = |kubeconfigs: &Kubeconfigs| kubeconfigs.queue.figures().adds;
    let kubeconfigs = Kubeconfigs::new(Arc::default());
    let key = ObjectKey::new("n", "c");
    kubeconfigs.observe(&key, Some(&cluster(json!({}))), || false);
    kubeconfigs.secret_changed(&key);
    assert_eq!(depth(&kubeconfigs), 0, "no wish");
    let wanting = cluster(json!({"controlPlaneEndpoint": {"host": "h", "port": 1}}));
    kubeconfigs.observe(&key, Some(&wanting), || false);
    kubeconfigs.observe(&key, Some(&wanting), || false);
    assert_eq!(depth(&kubeconfigs), 1);
    kubeconfigs.secret_changed(&key);
    assert_eq!(depth(&kubeconfigs), 2);
    assert!(kubeconfigs.say(&key, Some("oops")), "news");
    assert!(!kubeconfigs.say(&key, Some("oops")), "no news");
    assert_eq!(kubeconfigs.trouble(&key).as_deref(), Some("oops"));
    kubeconfigs.observe(&key, None, || false);
    assert_eq!(kubeconfigs.trouble(&key), None);
}

#[test]
fn who_has_gone_is_not_noted_as_looking() {
    let kubeconfigs = Kubeconfigs::new(Arc::default());
    let key = ObjectKey::new("n", "c");
    let wanting = cluster(json!({"controlPlaneEndpoint": {"host": "h", "port": 1}}));
    kubeconfigs.observe(&key, Some(&wanting), || false);
    assert!(kubeconfigs.begins_to_look(&key).is_some(), "looks for the first time");
    assert!(kubeconfigs.begins_to_look(&key).is_none(), "looks already");
    kubeconfigs.observe(&key, None, || false);
    assert!(kubeconfigs.looking().is_empty());
    // A pass that was under way is none the wiser.
    assert!(kubeconfigs.begins_to_look(&key).is_some());
    kubeconfigs.looks(&key);
    assert!(kubeconfigs.looking().is_empty());
}

#[test]
fn a_pause_does_not_hide_the_connections_trouble() {
    let kubeconfigs = Kubeconfigs::new(Arc::default());
    let key = ObjectKey::new("n", "c");
    let spec = json!({"controlPlaneEndpoint": {"host": "h", "port": 1}});
    let mut paused = spec.clone();
    paused["paused"] = json!(true);
    let is_troubled = || kubeconfigs.kept().get(&key).map(|it| it.is_connection_troubled);
    kubeconfigs.observe(&key, Some(&cluster(spec.clone())), || false);
    kubeconfigs.connection_changed(&key, true);
    assert_eq!(is_troubled(), Some(true));
    kubeconfigs.observe(&key, Some(&cluster(paused)), || true);
    assert_eq!(is_troubled(), None);
    kubeconfigs.observe(&key, Some(&cluster(spec)), || true);
    assert_eq!(is_troubled(), Some(true));
}
