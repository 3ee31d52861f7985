//! Carries out steps, by the functions that the commands call. One provider at a time is written; releases are fetched
//! beside it.

use std::time::Duration;

use capstan_api::{
    conditions::Report,
    contract::ContractVersion,
    operator::{GROUP, ProviderSpec, VERSION, annotation::ORIGINAL_REPLICAS, condition, reason},
    provider::ProviderType,
};
use capstan_lifecycle::{
    catalog::CertManagerPolicy,
    check::Ready,
    delete::{self, DeleteError, DeleteGoal, DeleteOptions, DeletePolicy, Selection},
    diff::{Action, Preview},
    goal::{ProviderGoal, VersionGoal},
    install::{self, InstallPolicy, InstallRequest},
    release::{ReleaseNotice, Releases},
    scale,
    upgrade::{self, UpgradeGoal, UpgradePlan, UpgradePolicy, UpgradeRequest},
};
use capstan_management::{
    Kind, Kinds, ManagementCluster, ObjectRef, ServerError, contract::installed_core_contract,
    inventory::Inventory, sweep,
};
use capstan_manifest::text;
use capstan_runtime::Observed;
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Secret},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Api, ResourceExt, api::ListParams, core::ApiResource};
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    catalog::OperatorCatalog,
    fetch::{FetchError, FetchRequest, Fetcher},
    outcome::{Outcome, Then, Trouble},
    placement,
    plan::{self, Step},
    record::{DeploymentRecord, ProviderRecord},
    snapshot::Snapshot,
    store::{self, StoreError, StoredRelease},
    usage,
};

/// How long objects that need cert-manager wait for it: others wait meanwhile, and the step is retried.
const CERT_MANAGER_LIMIT: Duration = Duration::from_secs(5);
/// How long the apply of an object is retried at once, for the same reason.
const APPLY_LIMIT: Duration = Duration::from_secs(15);
/// How soon a blocked deletion is tried again.
const BLOCKED_RETRY: Duration = Duration::from_secs(3);
/// How many changed fields of an object a report names.
const FIELDS: usize = 12;

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

/// What a step needs that is read or fetched before its turn.
#[derive(Debug)]
pub enum Prepared {
    /// Nothing.
    Nothing,
    /// A release: what is to be installed, or what is kept of what is installed.
    Release {
        /// The release.
        release: Box<StoredRelease>,
        /// Whether it is kept already.
        is_kept: bool,
    },
    /// The step is not to be taken now.
    Blocked(Outcome),
}

/// What was done, and the Deployments of the release that it was done with.
#[derive(Debug)]
pub struct Done {
    /// What came of it.
    pub outcome: Outcome,
    /// The Deployments of the release, if it was rendered.
    pub deployments: Option<Vec<String>>,
    /// The kinds of the release's objects; none if they could not be discovered.
    pub kinds: Option<Vec<Kind>>,
    /// Objects that others had changed, each with its fields.
    pub drift: Vec<String>,
}

impl Done {
    /// What came of a step for a provider whose release is not known: its Deployments are those that there are.
    fn without_release(snapshot: &Snapshot, outcome: Outcome) -> Self {
        let found = snapshot.deployments_of(&snapshot.provider).map(|it| it.name().to_owned()).collect();
        let deployments = snapshot.expected_deployments.is_none().then_some(found);
        Self { outcome, deployments, kinds: Some(Vec::new()), drift: Vec::new() }
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
        let cluster = cluster.with_apply_limit(APPLY_LIMIT);
        Self { cluster, fetcher, turn: Mutex::new(()), stop }
    }

    /// The right to write something else than a provider object: one provider at a time has it.
    pub async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Reads and fetches what a step needs, beside what is written for other providers.
    pub async fn prepare(&self, snapshot: &Snapshot, step: &Step) -> Result<Prepared, Trouble> {
        let provider = &*snapshot.provider;
        Ok(match step {
            Step::Install { version } | Step::Upgrade { version } => {
                let release = Box::new(self.fetch(provider, version).await?);
                Prepared::Release { release, is_kept: false }
            }
            Step::Apply { version } | Step::Verify { version } | Step::Unpause { version } => {
                let spec = &provider.spec;
                let is_customized = spec.manager.is_some() || spec.deployment.is_some();
                match self.stored(provider, version).await? {
                    Some(release) => Prepared::Release { release: Box::new(release), is_kept: true },
                    // Installed by others, and as they left it.
                    None if matches!(step, Step::Verify { .. }) || !is_customized => Prepared::Nothing,
                    None => {
                        let release = Box::new(self.fetch(provider, version).await?);
                        Prepared::Release { release, is_kept: false }
                    }
                }
            }
            Step::Delete => match self.users(provider).await? {
                Some(users) => Prepared::Blocked(users),
                None => Prepared::Nothing,
            },
            _ => Prepared::Nothing,
        })
    }

    /// The Deployments of a provider, as they are now.
    pub async fn deployments(&self, provider: &ProviderRecord) -> Result<Vec<DeploymentRecord>, ServerError> {
        let namespace = &*provider.key.namespace;
        let resource = ApiResource::erase::<Deployment>(&());
        let api: Api<Observed> = Api::namespaced_with(self.cluster.client().clone(), namespace, &resource);
        let params = ListParams::default().labels(&sweep::selector_of(&provider.label()));
        let found = api.list(&params).await.map_err(|error| {
            self.cluster.failed(format!("list the Deployments of {}", provider.full_name()), error)
        })?;
        Ok(found.items.into_iter().map(DeploymentRecord::new).collect())
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

    /// What to report of a provider that is installed but not in the status: others installed it, or this operator did
    /// and could not report it.
    pub async fn adopt(&self, snapshot: &Snapshot, version: &str) -> Result<Outcome, Trouble> {
        let provider = &*snapshot.provider;
        let mut outcome = Outcome::then(Then::Continue).report(plan::passed());
        if plan::ended_upgrade(provider, version) {
            outcome = outcome.report(upgraded(version));
        }
        let contract = if let Some(kept) = self.stored(provider, version).await? {
            self.forget_others(provider, version).await;
            // The spec may have changed since: it is applied next.
            Some(kept.contract)
        } else {
            let spec = &provider.spec;
            // What the spec asks for beyond the version has still to be applied.
            if spec.manager.is_none() && spec.deployment.is_none() {
                outcome = outcome.report(installed_by_others(version));
            }
            self.contract_of_installed(provider).await.map_err(|it| server_trouble(&it))?
        };
        outcome.installed = Some((version.to_owned(), contract));
        Ok(outcome)
    }

    /// Installs a provider.
    pub async fn install(
        &self,
        snapshot: &Snapshot,
        version: &str,
        release: &StoredRelease,
    ) -> Result<Done, Trouble> {
        let provider = &*snapshot.provider;
        let inventory = self.fresh_inventory().await?;
        let catalog = OperatorCatalog::new(snapshot, release);
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
        let (client, namespace) = (self.cluster.client(), &*provider.key.namespace);
        let was_tried = store::has_any(client, namespace, &provider.label()).await;
        let was_tried = was_tried.map_err(|error| store_trouble(&error))?;
        self.keep(provider, release).await?;
        info!(provider = provider.label(), version, "installing");
        let ran = ready.run(&|_| {}).await;
        ran.map_err(|error| Trouble::of_objects(reason::INSTALL_FAILED, with_causes(&error)))?;
        if was_tried {
            // What an earlier try wrote and this release does not have is deleted.
            let inventory = self.fresh_inventory().await?;
            let plan = self.plan(&catalog, &inventory, provider, version, reason::INSTALL_FAILED).await?;
            self.run(self.check(plan, reason::INSTALL_FAILED)?, reason::INSTALL_FAILED).await?;
        }
        let kinds = self.kinds_of(ready.plan().queue().iter().flat_map(|it| it.components.objects())).await;
        self.forget_others(provider, version).await;
        let mut outcome = Outcome::then(Then::Continue).report(plan::passed()).report(installed(version));
        outcome.installed = Some((version.to_owned(), Some(release.contract.clone())));
        Ok(Done { outcome, deployments: catalog.deployments(), kinds, drift: Vec::new() })
    }

    /// Upgrades a provider. A paused one stays paused.
    pub async fn upgrade(
        &self,
        snapshot: &Snapshot,
        version: &str,
        release: &StoredRelease,
    ) -> Result<Done, Trouble> {
        let provider = &*snapshot.provider;
        let inventory = self.fresh_inventory().await?;
        let catalog = OperatorCatalog::new(snapshot, release);
        let plan = self.plan(&catalog, &inventory, provider, version, reason::COMPONENTS_UPGRADE).await?;
        let ready = self.check(plan, reason::COMPONENTS_UPGRADE)?;
        self.keep(provider, release).await?;
        info!(provider = provider.label(), version, "upgrading");
        let kinds = self.run(ready, reason::COMPONENTS_UPGRADE).await?;
        self.forget_others(provider, version).await;
        let mut outcome = Outcome::then(Then::Continue)
            .report(plan::passed())
            .report(installed(version))
            .report(upgraded(version));
        outcome.installed = Some((version.to_owned(), Some(release.contract.clone())));
        Ok(Done { outcome, deployments: catalog.deployments(), kinds, drift: Vec::new() })
    }

    /// Compares what is installed with the release, and applies it again where they differ.
    pub async fn apply(
        &self,
        snapshot: &Snapshot,
        version: &str,
        cause: Cause,
        prepared: Prepared,
    ) -> Result<Done, Trouble> {
        let provider = &*snapshot.provider;
        let outcome = Outcome::then(Then::Continue).report(plan::passed());
        let Prepared::Release { release, is_kept } = prepared else {
            let outcome = outcome.report(installed_by_others(version));
            return Ok(Done::without_release(snapshot, outcome));
        };
        if !is_kept {
            self.keep(provider, &release).await?;
        }
        let outcome = outcome.report(installed(version));
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
        let inventory = self.fresh_inventory().await?;
        let catalog = OperatorCatalog::new(snapshot, release);
        let mut plan = self.plan(&catalog, &inventory, provider, version, reason::INSTALL_FAILED).await?;
        let differ = plan.steps().iter().any(|it| !it.changes().is_empty());
        let writes = writes(snapshot, cause);
        plan.restrict(&writes);
        let ready = self.check(plan, reason::INSTALL_FAILED)?;
        let mut drift = Vec::new();
        if differ && (cause == Cause::Drift || provider.only_reports_drift()) {
            let preview = ready.preview().await.map_err(|error| server_trouble(&error))?;
            drift = differences(&preview, |it| cause == Cause::Drift || !writes(it));
        }
        if !drift.is_empty() && provider.only_reports_drift() {
            let report = Report::new(condition::DRIFTED, true, reason::DRIFTED)
                .with_message(format!("Changed by others: {}", drift.join("; ")));
            outcome = outcome.report(report);
        } else {
            outcome = outcome.without(condition::DRIFTED);
        }
        let kinds = self.run(ready, reason::INSTALL_FAILED).await?;
        Ok(Done { outcome, deployments: catalog.deployments(), kinds, drift })
    }

    /// Scales the Deployments to 0.
    pub async fn pause(&self, provider: &ProviderRecord) -> Result<Outcome, Trouble> {
        let (label, namespace) = (provider.label(), &*provider.key.namespace);
        info!(provider = label, "pausing");
        let scaled = scale::scale_down(&self.cluster, &label, namespace, ORIGINAL_REPLICAS).await;
        scaled.map_err(|error| server_trouble(&error))?;
        Ok(Outcome::then(Then::Continue).report(plan::paused("The provider's Deployments are scaled to 0")))
    }

    /// Applies what changed meanwhile, and scales the Deployments to what they were.
    pub async fn unpause(
        &self,
        snapshot: &Snapshot,
        version: &str,
        prepared: Prepared,
    ) -> Result<Done, Trouble> {
        let provider = &*snapshot.provider;
        let mut done = self.apply(snapshot, version, Cause::Unpause, prepared).await?;
        let (label, namespace) = (provider.label(), &*provider.key.namespace);
        info!(provider = label, "unpausing");
        let scaled = scale::scale_up(&self.cluster, &label, namespace, ORIGINAL_REPLICAS).await;
        scaled.map_err(|error| server_trouble(&error))?;
        done.outcome = done.outcome.without(condition::PAUSED);
        Ok(done)
    }

    /// What to report of a provider that is used; none if it may be deleted.
    async fn users(&self, provider: &ProviderRecord) -> Result<Option<Outcome>, Trouble> {
        if provider.is_deletion_forced() {
            return Ok(None);
        }
        self.cluster.refresh_kinds().await.map_err(|error| server_trouble(&error))?;
        let users = usage::find(&self.cluster, provider.kind, &provider.label()).await;
        let users = users.map_err(|error| server_trouble(&error))?;
        let blocked = || {
            let message = format!("Used by {}", usage::in_words(&users));
            Outcome::then(Then::Again(BLOCKED_RETRY)).report(plan::blocked(message))
        };
        Ok((!users.is_empty()).then(blocked))
    }

    /// Deletes a provider's components, unless it is used; an outcome says by whom, none that it is deleted.
    pub async fn delete(&self, provider: &ProviderRecord) -> Result<Option<Outcome>, Trouble> {
        let label = provider.label();
        // A cluster may have been created while others had their turn.
        if let Some(blocked) = self.users(provider).await? {
            return Ok(Some(blocked));
        }
        let inventory = self.fresh_inventory().await?;
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
            self.refuse_foreign(provider, &release).await?;
            return Ok(release);
        }
        let place = match provider.spec.secret_name.as_deref() {
            Some(name) => format!("add them to Secret {}/{name}", provider.key.namespace),
            None => "put them into a Secret, and name it in spec.secretName".to_owned(),
        };
        let message = format!("value for variables [{}] is not set: {place}", missing.join(", "));
        Err(Trouble::new(reason::COMPONENTS_FETCH, message))
    }

    /// Refuses a release with objects that belong to namespaces of others.
    async fn refuse_foreign(
        &self,
        provider: &ProviderRecord,
        release: &StoredRelease,
    ) -> Result<(), Trouble> {
        let lookup = |name: &str| release.variables.get(name).cloned();
        // What cannot be read is refused when it is rendered, in other words.
        let Ok(documents) = text::objects(release.components.as_str(), Some(&lookup)) else { return Ok(()) };
        let objects: Vec<&Value> = documents.iter().flat_map(|it| placement::flat(&it.value)).collect();
        let kinds = self.cluster.kinds().await.map_err(|error| server_trouble(&error))?;
        let mut kinds = Kinds::clone(&*kinds);
        kinds.learn_all(objects.iter().copied());
        match placement::foreign(&objects, &kinds, &provider.key.namespace) {
            None => Ok(()),
            Some(foreign) => Err(Trouble::new(
                reason::COMPONENTS_FETCH,
                format!(
                    "cannot use {}: objects in namespaces that are not the provider's: {foreign}; remove them from \
                     the components, or their namespace",
                    release.origin
                ),
            )),
        }
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

    /// A plan to write a version over what is installed.
    async fn plan(
        &self,
        catalog: &OperatorCatalog<'_>,
        inventory: &Inventory,
        provider: &ProviderRecord,
        version: &str,
        reason: &'static str,
    ) -> Result<UpgradePlan, Trouble> {
        let report = |notice: ReleaseNotice<'_>| info!(?notice, "release");
        let releases = Releases { catalog, report: &report };
        let request = UpgradeRequest {
            goal: UpgradeGoal::Versions(vec![goal(provider, version)]),
            reapply: true,
            cert_manager: CertManagerPolicy::LeaveAlone { limit: CERT_MANAGER_LIMIT },
        };
        let plan = upgrade::plan(&self.cluster, inventory, &releases, &request).await;
        plan.map_err(|error| Trouble::of_upgrade_error(&error, reason))
    }

    fn check(&self, plan: UpgradePlan, reason: &'static str) -> Result<Ready<UpgradePlan>, Trouble> {
        plan.check(&self.cluster, UpgradePolicy { allow_downgrade: true })
            .map_err(|problems| Trouble::of_upgrade(&problems.0, reason).unwrap_or_else(unknown))
    }

    /// Carries out a plan, unless it changes nothing; returns the kinds of its objects.
    async fn run(
        &self,
        ready: Ready<UpgradePlan>,
        reason: &'static str,
    ) -> Result<Option<Vec<Kind>>, Trouble> {
        let steps = ready.plan().steps();
        if steps.iter().any(|it| !it.is_reapply || !it.changes().is_empty()) {
            let ran = ready.run_until(self.stop.cancelled(), &|_| {}).await;
            ran.map_err(|failed| Trouble::of_failed_upgrade(&failed, reason))?;
        }
        Ok(self.kinds_of(steps.iter().flat_map(|it| it.to.components.objects())).await)
    }

    /// The kinds of objects, each once; none if they cannot be discovered.
    async fn kinds_of(&self, objects: impl Iterator<Item = &Value> + Send) -> Option<Vec<Kind>> {
        let known = self.cluster.kinds().await.ok()?;
        let mut found: Vec<Kind> = Vec::new();
        for kind in objects.filter_map(|it| known.of(it)) {
            if !found.iter().any(|it| it.resource == kind.resource) {
                found.push(kind.clone());
            }
        }
        Some(found)
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

/// The provider is installed in a version, and its release is not known.
fn installed_by_others(version: &str) -> Report {
    let message = format!(
        "{version} is installed by another tool: changes of its objects are noticed from the next upgrade or change on"
    );
    Report::new(condition::INSTALLED, true, reason::INSTALLED).with_message(message)
}

/// The provider was upgraded to a version.
fn upgraded(version: &str) -> Report {
    Report::new(condition::UPGRADED, true, reason::UPGRADED).with_message(format!("Upgraded to {version}"))
}

/// Which objects may be written. Where drift is only reported, that is what the spec is about.
fn writes(snapshot: &Snapshot, cause: Cause) -> impl Fn(&ObjectRef) -> bool {
    let provider = &*snapshot.provider;
    let reports = provider.only_reports_drift();
    let is_same =
        |it: &ProviderSpec| it.deployment == provider.spec.deployment && it.manager == provider.spec.manager;
    let writes_deployments = match cause {
        Cause::Drift => false,
        Cause::Change => !snapshot.applied.as_deref().is_some_and(is_same),
        Cause::Unpause => true,
    };
    move |id| !reports || (writes_deployments && id.kind == "Deployment" && id.group() == "apps")
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
    if error.is_transient() { trouble.retried() } else { trouble.of_source(provider) }
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

/// The objects that differ from the release, each with its changed fields. Their values may be credentials.
fn differences(preview: &Preview, is_meant: impl Fn(&ObjectRef) -> bool) -> Vec<String> {
    let objects = preview.providers.iter().flat_map(|it| &it.objects);
    let differ = objects.filter(|it| is_meant(&it.object));
    differ
        .filter_map(|it| match it.action {
            Action::Unchanged => None,
            Action::Created => Some(format!("{} is missing", it.object)),
            Action::Deleted => Some(format!("{} is not in the release", it.object)),
            Action::Changed => {
                let more = it.fields.len().saturating_sub(FIELDS);
                let mut fields = it.fields.iter().take(FIELDS).cloned().collect::<Vec<_>>().join(", ");
                if more > 0 {
                    fields = format!("{fields} and {more} more fields");
                }
                Some(format!("{} ({fields})", it.object))
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
