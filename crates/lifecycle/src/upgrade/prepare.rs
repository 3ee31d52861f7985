//! Everything that can go wrong before anything is stopped: versions, contracts, variables, and what the server would
//! say to the new objects.

use std::pin::pin;

use capstan_api::{
    names::{CERT_MANAGER, label},
    provider::ProviderType,
};
use futures::future::{Either, join_all, select, try_join_all};
use tokio::sync::OnceCell;

use super::{
    CertManagerPlan, CertManagerUpgrade, Migration, UpgradeError,
    available::{self, look},
    certificates,
    contracts::is_spoken,
    mark::{self, Unfinished},
    plan::{Next, UpgradeWarning, plan_for, spoken_by, warnings},
    prefetch::Prefetch,
    prune::Coming,
    rules::{self, Direction, Speaker, Target},
    step::{Step, Surroundings, decide},
};
use crate::{
    cert_manager,
    diff::{self, Handling, Intent, Preview},
    release::{Prepared, ReleaseError, Releases, Wanted},
};
use capstan_management::{
    Kind, ManagementCluster, ObjectRef, ServerError, crd,
    dry_run::{self, Crds, Known},
    inventory::{Installed, Inventory},
    sweep::{self, Component},
};

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    /// The newest versions that go together under a contract.
    Contract(&'a str),
    /// These versions of these providers.
    Versions(&'a [Asked]),
}

/// A provider that is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The part that it plays.
    pub kind: ProviderType,
    /// Its name.
    pub name: String,
    /// The namespace of its instance, if it is named.
    pub namespace: Option<String>,
    /// Where it is to go.
    pub version: Option<String>,
}

/// An upgrade that is ready: everything is fetched, rendered and checked.
#[derive(Debug, Default)]
pub struct Upgrade {
    /// What comes before the providers.
    pub cert_manager: Option<CertManagerUpgrade>,
    /// What is to be done, in order.
    pub steps: Vec<Step>,
    /// Providers that were asked for and have that version already.
    pub up_to_date: Vec<Installed>,
    /// What a user should know about releases.
    pub warnings: Vec<UpgradeWarning>,
}

impl Upgrade {
    /// Fetches, renders and checks everything. Nothing is changed.
    pub async fn prepare(
        cluster: &ManagementCluster,
        releases: &Releases<'_>,
        goal: Goal<'_>,
        allow_downgrade: bool,
    ) -> Result<Self, UpgradeError> {
        let (prefetch, reading) = Prefetch::begin(releases, goal);
        let preparing = Self::prepare_with(cluster, releases, goal, allow_downgrade, prefetch);
        // Whoever needs none of what is read prefetch does not wait for it.
        match select(pin!(preparing), pin!(reading)).await {
            Either::Left((prepared, _)) => prepared,
            Either::Right(((), preparing)) => preparing.await,
        }
    }

    async fn prepare_with(
        cluster: &ManagementCluster,
        releases: &Releases<'_>,
        goal: Goal<'_>,
        allow_downgrade: bool,
        prefetch: Prefetch,
    ) -> Result<Self, UpgradeError> {
        let (inventory, unfinished, _) =
            futures::try_join!(Inventory::read(cluster), mark::unfinished(cluster), cluster.kinds())?;
        let providers = inventory.providers;
        let core = rules::core_of(&providers)?;
        rules::check_instances(&providers)?;
        let (targets, mut warnings) = targets(releases, &providers, &unfinished, goal).await?;
        let (targets, up_to_date) = to_do(targets, &unfinished, allow_downgrade)?;
        if targets.is_empty() {
            let manifest = certificates::fetch(releases).await;
            let cert_manager = certificates(cluster, manifest, None, &mut warnings).await?;
            return Ok(Self { cert_manager, steps: Vec::new(), up_to_date, warnings });
        }
        // Asked for once, while releases are read.
        let site = OnceCell::new();
        let site = async || site.get_or_try_init(|| Site::survey(cluster, &providers)).await;
        let stay = providers.iter().filter(|it| !targets.iter().any(|target| target.provider == **it));
        let tried = targets.iter().map(async |it| {
            let provider = &it.provider;
            let failed = |error| UpgradeError::release(provider, error);
            let fetched = prefetch.fetch(releases, provider, &it.version).await;
            let (fetched, site) = (fetched.map_err(failed)?, site().await?);
            let release = releases.render(fetched, &wanted(it, &site.roles)).map_err(failed)?;
            let trials = dry_run::try_over(cluster, release.components.objects(), &site.known).await?;
            Ok::<_, UpgradeError>((release, trials))
        });
        let ((installed, manifest), images, tried, others, core_before) = futures::try_join!(
            async {
                let installed = components(cluster, &site().await?.known.crds).await?;
                // Releases are read before it: the server is waiting to try them.
                Ok((installed, certificates::fetch(releases).await))
            },
            async { Ok(cert_manager::images_in_use(cluster).await?) },
            try_join_all(tried),
            async { Ok(join_all(stay.map(|it| speaker(releases, it))).await) },
            contract_before(cluster, releases, core),
        )?;
        let known = Some((installed.as_slice(), images.as_slice()));
        let cert_manager = certificates(cluster, manifest, known, &mut warnings).await?;
        warnings.extend(untold(&others, &warnings));
        let (prepared, trials): (Vec<_>, Vec<_>) = tried.into_iter().unzip();
        check_contracts(&targets, &prepared, &others, core, core_before.as_deref())?;
        let coming = Coming::in_releases(prepared.iter().flat_map(|it| it.components.objects()));
        let steps = targets.into_iter().zip(prepared).zip(trials);
        let steps = steps.map(|((target, release), trials)| {
            let is_begun = unfinished.iter().any(|it| it.provider == target.provider);
            let around = Surroundings { installed: &installed, coming: &coming };
            decide(cluster, target, release, trials, around, is_begun)
        });
        let steps = try_join_all(steps).await?;
        Ok(Self { cert_manager, steps, up_to_date, warnings })
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.cert_manager.is_none() && self.steps.is_empty()
    }

    /// What it would change.
    pub async fn preview(&self, cluster: &ManagementCluster) -> Result<Preview, ServerError> {
        let intents: Vec<(String, &Step)> = self.steps.iter().map(|it| (it.label(), it)).collect();
        let cert_manager = self.cert_manager.iter().map(|it| Intent {
            provider: CERT_MANAGER,
            wanted: &it.step.manifest.objects,
            removed: &it.gone,
            handling: Handling::Applied,
        });
        let providers = intents.iter().map(|(label, step)| Intent {
            provider: label,
            wanted: step.to.components.objects(),
            removed: &step.leftovers.gone,
            handling: Handling::Applied,
        });
        let intents: Vec<Intent<'_>> = cert_manager.chain(providers).collect();
        let mut preview = diff::preview(cluster, &intents).await?;
        // What stands in the way of these is cleared away before they are applied.
        let is_cleared = |id: &ObjectRef| {
            self.steps.iter().any(|it| it.replaced.contains(id)) || self.migrations().any(|it| it.is_of(id))
        };
        preview.refusals.retain(|it| !is_cleared(&it.object));
        let replaced = self.steps.iter().flat_map(|it| &it.replaced);
        preview
            .notes
            .extend(replaced.map(|it| format!("{it} is deleted and made anew: a field cannot be changed")));
        preview.notes.extend(self.steps.iter().flat_map(|it| &it.leftovers.kept).map(|it| {
            format!("{it} stays, though the new release does not have it: there are objects of it")
        }));
        preview.notes.extend(self.migrations().map(|it| {
            let gone = it.dropped.join(" and ");
            format!("objects of {} are written as {} first, since {gone} will be gone", it.crd, it.stored)
        }));
        Ok(preview)
    }

    /// Kinds whose objects have to be written anew first.
    fn migrations(&self) -> impl Iterator<Item = &Migration> {
        let of_cert_manager = self.cert_manager.iter().flat_map(|it| &it.migrations);
        of_cert_manager.chain(self.steps.iter().flat_map(|it| &it.migrations))
    }
}

/// What has to be known of a cluster before a release is rendered for it and tried on it.
struct Site {
    /// The cluster-wide roles and bindings that were installed.
    roles: Vec<Component>,
    /// The kinds that providers define, and the namespaces that they are in.
    known: Known,
}

impl Site {
    async fn survey(cluster: &ManagementCluster, providers: &[Installed]) -> Result<Self, ServerError> {
        let (roles, crds) =
            futures::try_join!(sweep::sweep_kinds(cluster, label::CLUSTERCTL, is_role), crds(cluster),)?;
        // The inventory's entries are in them.
        let namespaces = providers.iter().map(|it| it.namespace.clone()).collect();
        Ok(Self { roles, known: Known { crds, namespaces } })
    }
}

/// The kinds that providers define.
async fn crds(cluster: &ManagementCluster) -> Result<Crds, ServerError> {
    let kinds = cluster.kinds().await?;
    let Some(kind) = kinds.find("apiextensions.k8s.io/v1", "CustomResourceDefinition") else {
        return Ok(Crds::new());
    };
    let found = cluster.list_metadata(kind, None, label::PROVIDER).await?;
    Ok(found.into_iter().filter_map(|it| Some((it.metadata.name.clone()?, it.metadata))).collect())
}

/// Everything that clusterctl or we installed. Kinds that providers define are left out: what is of them is the user's,
/// and cannot be read where nobody converts it.
async fn components(cluster: &ManagementCluster, crds: &Crds) -> Result<Vec<Component>, ServerError> {
    let is_ours = |kind: &Kind| !crds.contains_key(&crd::name_of(kind));
    let (mut found, uncounted) = futures::try_join!(
        sweep::sweep_kinds(cluster, label::CLUSTERCTL, |it| is_ours(it) && !is_uncounted(it)),
        sweep::sweep_whole(cluster, label::CLUSTERCTL, is_uncounted),
    )?;
    found.extend(uncounted);
    Ok(found)
}

/// Whether objects of a kind have no generation, which would tell that they changed. Secrets are not looked at.
fn is_uncounted(kind: &Kind) -> bool {
    let resource = &kind.resource;
    match resource.group.as_str() {
        "" => {
            matches!(resource.kind.as_str(), "ConfigMap" | "Namespace" | "Service" | "ServiceAccount")
        }
        "rbac.authorization.k8s.io" => true,
        _ => false,
    }
}

/// What is to be done about cert-manager, which the server has tried.
async fn certificates(
    cluster: &ManagementCluster,
    manifest: certificates::Fetched,
    known: Option<(&[Component], &[String])>,
    warnings: &mut Vec<UpgradeWarning>,
) -> Result<Option<CertManagerUpgrade>, UpgradeError> {
    let (plan, warning) = certificates::plan(cluster, manifest, known).await?;
    warnings.extend(warning);
    match plan {
        CertManagerPlan::Upgrade(step) => Ok(Some(CertManagerUpgrade::decide(cluster, step).await?)),
        CertManagerPlan::NotOurs | CertManagerPlan::UpToDate => Ok(None),
    }
}

/// Who is to go where.
async fn targets(
    releases: &Releases<'_>,
    providers: &[Installed],
    unfinished: &[Unfinished],
    goal: Goal<'_>,
) -> Result<(Vec<Target>, Vec<UpgradeWarning>), UpgradeError> {
    let contract = match goal {
        Goal::Versions(asked) => return Ok((rules::choose(providers, asked)?, Vec::new())),
        Goal::Contract(contract) if !is_spoken(contract) => {
            return Err(UpgradeError::UnknownContract { contract: contract.to_owned() });
        }
        Goal::Contract(contract) => contract,
    };
    let candidates = look(releases, providers).await;
    let items = plan_for(&candidates, contract).items.into_iter();
    let mut targets: Vec<Target> = items
        .filter_map(|item| {
            // What was begun is finished.
            let begun =
                || unfinished.iter().find(|it| it.provider == item.provider).map(|it| it.version.clone());
            let version = match item.next {
                Next::Version(version) => Some(version),
                Next::UpToDate | Next::Unknown => begun(),
            }?;
            Some(Target { provider: item.provider, version })
        })
        .collect();
    targets.sort_by(|a, b| (a.provider.kind, &a.provider.name).cmp(&(b.provider.kind, &b.provider.name)));
    Ok((targets, warnings(&candidates)))
}

/// Those that have something to do, and those that are where they should be.
fn to_do(
    targets: Vec<Target>,
    unfinished: &[Unfinished],
    allow_downgrade: bool,
) -> Result<(Vec<Target>, Vec<Installed>), UpgradeError> {
    let (mut to_do, mut up_to_date) = (Vec::new(), Vec::new());
    for target in targets {
        rules::check_step(&target)?;
        let direction = rules::direction(&target)
            .map_err(|error| UpgradeError::release(&target.provider, ReleaseError::Metadata(error.into())))?;
        let is_begun = unfinished.iter().any(|it| it.provider == target.provider);
        match direction {
            // What is half gone is brought back by the same version.
            Direction::Nowhere if !is_begun => up_to_date.push(target.provider),
            Direction::Down if !allow_downgrade => {
                return Err(UpgradeError::Downgrade {
                    label: target.provider.label(),
                    installed: target.provider.version,
                    version: target.version,
                });
            }
            _ => to_do.push(target),
        }
    }
    Ok((to_do, up_to_date))
}

/// The release of a target as it goes into the cluster.
fn wanted<'a>(target: &'a Target, roles: &[Component]) -> Wanted<'a> {
    let provider = &target.provider;
    Wanted {
        kind: provider.kind,
        name: &provider.name,
        version: Some(&target.version),
        target_namespace: Some(&provider.namespace),
        watching_namespace: provider.watched_namespace.as_deref(),
        rbac_prefix: has_prefix(roles, provider),
    }
}

/// Whether the cluster-wide roles of a provider have its namespace as a prefix. They keep their names, so that nobody
/// else's bindings lose them.
fn has_prefix(roles: &[Component], provider: &Installed) -> bool {
    let (label, prefix) = (provider.label(), format!("{}-", provider.namespace));
    let is_of_provider = |it: &&Component| it.provider() == Some(&label);
    roles.iter().filter(is_of_provider).all(|it| it.id.name.starts_with(&prefix))
}

fn is_role(kind: &Kind) -> bool {
    let resource = &kind.resource;
    resource.group == "rbac.authorization.k8s.io"
        && matches!(resource.kind.as_str(), "ClusterRole" | "ClusterRoleBinding")
}

/// What a provider speaks that stays as it is.
async fn speaker(releases: &Releases<'_>, provider: &Installed) -> Speaker {
    let contract = if let Ok(contract) = available::contract_of(releases, provider).await {
        Some(contract)
    } else {
        // Another release may tell.
        let candidates = look(releases, std::slice::from_ref(provider)).await;
        candidates.into_iter().find_map(|it| it.available.ok()?.contract)
    };
    Speaker { provider: provider.clone(), version: provider.version.clone(), contract }
}

/// Those of whom nobody can tell what they speak, unless that has been said already.
fn untold(others: &[Speaker], said: &[UpgradeWarning]) -> Vec<UpgradeWarning> {
    let silent = others.iter().filter(|it| it.contract.is_none());
    let warn = |it: &Speaker| UpgradeWarning {
        label: it.provider.label(),
        text: format!("it cannot be told which contract {} speaks, which is installed", it.version),
    };
    silent.map(warn).filter(|it| !said.iter().any(|before| before.label == it.label)).collect()
}

async fn contract_before(
    cluster: &ManagementCluster,
    releases: &Releases<'_>,
    core: &Installed,
) -> Result<Option<String>, UpgradeError> {
    Ok(match speaker(releases, core).await.contract {
        Some(contract) => Some(contract),
        None => spoken_by(cluster).await?,
    })
}

fn check_contracts(
    targets: &[Target],
    prepared: &[Prepared],
    others: &[Speaker],
    core: &Installed,
    core_before: Option<&str>,
) -> Result<(), UpgradeError> {
    let speakers: Vec<Speaker> = targets
        .iter()
        .zip(prepared)
        .map(|(target, release)| Speaker {
            provider: target.provider.clone(),
            version: target.version.clone(),
            contract: Some(release.contract.as_str().to_owned()),
        })
        .collect();
    let core_after = speakers.iter().find(|it| it.provider == *core).and_then(|it| it.contract.as_deref());
    match core_after.or(core_before) {
        Some(contract) => rules::check_contracts(contract, core_before, &speakers, others),
        None => Ok(()),
    }
}
