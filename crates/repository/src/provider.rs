//! Providers: what they are called and where they come from.

use std::fmt;

use capstan_api::provider::ProviderType;

use crate::remote::shown_address;

/// A provider and the place of its releases.
#[derive(Clone, PartialEq, Eq)]
pub struct Provider {
    /// The name, unique within the type.
    pub name: String,
    /// The part that it plays.
    pub kind: ProviderType,
    /// Where its releases are.
    pub url: String,
}

// The address may hold a password or a signature.
impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("url", &self.shown_url())
            .finish()
    }
}

impl Provider {
    /// Where its releases are, without a password or signature that the address holds.
    pub fn shown_url(&self) -> String {
        if self.url.contains(['@', '?']) { shown_address(&self.url) } else { self.url.clone() }
    }

    /// The value of the provider's label, which also names its folder in repositories.
    pub fn label(&self) -> String {
        self.kind.label(&self.name)
    }

    /// The default name of its components file.
    pub(crate) fn default_components_file(&self) -> String {
        format!("{}-components.yaml", self.kind.prefix())
    }
}
