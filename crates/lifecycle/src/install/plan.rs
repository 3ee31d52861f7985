//! What an installation would do, and what stands in its way.

use capstan_api::{
    contract::ContractVersion,
    names::{CERT_MANAGER, CLUSTERCTL_GROUP},
    provider::ProviderType,
};
use capstan_repository::CertManager;
use futures::future::join_all;
use kube::{core::GroupVersionKind, discovery::ApiResource};

use super::{
    InstallProblem,
    queue::{self, Asked, QueueError, Request},
    validate::{self, Core, Crds},
};
use crate::{
    cert_manager,
    release::{Prepared, ReleaseError, Releases},
};
use capstan_management::{
    Kind, Kinds, ManagementCluster, ServerError,
    inventory::{self, Installed, Inventory},
    server_version::{MINIMUM, ServerVersion},
};

/// The CRD by which core says what it speaks.
const CLUSTER_CRD: &str = "clusters.cluster.x-k8s.io";

/// What an installation would do.
#[derive(Debug)]
pub struct InstallPlan {
    /// Whether no core provider was there.
    pub is_first: bool,
    /// What is to be installed, by type.
    pub queue: Vec<Prepared>,
    /// What is asked for and there already.
    pub present: Vec<Installed>,
    /// What is to be done about cert-manager.
    pub cert_manager: cert_manager::Action,
    /// How long cert-manager may take to answer.
    pub(super) cert_manager_limit: std::time::Duration,
    /// What stands in the way.
    pub problems: Vec<InstallProblem>,
    /// The kinds that there will be.
    pub(super) kinds: Kinds,
}

impl InstallPlan {
    /// Whether everything that is asked for is there.
    pub fn is_nothing(&self) -> bool {
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
        /// What it runs.
        found: ServerVersion,
    },
    /// What is asked for makes no sense.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

impl InstallPlanError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Server(error) => error.hint(),
            Self::ServerTooOld { .. } => Some("upgrade it, or choose another by --kubeconfig".to_owned()),
            Self::Queue(error) => Some(error.hint()),
        }
    }
}

/// Plans an installation: everything is fetched, rendered and checked, and nothing is written.
pub async fn plan(
    cluster: &ManagementCluster,
    releases: &Releases<'_>,
    cert_manager: &CertManager,
    request: &Request,
) -> Result<InstallPlan, InstallPlanError> {
    let version = ServerVersion::read(cluster).await?;
    if version.is_too_old() {
        return Err(InstallPlanError::ServerTooOld { found: version });
    }
    let (inventory, known, crds) =
        futures::try_join!(Inventory::read(cluster), cluster.kinds(), read_crds(cluster))?;
    let is_first = inventory.core().is_none();
    let mut problems = Vec::from_iter(unknown_inventory(&known));

    let asked = queue::asked(&request.providers, is_first)?;
    let fetched = fetch(releases, request, &asked, &inventory);
    let decide = |is_needed| cert_manager::decide(cluster, releases, cert_manager, is_needed);
    let (Fetched { queue, present, failures }, action) = if is_first {
        // Core at least is to be installed: nobody has to wait to know it.
        futures::join!(fetched, decide(true))
    } else {
        let fetched = fetched.await;
        let is_needed = !fetched.queue.is_empty() || !fetched.failures.is_empty();
        (fetched, decide(is_needed).await)
    };
    let action = action?;
    problems.extend(failures);
    let action = action.unwrap_or_else(|error| {
        problems.push(InstallProblem::Release { provider: CERT_MANAGER.to_owned(), error: Box::new(error) });
        cert_manager::Action::Nothing
    });

    let mut kinds = Kinds::clone(&known);
    kinds.learn(&inventory::crd());
    kinds.learn_all(action.objects());
    kinds.learn_all(queue.iter().flat_map(|it| it.components.objects()));
    problems.extend(validate::check_instances(&queue, &inventory));
    match core(&queue, &inventory, &crds, releases).await {
        Some(Ok(core)) => problems.extend(validate::check_contracts(&queue, &core)),
        Some(Err(problem)) if !queue.is_empty() => problems.push(problem),
        Some(Err(_)) | None => {}
    }
    problems.extend(validate::check_crds(&queue, &crds, &known));
    problems.extend(validate::check_kinds(&queue, &kinds));
    let cert_manager_limit = cert_manager.timeout;
    Ok(InstallPlan { is_first, queue, present, cert_manager: action, cert_manager_limit, problems, kinds })
}

struct Fetched {
    queue: Vec<Prepared>,
    present: Vec<Installed>,
    failures: Vec<InstallProblem>,
}

/// Fetches and renders what is not there yet, all at the same time.
async fn fetch(
    releases: &Releases<'_>,
    request: &Request,
    asked: &[Asked],
    inventory: &Inventory,
) -> Fetched {
    let mut fetched = Fetched { queue: Vec::new(), present: Vec::new(), failures: Vec::new() };
    let namespace = request.target_namespace.as_deref();
    let mut wanted = Vec::new();
    for asked in asked {
        match asked.installed(asked.version.as_deref(), namespace, inventory) {
            Some(there) => fetched.present.push(there.clone()),
            None => wanted.push(asked),
        }
    }
    let prepared = join_all(wanted.iter().map(async |it| releases.prepare(&it.wanted(request)).await)).await;
    for (asked, outcome) in wanted.into_iter().zip(prepared) {
        match outcome {
            Ok(prepared) => match asked.installed(Some(&prepared.version), namespace, inventory) {
                Some(there) => fetched.present.push(there.clone()),
                None => fetched.queue.push(prepared),
            },
            Err(error) => {
                fetched
                    .failures
                    .push(InstallProblem::Release { provider: asked.label(), error: Box::new(error) });
            }
        }
    }
    fetched
}

/// The core provider that there will be; none where its release cannot be had, which is told already.
async fn core(
    queue: &[Prepared],
    inventory: &Inventory,
    crds: &Crds,
    releases: &Releases<'_>,
) -> Option<Result<Core, InstallProblem>> {
    if let Some(new) = queue.iter().find(|it| it.provider.kind == ProviderType::Core) {
        let name = format!("{} {}", new.provider.label(), new.version);
        return Some(Ok(Core { name, contract: new.contract }));
    }
    let installed = inventory.core()?;
    let name = format!("{} {}", installed.label(), installed.version);
    let labels = crds.get(CLUSTER_CRD);
    let speaks = |contract: &ContractVersion| labels.is_some_and(|it| it.contains_key(&contract.label()));
    if let Some(contract) = ContractVersion::PREFERENCE.into_iter().find(speaks) {
        return Some(Ok(Core { name, contract }));
    }
    let contract = contract_of(installed, releases).await;
    let unknown = |error: ReleaseError| InstallProblem::UnknownContract {
        core: name.clone(),
        reason: format!("CRD {CLUSTER_CRD} does not say it, and {error}"),
    };
    Some(contract.map(|contract| Core { name: name.clone(), contract }).map_err(unknown))
}

/// The contract of a release that is installed.
async fn contract_of(
    installed: &Installed,
    releases: &Releases<'_>,
) -> Result<ContractVersion, ReleaseError> {
    let (_, repository) = releases.repository(installed.kind, &installed.name)?;
    let metadata = repository.metadata(&installed.version).await?;
    Ok(metadata.usable_contract_of(&installed.version)?)
}

async fn read_crds(cluster: &ManagementCluster) -> Result<Crds, ServerError> {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let resource = ApiResource::from_gvk(&gvk);
    let kind = Kind { resource, is_namespaced: false, is_managed: true, is_preferred: true };
    let found = cluster.list_metadata(&kind, None, "").await?;
    let labelled = found.into_iter().map(|it| it.metadata);
    Ok(labelled.filter_map(|it| Some((it.name?, it.labels.unwrap_or_default()))).collect())
}

fn unknown_inventory(kinds: &Kinds) -> Option<InstallProblem> {
    let found = kinds.any_version(CLUSTERCTL_GROUP, "Provider")?;
    let is_known = kinds.find(&format!("{CLUSTERCTL_GROUP}/{}", inventory::VERSION), "Provider").is_some();
    (!is_known).then(|| InstallProblem::InventoryVersion { found: found.resource.api_version.clone() })
}
