//! A control plane with the operator's kinds, releases in ConfigMaps, and a test that plays kubelet.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use capstan_api::{operator, provider::ProviderType};
use capstan_management::{ManagementCluster, sweep};
use capstan_operator::{Fetcher, Options};
use capstan_repository::{Environment, remote::HttpOptions};
use capstan_runtime::{install::install_crds, manager::Manager, metrics::Metrics, options::ManagerOptions};
use capstan_testkit::{Plane, kubelet::Kubelet, wait};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Event, Namespace, Secret},
};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long the operator may take for a step.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);
/// The namespaces of the two providers of most stories.
pub(crate) const CORE: &str = "capi-system";
pub(crate) const AWS: &str = "capa-system";

/// A control plane with the operator's kinds. Deployments become available at once, unless they are held back.
pub(crate) struct World {
    _plane: Arc<Plane>,
    pub(crate) client: Client,
    pub(crate) kubelet: Kubelet,
}

/// An operator inside the test's process.
pub(crate) struct RunningOperator {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl RunningOperator {
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    /// Ends it as a crash would.
    pub(crate) async fn crash(self) {
        self.task.abort();
        assert!(self.task.await.is_err_and(|it| it.is_cancelled()));
    }
}

/// Runs the operator on a client, with environment variables.
pub(crate) fn run_operator(client: Client, environment: Environment) -> RunningOperator {
    run_operator_with(client, environment, Options::default())
}

/// The same with options.
pub(crate) fn run_operator_with(
    client: Client,
    environment: Environment,
    operator_options: Options,
) -> RunningOperator {
    let stop = CancellationToken::new();
    let options = ManagerOptions::embedded();
    let mut manager = Manager::new(options, client, Metrics::default(), "story", "story", stop.clone());
    let fetcher = Fetcher::new(manager.leader_client(), environment, HttpOptions::default());
    capstan_operator::register(&mut manager, fetcher, operator_options);
    let task = tokio::spawn(async move { manager.run().await.unwrap() });
    RunningOperator { stop, task }
}

impl World {
    pub(crate) async fn new() -> Self {
        let plane = Plane::start_bare().await;
        let client = plane.client().await;
        install_crds(&client, &operator::crds(), "testkit").await.unwrap();
        let kubelet = Kubelet::start(client.clone());
        let world = Self { _plane: plane, client, kubelet };
        for namespace in [CORE, AWS] {
            world.create_namespace(namespace).await;
        }
        world
    }

    pub(crate) async fn create_namespace(&self, name: &str) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        namespaces.patch(name, &PatchParams::apply("story"), &Patch::Apply(object)).await.unwrap();
    }

    /// Runs the operator with the usual options.
    pub(crate) fn operator(&self) -> RunningOperator {
        run_operator(self.client.clone(), Environment::default())
    }

    /// Publishes a release in a ConfigMap.
    pub(crate) async fn publish(&self, release: &Release) {
        self.publish_text(release, &manifest(&release.components())).await;
    }

    /// Publishes a release with these components.
    pub(crate) async fn publish_text(&self, release: &Release, components: &str) {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), release.namespace);
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": release.version, "labels": {"pc": release.name}},
            "data": {"metadata": release.metadata().to_string(), "components": components},
        });
        let params = PatchParams::apply("story").force();
        maps.patch(release.version, &params, &Patch::Apply(map)).await.unwrap();
    }

    pub(crate) async fn create_secret(&self, namespace: &str, name: &str, data: &[(&str, &str)]) {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let data: BTreeMap<_, _> = data.iter().copied().collect();
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
        secrets.patch(name, &PatchParams::apply("story").force(), &Patch::Apply(secret)).await.unwrap();
    }

    pub(crate) fn providers(&self, kind: ProviderType, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &operator::resource(kind))
    }

    pub(crate) fn core(&self) -> Provider<'_> {
        Provider { world: self, kind: ProviderType::Core, namespace: CORE, name: "cluster-api" }
    }

    pub(crate) fn aws(&self) -> Provider<'_> {
        Provider { world: self, kind: ProviderType::Infrastructure, namespace: AWS, name: "aws" }
    }

    pub(crate) fn deployment(&self, namespace: &str) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Core and aws, installed from ConfigMaps in their first versions; the operator runs.
    pub(crate) async fn with_providers(&self) {
        for release in [Release::core("v1.10.0", "v1beta1"), Release::aws("v2.1.0", "v1beta1")] {
            self.publish(&release).await;
        }
        self.create_secret(AWS, "aws-variables", &[("AWS_REGION", "eu-1")]).await;
        self.core().create(json!({"version": "v1.10.0", "fetchConfig": selector("core")})).await;
        let spec =
            json!({"version": "v2.1.0", "secretName": "aws-variables", "fetchConfig": selector("aws")});
        self.aws().create(spec).await;
        self.core().until_ready().await;
        self.aws().until_ready().await;
    }

    /// What is installed for providers, by kind and name, without what servers add.
    pub(crate) async fn installed(&self) -> BTreeMap<String, Value> {
        let cluster = ManagementCluster::new(self.client.clone(), "the story's server");
        let mut found = BTreeMap::new();
        for component in sweep::sweep(&cluster, "clusterctl.cluster.x-k8s.io").await.unwrap() {
            let api = cluster.objects(&component.kind, component.id.namespace.as_deref());
            found.insert(
                component.id.to_string(),
                without_servers_fields(api.get(&component.id.name).await.unwrap()),
            );
        }
        found
    }
}

/// A provider object of a story.
pub(crate) struct Provider<'w> {
    world: &'w World,
    pub(crate) kind: ProviderType,
    pub(crate) namespace: &'static str,
    pub(crate) name: &'static str,
}

impl Provider<'_> {
    pub(crate) fn within(self, namespace: &'static str) -> Self {
        Self { namespace, ..self }
    }

    pub(crate) fn of_kind(self, kind: ProviderType) -> Self {
        Self { kind, ..self }
    }

    pub(crate) fn called(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    pub(crate) fn api(&self) -> Api<DynamicObject> {
        self.world.providers(self.kind, self.namespace)
    }

    pub(crate) async fn create(&self, spec: Value) {
        let object = json!({
            "apiVersion": format!("{}/{}", operator::GROUP, operator::VERSION),
            "kind": self.kind.as_str(),
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": spec,
        });
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        self.api().create(&kube::api::PostParams::default(), &object).await.unwrap();
    }

    /// Edits the object by a merge patch.
    pub(crate) async fn edit(&self, patch: Value) {
        self.api().patch(self.name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn set_version(&self, version: &str) {
        self.edit(json!({"spec": {"version": version}})).await;
    }

    pub(crate) async fn set_paused(&self, paused: bool) {
        self.edit(json!({"spec": {"paused": paused}})).await;
    }

    pub(crate) async fn delete(&self) {
        self.api().delete(self.name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn until_gone(&self) {
        wait::until_gone(&self.api(), self.name, LIMIT).await;
    }

    pub(crate) async fn until_ready(&self) -> DynamicObject {
        self.until("ready", |it| {
            condition(it, "Ready").0 == "True"
                && it.data["status"]["observedGeneration"] == json!(it.metadata.generation)
        })
        .await
    }

    /// Waits until the provider is installed in a version, with all conditions True.
    pub(crate) async fn until_installed(&self, version: &str) -> DynamicObject {
        self.until(version, |it| {
            it.data["status"]["installedVersion"] == version && condition(it, "Ready").0 == "True"
        })
        .await
    }

    /// Waits until a condition that is not True says these words.
    pub(crate) async fn until_words(&self, type_: &str, words: &str) -> DynamicObject {
        let what = format!("{type_} with {words:?}");
        self.until(&what, |it| {
            let found = condition(it, type_);
            found.0 == "False" && found.2.contains(words)
        })
        .await
    }

    /// Waits until a condition has a status and reason.
    pub(crate) async fn until_condition(&self, type_: &str, status: &str, reason: &str) -> DynamicObject {
        let what = format!("{type_}={status}/{reason}");
        self.until(&what, |it| {
            let found = condition(it, type_);
            (found.0.as_str(), found.1.as_str()) == (status, reason)
        })
        .await
    }

    pub(crate) async fn until(&self, what: &str, fits: impl Fn(&DynamicObject) -> bool) -> DynamicObject {
        wait::until_is(&self.api(), self.name, what, LIMIT, fits).await
    }

    pub(crate) async fn get(&self) -> DynamicObject {
        self.api().get(self.name).await.unwrap()
    }
}

/// Status, reason and message of a condition; empty if there is none.
pub(crate) fn condition(object: &DynamicObject, type_: &str) -> (String, String, String) {
    let conditions = object.data["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.into_iter().find(|it| it["type"] == type_);
    let text = |field: &str| found.and_then(|it| it[field].as_str()).unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

/// A fetch configuration for the ConfigMaps of a provider.
pub(crate) fn selector(name: &str) -> Value {
    json!({"selector": {"matchLabels": {"pc": name}}})
}

/// A made-up release.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    pub(crate) name: &'static str,
    pub(crate) namespace: &'static str,
    pub(crate) version: &'static str,
    pub(crate) contract: &'static str,
    /// Objects beside the usual ones.
    pub(crate) more: Vec<Value>,
    /// The replicas that the Deployment names.
    pub(crate) replicas: Option<i64>,
}

impl Release {
    pub(crate) fn core(version: &'static str, contract: &'static str) -> Self {
        Self { name: "core", namespace: CORE, version, contract, more: Vec::new(), replicas: Some(1) }
    }

    pub(crate) fn aws(version: &'static str, contract: &'static str) -> Self {
        Self { name: "aws", namespace: AWS, version, contract, more: Vec::new(), replicas: Some(1) }
    }

    pub(crate) fn metadata(&self) -> Value {
        let (major, rest) = self.version.trim_start_matches('v').split_once('.').unwrap();
        let minor = rest.split_once('.').unwrap().0;
        let number = |text: &str| text.parse::<u32>().unwrap();
        json!({
            "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
            "kind": "Metadata",
            "releaseSeries": [{"major": number(major), "minor": number(minor), "contract": self.contract}],
        })
    }

    /// The name of the Deployment.
    pub(crate) fn manager(&self) -> String {
        format!("{}-controller-manager", self.namespace.trim_end_matches("-system"))
    }

    pub(crate) fn components(&self) -> Vec<Value> {
        let Self { namespace, version, contract, .. } = self;
        let short = namespace.trim_end_matches("-system");
        let (group, kind) = if self.name == "core" {
            ("cluster.x-k8s.io", "Cluster")
        } else {
            ("infrastructure.cluster.x-k8s.io", "AWSCluster")
        };
        let plural = format!("{}s", kind.to_lowercase());
        let contract_label = format!("cluster.x-k8s.io/{contract}");
        let (arguments, environment) = if self.name == "core" {
            let gates = "--feature-gates=MachinePool=true,ClusterTopology=${CLUSTER_TOPOLOGY:=false}";
            (json!(["--leader-elect", gates]), json!([]))
        } else {
            (json!(["--leader-elect", "--v=0"]), json!([{"name": "AWS_REGION", "value": "${AWS_REGION}"}]))
        };
        let mut objects = vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.{group}"), "labels": {contract_label: "v1beta1"}},
                "spec": {
                    "group": group,
                    "scope": "Namespaced",
                    "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                              "singular": kind.to_lowercase()},
                    "versions": [{
                        "name": "v1beta1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                    }],
                },
            }),
            json!({"apiVersion": "v1", "kind": "ServiceAccount",
                   "metadata": {"name": format!("{short}-manager"), "namespace": namespace}}),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {"name": format!("{short}-manager-role")},
                "rules": [{"apiGroups": [group], "resources": ["*"], "verbs": ["*"]}],
            }),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("{short}-manager-rolebinding")},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                            "name": format!("{short}-manager-role")},
                "subjects": [{"kind": "ServiceAccount", "name": format!("{short}-manager"), "namespace": namespace}],
            }),
            json!({
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": format!("{short}-webhook-service"), "namespace": namespace,
                             "labels": {"app.kubernetes.io/version": version}},
                "spec": {"ports": [{"port": 443, "targetPort": 9443}], "selector": {"app": short}},
            }),
            json!({
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": self.manager(), "namespace": namespace},
                "spec": {
                    "replicas": self.replicas,
                    "selector": {"matchLabels": {"app": short}},
                    "template": {
                        "metadata": {"labels": {"app": short}},
                        "spec": {
                            "serviceAccountName": format!("{short}-manager"),
                            "containers": [{
                                "name": "manager",
                                "image": format!("registry.example.com/{short}/manager:{version}"),
                                "args": arguments,
                                "env": environment,
                                "resources": {"limits": {"cpu": "1"}},
                            }],
                        },
                    },
                },
            }),
        ];
        if self.replicas.is_none() {
            objects[6]["spec"].as_object_mut().unwrap().remove("replicas");
        }
        objects.extend(self.more.iter().cloned());
        objects
    }
}

/// A Deployment beside the manager's, which leaves its replicas open.
pub(crate) fn second_deployment(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "other", "image": "registry.example.com/other:v1"}]},
            },
        },
    })
}

pub(crate) fn manifest(objects: &[Value]) -> String {
    objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}

/// The arguments of a Deployment's first container.
pub(crate) fn arguments(deployment: &Deployment) -> Vec<String> {
    container(deployment).args.clone().unwrap_or_default()
}

/// The first container of a Deployment.
pub(crate) fn container(deployment: &Deployment) -> &k8s_openapi::api::core::v1::Container {
    &deployment.spec.as_ref().unwrap().template.spec.as_ref().unwrap().containers[0]
}

/// The replicas that a Deployment asks for.
pub(crate) fn replicas(deployment: &Deployment) -> i32 {
    deployment.spec.as_ref().unwrap().replicas.unwrap()
}

/// Waits for an Event about an object, given as `type reason`.
pub(crate) async fn until_event(client: &Client, namespace: &str, name: &str, wanted: &str) -> Event {
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    wait::until_any(&events, wanted, LIMIT, |it| {
        let text = |it: &Option<String>| it.clone().unwrap_or_default();
        it.involved_object.name.as_deref() == Some(name)
            && format!("{} {}", text(&it.type_), text(&it.reason)) == wanted
    })
    .await
}

/// An object without what servers add to it.
fn without_servers_fields(object: DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    value.as_object_mut().unwrap().remove("status");
    let metadata = value["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
        metadata.remove(field);
    }
    if value.pointer("/spec/clusterIP").is_some() {
        for field in ["clusterIP", "clusterIPs"] {
            value["spec"].as_object_mut().unwrap().remove(field);
        }
    }
    value
}
