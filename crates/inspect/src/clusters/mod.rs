//! Clusters: found by name, and listed with what their users ask for first.

mod error;

use std::collections::BTreeSet;

use capstan_api::names::{CORE_GROUP, label};
use futures::future::{try_join, try_join_all};
use jiff::Timestamp;
use kube::api::DynamicObject;
use serde::Serialize;
use serde_json::Value;

pub use error::ClusterError;

use crate::{
    fields::{self, kind, name, namespace, number, text},
    snapshot::Reference,
};
use capstan_management::{Kind, Kinds, ManagementCluster, ServerError};

/// Names are used as values of labels, which are not longer.
const NAME_LIMIT: usize = 63;

/// Refuses a name that no Cluster can have, before a server is asked for it.
pub(crate) fn check_name(name: &str) -> Result<(), ClusterError> {
    match name.chars().count() {
        0 => Err(ClusterError::NameMissing),
        length if length > NAME_LIMIT => Err(ClusterError::NameTooLong { length, limit: NAME_LIMIT }),
        _ => Ok(()),
    }
}

/// The Cluster of that name.
pub async fn find(cluster: &ManagementCluster, namespace: &str, name: &str) -> Result<Value, ClusterError> {
    let kind = &cluster_kind(cluster).await?;
    match cluster.objects(kind, Some(namespace)).get_opt(name).await {
        Ok(Some(object)) => Ok(whole(kind, object)),
        Ok(None) => Err(not_found(cluster, kind, namespace, name).await),
        Err(error) => Err(cluster.failed(format!("read Cluster {namespace}/{name}"), error).into()),
    }
}

/// The error for a name that no Cluster has, with the names that there are.
pub(crate) async fn not_found(
    cluster: &ManagementCluster,
    kind: &Kind,
    namespace: &str,
    name: &str,
) -> ClusterError {
    // Those who may not look everywhere may look here. Names are a help only: without them the error is the same.
    let listed = match cluster.list_metadata(kind, None, "").await {
        Ok(all) => all,
        Err(_) => cluster.list_metadata(kind, Some(namespace), "").await.unwrap_or_default(),
    };
    let others = listed.into_iter().filter_map(|it| Some((it.metadata.namespace?, it.metadata.name?)));
    ClusterError::NotFound {
        url: cluster.url().to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        others: others.collect(),
    }
}

/// The kind, in the version that the server prefers.
pub(crate) async fn cluster_kind(cluster: &ManagementCluster) -> Result<Kind, ClusterError> {
    let found = cluster.kinds().await?.any_version(CORE_GROUP, "Cluster").cloned();
    found.ok_or_else(|| ClusterError::NotInstalled { url: cluster.url().to_owned() })
}

/// An object with its kind, which lists leave out, and without what only the server's book-keeping needs.
pub(crate) fn whole(kind: &Kind, mut object: DynamicObject) -> Value {
    object.metadata.managed_fields = None;
    object.types = Some(kube::api::TypeMeta {
        api_version: kind.resource.api_version.clone(),
        kind: kind.resource.kind.clone(),
    });
    // What came as JSON goes back to JSON.
    serde_json::to_value(object).unwrap_or_default()
}

/// How many machines there are to be, and how many are ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Replicas {
    /// How many are ready, if that is known.
    pub ready: Option<i64>,
    /// How many there are to be, if that is known.
    pub desired: Option<i64>,
}

impl Replicas {
    fn is_known(self) -> bool {
        self.ready.is_some() || self.desired.is_some()
    }

    fn plus(self, other: Self) -> Self {
        let add = |a: Option<i64>, b: Option<i64>| Some(a.unwrap_or(0) + b?).or(a);
        Self { ready: add(self.ready, other.ready), desired: add(self.desired, other.desired) }
    }
}

/// A Cluster at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSummary {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its phase.
    pub phase: Option<String>,
    /// Whether it is available: True, False or Unknown. Where core is too old to tell, whether it is ready.
    pub available: Option<String>,
    /// Its control plane.
    pub control_plane: Replicas,
    /// Its workers.
    pub workers: Replicas,
    /// The version of Kubernetes that its control plane is to have.
    pub version: Option<String>,
    /// When it was created.
    pub created: Option<Timestamp>,
}

/// The Clusters of a namespace, or of all, that a selector matches.
pub async fn list(
    cluster: &ManagementCluster,
    namespace: Option<&str>,
    selector: &str,
) -> Result<Vec<ClusterSummary>, ClusterError> {
    let kind = &cluster_kind(cluster).await?;
    let clusters: Vec<_> =
        cluster.list(kind, namespace, selector).await?.into_iter().map(|it| whole(kind, it)).collect();
    let kinds = cluster.kinds().await?;
    // What a Cluster does not say by itself is asked of what it stands on: one list for each kind.
    let control_planes = kinds_of_control_planes(&kinds, &clusters);
    let workers: Vec<_> = if clusters.iter().all(|it| counted(it, "workers").is_known()) {
        Vec::new()
    } else {
        ["MachineDeployment", "MachinePool"]
            .into_iter()
            .filter_map(|kind| kinds.any_version(CORE_GROUP, kind))
            .collect()
    };
    let (control_planes, workers) =
        try_join(list_all(cluster, &control_planes, namespace), list_all(cluster, &workers, namespace))
            .await?;
    let mut glances: Vec<_> = clusters.iter().map(|it| summarize(it, &control_planes, &workers)).collect();
    glances.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    Ok(glances)
}

async fn list_all(
    cluster: &ManagementCluster,
    kinds: &[&Kind],
    namespace: Option<&str>,
) -> Result<Vec<Value>, ServerError> {
    let lists = kinds.iter().map(|kind| async move {
        let objects = cluster.list(kind, namespace, "").await?;
        Ok::<_, ServerError>(objects.into_iter().map(|it| whole(kind, it)).collect::<Vec<_>>())
    });
    Ok(try_join_all(lists).await?.into_iter().flatten().collect())
}

/// The kinds of control planes that must be asked.
fn kinds_of_control_planes<'a>(kinds: &'a Kinds, clusters: &[Value]) -> Vec<&'a Kind> {
    let silent =
        clusters.iter().filter(|it| !counted(it, "controlPlane").is_known() || version(it).is_none());
    let wanted: BTreeSet<_> = silent.filter_map(control_plane_ref).map(|it| (it.group, it.kind)).collect();
    wanted.into_iter().filter_map(|(group, kind)| kinds.any_version(&group, &kind)).collect()
}

/// A Cluster at a glance, from itself and, where it says too little, from what it stands on.
pub fn summarize(cluster: &Value, control_planes: &[Value], workers: &[Value]) -> ClusterSummary {
    let (own_namespace, own_name) = (namespace(cluster), name(cluster));
    let control_plane = control_plane_ref(cluster).and_then(|wanted| {
        let is_it = |it: &&Value| {
            kind(it) == wanted.kind && name(it) == wanted.name && namespace(it) == own_namespace
        };
        control_planes.iter().find(is_it)
    });
    let own_workers = || {
        let is_own = |it: &&Value| {
            namespace(it) == own_namespace && fields::label(it, label::CLUSTER_NAME) == Some(own_name)
        };
        workers.iter().filter(is_own).fold(Replicas::default(), |sum, it| sum.plus(own_count(it)))
    };
    let first_known = |first: Replicas, second: &dyn Fn() -> Replicas| {
        if first.is_known() { first } else { second() }
    };
    let owned = |it: Option<&str>| it.map(str::to_owned);
    ClusterSummary {
        namespace: own_namespace.to_owned(),
        name: own_name.to_owned(),
        phase: owned(text(cluster, "/status/phase")),
        available: fields::summary(cluster).map(|it| it.status.as_str().to_owned()),
        control_plane: first_known(counted(cluster, "controlPlane"), &|| {
            control_plane.map(own_count).unwrap_or_default()
        }),
        workers: first_known(counted(cluster, "workers"), &own_workers),
        version: version(cluster).or_else(|| owned(text(control_plane?, "/spec/version"))),
        created: fields::created(cluster),
    }
}

/// What the Cluster itself counts, in either of the places where it may.
fn counted(cluster: &Value, part: &str) -> Replicas {
    let at = |place: &str, field: &str| number(cluster, &format!("{place}/{part}/{field}"));
    let read =
        |place: &str| Replicas { ready: at(place, "readyReplicas"), desired: at(place, "desiredReplicas") };
    [read("/status"), read("/status/v1beta2")].into_iter().find(|it| it.is_known()).unwrap_or_default()
}

fn own_count(object: &Value) -> Replicas {
    let desired = number(object, "/spec/replicas");
    // What is not ready yet is left out rather than zero.
    Replicas { ready: number(object, "/status/readyReplicas").or(desired.map(|_| 0)), desired }
}

fn version(cluster: &Value) -> Option<String> {
    if let Some(version) = text(cluster, "/spec/topology/version") {
        return Some(version.to_owned());
    }
    let running = cluster.pointer("/status/controlPlane/versions").and_then(Value::as_array);
    let versions = running.into_iter().flatten().filter_map(|it| it["version"].as_str());
    versions.max_by(|a, b| compare_releases(a, b)).map(str::to_owned)
}

/// The order of releases of Kubernetes; what is none comes first.
fn compare_releases(a: &str, b: &str) -> std::cmp::Ordering {
    let parse = |it: &str| semver::Version::parse(it.trim_start_matches('v')).ok();
    parse(a).cmp(&parse(b))
}

fn control_plane_ref(cluster: &Value) -> Option<Reference> {
    Reference::at(cluster, "/spec/controlPlaneRef")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "cases read better so")]
    fn cluster(spec: Value, status: Value) -> Value {
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"namespace": "ns", "name": "c", "creationTimestamp": "2026-01-02T03:04:05Z"},
            "spec": spec, "status": status,
        })
    }

    fn replicas(ready: i64, desired: i64) -> Replicas {
        Replicas { ready: Some(ready), desired: Some(desired) }
    }

    #[test]
    fn a_cluster_that_reports_everything_needs_no_other_object() {
        let it = summarize(
            &cluster(
                json!({"topology": {"version": "v1.34.0"}}),
                json!({
                    "phase": "Provisioned",
                    "controlPlane": {"desiredReplicas": 3, "readyReplicas": 2},
                    "workers": {"desiredReplicas": 5},
                    "conditions": [
                        {"type": "Ready", "status": "True"}, {"type": "Available", "status": "False"},
                    ],
                }),
            ),
            &[],
            &[],
        );
        assert_eq!((it.phase.as_deref(), it.available.as_deref()), (Some("Provisioned"), Some("False")));
        assert_eq!(it.control_plane, replicas(2, 3));
        assert_eq!(it.workers, Replicas { ready: None, desired: Some(5) });
        assert_eq!(it.version.as_deref(), Some("v1.34.0"));
        assert_eq!(it.created.unwrap().to_string(), "2026-01-02T03:04:05Z");
    }

    #[test]
    fn an_older_cluster_is_completed_by_what_it_stands_on() {
        let reference = json!({"apiVersion": "g.io/v1beta1", "kind": "Plane", "name": "p"});
        let old = cluster(
            json!({ "controlPlaneRef": reference }),
            json!({"conditions": [{"type": "Ready", "status": "True"}]}),
        );
        let plane = |namespace: &str, replicas: i64| {
            json!({
                "apiVersion": "g.io/v1beta1", "kind": "Plane",
                "metadata": {"namespace": namespace, "name": "p"},
                "spec": {"replicas": replicas, "version": "v1.30.1"}, "status": {"readyReplicas": 1},
            })
        };
        let workers = |of: &str, desired: i64, ready: Value| {
            json!({
                "metadata": {"namespace": "ns", "name": "w", "labels": {"cluster.x-k8s.io/cluster-name": of}},
                "spec": {"replicas": desired}, "status": ready,
            })
        };
        let it = summarize(
            &old,
            &[plane("other", 9), plane("ns", 3)],
            &[
                workers("c", 2, json!({"readyReplicas": 2})),
                workers("d", 7, json!({})),
                workers("c", 1, json!({})),
            ],
        );
        assert_eq!(it.available.as_deref(), Some("True"));
        assert_eq!(it.control_plane, replicas(1, 3));
        assert_eq!(it.workers, replicas(2, 3));
        assert_eq!(it.version.as_deref(), Some("v1.30.1"));
    }

    #[test]
    fn counts_of_the_version_in_between_are_read_where_they_are() {
        let status = json!({"v1beta2": {"controlPlane": {"desiredReplicas": 1, "readyReplicas": 1}}});
        assert_eq!(counted(&cluster(json!({}), status), "controlPlane"), replicas(1, 1));
    }

    #[test]
    fn the_newest_version_that_runs_stands_for_all() {
        let versions = json!([{"version": "v1.9.3"}, {"version": "v1.10.0"}, {"version": "odd"}]);
        let it = cluster(json!({}), json!({"controlPlane": {"versions": versions}}));
        assert_eq!(version(&it).as_deref(), Some("v1.10.0"));
    }

    #[test]
    fn names_that_no_cluster_can_have_are_refused() {
        for (name, expected) in [
            ("c".to_owned(), Ok(())),
            ("c".repeat(63), Ok(())),
            (String::new(), Err("the name of the Cluster is empty")),
            (
                "c".repeat(64),
                Err("the name of the Cluster has 64 characters, but the name of a Cluster has at most 63"),
            ),
        ] {
            let checked = check_name(&name).map_err(|error| error.to_string());
            assert_eq!(checked, expected.map_err(str::to_owned), "{name}");
        }
    }
}
