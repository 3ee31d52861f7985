//! Paused before anything is provisioned, let go on, and paused again for deletion.

use serde_json::{Value, json};

use super::{Outcomes, Profile, adopted, deletion, quiet, until_gone, until_provisioned};
use crate::{
    dynamic::{
        Core, Error,
        history::{History, condition, finalizers},
        judge::{self, failed, not_checked},
        rules,
        stage::{Pause, Stage},
    },
    report::Outcome,
};

pub(super) async fn play(
    stage: &Stage,
    profile: &Profile,
    name: &str,
    how: Pause,
) -> Result<Outcomes, Error> {
    // A real core does not adopt what belongs to a paused Cluster.
    let from_the_start = !(stage.options.core == Core::Real && how == Pause::Cluster);
    let mut spec = profile.cluster_spec();
    let mut metadata = json!({});
    if from_the_start {
        match how {
            Pause::Cluster => spec["paused"] = json!(true),
            Pause::Annotation => metadata["annotations"] = json!({"cluster.x-k8s.io/paused": ""}),
        }
    }
    let adopted = match adopted(stage, name, &metadata, &spec, profile.controller).await? {
        Ok(version) => version,
        Err(why) => {
            let outcome = not_checked(why);
            return Ok(vec![(rules::PAUSED, outcome.clone()), (rules::PAUSED_SHOWN, outcome)]);
        }
    };
    let mut outcomes = Vec::new();
    let mut shown = None;
    if from_the_start {
        arrival(stage, profile, name).await?;
        quiet(stage).await;
        shown = paused(stage, name);
        outcomes.push(
            stage.recorder.read(name, |history| {
                judge::only_the_pause(history, history.index_of(&adopted), how.as_str())
            }),
        );
        stage.pause(name, how, false).await?;
    }
    if !until_provisioned(stage, name).await {
        outcomes.push(failed(
            format!("{name} was not provisioned within {:?} after the pause was over", stage.options.timeout),
            "watch the Clusters too, and reconcile the InfraCluster when spec.paused or the annotation is removed",
        ));
        return Ok(told(name, outcomes, shown.as_deref(), None, how));
    }
    // The report that the pause is over may be a write of its own.
    let over = |history: &History| (condition(history.current()?, "Paused") != Some("True")).then_some(());
    let _ = stage.recorder.until(name, stage.options.timeout, over).await;
    let afterwards = paused(stage, name);

    stage.pause(name, how, true).await?;
    arrival(stage, profile, name).await?;
    if !from_the_start {
        shown = paused(stage, name);
    }
    let before = stage.recorder.read(name, |history| history.states.len().saturating_sub(1));
    let held = stage
        .recorder
        .read(name, |history| history.current().is_some_and(|object| !finalizers(object).is_empty()));
    stage.delete_infra(name).await?;
    stage.witnesses.pass(stage, profile).await?;
    quiet(stage).await;
    outcomes.push(stage.recorder.read(name, |history| judge::only_the_pause(history, before, how.as_str())));
    let gone = stage.recorder.read(name, History::is_gone);
    if gone && held {
        outcomes.push(failed(
            format!("{name} was released during its deletion while it was paused by {}", how.as_str()),
            "hold the finalizer while paused, and deprovision only after the pause",
        ));
    }
    if !gone {
        stage.pause(name, how, false).await?;
        outcomes.push(deletion(until_gone(stage, name).await, "the pause during its deletion was over"));
    }
    Ok(told(name, outcomes, shown.as_deref(), afterwards.as_deref(), how))
}

/// Waits until the provider knows of the pause. The condition shows it; without one, so does a witness object.
async fn arrival(stage: &Stage, profile: &Profile, name: &str) -> Result<(), Error> {
    let arrived = |history: &History| (condition(history.current()?, "Paused") == Some("True")).then_some(());
    if stage.recorder.until(name, stage.options.quiet_time, arrived).await.is_none() {
        stage.witnesses.pass(stage, profile).await?;
    }
    Ok(())
}

fn paused(stage: &Stage, name: &str) -> Option<String> {
    stage.recorder.read(name, |history| {
        history.current().and_then(|object: &Value| condition(object, "Paused")).map(str::to_owned)
    })
}

/// The first failure counts; what comes after it may be its consequence.
fn told(
    name: &str,
    outcomes: Vec<Outcome>,
    during: Option<&str>,
    afterwards: Option<&str>,
    how: Pause,
) -> Outcomes {
    let failure = outcomes.into_iter().find(|outcome| *outcome != Outcome::Passed);
    vec![
        (rules::PAUSED, failure.unwrap_or(Outcome::Passed)),
        (rules::PAUSED_SHOWN, judge::pause_shown(name, during, afterwards, how.as_str())),
    ]
}
