//! Which versions of Kubernetes run how often.

use std::cmp::Ordering;

use capstan_api::cluster::v1beta2::VersionStatus;
use semver::Version;

/// How many versions a status may list.
const MOST_VERSIONS: usize = 32;

/// The same versions counted once, the lowest first; those that are no versions come last.
pub(crate) fn merge_versions<'a>(all: impl IntoIterator<Item = &'a VersionStatus>) -> Vec<VersionStatus> {
    let mut merged: Vec<VersionStatus> = Vec::new();
    for VersionStatus { version, replicas } in all {
        match merged.iter_mut().find(|known| known.version == *version) {
            Some(known) => {
                let sum = known.replicas.unwrap_or(0).saturating_add(replicas.unwrap_or(0));
                known.replicas = Some(sum).filter(|sum| *sum > 0);
            }
            None => merged.push(VersionStatus {
                version: version.clone(),
                replicas: replicas.filter(|replicas| *replicas > 0),
            }),
        }
    }
    merged.sort_by(|a, b| compare(&a.version, &b.version));
    merged.truncate(MOST_VERSIONS);
    merged
}

/// By semantic version; where that makes no difference, by name.
fn compare(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(left), Some(right)) => left.cmp_precedence(&right).then_with(|| a.cmp(b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

fn parse(text: &str) -> Option<Version> {
    Version::parse(text.strip_prefix('v').unwrap_or(text)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(list: &[(&str, i32)]) -> Vec<VersionStatus> {
        list.iter()
            .map(|(version, count)| VersionStatus { version: (*version).into(), replicas: Some(*count) })
            .collect()
    }

    #[test]
    fn versions_are_counted_once_and_sorted() {
        let all = versions(&[
            ("v1.33.10", 1),
            ("v1.33.9", 2),
            ("odd", 1),
            ("v1.33.10", 3),
            ("v1.33.10-rc.10", 1),
            ("v1.33.10-rc.9", 1),
        ]);
        let expected = versions(&[
            ("v1.33.9", 2),
            ("v1.33.10-rc.9", 1),
            ("v1.33.10-rc.10", 1),
            ("v1.33.10", 4),
            ("odd", 1),
        ]);
        assert_eq!(merge_versions(&all), expected);
        let mut backwards = all;
        backwards.reverse();
        assert_eq!(merge_versions(&backwards), expected);
    }

    #[test]
    fn a_list_never_grows_longer_than_the_schema_allows() {
        let all: Vec<_> =
            (0..40).map(|patch| VersionStatus { version: format!("v1.1.{patch}"), replicas: None }).collect();
        assert_eq!(merge_versions(&all).len(), MOST_VERSIONS);
    }
}
