//! The contract as data.

use std::fmt;

use serde::Serialize;

/// How much a rule binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// A provider that breaks it does not work.
    Must,
    /// A provider that breaks it works worse than its users expect.
    Should,
    /// It is optional, but must be right if it exists.
    May,
    /// It may be broken by who knows what follows.
    Notice,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::May => "MAY",
            Self::Notice => "NOTICE",
        })
    }
}

/// The versions of the contract that have a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Contracts {
    /// All of them.
    #[serde(rename = "all")]
    All,
    /// Only v1beta1.
    #[serde(rename = "v1beta1")]
    V1Beta1,
    /// Only v1beta2.
    #[serde(rename = "v1beta2")]
    V1Beta2,
}

/// Who reads what a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reader {
    /// Core's controllers.
    Core,
    /// clusterctl, and all that installs providers as it does.
    Clusterctl,
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Core => "core",
            Self::Clusterctl => "clusterctl",
        })
    }
}

/// One rule of the contract.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// A short name that stays the same for ever, e.g. `IC4`.
    pub id: &'static str,
    /// How much it binds.
    pub level: Level,
    /// The contracts that have it.
    pub contracts: Contracts,
    /// What a provider does that keeps it, in one sentence.
    pub statement: &'static str,
    /// How it is checked, in one sentence.
    pub check: &'static str,
    /// What the reader does with a provider that breaks it.
    pub otherwise: &'static str,
    /// Who reads what it is about.
    pub reader: Reader,
    /// The paragraph of the contract.
    pub link: &'static str,
}
