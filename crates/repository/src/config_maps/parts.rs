//! Releases whose parts are in several ConfigMaps.

use capstan_api::operator::annotation::PART;

use super::{
    ConfigMapsError, Release,
    piece::{COMPONENTS_KEY, Content, LARGEST, METADATA_KEY, Part, Piece},
};
use crate::{latest::Skipped, version::Version};

/// Why the parts of a release do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartsProblem {
    /// They disagree about how many there are.
    #[error("{first} is one of {total}, and {second} is one of {other}: correct the annotations {PART}")]
    Totals {
        /// A ConfigMap.
        first: String,
        /// The number of parts that it names.
        total: usize,
        /// Another ConfigMap.
        second: String,
        /// The number of parts that the other one names.
        other: usize,
    },
    /// Two are the same part.
    #[error("{first} and {second} are both part {number}: delete one, or correct its annotation {PART}")]
    Twice {
        /// A ConfigMap.
        first: String,
        /// Another ConfigMap.
        second: String,
        /// The part that both are.
        number: usize,
    },
    /// Some are not there.
    #[error("{} missing", list(.numbers, *.total))]
    Missing {
        /// Which ones.
        numbers: Vec<usize>,
        /// How many parts there should be.
        total: usize,
    },
    /// No part has metadata.
    #[error("none has data.{METADATA_KEY}")]
    NoMetadata,
    /// Two parts have different metadata.
    #[error("{first} and {second} have different data.{METADATA_KEY}")]
    Metadata {
        /// A ConfigMap.
        first: String,
        /// Another ConfigMap.
        second: String,
    },
    /// No part has components.
    #[error("none has data.{COMPONENTS_KEY}")]
    NoComponents,
    /// The components cannot be read.
    #[error("together they have components {problem}")]
    Components {
        /// What is wrong with them.
        problem: String,
    },
}

fn list(numbers: &[usize], total: usize) -> String {
    let listed = numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    match numbers {
        [_] => format!("part {listed} of {total} is"),
        _ => format!("parts {listed} of {total} are"),
    }
}

/// The release that the ConfigMaps of one version hold.
pub(super) fn join(
    version: &Version,
    mut pieces: Vec<Piece>,
    skipped: &[Skipped],
) -> Result<Release, ConfigMapsError> {
    pieces.sort_by_key(|it| matches!(it, Piece::Part(_)));
    if let [first @ Piece::Whole(_), second, ..] = pieces.as_slice() {
        return Err(ConfigMapsError::Duplicate {
            first: first.name().to_owned(),
            second: second.name().to_owned(),
            version: version.to_string(),
        });
    }
    let mut parts = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Whole(release) => return Ok(release),
            Piece::Part(part) => parts.push(part),
        }
    }
    check(&parts)
        .and_then(|()| Ok((join_metadata(&parts)?, join_components(&mut parts)?)))
        .map(|(metadata, components)| Release {
            version: version.clone(),
            metadata,
            components,
            name: names(&parts).join(", "),
        })
        .map_err(|problem| ConfigMapsError::Parts {
            names: names(&parts),
            version: version.to_string(),
            problem: Box::new(problem),
            skipped: skipped.to_vec(),
        })
}

fn names(parts: &[Part]) -> Vec<String> {
    parts.iter().map(|it| it.name.clone()).collect()
}

/// Whether every part is there once.
fn check(parts: &[Part]) -> Result<(), PartsProblem> {
    for (a, b) in parts.iter().flat_map(|a| parts.iter().map(move |b| (a, b))) {
        let names = || (a.name.clone(), b.name.clone());
        if a.total != b.total {
            let (first, second) = names();
            return Err(PartsProblem::Totals { first, total: a.total, second, other: b.total });
        }
        if a.number == b.number && a.name != b.name {
            let (first, second) = names();
            return Err(PartsProblem::Twice { first, second, number: a.number });
        }
    }
    let total = parts.first().map_or(0, |it| it.total);
    let is_missing = |number: &usize| !parts.iter().any(|it| it.number == *number);
    let numbers: Vec<_> = (1..=total).filter(is_missing).collect();
    if numbers.is_empty() { Ok(()) } else { Err(PartsProblem::Missing { numbers, total }) }
}

/// Any part may have the metadata.
fn join_metadata(parts: &[Part]) -> Result<String, PartsProblem> {
    let mut with_metadata = parts.iter().filter_map(|it| Some((it, it.metadata.as_ref()?)));
    let (first, metadata) = with_metadata.next().ok_or(PartsProblem::NoMetadata)?;
    match with_metadata.find(|(_, it)| *it != metadata) {
        None => Ok(metadata.clone()),
        Some((second, _)) => {
            Err(PartsProblem::Metadata { first: first.name.clone(), second: second.name.clone() })
        }
    }
}

fn join_components(parts: &mut [Part]) -> Result<Vec<u8>, PartsProblem> {
    parts.sort_by_key(|it| it.number);
    let contents: Vec<_> = parts.iter_mut().filter_map(|it| it.components.take()).collect();
    if contents.is_empty() {
        return Err(PartsProblem::NoComponents);
    }
    let failed = |problem| PartsProblem::Components { problem };
    // What is compressed may have been cut before or after that.
    let joined = if contents.iter().all(|it| it.is_compressed) {
        let bytes = contents.into_iter().flat_map(|it| it.bytes).collect();
        Content { bytes, is_compressed: true }.inflate().map_err(failed)?
    } else {
        let plain: Result<Vec<_>, _> = contents.into_iter().map(Content::inflate).collect();
        plain.map_err(failed)?.concat()
    };
    if joined.len() as u64 > LARGEST {
        return Err(failed(format!("that are larger than {} MiB", LARGEST >> 20)));
    }
    Ok(joined)
}
