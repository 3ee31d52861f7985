//! A CustomResourceDefinition as far as the contract looks at it.

use std::collections::BTreeMap;

use capstan_api::contract::GroupKind;
use serde_json::Value;

use crate::input::Source;

/// A CRD, borrowed from its file.
#[derive(Clone, Debug)]
pub(super) struct Crd<'a> {
    pub(super) file: &'a str,
    pub(super) name: &'a str,
    pub(super) id: GroupKind,
    pub(super) plural: &'a str,
    pub(super) list_kind: Option<&'a str>,
    pub(super) scope: &'a str,
    pub(super) categories: Vec<&'a str>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) versions: Vec<Version<'a>>,
}

/// A version of a CRD.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version<'a> {
    pub(super) name: &'a str,
    pub(super) served: bool,
    pub(super) schema: &'a Value,
    pub(super) subresources: &'a Value,
}

impl<'a> Crd<'a> {
    /// Reads an object that is a CRD; nothing where it is none, or none that an API server would take.
    pub(super) fn read(source: &'a Source) -> Option<Self> {
        let object = &source.object;
        if object["kind"] != "CustomResourceDefinition" || object["apiVersion"] != "apiextensions.k8s.io/v1" {
            return None;
        }
        let spec = &object["spec"];
        let names = &spec["names"];
        let text = |value: &'a Value| value.as_str();
        let versions = spec["versions"].as_array().into_iter().flatten().filter_map(|version| {
            Some(Version {
                name: version["name"].as_str()?,
                served: version["served"].as_bool().unwrap_or(false),
                schema: &version["schema"]["openAPIV3Schema"],
                subresources: &version["subresources"],
            })
        });
        let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
        Some(Self {
            file: &source.file,
            name: text(&object["metadata"]["name"])?,
            id: GroupKind::new(text(&spec["group"])?, text(&names["kind"])?),
            plural: text(&names["plural"]).unwrap_or_default(),
            list_kind: text(&names["listKind"]),
            scope: text(&spec["scope"]).unwrap_or_default(),
            categories: names["categories"].as_array().into_iter().flatten().filter_map(text).collect(),
            labels: labels
                .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .collect(),
            versions: versions.collect(),
        })
    }

    /// The versions that are served.
    pub(super) fn served(&self) -> Vec<&'a str> {
        self.versions.iter().filter(|it| it.served).map(|it| it.name).collect()
    }

    /// A version by its name.
    pub(super) fn version(&self, name: &str) -> Option<Version<'a>> {
        self.versions.iter().copied().find(|it| it.name == name)
    }
}
