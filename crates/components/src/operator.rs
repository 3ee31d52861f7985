//! The components of the provider operator.

mod rights;

use capstan_api::{
    admission::Address,
    names::{OPERATOR, label},
    operator::{admission::webhook_configuration, crds},
};
use serde_json::{Value, json};

use crate::manager::{Names, Program, RBAC, named, rule};

pub use rights::rules;

/// The namespace that the release files install the operator in.
pub const NAMESPACE: &str = "capstan-operator-system";
/// The operator's Deployment.
pub const DEPLOYMENT: &str = "capstan-operator-controller-manager";
/// The operator's ServiceAccount.
pub const ACCOUNT: &str = "capstan-operator-manager";
/// The Service in front of the webhook. The manager calls it so without flags.
pub const WEBHOOK_SERVICE: &str = "capstan-operator-webhook-service";
/// The configuration of the webhook. Upstream's operator has one under another name.
pub const WEBHOOK_CONFIGURATION: &str = "capstan-operator-validating-webhook-configuration";
/// The ClusterRole that the operator is bound to. Kubernetes fills it with the rules of all ClusterRoles with
/// [`AGGREGATE_LABEL`].
pub const AGGREGATED_ROLE: &str = "capstan-operator-aggregated-manager-role";
/// The ClusterRole with the operator's own rules.
pub const ROLE: &str = "capstan-operator-manager-role";
/// On a ClusterRole, with the value `"true"`: its rules are granted to the operator.
pub const AGGREGATE_LABEL: &str = "capstan.dev/aggregate-to-operator";
/// The label by which objects are ours: upstream's operator has the same value of `clusterctl.cluster.x-k8s.io/core`.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";
/// The value of [`NAME_LABEL`].
pub const NAME: &str = "capstan-operator";
/// The label of the operator's version.
pub const VERSION_LABEL: &str = "app.kubernetes.io/version";

/// What differs between installations.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The image with its tag.
    pub image: &'a str,
    /// The version, with a leading v.
    pub version: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// How many replicas; one of them leads.
    pub replicas: u32,
}

/// All objects of the operator, in the order in which they are to be created.
pub fn components(options: &Options<'_>) -> Vec<Value> {
    let names = Names {
        label: (NAME_LABEL, NAME),
        namespace: options.namespace,
        account: ACCOUNT,
        service: WEBHOOK_SERVICE,
        prefix: NAME,
        controllers: "operator",
    };
    let address = Address::Service { namespace: names.namespace, name: names.service };
    let mut webhook = json!(webhook_configuration(address));
    webhook["metadata"]["name"] = json!(WEBHOOK_CONFIGURATION);
    let program = Program { image: options.image, flags: &[], replicas: options.replicas };
    let mut objects = vec![names.namespace()];
    objects.extend(crds().iter().map(|crd| json!(crd)));
    objects.extend([
        names.account(),
        names.own_role(&own_rules(&names)),
        // Without `rules`: they are the controller's that aggregates them.
        json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": AGGREGATED_ROLE},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {AGGREGATE_LABEL: "true"}}]}}),
        json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": ROLE, "labels": {AGGREGATE_LABEL: "true"}},
            "rules": rules()}),
        names.own_binding(),
        names.cluster_binding("capstan-operator-manager-rolebinding", AGGREGATED_ROLE),
        names.service(),
        names.network_policy(&json!([])),
        names.deployment(&program),
        webhook,
    ]);
    let mut objects = names.labelled(objects);
    for object in &mut objects {
        let labels = &mut object["metadata"]["labels"];
        labels[label::CLUSTERCTL_CORE] = json!(OPERATOR);
        labels[VERSION_LABEL] = json!(options.version);
    }
    objects
}

/// What a replica does in its own namespace: stand for election, keep the webhook's authority.
fn own_rules(names: &Names<'_>) -> Value {
    json!([
        rule("coordination.k8s.io", &["leases"], &["get", "create", "update"]),
        // A name cannot be asked for before there is an object.
        rule("", &["secrets"], &["create"]),
        named(rule("", &["secrets"], &["get", "list", "watch", "patch"]), &[&names.secret()]),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options<'static> =
        Options { image: "r.example.com/capstan:v9", version: "v9.0.0", namespace: NAMESPACE, replicas: 2 };

    fn of_kind(kind: &str) -> Vec<Value> {
        components(&OPTIONS).into_iter().filter(|it| it["kind"] == kind).collect()
    }

    #[test]
    fn names_and_labels_are_those_that_commands_look_for() {
        for object in components(&OPTIONS) {
            let labels = &object["metadata"]["labels"];
            assert_eq!(labels[label::CLUSTERCTL_CORE], OPERATOR, "{object}");
            assert_eq!(labels[NAME_LABEL], NAME, "{object}");
            assert_eq!(labels[VERSION_LABEL], "v9.0.0", "{object}");
            assert!(!object["metadata"]["name"].as_str().unwrap().starts_with("capi-"), "{object}");
        }
        let [deployment] = &of_kind("Deployment")[..] else { panic!("one Deployment") };
        assert_eq!(deployment["metadata"]["name"], DEPLOYMENT);
        assert_eq!(deployment["spec"]["replicas"], 2);
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], OPTIONS.image);
        assert_eq!(container["args"], json!(["manager", "operator", "--leader-elect"]));
        assert!(container["resources"]["limits"]["memory"].is_string());
        // A version is no part of what Pods are selected by, which cannot be changed.
        let selector = &deployment["spec"]["selector"]["matchLabels"];
        assert_eq!(selector, &json!({NAME_LABEL: NAME, "control-plane": "controller-manager"}));
    }

    #[test]
    fn kinds_have_their_schemas_and_the_webhook_its_service() {
        let crds = of_kind("CustomResourceDefinition");
        assert_eq!(crds.len(), 7);
        for crd in crds {
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
            assert_eq!(schema.get("x-kubernetes-preserve-unknown-fields"), None);
            assert!(schema["properties"]["fetchConfig"].is_object());
        }
        let [webhook] = &of_kind("ValidatingWebhookConfiguration")[..] else { panic!("one configuration") };
        assert_eq!(webhook["webhooks"].as_array().unwrap().len(), 7);
        for it in webhook["webhooks"].as_array().unwrap() {
            let service = &it["clientConfig"]["service"];
            assert_eq!(
                (&service["name"], &service["namespace"]),
                (&json!(WEBHOOK_SERVICE), &json!(NAMESPACE))
            );
            assert_eq!(it["failurePolicy"], "Ignore", "never needed for correctness");
        }
    }

    #[test]
    fn an_admin_adds_rules_by_a_label() {
        let roles = of_kind("ClusterRole");
        let [aggregated, own] = &roles[..] else { panic!("two ClusterRoles") };
        assert_eq!(aggregated.get("rules"), None, "an upgrade does not empty them");
        let selector = &aggregated["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"];
        assert_eq!(selector, &json!({AGGREGATE_LABEL: "true"}));
        assert_eq!(own["metadata"]["labels"][AGGREGATE_LABEL], "true");
        let [binding] = &of_kind("ClusterRoleBinding")[..] else { panic!("one ClusterRoleBinding") };
        assert_eq!(binding["roleRef"]["name"], AGGREGATED_ROLE);
    }
}
