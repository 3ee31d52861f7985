//! The first InfraCluster: from its Cluster's first touch to its end. It also shows what kind of provider this is.

use std::time::Duration;

use kube::api::DynamicObject;
use serde_json::json;
use tokio::time::Instant;

use super::{ENDPOINT, Outcomes, Profile, Reaction, cluster_endpoint, deletion, quiet, until_gone};
use crate::{
    dynamic::{
        Core, Error,
        history::{History, endpoint},
        judge::{self, EndpointStory, failed, not_checked},
        rules,
        stage::{Adoption, Stage},
    },
    report::{Finding, Outcome},
};

/// An InfraCluster that has met its Cluster.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    /// How long the provider had to provision it.
    waited: Duration,
}

impl Lifecycle {
    /// The name of its objects.
    pub(crate) const NAME: &str = "lifecycle";

    /// Gives the InfraCluster to its Cluster and finds out what the provider needs.
    pub(crate) async fn begin(stage: &Stage) -> Result<(Self, Profile), Error> {
        let began = Instant::now();
        let mut profile = Profile::default();
        stage.create_infra(Self::NAME, &json!({})).await?;
        let cluster = stage.create_cluster(Self::NAME, &json!({})).await?;
        match stage.adopt(Self::NAME, &cluster, false).await {
            Ok(_) => meet(stage, &cluster, &mut profile).await?,
            Err(Adoption::Refused(why)) => profile.refused = Some(why),
            Err(Adoption::Missing) => {
                let limit = stage.options.timeout;
                profile.refused = Some(format!("the real core did not write them within {limit:?}"));
            }
            Err(Adoption::Failed(error)) => return Err(error),
        }
        Ok((Self { waited: began.elapsed() }, profile))
    }

    /// Plays the rest: publication, rest, deletion.
    pub(crate) async fn end(self, stage: &Stage, profile: &Profile) -> Result<Vec<Finding>, Error> {
        let contract = stage.contract();
        let mut idle = not_checked("the InfraCluster was never provisioned");
        if profile.provisioned() {
            stage.publish(Self::NAME, profile.endpoint.as_ref()).await?;
            quiet(stage).await;
            stage.look_for_a_core(Self::NAME).await?;
            let from = stage.recorder.read(Self::NAME, |history| history.states.len().saturating_sub(1));
            let watched = quiet(stage).await;
            idle = stage.recorder.read(Self::NAME, |history| {
                let repair = "compare before writing, and keep times and counters out of status";
                judge::untouched(history, from, watched, "it was provisioned and nothing changed", repair)
            });
        }
        let before_deletion = stage.recorder.read(Self::NAME, Clone::clone);
        let gone = if stage.options.core == Core::Real {
            stage.delete_cluster(Self::NAME).await?;
            until_gone(stage, Self::NAME).await
        } else {
            stage.delete_infra(Self::NAME).await?;
            stage.delete_infra(Self::NAME).await?;
            until_gone(stage, Self::NAME).await
        };
        let deleted = if profile.reacted() {
            deletion(gone, "deleted as core deletes")
        } else {
            not_checked("the provider did not react to the InfraCluster at all")
        };
        let given = endpoint(&stage.kinds.document, contract).is_some();
        let provisioned = match &profile.refused {
            None => judge::provisioned(&before_deletion, contract, self.waited),
            Some(_) => not_checked("the InfraCluster could not be given to a Cluster, see IC9"),
        };
        let mut outcomes: Outcomes = vec![
            (rules::ANY_OWNER, any_owner(profile)),
            (rules::FINALIZER, judge::finalizer_first(&before_deletion, contract)),
            (rules::ENDPOINT, judge::endpoint_in_time(&before_deletion, contract, profile.waits)),
            (rules::WAITS, judge::waited_for_endpoint(&before_deletion, contract, profile.waits, given)),
            (rules::PROVISIONED, provisioned),
            (rules::STEADY, judge::steady(&before_deletion, contract)),
        ];
        let ready = stage.recorder.read(Self::NAME, judge::always_ready_condition);
        outcomes.extend([(rules::READY, ready), (rules::DELETION, deleted), (rules::IDLE, idle)]);
        Ok(super::findings(stage, Self::NAME, outcomes))
    }
}

/// Waits for provisioned, with a Cluster's endpoint and a controller's owner reference where it takes them.
async fn meet(stage: &Stage, cluster: &DynamicObject, profile: &mut Profile) -> Result<(), Error> {
    let (name, contract) = (Lifecycle::NAME, stage.contract());
    let (timeout, recorder) = (stage.options.timeout, &stage.recorder);
    let patience = stage.options.quiet_time.max(timeout / 3);
    // A field of the wrong type will not become right by waiting.
    let decided = |history: &History| {
        let object = history.current()?;
        match capstan_api::contract::InfraCluster::new(object, contract).provisioned() {
            Ok(false) => None,
            Ok(true) => Some(true),
            Err(_) => Some(false),
        }
    };
    let reacted = || recorder.read(name, |history| !history.changes(0).is_empty());
    let has_endpoint = || {
        recorder.read(name, |history| history.current().is_some_and(|it| endpoint(it, contract).is_some()))
    };
    let mut done = recorder.until_or_quiet(name, patience, timeout, decided).await;
    let mut offered = false;
    if done.is_none() && !has_endpoint() {
        offered = true;
        stage.patch_cluster(name, json!({"controlPlaneEndpoint": cluster_endpoint()})).await?;
        let limit = if reacted() { timeout } else { patience };
        done = recorder.until(name, limit, decided).await;
    } else if done.is_none() && reacted() {
        done = recorder.until(name, timeout, decided).await;
    }
    if done.is_none() && !reacted() && stage.options.core != Core::Real {
        match stage.adopt(name, cluster, true).await {
            Ok(_) => done = recorder.until(name, timeout, decided).await,
            Err(Adoption::Failed(error)) => return Err(error),
            // A provider that rejects this does not wait for it either.
            Err(Adoption::Refused(_) | Adoption::Missing) => {}
        }
        profile.controller = reacted();
    }
    profile.reaction = match (done, reacted()) {
        (Some(true), _) => Reaction::Provisioned,
        (_, true) => Reaction::Some,
        (_, false) => Reaction::None,
    };
    let story = recorder.read(name, |history| judge::endpoint_story(history, contract));
    profile.endpoint = match story {
        EndpointStory::InTime(endpoint) => Some(endpoint),
        _ => None,
    };
    // Who needed the Cluster's endpoint has none of its own, or has taken that one over.
    profile.waits = offered
        && profile.provisioned()
        && profile.endpoint.as_ref().is_none_or(|it| (it.host.as_str(), it.port) == ENDPOINT);
    Ok(())
}

fn any_owner(profile: &Profile) -> Outcome {
    if profile.controller {
        return failed(
            format!(
                "{}: the provider wrote nothing until the owner reference to the Cluster got controller: true",
                Lifecycle::NAME
            ),
            "look for an owner reference by group and kind, and take no notice of `controller`",
        );
    }
    if profile.reacted() {
        Outcome::Passed
    } else {
        not_checked("the provider did not react to the InfraCluster at all, see IC4")
    }
}
