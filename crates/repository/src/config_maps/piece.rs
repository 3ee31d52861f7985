//! What one ConfigMap holds.

use std::io::Read;

use capstan_api::operator::annotation::PART;
use flate2::read::MultiGzDecoder;
use k8s_openapi::api::core::v1::ConfigMap;

use super::{COMPRESSED_ANNOTATION, Release, VERSION_LABEL};
use crate::version::Version;

pub(super) const METADATA_KEY: &str = "metadata";
pub(super) const COMPONENTS_KEY: &str = "components";
/// What fits into ConfigMaps cannot honestly become more than this.
pub(super) const LARGEST: u64 = 32 << 20;
/// More parts than this are no release.
const MOST_PARTS: usize = 100;

/// A release, or a part of one.
#[derive(Debug)]
pub(super) enum Piece {
    Whole(Release),
    Part(Part),
}

/// A part of a release.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) version: Version,
    pub(super) name: String,
    /// From 1.
    pub(super) number: usize,
    pub(super) total: usize,
    pub(super) metadata: Option<String>,
    pub(super) components: Option<Content>,
}

/// The components, or a part of them.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    pub(super) is_compressed: bool,
}

impl Piece {
    /// Reads a ConfigMap, or says why it holds no release.
    pub(super) fn read(config_map: &ConfigMap) -> Result<Self, String> {
        let (version, place) = (read_version(config_map)?, read_place(config_map)?);
        let name = full_name(config_map);
        let metadata = config_map.data.as_ref().and_then(|it| it.get(METADATA_KEY)).cloned();
        let Some((number, total)) = place else {
            let metadata = metadata.ok_or_else(|| missing(METADATA_KEY))?;
            let components = read_components(config_map)?.ok_or_else(|| missing(COMPONENTS_KEY))?.inflate();
            let components = components.map_err(|it| format!("has binaryData.{COMPONENTS_KEY} {it}"))?;
            return Ok(Self::Whole(Release { version, metadata, components, name }));
        };
        let components = read_components(config_map)?;
        if metadata.is_none() && components.is_none() {
            return Err(format!("is a part of a release, but {}", missing(COMPONENTS_KEY)));
        }
        Ok(Self::Part(Part { version, name, number, total, metadata, components }))
    }

    pub(super) fn version(&self) -> &Version {
        match self {
            Self::Whole(it) => &it.version,
            Self::Part(it) => &it.version,
        }
    }

    /// The ConfigMap.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Whole(it) => &it.name,
            Self::Part(it) => &it.name,
        }
    }
}

impl Content {
    /// The bytes, or what is wrong with those that are compressed.
    pub(super) fn inflate(self) -> Result<Vec<u8>, String> {
        if !self.is_compressed {
            return Ok(self.bytes);
        }
        let mut inflated = Vec::new();
        MultiGzDecoder::new(self.bytes.as_slice())
            .take(LARGEST + 1)
            .read_to_end(&mut inflated)
            .map_err(|error| format!("that is not gzip: {error}"))?;
        if inflated.len() as u64 > LARGEST {
            return Err(format!("that would inflate to more than {} MiB", LARGEST >> 20));
        }
        Ok(inflated)
    }
}

/// Namespace and name.
pub(super) fn full_name(config_map: &ConfigMap) -> String {
    let metadata = &config_map.metadata;
    let part = |it: &Option<String>| it.clone().unwrap_or_default();
    format!("{}/{}", part(&metadata.namespace), part(&metadata.name))
}

fn missing(key: &str) -> String {
    format!("has no data.{key}")
}

fn read_version(config_map: &ConfigMap) -> Result<Version, String> {
    let metadata = &config_map.metadata;
    match metadata.labels.as_ref().and_then(|it| it.get(VERSION_LABEL)) {
        Some(label) => Version::parse(label)
            .map_err(|it| format!("has a label {VERSION_LABEL} that is no version: {it}")),
        None => Version::parse(metadata.name.as_deref().unwrap_or_default())
            .map_err(|it| format!("has no label {VERSION_LABEL}, and its name is no version: {it}")),
    }
}

fn annotation<'a>(config_map: &'a ConfigMap, name: &str) -> Option<&'a str> {
    config_map.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// Which part it is, and of how many.
fn read_place(config_map: &ConfigMap) -> Result<Option<(usize, usize)>, String> {
    let Some(text) = annotation(config_map, PART) else { return Ok(None) };
    let place = text.split_once('/').and_then(|(number, total)| {
        let (number, total) = (number.trim().parse().ok()?, total.trim().parse().ok()?);
        (1..=total).contains(&number).then_some((number, total))
    });
    match place {
        Some((_, total)) if total > MOST_PARTS => {
            Err(format!("has an annotation {PART} with more than {MOST_PARTS} parts"))
        }
        Some(place) => Ok(Some(place)),
        None => Err(format!("has an annotation {PART} that is {text:?} and not like \"1/3\"")),
    }
}

fn read_components(config_map: &ConfigMap) -> Result<Option<Content>, String> {
    let is_compressed = annotation(config_map, COMPRESSED_ANNOTATION) == Some("true");
    let binary = config_map.binary_data.as_ref().and_then(|it| it.get(COMPONENTS_KEY));
    let plain = config_map.data.as_ref().and_then(|it| it.get(COMPONENTS_KEY));
    match (is_compressed, binary, plain) {
        (true, Some(bytes), _) => Ok(Some(Content { bytes: bytes.0.clone(), is_compressed })),
        (true, None, _) => Err(format!(
            "has no binaryData.{COMPONENTS_KEY}, although its annotation {COMPRESSED_ANNOTATION} is true"
        )),
        (false, _, Some(text)) => Ok(Some(Content { bytes: text.clone().into_bytes(), is_compressed })),
        (false, Some(_), None) => Err(format!(
            "has binaryData.{COMPONENTS_KEY}, but not the annotation {COMPRESSED_ANNOTATION}: \"true\""
        )),
        (false, None, None) => Ok(None),
    }
}
