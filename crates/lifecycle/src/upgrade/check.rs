//! Whether an upgrade may be run.

use capstan_management::{ManagementCluster, ServerError};

use super::{UpgradePlan, UpgradeProblem};
use crate::{
    check::{Problems, Ready},
    diff::Preview,
};

/// What a caller puts up with.
#[derive(Clone, Copy, Debug, Default)]
pub struct UpgradePolicy {
    /// Whether providers may go back to older versions.
    pub allow_downgrade: bool,
}

impl UpgradePlan {
    /// Refuses a plan with problems that the policy does not allow.
    pub fn check(
        mut self,
        cluster: &ManagementCluster,
        policy: UpgradePolicy,
    ) -> Result<Ready<Self>, Problems<UpgradeProblem>> {
        let mut problems = std::mem::take(&mut self.problems);
        problems.retain(|it| !(policy.allow_downgrade && it.is_downgrade()));
        if problems.is_empty() {
            Ok(Ready { cluster: cluster.clone(), plan: self })
        } else {
            Err(Problems(problems))
        }
    }
}

impl Ready<UpgradePlan> {
    /// What would change, object by object.
    pub async fn preview(&self) -> Result<Preview, ServerError> {
        self.plan.preview(&self.cluster).await
    }
}
