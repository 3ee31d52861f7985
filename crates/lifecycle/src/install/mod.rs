//! Providers into a management cluster: planned and checked as a whole before the first write, then installed in
//! common waves. A run that was interrupted can be repeated and ends where an undisturbed run ends.

mod check;
mod plan;
mod problem;
mod run;
mod trial;
mod validate;
pub mod wait;

pub use check::InstallPolicy;
pub use plan::{InstallPlan, InstallPlanError, InstallRequest, distinct, plan};
pub use problem::{InstallProblem, SKIP_NAME_CHECK};
pub use run::{InstallError, InstallEvent, InstallFailure, InstallReporter};
