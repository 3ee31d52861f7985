//! What can be done about errors of looking at workload clusters.

use capstan_inspect::clusters::ClusterError;

use super::Hint;

impl Hint for ClusterError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Server(error) => error.hint(),
            other => Self::hint(other),
        }
    }
}
