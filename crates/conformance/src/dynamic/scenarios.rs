//! The scenarios: what core and users do to one InfraCluster, and which rules it shows.

mod lifecycle;
mod pause;
mod restart;
mod witness;

use std::time::Duration;

use capstan_api::{
    cluster::v1beta2::ApiEndpoint,
    contract::InfraCluster,
    names::{annotation, label},
};
use serde_json::{Value, json};

pub(crate) use lifecycle::Lifecycle;
pub(crate) use witness::Witnesses;

use super::{
    Core, Error,
    history::{History, endpoint, finalizers, is_provisioned},
    judge::{self, failed, not_applicable, not_checked},
    rules,
    stage::{Adoption, Pause, Stage},
};
use crate::{
    report::{Finding, Outcome},
    rule::Rule,
};

/// Rules and what became of them.
pub(crate) type Outcomes = Vec<(&'static Rule, Outcome)>;

/// An endpoint for providers that wait for one. This address is in no use.
const ENDPOINT: (&str, i32) = ("192.0.2.1", 6443);

/// How far the provider went with the first InfraCluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reaction {
    /// It wrote nothing.
    #[default]
    None,
    /// It wrote something.
    Some,
    /// It reported provisioned.
    Provisioned,
}

/// What the first InfraCluster showed of the provider.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profile {
    /// How far it went.
    pub(crate) reaction: Reaction,
    /// It did so only for an owner that is the controller.
    pub(crate) controller: bool,
    /// It did so only once the Cluster had an endpoint.
    pub(crate) waits: bool,
    /// The endpoint that it made.
    pub(crate) endpoint: Option<ApiEndpoint>,
    /// The owner reference was refused.
    pub(crate) refused: Option<String>,
}

impl Profile {
    /// A description for reports.
    pub(crate) fn describe(&self) -> &'static str {
        match self.reaction {
            Reaction::Provisioned => "has provisioned it",
            Reaction::Some => "reacts but does not provision it",
            Reaction::None => "does not react",
        }
    }

    /// Whether it wrote anything.
    pub(crate) fn reacted(&self) -> bool {
        self.reaction != Reaction::None
    }

    /// Whether it reported provisioned.
    pub(crate) fn provisioned(&self) -> bool {
        self.reaction == Reaction::Provisioned
    }

    /// What a Cluster must have so that the provider provisions.
    fn cluster_spec(&self) -> Value {
        if self.waits { json!({"controlPlaneEndpoint": cluster_endpoint()}) } else { json!({}) }
    }
}

fn cluster_endpoint() -> Value {
    json!({"host": ENDPOINT.0, "port": ENDPOINT.1})
}

/// The scenarios beside the lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    NoOwner,
    ControllerOwner,
    PausedByCluster,
    PausedByAnnotation,
    ExternalByAnnotation,
    ExternalByLabel,
    EarlyDeletion,
    OwnerRemoved,
    ClusterGone,
    StatusWiped,
    Restart,
}

impl Scenario {
    /// All of them. Those that take longest come first.
    pub(crate) const ALL: [Self; 11] = [
        Self::PausedByCluster,
        Self::PausedByAnnotation,
        Self::NoOwner,
        Self::ExternalByAnnotation,
        Self::ExternalByLabel,
        Self::ControllerOwner,
        Self::EarlyDeletion,
        Self::OwnerRemoved,
        Self::ClusterGone,
        Self::StatusWiped,
        Self::Restart,
    ];

    /// The name of its objects.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NoOwner => "no-owner",
            Self::ControllerOwner => "controller-owner",
            Self::PausedByCluster => "paused-by-cluster",
            Self::PausedByAnnotation => "paused-by-annotation",
            Self::ExternalByAnnotation => "external-by-annotation",
            Self::ExternalByLabel => "external-by-label",
            Self::EarlyDeletion => "early-deletion",
            Self::OwnerRemoved => "owner-removed",
            Self::ClusterGone => "cluster-gone",
            Self::StatusWiped => "status-wiped",
            Self::Restart => "restart",
        }
    }

    /// The names of all objects that it creates.
    pub(crate) fn objects(self) -> &'static [&'static str] {
        match self {
            Self::NoOwner => &["no-owner"],
            Self::ControllerOwner => &["controller-owner"],
            Self::PausedByCluster => &["paused-by-cluster"],
            Self::PausedByAnnotation => &["paused-by-annotation"],
            Self::ExternalByAnnotation => &["external-by-annotation"],
            Self::ExternalByLabel => &["external-by-label"],
            Self::EarlyDeletion => &["early-deletion"],
            Self::OwnerRemoved => &["owner-removed"],
            Self::ClusterGone => &["cluster-gone"],
            Self::StatusWiped => &["status-wiped"],
            Self::Restart => &["restart", restart::WITNESS],
        }
    }

    /// The rules that it shows.
    pub(crate) fn rules(self) -> &'static [&'static Rule] {
        match self {
            Self::NoOwner => &[rules::NO_OWNER, rules::FINALIZER],
            Self::ControllerOwner => &[rules::ANY_OWNER],
            Self::PausedByCluster | Self::PausedByAnnotation => &[rules::PAUSED, rules::PAUSED_SHOWN],
            Self::ExternalByAnnotation | Self::ExternalByLabel => &[rules::EXTERNAL],
            Self::EarlyDeletion | Self::OwnerRemoved | Self::ClusterGone => &[rules::FINALIZER],
            Self::StatusWiped => &[rules::STATUS_WIPED],
            Self::Restart => &[rules::RESTART],
        }
    }

    /// Why it cannot be played.
    pub(crate) fn obstacle(self, stage: &Stage, profile: &Profile) -> Option<Outcome> {
        let passive = matches!(
            self,
            Self::NoOwner | Self::ExternalByAnnotation | Self::ExternalByLabel | Self::EarlyDeletion
        );
        let needs_fake = matches!(self, Self::ControllerOwner | Self::OwnerRemoved | Self::ClusterGone);
        if !profile.reacted() {
            return Some(not_checked(
                "the provider did not react to an InfraCluster with an owner, so that its silence shows nothing",
            ));
        }
        if !passive && !profile.provisioned() {
            return Some(not_checked("the provider provisions nothing, see IC4"));
        }
        if needs_fake && stage.options.core == Core::Real {
            return Some(not_checked("a real core would interfere: run with core `fake` or `beside`"));
        }
        if self == Self::Restart && stage.options.restart.is_none() {
            return Some(not_checked("no way to restart the provider was given"));
        }
        None
    }

    /// Runs the scenario.
    pub(crate) async fn play(self, stage: &Stage, profile: &Profile) -> Result<Outcomes, Error> {
        let name = self.name();
        let rule = |outcome| vec![(self.rules()[0], outcome)];
        match self {
            Self::NoOwner => no_owner(stage, profile, name).await,
            Self::ControllerOwner => controller_owner(stage, profile, name).await.map(rule),
            Self::PausedByCluster => Box::pin(pause::play(stage, profile, name, Pause::Cluster)).await,
            Self::PausedByAnnotation => Box::pin(pause::play(stage, profile, name, Pause::Annotation)).await,
            Self::ExternalByAnnotation => {
                let metadata = json!({"annotations": {annotation::MANAGED_BY: "conformance"}});
                external(stage, profile, name, &metadata, "the annotation").await.map(rule)
            }
            Self::ExternalByLabel => {
                let metadata = json!({"labels": {label::MANAGED_BY: "conformance"}});
                external(stage, profile, name, &metadata, "the label").await.map(rule)
            }
            Self::EarlyDeletion => early_deletion(stage, profile, name).await.map(rule),
            Self::OwnerRemoved => owner_removed(stage, profile, name).await.map(rule),
            Self::ClusterGone => cluster_gone(stage, profile, name).await.map(rule),
            Self::StatusWiped => status_wiped(stage, profile, name).await.map(rule),
            Self::Restart => Box::pin(restart::play(stage, profile, name)).await.map(rule),
        }
    }
}

/// Outcomes as findings on a scenario's object.
pub(crate) fn findings(stage: &Stage, name: &str, outcomes: Outcomes) -> Vec<Finding> {
    let subject = format!("{} {name}", stage.kinds.infra.kind);
    outcomes.into_iter().map(|(rule, outcome)| Finding::new(rule, subject.clone(), outcome)).collect()
}

/// Creates an InfraCluster and its Cluster, and gives the one to the other; says why if that cannot be done.
async fn adopted(
    stage: &Stage,
    name: &str,
    metadata: &Value,
    spec: &Value,
    controller: bool,
) -> Result<Result<String, String>, Error> {
    stage.create_infra(name, metadata).await?;
    let cluster = stage.create_cluster(name, spec).await?;
    match stage.adopt(name, &cluster, controller).await {
        Ok(version) => Ok(Ok(version)),
        Err(Adoption::Refused(why)) => Ok(Err(format!("the owner reference was refused: {why}"))),
        Err(Adoption::Missing) => Ok(Err("core did not set the owner reference in time".to_owned())),
        Err(Adoption::Failed(error)) => Err(error),
    }
}

/// Waits until provisioned is reported.
async fn until_provisioned(stage: &Stage, name: &str) -> bool {
    let contract = stage.contract();
    let find =
        |history: &History| history.current().filter(|object| is_provisioned(object, contract)).map(drop);
    stage.recorder.until(name, stage.options.timeout, find).await.is_some()
}

/// The same from creation on; says why if it does not happen.
async fn provisioned(stage: &Stage, profile: &Profile, name: &str) -> Result<Result<(), String>, Error> {
    match adopted(stage, name, &json!({}), &profile.cluster_spec(), profile.controller).await? {
        Err(why) => Ok(Err(why)),
        Ok(_) if until_provisioned(stage, name).await => Ok(Ok(())),
        Ok(_) => Ok(Err(format!(
            "{} of {name} did not become true within {:?}",
            InfraCluster::provisioned_path(stage.contract()),
            stage.options.timeout
        ))),
    }
}

/// Waits for the end of an object; says what is left if it does not come.
async fn until_gone(stage: &Stage, name: &str) -> Option<String> {
    let limit = stage.options.timeout;
    let gone = stage.recorder.until(name, limit, |history| history.is_gone().then_some(())).await;
    if gone.is_some() {
        return None;
    }
    let left =
        stage.recorder.read(name, |history| history.current().map(finalizers).unwrap_or_default().join(", "));
    Some(format!("{name} is still there {limit:?} after its deletion, held by its finalizers [{left}]"))
}

fn deletion(seen: Option<String>, when: &str) -> Outcome {
    match seen {
        None => Outcome::Passed,
        Some(seen) => failed(
            format!("{seen} ({when})"),
            "on deletion remove what was made outside, if anything, then the provider's finalizer, \
             whether or not there is an owner and whether or not anything was ever provisioned",
        ),
    }
}

async fn quiet(stage: &Stage) -> Duration {
    tokio::time::sleep(stage.options.quiet_time).await;
    stage.options.quiet_time
}

async fn no_owner(stage: &Stage, profile: &Profile, name: &str) -> Result<Outcomes, Error> {
    stage.create_infra(name, &json!({})).await?;
    stage.witnesses.pass(stage, profile).await?;
    let watched = quiet(stage).await;
    let outcome = stage.recorder.read(name, |history| {
        let repair = "return before anything is written or made when no owner reference of kind Cluster \
                      (group cluster.x-k8s.io) exists";
        judge::untouched(history, 0, watched, "it had no owner", repair)
    });
    stage.delete_infra(name).await?;
    let gone = until_gone(stage, name).await;
    Ok(vec![(rules::NO_OWNER, outcome), (rules::FINALIZER, deletion(gone, "it never had an owner"))])
}

async fn controller_owner(stage: &Stage, profile: &Profile, name: &str) -> Result<Outcome, Error> {
    let adopted = adopted(stage, name, &json!({}), &profile.cluster_spec(), true).await?;
    let repair = "look for an owner reference by group and kind, and take no notice of `controller`";
    Ok(match adopted {
        Err(why) => failed(format!("{name}: {why} (with controller: true)"), repair),
        Ok(_) if until_provisioned(stage, name).await => Outcome::Passed,
        Ok(_) => failed(
            format!(
                "{name} was not provisioned within {:?} with an owner reference that has controller: true",
                stage.options.timeout
            ),
            repair,
        ),
    })
}

async fn external(
    stage: &Stage,
    profile: &Profile,
    name: &str,
    metadata: &Value,
    by: &str,
) -> Result<Outcome, Error> {
    if let Err(why) = adopted(stage, name, metadata, &profile.cluster_spec(), profile.controller).await? {
        return Ok(not_checked(why));
    }
    let mut status = json!({});
    match InfraCluster::provisioned_path(stage.contract()) {
        "status.ready" => status["ready"] = json!(true),
        _ => status["initialization"] = json!({"provisioned": true}),
    }
    if let Err(error) = stage.patch_infra_status(name, status).await {
        stage.note(format!("an outside system could not report {name} as provisioned: {error}"));
    }
    stage.witnesses.pass(stage, profile).await?;
    let watched = quiet(stage).await;
    Ok(stage.recorder.read(name, |history| {
        let when = format!("it was managed externally ({by} cluster.x-k8s.io/managed-by)");
        let repair = "skip objects with the annotation or the label cluster.x-k8s.io/managed-by \
                      before anything else, finalizer and conditions included";
        judge::untouched(history, 0, watched, &when, repair)
    }))
}

async fn early_deletion(stage: &Stage, profile: &Profile, name: &str) -> Result<Outcome, Error> {
    // Where the provider waits for an endpoint it gets none here, so that nothing is ever provisioned.
    if let Err(why) = adopted(stage, name, &json!({}), &json!({}), profile.controller).await? {
        return Ok(not_checked(why));
    }
    stage.delete_infra(name).await?;
    stage.delete_infra(name).await?;
    Ok(deletion(until_gone(stage, name).await, "deleted twice, right after it got its owner"))
}

async fn owner_removed(stage: &Stage, profile: &Profile, name: &str) -> Result<Outcome, Error> {
    if let Err(why) = provisioned(stage, profile, name).await? {
        return Ok(not_checked(why));
    }
    stage.release(name).await?;
    stage.delete_infra(name).await?;
    Ok(deletion(until_gone(stage, name).await, "deleted after its owner reference was removed"))
}

async fn cluster_gone(stage: &Stage, profile: &Profile, name: &str) -> Result<Outcome, Error> {
    if let Err(why) = provisioned(stage, profile, name).await? {
        return Ok(not_checked(why));
    }
    stage.delete_cluster(name).await?;
    stage.delete_infra(name).await?;
    Ok(deletion(until_gone(stage, name).await, "deleted after its Cluster"))
}

async fn status_wiped(stage: &Stage, profile: &Profile, name: &str) -> Result<Outcome, Error> {
    if let Err(why) = provisioned(stage, profile, name).await? {
        return Ok(not_checked(why));
    }
    let contract = stage.contract();
    let before = stage.recorder.read(name, |history| history.current().and_then(|it| endpoint(it, contract)));
    stage.publish(name, before.as_ref()).await?;
    let version = match stage.patch_infra_status(name, Value::Null).await {
        Ok(version) => version,
        Err(Error::Api { source, .. }) if matches!(&*source, kube::Error::Api(_)) => {
            return Ok(not_applicable(format!("the status cannot be emptied: {source}")));
        }
        Err(error) => return Err(error),
    };
    let again = |history: &History| {
        let states = history.states.get(history.index_of(&version)..)?;
        states.iter().any(|state| is_provisioned(&state.object, contract)).then_some(())
    };
    let waited = stage.options.timeout;
    // What came of it is judged below, whether it came in time or not.
    let _ = stage.recorder.until(name, waited, again).await;
    Ok(stage.recorder.read(name, |history| {
        let from = history.index_of(&version);
        judge::provisioned_again(history, from, before.as_ref(), contract, "its status was emptied", waited)
    }))
}
