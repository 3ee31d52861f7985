//! `capstan upgrade operator`: the provider operator to the version of this program.

use std::{cmp::Ordering, time::Duration};

use capstan_lifecycle::diff::{self, Intent};
use capstan_management::{
    ManagementCluster, ObjectRef,
    apply::{self, ApplyEvent},
    sweep::Component,
};
use serde_json::Value;

use crate::{
    cli::{Globals, upgrade::OperatorArgs},
    commands::{version::VERSION, waiting},
    difference,
    error::CommandError,
    management::Management,
    operator::{self, COMPONENT, InstalledOperator, OperatorProblem, setup},
    printer::Printer,
    session::Session,
};

pub(super) async fn run(
    args: &OperatorArgs,
    globals: &Globals,
    printer: Printer,
) -> Result<(), CommandError> {
    let session = Session::open(globals, printer).await?;
    let image = operator::image(args.operator_image.as_deref(), &session.config.images()?)?;
    let management = Management::open(&args.kubeconfig).await?;
    let cluster = management.cluster();
    let found = InstalledOperator::find(cluster).await?.ok_or(OperatorProblem::NoOperator)?;
    check(&found)?;
    let manifest = operator::components(&image);
    let (gone, kept) = setup::stale(setup::installed(cluster).await?, &manifest);
    if args.preview.dry_run {
        let wanted = manifest.iter().collect();
        let mut preview =
            diff::preview(cluster, &[Intent { provider: COMPONENT, wanted, removed: &gone }]).await?;
        preview.notes.extend(kept.iter().map(stays));
        difference::print(&preview, args.preview.diff, args.preview.output, printer)?;
        return difference::refused(&preview).map_or(Ok(()), Err);
    }
    let from = found.shown_version();
    printer.step(&match setup::age(&found) {
        Some(Ordering::Equal) => format!("the provider operator is {VERSION} already; applying it again"),
        _ => format!("upgrading the provider operator from {from} to {VERSION}"),
    });
    replace(cluster, &manifest, &gone, printer).await.map_err(|error| {
        let again = "the same command again goes on from here";
        let hint = error.hint.as_ref().map_or_else(|| again.to_owned(), |it| format!("{it}; then {again}"));
        error.hint(hint)
    })?;
    for object in &kept {
        printer.note(&stays(object));
    }
    printer.done(&format!("the provider operator is {VERSION}"));
    if args.wait {
        let limit = Duration::from_secs(args.wait_timeout);
        waiting::for_operator(cluster, (&found.namespace, &found.name), limit, printer).await?;
    }
    Ok(())
}

/// Refuses what this program cannot upgrade: the operator of another program's making, and a newer one.
fn check(found: &InstalledOperator) -> Result<(), OperatorProblem> {
    if !found.is_own() {
        let by = found.managed_by.clone().unwrap_or_else(|| "another program".to_owned());
        let (namespace, name) = (found.namespace.clone(), found.name.clone());
        return Err(OperatorProblem::Foreign { namespace, name, by });
    }
    if setup::age(found) == Some(Ordering::Greater) {
        return Err(OperatorProblem::OperatorDowngrade { installed: found.shown_version().to_owned() });
    }
    Ok(())
}

async fn replace(
    cluster: &ManagementCluster,
    manifest: &[Value],
    gone: &[Component],
    printer: Printer,
) -> Result<(), CommandError> {
    let report = |event: ApplyEvent<'_>| {
        if let ApplyEvent::Retrying { reason, .. } = event {
            printer.warn(&format!("{reason}; retrying"));
        }
    };
    apply::apply(cluster, manifest, &report).await?;
    for component in gone {
        printer.step(&format!("deleting {}, which {VERSION} does not have", component.id));
    }
    Ok(setup::remove(cluster, gone).await?)
}

fn stays(object: &ObjectRef) -> String {
    format!("{object} stays, though {VERSION} does not have it: objects of users would go with it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::{DEPLOYMENT, NAMESPACE};

    #[test]
    fn only_an_older_operator_of_our_own_is_upgraded() {
        let operator = |namespace: &str, version: &str, managed_by: Option<&str>| InstalledOperator {
            namespace: namespace.to_owned(),
            name: DEPLOYMENT.to_owned(),
            version: Some(version.to_owned()),
            is_available: true,
            managed_by: managed_by.map(str::to_owned),
        };
        for (found, expected) in [
            (operator(NAMESPACE, "v0.0.1", None), None),
            (operator(NAMESPACE, VERSION, None), None),
            (operator(NAMESPACE, "dev", None), None),
            (operator(NAMESPACE, "v999.0.0", None), Some("newer than this program")),
            (operator(NAMESPACE, "v0.0.1", Some("Helm")), Some("which Helm manages")),
            (
                operator("mine", "v0.0.1", None),
                Some("mine/capstan-operator-controller-manager, which another"),
            ),
        ] {
            let problem = check(&found).err().map(|it| it.to_string());
            let is_expected = match (expected, &problem) {
                (None, None) => true,
                (Some(words), Some(problem)) => problem.contains(words),
                _ => false,
            };
            assert!(is_expected, "{found:?}: {problem:?}");
        }
    }
}
