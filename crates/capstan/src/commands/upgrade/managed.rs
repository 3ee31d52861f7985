//! `capstan upgrade apply` where the provider operator manages providers: their objects get the new versions.

use std::{collections::BTreeSet, time::Duration};

use capstan_lifecycle::{
    diff::{self, Intent, Preview},
    goal::{ProviderGoal, VersionGoal},
    release::{ReleaseNotice, Releases},
    upgrade::{self, Move, UpgradeGoal, UpgradePolicy, UpgradeRequest},
};
use capstan_management::{
    ManagementCluster, ObjectRef, apply, error,
    inventory::Inventory,
    retry::{Backoff, Wait},
};
use capstan_manifest::envsubst::Template;
use capstan_repository::{ConfigMaps, ConfigMapsError};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    core::{Expression, Selector},
};
use serde_json::{Value, json};

use super::{
    apply::{Scene, limit, refusal, replace, report_progress, stopped, unchanged},
    failed, print_warnings,
};
use crate::{
    commands::{
        generate::{Asked, unusable},
        waiting,
    },
    difference,
    error::CommandError,
    hints::Hint,
    operator::{
        OperatorProblem, OperatorState, ProviderObject,
        arrange::{Arranged, arrange},
        catalog::OperatorCatalog,
        config_maps::ReleaseFiles,
        draft::{INPUT_LABEL, input_labels, is_input_selector},
        edit::{self, Change},
        judge,
        sequence::{self, Sequence, Step},
        setup,
    },
    printer::Printer,
    progress::Progress,
    session::Session,
};

const BACKOFF: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(2));

pub(super) async fn run(
    scene: Scene<'_>,
    goal: UpgradeGoal,
    inventory: &Inventory,
    mut state: OperatorState,
) -> Result<(), CommandError> {
    let Scene { args, session, cluster, printer } = scene;
    let (merged, without) = (state.merged(inventory), state.unmanaged(inventory));
    check_installed(&goal, &merged, &state)?;
    // The same objects, for a catalog that outlives their changes.
    let known = state.clone();
    let catalog = OperatorCatalog { session, state: &known, cluster };
    let report = |notice: ReleaseNotice<'_>| session.report(notice);
    let releases = catalog.releases(&report);
    printer.step("fetching the new releases");
    let selected = upgrade::select(cluster, &merged, &releases, &goal).await;
    let selected = selected.map_err(|error| unchanged(failed(error, session)))?;
    print_warnings(&selected.warnings, printer);
    for provider in &selected.up_to_date {
        printer.done(&format!("{} is at {} already", provider.label(), provider.version));
    }
    let Arranged { sequence, managed, unmanaged, problems, operator_problems } =
        arrange(selected, &state, &without, args.allow_downgrade);
    if !problems.is_empty() {
        return Err(unchanged(refusal(capstan_lifecycle::check::Problems(problems), session)));
    }
    if !operator_problems.is_empty() {
        return Err(unchanged(refused(&operator_problems)));
    }
    if !unmanaged.is_empty() {
        let goals = unmanaged.into_iter().map(goal_of).collect();
        return replace(scene, UpgradeGoal::Versions(goals), &merged, &releases).await;
    }
    if args.reapply {
        let reason =
            "the operator undoes manual changes by itself, and reads variables anew with each version";
        return Err(CommandError::plain(format!(
            "--reapply cannot be used where the operator manages providers: {reason}"
        ))
        .hint("leave --reapply out"));
    }
    warn_of_operator(&state, printer)?;
    for text in missing_variables(cluster, session, &managed, &state).await? {
        printer.warn(&text);
    }
    let uploads = uploads(cluster, session, &releases, &managed, &state).await?;
    let certificates = UpgradeRequest {
        goal: UpgradeGoal::Versions(Vec::new()),
        reapply: false,
        cert_manager: session.cert_manager()?,
    };
    let certificates = upgrade::plan(cluster, &merged, &releases, &certificates).await;
    let certificates = certificates.map_err(|error| unchanged(failed(error, session)))?;
    print_warnings(certificates.warnings(), printer);
    let certificates = certificates.check(cluster, UpgradePolicy::default());
    let certificates = certificates.map_err(|it| unchanged(refusal(it, session)))?;
    let is_idle = sequence.targets.is_empty() && sequence.contract.is_none();
    if is_idle && certificates.plan().is_empty() {
        printer.done("there is nothing to upgrade");
        return Ok(());
    }
    if args.preview.dry_run {
        let mut preview = certificates.preview().await?;
        add_to(&mut preview, cluster, &sequence, &managed, &uploads, &state).await?;
        difference::print(&preview, args.preview.diff, args.preview.output, printer)?;
        return difference::refused(&preview).map_or(Ok(()), Err);
    }
    let progress = Progress::new(printer);
    let result = certificates.run(&|event| report_progress(&event, printer, &progress)).await;
    result.map_err(|failure| stopped(failure, session))?;
    apply::apply(cluster, &uploads, &|_| {}).await?;
    carry_out(cluster, &mut state, &sequence, limit(args), printer).await?;
    if args.wait_providers {
        let runs =
            |it: &&ObjectRef| state.providers.iter().any(|object| object.id() == **it && !object.is_paused());
        let targets = sequence.targets.iter().map(|it| &it.object);
        let awaited: Vec<ObjectRef> = targets.filter(runs).cloned().collect();
        waiting::for_objects(cluster, &mut state, &awaited, limit(args), printer).await?;
    }
    if !managed.is_empty() {
        let each: Vec<String> = managed
            .iter()
            .map(|it| format!("{} {} → {}", it.provider.label(), it.provider.version, it.version))
            .collect();
        printer.done(&format!("upgraded {}", each.join(", ")));
    }
    Ok(())
}

/// Refuses to upgrade what the operator has not installed yet.
fn check_installed(
    goal: &UpgradeGoal,
    merged: &Inventory,
    state: &OperatorState,
) -> Result<(), OperatorProblem> {
    let named: Vec<&ProviderObject> = match goal {
        UpgradeGoal::Versions(goals) => goals.iter().filter_map(|it| state.find(it.kind, &it.name)).collect(),
        UpgradeGoal::Contract(_) if merged.providers.is_empty() => state.providers.iter().collect(),
        UpgradeGoal::Contract(_) => Vec::new(),
    };
    match named.into_iter().find(|it| it.installed_version.is_none()) {
        None => Ok(()),
        Some(object) => Err(not_installed(object)),
    }
}

pub(super) fn not_installed(object: &ProviderObject) -> OperatorProblem {
    let reason = match judge::ready(object) {
        judge::Look::Waiting(reason) | judge::Look::Stuck(reason) => reason,
        judge::Look::Done => "it has no installed version".to_owned(),
    };
    OperatorProblem::NotInstalledYet { object: Box::new(object.id()), reason }
}

/// All that stands in the way, with what to do about it.
fn refused(problems: &[OperatorProblem]) -> CommandError {
    if let [problem] = problems {
        return CommandError::plain(problem.to_string()).hint_if(problem.hint());
    }
    let mut error = CommandError::plain(format!("cannot upgrade: {} problems were found", problems.len()));
    let mut hints: Vec<String> = Vec::new();
    for problem in problems {
        error.causes.push(problem.to_string());
        hints.extend(problem.hint().filter(|it| !hints.contains(it)));
    }
    error.hint(hints.join("\n"))
}

fn goal_of(it: Move) -> ProviderGoal {
    let Move { provider, version, .. } = it;
    ProviderGoal {
        kind: provider.kind,
        name: provider.name,
        version: VersionGoal::Exact(version),
        namespace: Some(provider.namespace),
    }
}

/// An operator of another version is refused, one that does not run is only warned of: it may run elsewhere.
fn warn_of_operator(state: &OperatorState, printer: Printer) -> Result<(), OperatorProblem> {
    match &state.operator {
        None => {
            printer.warn("no provider operator is installed in the cluster: provider objects wait for one");
        }
        Some(operator) => {
            setup::check_version(operator)?;
            if !operator.is_available {
                printer.warn(&format!(
                    "the provider operator does not run: Deployment {}/{} is not available",
                    operator.namespace, operator.name
                ));
            }
        }
    }
    Ok(())
}

/// Required variables of the new releases that the Secrets of their objects lack.
async fn missing_variables(
    cluster: &ManagementCluster,
    session: &Session,
    managed: &[Move],
    state: &OperatorState,
) -> Result<Vec<String>, CommandError> {
    let mut warnings = Vec::new();
    for it in managed {
        let Some(object) = state.find(it.provider.kind, &it.provider.name) else { continue };
        let template = Template::parse(&it.components.text)
            .map_err(|error| unusable(&it.components.origin, &error.into(), Asked::Provider, session))?;
        let mut names: Vec<&str> =
            template.variables().values().filter(|it| it.is_required()).map(|it| it.name.as_str()).collect();
        if names.is_empty() {
            continue;
        }
        let secret = object.spec["secretName"].as_str().unwrap_or_default();
        if !secret.is_empty() {
            let secrets: Api<Secret> = Api::namespaced(cluster.client().clone(), &object.namespace);
            let found = secrets.get_opt(secret).await;
            let doing = || format!("read Secret {}/{secret}", object.namespace);
            let found = found.map_err(|error| cluster.failed(doing(), error))?;
            let keys = found.and_then(|it| it.data).unwrap_or_default();
            names.retain(|it| !keys.contains_key(*it));
        }
        if !names.is_empty() {
            let place = if secret.is_empty() {
                format!("{} names no Secret", object.id())
            } else {
                format!("Secret {}/{secret} does not have", object.namespace)
            };
            let label = it.provider.label();
            warnings.push(format!("{label} {} needs {}: {place}", it.version, names.join(", ")));
        }
    }
    Ok(warnings)
}

/// ConfigMaps with the new releases, for objects whose releases were put into ConfigMaps by this program.
async fn uploads(
    cluster: &ManagementCluster,
    session: &Session,
    releases: &Releases<'_>,
    managed: &[Move],
    state: &OperatorState,
) -> Result<Vec<Value>, CommandError> {
    let mut config_maps = Vec::new();
    for it in managed {
        let label = it.provider.label();
        let Some(object) = state.find(it.provider.kind, &it.provider.name) else { continue };
        let selector = object.fetch_config().and_then(|it| it.selector);
        if !selector.is_some_and(|it| is_input_selector(&it, &label)) {
            continue;
        }
        let expression: Selector = Expression::Equal(INPUT_LABEL.to_owned(), label.clone()).into();
        let versions = match ConfigMaps::list(cluster.client().clone(), &object.namespace, &expression).await
        {
            Ok(there) => there.versions(),
            Err(ConfigMapsError::None { .. } | ConfigMapsError::Unusable { .. }) => Vec::new(),
            Err(error) => return Err(CommandError::plain(error.to_string())),
        };
        if versions.iter().any(|found| judge::is_same(found, &it.version)) {
            continue;
        }
        let unusable = |error| session.unusable_release_of(&label, error);
        let source = releases.source(it.provider.kind, &it.provider.name).await.map_err(unusable)?;
        let metadata = source.repository.metadata_file(&it.version).await?;
        let labels = input_labels(&label);
        let files = ReleaseFiles {
            label: &label,
            version: &it.version,
            namespace: &object.namespace,
            labels: &labels,
            metadata: &metadata.text,
            components: &it.components.text,
        };
        config_maps.extend(files.config_maps()?);
    }
    Ok(config_maps)
}

/// Adds what would become of the objects.
async fn add_to(
    preview: &mut Preview,
    cluster: &ManagementCluster,
    sequence: &Sequence,
    managed: &[Move],
    uploads: &[Value],
    state: &OperatorState,
) -> Result<(), CommandError> {
    let objects: Vec<(String, Value)> = sequence
        .targets
        .iter()
        .filter_map(|target| {
            let object = state.providers.iter().find(|it| it.id() == target.object)?;
            Some((object.label(), with_version(object, &target.version)))
        })
        .collect();
    let of = |label: &str| {
        let labels = input_labels(label);
        uploads.iter().filter(move |it| {
            labels.iter().all(|(name, value)| it["metadata"]["labels"][name] == value.as_str())
        })
    };
    let intents: Vec<Intent<'_>> = objects
        .iter()
        .map(|(label, object)| Intent {
            provider: label,
            wanted: of(label).chain([object]).collect(),
            removed: &[],
        })
        .collect();
    let more = diff::preview(cluster, &intents).await?;
    preview.providers.extend(more.providers);
    preview.refusals.extend(more.refusals);
    preview.notes.extend(more.notes);
    preview.notes.extend(managed.iter().map(|it| {
        format!(
            "the operator upgrades {} from {} to {}",
            it.provider.label(),
            it.provider.version,
            it.version
        )
    }));
    if let Some(contract) = &sequence.contract {
        let what = "all providers are paused first, and unpaused at the end: no controller runs meanwhile";
        preview.notes.push(format!("for contract {contract} {what}"));
    }
    Ok(())
}

/// An object as it will be.
fn with_version(object: &ProviderObject, version: &str) -> Value {
    let id = object.id();
    let mut spec = object.spec.clone();
    spec["version"] = json!(version);
    json!({
        "apiVersion": id.api_version,
        "kind": id.kind,
        "metadata": {"name": id.name, "namespace": id.namespace, "labels": object.labels,
                     "annotations": object.annotations},
        "spec": spec,
    })
}

/// Has the operator carry the upgrade out, step by step.
async fn carry_out(
    cluster: &ManagementCluster,
    state: &mut OperatorState,
    sequence: &Sequence,
    limit: Duration,
    printer: Printer,
) -> Result<(), CommandError> {
    let progress = Progress::new(printer);
    let result = drive(cluster, state, sequence, limit, &progress).await;
    progress.end();
    result
}

async fn drive(
    cluster: &ManagementCluster,
    state: &mut OperatorState,
    sequence: &Sequence,
    limit: Duration,
    progress: &Progress,
) -> Result<(), CommandError> {
    // Each step has the whole time.
    let mut wait = Wait::new(BACKOFF, limit);
    let mut done: BTreeSet<String> = BTreeSet::new();
    loop {
        match state.refresh(cluster).await {
            Ok(()) => {}
            Err(error) if error::is_transient(&error.source) && !wait.is_over() => {
                progress.waiting(&error.to_string());
                wait.pause().await;
                continue;
            }
            Err(error) => return Err(interrupted(error.into(), sequence, &done)),
        }
        for target in sequence::finished(sequence, &state.providers) {
            if done.insert(target.object.to_string()) {
                let text = format!("{} is at {}", target.object, target.version);
                progress.say(|printer| printer.done(&text));
                wait = Wait::new(BACKOFF, limit);
            }
        }
        match sequence::next(sequence, &state.providers) {
            Step::Done => return Ok(()),
            Step::Stuck(object, reason) => {
                let error = CommandError::plain(format!("the operator cannot upgrade {object}: {reason}"));
                return Err(interrupted(error, sequence, &done));
            }
            Step::Wait(late) if wait.is_over() => {
                return Err(interrupted(too_late(&late, limit), sequence, &done));
            }
            Step::Wait(late) => {
                if let Some((object, reason)) = late.first() {
                    progress.waiting(&format!("waiting for {object}: {reason}"));
                }
                wait.pause().await;
            }
            Step::Edit(changes) => {
                let changed = change(cluster, state, &changes, progress).await;
                if changed.map_err(|error| interrupted(error, sequence, &done))? {
                    wait = Wait::new(BACKOFF, limit);
                } else {
                    // Somebody else writes the object, too.
                    wait.pause().await;
                }
            }
        }
    }
}

/// Changes objects; `false` if one was not any more what was read.
async fn change(
    cluster: &ManagementCluster,
    state: &OperatorState,
    changes: &[(ObjectRef, Change)],
    progress: &Progress,
) -> Result<bool, CommandError> {
    let mut all = true;
    for (id, change) in changes {
        let Some(object) = state.providers.iter().find(|it| it.id() == *id) else { continue };
        let step = match change {
            Change::Version(version) => match &object.installed_version {
                Some(installed) => format!("upgrading {id} from {installed} to {version}"),
                None => format!("upgrading {id} to {version}"),
            },
            Change::Pause { .. } => format!("pausing {id}"),
            Change::Unpause => format!("unpausing {id}"),
            Change::ForceDelete => continue,
        };
        progress.say(|printer| printer.step(&step));
        all &= edit::edit(cluster, object, change).await?;
    }
    Ok(all)
}

fn too_late(late: &[(ObjectRef, String)], limit: Duration) -> CommandError {
    let objects = if late.len() == 1 { "an object".to_owned() } else { format!("{} objects", late.len()) };
    let message = format!("the operator is not done with {objects} after {} s", limit.as_secs());
    let mut error = CommandError::plain(message);
    error.causes = late.iter().map(|(object, reason)| format!("{object}: {reason}")).collect();
    error
}

/// What is done of an upgrade that failed, and how to continue.
fn interrupted(mut error: CommandError, sequence: &Sequence, done: &BTreeSet<String>) -> CommandError {
    if !done.is_empty() {
        error.causes.push(format!("upgraded: {}", done.iter().cloned().collect::<Vec<_>>().join(", ")));
    }
    if sequence.contract.is_some() {
        let what = "providers are paused until the upgrade to the new contract is complete: their controllers do not run";
        error.causes.push(what.to_owned());
    }
    let again =
        "once that is fixed, the same command continues from here; --wait-provider-timeout waits longer";
    let hint = error.hint.as_ref().map_or_else(|| again.to_owned(), |it| format!("{it}; {again}"));
    error.hint(hint)
}
