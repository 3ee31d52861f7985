//! What stands between a plan and its run.
//!
//! Install, upgrade and delete have one shape: `plan` decides and changes nothing, `check` judges the plan under a
//! policy, and only the value that `check` returns can be run. A plan itself has no `run`:
//!
//! ```compile_fail,E0599
//! # async fn example(plan: capstan_lifecycle::install::InstallPlan) {
//! plan.run(&|_| {}).await;
//! # }
//! ```
//!
//! ```compile_fail,E0599
//! # async fn example(plan: capstan_lifecycle::upgrade::UpgradePlan) {
//! plan.run(&|_| {}).await;
//! # }
//! ```
//!
//! ```compile_fail,E0599
//! # async fn example(plan: capstan_lifecycle::delete::DeletePlan) {
//! plan.run(&|_| {}).await;
//! # }
//! ```
//!
//! Nor can a checked value be made by hand:
//!
//! ```compile_fail,E0451
//! # use capstan_lifecycle::{check::Ready, delete::DeletePlan};
//! # fn example(cluster: capstan_management::ManagementCluster, plan: DeletePlan) -> Ready<DeletePlan> {
//! Ready { cluster, plan }
//! # }
//! ```
//!
//! These compile:
//!
//! ```
//! # use capstan_lifecycle::install::{InstallPlan, InstallPolicy};
//! # async fn example(cluster: capstan_management::ManagementCluster, plan: InstallPlan) {
//! if let Ok(ready) = plan.check(&cluster, InstallPolicy::default()) {
//!     let _ = ready.run(&|_| {}).await;
//! }
//! # }
//! ```
//!
//! ```
//! # use capstan_lifecycle::upgrade::{UpgradePlan, UpgradePolicy};
//! # async fn example(cluster: capstan_management::ManagementCluster, plan: UpgradePlan) {
//! if let Ok(ready) = plan.check(&cluster, UpgradePolicy::default()) {
//!     let _ = ready.run(&|_| {}).await;
//! }
//! # }
//! ```
//!
//! ```
//! # use capstan_lifecycle::delete::{DeletePlan, DeletePolicy};
//! # async fn example(cluster: capstan_management::ManagementCluster, plan: DeletePlan) {
//! if let Ok(ready) = plan.check(&cluster, DeletePolicy::default()) {
//!     let _ = ready.run(&|_| {}).await;
//! }
//! # }
//! ```

use std::fmt;

use capstan_management::ManagementCluster;

/// A plan that passed its check on a cluster.
#[derive(Debug)]
pub struct Ready<P> {
    pub(crate) cluster: ManagementCluster,
    pub(crate) plan: P,
}

impl<P> Ready<P> {
    /// The plan.
    pub fn plan(&self) -> &P {
        &self.plan
    }
}

/// Why a plan must not be run: nothing was changed.
#[derive(Debug)]
pub struct Problems<P>(pub Vec<P>);

impl<P: fmt::Display> fmt::Display for Problems<P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            write!(out, "{}{problem}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl<P: fmt::Debug + fmt::Display> std::error::Error for Problems<P> {}
