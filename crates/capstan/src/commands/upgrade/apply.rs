//! `capstan upgrade apply`: the upgrade itself.

use std::time::Duration;

use capstan_api::provider::ProviderType;
use capstan_lifecycle::{
    release::Oddity,
    upgrade::{self, Asked, Failed, Goal, Step, Stopped, UpgradeError, UpgradeEvent},
};
use capstan_management::{ObjectRef, apply};
use capstan_repository::ProviderArgument;

use super::{failed, tell_unfinished, tell_warnings};
use crate::{
    cli::{Globals, upgrade::ApplyArgs},
    commands::waiting,
    difference,
    error::CommandError,
    management::Management,
    printer::Printer,
    session::Session,
};

pub(super) async fn run(args: &ApplyArgs, globals: &Globals, printer: Printer) -> Result<(), CommandError> {
    let asked = asked(args)?;
    let session = Session::open(globals, printer).await?;
    let management = Management::open(&args.kubeconfig).await?;
    let cluster = management.cluster();
    tell_unfinished(cluster, printer).await?;
    let goal = args.contract.as_deref().map_or(Goal::Versions(&asked), Goal::Contract);
    let tell = |oddity: Oddity<'_>| session.tell(oddity);
    printer.step("fetching the new releases, and having the server try them");
    let prepared =
        upgrade::Upgrade::prepare(cluster, &session.releases(&tell), goal, args.allow_downgrade).await;
    let upgrade = prepared.map_err(|error| unchanged(failed(error, &session)))?;
    tell_warnings(&upgrade.warnings, printer);
    for provider in &upgrade.up_to_date {
        printer.done(&format!("{} is at {} already", provider.label(), provider.version));
    }
    if upgrade.is_empty() {
        printer.done("there is nothing to upgrade");
        return Ok(());
    }
    for note in upgrade.steps.iter().flat_map(|it| &it.notes) {
        printer.warn(note);
    }
    if args.preview.dry_run {
        let preview = upgrade.preview(cluster).await?;
        difference::print(&preview, args.preview.diff, args.preview.output, printer)?;
        return difference::refused(&preview).map_or(Ok(()), Err);
    }
    let result = upgrade.carry_out(cluster, &|event| tell_progress(&event, printer)).await;
    result.map_err(|failure| stopped(failure, &session))?;
    if args.wait_providers {
        let limit = Duration::from_secs(args.wait_provider_timeout);
        waiting::for_releases(cluster, upgrade.steps.iter().map(|it| &it.to), limit, printer).await?;
    }
    if !upgrade.steps.is_empty() {
        printer.done(&summary(&upgrade.steps));
    }
    Ok(())
}

/// The versions that are named, unless a contract is.
fn asked(args: &ApplyArgs) -> Result<Vec<Asked>, CommandError> {
    const FLAGS: &str =
        "--core, --bootstrap, --control-plane, --infrastructure, --ipam, --runtime-extension, --addon";
    let asked = args.providers.named().map(|(kind, argument)| parse(kind, argument));
    let asked = asked.collect::<Result<Vec<_>, _>>()?;
    let has_contract = args.contract.as_deref().is_some_and(|it| !it.is_empty());
    match (has_contract, asked.is_empty()) {
        (true, true) | (false, false) => Ok(asked),
        (true, false) => Err(CommandError::plain(format!("--contract cannot be used together with {FLAGS}"))
            .hint("name a contract or the versions of providers")),
        (false, true) => Err(CommandError::plain("neither a contract nor a provider is named")
            .hint(format!("name a contract by --contract, or versions by {FLAGS}"))),
    }
}

/// `name:version`, or `namespace/name:version` as it was written once.
fn parse(kind: ProviderType, argument: &str) -> Result<Asked, CommandError> {
    let (namespace, provider) = match argument.split_once('/') {
        Some((namespace, provider)) => (Some(namespace.to_owned()), provider),
        None => (None, argument),
    };
    let ProviderArgument { name, version } = ProviderArgument::parse(provider)?;
    if version.is_none() {
        let error = UpgradeError::NoVersion { label: kind.label(&name) };
        return Err(CommandError::plain(error.to_string()).hint_if(error.hint()));
    }
    Ok(Asked { kind, name, namespace, version })
}

fn unchanged(error: CommandError) -> CommandError {
    CommandError { causes: [error.causes, vec!["nothing was changed".to_owned()]].concat(), ..error }
}

fn tell_progress(event: &UpgradeEvent<'_>, printer: Printer) {
    match event {
        UpgradeEvent::CertManager(step) => {
            printer.step(&format!("cert-manager: from {} to {}", step.from, step.manifest.version));
        }
        UpgradeEvent::CertManagerWaiting { reason } if printer.is_interactive() => {
            printer.progress(&format!("waiting for cert-manager: {reason}"));
        }
        UpgradeEvent::CertManagerWorks(step) => {
            printer.progress_done();
            printer.done(&format!("cert-manager is at {}", step.manifest.version));
        }
        UpgradeEvent::Migrating(migration) => printer.step(&format!(
            "writing objects of {} as {}, since {} will be gone",
            migration.crd,
            migration.stored,
            migration.dropped.join(" and ")
        )),
        UpgradeEvent::Migrated { migration, count } => {
            printer.done(&format!("{count} objects of {} are stored as {}", migration.crd, migration.stored));
        }
        UpgradeEvent::Stopping(step) => {
            printer.step(&format!("{}: stopping {}", step.label(), step.from.version))
        }
        UpgradeEvent::Defining(step) => printer.step(&format!("{}: replacing its CRDs", step.label())),
        UpgradeEvent::Replacing(step) => {
            printer.step(&format!("{}: installing {}", step.label(), step.to.version))
        }
        UpgradeEvent::Applied(apply::ApplyEvent::Retrying { reason, .. }) => {
            printer.warn(&format!("{reason}; trying again"));
        }
        UpgradeEvent::Applied(_) | UpgradeEvent::CertManagerWaiting { .. } => {}
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

/// What failed, what is done, and how to go on.
fn stopped(failure: Failed, session: &Session) -> CommandError {
    let Failed { error, stopped, others, waiting, upgraded } = failure;
    let mut error = failed(error, session);
    if !upgraded.is_empty() {
        error.causes.push(format!("upgraded: {}", upgraded.join(", ")));
    }
    let mut ways = Vec::from_iter(error.hint.take());
    error.causes.push(match &stopped {
        None => "nothing was replaced".to_owned(),
        Some(stopped) => state(stopped, true),
    });
    for (reason, stopped) in others {
        let other = failed(reason, session);
        error.causes.push(format!("{}: {}", state(&stopped, true), other.message));
        error.causes.extend(other.causes);
        ways.extend(other.hint);
    }
    error.causes.extend(waiting.iter().map(|it| state(it, false)));
    ways.push("once that is mended, the same command goes on from here".to_owned());
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
