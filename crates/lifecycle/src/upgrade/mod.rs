//! Providers to newer versions: what there is, what goes together, and getting there without leaving anything half-done.
//!
//! [`plan`] only asks. [`Upgrade::prepare`] fetches, renders and checks everything, and has the server try it;
//! [`Upgrade::carry_out`] does it, core first. Until then nothing is stopped or changed.

mod available;
mod certificates;
mod contracts;
mod error;
mod mark;
mod plan;
mod prefetch;
mod prepare;
mod prune;
mod rules;
mod run;
mod scale;
mod step;
mod storage;

pub use available::{AvailableVersions, Candidate};
pub use certificates::{CertManagerPlan, CertManagerStep, CertManagerUpgrade};
pub use contracts::{compatible_with, is_spoken};
pub use error::UpgradeError;
pub use mark::{Unfinished, unfinished};
pub use plan::{Item, Next, Plan, Plans, UpgradeWarning, plan};
pub use prepare::{Asked, Goal, Upgrade};
pub use prune::Leftovers;
pub use run::{Failed, Stopped, UpgradeEvent, UpgradeReporter};
pub use step::Step;
pub use storage::Migration;
