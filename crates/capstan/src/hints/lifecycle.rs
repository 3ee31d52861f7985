//! What can be done about errors of a management cluster.

use capstan_lifecycle::{ServerError, apply::ApplyError, clusters::ClusterError};

use super::Hint;

impl Hint for ServerError {
    fn hint(&self) -> Option<String> {
        Self::hint(self)
    }
}

impl Hint for ApplyError {
    fn hint(&self) -> Option<String> {
        Self::hint(self)
    }
}

impl Hint for ClusterError {
    fn hint(&self) -> Option<String> {
        Self::hint(self)
    }
}
