//! Whether a plan may be run.

use capstan_management::{ManagementCluster, ServerError};

use super::{InstallError, InstallPlan, InstallProblem, InstallReporter, run, trial};
use crate::{
    check::{Problems, Ready},
    diff::Preview,
};

/// What a caller puts up with.
#[derive(Clone, Copy, Debug)]
pub struct InstallPolicy {
    /// Whether every problem counts, or only those that no installation can get past.
    pub validate: bool,
}

impl Default for InstallPolicy {
    fn default() -> Self {
        Self { validate: true }
    }
}

impl InstallPlan {
    /// Refuses a plan with problems that the policy does not ignore.
    pub fn check(
        mut self,
        cluster: &ManagementCluster,
        policy: InstallPolicy,
    ) -> Result<Ready<Self>, Problems<InstallProblem>> {
        let problems = std::mem::take(&mut self.problems);
        let (ignored, problems): (Vec<_>, Vec<_>) =
            problems.into_iter().partition(|it| !policy.validate && it.can_be_ignored());
        if problems.is_empty() {
            self.problems = ignored;
            Ok(Ready { cluster: cluster.clone(), plan: self })
        } else {
            Err(Problems(problems))
        }
    }
}

impl Ready<InstallPlan> {
    /// The problems that the policy ignores.
    pub fn ignored(&self) -> &[InstallProblem] {
        &self.plan.problems
    }

    /// What would change, object by object.
    pub async fn preview(&self) -> Result<Preview, ServerError> {
        trial::preview(&self.cluster, &self.plan).await
    }

    /// Installs.
    pub async fn run(&self, report: InstallReporter<'_>) -> Result<(), InstallError> {
        run::run(&self.cluster, &self.plan, report).await
    }
}
