//! What a caller wants of providers, typed: names and versions are read from text by callers alone.

use capstan_api::provider::ProviderType;

/// A provider and the version that is wanted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderGoal {
    /// The provider's type.
    pub kind: ProviderType,
    /// Its name, e.g. `aws`.
    pub name: String,
    /// The version.
    pub version: VersionGoal,
    /// The namespace of its instance; without one, the release or the inventory decides.
    pub namespace: Option<String>,
}

impl ProviderGoal {
    /// The provider's label, e.g. `infrastructure-aws`.
    pub fn label(&self) -> String {
        self.kind.label(&self.name)
    }
}

/// The version that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VersionGoal {
    /// The newest usable release.
    #[default]
    Latest,
    /// This release.
    Exact(String),
}

impl VersionGoal {
    /// The version, unless it is still to be found.
    pub fn exact(&self) -> Option<&str> {
        match self {
            Self::Latest => None,
            Self::Exact(version) => Some(version),
        }
    }
}

impl From<Option<String>> for VersionGoal {
    fn from(version: Option<String>) -> Self {
        version.map_or(Self::Latest, Self::Exact)
    }
}

impl std::fmt::Display for VersionGoal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.exact().unwrap_or("the latest version"))
    }
}
