//! What there is to upgrade a provider to.

use std::collections::{BTreeMap, BTreeSet};

use capstan_repository::{Metadata, Repository, RepositoryError, Series, Version};
use futures::future::join_all;

use crate::release::{ReleaseError, Releases, unlabelled};
use capstan_management::inventory::Installed;

/// After this many releases that are no use, older ones are not tried any more.
const MOST_FAILURES: usize = 10;

/// What the repository of a provider has for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AvailableVersions {
    /// The contract that the installed version speaks, if anything says so.
    pub contract: Option<String>,
    /// The contracts of the installed version's series and of later ones, released or not.
    pub contracts: BTreeSet<String>,
    /// For each contract the newest stable release after the installed one.
    pub newest: BTreeMap<String, Version>,
    /// Releases that were passed over, and why.
    pub passed_over: Vec<(String, String)>,
}

impl AvailableVersions {
    /// The newest release that speaks one of these contracts.
    pub fn next(&self, contracts: &[&str]) -> Option<&Version> {
        contracts.iter().filter_map(|it| self.newest.get(*it)).max()
    }
}

/// A provider, and what there is to upgrade it to or why that is unknown.
#[derive(Debug)]
pub struct Candidate {
    /// The provider as it is installed.
    pub provider: Installed,
    /// What there is.
    pub available: Result<AvailableVersions, Box<ReleaseError>>,
}

/// Asks the repositories of all these providers at the same time.
pub(super) async fn look(releases: &Releases<'_>, providers: &[Installed]) -> Vec<Candidate> {
    let each = providers.iter().map(|provider| async move {
        let available = available_to(releases, provider).await.map_err(Box::new);
        Candidate { provider: provider.clone(), available }
    });
    join_all(each).await
}

/// The contract that the installed version of a provider speaks, if its own metadata name it.
pub(super) async fn contract_of(
    releases: &Releases<'_>,
    provider: &Installed,
) -> Result<String, ReleaseError> {
    let source = releases.source(provider.kind, &provider.name).await?;
    Ok(source.repository.metadata(&provider.version).await?.contract_of(&provider.version)?.to_owned())
}

async fn available_to(
    releases: &Releases<'_>,
    provider: &Installed,
) -> Result<AvailableVersions, ReleaseError> {
    let installed =
        Version::parse(&provider.version).map_err(|error| ReleaseError::Metadata(error.into()))?;
    let repository = releases.source(provider.kind, &provider.name).await?.repository;
    let (versions, odd) = repository.versions().await?;
    let mut survey = Survey::new(&installed, &versions);
    while let Some(version) = survey.next() {
        let metadata = read(&repository, &version).await?;
        survey.tell(&version, metadata);
    }
    let own = if survey.tells_contract() { None } else { read(&repository, &installed).await?.ok() };
    let mut available = survey.finish(own.as_ref());
    let odd = odd.into_iter().map(|it| (it.version, it.reason));
    available.passed_over.extend(odd);
    Ok(available)
}

/// The metadata of a release, or why that release is no use. A repository that cannot be asked is another matter.
async fn read(
    repository: &Repository,
    version: &Version,
) -> Result<Result<Metadata, String>, RepositoryError> {
    match repository.metadata(version.as_str()).await {
        Ok(metadata) => Ok(Ok(metadata)),
        Err(error) if error.is_not_found() => Ok(Err(unlabelled(repository.label(), &error))),
        Err(
            error @ (RepositoryError::Metadata(_)
            | RepositoryError::WebPage { .. }
            | RepositoryError::NotText { .. }),
        ) => Ok(Err(unlabelled(repository.label(), &error))),
        Err(error) => Err(error),
    }
}

/// The search for the newest usable release of each contract, which reads the metadata of as few as it can.
#[derive(Debug)]
struct Survey<'a> {
    installed: &'a Version,
    /// Stable releases that are not read yet, the newest first.
    left: Vec<&'a Version>,
    /// What the newest release says about the others spares reading most of them.
    guide: Option<Metadata>,
    newest: BTreeMap<String, Version>,
    passed_over: Vec<(String, String)>,
}

impl<'a> Survey<'a> {
    fn new(installed: &'a Version, versions: &'a [Version]) -> Self {
        let mut left: Vec<&Version> = versions.iter().filter(|it| it.is_stable()).collect();
        left.sort_by(|a, b| b.cmp(a));
        Self { installed, left, guide: None, newest: BTreeMap::new(), passed_over: Vec::new() }
    }

    /// The release whose metadata are wanted next.
    fn next(&mut self) -> Option<Version> {
        if self.passed_over.len() >= MOST_FAILURES {
            return None;
        }
        let at = match &self.guide {
            None => Some(0).filter(|_| !self.left.is_empty()),
            Some(guide) => self.left.iter().position(|it| self.is_wanted(it, guide)),
        }?;
        Some(self.left.remove(at).clone())
    }

    /// Whether a release may be the newest of its contract.
    fn is_wanted(&self, version: &Version, guide: &Metadata) -> bool {
        let is_known = |series: &Series| self.newest.contains_key(&series.contract);
        version.is_newer_than(self.installed) && !guide.series_of(version).is_some_and(is_known)
    }

    fn tell(&mut self, version: &Version, metadata: Result<Metadata, String>) {
        let judged = metadata.and_then(|metadata| {
            let contract = metadata.contract_of(version.as_str()).map(str::to_owned);
            self.guide.get_or_insert(metadata);
            contract.map_err(|error| error.to_string())
        });
        match judged {
            Ok(contract) if version.is_newer_than(self.installed) => {
                self.newest.entry(contract).or_insert_with(|| version.clone());
            }
            Ok(_) => {}
            Err(reason) => self.passed_over.push((version.to_string(), reason)),
        }
    }

    fn tells_contract(&self) -> bool {
        self.guide.as_ref().is_some_and(|it| it.series_of(self.installed).is_some())
    }

    /// What was found; the installed release's own metadata help where the newest say nothing about it.
    fn finish(self, own: Option<&Metadata>) -> AvailableVersions {
        let known = self.guide.iter().chain(own);
        let contract =
            known.clone().find_map(|it| it.series_of(self.installed)).map(|it| it.contract.clone());
        let series = known.flat_map(|it| &it.series);
        let is_later = |it: &&Series| {
            let (major, minor) = (self.installed.major(), self.installed.minor());
            (u64::try_from(it.major).unwrap_or(0), u64::try_from(it.minor).unwrap_or(0)) >= (major, minor)
        };
        let mut contracts: BTreeSet<String> = series.filter(is_later).map(|it| it.contract.clone()).collect();
        contracts.extend(contract.iter().chain(self.newest.keys()).cloned());
        AvailableVersions { contract, contracts, newest: self.newest, passed_over: self.passed_over }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Metadata from e.g. `1.0=v1beta1 1.1=v1beta2`; none if empty.
    pub(in super::super) fn metadata(series: &str) -> Result<Metadata, String> {
        if series.is_empty() {
            return Err("no metadata.yaml".to_owned());
        }
        let series = series.split(' ').map(|it| {
            let (numbers, contract) = it.split_once('=').unwrap();
            let (major, minor) = numbers.split_once('.').unwrap();
            Series {
                major: major.parse().unwrap(),
                minor: minor.parse().unwrap(),
                contract: contract.to_owned(),
            }
        });
        Ok(Metadata { series: series.collect(), origin: "metadata.yaml".to_owned() })
    }

    /// The available over releases and their metadata, and how many of them were read for it.
    pub(in super::super) fn available(
        installed: &str,
        releases: &[(&str, &str)],
    ) -> (AvailableVersions, usize) {
        let installed = Version::parse(installed).unwrap();
        let versions: Vec<_> = releases.iter().map(|it| Version::parse(it.0).unwrap()).collect();
        let of = |version: &Version| {
            metadata(releases.iter().find(|it| it.0 == version.as_str()).map_or("", |it| it.1))
        };
        let mut survey = Survey::new(&installed, &versions);
        let mut read = 0;
        while let Some(version) = survey.next() {
            read += 1;
            survey.tell(&version, of(&version));
        }
        let own = if survey.tells_contract() { None } else { of(&installed).ok() };
        (survey.finish(own.as_ref()), read)
    }

    /// Installed, releases with their metadata, the newest of each contract, what is passed over, how many are read.
    type Case = (
        &'static str,
        &'static [(&'static str, &'static str)],
        &'static [(&'static str, &'static str)],
        &'static [&'static str],
        usize,
    );

    #[test]
    fn the_newest_usable_release_of_each_contract_is_found() {
        let cases: &[Case] = &[
            // One that tells of all the others is enough.
            (
                "v1.0.0",
                &[("v1.0.0", ""), ("v1.0.1", ""), ("v1.1.0", "1.0=v1beta2 1.1=v1beta2")],
                &[("v1beta2", "v1.1.0")],
                &[],
                1,
            ),
            ("v1.1.0", &[("v1.0.0", ""), ("v1.1.0", "1.0=v1beta2 1.1=v1beta2")], &[], &[], 1),
            (
                "v1.0.0",
                &[("v1.0.0", ""), ("v1.0.1", "1.0=v1beta1"), ("v2.0.0", "1.0=v1beta1 2.0=v1beta2")],
                &[("v1beta1", "v1.0.1"), ("v1beta2", "v2.0.0")],
                &[],
                2,
            ),
            // Pre-releases say nothing, whatever their metadata.
            (
                "v1.0.0",
                &[("v1.0.0", "1.0=v1beta2"), ("v1.0.1", "1.0=v1beta2"), ("v2.0.0-rc.0", "2.0=v1beta2")],
                &[("v1beta2", "v1.0.1")],
                &[],
                1,
            ),
            // A tag without a release, and a release without its series.
            (
                "v1.0.0",
                &[
                    ("v1.1.0", "1.0=v1beta2 1.1=v1beta2"),
                    ("v1.2.0", "1.0=v1beta2 1.1=v1beta2"),
                    ("v1.3.0", ""),
                ],
                &[("v1beta2", "v1.1.0")],
                &["v1.3.0", "v1.2.0"],
                3,
            ),
            // Each release tells of itself alone.
            (
                "v1.0.0",
                &[("v1.0.0", "1.0=v1beta1"), ("v1.1.0", "1.1=v1beta1"), ("v1.2.0", "1.2=v1beta2")],
                &[("v1beta1", "v1.1.0"), ("v1beta2", "v1.2.0")],
                &[],
                2,
            ),
        ];
        for (installed, releases, newest, passed_over, count) in cases {
            let (available, read) = available(installed, releases);
            let found: Vec<_> =
                available.newest.iter().map(|(it, version)| (it.as_str(), version.as_str())).collect();
            assert_eq!(found, *newest, "{releases:?}");
            let passed: Vec<_> = available.passed_over.iter().map(|it| it.0.as_str()).collect();
            assert_eq!(passed, *passed_over, "{releases:?}");
            assert_eq!(read, *count, "{releases:?}");
        }
    }

    #[test]
    fn the_contract_of_what_is_installed_is_found_in_its_own_release_if_nowhere_else() {
        let (found, _) = available("v1.0.0", &[("v1.0.0", "1.0=v1beta1"), ("v1.2.0", "1.2=v1beta2")]);
        assert_eq!(found.contract.as_deref(), Some("v1beta1"));
        assert_eq!(found.contracts, ["v1beta1", "v1beta2"].map(str::to_owned).into());
        let (found, _) = available("v1.0.0", &[("v1.2.0", "1.2=v1beta2")]);
        assert_eq!(found.contract, None);
    }

    #[test]
    fn a_repository_of_useless_releases_is_given_up() {
        let names: Vec<_> = (1..40).map(|it| format!("v1.{it}.0")).collect();
        let releases: Vec<_> = names.iter().map(|it| (it.as_str(), "")).collect();
        let (available, read) = available("v1.0.0", &releases);
        assert_eq!((available.passed_over.len(), read), (MOST_FAILURES, MOST_FAILURES));
    }
}
