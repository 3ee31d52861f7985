//! Providers to newer versions: what there is, what goes together, and getting there without leaving anything half-done.
//!
//! [`plan`] only asks. [`Upgrade::prepare`] fetches, renders and checks everything, and has the server try it;
//! [`Upgrade::carry_out`] does it, core first. Until then nothing is stopped or changed.

mod ahead;
mod certificates;
mod contracts;
mod error;
mod mark;
mod outlook;
mod plan;
mod prepare;
mod prune;
mod rules;
mod run;
mod scale;
mod step;
mod storage;

pub use certificates::{CertManagerPlan, CertManagerStep, CertManagerUpgrade};
pub use contracts::{compatible_with, is_spoken};
pub use error::UpgradeError;
pub use mark::{Unfinished, unfinished};
pub use outlook::{Outlook, Prospect};
pub use plan::{Item, Next, Plan, Plans, Warning, plan};
pub use prepare::{Asked, Goal, Upgrade};
pub use prune::Leftovers;
pub use run::{Event, Failed, Stopped, Tell};
pub use step::Step;
pub use storage::Migration;
