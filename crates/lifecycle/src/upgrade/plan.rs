//! Everything that can go wrong before anything is stopped: versions, contracts, variables, and what the server would
//! say to the new objects.

use std::pin::pin;

use capstan_api::{
    contract::{ContractVersion, is_supported},
    names::{CERT_MANAGER, label},
};
use capstan_management::{
    Kind, ManagementCluster, ObjectRef, ServerError,
    contract::installed_core_contract,
    crd,
    dry_run::{self, Crds, Known},
    inventory::{Installed, Inventory},
    sweep::{self, Component},
};
use futures::future::{Either, join_all, select, try_join_all};
use tokio::sync::OnceCell;

use super::{
    CertManagerPlan, CertManagerUpgrade, Migration, UpgradeError, UpgradeProblem, UpgradeWarning,
    available::{self, look},
    certificates,
    overview::{Next, upgrades_for, warnings},
    prefetch::Prefetch,
    prune::Coming,
    rules::{self, Direction, Speaker, Target},
    step::{Step, Surroundings, decide},
};
use crate::{
    catalog::CertManagerPolicy,
    cert_manager,
    diff::{self, Intent, Preview},
    goal::{ProviderGoal, VersionGoal},
    instance::{self, Instances},
    release::{Placement, ReleaseError, Releases},
};

/// What is to be upgraded.
#[derive(Debug)]
pub struct UpgradeRequest {
    /// The versions that are wanted.
    pub goal: UpgradeGoal,
    /// Whether a provider that has its version already is applied again, for changed variables and drift.
    pub reapply: bool,
    /// Who looks after cert-manager.
    pub cert_manager: CertManagerPolicy,
}

/// The versions that are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpgradeGoal {
    /// The newest versions that go together under a contract.
    Contract(String),
    /// These versions of these providers.
    Versions(Vec<ProviderGoal>),
}

/// What an upgrade would do: everything is fetched, rendered and tried by the server. Nothing is written before
/// [`UpgradePlan::check`] passes it.
#[derive(Debug)]
pub struct UpgradePlan {
    pub(super) cert_manager: Option<CertManagerUpgrade>,
    pub(super) steps: Vec<Step>,
    up_to_date: Vec<Installed>,
    warnings: Vec<UpgradeWarning>,
    /// What stands in the way.
    pub(super) problems: Vec<UpgradeProblem>,
}

/// Plans an upgrade: fetches and renders the releases, and has the server try them. Nothing is changed.
pub async fn plan<'a>(
    cluster: &ManagementCluster,
    inventory: &Inventory,
    releases: &Releases<'a>,
    request: &'a UpgradeRequest,
) -> Result<UpgradePlan, UpgradeError> {
    let (prefetch, reading) = Prefetch::begin(*releases, &request.goal);
    let planning = plan_with(cluster, &inventory.providers, releases, request, prefetch);
    // A plan that needs none of the prefetched releases does not wait for them.
    match select(pin!(planning), pin!(reading)).await {
        Either::Left((plan, _)) => plan,
        Either::Right(((), planning)) => planning.await,
    }
}

async fn plan_with<'a>(
    cluster: &ManagementCluster,
    providers: &[Installed],
    releases: &Releases<'a>,
    request: &'a UpgradeRequest,
    prefetch: Prefetch<'a>,
) -> Result<UpgradePlan, UpgradeError> {
    cluster.kinds().await?;
    let core = rules::core_of(providers)?;
    let (targets, mut warnings) = targets(releases, providers, &request.goal, request.reapply).await?;
    let Work { targets, up_to_date, mut problems } = Work::sort(targets, request.reapply)?;
    if problems.iter().any(|it| !it.is_downgrade()) {
        return Ok(UpgradePlan { cert_manager: None, steps: Vec::new(), up_to_date, warnings, problems });
    }
    if targets.is_empty() {
        let manifest = certificates::fetch(&request.cert_manager).await;
        let cert_manager = certificates(cluster, manifest, None, &mut warnings).await?;
        problems.extend(cert_manager.iter().filter_map(refused_cert_manager));
        return Ok(UpgradePlan { cert_manager, steps: Vec::new(), up_to_date, warnings, problems });
    }
    // Asked for once, while releases are read.
    let site = OnceCell::new();
    let site = async || site.get_or_try_init(|| Site::survey(cluster, providers)).await;
    let stay = providers.iter().filter(|it| !targets.iter().any(|target| target.provider == **it));
    let tried = targets.iter().map(async |it| {
        let provider = &it.provider;
        let parsed = prefetch.take(*releases, provider, &it.version).await;
        let site = site().await?;
        let release = match parsed.and_then(|it| it.render(&placement(provider, providers, &site.roles))) {
            Ok(release) => release,
            Err(source) => {
                let (label, source) = (provider.label(), Box::new(source));
                return Ok(Err(UpgradeProblem::Release { label, source }));
            }
        };
        let trials = dry_run::try_over(cluster, release.components.objects(), &site.known).await?;
        Ok::<_, UpgradeError>(Ok((release, trials)))
    });
    let ((installed, manifest), images, tried, others, core_before) = futures::try_join!(
        async {
            let installed = components(cluster, &site().await?.known.crds).await?;
            // Releases are read before it: the server is waiting to try them.
            Ok((installed, certificates::fetch(&request.cert_manager).await))
        },
        async { Ok(cert_manager::images_in_use(cluster).await?) },
        try_join_all(tried),
        async { Ok(join_all(stay.map(|it| speaker(releases, it))).await) },
        contract_before(cluster, releases, core),
    )?;
    let (tried, unusable): (Vec<_>, Vec<_>) = tried.into_iter().partition(Result::is_ok);
    if !unusable.is_empty() {
        problems.extend(unusable.into_iter().filter_map(Result::err));
        return Ok(UpgradePlan { cert_manager: None, steps: Vec::new(), up_to_date, warnings, problems });
    }
    let known = Some((installed.as_slice(), images.as_slice()));
    let cert_manager = certificates(cluster, manifest, known, &mut warnings).await?;
    warnings.extend(unknown_contracts(&others, &warnings));
    let (prepared, trials): (Vec<_>, Vec<_>) = tried.into_iter().flatten().unzip();
    let contracts = prepared.iter().map(|it| it.contract);
    problems.extend(check_contracts(&targets, contracts, &others, core, core_before.as_deref()));
    let coming = Coming::in_releases(prepared.iter().flat_map(|it| it.components.objects()));
    let (after, upgraded) = after(providers, &targets);
    let steps = targets.into_iter().zip(prepared).zip(trials);
    let steps = steps.map(|((target, release), trials)| {
        let around =
            Surroundings { installed: &installed, coming: &coming, after: &after, upgraded: &upgraded };
        decide(cluster, target, release, trials, around)
    });
    let steps = try_join_all(steps).await?;
    problems.extend(cert_manager.iter().filter_map(refused_cert_manager));
    problems.extend(steps.iter().filter_map(refused));
    Ok(UpgradePlan { cert_manager, steps, up_to_date, warnings, problems })
}

impl UpgradePlan {
    /// What is to be done, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Leaves objects as they are that do not fit: they are neither written nor deleted.
    pub fn restrict(&mut self, fits: impl Fn(&ObjectRef) -> bool) {
        for step in &mut self.steps {
            let left: Vec<ObjectRef> = step.wanted().map(ObjectRef::of).filter(|it| !fits(it)).collect();
            step.unchanged.extend(left);
            step.leftovers.gone.retain(|it| fits(&it.id));
        }
    }

    /// Named providers that have their version already.
    pub fn up_to_date(&self) -> &[Installed] {
        &self.up_to_date
    }

    /// What is wrong with releases, but stops nothing.
    pub fn warnings(&self) -> &[UpgradeWarning] {
        &self.warnings
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.cert_manager.is_none() && self.steps.is_empty()
    }

    /// What it would change.
    pub(super) async fn preview(&self, cluster: &ManagementCluster) -> Result<Preview, ServerError> {
        let intents: Vec<(String, &Step)> = self.steps.iter().map(|it| (it.label(), it)).collect();
        let cert_manager = self.cert_manager.iter().map(|it| Intent {
            provider: CERT_MANAGER,
            wanted: it.step.manifest.objects.iter().collect(),
            removed: &it.gone,
        });
        let providers = intents.iter().map(|(label, step)| Intent {
            provider: label,
            wanted: step.wanted().collect(),
            removed: &step.leftovers.gone,
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
            .extend(replaced.map(|it| format!("{it} is deleted and recreated: a field cannot be changed")));
        preview.notes.extend(self.steps.iter().flat_map(|it| &it.leftovers.kept).map(|it| {
            format!("{it} stays, though the new release does not have it: there are objects of it")
        }));
        preview.notes.extend(self.migrations().map(|it| {
            let gone = it.dropped.join(" and ");
            format!("objects of {} are written as {} first, since {gone} will be gone", it.crd, it.stored)
        }));
        Ok(preview)
    }

    /// Kinds whose objects have to be stored in another version first.
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

/// The CRDs of providers.
async fn crds(cluster: &ManagementCluster) -> Result<Crds, ServerError> {
    let found = cluster.list_metadata(&Kind::crd(), None, label::PROVIDER).await?;
    Ok(found.into_iter().filter_map(|it| Some((it.metadata.name.clone()?, it.metadata))).collect())
}

/// Everything that clusterctl or we installed. Kinds that providers define are left out: their objects are the user's,
/// and cannot be read while no webhook converts them.
async fn components(cluster: &ManagementCluster, crds: &Crds) -> Result<Vec<Component>, ServerError> {
    let is_ours = |kind: &Kind| !crds.contains_key(&crd::name_of(kind));
    let (mut found, uncounted) = futures::try_join!(
        sweep::sweep_kinds(cluster, label::CLUSTERCTL, |it| is_ours(it) && !is_uncounted(it)),
        sweep::sweep_whole(cluster, label::CLUSTERCTL, is_uncounted),
    )?;
    found.extend(uncounted);
    Ok(found)
}

/// Whether objects of a kind have no generation, which would show that they changed. Secrets are not read.
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

/// What is to be done about cert-manager, tried by the server.
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

fn refused_cert_manager(upgrade: &CertManagerUpgrade) -> Option<UpgradeProblem> {
    let (label, version) = (CERT_MANAGER.to_owned(), upgrade.step.manifest.version.clone());
    let refusals = upgrade.refusals.clone();
    (!refusals.is_empty()).then_some(UpgradeProblem::Refused { label, version, refusals })
}

fn refused(step: &Step) -> Option<UpgradeProblem> {
    let (label, version, refusals) = (step.label(), step.to.version.clone(), step.refusals.clone());
    (!refusals.is_empty()).then_some(UpgradeProblem::Refused { label, version, refusals })
}

/// The providers that are meant, with the versions that they are to get.
pub(super) async fn targets(
    releases: &Releases<'_>,
    providers: &[Installed],
    goal: &UpgradeGoal,
    reapply: bool,
) -> Result<(Vec<Target>, Vec<UpgradeWarning>), UpgradeError> {
    let contract = match goal {
        UpgradeGoal::Versions(goals) => {
            let chosen = rules::choose(providers, goals)?;
            let resolved = chosen.into_iter().map(|(provider, version)| resolve(releases, provider, version));
            return Ok((try_join_all(resolved).await?, Vec::new()));
        }
        UpgradeGoal::Contract(contract) if !is_supported(contract) => {
            return Err(UpgradeError::UnknownContract { contract: contract.clone() });
        }
        UpgradeGoal::Contract(contract) => contract,
    };
    let candidates = look(releases, providers).await;
    let items = upgrades_for(&candidates, contract).items.into_iter();
    let mut targets: Vec<Target> = items
        .filter_map(|item| {
            // What was begun is finished.
            let begun = || item.provider.upgrading_to.clone();
            let again = || reapply.then(|| item.provider.version.clone());
            let version = match item.next {
                Next::Version(version) => Some(version),
                Next::UpToDate | Next::Unknown => begun().or_else(again),
            }?;
            Some(Target { provider: item.provider, version })
        })
        .collect();
    targets.sort_by(|a, b| (a.provider.kind, &a.provider.name).cmp(&(b.provider.kind, &b.provider.name)));
    Ok((targets, warnings(&candidates)))
}

/// A target with its version found out.
async fn resolve(
    releases: &Releases<'_>,
    provider: Installed,
    version: &VersionGoal,
) -> Result<Target, UpgradeError> {
    if let Some(version) = version.exact() {
        return Ok(Target { version: version.to_owned(), provider });
    }
    let latest = async {
        let source = releases.source(provider.kind, &provider.name).await?;
        releases.version(&source, version).await
    };
    let latest = latest.await;
    match latest {
        Ok(version) => Ok(Target { provider, version }),
        Err(error) => Err(UpgradeError::release(&provider, error)),
    }
}

/// Targets by what is to be done for them.
pub(super) struct Work {
    /// Something is to be done.
    pub(super) targets: Vec<Target>,
    /// They have their version already.
    pub(super) up_to_date: Vec<Installed>,
    /// What stands in the way.
    pub(super) problems: Vec<UpgradeProblem>,
}

impl Work {
    pub(super) fn sort(all: Vec<Target>, reapply: bool) -> Result<Self, UpgradeError> {
        let (mut targets, mut up_to_date, mut problems) = (Vec::new(), Vec::new(), Vec::new());
        for target in all {
            problems.extend(rules::too_far(&target));
            let direction = rules::direction(&target).map_err(|error| {
                UpgradeError::release(&target.provider, ReleaseError::Metadata(error.into()))
            })?;
            // What is half gone is brought back by the same version.
            let is_begun = target.provider.upgrading_to.is_some();
            match direction {
                Direction::Nowhere if !is_begun && !reapply => {
                    up_to_date.push(target.provider);
                    continue;
                }
                Direction::Down => problems.push(UpgradeProblem::Downgrade {
                    label: target.provider.label(),
                    installed: target.provider.version.clone(),
                    version: target.version.clone(),
                }),
                Direction::Nowhere | Direction::Up => {}
            }
            targets.push(target);
        }
        Ok(Self { targets, up_to_date, problems })
    }
}

/// The inventory as it will be, and the part of it that is upgraded.
fn after(providers: &[Installed], targets: &[Target]) -> (Vec<Installed>, Vec<Installed>) {
    let upgraded =
        |it: &Target| Installed { version: it.version.clone(), upgrading_to: None, ..it.provider.clone() };
    let is_target = |it: &&Installed| targets.iter().any(|target| target.provider == **it);
    let upgraded: Vec<Installed> = targets.iter().map(upgraded).collect();
    let others = providers.iter().filter(|it| !is_target(it)).cloned();
    (others.chain(upgraded.iter().cloned()).collect(), upgraded)
}

/// How a provider's release goes into the cluster: where and as it is installed.
fn placement<'a>(provider: &'a Installed, providers: &[Installed], roles: &[Component]) -> Placement<'a> {
    Placement {
        target_namespace: Some(&provider.namespace),
        watching_namespace: provider.watched_namespace.as_deref(),
        rbac_prefix: has_prefix(roles, provider, providers),
    }
}

/// Whether the cluster-wide roles of a provider have its namespace as a prefix. They keep their names, so that the
/// bindings of others stay valid.
fn has_prefix(roles: &[Component], provider: &Installed, providers: &[Installed]) -> bool {
    let label = provider.label();
    let others = instance::others(provider, providers).map(|it| it.namespace.as_str());
    let roles = roles.iter().filter(|it| it.provider() == Some(&label)).map(|it| &it.id);
    Instances::new(&provider.namespace, others, roles).has_prefix()
}

fn is_role(kind: &Kind) -> bool {
    let resource = &kind.resource;
    resource.group == "rbac.authorization.k8s.io"
        && matches!(resource.kind.as_str(), "ClusterRole" | "ClusterRoleBinding")
}

/// The contract of a provider that stays as it is.
pub(super) async fn speaker(releases: &Releases<'_>, provider: &Installed) -> Speaker {
    let contract = if let Ok(contract) = available::contract_of(releases, provider).await {
        Some(contract)
    } else {
        // The metadata of another release may name it.
        let candidates = look(releases, std::slice::from_ref(provider)).await;
        candidates.into_iter().find_map(|it| it.available.ok()?.contract)
    };
    Speaker { provider: provider.clone(), version: provider.version.clone(), contract }
}

/// Warns of providers whose contract is unknown, unless there is a warning about them already.
pub(super) fn unknown_contracts(others: &[Speaker], before: &[UpgradeWarning]) -> Vec<UpgradeWarning> {
    let silent = others.iter().filter(|it| it.contract.is_none());
    let warn = |it: &Speaker| UpgradeWarning {
        label: it.provider.label(),
        text: format!("cannot determine the contract of installed version {}", it.version),
    };
    silent.map(warn).filter(|it| !before.iter().any(|before| before.label == it.label)).collect()
}

pub(super) async fn contract_before(
    cluster: &ManagementCluster,
    releases: &Releases<'_>,
    core: &Installed,
) -> Result<Option<String>, UpgradeError> {
    match installed_core_contract(cluster).await? {
        Some(contract) => Ok(Some(contract)),
        None => Ok(speaker(releases, core).await.contract),
    }
}

/// What would not be understood once the targets speak these contracts.
pub(super) fn check_contracts(
    targets: &[Target],
    contracts: impl IntoIterator<Item = ContractVersion>,
    others: &[Speaker],
    core: &Installed,
    core_before: Option<&str>,
) -> Vec<UpgradeProblem> {
    let speakers: Vec<Speaker> = targets
        .iter()
        .zip(contracts)
        .map(|(target, contract)| Speaker {
            provider: target.provider.clone(),
            version: target.version.clone(),
            contract: Some(contract.as_str().to_owned()),
        })
        .collect();
    let core_after = speakers.iter().find(|it| it.provider == *core).and_then(|it| it.contract.as_deref());
    match core_after.or(core_before) {
        Some(contract) => rules::check_contracts(contract, core_before, &speakers, others),
        None => Vec::new(),
    }
}
