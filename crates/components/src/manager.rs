//! What the components of all our managers have in common.

use serde_json::{Value, json};

/// The image of this program, without its tag.
pub const IMAGE: &str = "ghcr.io/capstan-io/capstan";
/// The API of roles and bindings.
pub const RBAC: &str = "rbac.authorization.k8s.io/v1";
/// What a watch needs.
pub const FOLLOW: [&str; 2] = ["list", "watch"];

/// What a manager and its objects are called.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The label that all objects carry, and Pods are selected by.
    pub label: (&'static str, &'static str),
    /// Its namespace.
    pub namespace: &'a str,
    /// Its ServiceAccount.
    pub account: &'static str,
    /// The Service in front of the webhooks.
    pub service: &'static str,
    /// What the names of the manager's other objects begin with.
    pub prefix: &'static str,
    /// What `capstan manager` is to run.
    pub controllers: &'static str,
}

/// What a Deployment runs.
#[derive(Clone, Debug)]
pub struct Program<'a> {
    /// The image with its tag.
    pub image: &'a str,
    /// Flags after `manager CONTROLLERS --leader-elect`.
    pub flags: &'a [&'a str],
    /// How many Pods.
    pub replicas: u32,
}

impl Names<'_> {
    /// The Namespace.
    pub fn namespace(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": {"control-plane": "controller-manager"}}})
    }

    /// The ServiceAccount.
    pub fn account(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self.namespaced(self.account)})
    }

    /// The Role in the manager's own namespace.
    pub fn own_role(&self, rules: &Value) -> Value {
        let name = format!("{}-leader-election-role", self.prefix);
        json!({"apiVersion": RBAC, "kind": "Role", "metadata": self.namespaced(&name), "rules": rules})
    }

    /// The binding of that Role.
    pub fn own_binding(&self) -> Value {
        let name = |what: &str| format!("{}-leader-election-{what}", self.prefix);
        json!({"apiVersion": RBAC, "kind": "RoleBinding", "metadata": self.namespaced(&name("rolebinding")),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name("role")}, "subjects": self.subjects()})
    }

    /// Binds a ClusterRole to the manager.
    pub fn cluster_binding(&self, name: &str, role: &str) -> Value {
        json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}, "subjects": self.subjects()})
    }

    /// The Service in front of the webhooks.
    pub fn service(&self) -> Value {
        let (key, value) = self.label;
        json!({"apiVersion": "v1", "kind": "Service", "metadata": self.namespaced(self.service), "spec": {
            "ports": [{"port": 443, "targetPort": "webhook-server"}], "selector": {key: value}}})
    }

    /// Who may connect to the manager: to its webhooks these peers, or everybody, for the API server is no Pod that could
    /// be selected; to its metrics, Pods. The kubelet needs no rule: what runs on a Pod's node reaches it.
    pub fn network_policy(&self, webhook_peers: &Value) -> Value {
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": self.namespaced(&self.deployment_name()),
            "spec": {
                "podSelector": {"matchLabels": self.pod_labels()},
                "policyTypes": ["Ingress"],
                "ingress": [
                    {"from": webhook_peers, "ports": [{"port": "webhook-server", "protocol": "TCP"}]},
                    {"from": [{"namespaceSelector": {}}], "ports": [{"port": "metrics", "protocol": "TCP"}]},
                ],
            },
        })
    }

    /// The Secret with the webhooks' authority, as the manager calls it without flags.
    pub fn secret(&self) -> String {
        format!("{}-ca", self.service)
    }

    /// The name of the Deployment.
    pub fn deployment_name(&self) -> String {
        format!("{}-controller-manager", self.prefix)
    }

    /// The same objects with the manager's label.
    pub fn labelled(&self, mut objects: Vec<Value>) -> Vec<Value> {
        let (key, value) = self.label;
        for object in &mut objects {
            object["metadata"]["labels"][key] = json!(value);
        }
        objects
    }

    /// The Deployment.
    pub fn deployment(&self, program: &Program<'_>) -> Value {
        let labels = self.pod_labels();
        let from_field =
            |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
        let port =
            |name: &str, number: u16| json!({"name": name, "containerPort": number, "protocol": "TCP"});
        let probe = |path: &str| json!({"httpGet": {"path": path, "port": "healthz"}});
        let tolerate = |key: &str| json!({"key": key, "effect": "NoSchedule"});
        let args: Vec<&str> =
            ["manager", self.controllers, "--leader-elect"].iter().chain(program.flags).copied().collect();
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": self.deployment_name(), "namespace": self.namespace, "labels": {"control-plane": "controller-manager"}},
            "spec": {
                "replicas": program.replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "containers": [{
                            "name": "manager",
                            "image": program.image,
                            "imagePullPolicy": "IfNotPresent",
                            "command": ["/capstan"],
                            "args": args,
                            "env": [
                                from_field("POD_NAMESPACE", "metadata.namespace"),
                                from_field("POD_NAME", "metadata.name"),
                                from_field("POD_UID", "metadata.uid"),
                            ],
                            "ports": [port("webhook-server", 9443), port("healthz", 9440), port("metrics", 8443)],
                            "livenessProbe": probe("/healthz"),
                            "readinessProbe": probe("/readyz"),
                            // docs/release.md says what the limit is made of.
                            "resources": {"limits": {"memory": "512Mi"}, "requests": {"cpu": "10m", "memory": "32Mi"}},
                            "securityContext": {
                                "allowPrivilegeEscalation": false,
                                "capabilities": {"drop": ["ALL"]},
                                "privileged": false,
                                "readOnlyRootFilesystem": true,
                                "runAsGroup": 65532,
                                "runAsUser": 65532,
                            },
                            "terminationMessagePolicy": "FallbackToLogsOnError",
                        }],
                        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                        "serviceAccountName": self.account,
                        // Longer than open requests and reconciles may take after the stop signal.
                        "terminationGracePeriodSeconds": 30,
                        "tolerations": [tolerate("node-role.kubernetes.io/control-plane"), tolerate("node-role.kubernetes.io/master")],
                    },
                },
            },
        })
    }

    fn pod_labels(&self) -> Value {
        let (key, value) = self.label;
        json!({key: value, "control-plane": "controller-manager"})
    }

    fn namespaced(&self, name: &str) -> Value {
        json!({"name": name, "namespace": self.namespace})
    }

    fn subjects(&self) -> Value {
        json!([{"kind": "ServiceAccount", "name": self.account, "namespace": self.namespace}])
    }
}

/// A rule of a role.
pub fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// The same for objects of these names only.
pub fn named(mut rule: Value, names: &[&str]) -> Value {
    rule["resourceNames"] = json!(names);
    rule
}

/// Whether a caller may read the metrics is for the API server to say.
pub fn asking_who_may_read_metrics() -> [Value; 2] {
    [
        rule("authentication.k8s.io", &["tokenreviews"], &["create"]),
        rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
    ]
}
