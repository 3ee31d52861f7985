//! The files of a release, as clusterctl and the provider operator expect them: a folder a provider.

mod core;
mod local;

#[cfg(test)]
mod checks;

use anyhow::{Result, bail};
use capstan_api::names::label;
use capstan_manifest::yaml;
use semver::Version;
use serde_json::{Value, json};

const IMAGE: &str = "ghcr.io/capstan-io/capstan";
/// The contract between core and providers that we speak.
const CONTRACT: &str = "v1beta2";
/// Every series that was ever released, for clusterctl wants to find the installed version in the newest metadata.
const SERIES: [(u64, u64); 1] = [(0, 1)];
const RBAC: &str = "rbac.authorization.k8s.io/v1";
const FOLLOW: [&str; 2] = ["list", "watch"];

/// The files, each with its path below the folder of releases: that of a local repository of clusterctl's.
pub(crate) fn files(version: &str) -> Result<Vec<(String, String)>> {
    let Some(parsed) = version.strip_prefix('v').and_then(|version| Version::parse(version).ok()) else {
        bail!("{version:?} is not a version that clusterctl accepts: write it like v0.1.0");
    };
    if !parsed.build.is_empty() {
        bail!(
            "{version:?} has build metadata (what follows +), which no image's tag can hold: leave it away"
        );
    }
    let mut files = Vec::new();
    for (names, own) in [(&core::NAMES, core::files(&parsed)), (&local::NAMES, local::files(&parsed))] {
        let folder = format!("{}/{version}", names.provider);
        files.extend(own.into_iter().map(|(name, text)| (format!("{folder}/{name}"), text)));
    }
    Ok(files)
}

/// What the metadata of a release says. `followed` are series of others that ours can follow on.
fn metadata(version: &Version, followed: &[(u64, u64)]) -> String {
    let own = (version.major, version.minor);
    let mut series = SERIES.to_vec();
    if !series.contains(&own) {
        series.push(own);
    }
    // clusterctl looks for releases of the highest series that it finds here, so it must be one that is ours.
    if followed.iter().all(|other| own > *other) {
        series.extend(followed);
    }
    series.sort_unstable_by(|a, b| b.cmp(a));
    let series: Vec<_> = series
        .iter()
        .map(|(major, minor)| json!({"major": major, "minor": minor, "contract": CONTRACT}))
        .collect();
    yaml::to_string(
        &json!({"apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Metadata", "releaseSeries": series}),
    )
}

/// What a provider and its objects are called.
struct Names {
    /// The value of the provider label.
    provider: &'static str,
    namespace: &'static str,
    account: &'static str,
    /// The Service in front of the webhooks.
    service: &'static str,
    /// What the names of the manager's other objects begin with.
    prefix: &'static str,
    /// What `capstan manager` is to run.
    controllers: &'static str,
}

impl Names {
    fn namespace(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": {"control-plane": "controller-manager"}}})
    }

    fn account(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self.namespaced(self.account)})
    }

    fn own_role(&self, rules: &Value) -> Value {
        let name = format!("{}-leader-election-role", self.prefix);
        json!({"apiVersion": RBAC, "kind": "Role", "metadata": self.namespaced(&name), "rules": rules})
    }

    fn own_binding(&self) -> Value {
        let name = |what: &str| format!("{}-leader-election-{what}", self.prefix);
        json!({"apiVersion": RBAC, "kind": "RoleBinding", "metadata": self.namespaced(&name("rolebinding")),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name("role")}, "subjects": self.subjects()})
    }

    fn cluster_binding(&self, name: &str, role: &str) -> Value {
        json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}, "subjects": self.subjects()})
    }

    fn service(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": self.namespaced(self.service), "spec": {
            "ports": [{"port": 443, "targetPort": "webhook-server"}], "selector": {label::PROVIDER: self.provider}}})
    }

    /// Who may connect to the manager: to its webhooks whom a variable names, or everybody, for the API server is no Pod
    /// that could be selected; to its metrics, Pods. The kubelet needs no rule: what runs on a Pod's node reaches it.
    fn network_policy(&self) -> Value {
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": self.namespaced(&format!("{}-controller-manager", self.prefix)),
            "spec": {
                "podSelector": {"matchLabels": self.pod_labels()},
                "policyTypes": ["Ingress"],
                "ingress": [
                    {"from": "${CAPI_WEBHOOK_PEERS:=[]}", "ports": [{"port": "webhook-server", "protocol": "TCP"}]},
                    {"from": [{"namespaceSelector": {}}], "ports": [{"port": "metrics", "protocol": "TCP"}]},
                ],
            },
        })
    }

    fn pod_labels(&self) -> Value {
        json!({label::PROVIDER: self.provider, "control-plane": "controller-manager"})
    }

    fn namespaced(&self, name: &str) -> Value {
        json!({"name": name, "namespace": self.namespace})
    }

    fn subjects(&self) -> Value {
        json!([{"kind": "ServiceAccount", "name": self.account, "namespace": self.namespace}])
    }

    /// The Secret with the webhooks' authority, as the manager calls it without flags.
    fn secret(&self) -> String {
        format!("{}-ca", self.service)
    }

    /// Labels all objects as the provider's, and writes them.
    fn components(&self, objects: Vec<Value>) -> String {
        yaml::to_multi_document(&self.labelled(objects))
    }

    fn labelled(&self, mut objects: Vec<Value>) -> Vec<Value> {
        for object in &mut objects {
            object["metadata"]["labels"][label::PROVIDER] = json!(self.provider);
        }
        objects
    }

    fn deployment(&self, version: &Version) -> Value {
        let labels = self.pod_labels();
        let from_field =
            |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
        let port =
            |name: &str, number: u16| json!({"name": name, "containerPort": number, "protocol": "TCP"});
        let probe = |path: &str| json!({"httpGet": {"path": path, "port": "healthz"}});
        let tolerate = |key: &str| json!({"key": key, "effect": "NoSchedule"});
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": format!("{}-controller-manager", self.prefix), "namespace": self.namespace, "labels": {"control-plane": "controller-manager"}},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "containers": [{
                            "name": "manager",
                            "image": format!("{IMAGE}:v{version}"),
                            "imagePullPolicy": "IfNotPresent",
                            "command": ["/capstan"],
                            "args": [
                                "manager",
                                self.controllers,
                                "--leader-elect",
                                "--diagnostics-address=${CAPI_DIAGNOSTICS_ADDRESS:=:8443}",
                                "--insecure-diagnostics=${CAPI_INSECURE_DIAGNOSTICS:=false}",
                            ],
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
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// The same for objects of these names only.
fn named(mut rule: Value, names: &[&str]) -> Value {
    rule["resourceNames"] = json!(names);
    rule
}

/// Whether a caller may read the metrics is for the API server to say.
fn asking_who_may_read_metrics() -> [Value; 2] {
    [
        rule("authentication.k8s.io", &["tokenreviews"], &["create"]),
        rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_a_folder_a_provider() {
        let files = files("v0.1.0-rc.1").unwrap();
        let paths: Vec<_> = files.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "cluster-api/v0.1.0-rc.1/core-components.yaml",
                "cluster-api/v0.1.0-rc.1/metadata.yaml",
                "infrastructure-local/v0.1.0-rc.1/infrastructure-components.yaml",
                "infrastructure-local/v0.1.0-rc.1/metadata.yaml",
                "infrastructure-local/v0.1.0-rc.1/cluster-template.yaml",
                "infrastructure-local/v0.1.0-rc.1/cluster-template-tenant.yaml",
            ]
        );
        for (path, text) in files.iter().filter(|(path, _)| path.ends_with("components.yaml")) {
            assert!(text.contains("image: ghcr.io/capstan-io/capstan:v0.1.0-rc.1\n"), "{path}");
        }
    }

    #[test]
    fn metadata_names_the_series_of_the_release() {
        let series = |version: &str| {
            let files = files(version).unwrap();
            let texts = files.iter().filter(|(path, _)| path.ends_with("/metadata.yaml"));
            let counts: Vec<_> = texts
                .map(|(_, text)| {
                    let count = text.matches("- contract").count();
                    assert_eq!(text.matches("contract: v1beta2").count(), count, "{text}");
                    count
                })
                .collect();
            counts
        };
        assert_eq!(series("v0.1.7"), [1, 1]);
        assert_eq!(series("v0.2.0"), [2, 2]);
        assert_eq!(series("v1.14.9"), [2, 2], "upstream's would be higher or the same");
        assert_eq!(series("v1.15.0-rc.1"), [6, 2], "upstream has no local provider to follow on");
        for wrong in ["0.1.0", "v0.1", "v0.1.0.0", "v0.1.0+build", "v0.1.0-rc.1+1", "latest", ""] {
            assert!(files(wrong).is_err(), "{wrong:?}");
        }
    }
}
