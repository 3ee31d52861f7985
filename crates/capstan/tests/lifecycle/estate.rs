//! A control plane with nothing on it, and a user with made-up releases of core, bootstrap, control plane and
//! infrastructure providers and of cert-manager.

use std::{collections::BTreeMap, sync::Arc};

use capstan_management::{
    ManagementCluster,
    inventory::{self, Installed},
    sweep,
};
use capstan_testkit::Plane;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, PostParams},
};
use serde_json::{Value, json};

use crate::user::{Told, User};

/// The version of cert-manager that the user's configuration names.
pub(crate) const CERT_MANAGER_VERSION: &str = "v1.2.3";
/// The providers that are made up: name, type, label, and what its file's name begins with.
const PROVIDERS: [(&str, &str, &str, &str); 4] = [
    ("cluster-api", "CoreProvider", "cluster-api", "core"),
    ("kubeadm", "BootstrapProvider", "bootstrap-kubeadm", "bootstrap"),
    ("kubeadm", "ControlPlaneProvider", "control-plane-kubeadm", "control-plane"),
    ("acme", "InfrastructureProvider", "infrastructure-acme", "infrastructure"),
];

/// One user and their management cluster.
pub(crate) struct Estate {
    pub(crate) plane: Arc<Plane>,
    pub(crate) user: User,
    pub(crate) client: Client,
}

/// A made-up release.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    /// The provider's label.
    pub(crate) label: &'static str,
    pub(crate) version: &'static str,
    /// Its namespace.
    pub(crate) namespace: &'static str,
    /// Its kind, with the versions that it has: the last one is stored.
    pub(crate) kind: (&'static str, &'static str, &'static [&'static str]),
    /// What its metadata say, e.g. `("1.0", "v1beta2")`.
    pub(crate) series: &'static [(&'static str, &'static str)],
}

/// The series of made-up providers.
pub(crate) const SERIES: &[(&str, &str)] = &[("1.0", "v1beta2"), ("1.1", "v1beta2"), ("1.2", "v1beta2")];

impl Release {
    /// The four providers in one version.
    pub(crate) fn all(version: &'static str) -> [Self; 4] {
        let release = |label, namespace, group, kind| Self {
            label,
            version,
            namespace,
            kind: (group, kind, &["v1beta1", "v1beta2"]),
            series: SERIES,
        };
        [
            release("cluster-api", "capi-system", "cluster.x-k8s.io", "Cluster"),
            release(
                "bootstrap-kubeadm",
                "capi-kubeadm-bootstrap-system",
                "bootstrap.cluster.x-k8s.io",
                "KubeadmConfig",
            ),
            release(
                "control-plane-kubeadm",
                "capi-kubeadm-control-plane-system",
                "controlplane.cluster.x-k8s.io",
                "KubeadmControlPlane",
            ),
            release("infrastructure-acme", "acme-system", "infrastructure.cluster.x-k8s.io", "AcmeCluster"),
        ]
    }

    /// Its components, in the order of a real release.
    pub(crate) fn components(&self) -> Vec<Value> {
        let Self { namespace, version, .. } = self;
        let short = namespace.trim_end_matches("-system");
        let (group, kind, versions) = self.kind;
        let plural = format!("{}s", kind.to_lowercase());
        let meta = |name: &str| json!({"name": format!("{short}-{name}"), "namespace": namespace});
        let versions =
            versions.iter().enumerate().map(|(at, name)| version_of(name, at + 1 == versions.len()));
        vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {
                    "name": format!("{plural}.{group}"),
                    "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"},
                },
                "spec": {
                    "group": group,
                    "scope": "Namespaced",
                    "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                              "singular": kind.to_lowercase()},
                    "versions": versions.collect::<Vec<_>>(),
                },
            }),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta("manager")}),
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
                "subjects": [{"kind": "ServiceAccount", "name": format!("{short}-manager"),
                              "namespace": namespace}],
            }),
            json!({
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {
                    "name": format!("{short}-webhook-service"),
                    "namespace": namespace,
                    "labels": {"app.kubernetes.io/version": version},
                },
                "spec": {"ports": [{"port": 443, "targetPort": 9443}], "selector": {"app": short}},
            }),
            json!({
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": meta("controller-manager"),
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": {"app": short}},
                    "template": {
                        "metadata": {"labels": {"app": short}},
                        "spec": {
                            "serviceAccountName": format!("{short}-manager"),
                            "containers": [{
                                "name": "manager",
                                "image": format!("registry.example.com/{short}:{version}"),
                                "args": ["--leader-elect", "--v=0"],
                            }],
                        },
                    },
                },
            }),
            json!({
                "apiVersion": "cert-manager.io/v1",
                "kind": "Certificate",
                "metadata": meta("serving-cert"),
                "spec": {"secretName": "webhook-cert", "issuerRef": {"kind": "Issuer",
                         "name": format!("{short}-selfsigned-issuer")}},
            }),
            json!({
                "apiVersion": "cert-manager.io/v1",
                "kind": "Issuer",
                "metadata": meta("selfsigned-issuer"),
                "spec": {"selfSigned": {}},
            }),
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {
                    "name": format!("{short}-validating-webhook-configuration"),
                    "annotations": {"cert-manager.io/inject-ca-from": format!("{namespace}/{short}-serving-cert")},
                },
                "webhooks": [{
                    "name": format!("validation.{plural}.{group}"),
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    // No webhook answers on a control plane without nodes.
                    "failurePolicy": "Ignore",
                    "timeoutSeconds": 1,
                    "clientConfig": {"service": {"name": format!("{short}-webhook-service"),
                                                 "namespace": namespace, "path": "/validate"}},
                    "rules": [{"apiGroups": [group], "apiVersions": ["*"], "operations": ["DELETE"],
                               "resources": [plural]}],
                }],
            }),
        ]
    }

    pub(crate) fn metadata(&self) -> Value {
        let series = self.series.iter().map(|(series, contract)| {
            let (major, minor) = series.split_once('.').unwrap();
            json!({"major": major.parse::<u32>().unwrap(), "minor": minor.parse::<u32>().unwrap(),
                   "contract": contract})
        });
        json!({
            "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
            "kind": "Metadata",
            "releaseSeries": series.collect::<Vec<_>>(),
        })
    }
}

fn version_of(name: &str, is_stored: bool) -> Value {
    json!({
        "name": name,
        "served": true,
        "storage": is_stored,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        "subresources": {"status": {}},
    })
}

impl Estate {
    /// A control plane with nothing on it, and version v1.0.0 of every provider in the user's local repository.
    pub(crate) async fn new() -> Self {
        Self::on(Plane::start().await).await
    }

    /// The same without Kubernetes' own controllers: nothing changes but by the commands.
    pub(crate) async fn bare() -> Self {
        Self::on(Plane::start_bare().await).await
    }

    async fn on(plane: Arc<Plane>) -> Self {
        let client = plane.client().await;
        let user = User::new().with("KUBECONFIG", plane.kubeconfig());
        let estate = Self { plane, user, client };
        for release in Release::all("v1.0.0") {
            estate.publish(&release);
        }
        estate.user.configure(&estate.configuration());
        estate
    }

    /// The user's configuration file.
    pub(crate) fn configuration(&self) -> Value {
        let file = format!("repository/cert-manager/{CERT_MANAGER_VERSION}/cert-manager.yaml");
        let cert_manager = self.user.write(&file, &manifest(&cert_manager()));
        let providers: Vec<_> =
            PROVIDERS.iter().map(|(name, kind, ..)| self.user.local_provider(name, kind)).collect();
        json!({
            "providers": providers,
            "cert-manager": {"url": cert_manager, "version": CERT_MANAGER_VERSION},
        })
    }

    /// Puts a release into the user's local repository.
    pub(crate) fn publish(&self, release: &Release) {
        self.publish_with(release, &release.components());
    }

    /// The same with other components.
    pub(crate) fn publish_with(&self, release: &Release, components: &[Value]) {
        let prefix = PROVIDERS.iter().find(|it| it.2 == release.label).unwrap().3;
        let metadata = release.metadata().to_string();
        let files = [
            ("metadata.yaml", metadata.as_str()),
            (&format!("{prefix}-components.yaml"), &manifest(components)),
        ];
        self.user.release(release.label, release.version, &files);
    }

    /// Runs the binary against the control plane.
    pub(crate) fn run(&self, arguments: &[&str]) -> Told {
        self.user.run(arguments)
    }

    /// The management cluster, as libraries see it.
    pub(crate) fn cluster(&self) -> ManagementCluster {
        ManagementCluster::new(self.client.clone(), "the story's server")
    }

    /// Creates objects as `kubectl apply` does.
    pub(crate) async fn create_by_hand(&self, objects: &[Value]) {
        let cluster = self.cluster();
        let params = PostParams {
            field_manager: Some("kubectl-client-side-apply".to_owned()),
            ..PostParams::default()
        };
        for object in objects {
            let kind = cluster.kinds().await.unwrap().of(object).unwrap().clone();
            let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
            let api = cluster.objects(&kind, object.metadata.namespace.as_deref());
            api.create(&params, &object).await.unwrap();
        }
    }

    /// What clusterctl's label marks, by kind and name, without what servers add.
    pub(crate) async fn labelled(&self) -> BTreeMap<String, Value> {
        // Kinds change: each call discovers them again.
        let cluster = self.cluster();
        let kinds: Vec<_> =
            cluster.kinds().await.unwrap().preferred().filter(|it| it.is_managed).cloned().collect();
        let mut found = BTreeMap::new();
        for kind in kinds {
            for object in cluster.list(&kind, None, "clusterctl.cluster.x-k8s.io").await.unwrap() {
                let id = format!(
                    "{} {}/{}",
                    kind.resource.kind,
                    object.namespace().unwrap_or_default(),
                    object.name_any()
                );
                found.insert(id, without_servers_fields(object));
            }
        }
        found
    }
}

impl Estate {
    /// The resourceVersions of what clusterctl's label marks, by kind and name: what is not written keeps its own.
    pub(crate) async fn versions_of_objects(&self) -> BTreeMap<String, String> {
        let found = sweep::sweep(&self.cluster(), "clusterctl.cluster.x-k8s.io").await.unwrap();
        found.into_iter().map(|it| (it.id.to_string(), it.metadata.resource_version.unwrap())).collect()
    }
}

/// An object without what servers add to it.
pub(crate) fn without_servers_fields(object: DynamicObject) -> Value {
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

/// cert-manager without anything that runs: its namespace and the kinds that providers use.
pub(crate) fn cert_manager() -> Vec<Value> {
    let crd = |kind: &str| {
        let plural = format!("{}s", kind.to_lowercase());
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.cert-manager.io")},
            "spec": {
                "group": "cert-manager.io",
                "scope": "Namespaced",
                "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                          "singular": kind.to_lowercase()},
                "versions": [version_of("v1", true)],
            },
        })
    };
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cert-manager"}}),
        crd("Certificate"),
        crd("Issuer"),
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
               "metadata": {"name": "cert-manager", "namespace": "cert-manager"}}),
    ]
}

pub(crate) fn manifest(objects: &[Value]) -> String {
    objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}

/// Deletes a provider's entry from the inventory, as an interrupted command leaves it.
pub(crate) async fn forget(client: &Client, provider: &Installed) {
    let kind = inventory::kind();
    let entries: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), &provider.namespace, &kind.resource);
    entries.delete(&provider.label(), &DeleteParams::default()).await.unwrap();
}
