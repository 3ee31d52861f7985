//! Providers out of a management cluster: what goes with them, what outlives them, and who still needs them.
//!
//! A plan is made from what is there and changes nothing. It is carried out in stages, so that a run that was cut off
//! can be repeated: the inventory keeps a provider until everything else of it is gone.

mod choice;
mod execute;
mod removal;
mod search;
mod usage;

use capstan_api::provider::ProviderType;
use capstan_management::{
    ManagementCluster, ObjectRef, ServerError,
    inventory::{Installed, Inventory},
    sweep::Component,
};

use self::search::{Scope, Survey};
pub use self::{
    execute::{DeleteEvent, DeleteReporter},
    removal::{Kept, Removal, Stage, WhyKept},
    usage::Usage,
};
use crate::{
    check::{Problems, Ready},
    diff::{self, Intent, Preview},
};

/// Which providers are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All that are installed, and what is left of others.
    All,
    /// Some.
    Named(Vec<DeleteGoal>),
}

/// A provider to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteGoal {
    /// The provider's type.
    pub kind: ProviderType,
    /// Its name.
    pub name: String,
    /// The version that it must have, if one is named.
    pub version: Option<String>,
    /// The namespace of the instance, if one is named.
    pub namespace: Option<String>,
}

impl DeleteGoal {
    fn label(&self) -> String {
        self.kind.label(&self.name)
    }
}

/// What goes besides the providers themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Their namespaces, with all that is in them.
    pub include_namespace: bool,
    /// Their CustomResourceDefinitions, and whatever else instances share.
    pub include_crd: bool,
}

/// What a deletion would do. Nothing is deleted before [`DeletePlan::check`] passes it.
#[derive(Clone, Debug)]
pub struct DeletePlan {
    targets: Vec<DeleteTarget>,
    /// Objects that the providers still look after.
    usages: Vec<Usage>,
    /// What other instances need of those that are deleted.
    answered: Vec<DeleteProblem>,
    selection: Selection,
    options: DeleteOptions,
}

/// What is to be done for one provider.
#[derive(Clone, Debug)]
pub struct DeleteTarget {
    /// Its label.
    pub label: String,
    /// Its entries in the inventory: none where an installation was cut off, several where old tools made instances.
    pub entries: Vec<Installed>,
    /// What goes.
    pub removals: Vec<Removal>,
    /// What stays.
    pub kept: Vec<Kept>,
}

impl DeletePlan {
    /// What is to be done for each provider.
    pub fn targets(&self) -> &[DeleteTarget] {
        &self.targets
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.targets.iter().all(|it| it.removals.is_empty())
    }

    /// The namespaces that go.
    fn namespaces(&self) -> Vec<&str> {
        let removals = self.targets.iter().flat_map(|it| &it.removals);
        removals.filter(|it| it.stage == Stage::Namespaces).map(|it| it.component.id.name.as_str()).collect()
    }

    /// What stands in the way.
    pub fn problems(&self, policy: DeletePolicy) -> Vec<DeleteProblem> {
        let include_crd = self.options.include_crd;
        // CRDs take their objects with them, whatever the policy.
        let counts = |it: &&Usage| (include_crd && it.is_of_own_kind) || !policy.force;
        let usages: Vec<Usage> = self.usages.iter().filter(counts).cloned().collect();
        let in_use = (!usages.is_empty()).then_some(DeleteProblem::InUse { usages, include_crd });
        let answered = self.answered.iter().filter(|_| !policy.force).cloned();
        in_use.into_iter().chain(answered).collect()
    }

    /// Refuses a plan with problems that the policy does not ignore.
    pub fn check(
        self,
        cluster: &ManagementCluster,
        policy: DeletePolicy,
    ) -> Result<Ready<Self>, Problems<DeleteProblem>> {
        let problems = self.problems(policy);
        if problems.is_empty() {
            Ok(Ready { cluster: cluster.clone(), plan: self })
        } else {
            Err(Problems(problems))
        }
    }

    /// What would be deleted. A plan with problems can be shown, too.
    pub async fn preview(&self, cluster: &ManagementCluster) -> Result<Preview, ServerError> {
        let removed = |it: &DeleteTarget| it.removals.iter().map(|it| it.component.clone()).collect();
        let removed: Vec<Vec<Component>> = self.targets.iter().map(removed).collect();
        let intents: Vec<_> = self
            .targets
            .iter()
            .zip(&removed)
            .map(|(target, removed)| Intent { provider: &target.label, wanted: Vec::new(), removed })
            .collect();
        diff::preview(cluster, &intents).await
    }
}

/// What a caller puts up with.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeletePolicy {
    /// Whether providers may go that still look after objects.
    pub force: bool,
}

impl Ready<DeletePlan> {
    /// Deletes.
    pub async fn run(&self, report: DeleteReporter<'_>) -> Result<(), DeleteError> {
        execute::execute(&self.cluster, &self.plan, report).await
    }
}

/// What stands in the way of a deletion.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeleteProblem {
    /// The providers still look after objects.
    #[error("{} that the providers look after; nothing was deleted", still_there(usages))]
    InUse {
        /// The objects, by kind.
        usages: Vec<Usage>,
        /// Whether CRDs were to go as well.
        include_crd: bool,
    },
    /// Webhooks that another instance needs are answered by the deleted one.
    #[error(
        "the instance of {} in namespace {} answers webhooks that the instance in namespace {} needs; nothing was deleted",
        deleted.label(), deleted.namespace, other.namespace
    )]
    Answered {
        /// The webhook configurations and CRDs.
        objects: Vec<ObjectRef>,
        /// The instance that is to be deleted.
        deleted: Box<Installed>,
        /// The newest instance that stays.
        other: Box<Installed>,
    },
}

/// Providers cannot be deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// The server refused something, or could not be reached.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A provider is not there.
    #[error("provider {label} is not installed{}; nothing was deleted", within(namespace.as_deref()))]
    NotInstalled {
        /// Its label.
        label: String,
        /// The namespace that was named.
        namespace: Option<String>,
        /// What is installed.
        installed: Vec<String>,
    },
    /// A provider is there in another version.
    #[error("provider {label} is installed in version {installed}, not {asked}; nothing was deleted")]
    OtherVersion {
        /// Its label.
        label: String,
        /// The version that was named.
        asked: String,
        /// The version that is there.
        installed: String,
    },
    /// A provider is there more than once.
    #[error("provider {label} is installed several times, in namespaces {}; nothing was deleted", namespaces.join(", "))]
    SeveralInstances {
        /// Its label.
        label: String,
        /// The namespaces of its instances.
        namespaces: Vec<String>,
    },
    /// Objects of the providers' kinds were created while the rest of the providers was being deleted.
    #[error(
        "{} created after this command began, of CRDs that it was about to delete; these CRDs and objects stay",
        still_there(usages)
    )]
    MadeMeanwhile {
        /// The objects, by kind.
        usages: Vec<Usage>,
    },
    /// A CRD is still there after it was deleted.
    #[error("{object} was deleted, but is still there after {seconds} s: {reason}")]
    NotGone {
        /// The object.
        object: Box<ObjectRef>,
        /// How long it was waited for.
        seconds: u64,
        /// What it says itself.
        reason: String,
    },
}

/// The namespace that was named, in words.
pub(crate) fn within(namespace: Option<&str>) -> String {
    namespace.map_or_else(String::new, |it| format!(" in namespace {it}"))
}

fn still_there(usages: &[Usage]) -> String {
    match usages.iter().map(|it| it.count).sum::<usize>() {
        0 => "there are still objects".to_owned(),
        1 => "there is still 1 object".to_owned(),
        count => format!("there are still {count} objects"),
    }
}

/// Finds out what is to be done. Nothing is changed.
pub async fn plan(
    cluster: &ManagementCluster,
    inventory: &Inventory,
    selection: &Selection,
    options: DeleteOptions,
) -> Result<DeletePlan, DeleteError> {
    choice::check(inventory, selection)?;
    let kinds = cluster.kinds().await?;
    let Survey { components: mut found, mut readings } = search::survey(cluster, &kinds, selection).await?;
    found.retain(|it| !it.is_made_from_another());
    let chosen = choice::choose(inventory, selection, &found)?;
    for reading in &mut readings {
        let chosen = chosen.iter().find(|it| it.label == reading.provider);
        if let (Some(chosen), Ok(objects)) = (chosen, &mut reading.objects) {
            objects.retain(|it| !chosen.is_covered(it.namespace.as_deref()));
        }
    }
    let services = removal::webhook_services(cluster, &chosen, &found).await?;
    let site = removal::Site { inventory, chosen: &chosen, kinds: &kinds, services: &services, options };
    let targets: Vec<DeleteTarget> = chosen.iter().map(|it| site.judge(it, &found)).collect();
    let answered = chosen.iter().zip(&targets).filter_map(|(it, target)| site.answered(it, target)).collect();
    let mut plan =
        DeletePlan { targets, usages: Vec::new(), answered, selection: selection.clone(), options };
    if !plan.is_empty() {
        let scope = Scope::new(selection, &inventory.providers);
        plan.usages = usage::find(cluster, &kinds, &scope, &readings, &plan.namespaces()).await?;
    }
    Ok(plan)
}
