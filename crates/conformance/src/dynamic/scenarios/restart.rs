//! The provider is restarted while an InfraCluster is provisioned.

use serde_json::json;

use super::{Profile, deletion, provisioned, quiet, until_gone};
use crate::{
    dynamic::{
        Error,
        history::endpoint,
        judge::{self, failed, not_checked},
        stage::Stage,
    },
    report::Outcome,
};

/// The InfraCluster that shows that the provider works again.
pub(super) const WITNESS: &str = "restart-witness";

pub(super) async fn play(stage: &Stage, profile: &Profile, name: &str) -> Result<Outcome, Error> {
    let Some(restart) = &stage.options.restart else {
        return Ok(not_checked("no way to restart the provider was given"));
    };
    if let Err(why) = provisioned(stage, profile, name).await? {
        return Ok(not_checked(why));
    }
    let contract = stage.contract();
    let before = stage.recorder.read(name, |history| history.current().and_then(|it| endpoint(it, contract)));
    stage.publish(name, before.as_ref()).await?;
    // What comes to rest late is not the restart's doing.
    quiet(stage).await;
    let from = stage.recorder.read(name, |history| history.states.len().saturating_sub(1));
    if let Err(why) = restart().await {
        return Ok(not_checked(format!("the provider could not be restarted: {why}")));
    }
    if let Err(why) = provisioned(stage, profile, WITNESS).await? {
        return Ok(failed(
            format!("after its restart the provider no longer works: {why}"),
            "let a new process begin where the old one ended, without anything that only the old one knew",
        ));
    }
    // Whatever a provider makes of an object that it has not seen in this life, it makes of it now.
    stage
        .patch_infra(name, json!({"metadata": {"annotations": {"conformance.capstan.dev/restarted": ""}}}))
        .await?;
    quiet(stage).await;
    let lost = stage
        .recorder
        .read(name, |history| judge::nothing_lost(history, from, before.as_ref(), contract, "the restart"));
    if lost != Outcome::Passed {
        return Ok(lost);
    }
    stage.delete_infra(name).await?;
    Ok(deletion(until_gone(stage, name).await, "made before the restart and deleted after it"))
}
