//! `capstan init` itself: providers into a management cluster.

use std::time::Duration;

use capstan_lifecycle::{
    cert_manager::Action,
    install::{self, InstallError, InstallEvent, InstallPlan, InstallProblem, queue::Request},
};
use capstan_management::ManagementCluster;

use crate::{
    cli::{
        Globals,
        generate::ListFormat,
        init::{InstallArgs, ListImagesArgs},
    },
    commands::{generate::check_namespace, upgrade, waiting},
    difference,
    error::CommandError,
    management::Management,
    printer::Printer,
    program,
    progress::Progress,
    session::Session,
};

pub(super) async fn run(
    args: &InstallArgs,
    asked: &ListImagesArgs,
    globals: &Globals,
    printer: Printer,
) -> Result<(), CommandError> {
    check_namespace("--target-namespace", args.target_namespace.as_deref())?;
    check_namespace("--watching-namespace", args.watching_namespace.as_deref())?;
    let limit = limit(args)?;
    if !args.dry_run && asked.output != ListFormat::Text {
        return Err(CommandError::plain("--output is for --dry-run and --list-images: init prints nothing"));
    }
    let session = Session::open(globals, printer).await?;
    let management = Management::open(&asked.kubeconfig).await?;
    let cluster = management.cluster();
    let mut plan = make_plan(args, asked, &session, cluster).await?;
    upgrade::tell_unfinished(cluster, printer).await?;
    if args.dry_run {
        return show(args, asked.output, &mut plan, &session, cluster).await;
    }
    if plan.is_nothing() {
        judge(&mut plan, args.validate, &session)?;
        tell_present(&plan, printer);
        printer.done("nothing to do: everything that is asked for is installed");
    } else {
        install::try_out(cluster, &mut plan).await?;
        judge(&mut plan, args.validate, &session)?;
        tell_present(&plan, printer);
        carry_out(cluster, &plan, printer).await?;
    }
    if args.wait_providers {
        waiting::for_plan(cluster, &plan, limit, printer).await?;
    }
    if plan.is_first {
        say_what_next(printer);
    }
    Ok(())
}

fn limit(args: &InstallArgs) -> Result<Duration, CommandError> {
    let seconds = u64::try_from(args.wait_provider_timeout);
    seconds.map(Duration::from_secs).map_err(|_| {
        CommandError::plain(format!("--wait-provider-timeout is {}", args.wait_provider_timeout))
            .hint("give a number of seconds that is not negative")
    })
}

async fn make_plan(
    args: &InstallArgs,
    asked: &ListImagesArgs,
    session: &Session,
    cluster: &ManagementCluster,
) -> Result<InstallPlan, CommandError> {
    let given = |flag: &Option<String>| flag.clone().filter(|it| !it.is_empty());
    let request = Request {
        providers: asked.providers.named(),
        target_namespace: given(&args.target_namespace),
        watching_namespace: given(&args.watching_namespace),
        rbac_prefix: args.rbac_prefix,
    };
    let cert_manager = session.config.cert_manager()?;
    let tell = |oddity: capstan_lifecycle::release::Oddity<'_>| session.tell(oddity);
    session.printer.step("fetching providers");
    let plan = install::plan(cluster, &session.releases(&tell), &cert_manager, &request).await;
    plan.map_err(|error| CommandError::plain(error.to_string()).hint_if(error.hint()))
}

/// Shows what would be done; problems are an error all the same.
async fn show(
    args: &InstallArgs,
    format: ListFormat,
    plan: &mut InstallPlan,
    session: &Session,
    cluster: &ManagementCluster,
) -> Result<(), CommandError> {
    let preview = install::preview(cluster, plan).await?;
    judge(plan, args.validate, session)?;
    difference::print(&preview, args.diff, format, session.printer)
}

/// Refuses a plan with problems. Where they are to be passed over they become warnings, as far as that is possible.
fn judge(plan: &mut InstallPlan, validate: bool, session: &Session) -> Result<(), CommandError> {
    let problems = std::mem::take(&mut plan.problems);
    let (passed_over, problems): (Vec<_>, Vec<_>) =
        problems.into_iter().partition(|it| !validate && it.can_be_ignored());
    for problem in passed_over {
        session.printer.warn(&format!("passed over: {problem}"));
    }
    if problems.is_empty() { Ok(()) } else { Err(refusal(problems, session)) }
}

fn refusal(problems: Vec<InstallProblem>, session: &Session) -> CommandError {
    let count = match problems.len() {
        1 => "1 problem was found".to_owned(),
        count => format!("{count} problems were found"),
    };
    let can_be_ignored = problems.iter().all(InstallProblem::can_be_ignored);
    let mut error = CommandError::plain(format!("cannot install: {count}; nothing was changed"));
    let mut hints: Vec<String> = Vec::new();
    for problem in problems {
        let (causes, hint) = told(problem, session);
        error.causes.extend(causes);
        hints.extend(hint.filter(|it| !hints.contains(it)));
    }
    if can_be_ignored {
        hints.push("--validate=false installs all the same".to_owned());
    }
    error.hint(hints.join("\n      "))
}

/// A problem in words, and what to do about it.
fn told(problem: InstallProblem, session: &Session) -> (Vec<String>, Option<String>) {
    match problem {
        InstallProblem::Release { provider, error } => {
            let error = session.unusable_release(*error);
            let first = format!("{provider}: {}", error.message);
            ([first].into_iter().chain(error.causes).collect(), error.hint)
        }
        problem => (vec![problem.to_string()], problem.hint()),
    }
}

fn tell_present(plan: &InstallPlan, printer: Printer) {
    for there in &plan.present {
        let (label, version, namespace) = (there.label(), &there.version, &there.namespace);
        printer.step(&format!("{label} {version} is in namespace {namespace} already"));
    }
}

async fn carry_out(
    cluster: &ManagementCluster,
    plan: &InstallPlan,
    printer: Printer,
) -> Result<(), CommandError> {
    let progress = Progress::new(printer);
    if let Action::Install { manifest, is_begun } = &plan.cert_manager {
        let verb = if *is_begun { "completing" } else { "installing" };
        printer.step(&format!("{verb} cert-manager {}", manifest.version));
    }
    for new in &plan.queue {
        let (label, namespace) = (new.provider.label(), &new.components.target_namespace);
        printer.step(&format!("installing {label} {} into namespace {namespace}", new.version));
    }
    let result = install::run(cluster, plan, &|event| tell(&event, &progress)).await;
    progress.end();
    result.map_err(|error| unfinished(&error))
}

fn tell(event: &InstallEvent<'_>, progress: &Progress) {
    match event {
        InstallEvent::Wave { wave, count } => {
            progress.begin(wave.as_str(), &format!("{}: {count} objects", wave.as_str()));
        }
        InstallEvent::Applied { part, done, all, .. } => progress.advance(*done, *all, part),
        InstallEvent::Retrying { reason, .. } => {
            progress.say(|printer| printer.warn(&format!("{reason}; trying again")));
        }
        InstallEvent::CertManagerWaiting { reason } => {
            progress.waiting(&format!("waiting for cert-manager: {reason}"));
        }
        InstallEvent::CertManagerWorks => progress.say(|printer| printer.done("cert-manager works")),
        InstallEvent::Installed(provider) => {
            let text = format!("{} {} is installed", provider.label(), provider.version);
            progress.say(|printer| printer.done(&text));
        }
    }
}

/// What is there of an installation that did not end, and how to go on.
fn unfinished(error: &InstallError) -> CommandError {
    let go_on = "the same command again completes what was begun";
    let mut told = CommandError::plain(error.to_string()).hint(match error.hint() {
        Some(hint) => format!("{hint}; then {go_on}"),
        None => go_on.to_owned(),
    });
    told.causes.push(format!("{} of {} objects were written before that", error.done, error.all));
    told
}

fn say_what_next(printer: Printer) {
    printer.done("the management cluster is ready; a first workload cluster is made like this:");
    let command = "generate cluster NAME --kubernetes-version VERSION | kubectl apply -f -";
    printer.step(&format!("{} {command}", program::name()));
}
