//! Whether cert-manager is to be upgraded.

use std::{cmp::Ordering, collections::BTreeSet};

use capstan_api::names::{CERT_MANAGER, label};
use futures::future::try_join_all;
use kube::api::DynamicObject;
use semver::{BuildMetadata, Version};
use serde_json::Value;

use super::{GROUP, Manifest, VERSION_ANNOTATION, manifest::images};
use capstan_management::{
    Kind, Kinds, ManagementCluster, ObjectRef, ServerError,
    sweep::{self, Component},
};

/// What was installed before objects had the annotation of their version.
const UNMARKED: &str = "v0.11.0";

/// What is to be done about cert-manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertManagerState {
    /// It is not there.
    Absent,
    /// Neither clusterctl nor Capstan installed it.
    External,
    /// It is as it should be, or newer.
    UpToDate {
        /// The version that is installed.
        version: String,
    },
    /// It is older, or not as its manifest says.
    Upgrade {
        /// The version that is installed.
        from: String,
        /// The version that is wanted.
        to: String,
    },
}

/// Compares what is installed with what is wanted.
pub async fn plan(cluster: &ManagementCluster, wanted: &Manifest) -> Result<CertManagerState, ServerError> {
    let (found, images, kinds) =
        futures::try_join!(components(cluster), images_in_use(cluster), cluster.kinds())?;
    Ok(plan_with(&kinds, wanted, &found, &images))
}

/// The same where it is known what is installed, whatever else is, and which images are in use.
pub(crate) async fn plan_among(
    cluster: &ManagementCluster,
    wanted: &Manifest,
    installed: &[Component],
    images: &[String],
) -> Result<CertManagerState, ServerError> {
    let found: Vec<_> = installed.iter().filter(|it| is_part(it)).cloned().collect();
    Ok(plan_with(&*cluster.kinds().await?, wanted, &found, images))
}

fn plan_with(kinds: &Kinds, wanted: &Manifest, found: &[Component], images: &[String]) -> CertManagerState {
    if !found.is_empty() {
        return decide(found, images, wanted);
    }
    let is_there = kinds.any_version(GROUP, "Certificate").is_some();
    if is_there { CertManagerState::External } else { CertManagerState::Absent }
}

/// What clusterctl or we installed of cert-manager.
pub(super) async fn components(cluster: &ManagementCluster) -> Result<Vec<Component>, ServerError> {
    let mut found = sweep::sweep_kinds(cluster, &selector(), is_part_of_kubernetes).await?;
    found.retain(is_part);
    Ok(found)
}

/// Whether an object was installed as a part of cert-manager; a user's copy of one was not.
fn is_part(component: &Component) -> bool {
    component.label(label::CLUSTERCTL_CORE) == Some(CERT_MANAGER)
        && is_part_of_kubernetes(&component.kind)
        && component.is_installed(&[CERT_MANAGER])
}

/// The selector of everything that belongs to it.
pub(super) fn selector() -> String {
    format!("{}={CERT_MANAGER}", label::CLUSTERCTL_CORE)
}

/// Nothing of cert-manager's manifest is of a kind that a CRD defines, and there may be hundreds of those.
fn is_part_of_kubernetes(kind: &Kind) -> bool {
    let group = &kind.resource.group;
    !group.contains('.') || (group.ends_with(".k8s.io") && !group.ends_with(".x-k8s.io"))
}

/// The images that cert-manager runs with, in order.
pub(crate) async fn images_in_use(cluster: &ManagementCluster) -> Result<Vec<String>, ServerError> {
    let (kinds, selector) = (cluster.kinds().await?, selector());
    let workloads = ["Deployment", "DaemonSet"].iter().filter_map(|it| kinds.find("apps/v1", it));
    let found = try_join_all(workloads.map(|kind| cluster.list(kind, None, &selector))).await?;
    let is_installed = |it: &&DynamicObject| sweep::is_installed(&it.metadata, &[CERT_MANAGER]);
    let found = found.iter().flatten().filter(is_installed);
    let mut found: Vec<String> = found.flat_map(|it| images(&it.data)).map(str::to_owned).collect();
    found.sort();
    Ok(found)
}

/// The decision of the plan, over values.
fn decide(found: &[Component], images_in_use: &[String], wanted: &Manifest) -> CertManagerState {
    let to = wanted.version.clone();
    let mut installed = to.clone();
    for component in found {
        let Some(version) = version_of(component) else {
            return CertManagerState::Upgrade { from: UNMARKED.to_owned(), to };
        };
        version.clone_into(&mut installed);
        match compare(version, &to) {
            Difference::Older => return CertManagerState::Upgrade { from: installed, to },
            Difference::Newer => {}
            Difference::None => {
                if !is_complete(found, wanted) || images_of(wanted) != images_in_use {
                    return CertManagerState::Upgrade { from: installed, to };
                }
            }
        }
    }
    CertManagerState::UpToDate { version: installed }
}

fn version_of(component: &Component) -> Option<&str> {
    component.metadata.annotations.as_ref()?.get(VERSION_ANNOTATION).map(String::as_str)
}

/// Whether what is found and what is wanted are the same objects.
fn is_complete(found: &[Component], wanted: &Manifest) -> bool {
    let found: BTreeSet<_> = found.iter().map(|it| it.id.identity()).collect();
    found == wanted.objects.iter().map(|it| ObjectRef::of(it).identity()).collect()
}

fn images_of(wanted: &Manifest) -> Vec<String> {
    let workloads =
        wanted.objects.iter().filter(|it| it["kind"] == "Deployment" || it["kind"] == "DaemonSet");
    let mut all: Vec<String> = workloads.flat_map(|it: &Value| images(it)).map(str::to_owned).collect();
    all.sort();
    all
}

#[derive(Debug, PartialEq, Eq)]
enum Difference {
    /// What is installed is older, or different in a way that has no order.
    Older,
    None,
    Newer,
}

/// Compares versions, with what stands behind a plus: numbers have an order, names are different or not.
fn compare(installed: &str, wanted: &str) -> Difference {
    let parsed = |text: &str| Version::parse(text.trim().trim_start_matches('v')).ok();
    let (Some(installed), Some(wanted)) = (parsed(installed), parsed(wanted)) else {
        return if installed == wanted { Difference::None } else { Difference::Older };
    };
    let number = |it: &BuildMetadata| it.parse::<u64>().ok();
    match installed.cmp_precedence(&wanted) {
        Ordering::Less => Difference::Older,
        Ordering::Greater => Difference::Newer,
        Ordering::Equal if installed.build == wanted.build => Difference::None,
        Ordering::Equal => match (number(&installed.build), number(&wanted.build)) {
            (Some(installed), Some(wanted)) if installed > wanted => Difference::Newer,
            (None, Some(_)) if !installed.build.is_empty() => Difference::Newer,
            _ => Difference::Older,
        },
    }
}

#[cfg(test)]
mod tests {
    use kube::{core::ObjectMeta, discovery::ApiResource};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_users_copy_is_no_part_of_it() {
        let within = |namespace: &str| {
            let mut component = component(&object("ConfigMap", "it"), Some("v1.2.0"));
            let core = [(label::CLUSTERCTL_CORE.to_owned(), CERT_MANAGER.to_owned())];
            component.metadata.labels = Some(core.into());
            component.metadata.namespace = Some(namespace.to_owned());
            is_part(&component)
        };
        assert!(within("cert-manager"));
        assert!(!within("team"));
    }

    fn object(kind: &str, name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
    }

    fn component(object: &Value, version: Option<&str>) -> Component {
        let id = ObjectRef::of(object);
        let gvk = kube::core::GroupVersionKind::gvk("", "v1", &id.kind);
        let annotations = version.map(|it| [(VERSION_ANNOTATION.to_owned(), it.to_owned())].into());
        Component {
            kind: Kind {
                resource: ApiResource::from_gvk(&gvk),
                is_namespaced: false,
                is_managed: true,
                is_preferred: true,
            },
            metadata: ObjectMeta { name: Some(id.name.clone()), annotations, ..ObjectMeta::default() },
            content: None,
            id,
        }
    }

    #[test]
    fn what_is_older_or_not_as_its_manifest_says_is_upgraded() {
        let objects = vec![object("Namespace", "a"), object("ServiceAccount", "b")];
        let wanted = Manifest { version: "v1.2.0".to_owned(), objects: objects.clone() };
        let upgrade =
            |from: &str| CertManagerState::Upgrade { from: from.to_owned(), to: "v1.2.0".to_owned() };
        let keep = |version: &str| CertManagerState::UpToDate { version: version.to_owned() };
        let both = |version| [component(&objects[0], version), component(&objects[1], version)].to_vec();
        let mixed = [component(&objects[0], Some("v1.2.0")), component(&objects[1], Some("v1.1.0"))].to_vec();
        let extra = [both(Some("v1.2.0")), vec![component(&object("Secret", "c"), Some("v1.2.0"))]].concat();
        for (found, images, expected) in [
            (both(Some("v1.2.0")), vec![], keep("v1.2.0")),
            (both(Some("v1.3.0")), vec![], keep("v1.3.0")),
            (both(Some("v1.1.9")), vec![], upgrade("v1.1.9")),
            (both(None), vec![], upgrade(UNMARKED)),
            (both(Some("v1.2.0"))[..1].to_vec(), vec![], upgrade("v1.2.0")),
            (extra, vec![], upgrade("v1.2.0")),
            (mixed, vec![], upgrade("v1.1.0")),
            (both(Some("v1.2.0")), vec!["other".to_owned()], upgrade("v1.2.0")),
        ] {
            assert_eq!(decide(&found, &images, &wanted), expected, "{found:?}");
        }
    }

    #[test]
    fn versions_differ_in_what_stands_behind_a_plus_too() {
        use Difference::{Newer, None, Older};
        for (installed, wanted, expected) in [
            ("v1.2.0", "v1.2.0", None),
            ("v1.2.0", "1.2.0", None),
            ("v1.2.0", "v1.10.0", Older),
            ("v1.2.0-rc.1", "v1.2.0", Older),
            ("v1.2.1", "v1.2.0", Newer),
            ("v1.2.0+1", "v1.2.0+2", Older),
            ("v1.2.0+10", "v1.2.0+2", Newer),
            ("v1.2.0", "v1.2.0+1", Older),
            ("v1.2.0+a", "v1.2.0+b", Older),
            ("v1.2.0+b", "v1.2.0+a", Older),
            ("v1.2.0+1", "v1.2.0+a", Older),
            ("v1.2.0+a", "v1.2.0+1", Newer),
            ("nightly", "nightly", None),
            ("nightly", "v1.2.0", Older),
        ] {
            assert_eq!(compare(installed, wanted), expected, "{installed} {wanted}");
        }
    }
}
