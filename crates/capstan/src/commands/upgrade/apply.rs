//! `capstan upgrade apply`: the upgrade itself.

use std::time::Duration;

use capstan_api::provider::ProviderType;
use capstan_lifecycle::{
    check::Problems,
    goal::ProviderGoal,
    release::{ReleaseNotice, Releases},
    upgrade::{
        self, Failed, Step, Stopped, UpgradeError, UpgradeEvent, UpgradeGoal, UpgradePolicy, UpgradeProblem,
        UpgradeRequest,
    },
};
use capstan_management::{ManagementCluster, ObjectRef, apply::ApplyEvent, inventory::Inventory};

use super::{failed, managed, print_warnings, warn_of_inventory};
use crate::{
    cli::{Globals, upgrade::ApplyArgs},
    commands::waiting,
    difference,
    error::CommandError,
    goals::{ProviderArgument, version_goal},
    hints::Hint,
    management::Management,
    operator::OperatorState,
    printer::Printer,
    progress::Progress,
    session::Session,
};

/// What an upgrade works with.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) args: &'a ApplyArgs,
    pub(super) session: &'a Session,
    pub(super) cluster: &'a ManagementCluster,
    pub(super) printer: Printer,
}

pub(super) async fn run(args: &ApplyArgs, globals: &Globals, printer: Printer) -> Result<(), CommandError> {
    let goal = upgrade_goal(args)?;
    let session = Session::open(globals, printer).await?;
    let management = Management::open(&args.kubeconfig).await?;
    let cluster = management.cluster();
    let (inventory, state) = futures::try_join!(Inventory::read(cluster), OperatorState::read(cluster))?;
    warn_of_inventory(&state.unmanaged(&inventory), printer);
    let scene = Scene { args, session: &session, cluster, printer };
    if !state.providers.is_empty() {
        return Box::pin(managed::run(scene, goal, &inventory, state)).await;
    }
    let report = |notice: ReleaseNotice<'_>| session.report(notice);
    replace(scene, goal, &inventory, &session.releases(&report)).await
}

/// Upgrades providers without the operator.
pub(super) async fn replace(
    scene: Scene<'_>,
    goal: UpgradeGoal,
    inventory: &Inventory,
    releases: &Releases<'_>,
) -> Result<(), CommandError> {
    let Scene { args, session, cluster, printer } = scene;
    printer.step("fetching the new releases, and having the server try them");
    let request = UpgradeRequest { goal, reapply: args.reapply, cert_manager: session.cert_manager()? };
    let plan = upgrade::plan(cluster, inventory, releases, &request).await;
    let plan = plan.map_err(|error| unchanged(failed(error, session)))?;
    print_warnings(plan.warnings(), printer);
    let policy = UpgradePolicy { allow_downgrade: args.allow_downgrade };
    let ready = plan.check(cluster, policy).map_err(|it| unchanged(refusal(it, session)))?;
    let plan = ready.plan();
    for provider in plan.up_to_date() {
        printer.done(&format!("{} is at {} already", provider.label(), provider.version));
    }
    if plan.is_empty() {
        printer.done("there is nothing to upgrade");
        return Ok(());
    }
    for note in plan.steps().iter().flat_map(|it| &it.notes) {
        printer.warn(note);
    }
    if args.preview.dry_run {
        let preview = ready.preview().await?;
        difference::print(&preview, args.preview.diff, args.preview.output, printer)?;
        return difference::refused(&preview).map_or(Ok(()), Err);
    }
    let progress = Progress::new(printer);
    let result = ready.run(&|event| report_progress(&event, printer, &progress)).await;
    result.map_err(|failure| stopped(failure, session))?;
    if args.wait_providers {
        waiting::for_releases(cluster, plan.steps().iter().map(|it| &it.to), limit(args), printer).await?;
    }
    if !plan.steps().is_empty() {
        printer.done(&summary(plan.steps()));
    }
    Ok(())
}

/// How long to wait for providers.
pub(super) fn limit(args: &ApplyArgs) -> Duration {
    Duration::from_secs(args.wait_provider_timeout)
}

/// A contract, or the versions that are named.
fn upgrade_goal(args: &ApplyArgs) -> Result<UpgradeGoal, CommandError> {
    const FLAGS: &str =
        "--core, --bootstrap, --control-plane, --infrastructure, --ipam, --runtime-extension, --addon";
    let goals = args.providers.named().map(|(kind, argument)| parse(kind, argument));
    let goals = goals.collect::<Result<Vec<_>, _>>()?;
    match (args.contract.as_deref().filter(|it| !it.is_empty()), goals.is_empty()) {
        (Some(contract), true) => Ok(UpgradeGoal::Contract(contract.to_owned())),
        (None, false) => Ok(UpgradeGoal::Versions(goals)),
        (Some(_), false) => {
            Err(CommandError::plain(format!("--contract cannot be used together with {FLAGS}"))
                .hint("name a contract or the versions of providers"))
        }
        (None, true) => Err(CommandError::plain("neither a contract nor a provider is named")
            .hint(format!("name a contract by --contract, or versions by {FLAGS}"))),
    }
}

/// `name:version`, or `namespace/name:version` for one of several instances.
fn parse(kind: ProviderType, argument: &str) -> Result<ProviderGoal, CommandError> {
    let (namespace, provider) = match argument.split_once('/') {
        Some((namespace, provider)) => (Some(namespace.to_owned()), provider),
        None => (None, argument),
    };
    let ProviderArgument { name, version } = ProviderArgument::parse(provider)?;
    if version.is_none() {
        let label = kind.label(&name);
        return Err(CommandError::plain(format!("provider {label} has no version to upgrade to"))
            .hint("write NAME:VERSION, or NAME:latest; upgrade plan shows the versions"));
    }
    Ok(ProviderGoal { kind, name, version: version_goal(version), namespace })
}

/// Everything that stands in the way, with what to do about it.
pub(super) fn refusal(Problems(problems): Problems<UpgradeProblem>, session: &Session) -> CommandError {
    let described = |problem: UpgradeProblem| match problem {
        UpgradeProblem::Release { label, source } => session.unusable_release_of(&label, *source),
        problem => CommandError::plain(problem.to_string()).hint_if(problem.hint()),
    };
    let mut problems: Vec<CommandError> = problems.into_iter().map(described).collect();
    if problems.len() == 1 {
        return problems.remove(0);
    }
    let mut error = CommandError::plain(format!("cannot upgrade: {} problems were found", problems.len()));
    let mut hints: Vec<String> = Vec::new();
    for CommandError { message, causes, hint } in problems {
        error.causes.push(message);
        error.causes.extend(causes);
        hints.extend(hint.filter(|it| !hints.contains(it)));
    }
    error.hint = Some(hints.join("\n")).filter(|it| !it.is_empty());
    error
}

pub(super) fn unchanged(error: CommandError) -> CommandError {
    CommandError { causes: [error.causes, vec!["nothing was changed".to_owned()]].concat(), ..error }
}

pub(super) fn report_progress(event: &UpgradeEvent<'_>, printer: Printer, progress: &Progress) {
    match event {
        UpgradeEvent::CertManager(step) => {
            printer.step(&format!("cert-manager: from {} to {}", step.from, step.manifest.version));
        }
        UpgradeEvent::CertManagerWaiting { reason } => {
            progress.waiting(&format!("waiting for cert-manager: {reason}"));
        }
        UpgradeEvent::CertManagerWorks(step) => {
            printer.progress_done();
            printer.done(&format!("cert-manager is at {}", step.manifest.version));
        }
        UpgradeEvent::Migrating(migration) => printer.step(&format!(
            "writing objects of {} as {}, since {} is being removed",
            migration.crd,
            migration.stored,
            migration.dropped.join(" and ")
        )),
        UpgradeEvent::Migrated { migration, count } => {
            printer.done(&format!("{count} objects of {} are stored as {}", migration.crd, migration.stored));
        }
        UpgradeEvent::Stopping(step) => {
            printer.step(&format!("{}: stopping {}", step.label(), step.from.version));
        }
        UpgradeEvent::Defining(step) => printer.step(&format!("{}: replacing its CRDs", step.label())),
        UpgradeEvent::Replacing(step) => {
            printer.step(&format!("{}: installing {}", step.label(), step.to.version));
        }
        UpgradeEvent::Applied(ApplyEvent::Retrying { reason, .. }) => {
            printer.warn(&format!("{reason}; retrying"));
        }
        UpgradeEvent::Applied(_) => {}
        UpgradeEvent::Pruning(step) => {
            let leftovers = &step.leftovers;
            if !leftovers.gone.is_empty() {
                let (label, count) = (step.label(), leftovers.gone.len());
                printer.step(&format!(
                    "{label}: deleting {count} objects that {} does not have",
                    step.to.version
                ));
            }
            for kept in &leftovers.kept {
                printer.warn(&stays(kept, step));
            }
        }
        UpgradeEvent::Kept { step, crd } => printer.warn(&stays(crd, step)),
        UpgradeEvent::Upgraded(step) => printer.done(&format!("{} is at {}", step.label(), step.to.version)),
        UpgradeEvent::Restored(step) => {
            printer.step(&format!("{}: its controllers were started again", step.label()));
        }
    }
}

fn stays(crd: &ObjectRef, step: &Step) -> String {
    format!("{crd} stays, though {} does not have it: there are objects of it", step.to.version)
}

/// What failed, what is done, and how to continue.
pub(super) fn stopped(failure: Failed, session: &Session) -> CommandError {
    let Failed { error, stopped, others, waiting, upgraded } = failure;
    let is_cut_off = matches!(error, UpgradeError::CutOff);
    let mut error = failed(error, session);
    if !upgraded.is_empty() {
        error.causes.push(format!("upgraded: {}", upgraded.join(", ")));
    }
    let mut ways = Vec::from_iter(error.hint.take());
    match (&stopped, is_cut_off) {
        (None, true) => {}
        (None, false) => error.causes.push("nothing was replaced".to_owned()),
        (Some(stopped), _) => error.causes.push(state(stopped, true)),
    }
    for (reason, stopped) in others {
        let other = failed(reason, session);
        error.causes.push(format!("{}: {}", state(&stopped, true), other.message));
        error.causes.extend(other.causes);
        ways.extend(other.hint);
    }
    error.causes.extend(waiting.iter().map(|it| state(it, false)));
    ways.push("once that is fixed, the same command continues from here".to_owned());
    error.hint(ways.join("; "))
}

/// What became of a provider, whether its own upgrade was begun or not.
fn state(stopped: &Stopped, is_begun: bool) -> String {
    let Stopped { label, is_defined, not_started, not_unmarked } = stopped;
    let (what, controllers) = if is_begun {
        (format!("the upgrade of {label} stopped"), "were started again")
    } else if *is_defined {
        (format!("of {label} only the CRDs were replaced"), "are as they were")
    } else {
        (format!("the upgrade did not come to {label}"), "are as they were")
    };
    match (not_started, not_unmarked) {
        (Some(reason), _) => format!(
            "{what}, and its controllers, which are at zero replicas, could not be started again: {reason}"
        ),
        (None, Some(reason)) => format!(
            "{what}; its controllers {controllers}, but it could not be unmarked as being upgraded: {reason}"
        ),
        (None, None) => format!("{what}; its controllers {controllers}"),
    }
}

fn summary(steps: &[Step]) -> String {
    let each: Vec<String> =
        steps.iter().map(|it| format!("{} {} → {}", it.label(), it.from.version, it.to.version)).collect();
    format!("upgraded {}", each.join(", "))
}
