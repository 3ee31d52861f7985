//! The files of a release, as clusterctl and the provider operator expect them: a folder a provider.

pub(crate) mod chart;
mod core;
mod local;
mod operator;

#[cfg(test)]
mod checks;

use anyhow::{Result, bail};
use capstan_components::manager::{IMAGE, Names, Program};
use capstan_manifest::yaml;
use semver::Version;
use serde_json::{Value, json};

/// The contract between core and providers that we speak.
const CONTRACT: &str = "v1beta2";
/// Every series that was ever released, for clusterctl wants to find the installed version in the newest metadata.
const SERIES: [(u64, u64); 1] = [(0, 1)];

/// The files, each with its path below the folder of releases: that of a local repository of clusterctl's.
pub(crate) fn files(version: &str) -> Result<Vec<(String, String)>> {
    let Some(parsed) = version.strip_prefix('v').and_then(|version| Version::parse(version).ok()) else {
        bail!("{version:?} is not a version that clusterctl accepts: write it like v0.1.0");
    };
    if !parsed.build.is_empty() {
        bail!(
            "{version:?} has build metadata (what follows +), which no image's tag can hold: leave it away"
        );
    }
    let mut files = Vec::new();
    for (names, own) in [(&core::NAMES, core::files(&parsed)), (&local::NAMES, local::files(&parsed))] {
        let folder = format!("{}/{version}", names.label.1);
        files.extend(own.into_iter().map(|(name, text)| (format!("{folder}/{name}"), text)));
    }
    let folder = format!("{}/{version}", capstan_components::operator::NAME);
    files.extend(operator::files(&parsed).into_iter().map(|(name, text)| (format!("{folder}/{name}"), text)));
    Ok(files)
}

/// What the metadata of a release says. `followed` are series of others that ours can follow on.
fn metadata(version: &Version, followed: &[(u64, u64)]) -> String {
    let own = (version.major, version.minor);
    let mut series = SERIES.to_vec();
    if !series.contains(&own) {
        series.push(own);
    }
    // clusterctl looks for releases of the highest series that it finds here, so it must be one that is ours.
    if followed.iter().all(|other| own > *other) {
        series.extend(followed);
    }
    series.sort_unstable_by(|a, b| b.cmp(a));
    let series: Vec<_> = series
        .iter()
        .map(|(major, minor)| json!({"major": major, "minor": minor, "contract": CONTRACT}))
        .collect();
    yaml::to_string(
        &json!({"apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Metadata", "releaseSeries": series}),
    )
}

/// The value of the flags and the policy that clusterctl's variables set.
const FLAGS: [&str; 2] = [
    "--diagnostics-address=${CAPI_DIAGNOSTICS_ADDRESS:=:8443}",
    "--insecure-diagnostics=${CAPI_INSECURE_DIAGNOSTICS:=false}",
];
const WEBHOOK_PEERS: &str = "${CAPI_WEBHOOK_PEERS:=[]}";

fn network_policy(names: &Names<'_>) -> Value {
    names.network_policy(&json!(WEBHOOK_PEERS))
}

fn deployment(names: &Names<'_>, version: &Version) -> Value {
    names.deployment(&Program { image: &image(version), flags: &FLAGS, replicas: 1 })
}

fn image(version: &Version) -> String {
    format!("{IMAGE}:v{version}")
}

/// Labels all objects as the provider's, and writes them.
fn manifest(names: &Names<'_>, objects: Vec<Value>) -> String {
    yaml::to_multi_document(&names.labelled(objects))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_a_folder_a_provider() {
        let files = files("v0.1.0-rc.1").unwrap();
        let paths: Vec<_> = files.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "cluster-api/v0.1.0-rc.1/core-components.yaml",
                "cluster-api/v0.1.0-rc.1/metadata.yaml",
                "infrastructure-local/v0.1.0-rc.1/infrastructure-components.yaml",
                "infrastructure-local/v0.1.0-rc.1/metadata.yaml",
                "infrastructure-local/v0.1.0-rc.1/cluster-template.yaml",
                "infrastructure-local/v0.1.0-rc.1/cluster-template-tenant.yaml",
                "capstan-operator/v0.1.0-rc.1/operator-components.yaml",
                "capstan-operator/v0.1.0-rc.1/chart/Chart.yaml",
                "capstan-operator/v0.1.0-rc.1/chart/values.yaml",
                "capstan-operator/v0.1.0-rc.1/chart/templates/crds.yaml",
                "capstan-operator/v0.1.0-rc.1/chart/templates/operator.yaml",
            ]
        );
        for (path, text) in files.iter().filter(|(path, _)| path.ends_with("components.yaml")) {
            assert!(text.contains("image: ghcr.io/capstan-io/capstan:v0.1.0-rc.1\n"), "{path}");
        }
    }

    #[test]
    fn metadata_names_the_series_of_the_release() {
        let series = |version: &str| {
            let files = files(version).unwrap();
            let texts = files.iter().filter(|(path, _)| path.ends_with("/metadata.yaml"));
            let counts: Vec<_> = texts
                .map(|(_, text)| {
                    let count = text.matches("- contract").count();
                    assert_eq!(text.matches("contract: v1beta2").count(), count, "{text}");
                    count
                })
                .collect();
            counts
        };
        assert_eq!(series("v0.1.7"), [1, 1]);
        assert_eq!(series("v0.2.0"), [2, 2]);
        assert_eq!(series("v1.14.9"), [2, 2], "upstream's would be higher or the same");
        assert_eq!(series("v1.15.0-rc.1"), [6, 2], "upstream has no local provider to follow on");
        for wrong in ["0.1.0", "v0.1", "v0.1.0.0", "v0.1.0+build", "v0.1.0-rc.1+1", "latest", ""] {
            assert!(files(wrong).is_err(), "{wrong:?}");
        }
    }
}
