//! Whether an upgrade may be run.

use capstan_management::{ManagementCluster, ServerError};

use super::{UpgradePlan, UpgradeProblem};
use crate::{check::Problems, diff::Preview};

/// What a caller puts up with.
#[derive(Clone, Copy, Debug, Default)]
pub struct UpgradePolicy {
    /// Whether providers may go back to older versions.
    pub allow_downgrade: bool,
}

/// An upgrade that passed its check.
#[derive(Debug)]
pub struct ReadyUpgrade {
    pub(super) cluster: ManagementCluster,
    pub(super) plan: UpgradePlan,
}

impl UpgradePlan {
    /// Refuses a plan with problems that the policy does not allow.
    pub fn check(
        mut self,
        cluster: &ManagementCluster,
        policy: UpgradePolicy,
    ) -> Result<ReadyUpgrade, Problems<UpgradeProblem>> {
        let mut problems = std::mem::take(&mut self.problems);
        problems.retain(|it| !(policy.allow_downgrade && it.is_downgrade()));
        if problems.is_empty() {
            Ok(ReadyUpgrade { cluster: cluster.clone(), plan: self })
        } else {
            Err(Problems(problems))
        }
    }
}

impl ReadyUpgrade {
    /// The plan.
    pub fn plan(&self) -> &UpgradePlan {
        &self.plan
    }

    /// What would change, object by object.
    pub async fn preview(&self) -> Result<Preview, ServerError> {
        self.plan.preview(&self.cluster).await
    }
}
