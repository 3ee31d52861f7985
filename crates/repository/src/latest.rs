//! The version to use when none is named.

use capstan_api::contract::ContractVersion;

use crate::{
    metadata::{Metadata, supported_contract},
    version::Version,
};

/// After this many unusable releases, the repository is most likely not a provider's.
const MOST_FAILURES: usize = 10;

/// The preferred contract; older ones are supported.
const CURRENT: ContractVersion = ContractVersion::V1Beta2;

/// A version that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The version as the repository names it.
    pub version: String,
    /// The reason it was skipped.
    pub reason: String,
}

/// The version to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The version as the repository names it.
    pub version: String,
    /// The newer versions that were skipped.
    pub skipped: Vec<Skipped>,
}

/// The search for the newest release that can be used, stable releases first.
///
/// It asks for the metadata of one release after the other, and for no more than it needs.
#[derive(Debug)]
pub(crate) struct Search {
    all: Vec<Version>,
    /// The best one last.
    left: Vec<Version>,
    skipped: Vec<Skipped>,
    failures: usize,
    /// What the newest release says about the others spares reading theirs.
    guide: Option<Metadata>,
    found: Option<Version>,
}

impl Search {
    /// Begins with the versions of a repository, in any order; what is not a version is skipped.
    pub(crate) fn new(listed: &[String]) -> Self {
        let (mut all, mut skipped) = (Vec::new(), Vec::new());
        for text in listed {
            match Version::parse(text) {
                // Blanks cannot be part of a tag or folder that is asked for by its version.
                Ok(version) if version.as_str() == text => all.push(version),
                Ok(_) => skipped.push(skip(text, "there are blanks around the version")),
                Err(error) => skipped.push(skip(text, &error.to_string())),
            }
        }
        all.sort_by(Version::by_preference);
        all.dedup();
        skipped.sort_by(|a, b| a.version.cmp(&b.version));
        skipped.dedup();
        let left = all.iter().rev().cloned().collect();
        Self { all, left, skipped, failures: 0, guide: None, found: None }
    }

    /// The versions, the preferred one first, and the skipped ones.
    pub(crate) fn into_versions(self) -> (Vec<Version>, Vec<Skipped>) {
        (self.all, self.skipped)
    }

    /// The version whose metadata is wanted next.
    pub(crate) fn next(&mut self) -> Option<Version> {
        while self.failures < MOST_FAILURES {
            let version = self.left.pop()?;
            let Some(reason) = self.foretold(&version) else { return Some(version) };
            self.skipped.push(Skipped { version: version.to_string(), reason });
        }
        None
    }

    /// Why a version cannot be used, if a newer release says so.
    fn foretold(&self, version: &Version) -> Option<String> {
        let guide = self.guide.as_ref()?;
        let series = guide.series_of(version)?;
        match supported_contract(&series.contract) {
            Some(_) => None,
            None => guide.usable_contract_of(version.as_str()).err().map(|it| it.to_string()),
        }
    }

    /// Takes the metadata that was asked for, or why it cannot be had.
    pub(crate) fn record(&mut self, version: &Version, metadata: Result<Metadata, String>) {
        let judged = metadata.and_then(|metadata| match metadata.usable_contract_of(version.as_str()) {
            Ok(contract) => Ok((metadata, contract)),
            Err(error) => {
                self.guide.get_or_insert(metadata);
                Err(error.to_string())
            }
        });
        match (judged, self.found.take()) {
            (Err(reason), found) => {
                self.found = found;
                self.failures += 1;
                self.skipped.push(Skipped { version: version.to_string(), reason });
            }
            (Ok((_, contract)), Some(before)) if contract != CURRENT => {
                self.found = Some(before);
            }
            (Ok(_), Some(before)) => {
                let reason = format!("{version} speaks contract {CURRENT}, and this one an older contract");
                self.skipped.push(Skipped { version: before.to_string(), reason });
                self.left.clear();
                self.found = Some(version.clone());
            }
            (Ok((metadata, contract)), None) => {
                self.left.retain(|it| contract != CURRENT && may_replace(it, version, &metadata));
                self.found = Some(version.clone());
            }
        }
    }

    /// The version that was found, or why there is none.
    pub(crate) fn finish(mut self) -> Result<Chosen, Vec<Skipped>> {
        if let Some(version) = self.found {
            return Ok(Chosen { version: version.to_string(), skipped: self.skipped });
        }
        if let Some(next) = self.left.last() {
            let reason = format!(
                "not tried after {MOST_FAILURES} others, and neither were {} after it",
                self.left.len() - 1
            );
            self.skipped.push(skip(next.as_str(), &reason));
        }
        Err(self.skipped)
    }
}

/// Whether a release of the series that speaks the current contract may take the place of a newer one that does
/// not; a pre-release never takes that of a stable release.
fn may_replace(version: &Version, found: &Version, metadata: &Metadata) -> bool {
    let series = metadata.newest_series_of(CURRENT);
    (version.is_stable() || !found.is_stable()) && series.is_some() && metadata.series_of(version) == series
}

fn skip(version: &str, reason: &str) -> Skipped {
    Skipped { version: version.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Versions with their series, what is chosen, what is read, and what is skipped.
    type Case = (&'static [(&'static str, &'static str)], Option<&'static str>, Texts, Texts);
    type Texts = &'static [&'static str];

    /// What is behind a version: its metadata, or nothing.
    type Releases = BTreeMap<String, Result<Metadata, String>>;

    fn metadata(series: &str) -> Result<Metadata, String> {
        let entries: Vec<_> = series
            .split(' ')
            .map(|it| {
                let (numbers, contract) = it.split_once('=').unwrap();
                let (major, minor) = numbers.split_once('.').unwrap();
                format!("{{major: {major}, minor: {minor}, contract: {contract}}}")
            })
            .collect();
        let text = format!(
            "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nreleaseSeries: [{}]\n",
            entries.join(", ")
        );
        Metadata::parse(&text, "metadata.yaml").map_err(|it| it.to_string())
    }

    fn releases(pairs: &[(&str, &str)]) -> Releases {
        let read = |it: &str| if it.is_empty() { Err("no metadata.yaml".to_owned()) } else { metadata(it) };
        pairs.iter().map(|(version, series)| ((*version).to_owned(), read(series))).collect()
    }

    /// The outcome, and the versions whose metadata was read for it.
    fn run(listed: &[String], releases: &Releases) -> (Result<Chosen, Vec<Skipped>>, Vec<String>) {
        let mut search = Search::new(listed);
        let mut read = Vec::new();
        while let Some(version) = search.next() {
            read.push(version.to_string());
            search.record(&version, releases.get(version.as_str()).unwrap().clone());
        }
        (search.finish(), read)
    }

    #[test]
    fn the_newest_stable_release_that_can_be_used_is_taken() {
        let cases: &[Case] = &[
            (&[("v1.0.0", "1.0=v1beta2"), ("v1.1.0", "1.1=v1beta2")], Some("v1.1.0"), &["v1.1.0"], &[]),
            (&[("v1.9.0", "1.9=v1beta2"), ("v1.10.0", "1.10=v1beta2")], Some("v1.10.0"), &["v1.10.0"], &[]),
            // Stable before pre-release, and pre-releases where there is nothing else.
            (&[("v1.0.0", "1.0=v1beta2"), ("v2.0.0-rc.0", "2.0=v1beta2")], Some("v1.0.0"), &["v1.0.0"], &[]),
            (
                &[("v2.0.0-rc.0", "2.0=v1beta2"), ("v2.0.0-rc.1", "2.0=v1beta2")],
                Some("v2.0.0-rc.1"),
                &["v2.0.0-rc.1"],
                &[],
            ),
            (
                &[("v1.0.0", ""), ("v2.0.0-rc.0", "2.0=v1beta2")],
                Some("v2.0.0-rc.0"),
                &["v1.0.0", "v2.0.0-rc.0"],
                &["v1.0.0"],
            ),
            // Without the v, and with both spellings.
            (&[("1.0.0", "1.0=v1beta2"), ("1.1.0", "1.1=v1beta1")], Some("1.1.0"), &["1.1.0"], &[]),
            (&[("1.0.0", "1.0=v1beta2"), ("v1.0.0", "1.0=v1beta2")], Some("v1.0.0"), &["v1.0.0"], &[]),
            // What is no version does no harm.
            (
                &[("v1.0.0", "1.0=v1beta2"), ("nightly", ""), ("v1", ""), ("api/v1.2.3", "")],
                Some("v1.0.0"),
                &["v1.0.0"],
                &["api/v1.2.3", "nightly", "v1"],
            ),
            (
                &[("v1.0.0", "1.0=v1beta2"), (" v1.1.0", "1.1=v1beta2")],
                Some("v1.0.0"),
                &["v1.0.0"],
                &[" v1.1.0"],
            ),
            // A release that is not there yet, and one whose metadata forgets it.
            (
                &[("v1.0.0", "1.0=v1beta2"), ("v1.1.0", ""), ("v1.2.0", "1.0=v1beta2")],
                Some("v1.0.0"),
                &["v1.2.0", "v1.1.0", "v1.0.0"],
                &["v1.2.0", "v1.1.0"],
            ),
            // Contracts that are not spoken; those of the same series are not even read.
            (
                &[
                    ("v1.0.0", "1.0=v1beta2"),
                    ("v2.0.0", "1.0=v1beta2 2.0=v1beta3"),
                    ("v2.0.1", "1.0=v1beta2 2.0=v1beta3"),
                ],
                Some("v1.0.0"),
                &["v2.0.1", "v1.0.0"],
                &["v2.0.1", "v2.0.0"],
            ),
            (
                &[("v0.1.0", "0.1=v1alpha4"), ("v1.0.0-rc.0", "0.1=v1alpha4 1.0=v1beta2")],
                Some("v1.0.0-rc.0"),
                &["v0.1.0", "v1.0.0-rc.0"],
                &["v0.1.0"],
            ),
            (&[("v0.1.0", "0.1=v1alpha4")], None, &["v0.1.0"], &["v0.1.0"]),
            // The older contract is understood.
            (&[("v1.0.0", "1.0=v1beta1")], Some("v1.0.0"), &["v1.0.0"], &[]),
            // A series of the current contract is preferred where it has a stable release.
            (
                &[("v1.9.3", "1.9=v1beta2"), ("v2.0.0", "2.0=v1beta1 1.9=v1beta2")],
                Some("v1.9.3"),
                &["v2.0.0", "v1.9.3"],
                &["v2.0.0"],
            ),
            (
                &[("v1.9.3", ""), ("v2.0.0", "2.0=v1beta1 1.9=v1beta2")],
                Some("v2.0.0"),
                &["v2.0.0", "v1.9.3"],
                &["v1.9.3"],
            ),
            // A series that is only announced, or has pre-releases only, changes nothing.
            (&[("v1.0.0", "1.0=v1beta1 1.1=v1beta2")], Some("v1.0.0"), &["v1.0.0"], &[]),
            (&[("v1.0.0", "1.0=v1beta2 1.1=v1beta2")], Some("v1.0.0"), &["v1.0.0"], &[]),
            (
                &[("v1.0.0", "1.0=v1beta1 1.1=v1beta2"), ("v1.1.0-rc.0", "1.1=v1beta2")],
                Some("v1.0.0"),
                &["v1.0.0"],
                &[],
            ),
            (&[], None, &[], &[]),
            (&[("main", "")], None, &[], &["main"]),
        ];
        for (pairs, expected, read, skipped) in cases {
            let listed: Vec<_> = pairs.iter().map(|(version, _)| (*version).to_owned()).collect();
            let (outcome, was_read) = run(&listed, &releases(pairs));
            let (version, was_skipped) = match outcome {
                Ok(chosen) => (Some(chosen.version), chosen.skipped),
                Err(skipped) => (None, skipped),
            };
            assert_eq!(version.as_deref(), *expected, "{pairs:?}");
            assert_eq!(was_read, *read, "{pairs:?}");
            let was_skipped: Vec<_> = was_skipped.into_iter().map(|it| it.version).collect();
            assert_eq!(was_skipped, *skipped, "{pairs:?}");
        }
    }

    #[test]
    fn a_repository_without_any_metadata_is_given_up_soon() {
        let listed: Vec<_> = (0..50).map(|it| format!("v1.0.{it}")).collect();
        let nothing = listed.iter().map(|it| (it.clone(), Err("no metadata.yaml".to_owned()))).collect();
        let (outcome, read) = run(&listed, &nothing);
        assert_eq!(read.len(), MOST_FAILURES);
        let last = outcome.unwrap_err().pop().unwrap();
        assert_eq!(last.version, "v1.0.39");
        assert!(last.reason.contains("39 after it"), "{}", last.reason);
    }

    fn version() -> impl Strategy<Value = String> {
        let suffix = prop::sample::select(vec!["", "", "", "-rc.1", "-rc.2", "+b", " ", "x"]);
        let prefix = prop::sample::select(vec!["v", "v", "", "release-"]);
        (prefix, 0..3u8, 0..3u8, 0..3u8, suffix).prop_map(|(prefix, major, minor, patch, suffix)| {
            format!("{prefix}{major}.{minor}.{patch}{suffix}")
        })
    }

    fn contents() -> impl Strategy<Value = Result<Metadata, String>> {
        let contract = prop::sample::select(vec!["v1beta2", "v1beta1", "v1alpha4", "v1beta3"]);
        let series = prop::collection::vec((0..3u8, 0..3u8, contract), 1..9);
        prop_oneof![
            1 => Just(Err("no metadata.yaml".to_owned())),
            4 => series.prop_map(|series| {
                let all: Vec<_> = series.iter().map(|(major, minor, it)| format!("{major}.{minor}={it}")).collect();
                metadata(&all.join(" "))
            }),
        ]
    }

    fn shuffled() -> impl Strategy<Value = (Releases, Vec<String>)> {
        prop::collection::btree_map(version(), contents(), 0..12).prop_flat_map(|releases| {
            let listed: Vec<_> = releases.keys().cloned().collect();
            (Just(releases), Just(listed).prop_shuffle())
        })
    }

    proptest! {
        #[test]
        fn the_order_of_the_listing_does_not_matter((releases, shuffled) in shuffled()) {
            let sorted: Vec<_> = releases.keys().cloned().collect();
            prop_assert_eq!(run(&shuffled, &releases), run(&sorted, &releases));
        }

        #[test]
        fn what_is_chosen_can_be_used_and_no_stable_release_is_left_for_a_pre_release(
            (releases, listed) in shuffled()
        ) {
            let usable = |it: &str| releases[it].as_ref().is_ok_and(|metadata| metadata.usable_contract_of(it).is_ok());
            if let (Ok(chosen), read) = run(&listed, &releases) {
                prop_assert!(usable(&chosen.version));
                let stable = Version::parse(&chosen.version).unwrap().is_stable();
                let stable_left = read.iter().any(|it| usable(it) && Version::parse(it).unwrap().is_stable());
                prop_assert!(stable || !stable_left);
                prop_assert!(chosen.skipped.iter().all(|it| it.version != chosen.version));
            }
        }
    }
}
