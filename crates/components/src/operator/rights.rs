//! What the operator may do in a cluster.
//!
//! Kubernetes lets clients grant only rights that they hold, so the operator holds what the managers of well-known
//! providers ask for, and no more: a release that asks for more is refused, and the provider's condition names the rule.
//! The verb `escalate` on all roles would make that check void.
//!
//! Two roles of well-known providers gather the rules of others by label. Kubernetes lets only holders of `escalate` write
//! such a role, whatever it gathers. So the operator has `escalate` and `bind` on these roles, by their names.

use serde_json::{Value, json};

use crate::manager::{named, rule};

/// All that is done to an object.
const ALL: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];

/// The groups of Cluster API and its providers. What is in them belongs to providers, whose managers get anything there.
const CLUSTER_API: [&str; 8] = [
    "addons.cluster.x-k8s.io",
    "bootstrap.cluster.x-k8s.io",
    "cluster.x-k8s.io",
    "clusterctl.cluster.x-k8s.io",
    "controlplane.cluster.x-k8s.io",
    "infrastructure.cluster.x-k8s.io",
    "ipam.cluster.x-k8s.io",
    "runtime.cluster.x-k8s.io",
];

/// The kinds that releases have objects of, by group.
const RELEASED: [(&str, &[&str]); 9] = [
    ("", &["configmaps", "namespaces", "secrets", "serviceaccounts", "services"]),
    (
        "admissionregistration.k8s.io",
        &[
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ],
    ),
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("apps", &["deployments"]),
    ("cert-manager.io", &["certificates", "issuers"]),
    ("coordination.k8s.io", &["leases"]),
    ("networking.k8s.io", &["networkpolicies"]),
    ("policy", &["poddisruptionbudgets"]),
    ("rbac.authorization.k8s.io", &["clusterrolebindings", "clusterroles", "rolebindings", "roles"]),
];

/// What managers of well-known providers ask for beyond that: group, resources, verbs.
const ASKED_FOR: [(&str, &[&str], &[&str]); 11] = [
    ("", &["configmaps/status"], &["get", "patch", "update"]),
    ("", &["events"], &ALL),
    ("", &["nodes"], &["get", "list", "patch", "watch"]),
    ("apiextensions.k8s.io", &["customresourcedefinitions/status"], &["get", "patch", "update"]),
    ("authentication.k8s.io", &["tokenreviews"], &["create"]),
    ("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
    // Hetzner approves the serving certificates of kubelets; see SIGNERS.
    ("certificates.k8s.io", &["certificatesigningrequests"], &["get", "list", "watch"]),
    ("certificates.k8s.io", &["certificatesigningrequests/approval"], &["update"]),
    ("kubevirt.io", &["virtualmachineinstances"], &["get", "list", "watch"]),
    ("kubevirt.io", &["virtualmachines"], &ALL),
    // As the Talos provider writes it; there is no such group.
    ("rbac", &["rolebindings", "roles"], &["create", "get", "list", "watch"]),
];

/// The signer whose certificates may be approved.
const SIGNERS: [&str; 1] = ["kubernetes.io/kubelet-serving"];

/// Roles of well-known providers that gather the rules of others, with and without the prefix of their namespace.
const GATHERING: [&str; 4] = [
    "capi-aggregated-manager-role",
    "capi-kubeadm-control-plane-aggregated-manager-role",
    "capi-kubeadm-control-plane-system-capi-kubeadm-control-plane-aggregated-manager-role",
    "capi-system-capi-aggregated-manager-role",
];

/// The rules of the operator's ClusterRole.
pub fn rules() -> Value {
    let mut rules = vec![
        rule("management.cluster.x-k8s.io", &["*"], &ALL),
        json!({"apiGroups": CLUSTER_API, "resources": ["*"], "verbs": ["*"]}),
    ];
    rules.extend(RELEASED.iter().map(|(group, resources)| rule(group, resources, &ALL)));
    rules.extend(ASKED_FOR.iter().map(|(group, resources, verbs)| rule(group, resources, verbs)));
    rules.extend([
        named(rule("certificates.k8s.io", &["signers"], &["approve"]), &SIGNERS),
        named(rule("rbac.authorization.k8s.io", &["clusterroles"], &["bind", "escalate"]), &GATHERING),
        // Components are found by their label, whatever their kinds.
        rule("*", &["*"], &["list"]),
    ]);
    json!(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(rule: &Value, field: &str, value: &str) -> bool {
        rule[field].as_array().is_some_and(|it| it.contains(&json!(value)))
    }

    #[test]
    fn nobody_becomes_admin_by_these_rules_alone() {
        for rule in rules().as_array().unwrap() {
            let verbs = rule["verbs"].as_array().unwrap();
            if has(rule, "apiGroups", "*") {
                assert_eq!(verbs, &[json!("list")], "{rule}");
            }
            if has(rule, "verbs", "*") {
                let groups = rule["apiGroups"].as_array().unwrap();
                assert!(groups.iter().all(|it| it.as_str().unwrap().ends_with("cluster.x-k8s.io")), "{rule}");
            }
            for verb in ["escalate", "bind", "approve"] {
                assert!(!has(rule, "verbs", verb) || rule["resourceNames"].is_array(), "{rule}");
            }
            assert!(!has(rule, "verbs", "impersonate"), "{rule}");
        }
    }
}
