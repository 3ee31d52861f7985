//! Reading what is explained: the workload cluster and the providers at the same time, then what both of them name.

use std::collections::{BTreeMap, BTreeSet};

use capstan_api::names::{CORE_GROUP, label, secret};
use capstan_management::{
    ManagementCluster, ObjectRef, REQUESTS_AT_ONCE, ServerError,
    inventory::{self, Inventory},
};
use futures::{
    StreamExt, TryStreamExt,
    future::{try_join, try_join_all},
    stream,
};
use serde_json::Value;

use super::{ExplainSnapshot, topology, webhooks, workers::MACHINE_OWNERS};
use crate::{
    clusters::ClusterError,
    fields::{stand_in, text},
    snapshot::{CrdDetail, Reader, Wanted, WorkloadSnapshot, selector},
};

/// Reads all that an explanation of a Cluster needs. Only the Cluster itself must be readable; what else is not is noted.
pub async fn read(
    cluster: &ManagementCluster,
    namespace: &str,
    name: &str,
) -> Result<ExplainSnapshot, ClusterError> {
    let reader = Reader::new(cluster, namespace, name, CrdDetail::Full).await?;
    let around = async { Ok(Box::pin(read_providers(&reader)).await?) };
    let (reading, mut snapshot) = Box::pin(try_join(reader.read(Wanted::default()), around)).await?;
    if let Some(error) = reading.unconvertible {
        reader.note(ObjectRef::of(&reading.snapshot.cluster), error)?;
    }
    // The CRD of the Cluster was read with the providers.
    let crds = std::mem::take(&mut snapshot.workload.crds);
    snapshot.workload = reading.snapshot;
    snapshot.workload.crds.extend(crds);
    read_named(&reader, &mut snapshot).await?;
    read_services(&reader, &mut snapshot).await?;
    snapshot.workload.unreadable = reader.notes();
    Ok(snapshot)
}

/// The components of all providers, and what carries the Cluster's name.
async fn read_providers(reader: &Reader<'_>) -> Result<ExplainSnapshot, ServerError> {
    let inventory = async {
        match Inventory::read(reader.cluster).await {
            Ok(inventory) => Ok(inventory),
            Err(error) => {
                reader.note(inventory::kind().object(None, ""), error).map(|()| Inventory::default())
            }
        }
    };
    let admission = "admissionregistration.k8s.io/v1";
    let (inventory, deployments, validating, mutating, namespace_labels, secrets, crd) = tokio::try_join!(
        inventory,
        list(reader, "apps/v1", "Deployment", None, label::PROVIDER),
        list(reader, admission, "ValidatingWebhookConfiguration", None, ""),
        list(reader, admission, "MutatingWebhookConfiguration", None, ""),
        namespace_labels(reader),
        secret_names(reader),
        reader.crd(CORE_GROUP, "Cluster"),
    )?;
    let mut workload = WorkloadSnapshot::default();
    workload.learn(CORE_GROUP, "Cluster", crd);
    Ok(ExplainSnapshot {
        workload,
        secrets,
        deployments,
        webhooks: [validating, mutating].into_iter().flatten().flatten().collect(),
        namespace_labels,
        inventory,
        ..ExplainSnapshot::default()
    })
}

/// The Secrets that Machines name, the ClusterClass, the CRDs of core's kinds, and the Leases beside Deployments.
async fn read_named(reader: &Reader<'_>, snapshot: &mut ExplainSnapshot) -> Result<(), ServerError> {
    let mut wanted = BTreeSet::from([format!("{}-{}", reader.name, secret::KUBECONFIG)]);
    for (kind, place) in [("Machine", "/spec"), ("MachinePool", "/spec/template/spec")] {
        let place = format!("{place}/bootstrap/dataSecretName");
        let named = snapshot.workload.all(CORE_GROUP, kind).filter_map(|it| text(it, &place));
        wanted.extend(named.map(str::to_owned));
    }
    let missing = wanted.difference(&snapshot.secrets);
    let found = stream::iter(missing).map(|it| has_secret(reader, it)).buffer_unordered(REQUESTS_AT_ONCE);
    let used = MACHINE_OWNERS.into_iter().chain(["Machine"]);
    let used = used.filter(|it| snapshot.workload.all(CORE_GROUP, it).next().is_some());
    let crds = used.map(async |it| Ok::<_, ServerError>((it, reader.crd(CORE_GROUP, it).await?)));
    let (found, crds, leases, class) = tokio::try_join!(
        found.try_collect::<Vec<_>>(),
        try_join_all(crds),
        leases(reader, snapshot.deployments.as_deref().unwrap_or_default()),
        class(reader, &snapshot.workload.cluster),
    )?;
    snapshot.secrets.extend(found.into_iter().flatten());
    snapshot.leases = leases;
    snapshot.workload.objects.extend(class);
    for (kind, crd) in crds {
        snapshot.workload.learn(CORE_GROUP, kind, crd);
    }
    Ok(())
}

/// The Services that answer the webhooks of all kinds that are concerned.
async fn read_services(reader: &Reader<'_>, snapshot: &mut ExplainSnapshot) -> Result<(), ServerError> {
    let crds: Vec<_> = snapshot.workload.crds.values().collect();
    let services = webhooks::services(&snapshot.webhooks, &crds);
    let answers = try_join_all(services.iter().map(|it| endpoints(reader, it))).await?;
    snapshot.services =
        services.into_iter().zip(answers).filter_map(|(it, found)| Some((it, found?))).collect();
    Ok(())
}

async fn list(
    reader: &Reader<'_>,
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
    selector: &str,
) -> Result<Option<Vec<Value>>, ServerError> {
    match reader.kinds.find(api_version, kind) {
        Some(kind) => reader.list(kind, namespace, selector).await,
        None => Ok(None),
    }
}

async fn class(reader: &Reader<'_>, cluster: &Value) -> Result<Option<Value>, ServerError> {
    let (Some((namespace, name)), Some(kind)) = (topology::class(cluster), reader.core_kind("ClusterClass"))
    else {
        return Ok(None);
    };
    let found = reader.metadata(kind, &namespace, &name).await?;
    Ok(found.map(|_| stand_in(&kind.object(Some(&namespace), &name))))
}

/// Only names are read: an explanation needs no secret.
async fn secret_names(reader: &Reader<'_>) -> Result<BTreeSet<String>, ServerError> {
    let Some(kind) = reader.kinds.find("v1", "Secret") else { return Ok(BTreeSet::new()) };
    let listed = reader.cluster.list_metadata(kind, Some(reader.namespace), &selector(reader.name)).await;
    match listed {
        Ok(found) => Ok(found.into_iter().filter_map(|it| it.metadata.name).collect()),
        Err(error) => reader.note(kind.object(None, ""), error).map(|()| BTreeSet::new()),
    }
}

async fn has_secret(reader: &Reader<'_>, name: &str) -> Result<Option<String>, ServerError> {
    let Some(kind) = reader.kinds.find("v1", "Secret") else { return Ok(None) };
    Ok(reader.metadata(kind, reader.namespace, name).await?.map(|_| name.to_owned()))
}

async fn namespace_labels(reader: &Reader<'_>) -> Result<BTreeMap<String, String>, ServerError> {
    let Some(kind) = reader.kinds.find("v1", "Namespace") else { return Ok(BTreeMap::new()) };
    let found = reader.metadata(kind, reader.namespace, reader.namespace).await?;
    Ok(found.and_then(|it| it.metadata.labels).unwrap_or_default())
}

async fn leases(reader: &Reader<'_>, deployments: &[Value]) -> Result<Vec<Value>, ServerError> {
    let namespaces: BTreeSet<_> =
        deployments.iter().filter_map(|it| text(it, "/metadata/namespace")).collect();
    let lists =
        namespaces.into_iter().map(|it| list(reader, "coordination.k8s.io/v1", "Lease", Some(it), ""));
    Ok(try_join_all(lists).await?.into_iter().flatten().flatten().collect())
}

/// How many endpoints of a Service are ready: `Some(None)` if it does not exist, `None` if that cannot be read.
async fn endpoints(
    reader: &Reader<'_>,
    (namespace, name): &(String, String),
) -> Result<Option<Option<usize>>, ServerError> {
    let Some(services) = reader.kinds.find("v1", "Service") else { return Ok(None) };
    let selector = format!("kubernetes.io/service-name={name}");
    let slices = list(reader, "discovery.k8s.io/v1", "EndpointSlice", Some(namespace), &selector);
    let service =
        async { Ok(reader.cluster.objects(services, Some(namespace)).get_metadata_opt(name).await) };
    let (service, slices) = try_join(service, slices).await?;
    match service {
        Ok(None) => Ok(Some(None)),
        Ok(Some(_)) => Ok(slices.map(|it| Some(it.iter().map(ready_endpoints).sum()))),
        Err(error) => reader.unread(services, Some(namespace), name, error).map(|()| None),
    }
}

/// Endpoints that say nothing about themselves count as ready.
fn ready_endpoints(slice: &Value) -> usize {
    let endpoints = slice["endpoints"].as_array();
    endpoints
        .into_iter()
        .flatten()
        .filter(|it| it.pointer("/conditions/ready") != Some(&Value::Bool(false)))
        .count()
}
