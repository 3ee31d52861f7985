//! Reading a workload cluster: the Cluster and all lists at once, then all that they refer to at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use capstan_api::{
    contract::crd_name,
    names::{ADDONS_GROUP, CORE_GROUP, label},
};
use capstan_management::{Kind, Kinds, ManagementCluster, ObjectRef, REQUESTS_AT_ONCE, ServerError, crd};
use futures::{StreamExt, TryStreamExt, future::try_join_all, stream};
use kube::api::{DynamicObject, PartialObjectMeta};
use serde_json::Value;

use super::{Crd, Reference, Unreadable, Watched, WorkloadSnapshot};
use crate::{
    clusters::{self, ClusterError, whole},
    fields::{kind as kind_of, name as name_of, stand_in},
};

/// The versions of core's kinds that are understood, the preferred one first.
const VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];
const UNAUTHORIZED: u16 = 401;

/// How much of a CRD is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CrdDetail {
    /// Its labels, which are small; the rest is what the server says of the kind.
    Labels,
    /// All of it.
    Full,
}

/// What is read beside Machines, what makes them, and what they refer to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) health_checks: bool,
    pub(crate) resource_sets: bool,
    pub(crate) templates: bool,
}

/// What was read.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) snapshot: WorkloadSnapshot,
    /// What to watch to know when that changes.
    pub(crate) watched: Vec<Watched>,
    /// Why the Cluster could not be converted to any version; the snapshot has no more than its name then.
    pub(crate) unconvertible: Option<ServerError>,
}

/// What is known of the CRD of a kind.
pub(crate) enum CrdFound {
    /// It has the name that the contract asks for.
    As(Crd),
    /// It has another name.
    Otherwise { name: String, actual: String },
    /// It does not exist.
    Not,
    /// It cannot be read.
    Unknown,
}

impl WorkloadSnapshot {
    pub(crate) fn learn(&mut self, of_group: &str, of_kind: &str, found: CrdFound) {
        match found {
            CrdFound::As(crd) => {
                self.crds.insert(crd_name(of_group, of_kind), crd);
            }
            CrdFound::Otherwise { name, actual } => {
                self.misnamed.insert(name, actual);
            }
            CrdFound::Not | CrdFound::Unknown => {}
        }
    }
}

/// Group and kind, and the version that a reference names.
type Named = (String, String, Option<String>);

/// What was found of the references to one kind.
struct Followed {
    named: Named,
    crd: CrdFound,
    objects: Vec<Value>,
    watched: Vec<Watched>,
}

/// Reads what belongs to one Cluster, and notes what it may not read. A server that does not let the user in or does not
/// answer ends the reading.
pub(crate) struct Reader<'a> {
    pub(crate) cluster: &'a ManagementCluster,
    pub(crate) kinds: Arc<Kinds>,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    detail: CrdDetail,
    notes: Mutex<Vec<Unreadable>>,
}

impl<'a> Reader<'a> {
    pub(crate) async fn new(
        cluster: &'a ManagementCluster,
        namespace: &'a str,
        name: &'a str,
        detail: CrdDetail,
    ) -> Result<Self, ClusterError> {
        clusters::check_name(name)?;
        let kinds = cluster.kinds().await?;
        Ok(Self { cluster, kinds, namespace, name, detail, notes: Mutex::default() })
    }

    /// The snapshot of the workload cluster. What is read later may be noted, too: see [`Reader::notes`].
    pub(crate) async fn read(&self, wanted: Wanted) -> Result<Reading, ClusterError> {
        let lists: Vec<&Kind> = ["Machine", "MachineSet", "MachineDeployment", "MachinePool"]
            .into_iter()
            .chain(wanted.health_checks.then_some("MachineHealthCheck"))
            .filter_map(|kind| self.core_kind(kind))
            .collect();
        let binding = self.kind(ADDONS_GROUP, "ClusterResourceSetBinding").filter(|_| wanted.resource_sets);
        let selector = selector(self.name);
        let in_namespace = Some(self.namespace);
        let ((cluster, unconvertible), listed, bound) = tokio::try_join!(
            self.cluster(),
            async { Ok(try_join_all(lists.iter().map(|it| self.list(it, in_namespace, &selector))).await?) },
            async {
                Ok(match binding {
                    Some(kind) => self.get(kind, self.namespace, self.name).await?,
                    None => None,
                })
            },
        )?;
        let objects = listed.into_iter().flatten().flatten().chain(bound).collect();
        let mut snapshot = WorkloadSnapshot { cluster, objects, ..WorkloadSnapshot::default() };
        let singles = self.core_kind("Cluster").into_iter().chain(binding);
        let singles = singles.map(|it| Watched::one(it.resource.clone(), self.namespace, self.name));
        let lists = lists.iter().map(|it| Watched::belonging(it.resource.clone(), self.namespace, self.name));
        let mut watched: Vec<_> = singles.chain(lists).collect();
        self.follow_all(&mut snapshot, wanted.templates, &mut watched).await?;
        snapshot.objects.sort_by_cached_key(|it| (kind_of(it).to_owned(), name_of(it).to_owned()));
        Ok(Reading { snapshot, watched, unconvertible })
    }

    /// What could not be read.
    pub(crate) fn notes(self) -> Vec<Unreadable> {
        self.notes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a user may not read.
    pub(crate) fn note(&self, what: ObjectRef, error: ServerError) -> Result<(), ServerError> {
        if is_fatal(&error) {
            return Err(error);
        }
        let note = Unreadable { what, is_forbidden: error.is_forbidden(), reason: error.reason() };
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
        Ok(())
    }

    fn kind(&self, group: &str, kind: &str) -> Option<&Kind> {
        VERSIONS.iter().find_map(|version| self.kinds.find(&format!("{group}/{version}"), kind))
    }

    pub(crate) fn core_kind(&self, kind: &str) -> Option<&Kind> {
        self.kind(CORE_GROUP, kind)
    }

    /// The Cluster in any version that can be read; no more than its name where none can be converted to, and why.
    async fn cluster(&self) -> Result<(Value, Option<ServerError>), ClusterError> {
        let Self { namespace, name, .. } = self;
        let versions = VERSIONS.map(|version| format!("{CORE_GROUP}/{version}"));
        let mut unconvertible = None;
        for kind in versions.iter().filter_map(|it| self.kinds.find(it, "Cluster")) {
            match self.cluster.objects(kind, Some(namespace)).get_opt(name).await {
                Ok(Some(object)) => return Ok((whole(kind, object), None)),
                Ok(None) => return Err(clusters::not_found(self.cluster, kind, namespace, name).await),
                Err(error) => {
                    let is_conversion = capstan_management::error::is_about_conversion(&error);
                    let error = self.cluster.failed(format!("read Cluster {namespace}/{name}"), error);
                    if !is_conversion {
                        return Err(error.into());
                    }
                    unconvertible = Some(error);
                }
            }
        }
        let (Some(error), Some(kind)) = (unconvertible, self.core_kind("Cluster")) else {
            return Err(ClusterError::NotInstalled { url: self.cluster.url().to_owned() });
        };
        Ok((stand_in(&kind.object(Some(namespace), name)), Some(error)))
    }

    /// Follows references until there are no more: a control plane names its template only when it has been read.
    async fn follow_all(
        &self,
        snapshot: &mut WorkloadSnapshot,
        with_templates: bool,
        watched: &mut Vec<Watched>,
    ) -> Result<(), ServerError> {
        let of_machines: BTreeSet<Named> = snapshot.machine_references().iter().map(named).collect();
        let mut followed = BTreeSet::new();
        loop {
            let mut kinds: BTreeMap<Named, Vec<Reference>> = BTreeMap::new();
            for reference in snapshot.references(with_templates) {
                if followed.insert(reference.clone()) {
                    kinds.entry(named(&reference)).or_default().push(reference);
                }
            }
            if kinds.is_empty() {
                return Ok(());
            }
            let found: Vec<Followed> = stream::iter(kinds)
                .map(|(named, references)| {
                    let is_listed = of_machines.contains(&named);
                    self.follow(named, references, is_listed)
                })
                .buffer_unordered(REQUESTS_AT_ONCE)
                .try_collect()
                .await?;
            for Followed { named: (group, kind, _), crd, objects, watched: more } in found {
                snapshot.learn(&group, &kind, crd);
                snapshot.objects.extend(objects);
                watched.extend(more);
            }
        }
    }

    /// Follows the references to one kind. Machines' objects are listed, which is one request for all of them; the rest is
    /// read one by one.
    async fn follow(
        &self,
        named: Named,
        references: Vec<Reference>,
        is_listed: bool,
    ) -> Result<Followed, ServerError> {
        let crd = self.crd(&named.0, &named.1).await?;
        let Some(kind) = self.spoken(&crd, &named) else {
            return Ok(Followed { named, crd, objects: Vec::new(), watched: Vec::new() });
        };
        let resource = &kind.resource;
        let selector = selector(self.name);
        let (mut objects, watched) = if is_listed {
            // Who may not list may still get.
            let listed = match self.cluster.list(&kind, Some(self.namespace), &selector).await {
                Ok(objects) => objects.into_iter().map(|it| whole(&kind, it)).collect(),
                Err(error) if is_fatal(&error) => return Err(error),
                Err(_) => Vec::new(),
            };
            (listed, vec![Watched::belonging(resource.clone(), self.namespace, self.name)])
        } else {
            let one = |it: &Reference| Watched::one(resource.clone(), &it.namespace, &it.name);
            (Vec::new(), references.iter().map(one).collect())
        };
        let names: BTreeSet<String> = objects.iter().map(|it| name_of(it).to_owned()).collect();
        let rest: Vec<Option<Value>> = stream::iter(references.iter().filter(|it| !names.contains(&it.name)))
            .map(|it| self.get(&kind, &it.namespace, &it.name))
            .buffer_unordered(REQUESTS_AT_ONCE)
            .try_collect()
            .await?;
        objects.extend(rest.into_iter().flatten());
        Ok(Followed { named, crd, objects, watched })
    }

    /// The kind in the version that speaks the contract, or else in the one that the reference names or the server prefers.
    fn spoken(&self, crd: &CrdFound, (group, kind, stated): &Named) -> Option<Kind> {
        let served = |version: &String| self.kinds.find(&format!("{group}/{version}"), kind);
        let picked = match crd {
            CrdFound::As(crd) => crd.picked().ok().and_then(|it| served(&it.version)),
            _ => None,
        };
        let stated = || stated.as_ref().and_then(served);
        picked.or_else(stated).or_else(|| self.kinds.any_version(group, kind)).cloned()
    }

    /// The CRD of a kind.
    pub(crate) async fn crd(&self, group: &str, kind: &str) -> Result<CrdFound, ServerError> {
        let name = crd_name(group, kind);
        let Some(crds) = self.kinds.find("apiextensions.k8s.io/v1", "CustomResourceDefinition") else {
            return Ok(CrdFound::Unknown);
        };
        let known = self.kinds.any_version(group, kind);
        let actual = known.map(crd::name_of);
        let api = self.cluster.objects(crds, None);
        if self.detail == CrdDetail::Full {
            return Ok(match api.get_opt(&name).await {
                Ok(Some(object)) => CrdFound::As(Crd::of(&whole(crds, object))),
                Ok(None) => actual.map_or(CrdFound::Not, |actual| CrdFound::Otherwise { name, actual }),
                Err(error) => self.unread(crds, None, &name, error).map(|()| CrdFound::Unknown)?,
            });
        }
        let (Some(known), Some(actual)) = (known, actual) else { return Ok(CrdFound::Not) };
        let labels = match api.get_metadata_opt(&actual).await {
            Ok(found) => found.and_then(|it| it.metadata.labels).unwrap_or_default(),
            Err(error) => return self.unread(crds, None, &name, error).map(|()| CrdFound::Unknown),
        };
        let versions = self.kinds.versions(group, kind).into_iter();
        Ok(CrdFound::As(Crd {
            name: actual,
            group: group.to_owned(),
            plural: known.resource.plural.clone(),
            labels,
            is_namespaced: known.is_namespaced,
            versions: versions.map(|it| (it.resource.version.clone(), true)).collect(),
            converter: None,
        }))
    }

    /// An object; none where it does not exist or cannot be read, which is noted.
    pub(crate) async fn get(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ServerError> {
        match self.cluster.objects(kind, Some(namespace)).get_opt(name).await {
            Ok(found) => Ok(found.map(|it| whole(kind, it))),
            Err(error) => self.unread(kind, Some(namespace), name, error).map(|()| None),
        }
    }

    /// The metadata of an object, in the same way.
    pub(crate) async fn metadata(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<PartialObjectMeta<DynamicObject>>, ServerError> {
        match self.cluster.objects(kind, Some(namespace)).get_metadata_opt(name).await {
            Ok(found) => Ok(found),
            Err(error) => self.unread(kind, Some(namespace), name, error).map(|()| None),
        }
    }

    /// Notes why an object was not read.
    pub(crate) fn unread(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        error: kube::Error,
    ) -> Result<(), ServerError> {
        let what = kind.object(namespace.filter(|_| kind.is_namespaced), name);
        let doing = format!("read {what}");
        self.note(what, self.cluster.failed(doing, error))
    }

    /// The objects of a kind; none where they cannot be listed, which is noted.
    pub(crate) async fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Option<Vec<Value>>, ServerError> {
        match self.cluster.list(kind, namespace, selector).await {
            Ok(found) => Ok(Some(found.into_iter().map(|it| whole(kind, it)).collect())),
            Err(error) => self.note(kind.object(None, ""), error).map(|()| None),
        }
    }
}

/// Whether a server does not let the user in, or does not answer.
fn is_fatal(error: &ServerError) -> bool {
    error.status().is_none_or(|it| it.code == UNAUTHORIZED)
}

fn named(reference: &Reference) -> Named {
    (reference.group.clone(), reference.kind.clone(), reference.stated_version.clone())
}

/// What selects the objects that belong to a Cluster.
pub(crate) fn selector(cluster: &str) -> String {
    format!("{}={cluster}", label::CLUSTER_NAME)
}
