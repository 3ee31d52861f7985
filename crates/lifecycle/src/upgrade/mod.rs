//! Providers to newer versions, or the same version again, without leaving anything half-done.
//!
//! [`available`] asks what there is to upgrade to. [`plan`] fetches and renders the releases, has the server try them
//! and changes nothing; [`UpgradePlan::check`] judges the plan; [`Ready::run`](crate::check::Ready) carries it out, core first.
//! Where the provider operator carries it out, [`select`] only chooses and judges the versions.

mod available;
mod certificates;
mod check;
mod error;
mod overview;
mod plan;
mod prefetch;
mod prune;
mod rules;
mod run;
mod select;
mod step;
mod storage;

pub use available::{AvailableVersions, Candidate};
pub use certificates::{CertManagerPlan, CertManagerStep, CertManagerUpgrade};
pub use check::UpgradePolicy;
pub use error::{UpgradeError, UpgradeProblem};
pub use overview::{AvailableUpgrades, ContractUpgrades, Item, Next, UpgradeWarning, available};
pub use plan::{UpgradeGoal, UpgradePlan, UpgradeRequest, plan};
pub use prune::Leftovers;
pub use run::{Failed, Stopped, UpgradeEvent, UpgradeReporter};
pub use select::{Move, Selected, select};
pub use step::Step;
pub use storage::Migration;
