//! `capstan init` itself: providers into a management cluster.

use capstan_lifecycle::{
    cert_manager::Action,
    check::{Problems, Ready},
    install::{self, InstallError, InstallEvent, InstallPlan, InstallPolicy, InstallProblem, InstallRequest},
    release::ReleaseNotice,
};
use capstan_management::{ManagementCluster, inventory::Inventory};

use crate::{
    cli::{
        Globals,
        generate::ListFormat,
        init::{InstallArgs, ListImagesArgs},
    },
    commands::{generate::check_namespace, upgrade, waiting},
    difference,
    error::CommandError,
    goals::install_goals,
    hints::Hint,
    management::Management,
    operator::{OperatorProblem, OperatorState, ProviderObject},
    printer::Printer,
    program,
    progress::Progress,
    session::Session,
};

use super::{go_on, limit, refused};

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
    let (inventory, state) = futures::try_join!(Inventory::read(cluster), OperatorState::read(cluster))?;
    if state.is_in_charge() {
        let objects = state.providers.iter().map(ProviderObject::id).collect();
        return Err(OperatorProblem::InCharge { objects, named: asked.providers.named() }.into());
    }
    upgrade::warn_of_inventory(&inventory, printer);
    let plan = make_plan(args, asked, &session, cluster, &inventory).await?;
    let policy = InstallPolicy { validate: args.validate };
    let ready = plan.check(cluster, policy).map_err(|it| refusal(it, &session))?;
    for problem in ready.ignored() {
        printer.warn(&format!("ignored: {problem}"));
    }
    if args.dry_run {
        return difference::print(&ready.preview().await?, args.diff, asked.output, printer);
    }
    report_present(ready.plan(), printer);
    if ready.plan().is_empty() {
        printer.done("nothing to do: everything that is asked for is installed");
    } else {
        carry_out(&ready, printer).await?;
    }
    if args.wait_providers {
        waiting::for_plan(cluster, ready.plan(), limit, printer).await?;
    }
    if inventory.core().is_none() {
        say_what_next(printer);
    }
    Ok(())
}

async fn make_plan(
    args: &InstallArgs,
    asked: &ListImagesArgs,
    session: &Session,
    cluster: &ManagementCluster,
    inventory: &Inventory,
) -> Result<InstallPlan, CommandError> {
    let given = |flag: &Option<String>| flag.clone().filter(|it| !it.is_empty());
    let (is_first, namespace) = (inventory.core().is_none(), given(&args.target_namespace));
    let request = InstallRequest {
        providers: install_goals(&asked.providers.named(), is_first, namespace.as_deref())?,
        watching_namespace: given(&args.watching_namespace),
        rbac_prefix: args.rbac_prefix,
        cert_manager: session.cert_manager()?,
    };
    let report = |notice: ReleaseNotice<'_>| session.report(notice);
    session.printer.step("fetching providers");
    Ok(install::plan(cluster, inventory, &session.releases(&report), &request).await?)
}

fn refusal(Problems(problems): Problems<InstallProblem>, session: &Session) -> CommandError {
    refused(problems.into_iter().map(|it| described(it, session)).collect())
}

/// A problem in words, and what to do about it.
pub(super) fn described(problem: InstallProblem, session: &Session) -> (Vec<String>, Option<String>) {
    match problem {
        InstallProblem::Release { provider, error } => {
            let error = session.unusable_release_of(&provider, *error);
            ([error.message].into_iter().chain(error.causes).collect(), error.hint)
        }
        problem => (vec![problem.to_string()], problem.hint()),
    }
}

fn report_present(plan: &InstallPlan, printer: Printer) {
    for there in plan.present() {
        let (label, version, namespace) = (there.label(), &there.version, &there.namespace);
        let watches = there.watched_namespace.as_ref().map(|it| format!(" and watches namespace {it}"));
        let watches = watches.unwrap_or_default();
        printer.step(&format!("{label} {version} is installed in namespace {namespace} already{watches}"));
    }
}

async fn carry_out(ready: &Ready<InstallPlan>, printer: Printer) -> Result<(), CommandError> {
    let progress = Progress::new(printer);
    let plan = ready.plan();
    if let Action::Install { manifest, is_begun } = plan.cert_manager() {
        let verb = if *is_begun { "completing" } else { "installing" };
        printer.step(&format!("{verb} cert-manager {}", manifest.version));
    }
    for new in plan.queue() {
        let (label, namespace) = (new.provider.label(), &new.components.target_namespace);
        printer.step(&format!("installing {label} {} into namespace {namespace}", new.version));
    }
    let result = ready.run(&|event| report(&event, &progress)).await;
    progress.end();
    result.map_err(|error| unfinished(&error))
}

fn report(event: &InstallEvent<'_>, progress: &Progress) {
    match event {
        InstallEvent::Wave { wave, count } => {
            let name = if *count == 1 { wave.as_str().trim_end_matches('s') } else { wave.as_str() };
            progress.begin(wave.as_str(), &format!("applying {count} {name}"));
        }
        InstallEvent::Applied { part, done, all, .. } => progress.advance(*done, *all, part),
        InstallEvent::Retrying { reason, .. } => {
            progress.say(|printer| printer.warn(&format!("{reason}; retrying")));
        }
        InstallEvent::CertManagerWaiting { reason } => {
            progress.waiting(&format!("waiting for cert-manager: {reason}"));
        }
        InstallEvent::CertManagerWorks => progress.say(|printer| printer.done("cert-manager works")),
        InstallEvent::Installed(provider) => {
            let text = format!("installed {} {}", provider.label(), provider.version);
            progress.say(|printer| printer.done(&text));
        }
    }
}

/// What a failed installation has written, and how to continue.
fn unfinished(error: &InstallError) -> CommandError {
    let mut told = CommandError::plain(error.to_string()).hint(go_on(error.hint()));
    told.causes.push(format!("{} of {} objects were written before that", error.done, error.all));
    told
}

fn say_what_next(printer: Printer) {
    printer.done("the management cluster is ready; a first workload cluster is made like this:");
    let command = "generate cluster NAME --kubernetes-version VERSION | kubectl apply -f -";
    printer.step(&format!("{} {command}", program::name()));
}
