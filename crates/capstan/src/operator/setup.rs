//! The operator's components in a cluster: whether they are there, older or newer, and what an upgrade leaves over.

use std::{cmp::Ordering, collections::BTreeSet};

use capstan_api::names::label;
use capstan_components::operator::WEBHOOK_SERVICE;
use capstan_management::{
    Identity, Kind, ManagementCluster, ObjectRef, REQUESTS_AT_ONCE, ServerError,
    apply::Wave,
    error,
    sweep::{self, Component},
};
use capstan_operator::LEASE;
use capstan_repository::Version;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::{COMPONENT, CORE_LABEL, InstalledOperator, NAME_LABEL, NAMESPACE, OperatorProblem};
use crate::commands::version::VERSION;

/// What is to be done about the operator before provider objects are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setup {
    /// It is not there.
    Install,
    /// An interrupted run left a part of it.
    Complete,
    /// It is there.
    Present,
}

/// What is to be done; `is_whole` says whether all objects of this version's manifest exist.
pub(crate) fn decide(found: Option<&InstalledOperator>, is_whole: bool) -> Result<Setup, OperatorProblem> {
    let Some(found) = found else { return Ok(Setup::Install) };
    check_version(found)?;
    let is_ours = found.is_own() && age(found) == Some(Ordering::Equal);
    Ok(if is_ours && !is_whole { Setup::Complete } else { Setup::Present })
}

/// Refuses an operator of another minor version: it may not know what this program writes, or the other way round.
pub(crate) fn check_version(found: &InstalledOperator) -> Result<(), OperatorProblem> {
    let versions = found.version.as_deref().map(Version::parse).zip(Some(Version::parse(VERSION)));
    let Some((Ok(installed), Ok(own))) = versions else { return Ok(()) };
    if (installed.major(), installed.minor()) == (own.major(), own.minor()) {
        return Ok(());
    }
    let is_newer = installed.is_newer_than(&own);
    Err(OperatorProblem::OperatorVersion { installed: found.shown_version().to_owned(), is_newer })
}

/// How an operator's version compares with this program's; none where it has none.
pub(crate) fn age(found: &InstalledOperator) -> Option<Ordering> {
    let (installed, own) = (Version::parse(found.version.as_deref()?).ok()?, Version::parse(VERSION).ok()?);
    Some(if installed.is_newer_than(&own) {
        Ordering::Greater
    } else if own.is_newer_than(&installed) {
        Ordering::Less
    } else {
        Ordering::Equal
    })
}

/// Whether every object of a manifest exists.
pub(crate) async fn is_whole(cluster: &ManagementCluster, manifest: &[Value]) -> Result<bool, ServerError> {
    let kinds = cluster.kinds().await?;
    let looks = manifest.iter().map(async |object| {
        let id = ObjectRef::of(object);
        let Some(kind) = kinds.of(object) else { return Ok(false) };
        match cluster.objects(kind, id.namespace.as_deref()).get_metadata_opt(&id.name).await {
            Ok(found) => Ok(found.is_some()),
            Err(error) => Err(cluster.failed(format!("look for {id}"), error)),
        }
    });
    let looks: Vec<bool> = stream::iter(looks).buffer_unordered(REQUESTS_AT_ONCE).try_collect().await?;
    Ok(looks.into_iter().all(|it| it))
}

/// Everything that this program installed for the operator. What Helm installed is Helm's to upgrade and delete.
pub(crate) async fn installed(cluster: &ManagementCluster) -> Result<Vec<Component>, ServerError> {
    let selector = format!("{}={CORE_LABEL},{NAME_LABEL}={COMPONENT}", label::CLUSTERCTL_CORE);
    let mut found = sweep::sweep(cluster, &selector).await?;
    let is_helms = |it: &Component| it.label("app.kubernetes.io/managed-by") == Some("Helm");
    found.retain(|it| !it.is_made_from_another() && !is_helms(it) && it.is_installed(&[NAMESPACE]));
    Ok(found)
}

/// What the operator made for itself in its namespace: the authority of its webhook, and its Lease.
pub(crate) async fn made(cluster: &ManagementCluster) -> Result<Vec<Component>, ServerError> {
    let secret = (Kind::namespaced("", "v1", "Secret"), format!("{WEBHOOK_SERVICE}-ca"));
    let lease = (Kind::namespaced("coordination.k8s.io", "v1", "Lease"), LEASE.to_owned());
    let mut found = Vec::new();
    for (kind, name) in [secret, lease] {
        let looked = cluster.objects(&kind, Some(NAMESPACE)).get_metadata_opt(&name).await;
        let looked = looked.map_err(|error| cluster.failed(format!("look for {NAMESPACE}/{name}"), error))?;
        found.extend(looked.map(|it| sweep::component(&kind, it.metadata)));
    }
    Ok(found)
}

/// What a manifest does not have any more: what goes, and what stays because something of the users would go with it.
/// Secrets come from no manifest: the operator makes its own.
pub(crate) fn stale(found: Vec<Component>, manifest: &[Value]) -> (Vec<Component>, Vec<ObjectRef>) {
    let wanted: BTreeSet<Identity> = manifest.iter().map(|it| ObjectRef::of(it).identity()).collect();
    let left = found.into_iter().filter(|it| !wanted.contains(&it.id.identity()) && it.id.kind != "Secret");
    let (kept, gone): (Vec<Component>, Vec<Component>) =
        left.partition(|it| matches!(wave(&it.id), Wave::Namespaces | Wave::Crds));
    (gone, kept.into_iter().map(|it| it.id).collect())
}

/// What of the operator goes with it, in the order in which it goes: whatever calls it first.
pub(crate) fn removals(
    mut found: Vec<Component>,
    include_crd: bool,
    include_namespace: bool,
) -> (Vec<Component>, Vec<ObjectRef>) {
    let is_kept = |it: &Component| match wave(&it.id) {
        Wave::Crds => !include_crd,
        Wave::Namespaces => !include_namespace,
        Wave::Settings | Wave::Workloads | Wave::Webhooks => false,
    };
    found.sort_by(|a, b| (wave(&b.id), &a.id).cmp(&(wave(&a.id), &b.id)));
    let (kept, gone): (Vec<Component>, Vec<Component>) = found.into_iter().partition(is_kept);
    (gone, kept.into_iter().map(|it| it.id).collect())
}

/// Deletes components one after the other.
pub(crate) async fn remove(cluster: &ManagementCluster, components: &[Component]) -> Result<(), ServerError> {
    for component in components {
        match component.delete(cluster).await {
            Err(error) if !error::is_not_found(&error) => {
                return Err(cluster.failed(format!("delete {}", component.id), error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn wave(id: &ObjectRef) -> Wave {
    Wave::of(&json!({"apiVersion": id.api_version, "kind": id.kind}))
}

#[cfg(test)]
mod tests {
    use capstan_management::Kind;
    use kube::core::{GroupVersionKind, ObjectMeta};
    use kube::discovery::ApiResource;

    use super::{super::DEPLOYMENT, *};

    fn operator(version: Option<&str>) -> InstalledOperator {
        InstalledOperator {
            namespace: NAMESPACE.to_owned(),
            name: DEPLOYMENT.to_owned(),
            version: version.map(str::to_owned),
            is_available: true,
            managed_by: None,
        }
    }

    #[test]
    fn another_minor_version_does_not_go_with_this_program() {
        let own = Version::parse(VERSION).unwrap();
        let (major, minor) = (own.major(), own.minor());
        let other_patch = format!("v{major}.{minor}.999");
        let newer = format!("v{major}.{}.0", minor + 1);
        let is_newer = |it: Result<Setup, OperatorProblem>| match it {
            Err(OperatorProblem::OperatorVersion { is_newer, .. }) => is_newer,
            other => panic!("{other:?}"),
        };
        assert_eq!(decide(None, true), Ok(Setup::Install));
        for (version, is_whole, expected) in [
            (Some(VERSION), true, Setup::Present),
            (Some(VERSION), false, Setup::Complete),
            (Some(VERSION.trim_start_matches('v')), false, Setup::Complete),
            // Another version has other objects.
            (Some(other_patch.as_str()), false, Setup::Present),
            (Some("dev"), false, Setup::Present),
            (None, false, Setup::Present),
        ] {
            assert_eq!(decide(Some(&operator(version)), is_whole), Ok(expected), "{version:?}");
        }
        assert!(is_newer(decide(Some(&operator(Some(&newer))), true)));
        assert!(!is_newer(decide(Some(&operator(Some("v0.0.1"))), true)) || minor == 0);
        let helm = InstalledOperator { managed_by: Some("Helm".to_owned()), ..operator(Some(VERSION)) };
        assert_eq!(decide(Some(&helm), false), Ok(Setup::Present), "its objects have other names");
        assert_eq!(age(&operator(Some(&newer))), Some(Ordering::Greater));
        assert_eq!(age(&operator(Some("v0.0.1"))), Some(Ordering::Less));
        assert_eq!(age(&operator(Some(VERSION))), Some(Ordering::Equal));
        assert_eq!(age(&operator(None)), None);
    }

    fn component(api_version: &str, kind: &str, name: &str) -> Component {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Component {
            kind: Kind {
                resource: ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)),
                is_namespaced: false,
                is_managed: true,
                is_preferred: true,
            },
            id: ObjectRef::new(api_version, kind, None, name),
            metadata: ObjectMeta::default(),
            content: None,
        }
    }

    fn all() -> Vec<Component> {
        vec![
            component("apiextensions.k8s.io/v1", "CustomResourceDefinition", "crd"),
            component("apps/v1", "Deployment", "manager"),
            component("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "hook"),
            component("v1", "Namespace", "ns"),
            component("v1", "Secret", "certificate"),
            component("v1", "Service", "service"),
        ]
    }

    fn names(components: &[Component]) -> Vec<&str> {
        components.iter().map(|it| it.id.name.as_str()).collect()
    }

    #[test]
    fn an_upgrade_prunes_what_holds_nothing_of_the_users() {
        let manifest =
            [json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "manager"}})];
        let (gone, kept) = stale(all(), &manifest);
        assert_eq!(names(&gone), ["hook", "service"]);
        assert_eq!(kept.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["crd", "ns"]);
    }

    #[test]
    fn who_calls_the_operator_goes_before_it() {
        let (gone, kept) = removals(all(), false, false);
        assert_eq!(names(&gone), ["hook", "manager", "certificate", "service"]);
        assert_eq!(kept.len(), 2);
        let (gone, kept) = removals(all(), true, true);
        assert_eq!(names(&gone), ["hook", "manager", "certificate", "service", "crd", "ns"]);
        assert!(kept.is_empty());
    }
}
