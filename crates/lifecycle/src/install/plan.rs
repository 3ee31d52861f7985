//! What an installation would do, and what stands in its way.

use std::time::Duration;

use capstan_api::{
    names::{CERT_MANAGER, CLUSTERCTL_GROUP},
    provider::ProviderType,
};
use capstan_management::{
    Kind, Kinds, ManagementCluster, ServerError,
    contract::installed_core_contract,
    inventory::{Installed, Inventory},
    server_version::{MINIMUM, ServerVersion},
};
use futures::future::join_all;

use super::{
    InstallProblem, trial,
    validate::{self, Core, Crds},
};
use crate::{
    catalog::CertManagerPolicy,
    cert_manager,
    goal::ProviderGoal,
    release::{Placement, Prepared, Releases},
};

/// What is to be installed.
#[derive(Debug)]
pub struct InstallRequest {
    /// The providers.
    pub providers: Vec<ProviderGoal>,
    /// The only namespace that they watch; without one, all.
    pub watching_namespace: Option<String>,
    /// Whether ClusterRoles and ClusterRoleBindings get the target namespace as a prefix.
    pub rbac_prefix: bool,
    /// Who looks after cert-manager.
    pub cert_manager: CertManagerPolicy,
}

/// What an installation would do. Nothing is written before [`InstallPlan::check`] passes it.
#[derive(Debug)]
pub struct InstallPlan {
    pub(super) queue: Vec<Prepared>,
    pub(super) present: Vec<Installed>,
    pub(super) cert_manager: cert_manager::Action,
    /// How long cert-manager may take to answer.
    pub(super) cert_manager_limit: Duration,
    /// What stands in the way.
    pub(super) problems: Vec<InstallProblem>,
    /// The kinds that there will be.
    pub(super) kinds: Kinds,
}

impl InstallPlan {
    /// What is to be installed, by type.
    pub fn queue(&self) -> &[Prepared] {
        &self.queue
    }

    /// What is asked for and installed already.
    pub fn present(&self) -> &[Installed] {
        &self.present
    }

    /// What is to be done about cert-manager.
    pub fn cert_manager(&self) -> &cert_manager::Action {
        &self.cert_manager
    }

    /// Whether everything that is asked for is installed.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.cert_manager == cert_manager::Action::Nothing
    }
}

/// No plan can be made.
#[derive(Debug, thiserror::Error)]
pub enum InstallPlanError {
    /// The server refused something, or could not be reached.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The management cluster is too old.
    #[error(
        "the server runs Kubernetes {found}, but a management cluster must run v{}.{} or later; nothing was changed",
        MINIMUM.0,
        MINIMUM.1
    )]
    ServerTooOld {
        /// The version that it runs.
        found: ServerVersion,
    },
    /// One provider is wanted in two versions.
    #[error("provider {label} is asked for twice: as {first} and as {second}")]
    Twice {
        /// The provider's label.
        label: String,
        /// One version.
        first: String,
        /// The other version.
        second: String,
    },
}

/// Plans an installation: everything is fetched, rendered, checked and tried by the server, and nothing is written.
pub async fn plan(
    cluster: &ManagementCluster,
    inventory: &Inventory,
    releases: &Releases<'_>,
    request: &InstallRequest,
) -> Result<InstallPlan, InstallPlanError> {
    let wanted = distinct(&request.providers)?;
    let version = ServerVersion::read(cluster).await?;
    if version.is_too_old() {
        return Err(InstallPlanError::ServerTooOld { found: version });
    }
    let (known, crds) = futures::try_join!(cluster.kinds(), read_crds(cluster))?;
    let mut problems = Vec::from_iter(unknown_inventory(&known));

    let fetched = fetch(releases, request, &wanted, inventory);
    let decide = |is_needed| cert_manager::decide(cluster, &request.cert_manager, is_needed);
    let is_managed = matches!(request.cert_manager, CertManagerPolicy::Manage(_));
    let (Fetched { queue, present, failures }, action) = if is_managed && inventory.core().is_none() {
        // Core at least is to be installed: cert-manager is fetched at the same time.
        futures::join!(fetched, decide(true))
    } else {
        let fetched = fetched.await;
        let mut objects = fetched.queue.iter().flat_map(|it| it.components.objects());
        let is_needed = if is_managed {
            !fetched.queue.is_empty() || !fetched.failures.is_empty()
        } else {
            objects.any(cert_manager::needs_it)
        };
        (fetched, decide(is_needed).await)
    };
    let action = action?;
    problems.extend(failures);
    let action = action.unwrap_or_else(|error| {
        problems.push(InstallProblem::Release { provider: CERT_MANAGER.to_owned(), error: Box::new(error) });
        cert_manager::Action::Nothing
    });
    if inventory.core().is_none() && !wanted.iter().any(|it| it.kind == ProviderType::Core) {
        problems.push(InstallProblem::NoCore);
    }

    let mut kinds = Kinds::clone(&known);
    kinds.learn(&capstan_api::inventory::crd());
    kinds.learn_all(action.objects());
    kinds.learn_all(queue.iter().flat_map(|it| it.components.objects()));
    let watching = request.watching_namespace.as_deref();
    // A request that names no provider is about all that are installed.
    let compared = if wanted.is_empty() { &inventory.providers } else { &present };
    problems.extend(compared.iter().filter_map(|it| validate::watches_another(it, watching, inventory)));
    problems.extend(validate::check_instances(&queue, inventory));
    match core(cluster, &queue, inventory).await {
        Some(Ok(core)) => problems.extend(validate::check_contracts(&queue, &core)),
        Some(Err(problem)) if !queue.is_empty() => problems.push(problem),
        Some(Err(_)) | None => {}
    }
    problems.extend(validate::check_crds(&queue, &crds, &known));
    problems.extend(validate::check_kinds(&queue, &kinds));
    let cert_manager_limit = request.cert_manager.limit();
    let mut plan = InstallPlan { queue, present, cert_manager: action, cert_manager_limit, problems, kinds };
    if !plan.is_empty() {
        trial::run(cluster, &mut plan).await?;
    }
    if let Some(problem) = no_cert_manager(&plan) {
        // That its kinds are missing as well says nothing new.
        plan.problems.retain(|it| it.object().is_none_or(|it| it.group() != cert_manager::GROUP));
        plan.problems.push(problem);
    }
    Ok(plan)
}

/// The goals, each provider once, by type.
pub fn distinct(goals: &[ProviderGoal]) -> Result<Vec<&ProviderGoal>, InstallPlanError> {
    let mut wanted: Vec<&ProviderGoal> = Vec::new();
    for goal in goals {
        match wanted.iter().find(|it| it.kind == goal.kind && it.name == goal.name) {
            None => wanted.push(goal),
            Some(same) if same.version == goal.version => {}
            Some(same) => {
                let (first, second) = (same.version.to_string(), goal.version.to_string());
                return Err(InstallPlanError::Twice { label: goal.label(), first, second });
            }
        }
    }
    wanted.sort_by_key(|it| it.kind);
    Ok(wanted)
}

struct Fetched {
    queue: Vec<Prepared>,
    present: Vec<Installed>,
    failures: Vec<InstallProblem>,
}

/// Fetches and renders what is not installed yet, all at the same time.
async fn fetch(
    releases: &Releases<'_>,
    request: &InstallRequest,
    goals: &[&ProviderGoal],
    inventory: &Inventory,
) -> Fetched {
    let mut fetched = Fetched { queue: Vec::new(), present: Vec::new(), failures: Vec::new() };
    let mut wanted = Vec::new();
    for goal in goals {
        match installed(goal, goal.version.exact(), inventory) {
            Some(there) => fetched.present.push(there.clone()),
            None => wanted.push(goal),
        }
    }
    let prepared = wanted.iter().map(async |goal| {
        let placement = Placement {
            target_namespace: goal.namespace.as_deref(),
            watching_namespace: request.watching_namespace.as_deref(),
            rbac_prefix: request.rbac_prefix,
        };
        releases.prepare(goal.kind, &goal.name, &goal.version, &placement).await
    });
    let prepared = join_all(prepared).await;
    for (goal, outcome) in wanted.into_iter().zip(prepared) {
        match outcome {
            Ok(prepared) => match installed(goal, Some(&prepared.version), inventory) {
                Some(there) => fetched.present.push(there.clone()),
                None => fetched.queue.push(prepared),
            },
            Err(error) => {
                let error = Box::new(error);
                fetched.failures.push(InstallProblem::Release { provider: goal.label(), error });
            }
        }
    }
    fetched
}

/// The instance that meets a goal: the same version in the same place.
fn installed<'a>(
    goal: &'a ProviderGoal,
    version: Option<&str>,
    inventory: &'a Inventory,
) -> Option<&'a Installed> {
    inventory.instances(goal.kind, &goal.name).find(|it| {
        version == Some(it.version.as_str())
            && goal.namespace.as_ref().is_none_or(|namespace| *namespace == it.namespace)
    })
}

/// Whether objects would wait for a cert-manager that is not installed.
fn no_cert_manager(plan: &InstallPlan) -> Option<InstallProblem> {
    let cert_manager::Action::Await(found) = &plan.cert_manager else { return None };
    let needs_it = |it: &&Prepared| it.components.objects().iter().any(cert_manager::needs_it);
    let providers = plan.queue.iter().filter(needs_it).map(|it| it.provider.label()).collect();
    (found.presence == cert_manager::Presence::Absent).then_some(InstallProblem::NoCertManager { providers })
}

/// The core provider that there will be; none where its release cannot be had, which is a problem of its own.
async fn core(
    cluster: &ManagementCluster,
    queue: &[Prepared],
    inventory: &Inventory,
) -> Option<Result<Core, InstallProblem>> {
    if let Some(new) = queue.iter().find(|it| it.provider.kind == ProviderType::Core) {
        let name = format!("{} {}", new.provider.label(), new.version);
        return Some(Ok(Core { name, contract: new.contract.as_str().to_owned() }));
    }
    let installed = inventory.core()?;
    let name = format!("{} {}", installed.label(), installed.version);
    Some(match installed_core_contract(cluster).await {
        Ok(Some(contract)) => Ok(Core { name, contract }),
        Ok(None) => Err(InstallProblem::UnknownContract {
            core: name,
            reason: "its Cluster CRD is missing".to_owned(),
        }),
        Err(error) => Err(InstallProblem::UnknownContract { core: name, reason: error.to_string() }),
    })
}

async fn read_crds(cluster: &ManagementCluster) -> Result<Crds, ServerError> {
    let found = cluster.list_metadata(&Kind::crd(), None, "").await?;
    let labelled = found.into_iter().map(|it| it.metadata);
    Ok(labelled.filter_map(|it| Some((it.name?, it.labels.unwrap_or_default()))).collect())
}

fn unknown_inventory(kinds: &Kinds) -> Option<InstallProblem> {
    let found = kinds.any_version(CLUSTERCTL_GROUP, "Provider")?;
    let is_known =
        kinds.find(&format!("{CLUSTERCTL_GROUP}/{}", capstan_api::inventory::VERSION), "Provider").is_some();
    (!is_known).then(|| InstallProblem::InventoryVersion { found: found.resource.api_version.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::VersionGoal;

    fn goal(kind: ProviderType, name: &str, version: Option<&str>) -> ProviderGoal {
        let version = VersionGoal::from(version.map(str::to_owned));
        ProviderGoal { kind, name: name.to_owned(), version, namespace: None }
    }

    #[test]
    fn a_provider_is_installed_once_and_core_first() {
        use ProviderType::{Core, Infrastructure, Ipam};
        let goals = [
            goal(Ipam, "i", None),
            goal(Infrastructure, "a", Some("v1")),
            goal(Core, "c", None),
            goal(Infrastructure, "a", Some("v1")),
        ];
        let labels: Vec<_> = distinct(&goals).unwrap().iter().map(|it| it.label()).collect();
        assert_eq!(labels, ["c", "infrastructure-a", "ipam-i"]);
        for (second, words) in [(Some("v2"), "as v1 and as v2"), (None, "as v1 and as the latest version")] {
            let goals = [goal(Infrastructure, "a", Some("v1")), goal(Infrastructure, "a", second)];
            let error = distinct(&goals).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
