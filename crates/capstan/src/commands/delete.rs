//! `capstan delete`: providers out of a management cluster.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use capstan_lifecycle::{
    delete::{
        self, Asked, DeleteError, DeleteEvent, DeletePlan, DeleteTarget, Kept, Options, Selection, WhyKept,
    },
    diff::{self, Handling, Intent},
};
use capstan_management::ManagementCluster;
use capstan_repository::ProviderArgument;

use crate::{
    cli::{delete::DeleteArgs, preview::PreviewArgs},
    difference,
    error::CommandError,
    management::Management,
    printer::Printer,
};

pub(crate) async fn run(args: DeleteArgs, printer: Printer) -> Result<(), CommandError> {
    let selection = selection(&args)?;
    let options = Options { include_namespace: args.include_namespace, include_crd: args.include_crd };
    let management = Management::open(&args.kubeconfig).await?;
    let cluster = management.cluster();
    let plan = delete::plan(cluster, &selection, options).await.map_err(refusal)?;
    if args.preview.dry_run {
        return show(cluster, &plan, &args, printer).await;
    }
    if plan.is_empty() {
        printer.done("There is nothing to delete");
        say_what_stays(&plan, printer);
        return Ok(());
    }
    if let Some(objection) = plan.objection(args.force) {
        return Err(refusal(objection));
    }
    for target in plan.targets.iter().filter(|it| !it.removals.is_empty()) {
        printer.step(&format!("Deleting {}: {}", title(target), count(target.removals.len())));
    }
    carry_out(cluster, &plan, args.force, printer).await?;
    printer.done(&format!("Deleted {}", labels(&plan)));
    say_what_stays(&plan, printer);
    Ok(())
}

fn selection(args: &DeleteArgs) -> Result<Selection, CommandError> {
    let asked: Vec<Asked> = args
        .named()
        .map(|(kind, argument)| {
            let ProviderArgument { name, version } = ProviderArgument::parse(argument)?;
            Ok(Asked { kind, name, version })
        })
        .collect::<Result<_, CommandError>>()?;
    match (args.all, asked.is_empty()) {
        (true, true) => Ok(Selection::All),
        (false, false) => Ok(Selection::Named(asked)),
        (true, false) => Err(CommandError::plain("--all means all providers, but some are named as well")
            .hint("leave out either --all or the names")),
        (false, true) => Err(CommandError::plain("nothing says which providers to delete")
            .hint("name some, e.g. by --infrastructure aws, or use --all")),
    }
}

async fn carry_out(
    cluster: &ManagementCluster,
    plan: &DeletePlan,
    force: bool,
    printer: Printer,
) -> Result<(), CommandError> {
    let deleted = AtomicUsize::new(0);
    let tell = |event: DeleteEvent<'_>| match event {
        DeleteEvent::Stage { stage, count: number } => {
            printer.progress(&format!("{}: {}", stage.as_str(), count(number)));
        }
        DeleteEvent::Deleted(_) => drop(deleted.fetch_add(1, Ordering::Relaxed)),
        DeleteEvent::Retrying { reason, .. } => printer.warn(&format!("{reason}; trying again")),
    };
    let result = delete::delete(cluster, plan, force, &tell).await;
    printer.progress_done();
    result.map_err(|error| {
        let mut error = refusal(error);
        let before = count(deleted.load(Ordering::Relaxed));
        error.causes.push(format!("{before} went before that; the same command goes on from there"));
        error
    })
}

/// Shows what would be done, and what speaks against it.
async fn show(
    cluster: &ManagementCluster,
    plan: &DeletePlan,
    args: &DeleteArgs,
    printer: Printer,
) -> Result<(), CommandError> {
    let removed: Vec<_> = plan.targets.iter().map(DeleteTarget::components).collect();
    let intents: Vec<_> = plan
        .targets
        .iter()
        .zip(&removed)
        .map(|(target, removed)| Intent {
            provider: &target.label,
            wanted: &[],
            removed,
            handling: Handling::Applied,
        })
        .collect();
    let mut preview = diff::preview(cluster, &intents).await?;
    if let Some(objection) = plan.objection(args.force).map(refusal) {
        let CommandError { message, causes, .. } = objection;
        let note = format!("without --dry-run this would be refused: {message}: {}", causes.join("; "));
        preview.notes.push(note);
    }
    preview.notes.extend(what_stays(plan));
    let PreviewArgs { diff, output, .. } = args.preview;
    difference::print(&preview, diff, output, printer)
}

fn say_what_stays(plan: &DeletePlan, printer: Printer) {
    for line in what_stays(plan) {
        printer.note(&line);
    }
}

/// What outlives the providers, and how it would go.
fn what_stays(plan: &DeletePlan) -> Vec<String> {
    let mut reasons: BTreeMap<&WhyKept, Vec<String>> = BTreeMap::new();
    for Kept { object, why } in plan.targets.iter().flat_map(|it| &it.kept) {
        reasons.entry(why).or_default().push(object.to_string());
    }
    let line = |(why, objects): (&WhyKept, Vec<String>)| {
        let (objects, verb) = (objects.join(", "), if objects.len() == 1 { "stays" } else { "stay" });
        match why {
            WhyKept::Shared => format!("{objects} {verb}: --include-crd deletes what instances share"),
            WhyKept::Namespace => {
                format!("{objects} {verb}: --include-namespace deletes namespaces with all that is in them")
            }
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
    let deleted = plan.targets.iter().filter(|it| !it.removals.is_empty());
    deleted.map(|it| it.label.as_str()).collect::<Vec<_>>().join(", ")
}

fn count(objects: usize) -> String {
    if objects == 1 { "1 object".to_owned() } else { format!("{objects} objects") }
}

/// What to tell of an error; those who still need a provider get a line a kind.
fn refusal(error: DeleteError) -> CommandError {
    let mut told = CommandError::plain(error.to_string()).hint_if(error.hint());
    if let DeleteError::InUse { usages, .. } | DeleteError::MadeMeanwhile { usages } = error {
        told.causes = usages.iter().map(ToString::to_string).collect();
    }
    told
}
