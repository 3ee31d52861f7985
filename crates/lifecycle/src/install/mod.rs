//! Providers into a management cluster: planned and checked as a whole before the first write, then installed in
//! common waves. Whoever is interrupted does the same again and ends where an undisturbed run ends.

mod plan;
mod problem;
pub mod queue;
mod run;
mod trial;
mod validate;
pub mod wait;

pub use plan::{InstallPlan, InstallPlanError, plan};
pub use problem::{InstallProblem, SKIP_NAME_CHECK};
pub use run::{InstallError, InstallEvent, InstallReporter, Reason, run};
pub use trial::{preview, try_out};
