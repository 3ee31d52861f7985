//! `capstan delete`: providers out of a management cluster.

mod managed;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use capstan_lifecycle::{
    check::{Problems, Ready},
    delete::{
        self, DeleteError, DeleteEvent, DeleteGoal, DeleteOptions, DeletePlan, DeletePolicy, DeleteProblem,
        DeleteTarget, Kept, Selection, WhyKept,
    },
    diff::Preview,
};
use capstan_management::{ManagementCluster, inventory::Inventory};

use crate::{
    cli::delete::DeleteArgs,
    commands::{generate::check_namespace, upgrade::warn_of_inventory},
    difference,
    error::CommandError,
    goals::ProviderArgument,
    hints::Hint,
    management::Management,
    operator::{self, OperatorState},
    printer::Printer,
};

pub(crate) async fn run(args: DeleteArgs, printer: Printer) -> Result<(), CommandError> {
    let selection = selection(&args)?;
    let management = Management::open(&args.kubeconfig).await?;
    let cluster = management.cluster();
    let (inventory, state) = futures::try_join!(Inventory::read(cluster), OperatorState::read(cluster))?;
    managed::refuse(&selection, &state)?;
    warn_of_inventory(&state.unmanaged(&inventory), printer);
    // An interrupted run may have left no more than the operator's namespace.
    let is_all = selection == Selection::All;
    if is_all && (state.is_in_charge() || management.has_namespace(operator::NAMESPACE).await?) {
        return Box::pin(managed::run(cluster, &inventory, state, &args, printer)).await;
    }
    let plan = delete::plan(cluster, &inventory, &selection, options(&args)).await.map_err(failed)?;
    let policy = DeletePolicy { force: args.force };
    if args.preview.dry_run {
        let preview = preview(cluster, &plan, &plan.problems(policy)).await?;
        return difference::print(&preview, args.preview.diff, args.preview.output, printer);
    }
    let ready = plan.check(cluster, policy).map_err(refusal)?;
    let plan = ready.plan();
    if plan.is_empty() {
        printer.done("there is nothing to delete");
        say_what_stays(plan, printer);
        return Ok(());
    }
    remove(&ready, printer).await
}

/// Deletes what a plan names, and says what stays.
async fn remove(ready: &Ready<DeletePlan>, printer: Printer) -> Result<(), CommandError> {
    let plan = ready.plan();
    for target in plan.targets().iter().filter(|it| !it.removals.is_empty()) {
        printer.step(&format!("deleting {}: {}", title(target), count(target.removals.len())));
    }
    carry_out(ready, printer).await?;
    printer.done(&format!("deleted {}", labels(plan)));
    say_what_stays(plan, printer);
    Ok(())
}

fn options(args: &DeleteArgs) -> DeleteOptions {
    DeleteOptions { include_namespace: args.include_namespace, include_crd: args.include_crd }
}

fn selection(args: &DeleteArgs) -> Result<Selection, CommandError> {
    check_namespace("--namespace", args.namespace.as_deref())?;
    let namespace = args.namespace.clone().filter(|it| !it.is_empty());
    let goals: Vec<DeleteGoal> = args
        .named()
        .map(|(kind, argument)| {
            let ProviderArgument { name, version } = ProviderArgument::parse(argument)?;
            Ok(DeleteGoal { kind, name, version, namespace: namespace.clone() })
        })
        .collect::<Result<_, CommandError>>()?;
    match (args.all, goals.is_empty()) {
        (true, true) if namespace.is_some() => Err(CommandError::plain(
            "--all means all providers, but --namespace means those of one namespace",
        )
        .hint("name the provider whose instance is in that namespace, e.g. by --infrastructure aws")),
        (true, true) => Ok(Selection::All),
        (false, false) => Ok(Selection::Named(goals)),
        (true, false) => Err(CommandError::plain("--all means all providers, but some are named as well")
            .hint("leave out either --all or the names")),
        (false, true) => Err(CommandError::plain("nothing says which providers to delete")
            .hint("name some, e.g. by --infrastructure aws, or use --all")),
    }
}

async fn carry_out(ready: &Ready<DeletePlan>, printer: Printer) -> Result<(), CommandError> {
    let deleted = AtomicUsize::new(0);
    let report = |event: DeleteEvent<'_>| match event {
        DeleteEvent::Stage { stage, count: number } => {
            printer.progress(&format!("{}: {}", stage.as_str(), count(number)));
        }
        DeleteEvent::Deleted(_) => drop(deleted.fetch_add(1, Ordering::Relaxed)),
        DeleteEvent::Retrying { reason, .. } => printer.warn(&format!("{reason}; retrying")),
    };
    let result = ready.run(&report).await;
    printer.progress_done();
    result.map_err(|error| {
        let mut error = failed(error);
        let before = count(deleted.load(Ordering::Relaxed));
        error.causes.push(format!("deleted {before} before that; the same command continues from there"));
        error
    })
}

/// What would be deleted, and what stands in the way.
async fn preview(
    cluster: &ManagementCluster,
    plan: &DeletePlan,
    problems: &[DeleteProblem],
) -> Result<Preview, CommandError> {
    let mut preview = plan.preview(cluster).await?;
    if !problems.is_empty() {
        let CommandError { message, causes, .. } = refusal(Problems(problems.to_vec()));
        let note = format!("without --dry-run this would be refused: {message}: {}", causes.join("; "));
        preview.notes.push(note);
    }
    preview.notes.extend(what_stays(plan));
    Ok(preview)
}

fn say_what_stays(plan: &DeletePlan, printer: Printer) {
    for line in what_stays(plan) {
        printer.note(&line);
    }
}

/// What outlives the providers, and how it would go.
fn what_stays(plan: &DeletePlan) -> Vec<String> {
    let mut reasons: BTreeMap<&WhyKept, Vec<String>> = BTreeMap::new();
    for Kept { object, why } in plan.targets().iter().flat_map(|it| &it.kept) {
        reasons.entry(why).or_default().push(object.to_string());
    }
    let line = |(why, objects): (&WhyKept, Vec<String>)| {
        let (objects, verb) = (objects.join(", "), if objects.len() == 1 { "stays" } else { "stay" });
        match why {
            WhyKept::Shared => format!("{objects} {verb}: --include-crd deletes what instances share"),
            WhyKept::OtherInstance(namespace) => {
                format!("{objects} {verb}: the instance in namespace {namespace} needs it")
            }
            WhyKept::Namespace => {
                format!("{objects} {verb}: --include-namespace deletes namespaces with all that is in them")
            }
            WhyKept::ForeignNamespace => format!("{objects} {verb}: not the provider's own namespace"),
            WhyKept::SharedWith(other) => format!("{objects} {verb}: {other} may share it"),
            WhyKept::OthersNamespace(other) => format!("{objects} {verb}: {other} is in it as well"),
            WhyKept::CommonNamespace => format!("{objects} {verb}: every cluster has it"),
            WhyKept::NotInstalled(label) => format!(
                "{objects} {verb}: labelled as {label}, but neither capstan nor clusterctl nor the operator installed \
                 it; to delete it, use kubectl delete"
            ),
        }
    };
    reasons.into_iter().map(line).collect()
}

fn title(target: &DeleteTarget) -> String {
    let entries: Vec<_> =
        target.entries.iter().map(|it| format!("{} in namespace {}", it.version, it.namespace)).collect();
    match entries.as_slice() {
        [] => format!("what is left of {}", target.label),
        entries => format!("{} {}", target.label, entries.join(", ")),
    }
}

fn labels(plan: &DeletePlan) -> String {
    let deleted = plan.targets().iter().filter(|it| !it.removals.is_empty());
    deleted.map(|it| it.label.as_str()).collect::<Vec<_>>().join(", ")
}

fn count(objects: usize) -> String {
    if objects == 1 { "1 object".to_owned() } else { format!("{objects} objects") }
}

fn texts(items: &[impl ToString]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

/// A deletion that failed, with a line for each kind of object that was created meanwhile.
fn failed(error: DeleteError) -> CommandError {
    let causes = match &error {
        DeleteError::MadeMeanwhile { usages } => texts(usages),
        _ => Vec::new(),
    };
    CommandError { causes, ..error.into() }
}

/// What stands in the way, with a line for each kind of object that still needs a provider.
fn refusal(Problems(problems): Problems<DeleteProblem>) -> CommandError {
    let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let mut error = CommandError::plain(messages.join("; "));
    for problem in problems {
        error = error.hint_if(problem.hint());
        error.causes.extend(match problem {
            DeleteProblem::InUse { usages, .. } => texts(&usages),
            DeleteProblem::Answered { objects, .. } => texts(&objects),
        });
    }
    error
}
