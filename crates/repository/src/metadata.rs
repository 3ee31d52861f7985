//! `metadata.yaml`: which contract each release series speaks.

use capstan_api::contract::ContractVersion;
use capstan_manifest::yaml;
use serde_json::{Map, Value};

use crate::version::{NotAVersion, Version};

/// The file's name in every release.
pub const METADATA_FILE: &str = "metadata.yaml";
const API_VERSION: &str = "clusterctl.cluster.x-k8s.io/v1alpha3";
const KIND: &str = "Metadata";

/// All releases with the same first two numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The first number.
    pub major: i32,
    /// The second number.
    pub minor: i32,
    /// The contract that they speak, e.g. `v1beta2`.
    pub contract: String,
}

/// What a release says about the series of its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The series, in the order of the file.
    pub series: Vec<Series>,
    /// The path or address that it was read from.
    pub origin: String,
}

/// Why a metadata file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// It is not YAML.
    #[error("{origin} is not YAML: {problem}")]
    NotYaml {
        /// Where the file is.
        origin: String,
        /// What is wrong, with the line.
        problem: String,
    },
    /// It is YAML, but not the object that it should be.
    #[error("{origin}: {field} must be {expected}, but is {found}")]
    WrongField {
        /// Where the file is.
        origin: String,
        /// The field.
        field: String,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// There is nothing in it.
    #[error(
        "{origin} lists no release series: it must have one under releaseSeries for each of the provider's minor versions"
    )]
    Empty {
        /// Where the file is.
        origin: String,
    },
    /// The version's series is not in it.
    #[error("{origin} does not list the release series of {version}; it lists {listed}")]
    NoSeries {
        /// Where the file is.
        origin: String,
        /// The version.
        version: String,
        /// The series that the file lists.
        listed: String,
    },
    /// The version's contract is one that core does not speak.
    #[error("{origin}: {version} speaks contract {contract}, but only {} can be managed", supported())]
    Contract {
        /// Where the file is.
        origin: String,
        /// The version.
        version: String,
        /// Its contract.
        contract: String,
    },
    /// The version has no series.
    #[error(transparent)]
    Version(#[from] NotAVersion),
}

fn supported() -> String {
    ContractVersion::PREFERENCE.map(ContractVersion::as_str).join(" and ")
}

impl Metadata {
    /// Reads a file; the origin is what to call it in messages.
    pub fn parse(text: &str, origin: &str) -> Result<Self, MetadataError> {
        let value = yaml::read_one(text).map_err(|error| MetadataError::NotYaml {
            origin: origin.to_owned(),
            problem: error.to_string(),
        })?;
        let reader = Reader { origin };
        let Value::Object(object) = value else {
            return Err(reader.wrong("the file", "a map", kind(&value)));
        };
        reader.check_text(&object, "apiVersion", API_VERSION)?;
        // Several providers leave the kind out.
        if !matches!(object.get("kind"), None | Some(Value::Null)) {
            reader.check_text(&object, "kind", KIND)?;
        }
        let series = match object.get("releaseSeries") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => {
                items.iter().enumerate().map(|(at, it)| reader.series(at, it)).collect::<Result<_, _>>()?
            }
            Some(other) => return Err(reader.wrong("releaseSeries", "a list", kind(other))),
        };
        if series.is_empty() {
            return Err(MetadataError::Empty { origin: origin.to_owned() });
        }
        Ok(Self { series, origin: origin.to_owned() })
    }

    /// The series that a version belongs to.
    pub fn series_of(&self, version: &Version) -> Option<&Series> {
        self.series.iter().find(|it| {
            u64::try_from(it.major) == Ok(version.major()) && u64::try_from(it.minor) == Ok(version.minor())
        })
    }

    /// The contract that a version speaks, whether or not we speak it.
    pub fn contract_of(&self, version: &str) -> Result<&str, MetadataError> {
        let version = Version::parse(version)?;
        self.series_of(&version).map(|it| it.contract.as_str()).ok_or_else(|| MetadataError::NoSeries {
            origin: self.origin.clone(),
            version: version.to_string(),
            listed: self.listed(),
        })
    }

    /// The contract that a version speaks, which must be one that we speak.
    pub fn usable_contract_of(&self, version: &str) -> Result<ContractVersion, MetadataError> {
        let contract = self.contract_of(version)?;
        supported_contract(contract).ok_or_else(|| MetadataError::Contract {
            origin: self.origin.clone(),
            version: version.to_owned(),
            contract: contract.to_owned(),
        })
    }

    /// The newest series of a contract.
    pub fn newest_series_of(&self, contract: ContractVersion) -> Option<&Series> {
        self.series.iter().filter(|it| it.contract == contract.as_str()).max_by_key(|it| (it.major, it.minor))
    }

    fn listed(&self) -> String {
        let each = self.series.iter().map(|it| format!("{}.{} ({})", it.major, it.minor, it.contract));
        each.collect::<Vec<_>>().join(", ")
    }
}

/// The contract of that name, if core speaks it.
pub(crate) fn supported_contract(name: &str) -> Option<ContractVersion> {
    ContractVersion::PREFERENCE.into_iter().find(|it| it.as_str() == name)
}

/// What to call a value in a message.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

struct Reader<'a> {
    origin: &'a str,
}

impl Reader<'_> {
    fn wrong(&self, field: &str, expected: &str, found: &str) -> MetadataError {
        MetadataError::WrongField {
            origin: self.origin.to_owned(),
            field: field.to_owned(),
            expected: expected.to_owned(),
            found: found.to_owned(),
        }
    }

    fn check_text(
        &self,
        object: &Map<String, Value>,
        name: &str,
        expected: &str,
    ) -> Result<(), MetadataError> {
        match object.get(name) {
            Some(Value::String(it)) if it == expected => Ok(()),
            Some(Value::String(it)) => Err(self.wrong(name, expected, it)),
            Some(other) => Err(self.wrong(name, expected, kind(other))),
            None => Err(self.wrong(name, expected, "missing")),
        }
    }

    fn series(&self, at: usize, value: &Value) -> Result<Series, MetadataError> {
        let name = |field: &str| format!("releaseSeries[{at}]{field}");
        let Value::Object(object) = value else {
            return Err(self.wrong(&name(""), "a map", kind(value)));
        };
        let contract = match object.get("contract") {
            Some(Value::String(it)) if !it.is_empty() => it.clone(),
            Some(Value::String(_)) => return Err(self.wrong(&name(".contract"), "a contract", "empty")),
            Some(other) => return Err(self.wrong(&name(".contract"), "text", kind(other))),
            None => return Err(self.wrong(&name(".contract"), "a contract", "missing")),
        };
        let number = |field_name: &str| {
            let found = match object.get(field_name) {
                None => return Ok(0),
                Some(Value::Number(it)) => match it.as_i64().map(i32::try_from) {
                    Some(Ok(number)) if number >= 0 => return Ok(number),
                    _ => it.to_string(),
                },
                Some(other) => kind(other).to_owned(),
            };
            Err(self.wrong(&name(&format!(".{field_name}")), "a whole number", &found))
        };
        Ok(Series { major: number("major")?, minor: number("minor")?, contract })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n\
        - {major: 0, minor: 3, contract: v1alpha3}\n- {major: 1, minor: 10, contract: v1beta1}\n\
        - {major: 1, minor: 11, contract: v1beta2}\n- {major: 1, minor: 11, contract: v1alpha1}\n\
        - {major: 1, minor: 9, contract: v1beta2}\n";

    #[test]
    fn contracts_are_looked_up_by_series() {
        let metadata = Metadata::parse(GOOD, "here").unwrap();
        for (version, contract, usable) in [
            ("v0.3.9", Some("v1alpha3"), false),
            ("v1.10.0", Some("v1beta1"), true),
            ("1.10.4", Some("v1beta1"), true),
            ("v1.11.0-rc.0", Some("v1beta2"), true),
            ("v1.12.0", None, false),
            ("v2.11.0", None, false),
            ("main", None, false),
        ] {
            assert_eq!(metadata.contract_of(version).ok(), contract, "{version}");
            assert_eq!(metadata.usable_contract_of(version).is_ok(), usable, "{version}");
        }
        let newest = metadata.newest_series_of(ContractVersion::V1Beta2).unwrap();
        assert_eq!((newest.major, newest.minor), (1, 11));
    }

    #[test]
    fn a_version_without_series_is_told_what_is_listed() {
        let metadata = Metadata::parse(GOOD, "/repo/metadata.yaml").unwrap();
        for (version, part) in [
            (
                "v1.12.0",
                "/repo/metadata.yaml does not list the release series of v1.12.0; it lists 0.3 (v1alpha3), 1.10",
            ),
            ("v0.3.0", "/repo/metadata.yaml: v0.3.0 speaks contract v1alpha3, but only v1beta2 and v1beta1"),
            ("main", "\"main\" is not a semantic version"),
        ] {
            let message = metadata.usable_contract_of(version).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn files_are_read_or_told_what_is_wrong() {
        let head = "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\n";
        let series = "releaseSeries: [{major: 1, minor: 2, contract: v1beta2}]\n";
        for (text, problem) in [
            (format!("{head}kind: Metadata\n{series}"), None),
            (format!("{head}{series}"), None),
            // As in every manifest, the last of two equal keys counts.
            (format!("apiVersion: v1\n{head}{series}"), None),
            (format!("{head}kind:\n{series}unknown: {{a: b}}\n"), None),
            (format!("{head}releaseSeries: [{{minor: 2, contract: v1beta2, extra: 1}}]\n"), None),
            (
                r#"{"apiVersion":"clusterctl.cluster.x-k8s.io/v1alpha3","releaseSeries":[{"major":1,"minor":2,"contract":"v1beta2"}]}"#
                    .to_owned(),
                None,
            ),
            (format!("{head}kind: Meta\n{series}"), Some("kind must be Metadata, but is Meta")),
            (series.to_owned(), Some("apiVersion must be clusterctl.cluster.x-k8s.io/v1alpha3, but is missing")),
            (format!("apiVersion: v1\n{series}"), Some("but is v1")),
            (format!("apiVersion: 1\n{series}"), Some("but is a number")),
            (head.to_owned(), Some("lists no release series")),
            (format!("{head}releaseSeries: []\n"), Some("lists no release series")),
            (format!("{head}releaseSeries: {{}}\n"), Some("releaseSeries must be a list, but is a map")),
            (format!("{head}releaseSeries: [x]\n"), Some("releaseSeries[0] must be a map, but is text")),
            (
                format!("{head}releaseSeries: [{{major: \"1\", minor: 2, contract: v1beta2}}]\n"),
                Some("releaseSeries[0].major must be a whole number, but is text"),
            ),
            (
                format!("{head}releaseSeries: [{{major: 1, minor: -2, contract: v1beta2}}]\n"),
                Some("releaseSeries[0].minor must be a whole number, but is -2"),
            ),
            (
                format!("{head}releaseSeries: [{{major: 1, minor: 2}}]\n"),
                Some("releaseSeries[0].contract must be a contract, but is missing"),
            ),
            ("a: [\n".to_owned(), Some("here is not YAML: document 1, line 1, column 4")),
            (String::new(), Some("the file must be a map, but is nothing")),
            ("- a\n".to_owned(), Some("the file must be a map, but is a list")),
        ] {
            let error = Metadata::parse(&text, "here").err().map(|it| it.to_string());
            match (problem, error) {
                (None, None) => {}
                (Some(part), Some(message)) => assert!(message.contains(part), "{message}"),
                (_, other) => panic!("{text}: {other:?}"),
            }
        }
    }
}
