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

use self::search::{Scope, Survey};
pub use self::{
    execute::{DeleteEvent, DeleteReporter},
    removal::{Kept, Removal, Stage, WhyKept},
    usage::Usage,
};
use capstan_management::{
    ManagementCluster, ObjectRef, ServerError,
    inventory::{Installed, Inventory},
    sweep::Component,
};

/// Which providers are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All that are installed, and what is left of others.
    All,
    /// Some.
    Named(Vec<Asked>),
}

/// A provider that somebody named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The part that it plays.
    pub kind: ProviderType,
    /// Its name.
    pub name: String,
    /// The version that is thought to be installed.
    pub version: Option<String>,
}

impl Asked {
    fn label(&self) -> String {
        self.kind.label(&self.name)
    }
}

/// What goes besides the providers themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Their namespaces, with all that is in them.
    pub include_namespace: bool,
    /// Their CustomResourceDefinitions, and whatever else instances share.
    pub include_crd: bool,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub struct DeletePlan {
    /// For each provider.
    pub targets: Vec<DeleteTarget>,
    /// Who still needs them.
    pub usages: Vec<Usage>,
    selection: Selection,
    options: Options,
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

impl DeleteTarget {
    /// What goes, for a preview.
    pub fn components(&self) -> Vec<Component> {
        self.removals.iter().map(|it| it.component.clone()).collect()
    }
}

impl DeletePlan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.targets.iter().all(|it| it.removals.is_empty())
    }

    /// The namespaces that go.
    fn namespaces(&self) -> Vec<&str> {
        let removals = self.targets.iter().flat_map(|it| &it.removals);
        removals.filter(|it| it.stage == Stage::Namespaces).map(|it| it.component.id.name.as_str()).collect()
    }

    /// Why it should not be carried out.
    pub fn objection(&self, force: bool) -> Option<DeleteError> {
        // CRDs take their objects with them, which is never meant.
        let usages: Vec<Usage> = self
            .usages
            .iter()
            .filter(|it| if self.options.include_crd && it.is_of_own_kind { true } else { !force })
            .cloned()
            .collect();
        (!usages.is_empty()).then_some(DeleteError::InUse { usages, include_crd: self.options.include_crd })
    }
}

/// Providers cannot be deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// The server refused something, or could not be reached.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A provider is not there.
    #[error("provider {label} is not installed; nothing was deleted")]
    NotInstalled {
        /// Its label.
        label: String,
        /// What is installed.
        installed: Vec<String>,
    },
    /// A provider is there in another version.
    #[error("provider {label} is installed in version {installed}, not {asked}; nothing was deleted")]
    OtherVersion {
        /// Its label.
        label: String,
        /// The version that somebody named.
        asked: String,
        /// The version that is there.
        installed: String,
    },
    /// A provider is there more than once.
    #[error("provider {label} is installed several times, in namespaces {}; nothing was deleted", namespaces.join(", "))]
    SeveralInstances {
        /// Its label.
        label: String,
        /// Where.
        namespaces: Vec<String>,
    },
    /// Somebody still needs the providers: who it is should be told with it.
    #[error("{} that the providers look after; nothing was deleted", still_there(usages))]
    InUse {
        /// Who.
        usages: Vec<Usage>,
        /// Whether CRDs were to go as well.
        include_crd: bool,
    },
    /// Somebody began to need the providers' kinds while the rest of them was being deleted.
    #[error(
        "{} of kinds that were about to go, made after this command began; the kinds and these objects are left as \
         they are",
        still_there(usages)
    )]
    MadeMeanwhile {
        /// Who.
        usages: Vec<Usage>,
    },
    /// A CRD is still there after it was deleted.
    #[error("{object} was deleted, but is still there after {seconds} s: {reason}")]
    NotGone {
        /// Which.
        object: Box<ObjectRef>,
        /// How long it was waited for.
        seconds: u64,
        /// What it says itself.
        reason: String,
    },
}

fn still_there(usages: &[Usage]) -> String {
    match usages.iter().map(|it| it.count).sum::<usize>() {
        0 => "there are still objects".to_owned(),
        1 => "there is still 1 object".to_owned(),
        count => format!("there are still {count} objects"),
    }
}

impl DeleteError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Server(error) => error.hint(),
            Self::NotInstalled { installed, .. } if installed.is_empty() => {
                Some("no provider is installed there: --kubeconfig and --kubeconfig-context choose another \
                      management cluster"
                    .to_owned())
            }
            Self::NotInstalled { installed, .. } => {
                Some(format!("these are installed: {}", installed.join(", ")))
            }
            Self::OtherVersion { .. } => {
                Some("name the version that is installed, or none".to_owned())
            }
            Self::SeveralInstances { .. } => Some("--all deletes all instances of all providers".to_owned()),
            Self::InUse { include_crd: true, .. } => Some(
                "delete these objects first and wait until they are gone: kinds take their objects with them".to_owned(),
            ),
            Self::InUse { .. } => Some(
                "delete these objects first and wait until they are gone, or move them to another management cluster; \
                 --force deletes the providers all the same, and nobody looks after the objects any more"
                    .to_owned(),
            ),
            Self::MadeMeanwhile { .. } => Some(
                "delete these objects and run the same command again, or leave --include-crd out to finish without"
                    .to_owned(),
            ),
            Self::NotGone { .. } => Some(
                "see to what holds it, then run the same command again; the provider is still in the inventory"
                    .to_owned(),
            ),
        }
    }
}

/// Finds out what is to be done. Nothing is changed.
pub async fn plan(
    cluster: &ManagementCluster,
    selection: &Selection,
    options: Options,
) -> Result<DeletePlan, DeleteError> {
    let inventory = Inventory::read(cluster).await?;
    choice::check(&inventory, selection)?;
    let kinds = cluster.kinds().await?;
    let Survey { components: mut found, readings } = search::survey(cluster, &kinds, selection).await?;
    found.retain(|it| !it.is_made_from_another());
    let chosen = choice::choose(&inventory, selection, &found)?;
    let services = removal::webhook_services(cluster, &found).await?;
    let site =
        removal::Site { inventory: &inventory, chosen: &chosen, kinds: &kinds, services: &services, options };
    let targets: Vec<DeleteTarget> = chosen.iter().map(|it| site.judge(it, &found)).collect();
    let mut plan = DeletePlan { targets, usages: Vec::new(), selection: selection.clone(), options };
    if !plan.is_empty() {
        let scope = Scope::new(selection, &inventory.providers);
        plan.usages = usage::find(cluster, &kinds, &scope, &readings, &plan.namespaces()).await?;
    }
    Ok(plan)
}

/// Carries a plan out.
pub async fn delete(
    cluster: &ManagementCluster,
    plan: &DeletePlan,
    force: bool,
    tell: DeleteReporter<'_>,
) -> Result<(), DeleteError> {
    if let Some(objection) = plan.objection(force) {
        return Err(objection);
    }
    execute::execute(cluster, plan, tell).await
}
