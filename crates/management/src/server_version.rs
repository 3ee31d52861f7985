//! The Kubernetes version of a management cluster.

use std::fmt;

use crate::{ManagementCluster, ServerError};

/// The oldest supported version: the first with stable server-side apply.
pub const MINIMUM: (u32, u32) = (1, 22);

/// The version of an API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerVersion {
    /// Major and minor; none if the server reports none.
    pub numbers: Option<(u32, u32)>,
    /// The full version, e.g. `v1.34.1`.
    pub name: String,
}

impl ServerVersion {
    /// Reads it from the server.
    pub async fn read(cluster: &ManagementCluster) -> Result<Self, ServerError> {
        let info = cluster
            .client()
            .apiserver_version()
            .await
            .map_err(|error| cluster.failed("read the Kubernetes version", error))?;
        Ok(Self::parse(&info.major, &info.minor, &info.git_version))
    }

    /// Parses a response. Clouds add a plus to the minor version, and some leave both numbers out.
    fn parse(major: &str, minor: &str, name: &str) -> Self {
        let numbers = || {
            let (major, rest) = name.trim_start_matches('v').split_once('.')?;
            Some((number(major)?, number(rest)?))
        };
        Self { numbers: number(major).zip(number(minor)).or_else(numbers), name: name.to_owned() }
    }

    /// Whether it is too old for a management cluster; an unknown version is not.
    pub fn is_too_old(&self) -> bool {
        self.numbers.is_some_and(|it| it < MINIMUM)
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)
    }
}

/// The number that a text begins with.
fn number(text: &str) -> Option<u32> {
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart_whatever_clouds_put_behind_them() {
        for (major, minor, name, numbers, is_too_old) in [
            ("1", "34", "v1.34.1", Some((1, 34)), false),
            ("1", "28+", "v1.28.5-gke.100", Some((1, 28)), false),
            ("1", "22", "v1.22.0", Some((1, 22)), false),
            ("1", "21", "v1.21.14", Some((1, 21)), true),
            ("1", "9", "v1.9.0", Some((1, 9)), true),
            ("", "", "v1.20.3+k3s1", Some((1, 20)), true),
            ("2", "0", "v2.0.0", Some((2, 0)), false),
            ("", "", "unknown", None, false),
        ] {
            let version = ServerVersion::parse(major, minor, name);
            assert_eq!((version.numbers, version.is_too_old()), (numbers, is_too_old), "{name}");
        }
    }
}
