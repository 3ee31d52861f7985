//! Taking a snapshot: in three rounds, and all requests of a round at the same time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use capstan_api::{
    contract::crd_name,
    names::{CORE_GROUP, label},
};
use futures::{
    StreamExt,
    future::{join, join_all, join4, join5},
    stream,
};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::{
    fields::{Reference, kind, text},
    snapshot::{Definition, Snapshot, Unreadable},
    topology, webhooks,
    workers::MAKERS,
};
use crate::clusters::{self, ClusterError, whole};
use capstan_management::{Kind, Kinds, ManagementCluster, ObjectRef, ServerError, inventory::Inventory};

/// How many requests for single objects are under way at a time.
const AT_ONCE: usize = 16;

/// Reads all that an explanation of a Cluster needs. Only the Cluster itself must be readable; what else is not is noted.
pub async fn read(
    cluster: &ManagementCluster,
    namespace: &str,
    name: &str,
) -> Result<Snapshot, ClusterError> {
    let kinds = cluster.kinds().await.map_err(ClusterError::from)?;
    let reader = Reader { cluster, kinds: &kinds, namespace, notes: Mutex::default() };
    let mut snapshot = Snapshot { cluster: reader.cluster(name).await?, ..Snapshot::default() };
    Box::pin(reader.read_around(&mut snapshot, name)).await;
    reader.read_below(&mut snapshot, name).await;
    reader.read_beside(&mut snapshot).await;
    snapshot.unreadable = reader.notes.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(snapshot)
}

struct Reader<'a> {
    cluster: &'a ManagementCluster,
    kinds: &'a Kinds,
    namespace: &'a str,
    notes: Mutex<Vec<Unreadable>>,
}

impl<'a> Reader<'a> {
    /// The Cluster; as little as its name where nobody can convert it to any version that is served.
    async fn cluster(&self, name: &str) -> Result<Value, ClusterError> {
        let preferred = &clusters::cluster_kind(self.cluster).await?;
        let others = ["v1beta2", "v1beta1"].map(|version| format!("{CORE_GROUP}/{version}"));
        let others = others.iter().filter_map(|it| self.kinds.find(it, "Cluster"));
        let others = others.filter(|it| it.resource.version != preferred.resource.version);
        let mut unconvertible = None;
        for kind in [preferred].into_iter().chain(others) {
            match self.cluster.objects(kind, Some(self.namespace)).get_opt(name).await {
                Ok(Some(object)) => return Ok(whole(kind, object)),
                Ok(None) => {
                    return Err(clusters::not_found(self.cluster, kind, self.namespace, name).await);
                }
                Err(error) => {
                    let error = self.cluster.failed(format!("read Cluster {}/{name}", self.namespace), error);
                    if !is_conversion(&error) {
                        return Err(error.into());
                    }
                    unconvertible = Some(error);
                }
            }
        }
        let stand_in = json!({
            "apiVersion": preferred.resource.api_version, "kind": "Cluster",
            "metadata": {"namespace": self.namespace, "name": name},
        });
        if let Some(error) = unconvertible {
            self.note(ObjectRef::of(&stand_in), &error);
        }
        Ok(stand_in)
    }

    /// What the Cluster names, what carries its name, and what all providers are made of.
    async fn read_around(&self, snapshot: &mut Snapshot, name: &str) {
        let references: Vec<_> = ["/spec/infrastructureRef", "/spec/controlPlaneRef"]
            .iter()
            .filter_map(|it| Reference::at(&snapshot.cluster, it))
            .collect();
        let selector = format!("{}={name}", label::CLUSTER_NAME);
        let machines = MAKERS.into_iter().chain(["Machine"]).map(|kind| self.of_core(kind, &selector));
        let installed = join5(
            Inventory::read(self.cluster),
            self.list(self.known("apps/v1", "Deployment"), None, label::PROVIDER),
            self.list(
                self.known("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
                None,
                "",
            ),
            self.list(
                self.known("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
                None,
                "",
            ),
            self.namespace_labels(),
        );
        let own = join5(
            join_all(machines),
            self.secret_names(&selector),
            self.class(&snapshot.cluster),
            self.definition(CORE_GROUP, "Cluster"),
            join_all(references.iter().map(|it| self.follow(it))),
        );
        let (
            (inventory, deployments, validating, mutating, labels),
            (machines, secrets, class, own_definition, followed),
        ) = Box::pin(join(installed, own)).await;
        match inventory {
            Ok(inventory) => snapshot.inventory = inventory,
            Err(error) => self.note(kind_ref("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider"), &error),
        }
        snapshot.deployments = deployments;
        snapshot.webhooks = [validating, mutating].into_iter().flatten().flatten().collect();
        snapshot.namespace_labels = labels;
        snapshot.secrets = secrets;
        snapshot.objects.extend(machines.into_iter().flatten());
        snapshot.objects.extend(class);
        snapshot.learn(own_definition);
        for (definition, object) in followed {
            snapshot.learn(definition);
            snapshot.objects.extend(object);
        }
    }

    /// What Machines are made of, and the Secrets that they name.
    async fn read_below(&self, snapshot: &mut Snapshot, name: &str) {
        let mut references: BTreeMap<(String, String), BTreeSet<Reference>> = BTreeMap::new();
        let mut secrets = BTreeSet::new();
        for object in &snapshot.objects {
            for place in ["/spec", "/spec/template/spec"] {
                // Templates of deployments and sets are no objects of their own.
                if place == "/spec/template/spec" && kind(object) != "MachinePool" {
                    continue;
                }
                let at = |pointer: &str| Reference::at(object, &format!("{place}/{pointer}"));
                for reference in [at("infrastructureRef"), at("bootstrap/configRef")].into_iter().flatten() {
                    let of_kind =
                        references.entry((reference.group.clone(), reference.kind.clone())).or_default();
                    of_kind.insert(reference);
                }
                secrets.extend(text(object, &format!("{place}/bootstrap/dataSecretName")).map(str::to_owned));
            }
        }
        secrets.insert(format!("{name}-{}", capstan_api::names::secret::KUBECONFIG));
        let missing: Vec<_> = secrets.difference(&snapshot.secrets).cloned().collect();
        let of_kinds =
            references.iter().map(|((group, kind), wanted)| self.follow_all(group, kind, wanted, name));
        let core_kinds = MAKERS.into_iter().chain(["Machine"]);
        let used: Vec<_> = core_kinds.filter(|it| snapshot.all(CORE_GROUP, it).next().is_some()).collect();
        let (of_kinds, found, definitions, leases) = join4(
            join_all(of_kinds),
            stream::iter(&missing)
                .map(|it| self.has_secret(it))
                .buffer_unordered(AT_ONCE)
                .collect::<Vec<_>>(),
            join_all(used.iter().map(|it| self.definition(CORE_GROUP, it))),
            self.leases(snapshot.deployments.as_deref().unwrap_or_default()),
        )
        .await;
        snapshot.secrets.extend(found.into_iter().flatten());
        snapshot.leases = leases;
        for definition in definitions {
            snapshot.learn(definition);
        }
        for (definition, objects) in of_kinds {
            snapshot.learn(definition);
            snapshot.objects.extend(objects);
        }
    }

    /// Who answers the webhooks of all kinds that are concerned.
    async fn read_beside(&self, snapshot: &mut Snapshot) {
        let definitions: Vec<_> = snapshot.definitions.values().collect();
        let services = webhooks::services(&snapshot.webhooks, &definitions);
        let answers = join_all(services.iter().map(|it| self.endpoints(it))).await;
        snapshot.services =
            services.into_iter().zip(answers).filter_map(|(it, found)| Some((it, found?))).collect();
    }

    /// The object behind a reference, and the definition of its kind.
    async fn follow(&self, reference: &Reference) -> (Defined, Option<Value>) {
        let definition = self.definition(&reference.group, &reference.kind).await;
        let object = match self.spoken(&definition, &reference.group, &reference.kind) {
            Some(kind) => self.get(&kind, &reference.name).await,
            None => None,
        };
        (definition, object)
    }

    /// The objects behind many references of a kind: those with the Cluster's label at once, the rest one by one.
    async fn follow_all(
        &self,
        group: &str,
        kind: &str,
        wanted: &BTreeSet<Reference>,
        cluster: &str,
    ) -> (Defined, Vec<Value>) {
        let definition = self.definition(group, kind).await;
        let Some(kind) = self.spoken(&definition, group, kind) else {
            return (definition, Vec::new());
        };
        let selector = format!("{}={cluster}", label::CLUSTER_NAME);
        let Some(mut objects) = self.list(Some(&kind), Some(self.namespace), &selector).await else {
            return (definition, Vec::new());
        };
        let is_there = |it: &&Reference| objects.iter().any(|object| super::fields::name(object) == it.name);
        let missing: Vec<_> = wanted.iter().filter(|it| !is_there(it)).collect();
        let rest = stream::iter(missing).map(|it| self.get(&kind, &it.name)).buffer_unordered(AT_ONCE);
        objects.extend(rest.collect::<Vec<_>>().await.into_iter().flatten());
        (definition, objects)
    }

    /// The kind in the version that its definition says is to be spoken, or else in any.
    fn spoken(&self, definition: &Defined, group: &str, kind: &str) -> Option<Kind> {
        match definition {
            Defined::As(definition) => {
                let picked = definition.picked().filter(|it| definition.served.contains(&it.version))?;
                let gvk = GroupVersionKind::gvk(group, &picked.version, kind);
                let resource = ApiResource::from_gvk_with_plural(&gvk, &definition.plural);
                Some(Kind { resource, is_namespaced: true, is_managed: true, is_preferred: true })
            }
            Defined::Otherwise { .. } | Defined::Not => None,
            Defined::Unknown => self.kinds.any_version(group, kind).cloned(),
        }
    }

    async fn definition(&self, group: &str, kind: &str) -> Defined {
        let name = crd_name(group, kind);
        let Some(definitions) = self.known("apiextensions.k8s.io/v1", "CustomResourceDefinition") else {
            return Defined::Unknown;
        };
        match self.cluster.objects(definitions, None).get_opt(&name).await {
            Ok(Some(object)) => Defined::As(Definition::of(&whole(definitions, object))),
            Ok(None) => match self.kinds.any_version(group, kind) {
                Some(other) => {
                    Defined::Otherwise { name, actual: format!("{}.{group}", other.resource.plural) }
                }
                None => Defined::Not,
            },
            Err(error) => {
                let what = ObjectRef {
                    name: name.clone(),
                    ..kind_ref("apiextensions.k8s.io/v1", "CustomResourceDefinition")
                };
                self.note(what, &self.cluster.failed(format!("read CustomResourceDefinition {name}"), error));
                Defined::Unknown
            }
        }
    }

    async fn get(&self, kind: &Kind, name: &str) -> Option<Value> {
        match self.cluster.objects(kind, Some(self.namespace)).get_opt(name).await {
            Ok(found) => found.map(|it| whole(kind, it)),
            Err(error) => {
                let what = ObjectRef {
                    namespace: Some(self.namespace.to_owned()),
                    name: name.to_owned(),
                    ..kind_ref(&kind.resource.api_version, &kind.resource.kind)
                };
                self.note(what, &self.cluster.failed(format!("read {} {name}", kind.resource.kind), error));
                None
            }
        }
    }

    async fn list(&self, kind: Option<&Kind>, namespace: Option<&str>, selector: &str) -> Option<Vec<Value>> {
        let kind = kind?;
        match self.cluster.list(kind, namespace, selector).await {
            Ok(found) => Some(found.into_iter().map(|it| whole(kind, it)).collect()),
            Err(error) => {
                self.note(kind_ref(&kind.resource.api_version, &kind.resource.kind), &error);
                None
            }
        }
    }

    async fn of_core(&self, kind: &str, selector: &str) -> Vec<Value> {
        let kind = self.kinds.any_version(CORE_GROUP, kind);
        self.list(kind, Some(self.namespace), selector).await.unwrap_or_default()
    }

    async fn class(&self, cluster: &Value) -> Option<Value> {
        let (namespace, name) = topology::class(cluster)?;
        let kind = self.kinds.any_version(CORE_GROUP, "ClusterClass")?;
        match self.cluster.objects(kind, Some(&namespace)).get_metadata_opt(&name).await {
            Ok(found) => found.map(|_| {
                json!({
                    "apiVersion": kind.resource.api_version, "kind": "ClusterClass",
                    "metadata": {"namespace": namespace, "name": name},
                })
            }),
            Err(error) => {
                let what = ObjectRef {
                    namespace: Some(namespace),
                    name: name.clone(),
                    ..kind_ref(&kind.resource.api_version, "ClusterClass")
                };
                self.note(what, &self.cluster.failed(format!("read ClusterClass {name}"), error));
                None
            }
        }
    }

    /// Secrets are only counted: nobody needs to see what is in them.
    async fn secret_names(&self, selector: &str) -> BTreeSet<String> {
        let Some(kind) = self.known("v1", "Secret") else { return BTreeSet::new() };
        match self.cluster.list_metadata(kind, Some(self.namespace), selector).await {
            Ok(found) => found.into_iter().filter_map(|it| it.metadata.name).collect(),
            Err(error) => {
                self.note(kind_ref("v1", "Secret"), &error);
                BTreeSet::new()
            }
        }
    }

    async fn has_secret(&self, name: &str) -> Option<String> {
        let kind = self.known("v1", "Secret")?;
        match self.cluster.objects(kind, Some(self.namespace)).get_metadata_opt(name).await {
            Ok(found) => found.map(|_| name.to_owned()),
            Err(error) => {
                let what = ObjectRef {
                    namespace: Some(self.namespace.to_owned()),
                    name: name.to_owned(),
                    ..kind_ref("v1", "Secret")
                };
                self.note(what, &self.cluster.failed(format!("look for Secret {name}"), error));
                None
            }
        }
    }

    async fn namespace_labels(&self) -> BTreeMap<String, String> {
        let Some(kind) = self.known("v1", "Namespace") else { return BTreeMap::new() };
        match self.cluster.objects(kind, None).get_metadata_opt(self.namespace).await {
            Ok(found) => found.and_then(|it| it.metadata.labels).unwrap_or_default(),
            Err(error) => {
                let what = ObjectRef { name: self.namespace.to_owned(), ..kind_ref("v1", "Namespace") };
                self.note(what, &self.cluster.failed(format!("read namespace {}", self.namespace), error));
                BTreeMap::new()
            }
        }
    }

    async fn leases(&self, deployments: &[Value]) -> Vec<Value> {
        let namespaces: BTreeSet<_> =
            deployments.iter().filter_map(|it| text(it, "/metadata/namespace")).collect();
        let kind = self.known("coordination.k8s.io/v1", "Lease");
        let lists = namespaces.into_iter().map(|it| self.list(kind, Some(it), ""));
        join_all(lists).await.into_iter().flatten().flatten().collect()
    }

    /// How many endpoints of a Service are ready: `Some(None)` if it does not exist, `None` if nobody knows.
    async fn endpoints(&self, (namespace, name): &(String, String)) -> Option<Option<usize>> {
        let services = self.known("v1", "Service")?;
        let slices = self.known("discovery.k8s.io/v1", "EndpointSlice");
        let selector = format!("kubernetes.io/service-name={name}");
        let objects = self.cluster.objects(services, Some(namespace));
        let (service, slices) =
            join(objects.get_metadata_opt(name), self.list(slices, Some(namespace), &selector)).await;
        match service {
            Ok(None) => Some(None),
            Ok(Some(_)) => Some(Some(slices?.iter().map(ready_endpoints).sum())),
            Err(error) => {
                let what = ObjectRef {
                    namespace: Some(namespace.clone()),
                    name: name.clone(),
                    ..kind_ref("v1", "Service")
                };
                self.note(what, &self.cluster.failed(format!("look for Service {namespace}/{name}"), error));
                None
            }
        }
    }

    fn known(&self, api_version: &str, kind: &str) -> Option<&'a Kind> {
        self.kinds.find(api_version, kind)
    }

    fn note(&self, what: ObjectRef, error: &ServerError) {
        let reason = error.status().map_or_else(|| error.to_string(), |it| it.message.clone());
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(Unreadable { what, reason });
    }
}

/// What is known of the definition of a kind.
enum Defined {
    /// It is there, under the name that the contract wants.
    As(Definition),
    /// It is there under another name.
    Otherwise { name: String, actual: String },
    /// It is not there.
    Not,
    /// Nobody knows.
    Unknown,
}

impl Snapshot {
    fn learn(&mut self, defined: Defined) {
        match defined {
            Defined::As(definition) => {
                self.definitions.insert(definition.name.clone(), definition);
            }
            Defined::Otherwise { name, actual } => {
                self.misnamed.insert(name, actual);
            }
            Defined::Not | Defined::Unknown => {}
        }
    }
}

fn kind_ref(api_version: &str, kind: &str) -> ObjectRef {
    ObjectRef {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: None,
        name: String::new(),
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

/// Whether an object could not be read because nobody converts it.
fn is_conversion(error: &ServerError) -> bool {
    error.status().is_some_and(|it| it.message.contains("conversion webhook"))
}
