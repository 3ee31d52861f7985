//! Carries out steps, by the functions that the commands call. One provider at a time is written; releases are fetched
//! beside it.

use std::time::Duration;

use capstan_api::{
    conditions::Report,
    contract::ContractVersion,
    operator::{GROUP, VERSION, annotation::ORIGINAL_REPLICAS, condition, reason},
    provider::ProviderType,
};
use capstan_lifecycle::{
    catalog::CertManagerPolicy,
    check::Ready,
    delete::{self, DeleteError, DeleteGoal, DeleteOptions, DeletePolicy, Selection},
    diff::{Action, Preview, Sign},
    goal::{ProviderGoal, VersionGoal},
    install::{self, InstallPolicy, InstallRequest},
    release::{ReleaseNotice, Releases},
    scale,
    upgrade::{self, UpgradeGoal, UpgradePlan, UpgradePolicy, UpgradeRequest},
};
use capstan_management::{
    Kind, ManagementCluster, ServerError, contract::installed_core_contract, inventory::Inventory, sweep,
};
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{Api, ResourceExt};
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    catalog::OperatorCatalog,
    fetch::{FetchError, FetchRequest, Fetcher},
    gates::{self, Refusal},
    outcome::{Outcome, Then, Trouble},
    pause::OriginalReplicas,
    plan,
    record::ProviderRecord,
    snapshot::Snapshot,
    store::{self, StoreError, StoredRelease},
    usage,
};

/// How long objects that need cert-manager wait for it.
const CERT_MANAGER_LIMIT: Duration = Duration::from_mins(2);
/// How soon a blocked deletion is tried again.
const BLOCKED_RETRY: Duration = Duration::from_secs(3);
/// How soon a release is looked for again that its server does not have.
const FETCH_RETRY: Duration = Duration::from_secs(30);
/// How many changed lines of an object a report names.
const LINES: usize = 12;

/// Carries out steps.
pub struct Executor {
    cluster: ManagementCluster,
    fetcher: Fetcher,
    /// Held by the one provider that is written.
    turn: Mutex<()>,
    stop: CancellationToken,
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Executor").finish_non_exhaustive()
    }
}

/// What was done, and the Deployments of the release that it was done with.
#[derive(Debug)]
pub struct Done {
    /// What came of it.
    pub outcome: Outcome,
    /// The Deployments of the release, if it was rendered.
    pub deployments: Option<Vec<String>>,
    /// The kinds of the release's objects, if it was rendered.
    pub kinds: Vec<Kind>,
    /// Objects that others had changed, each with its lines.
    pub drift: Vec<String>,
}

impl Done {
    fn only(outcome: Outcome) -> Self {
        Self { outcome, deployments: None, kinds: Vec::new(), drift: Vec::new() }
    }
}

/// Why installed objects are compared with the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The spec changed.
    Change,
    /// Others may have changed the objects.
    Drift,
    /// The provider is about to run again.
    Unpause,
}

impl Executor {
    /// An executor; an upgrade that is under way ends when `stop` is cancelled.
    pub fn new(cluster: ManagementCluster, fetcher: Fetcher, stop: CancellationToken) -> Self {
        Self { cluster, fetcher, turn: Mutex::new(()), stop }
    }

    /// The inventory of installed providers.
    pub async fn inventory(&self) -> Result<Inventory, ServerError> {
        Inventory::read(&self.cluster).await
    }

    /// The latest version of a provider.
    pub async fn latest(&self, provider: &ProviderRecord) -> Result<String, Trouble> {
        let secret = self.secret(provider).await?;
        let request = fetch_request(provider, None, secret.as_ref());
        self.fetcher.latest(&request).await.map_err(|error| fetch_trouble(&error, provider))
    }

    /// What to report of a provider that was installed by others.
    pub async fn adopt(&self, snapshot: &Snapshot, version: &str) -> Result<Outcome, Trouble> {
        let provider = &*snapshot.provider;
        let contract = self.contract_of_installed(provider).await.map_err(|it| server_trouble(&it))?;
        let mut outcome = Outcome::then(Then::Continue).report(plan::passed());
        outcome.installed = Some((version.to_owned(), contract));
        let spec = &provider.spec;
        // What the spec asks for beyond the version has still to be applied.
        if spec.manager.is_none() && spec.deployment.is_none() {
            outcome = outcome.report(installed(version));
        }
        Ok(outcome)
    }

    /// Installs a provider.
    pub async fn install(&self, snapshot: &Snapshot, version: &str) -> Result<Done, Trouble> {
        let provider = &*snapshot.provider;
        let release = self.fetch(provider, version).await?;
        let _turn = self.turn().await;
        let inventory = self.fresh_inventory().await?;
        let catalog = OperatorCatalog::new(snapshot, &release, None);
        let report = |notice: ReleaseNotice<'_>| info!(?notice, "release");
        let releases = Releases { catalog: &catalog, report: &report };
        let request = InstallRequest {
            providers: vec![goal(provider, version)],
            watching_namespace: None,
            rbac_prefix: true,
            cert_manager: CertManagerPolicy::LeaveAlone { limit: CERT_MANAGER_LIMIT },
        };
        let plan = install::plan(&self.cluster, &inventory, &releases, &request).await;
        let plan = plan.map_err(|error| Trouble::of_objects(reason::INSTALL_FAILED, error.to_string()))?;
        let ready = match plan.check(&self.cluster, InstallPolicy::default()) {
            Ok(ready) => ready,
            Err(problems) => return Err(Trouble::of_install(&problems.0).unwrap_or_else(unknown)),
        };
        self.keep(provider, &release).await?;
        info!(provider = provider.label(), version, "installing");
        let ran = ready.run(&|_| {}).await;
        ran.map_err(|error| Trouble::of_objects(reason::INSTALL_FAILED, with_causes(&error)))?;
        let kinds = self.kinds_of(ready.plan().queue().iter().flat_map(|it| it.components.objects())).await;
        self.forget_others(provider, version).await;
        let mut outcome = Outcome::then(Then::Continue).report(plan::passed()).report(installed(version));
        outcome.installed = Some((version.to_owned(), Some(release.contract.clone())));
        Ok(Done { outcome, deployments: catalog.deployments(), kinds, drift: Vec::new() })
    }

    /// Upgrades a provider. A paused one stays paused.
    pub async fn upgrade(&self, snapshot: &Snapshot, version: &str) -> Result<Done, Trouble> {
        let provider = &*snapshot.provider;
        let release = self.fetch(provider, version).await?;
        if let Some(refusal) = gates::contract_upgrade(snapshot, &release.contract) {
            return Ok(Done::only(refused(refusal)));
        }
        let _turn = self.turn().await;
        let inventory = self.fresh_inventory().await?;
        let catalog = OperatorCatalog::new(snapshot, &release, self.paused(snapshot).await?);
        let ready = self.ready(&catalog, &inventory, provider, version, reason::COMPONENTS_UPGRADE).await?;
        self.keep(provider, &release).await?;
        info!(provider = provider.label(), version, "upgrading");
        let ran = ready.run_until(self.stop.cancelled(), &|_| {}).await;
        ran.map_err(|failed| Trouble::of_upgrade_error(&failed.error, reason::COMPONENTS_UPGRADE))?;
        let kinds = self.kinds_of_plan(ready.plan()).await;
        self.forget_others(provider, version).await;
        let upgraded = Report::new(condition::UPGRADED, true, reason::UPGRADED)
            .with_message(format!("Upgraded to {version}"));
        let mut outcome =
            Outcome::then(Then::Continue).report(plan::passed()).report(installed(version)).report(upgraded);
        outcome.installed = Some((version.to_owned(), Some(release.contract.clone())));
        Ok(Done { outcome, deployments: catalog.deployments(), kinds, drift: Vec::new() })
    }

    /// Compares what is installed with the release, and applies it again where they differ.
    pub async fn apply(&self, snapshot: &Snapshot, version: &str, cause: Cause) -> Result<Done, Trouble> {
        let provider = &*snapshot.provider;
        let outcome = Outcome::then(Then::Continue).report(plan::passed()).report(installed(version));
        let Some(release) = self.stored(provider, version).await? else {
            let spec = &provider.spec;
            if cause == Cause::Drift || (spec.manager.is_none() && spec.deployment.is_none()) {
                // Installed by others, and as they left it.
                return Ok(Done::only(outcome));
            }
            let release = self.fetch(provider, version).await?;
            self.keep(provider, &release).await?;
            return self.apply_release(snapshot, version, cause, &release, outcome).await;
        };
        self.apply_release(snapshot, version, cause, &release, outcome).await
    }

    async fn apply_release(
        &self,
        snapshot: &Snapshot,
        version: &str,
        cause: Cause,
        release: &StoredRelease,
        mut outcome: Outcome,
    ) -> Result<Done, Trouble> {
        let provider = &*snapshot.provider;
        let _turn = self.turn().await;
        let inventory = self.fresh_inventory().await?;
        let paused = if cause == Cause::Unpause { self.paused(snapshot).await? } else { None };
        let catalog = OperatorCatalog::new(snapshot, release, paused);
        let ready = self.ready(&catalog, &inventory, provider, version, reason::INSTALL_FAILED).await?;
        let changes: usize = ready.plan().steps().iter().map(|it| it.changes().len()).sum();
        let mut drift = Vec::new();
        if changes > 0 && cause == Cause::Drift {
            let preview = ready.preview().await.map_err(|error| server_trouble(&error))?;
            drift = differences(&preview);
        }
        if !drift.is_empty() && provider.only_reports_drift() {
            let report = Report::new(condition::DRIFTED, true, reason::DRIFTED)
                .with_message(format!("Changed by others: {}", drift.join("; ")));
            outcome = outcome.report(report);
        } else if changes > 0 {
            info!(provider = provider.label(), version, changes, ?cause, "applying");
            let ran = ready.run_until(self.stop.cancelled(), &|_| {}).await;
            ran.map_err(|failed| Trouble::of_upgrade_error(&failed.error, reason::INSTALL_FAILED))?;
        }
        if !provider.only_reports_drift() || changes == 0 {
            outcome = outcome.without(condition::DRIFTED);
        }
        let kinds = self.kinds_of_plan(ready.plan()).await;
        Ok(Done { outcome, deployments: catalog.deployments(), kinds, drift })
    }

    /// Scales the Deployments to 0.
    pub async fn pause(&self, provider: &ProviderRecord) -> Result<Outcome, Trouble> {
        let _turn = self.turn().await;
        let (label, namespace) = (provider.label(), &*provider.key.namespace);
        info!(provider = label, "pausing");
        let scaled = scale::scale_down(&self.cluster, &label, namespace, ORIGINAL_REPLICAS).await;
        scaled.map_err(|error| server_trouble(&error))?;
        Ok(Outcome::then(Then::Continue).report(plan::paused("The provider's Deployments are scaled to 0")))
    }

    /// Applies what changed meanwhile, and scales the Deployments to what they were.
    pub async fn unpause(&self, snapshot: &Snapshot, version: &str) -> Result<Done, Trouble> {
        let provider = &*snapshot.provider;
        let mut done = self.apply(snapshot, version, Cause::Unpause).await?;
        let _turn = self.turn().await;
        let (label, namespace) = (provider.label(), &*provider.key.namespace);
        info!(provider = label, "unpausing");
        let replicas = provider.spec.deployment.as_ref().and_then(|it| it.replicas);
        let scaled = scale::scale_up(&self.cluster, &label, namespace, ORIGINAL_REPLICAS, replicas).await;
        scaled.map_err(|error| server_trouble(&error))?;
        done.outcome = done.outcome.without(condition::PAUSED);
        Ok(done)
    }

    /// Deletes a provider's components, unless it is used; an outcome says by whom, none that it is deleted.
    pub async fn delete(&self, provider: &ProviderRecord) -> Result<Option<Outcome>, Trouble> {
        let label = provider.label();
        self.cluster.refresh_kinds().await.map_err(|error| server_trouble(&error))?;
        if !provider.is_deletion_forced() {
            let users = usage::find(&self.cluster, provider.kind, &label).await;
            let users = users.map_err(|error| server_trouble(&error))?;
            if !users.is_empty() {
                let message = format!("Used by {}", usage::in_words(&users));
                return Ok(Some(Outcome::then(Then::Again(BLOCKED_RETRY)).report(plan::blocked(message))));
            }
        }
        let _turn = self.turn().await;
        let inventory = self.inventory().await.map_err(|error| server_trouble(&error))?;
        let namespace = provider.key.namespace.to_string();
        let name = provider.key.name.to_string();
        let is_installed = inventory.instances(provider.kind, &name).any(|it| it.namespace == namespace);
        let goal = DeleteGoal {
            kind: provider.kind,
            name,
            version: None,
            // An installation that was cut off has no entry yet.
            namespace: is_installed.then(|| namespace.clone()),
        };
        let selection = Selection::Named(vec![goal]);
        let failed = |error: DeleteError| Trouble::of_objects(reason::COMPONENTS_DELETION, error.to_string());
        match delete::plan(&self.cluster, &inventory, &selection, DeleteOptions::default()).await {
            Err(DeleteError::NotInstalled { .. }) => {}
            Err(error) => return Err(failed(error)),
            Ok(plan) => {
                let ready = plan.check(&self.cluster, DeletePolicy { force: true }).map_err(|problems| {
                    Trouble::of_objects(reason::COMPONENTS_DELETION, problems.to_string())
                })?;
                info!(provider = label, "deleting");
                ready.run(&|_| {}).await.map_err(failed)?;
            }
        }
        let forgotten = store::prune(self.cluster.client(), &namespace, &label, None).await;
        forgotten.map_err(|error| store_trouble(&error))?;
        Ok(None)
    }

    async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// The inventory, with what the server serves now.
    async fn fresh_inventory(&self) -> Result<Inventory, Trouble> {
        let fresh = async {
            self.cluster.refresh_kinds().await?;
            self.inventory().await
        };
        fresh.await.map_err(|error| server_trouble(&error))
    }

    async fn secret(&self, provider: &ProviderRecord) -> Result<Option<Secret>, Trouble> {
        let Some(name) = provider.spec.secret_name.as_deref().filter(|it| !it.is_empty()) else {
            return Ok(None);
        };
        let namespace = &*provider.key.namespace;
        let api: Api<Secret> = Api::namespaced(self.cluster.client().clone(), namespace);
        match api.get_opt(name).await {
            Ok(Some(secret)) => Ok(Some(secret)),
            Ok(None) => Err(Trouble::new(
                reason::COMPONENTS_FETCH,
                format!("Secret {namespace}/{name} does not exist: create it, or change spec.secretName"),
            )),
            Err(error) => {
                Err(server_trouble(&self.cluster.failed(format!("read Secret {namespace}/{name}"), error)))
            }
        }
    }

    /// Fetches a release with its variables.
    async fn fetch(&self, provider: &ProviderRecord, version: &str) -> Result<StoredRelease, Trouble> {
        let secret = self.secret(provider).await?;
        let request = fetch_request(provider, Some(version), secret.as_ref());
        let release = self.fetcher.fetch(&request).await.map_err(|error| fetch_trouble(&error, provider))?;
        let missing = release.missing_variables();
        if missing.is_empty() {
            return Ok(release);
        }
        let place = match provider.spec.secret_name.as_deref() {
            Some(name) => format!("add them to Secret {}/{name}", provider.key.namespace),
            None => "put them into a Secret, and name it in spec.secretName".to_owned(),
        };
        let message = format!("value for variables [{}] is not set: {place}", missing.join(", "));
        Err(Trouble::new(reason::COMPONENTS_FETCH, message))
    }

    async fn stored(
        &self,
        provider: &ProviderRecord,
        version: &str,
    ) -> Result<Option<StoredRelease>, Trouble> {
        let stored =
            store::load(self.cluster.client(), &provider.key.namespace, &provider.label(), version).await;
        stored.map_err(|error| store_trouble(&error))
    }

    async fn keep(&self, provider: &ProviderRecord, release: &StoredRelease) -> Result<(), Trouble> {
        let owner = OwnerReference {
            api_version: format!("{GROUP}/{VERSION}"),
            kind: provider.kind.as_str().to_owned(),
            name: provider.key.name.to_string(),
            uid: provider.uid().to_owned(),
            ..OwnerReference::default()
        };
        let (client, label) = (self.cluster.client(), provider.label());
        let saved = store::save(client, &provider.key.namespace, &label, &owner, release).await;
        saved.map_err(|error| store_trouble(&error))
    }

    /// Removes the releases of other versions. What is left is removed after the next upgrade.
    async fn forget_others(&self, provider: &ProviderRecord, version: &str) {
        let (client, label) = (self.cluster.client(), provider.label());
        if let Err(error) = store::prune(client, &provider.key.namespace, &label, Some(version)).await {
            warn!(provider = label, %error, "cannot remove releases of other versions");
        }
    }

    /// A plan to write a version over what is installed, passed by its check.
    async fn ready(
        &self,
        catalog: &OperatorCatalog<'_>,
        inventory: &Inventory,
        provider: &ProviderRecord,
        version: &str,
        reason: &'static str,
    ) -> Result<Ready<UpgradePlan>, Trouble> {
        let report = |notice: ReleaseNotice<'_>| info!(?notice, "release");
        let releases = Releases { catalog, report: &report };
        let request = UpgradeRequest {
            goal: UpgradeGoal::Versions(vec![goal(provider, version)]),
            reapply: true,
            cert_manager: CertManagerPolicy::LeaveAlone { limit: CERT_MANAGER_LIMIT },
        };
        let plan = upgrade::plan(&self.cluster, inventory, &releases, &request).await;
        let plan = plan.map_err(|error| Trouble::of_upgrade_error(&error, reason))?;
        plan.check(&self.cluster, UpgradePolicy { allow_downgrade: true })
            .map_err(|problems| Trouble::of_upgrade(&problems.0, reason).unwrap_or_else(unknown))
    }

    /// The original replicas of a provider that is scaled to 0.
    async fn paused(&self, snapshot: &Snapshot) -> Result<Option<OriginalReplicas>, Trouble> {
        if !snapshot.is_scaled_down {
            return Ok(None);
        }
        let provider = &*snapshot.provider;
        let selector = sweep::selector_of(&provider.label());
        let found = self.cluster.list(&Kind::deployment(), Some(&provider.key.namespace), &selector).await;
        let found = found.map_err(|error| server_trouble(&error))?;
        let noted = found.into_iter().filter_map(|it| {
            let replicas = it.annotations().get(ORIGINAL_REPLICAS)?.clone();
            Some((it.name_any(), replicas))
        });
        Ok(Some(noted.collect()))
    }

    async fn kinds_of_plan(&self, plan: &UpgradePlan) -> Vec<Kind> {
        self.kinds_of(plan.steps().iter().flat_map(|it| it.to.components.objects())).await
    }

    /// The kinds of objects, each once. A failed discovery costs only a watch.
    async fn kinds_of(&self, objects: impl Iterator<Item = &serde_json::Value> + Send) -> Vec<Kind> {
        let Ok(known) = self.cluster.kinds().await else { return Vec::new() };
        let mut found: Vec<Kind> = Vec::new();
        for kind in objects.filter_map(|it| known.of(it)) {
            if !found.iter().any(|it| it.resource == kind.resource) {
                found.push(kind.clone());
            }
        }
        found
    }

    /// The contract that installed components implement, by the labels of their CRDs.
    async fn contract_of_installed(&self, provider: &ProviderRecord) -> Result<Option<String>, ServerError> {
        if provider.kind == ProviderType::Core {
            return installed_core_contract(&self.cluster).await;
        }
        let selector = sweep::selector_of(&provider.label());
        let crds = self.cluster.list_metadata(&Kind::crd(), None, &selector).await?;
        let has =
            |contract: &ContractVersion| crds.iter().any(|it| it.labels().contains_key(&contract.label()));
        Ok(ContractVersion::PREFERENCE.into_iter().find(has).map(|it| it.as_str().to_owned()))
    }
}

/// The provider is installed in a version.
fn installed(version: &str) -> Report {
    Report::new(condition::INSTALLED, true, reason::INSTALLED).with_message(format!("{version} is installed"))
}

fn refused(Refusal { reason, message }: Refusal) -> Outcome {
    Outcome::then(Then::Rest).report(Report::new(condition::PREFLIGHT, false, reason).with_message(message))
}

fn goal(provider: &ProviderRecord, version: &str) -> ProviderGoal {
    ProviderGoal {
        kind: provider.kind,
        name: provider.key.name.to_string(),
        version: VersionGoal::Exact(version.to_owned()),
        namespace: Some(provider.key.namespace.to_string()),
    }
}

fn fetch_request<'a>(
    provider: &'a ProviderRecord,
    version: Option<&'a str>,
    secret: Option<&'a Secret>,
) -> FetchRequest<'a> {
    FetchRequest {
        kind: provider.kind,
        name: &provider.key.name,
        namespace: &provider.key.namespace,
        config: provider.spec.fetch_config.as_ref(),
        version,
        secret,
    }
}

fn fetch_trouble(error: &FetchError, provider: &ProviderRecord) -> Trouble {
    let trouble = Trouble::new(error.reason(), with_causes(error));
    let is_in_cluster = provider.spec.fetch_config.as_ref().is_some_and(|it| it.selector.is_some());
    if error.is_transient() {
        trouble.retried()
    } else if is_in_cluster {
        // A change of the ConfigMaps is an event.
        trouble
    } else {
        Trouble { then: Then::Again(FETCH_RETRY), ..trouble }
    }
}

fn server_trouble(error: &ServerError) -> Trouble {
    Trouble::of_objects(reason::INSTALL_FAILED, error.to_string())
}

fn store_trouble(error: &StoreError) -> Trouble {
    Trouble::of_objects(reason::INSTALL_FAILED, with_causes(error))
}

fn unknown() -> Trouble {
    Trouble::new(reason::INSTALL_FAILED, "The check of the plan failed without a reason").retried()
}

fn with_causes(error: &dyn std::error::Error) -> String {
    capstan_runtime::controller::with_causes(error)
}

/// The objects that differ from the release, each with its changed lines.
fn differences(preview: &Preview) -> Vec<String> {
    let objects =
        preview.providers.iter().flat_map(|it| &it.objects).filter(|it| it.action != Action::Unchanged);
    objects
        .map(|it| {
            if it.action == Action::Created {
                return format!("{} is missing", it.object);
            }
            let changed = it.difference.iter().filter(|it| matches!(it.sign, Sign::Removed | Sign::Added));
            let sign = |sign| if sign == Sign::Removed { "-" } else { "+" };
            let lines: Vec<String> =
                changed.map(|it| format!("{}{}", sign(it.sign), it.text.trim())).take(LINES).collect();
            format!("{} ({})", it.object, lines.join(", "))
        })
        .collect()
}
