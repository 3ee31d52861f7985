//! `capstan delete` where the provider operator manages providers: their objects first, the operator last.

use std::time::Duration;

use capstan_api::{
    operator::{GROUP, annotation::FORCE_DELETE},
    provider::ProviderType,
};
use capstan_lifecycle::{
    check::Problems,
    delete::{self, DeletePolicy, DeleteProblem, Selection},
    diff::{self, Intent},
};
use capstan_management::{
    Kind, ManagementCluster, ObjectRef, ServerError, error,
    inventory::Inventory,
    retry::{Backoff, Wait},
    sweep::{self, Component},
};

use super::{failed, options, preview, refusal, remove, say_what_stays};
use crate::{
    cli::delete::DeleteArgs,
    difference,
    error::CommandError,
    operator::{
        COMPONENT, InstalledOperator, OperatorProblem, OperatorState, ProviderObject,
        draft::{INPUT_LABEL, is_input},
        edit::{self, Change},
        judge, setup,
        state::kind_of,
    },
    printer::Printer,
    progress::Progress,
};

/// How long the operator may take to delete providers.
const LIMIT: Duration = Duration::from_mins(5);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));

/// Refuses to delete named providers behind the operator's back.
pub(super) fn refuse(selection: &Selection, state: &OperatorState) -> Result<(), OperatorProblem> {
    let Selection::Named(goals) = selection else { return Ok(()) };
    let found: Vec<&ProviderObject> = goals.iter().filter_map(|it| state.find(it.kind, &it.name)).collect();
    if found.is_empty() {
        return Ok(());
    }
    let labels = found.iter().map(|it| it.label()).collect();
    Err(OperatorProblem::Managed { labels, objects: found.into_iter().map(ProviderObject::id).collect() })
}

/// Deletes everything.
pub(super) async fn run(
    cluster: &ManagementCluster,
    inventory: &Inventory,
    mut state: OperatorState,
    args: &DeleteArgs,
    printer: Printer,
) -> Result<(), CommandError> {
    let (selection, options) = (Selection::All, options(args));
    let policy = DeletePolicy { force: args.force };
    let plan = delete::plan(cluster, inventory, &selection, options).await.map_err(failed)?;
    let problems = problems(plan.problems(policy));
    let (mut components, kept) =
        setup::removals(setup::installed(cluster).await?, args.include_crd, args.include_namespace);
    if state.operator.as_ref().is_none_or(InstalledOperator::is_own) {
        // Last: a Pod that still ends has no rights any more to make them again.
        components.extend(setup::made(cluster).await?);
    }
    if args.preview.dry_run {
        let mut preview = preview(cluster, &plan, &problems).await?;
        let objects = components_of(&state);
        let intents = [("provider objects", &objects), (COMPONENT, &components)];
        let intents = intents.map(|(provider, removed)| Intent { provider, wanted: Vec::new(), removed });
        let more = diff::preview(cluster, &intents).await?;
        let is_something = |it: &diff::ProviderPreview| !it.objects.is_empty();
        preview.providers.extend(more.providers.into_iter().filter(is_something));
        preview.notes.extend(kept.iter().map(stays));
        return difference::print(&preview, args.preview.diff, args.preview.output, printer);
    }
    if !problems.is_empty() {
        return Err(refusal(Problems(problems)));
    }
    delete_objects(cluster, &mut state, args.force, printer).await?;
    let inputs = inputs(cluster).await?;
    if !inputs.is_empty() {
        printer.step(&format!("deleting {} Secrets and ConfigMaps of provider objects", inputs.len()));
        setup::remove(cluster, &inputs).await?;
    }
    // The operator took much of it away.
    cluster.refresh_kinds().await?;
    let inventory = Inventory::read(cluster).await?;
    let plan = delete::plan(cluster, &inventory, &selection, options).await.map_err(failed)?;
    let is_nothing = plan.is_empty() && components.is_empty();
    let ready = plan.check(cluster, policy).map_err(refusal)?;
    if ready.plan().is_empty() {
        say_what_stays(ready.plan(), printer);
    } else {
        remove(&ready, printer).await?;
    }
    if is_nothing {
        printer.done("there is nothing to delete");
    } else if !components.is_empty() {
        printer.step(&format!("deleting the provider operator: {}", super::count(components.len())));
        setup::remove(cluster, &components).await?;
        printer.done("deleted the provider operator");
    }
    for object in &kept {
        printer.note(&stays(object));
    }
    if let Some(helms) = state.operator.as_ref().filter(|it| it.managed_by.is_some()) {
        printer
            .note(&format!("the provider operator stays: helm uninstall -n {} deletes it", helms.namespace));
    }
    Ok(())
}

/// What stands in the way, but for the provider objects: they go first.
fn problems(found: Vec<DeleteProblem>) -> Vec<DeleteProblem> {
    let without_objects = |problem: DeleteProblem| match problem {
        DeleteProblem::InUse { mut usages, include_crd } => {
            usages.retain(|it| it.group != GROUP);
            (!usages.is_empty()).then_some(DeleteProblem::InUse { usages, include_crd })
        }
        problem @ DeleteProblem::Answered { .. } => Some(problem),
    };
    found.into_iter().filter_map(without_objects).collect()
}

fn stays(object: &ObjectRef) -> String {
    let flag = if object.kind == "Namespace" { "--include-namespace" } else { "--include-crd" };
    format!("{object} stays: {flag} deletes it")
}

/// The provider objects, as what is deleted.
fn components_of(state: &OperatorState) -> Vec<Component> {
    let component = |object: &ProviderObject| {
        let metadata = kube::core::ObjectMeta {
            name: Some(object.name.clone()),
            namespace: Some(object.namespace.clone()),
            ..Default::default()
        };
        sweep::component(&kind_of(object.kind), metadata)
    };
    state.providers.iter().map(component).collect()
}

/// Deletes all provider objects, core's last, and waits until the operator has deleted the providers.
async fn delete_objects(
    cluster: &ManagementCluster,
    state: &mut OperatorState,
    force: bool,
    printer: Printer,
) -> Result<(), CommandError> {
    if state.providers.is_empty() {
        return Ok(());
    }
    let progress = Progress::new(printer);
    let mut result = Ok(());
    for is_core in [false, true] {
        result = delete_group(cluster, state, is_core, force, &progress).await;
        if result.is_err() {
            break;
        }
    }
    progress.end();
    result?;
    printer.done("deleted all provider objects");
    Ok(())
}

async fn delete_group(
    cluster: &ManagementCluster,
    state: &mut OperatorState,
    is_core: bool,
    force: bool,
    progress: &Progress,
) -> Result<(), CommandError> {
    let mut wait = Wait::new(BACKOFF, LIMIT);
    loop {
        match step(cluster, state, is_core, force, progress).await {
            Ok(left) if left.is_empty() => return Ok(()),
            Ok(left) => {
                let blocked: Vec<_> =
                    left.iter().filter_map(|it| Some((it.id(), judge::deletion_blocked(it)?))).collect();
                if !force && blocked.len() == left.len() {
                    return Err(refused(&blocked));
                }
                if wait.is_over() {
                    return Err(too_late(&left, state));
                }
                let reason = left.first().map(waits_for).unwrap_or_default();
                progress.waiting(&format!("{} not deleted yet; {reason}", left.len()));
            }
            Err(error) if error::is_transient(&error.source) && !wait.is_over() => {
                progress.waiting(&error.to_string());
            }
            Err(error) => return Err(error.into()),
        }
        wait.pause().await;
    }
}

/// Deletes what is not being deleted yet, and gives back what is left.
async fn step(
    cluster: &ManagementCluster,
    state: &mut OperatorState,
    is_core: bool,
    force: bool,
    progress: &Progress,
) -> Result<Vec<ProviderObject>, ServerError> {
    state.refresh(cluster).await?;
    let meant = state.providers.iter().filter(|it| (it.kind == ProviderType::Core) == is_core);
    let left: Vec<ProviderObject> = meant.cloned().collect();
    for object in &left {
        let is_forced = object.annotations.get(FORCE_DELETE).is_some_and(|it| it == "true");
        if force && !is_forced && !edit::edit(cluster, object, &Change::ForceDelete).await? {
            // It changed meanwhile, and is looked at again.
            continue;
        }
        if !object.is_deleting {
            let text = format!("deleting {}", object.id());
            progress.say(|printer| printer.step(&text));
            edit::delete(cluster, object).await?;
        }
    }
    Ok(left)
}

fn waits_for(object: &ProviderObject) -> String {
    match judge::deletion_blocked(object) {
        Some(reason) => format!("{}: {reason}", object.id()),
        None => format!("waiting for {}", object.id()),
    }
}

fn refused(blocked: &[(ObjectRef, String)]) -> CommandError {
    let objects =
        if blocked.len() == 1 { "a provider".to_owned() } else { format!("{} providers", blocked.len()) };
    let mut error = CommandError::plain(format!("the operator does not delete {objects} that is still used"))
        .hint(
            "delete what uses it, and the operator goes on by itself; --force deletes the providers anyway",
        );
    error.causes = blocked.iter().map(|(object, reason)| format!("{object}: {reason}")).collect();
    error
}

fn too_late(left: &[ProviderObject], state: &OperatorState) -> CommandError {
    let count =
        if left.len() == 1 { "1 object is".to_owned() } else { format!("{} objects are", left.len()) };
    let mut error = CommandError::plain(format!("{count} still there after {} s", LIMIT.as_secs()))
        .hint("the same command continues from here");
    error.causes = left.iter().map(waits_for).collect();
    if !state.operator.as_ref().is_some_and(|it| it.is_available) {
        error
            .causes
            .push("the provider operator does not run: nothing else deletes the providers".to_owned());
    }
    error
}

/// What was made from a local configuration for provider objects.
async fn inputs(cluster: &ManagementCluster) -> Result<Vec<Component>, ServerError> {
    let may_be_input = |kind: &Kind| {
        kind.resource.group.is_empty() && matches!(kind.resource.kind.as_str(), "Secret" | "ConfigMap")
    };
    let mut found = sweep::sweep_kinds(cluster, INPUT_LABEL, may_be_input).await?;
    found.retain(|it| is_input(&it.metadata));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use capstan_lifecycle::delete::{DeleteGoal, Usage};
    use serde_json::{Value, json};

    use super::*;
    use crate::operator::state::tests::object;

    #[test]
    fn a_managed_provider_is_not_deleted_by_name() {
        let kind = ProviderType::Infrastructure;
        let state =
            OperatorState { operator: None, providers: vec![object(kind, "acme", json!({}), json!({}))] };
        let named = |name: &str| {
            let goal = DeleteGoal { kind, name: name.to_owned(), version: None, namespace: None };
            refuse(&Selection::Named(vec![goal]), &state).map_err(|it| it.to_string())
        };
        let expected = "infrastructure-acme is managed by the provider operator: InfrastructureProvider \
                        acme-system/acme; nothing was deleted";
        assert_eq!(named("acme"), Err(expected.to_owned()));
        assert_eq!(named("other"), Ok(()));
        assert_eq!(refuse(&Selection::All, &state), Ok(()));
    }

    #[test]
    fn provider_objects_do_not_stand_in_their_own_way() {
        let usage = |group: &str| Usage {
            kind: "K".to_owned(),
            group: group.to_owned(),
            count: 1,
            first: vec!["a/b".to_owned()],
            unreadable: None,
            is_of_own_kind: false,
        };
        let in_use = |usages: Vec<Usage>| DeleteProblem::InUse { usages, include_crd: false };
        assert!(problems(vec![in_use(vec![usage(GROUP)])]).is_empty());
        let both = vec![usage(GROUP), usage("cluster.x-k8s.io")];
        assert_eq!(problems(vec![in_use(both)]), [in_use(vec![usage("cluster.x-k8s.io")])]);
    }

    #[test]
    fn a_users_copy_of_a_secret_stays() {
        let secret = |manager: &str, field: &str| {
            let fields = json!({"f:metadata": {"f:labels": {field: {}}}});
            let metadata: Value = json!({"name": "s", "managedFields":
                [{"manager": manager, "operation": "Apply", "fieldsV1": fields}]});
            serde_json::from_value(metadata).unwrap()
        };
        let label = "f:management.cluster.x-k8s.io/provider";
        assert!(is_input(&secret("capstan", label)));
        assert!(!is_input(&secret("kubectl", label)));
        assert!(!is_input(&secret("capstan", "f:mine")));
    }
}
