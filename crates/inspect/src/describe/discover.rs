//! Reading a Cluster and all that belongs to it: all lists at once, then all that they refer to at once.

use std::collections::{BTreeMap, BTreeSet};

use capstan_api::{
    contract::{ContractVersion, pick_version},
    names::{ADDONS_GROUP, CORE_GROUP},
};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, api::DynamicObject};
use serde_json::Value;

use super::{
    Found, Options, Reference, Snapshot, Unreadable, Watched, Why,
    snapshot::{Listing, name},
    watched::selector,
};
use crate::clusters::{self, ClusterError};
use capstan_management::{Kind, Kinds, ManagementCluster, ServerError};

/// How many requests are under way at a time.
const AT_ONCE: usize = 16;
/// The versions of core's kinds that are understood, the preferred one first.
const VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];
const UNAUTHORIZED: u16 = 401;

/// What was read, and what to watch to know when that changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// What was read.
    pub snapshot: Snapshot,
    /// What to watch.
    pub watched: Vec<Watched>,
}

/// Reads a Cluster and all that belongs to it.
pub async fn read(
    cluster: &ManagementCluster,
    namespace: &str,
    name: &str,
    options: &Options,
) -> Result<Reading, ClusterError> {
    let kinds = cluster.kinds().await?;
    let reader = Reader { cluster, kinds: &kinds, namespace, name };
    let (object, machines, machine_sets, machine_deployments, machine_pools, health_checks, resource_sets) =
        tokio::try_join!(
            reader.cluster(),
            reader.list("Machine"),
            reader.list("MachineSet"),
            reader.list("MachineDeployment"),
            reader.list("MachinePool"),
            reader.list("MachineHealthCheck"),
            reader.resource_sets(options),
        )?;
    let mut snapshot = Snapshot {
        machines,
        machine_sets,
        machine_deployments,
        machine_pools,
        health_checks,
        resource_sets,
        ..Snapshot::of(object)
    };
    let mut watched = reader.watched(options);
    reader.follow_all(&mut snapshot, options, &mut watched).await?;
    Ok(Reading { snapshot, watched })
}

struct Reader<'a> {
    cluster: &'a ManagementCluster,
    kinds: &'a Kinds,
    namespace: &'a str,
    name: &'a str,
}

/// What a reference needs to be followed.
struct Resolved {
    kind: Kind,
    contract: Option<ContractVersion>,
}

/// A kind that references name.
type Named = (String, String, Option<String>);

impl Reader<'_> {
    fn kind(&self, group: &str, kind: &str) -> Option<&Kind> {
        VERSIONS.iter().find_map(|version| self.kinds.find(&format!("{group}/{version}"), kind))
    }

    async fn cluster(&self) -> Result<Value, ClusterError> {
        let Some(kind) = self.kind(CORE_GROUP, "Cluster") else {
            return Err(ClusterError::NotInstalled { url: self.cluster.url().to_owned() });
        };
        let Self { namespace, name, .. } = self;
        match self.cluster.objects(kind, Some(namespace)).get_opt(name).await {
            Ok(Some(object)) => Ok(value(object, kind)),
            Ok(None) => Err(clusters::not_found(self.cluster, kind, namespace, name).await),
            Err(error) => Err(self.cluster.failed(format!("read Cluster {namespace}/{name}"), error).into()),
        }
    }

    /// The objects of a core kind that belong to the Cluster; none where the kind is not installed.
    async fn list(&self, kind: &str) -> Result<Listing, ClusterError> {
        match self.kind(CORE_GROUP, kind) {
            Some(kind) => Ok(self.list_of(kind).await?),
            None => Ok(Ok(Vec::new())),
        }
    }

    async fn list_of(&self, kind: &Kind) -> Result<Listing, ServerError> {
        match self.cluster.list(kind, Some(self.namespace), &selector(self.name)).await {
            Ok(objects) => {
                let mut objects: Vec<_> = objects.into_iter().map(|it| value(it, kind)).collect();
                objects.sort_by(|one, other| name(one).cmp(name(other)));
                Ok(Ok(objects))
            }
            Err(error) => Ok(Err(refusal(error)?)),
        }
    }

    /// The binding that bears the Cluster's name.
    async fn resource_sets(&self, options: &Options) -> Result<Listing, ClusterError> {
        let kind = self.kind(ADDONS_GROUP, "ClusterResourceSetBinding");
        let Some(kind) = kind.filter(|_| options.show_resource_sets) else {
            return Ok(Ok(Vec::new()));
        };
        match self.cluster.objects(kind, Some(self.namespace)).get_opt(self.name).await {
            Ok(found) => Ok(Ok(found.into_iter().map(|it| value(it, kind)).collect())),
            Err(error) => {
                let doing = format!("read ClusterResourceSetBinding {}/{}", self.namespace, self.name);
                Ok(Err(refusal(self.cluster.failed(doing, error))?))
            }
        }
    }

    fn watched(&self, options: &Options) -> Vec<Watched> {
        let resource = |group: &str, kind: &str| self.kind(group, kind).map(|it| it.resource.clone());
        let one = |group: &str, kind: &str| {
            resource(group, kind).map(|it| Watched::one(it, self.namespace, self.name))
        };
        let lists = ["Machine", "MachineSet", "MachineDeployment", "MachinePool", "MachineHealthCheck"];
        let lists = lists.iter().filter_map(|kind| resource(CORE_GROUP, kind));
        let binding = one(ADDONS_GROUP, "ClusterResourceSetBinding").filter(|_| options.show_resource_sets);
        let singles = one(CORE_GROUP, "Cluster").into_iter().chain(binding);
        singles.chain(lists.map(|it| Watched::belonging(it, self.namespace, self.name))).collect()
    }

    /// Follows references until there are no more: a control plane tells of its template only when it has been read.
    async fn follow_all(
        &self,
        snapshot: &mut Snapshot,
        options: &Options,
        watched: &mut Vec<Watched>,
    ) -> Result<(), ServerError> {
        let of_machines = snapshot.of_machines();
        loop {
            let wanted = snapshot.wanted(options).into_iter();
            let missing: Vec<_> = wanted.filter(|it| !snapshot.references.contains_key(it)).collect();
            if missing.is_empty() {
                return Ok(());
            }
            let kinds = self.resolve_all(&missing).await?;
            let listed = missing.iter().filter(|it| of_machines.contains(it)).map(named).collect();
            let (found, strays) = self.list_all(&kinds, &listed, &of_machines).await?;
            let unlisted = missing.iter().filter(|it| !found.contains_key(it));
            let got: Vec<_> = stream::iter(unlisted)
                .map(|it| async { Ok::<_, ServerError>((it.clone(), self.get(it, &kinds).await?)) })
                .buffer_unordered(AT_ONCE)
                .try_collect()
                .await?;
            watched.extend(missing.iter().filter_map(|it| self.watch(it, &kinds, &listed)));
            watched.dedup();
            snapshot.references.extend(found);
            snapshot.references.extend(got);
            snapshot.strays.extend(strays);
        }
    }

    async fn resolve_all(
        &self,
        references: &[Reference],
    ) -> Result<BTreeMap<Named, Option<Resolved>>, ServerError> {
        let kinds: BTreeSet<Named> = references.iter().map(named).collect();
        stream::iter(kinds)
            .map(|it| async move { Ok((it.clone(), self.resolve(&it).await?)) })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    /// Finds a kind and the version of it that speaks the contract, as its definition's labels say. Where they cannot be
    /// read or say nothing, the version that the reference names is taken, or the one that the server prefers.
    async fn resolve(&self, (group, kind, stated): &Named) -> Result<Option<Resolved>, ServerError> {
        let Some(known) = self.kinds.any_version(group, kind) else {
            return Ok(None);
        };
        let definition = format!("{}.{group}", known.resource.plural);
        let definitions: Api<CustomResourceDefinition> = Api::all(self.cluster.client().clone());
        let labels = match definitions.get_metadata_opt(&definition).await {
            Ok(found) => found.and_then(|it| it.metadata.labels).unwrap_or_default(),
            Err(error) => {
                let doing = format!("read CustomResourceDefinition {definition}");
                refusal(self.cluster.failed(doing, error))?;
                BTreeMap::new()
            }
        };
        let picked = pick_version(&definition, &labels).ok();
        let served = |version: &String| self.kinds.find(&format!("{group}/{version}"), kind);
        let by_label = picked.as_ref().and_then(|it| served(&it.version));
        let kind = by_label.or_else(|| stated.as_ref().and_then(served)).unwrap_or(known).clone();
        Ok(Some(Resolved { kind, contract: picked.map(|it| it.contract) }))
    }

    /// Lists the kinds of Machines' objects, which is one request for all objects of a kind. Gives those that are referred
    /// to, and those that nobody refers to or owns.
    async fn list_all(
        &self,
        kinds: &BTreeMap<Named, Option<Resolved>>,
        listed: &BTreeSet<Named>,
        references: &BTreeSet<Reference>,
    ) -> Result<(BTreeMap<Reference, Found>, Vec<Value>), ServerError> {
        let resolved =
            kinds.iter().filter(|(named, _)| listed.contains(named)).filter_map(|it| it.1.as_ref());
        let lists: Vec<_> = stream::iter(resolved)
            .map(|it| async { Ok::<_, ServerError>((it.contract, self.list_of(&it.kind).await?)) })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let by_name: BTreeMap<_, _> = references
            .iter()
            .map(|it| ((it.group.as_str(), it.kind.as_str(), it.name.as_str()), it))
            .collect();
        let (mut found, mut strays) = (BTreeMap::new(), Vec::new());
        // Who may not list may still get: what is missing here is asked for one by one.
        for (contract, objects) in
            lists.into_iter().filter_map(|(contract, list)| Some((contract, list.ok()?)))
        {
            for object in objects {
                let text =
                    |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
                let group = text("/apiVersion").split_once('/').map_or("", |it| it.0);
                let reference = by_name.get(&(group, text("/kind"), name(&object))).copied();
                match reference.filter(|it| it.leads_to(&object)) {
                    Some(reference) => {
                        found.insert(reference.clone(), Found::Object(Box::new(object), contract));
                    }
                    None if is_unowned(&object) => strays.push(object),
                    None => {}
                }
            }
        }
        strays.sort_by_key(|it| (it["kind"].as_str().map(str::to_owned), name(it).to_owned()));
        Ok((found, strays))
    }

    async fn get(
        &self,
        reference: &Reference,
        kinds: &BTreeMap<Named, Option<Resolved>>,
    ) -> Result<Found, ServerError> {
        let Some(Some(Resolved { kind, contract })) = kinds.get(&named(reference)) else {
            let message = format!(
                "it is referred to, but no kind {} of group {} is installed",
                reference.kind, reference.group
            );
            return Ok(Found::Unreadable(Unreadable { why: Why::NoSuchKind, message }));
        };
        match self.cluster.objects(kind, Some(&reference.namespace)).get_opt(&reference.name).await {
            Ok(Some(object)) => Ok(Found::Object(Box::new(value(object, kind)), *contract)),
            Ok(None) => Ok(Found::Unreadable(Unreadable {
                why: Why::NotFound,
                message: "it is referred to, but does not exist".to_owned(),
            })),
            Err(error) => {
                let error = self.cluster.failed(format!("read {reference}"), error);
                Ok(Found::Unreadable(refusal(error)?))
            }
        }
    }

    fn watch(
        &self,
        reference: &Reference,
        kinds: &BTreeMap<Named, Option<Resolved>>,
        listed: &BTreeSet<Named>,
    ) -> Option<Watched> {
        let named = named(reference);
        let resource = kinds.get(&named)?.as_ref()?.kind.resource.clone();
        Some(if listed.contains(&named) {
            Watched::belonging(resource, self.namespace, self.name)
        } else {
            Watched::one(resource, &reference.namespace, &reference.name)
        })
    }
}

fn named(reference: &Reference) -> Named {
    (reference.group.clone(), reference.kind.clone(), reference.stated_version.clone())
}

fn is_unowned(object: &Value) -> bool {
    object.pointer("/metadata/ownerReferences").and_then(Value::as_array).is_none_or(Vec::is_empty)
}

/// An object with its kind, which servers leave out in lists.
fn value(object: DynamicObject, kind: &Kind) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        map.insert("apiVersion".to_owned(), kind.resource.api_version.clone().into());
        map.insert("kind".to_owned(), kind.resource.kind.clone().into());
    }
    value
}

/// What a server's refusal of one request becomes in the tree. Who is not let in at all, or reaches nobody, is told so
/// instead.
fn refusal(error: ServerError) -> Result<Unreadable, ServerError> {
    let Some(status) = error.status().filter(|it| it.code != UNAUTHORIZED) else {
        return Err(error);
    };
    let why = if status.is_forbidden() { Why::Forbidden } else { Why::ServerError };
    Ok(Unreadable { why, message: status.message.clone() })
}
