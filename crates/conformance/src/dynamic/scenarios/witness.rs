//! Silence means something only if the provider had its chance: another InfraCluster, created later, is provisioned.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use super::{Profile, provisioned};
use crate::dynamic::{Error, stage::Stage};

/// Witnesses, one after the other. A witness serves everybody who waited before it was created.
#[derive(Debug, Default)]
pub(crate) struct Witnesses {
    begun: AtomicU64,
    /// How many are provisioned.
    done: Mutex<u64>,
}

impl Witnesses {
    /// Returns once the provider has provisioned an InfraCluster that was created after this call.
    pub(super) async fn pass(&self, stage: &Stage, profile: &Profile) -> Result<(), Error> {
        if !profile.provisioned() {
            return Ok(());
        }
        let begun = self.begun.load(Ordering::SeqCst);
        let mut done = self.done.lock().await;
        if *done > begun {
            return Ok(());
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let name = format!("witness-{number}");
        stage.props.add(&name);
        if let Err(why) = provisioned(stage, profile, &name).await? {
            stage.note(format!("the provider fell behind: {why}"));
        }
        stage.delete_infra(&name).await?;
        *done = number;
        Ok(())
    }
}
