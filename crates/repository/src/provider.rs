//! Providers: what they are called and where they come from.

use std::fmt;

use capstan_api::{admission::rules::is_dns_label, provider::ProviderType};

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

    /// The name of its components file where nobody says another.
    pub(crate) fn default_components_file(&self) -> String {
        format!("{}-components.yaml", self.kind.prefix())
    }
}

/// What a user writes for a provider: `name[:version]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderArgument {
    /// The name in lower case.
    pub name: String,
    /// The version, which is not checked here.
    pub version: Option<String>,
}

/// An argument that names no provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid provider name {argument:?}. Provider name should be in the form name[:version]: {problem}")]
pub struct InvalidProviderArgument {
    /// The argument.
    pub argument: String,
    /// What is wrong with it.
    pub problem: String,
}

impl ProviderArgument {
    /// Reads an argument.
    pub fn parse(argument: &str) -> Result<Self, InvalidProviderArgument> {
        let fail = |problem: &str| {
            Err(InvalidProviderArgument { argument: argument.to_owned(), problem: problem.to_owned() })
        };
        let (name, version) = match argument.split_once(':') {
            Some((name, version)) => (name, Some(version)),
            None => (argument, None),
        };
        if version.is_some_and(|it| it.contains(':')) {
            return fail("there is more than one colon");
        }
        if name.is_empty() {
            return fail("the name is empty");
        }
        if version == Some("") {
            return fail("the version is empty");
        }
        let name = name.to_lowercase();
        if !is_dns_label(&name) {
            return fail(
                "a name has at most 63 letters, digits and dashes, and begins and ends with a letter or digit",
            );
        }
        Ok(Self { name, version: version.map(str::to_owned) })
    }
}

impl fmt::Display for ProviderArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.version.iter().try_for_each(|it| write!(f, ":{it}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_a_name_and_perhaps_a_version() {
        let long = "a".repeat(64);
        for (argument, expected) in [
            ("aws", Ok(("aws", None))),
            ("aws:v1.2.3", Ok(("aws", Some("v1.2.3")))),
            ("AWS:latest", Ok(("aws", Some("latest")))),
            ("my-cloud-2:main", Ok(("my-cloud-2", Some("main")))),
            ("", Err("the name is empty")),
            (":v1.2.3", Err("the name is empty")),
            ("aws:", Err("the version is empty")),
            ("aws:v1:v2", Err("more than one colon")),
            ("aws::", Err("more than one colon")),
            ("my.cloud", Err("letters, digits and dashes")),
            ("-aws", Err("letters, digits and dashes")),
            ("aws-", Err("letters, digits and dashes")),
            ("a_b", Err("letters, digits and dashes")),
            ("a b", Err("letters, digits and dashes")),
            (&long, Err("at most 63")),
        ] {
            let parsed = ProviderArgument::parse(argument);
            match (&parsed, expected) {
                (Ok(it), Ok((name, version))) => {
                    assert_eq!((it.name.as_str(), it.version.as_deref()), (name, version));
                }
                (Err(error), Err(part)) => {
                    let message = error.to_string();
                    let start = format!(
                        "invalid provider name {argument:?}. Provider name should be in the form name[:version]"
                    );
                    assert!(message.starts_with(&start) && message.contains(part), "{message}");
                }
                _ => panic!("{argument}: {parsed:?}"),
            }
        }
    }
}
