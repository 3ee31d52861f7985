//! Releases from servers, as a user of the binary sees them: GitHub, GitLab, plain https and OCI on loopback.

use std::fs;

use capstan_testkit::fakes::{FakeArtifact, FakeServer, Fault, RegistryAuth, digest_of};
use serde_json::{Value, json};

use crate::{
    refusals::refused,
    user::{COMPONENTS, METADATA, Told, User, VERSION, of_kind},
};

const FILE: &str = "infrastructure-components.yaml";
const LATEST: [&str; 4] = ["generate", "provider", "-i", "acme"];
const PINNED: [&str; 4] = ["generate", "provider", "-i", "acme:v1.0.0"];

/// A server, and a user who trusts it.
struct Market {
    server: FakeServer,
    user: User,
}

impl Market {
    async fn open() -> Self {
        let server = FakeServer::start().await;
        let user = User::new().with("ACME_TOKEN", "t0ken").with("GOPROXY", server.url(""));
        let cache = user.path("cache");
        let authority = user.write("ca.pem", server.ca_pem());
        Self { user: user.with("CAPSTAN_CACHE_DIR", cache).with("SSL_CERT_FILE", authority), server }
    }

    /// With the provider on GitHub, in these versions.
    async fn on_github(versions: &[&str]) -> Self {
        let market = Self::open().await;
        for version in versions {
            let components = components_of(version);
            let files = [("metadata.yaml", METADATA), (FILE, &components)];
            market.server.github("o/r", |it| {
                it.release(version, &files);
            });
        }
        market.server.go_module("127.0.0.1/o/r", versions);
        market.sell_at(&market.server.url(&format!("/o/r/releases/latest/{FILE}")));
        market
    }

    fn sell_at(&self, url: &str) {
        self.user.configure(
            &json!({"providers": [{"name": "acme", "type": "InfrastructureProvider", "url": url}]}),
        );
    }

    /// With a variable more.
    fn with(self, name: &str, value: &str) -> Self {
        Self { user: self.user.with(name, value), ..self }
    }

    fn host(&self) -> String {
        self.server.host()
    }

    /// Every file in the cache.
    fn cached(&self) -> Vec<std::path::PathBuf> {
        let folder = self.user.home.join("cache/repository/blobs");
        let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
        files.map(|it| it.unwrap().path()).collect()
    }
}

/// Components that tell their version by their namespace.
fn components_of(version: &str) -> String {
    COMPONENTS.replace("acme-system", &namespace_of(version))
}

fn namespace_of(version: &str) -> String {
    version.replace('.', "-")
}

/// Makes sure which version was printed.
fn is_version(told: Told, version: &str) {
    assert_eq!(of_kind(&told.objects(), "Namespace")["metadata"]["name"], namespace_of(version));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_latest_release_on_github_is_found_by_the_go_proxy() {
    let market = Market::on_github(&["v1.0.0", "v1.1.0-rc.0"]).await;
    let told = market.user.run(&LATEST);
    assert_eq!(told.err, "", "a release candidate is nothing to talk about");
    is_version(told, VERSION);
    assert_eq!(market.server.count("/127.0.0.1/o/r/@v/list"), 1);
    assert_eq!(market.server.count("/repos/o/r/releases?"), 0);
    // It can be asked for.
    is_version(market.user.run(&["generate", "provider", "-i", "acme:v1.1.0-rc.0"]), "v1.1.0-rc.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_without_a_release_is_reported_and_passed_over() {
    let market = Market::on_github(&[VERSION]).await;
    market.server.github("o/r", |it| {
        it.tag("v1.1.0");
    });
    market.server.go_module("127.0.0.1/o/r", &[VERSION, "v1.1.0"]);
    let told = market.user.run(&LATEST);
    let warnings: Vec<_> = told.err.lines().collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("warning: infrastructure-acme v1.1.0 is skipped: "), "{warnings:?}");
    is_version(told, VERSION);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_version_asks_for_no_listing_and_only_once() {
    let market = Market::on_github(&[VERSION, "v1.1.0"]).await;
    is_version(market.user.run(&PINNED), VERSION);
    let listings = |part: &str| market.server.count(part);
    assert_eq!((listings("/@v/list"), listings("/releases?"), listings("v1.1.0")), (0, 0, 0));
    market.server.forget_requests();
    is_version(market.user.run(&PINNED), VERSION);
    assert_eq!(market.server.requests().len(), 0, "all of it is in the cache");
    let told = market.user.run(&[&PINNED[..], &["-v", "1"]].concat());
    assert!(told.err.contains(&format!("{FILE} of v1.0.0 of {}/o/r is in the cache", market.host())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_up_quota_says_until_when_and_what_helps() {
    let market = Market::on_github(&[VERSION]).await.with("GOPROXY", "off");
    let host = market.host();
    let market = market.with("GITHUB_HOSTS", &host);
    market.server.inject("/api/v3/", usize::MAX, Fault::RateLimit { reset: 1_900_000_000 });
    let expected =
        ["takes no more requests for now, until 2030-03-17T17:46:40Z", "hint: set GITHUB_TOKEN to"];
    refused(&market.user, &LATEST, &expected);
    assert!(market.cached().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_repository_opens_with_a_token() {
    let market = Market::on_github(&[VERSION]).await.with("GOPROXY", "off");
    let host = market.host();
    let market = market.with("GITHUB_HOSTS", &host);
    market.server.github("o/r", |it| {
        it.private("s3cret");
    });
    refused(&market.user, &PINNED, &["not found", "if it is private, set GITHUB_TOKEN"]);
    let market = market.with("GITHUB_TOKEN", "expired");
    let told = refused_once(&market, &["was refused (HTTP 401)", "hint: set GITHUB_TOKEN to a valid token"]);
    assert!(!told.contains("expired"), "{told}");
    let market = market.with("GITHUB_TOKEN", "s3cret");
    is_version(market.user.run(&LATEST), VERSION);
}

fn refused_once(market: &Market, expected: &[&str]) -> String {
    market.user.run(&PINNED).fails(expected)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_without_the_file_or_version_says_what_there_is() {
    let market = Market::on_github(&[VERSION]).await;
    market.server.github("o/r", |it| {
        it.release("v1.1.0", &[("metadata.yaml", METADATA)]);
    });
    let words = ["generate", "provider", "-i", "acme:v1.1.0"];
    refused(&market.user, &words, &["infrastructure-acme: not found", FILE, "v1.1.0"]);
    let words = ["generate", "provider", "-i", "acme:v9.0.0"];
    refused(&market.user, &words, &["infrastructure-acme: not found", "v9.0.0"]);
    let words = ["generate", "cluster", "c", "-n", "ns", "-i", "acme:v1.0.0", "-f", "eks"];
    refused(&market.user, &words, &["infrastructure-acme v1.0.0 has no cluster template of flavor \"eks\""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_that_breaks_off_is_tried_again() {
    let market = Market::on_github(&[VERSION]).await;
    let storage = format!("/storage/o/r/v1.0.0/{FILE}");
    market.server.inject(&storage, 1, Fault::Truncate);
    let told = market.user.run(&PINNED);
    let warnings: Vec<_> = told.err.lines().collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("broke off after") && warnings[0].ends_with("; trying again"),
        "{warnings:?}"
    );
    assert_eq!(warnings[0].matches("https://").count(), 1, "{warnings:?}");
    is_version(told, VERSION);

    let market = Market::on_github(&[VERSION]).await;
    market.server.inject(&storage, usize::MAX, Fault::Truncate);
    refused(
        &market.user,
        &PINNED,
        &["broke off after", &format!("bytes of {}", components_of(VERSION).len())],
    );
    let is_part = |it: &std::path::PathBuf| fs::read_to_string(it).unwrap().contains("kind: Namespace");
    assert!(!market.cached().iter().any(is_part), "half of a file is not kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_changed_on_its_way_is_not_used() {
    // Asking GitHub for sums costs quota, which only tokens have enough of.
    let market = Market::on_github(&[VERSION]).await.with("GITHUB_TOKEN", "t");
    let host = market.host();
    let market = market.with("GITHUB_HOSTS", &host);
    market.server.inject(&format!("/storage/o/r/v1.0.0/{FILE}"), 3, Fault::Corrupt);
    refused(
        &market.user,
        &PINNED,
        &["the checksum of", FILE, "is wrong: expected", "nothing of it was kept"],
    );
    is_version(market.user.run(&PINNED), VERSION);
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_followed_to_safe_places_only() {
    let market = Market::open().await;
    let path = |version: &str| format!("/capi/{version}/{FILE}");
    for version in ["v1.0.0", "v1.0.1", "v1.0.2"] {
        market.server.file(&format!("/capi/{version}/metadata.yaml"), METADATA);
        market.server.file(&path(version), "kind: Moved\n");
    }
    market.server.file("/elsewhere.yaml", components_of("v1.0.2"));
    market.sell_at(&market.server.url(&path("latest")));
    let plain = format!("http://{}/elsewhere.yaml", market.server.plain_host());
    for (version, target, reason) in
        [("v1.0.0", String::new(), "more than 8 times"), ("v1.0.1", plain, "http")]
    {
        market.server.inject(&format!("{}$", path(version)), usize::MAX, Fault::Redirect(target));
        let provider = format!("acme:{version}");
        refused(&market.user, &["generate", "provider", "-i", &provider], &["was redirected", reason]);
    }
    assert!(market.server.requests().iter().all(|it| it.scheme == "https"));
    let target = market.server.url("/elsewhere.yaml");
    market.server.inject(&format!("{}$", path("v1.0.2")), 1, Fault::Redirect(target));
    is_version(market.user.run(&["generate", "provider", "-i", "acme:v1.0.2"]), "v1.0.2");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_in_a_registry_is_a_release() {
    let market = Market::open().await;
    for version in ["v1.0.0", "v1.1.0"] {
        let components = components_of(version);
        let files = FakeArtifact::files(&[("metadata.yaml", METADATA), (FILE, &components)]);
        market.server.artifact("capi/acme", version, files);
    }
    market.sell_at(&format!("oci://{}/capi/acme", market.host()));
    is_version(market.user.run(&LATEST), "v1.1.0");
    is_version(market.user.run(&PINNED), VERSION);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_registry_gets_its_own_credentials_and_no_other_server_does() {
    let market = Market::open().await;
    let host = market.host();
    let user = || RegistryAuth::Token("me".to_owned(), "s3cret".to_owned());
    let files = [("metadata.yaml", METADATA), (FILE, &components_of(VERSION))];
    market.server.artifact("capi/acme", VERSION, FakeArtifact::files(&files));
    market.server.registry_auth(user());
    market.sell_at(&format!("oci://{host}/capi/acme"));
    let market = market.with("OCI_USERNAME", "me").with("OCI_PASSWORD", "s3cret");
    let hint = format!("hint: OCI_HOST must name {host} before it is sent your credentials");
    refused(&market.user, &PINNED, &["was refused (HTTP 401)", &hint]);
    assert!(market.server.requests().iter().all(|it| it.authorization().is_none()));
    let market = market.with("OCI_HOST", &host);
    is_version(market.user.run(&PINNED), VERSION);

    let market = market.with("CAPSTAN_CACHE_LIMIT", "0");
    let away = FakeServer::start().await;
    away.registry_auth(RegistryAuth::TokenFrom(away.url("/token")));
    let both = market.user.write("ca.pem", &format!("{}{}", market.server.ca_pem(), away.ca_pem()));
    let market = market.with("SSL_CERT_FILE", both.to_str().unwrap());
    let target = away.url("/v2/capi/acme/manifests/v1.0.0");
    market.server.inject("/manifests/", usize::MAX, Fault::Redirect(target.clone()));
    let told = format!("was redirected to {target}, which refused access (HTTP 401)");
    refused(&market.user, &PINNED, &[&told, "hint: credentials do not follow a redirect to another server"]);
    assert!(away.requests().iter().all(|it| it.authorization().is_none()) && away.count("/token") == 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_with_hostile_names_is_refused_as_a_whole() {
    let market = Market::open().await;
    let files = [("metadata.yaml", METADATA), (FILE, COMPONENTS), ("../../.bashrc", "evil")];
    market.server.artifact("capi/acme", VERSION, FakeArtifact::files(&files));
    market.sell_at(&format!("oci://{}/capi/acme:v1.0.0", market.host()));
    refused(&market.user, &LATEST, &["a file named \"../../.bashrc\", which is refused"]);
    assert_eq!(market.server.count("/blobs/"), 0);
    assert!(!market.user.home.join(".bashrc").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn gitlab_packages_are_releases() {
    let market = Market::open().await;
    for version in ["v1.0.0", "v1.1.0"] {
        for (file, text) in [("metadata.yaml", METADATA), (FILE, &components_of(version))] {
            market.server.gitlab_file("g/p", "capi", version, file, text);
        }
    }
    let path = format!("/api/v4/projects/g%2Fp/packages/generic/capi/v1.0.0/{FILE}");
    market.sell_at(&market.server.url(&path));
    is_version(market.user.run(&["generate", "provider", "-i", "acme:v1.1.0"]), "v1.1.0");
    is_version(market.user.run(&LATEST), VERSION);

    let market = Market { user: market.user, ..Market::open().await };
    let authority = market.user.write("ca.pem", market.server.ca_pem());
    market.server.gitlab_file("g/p", "capi", VERSION, "metadata.yaml", METADATA);
    market.server.gitlab_file("g/p", "capi", VERSION, FILE, &components_of(VERSION));
    market.server.gitlab_token("s3cret");
    market.sell_at(&market.server.url(&path));
    let market = market.with("SSL_CERT_FILE", authority.to_str().unwrap());
    refused(&market.user, &LATEST, &["was refused (HTTP 401)", "hint: set GITLAB_ACCESS_TOKEN"]);
    let market = market.with("GITLAB_ACCESS_TOKEN", "s3cret");
    refused(&market.user, &LATEST, &["was refused (HTTP 401)", "hint: GITLAB_HOSTS must name 127.0.0.1"]);
    is_version(market.with("GITLAB_HOSTS", "127.0.0.1").user.run(&LATEST), VERSION);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_https_server_will_do_and_its_sums_are_kept() {
    let market = Market::open().await;
    let components = components_of(VERSION);
    market.server.file("/capi/v1.0.0/metadata.yaml", METADATA);
    market.server.file(&format!("/capi/v1.0.0/{FILE}"), components.clone());
    market.sell_at(&market.server.url(&format!("/capi/v1.0.0/{FILE}")));
    is_version(market.user.run(&LATEST), VERSION);
    let described = market.user.run(&[&LATEST[..], &["--describe", "-o", "json"]].concat()).data();
    let value: Value = serde_json::from_str(&described).unwrap();
    assert_eq!(format!("sha256:{}", value["sha256"].as_str().unwrap()), digest_of(components.as_bytes()));

    let market = Market { user: User::new().with("ACME_TOKEN", "t0ken"), ..market };
    let authority = market.user.write("ca.pem", market.server.ca_pem());
    let market = market.with("SSL_CERT_FILE", authority.to_str().unwrap());
    market.sell_at(&market.server.url(&format!("/capi/v1.0.0/{FILE}")));
    let wrong = digest_of(b"something else").replace("sha256:", "");
    market.server.file("/capi/v1.0.0/SHA256SUMS", format!("{wrong}  {FILE}\n"));
    refused(&market.user, &LATEST, &["the checksum of", "promised by SHA256SUMS", &wrong]);
}

#[tokio::test(flavor = "multi_thread")]
async fn templates_and_configuration_come_from_addresses_too() {
    let market = Market::open().await;
    market.server.file("/templates/t.yaml", "kind: Cluster\nmetadata: {name: '${CLUSTER_NAME}'}\n");
    let address = market.server.url("/templates/t.yaml");
    let objects = market.user.run(&["generate", "cluster", "c", "-n", "ns", "--from", &address]).objects();
    assert_eq!(objects[0]["metadata"], json!({"name": "c", "namespace": "ns"}));
    let printed = market.user.with("CLUSTER_NAME", "d").run(&["generate", "yaml", "--from", &address]).data();
    assert_eq!(printed, "kind: Cluster\nmetadata:\n  name: d\n");

    let market = Market::on_github(&[VERSION]).await;
    let config = fs::read(market.user.home.join(".cluster-api/clusterctl.yaml")).unwrap();
    fs::remove_file(market.user.home.join(".cluster-api/clusterctl.yaml")).unwrap();
    market.server.file("/config.yaml", config);
    let address = market.server.url("/config.yaml");
    is_version(market.user.run(&[&LATEST[..], &["--config", &address]].concat()), VERSION);
    let nowhere = market.server.url("/nowhere.yaml");
    let words = [&LATEST[..], &["--config", &nowhere]].concat();
    refused(&market.user, &words, &["the configuration file", &nowhere, "cannot be downloaded: not found"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_page_is_no_file() {
    let market = Market::open().await;
    market.sell_at(&market.server.url(&format!("/capi/v1.0.0/{FILE}")));
    market.server.inject("/capi/", usize::MAX, Fault::LoginPage);
    refused(&market.user, &LATEST, &["answered with a web page instead of a file", "hint: "]);
    let words = ["generate", "yaml", "--from", &market.server.url("/capi/t.yaml")];
    market.user.run(&words).fails(&["answered with a web page"]);
    assert!(market.cached().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_trusted_says_how_to_trust_it() {
    let market = Market::on_github(&[VERSION]).await;
    let user = market.user.without("SSL_CERT_FILE");
    refused(
        &user,
        &PINNED,
        &["cannot be reached", "hint: the certificate is not trusted: set SSL_CERT_FILE"],
    );
    assert_eq!(market.server.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warm_cache_is_enough_without_the_network() {
    let market = Market::on_github(&[VERSION]).await;
    is_version(market.user.run(&LATEST), VERSION);
    market.server.stop();
    let market = market.with("CAPSTAN_OFFLINE", "1");
    let told = market.user.run(&PINNED);
    assert_eq!(told.err, "", "a version stays what it is");
    is_version(told, VERSION);
    let told = market.user.run(&LATEST);
    assert!(
        told.err.contains("warning: using ") && told.err.contains("as it was fetched at"),
        "{}",
        told.err
    );
    is_version(told, VERSION);
    let words = ["generate", "provider", "-i", "acme:v1.1.0"];
    refused(
        &market.user,
        &words,
        &["is not in the cache, and the network is not to be used", "hint: run once"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_is_replaced_by_what_it_said_before() {
    let market = Market::on_github(&[VERSION]).await;
    is_version(market.user.run(&LATEST), VERSION);
    market.server.stop();
    is_version(market.user.run(&PINNED), VERSION);
    let told = market.user.run(&LATEST);
    assert!(told.err.contains("as it was fetched at"), "{}", told.err);
    is_version(told, VERSION);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spoilt_cache_is_noticed_and_filled_again() {
    let market = Market::on_github(&[VERSION]).await;
    is_version(market.user.run(&PINNED), VERSION);
    let spoil = || market.cached().iter().for_each(|file| fs::write(file, "kind: Evil\n").unwrap());
    spoil();
    let told = market.user.run(&PINNED);
    assert_eq!(told.err.matches("was spoilt and has been dropped").count(), 2, "{}", told.err);
    is_version(told, VERSION);
    assert_eq!(market.user.run(&PINNED).err, "", "it is whole again");
    spoil();
    market.user.with("CAPSTAN_OFFLINE", "true").run(&PINNED).fails(&["is not in the cache"]);
}
