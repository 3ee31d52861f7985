//! The core provider's files.

use capstan_api::{
    cluster::{
        self,
        admission::{Address, webhook_configurations},
    },
    crd::Conversion,
    names::{CORE_PROVIDER, label},
};
use capstan_components::manager::{FOLLOW, Names, RBAC, asking_who_may_read_metrics, named, rule};
use semver::Version;
use serde_json::{Value, json};

use super::{deployment, manifest, metadata, network_policy};

pub(super) const NAMES: Names<'static> = Names {
    label: (label::PROVIDER, CORE_PROVIDER),
    namespace: "capi-system",
    account: "capi-manager",
    service: "capi-webhook-service",
    prefix: "capi",
    controllers: "core",
};
/// Upstream's series of the same contract, for a release that is to follow on them.
const UPSTREAM_SERIES: [(u64, u64); 4] = [(1, 11), (1, 12), (1, 13), (1, 14)];

/// The files with their names.
pub(super) fn files(version: &Version) -> Vec<(&'static str, String)> {
    vec![
        ("core-components.yaml", manifest(&NAMES, components(version))),
        ("metadata.yaml", metadata(version, &UPSTREAM_SERIES)),
    ]
}

/// All objects, in the order in which they are to be created.
fn components(version: &Version) -> Vec<Value> {
    let Names { namespace, service, .. } = NAMES;
    let (mutating, validating) = webhook_configurations(Address::Service { namespace, name: service });
    let crd = cluster::crd(Conversion::Service { namespace, name: service });
    vec![
        NAMES.namespace(),
        json!(crd),
        NAMES.account(),
        NAMES.own_role(&own_rules()),
        json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "capi-aggregated-manager-role"},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label::AGGREGATE_TO_MANAGER: "true"}}]}, "rules": []}),
        json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "capi-manager-role", "labels": {label::AGGREGATE_TO_MANAGER: "true"}},
            "rules": rules()}),
        NAMES.own_binding(),
        NAMES.cluster_binding("capi-manager-rolebinding", "capi-aggregated-manager-role"),
        NAMES.service(),
        network_policy(&NAMES),
        deployment(&NAMES, version),
        json!(mutating),
        json!(validating),
    ]
}

/// What a replica does in its own namespace: stand for election, keep the webhooks' authority.
fn own_rules() -> Value {
    json!([
        rule("coordination.k8s.io", &["leases"], &["get", "create", "update"]),
        // A name cannot be asked for before there is an object.
        rule("", &["secrets"], &["create"]),
        named(rule("", &["secrets"], &["get", "list", "watch", "patch"]), &[&NAMES.secret()]),
    ])
}

/// What the core provider does everywhere.
fn rules() -> Value {
    let webhooks = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
    let own_webhooks = ["capi-mutating-webhook-configuration", "capi-validating-webhook-configuration"];
    // A Cluster refers to objects of kinds that are not known beforehand.
    let providers = json!({
        "apiGroups": ["bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"],
        "resources": ["*"],
        "verbs": ["get", "list", "watch", "patch", "delete"],
    });
    // The contract grants core full read and write access here.
    let infrastructure = rule(
        "infrastructure.cluster.x-k8s.io",
        &["*"],
        &["create", "delete", "get", "list", "patch", "update", "watch"],
    );
    let machines = ["machinedeployments", "machinepools", "machines", "machinesets"];
    let definitions = |verbs: &[&str]| rule("apiextensions.k8s.io", &["customresourcedefinitions"], verbs);
    let [tokens, access] = asking_who_may_read_metrics();
    json!([
        rule("cluster.x-k8s.io", &["clusters"], &["get", "list", "watch", "patch"]),
        rule("cluster.x-k8s.io", &["clusters/status"], &["patch"]),
        // The admission plugin OwnerReferencesPermissionEnforcement requires it of clients that set blockOwnerDeletion.
        rule("cluster.x-k8s.io", &["clusters/finalizers"], &["update"]),
        rule("cluster.x-k8s.io", &machines, &["get", "list", "watch", "delete"]),
        rule("cluster.x-k8s.io", &["clusterclasses"], &FOLLOW),
        providers,
        infrastructure,
        // Kubeconfigs of Clusters, and the authorities that they are made from. A rule cannot ask for a label.
        rule("", &["secrets"], &["get", "list", "watch", "create", "patch"]),
        rule("", &["events"], &["create"]),
        definitions(&["get", "list", "watch"]),
        named(definitions(&["patch"]), &["clusters.cluster.x-k8s.io"]),
        rule("admissionregistration.k8s.io", &webhooks, &FOLLOW),
        named(rule("admissionregistration.k8s.io", &webhooks, &["patch"]), &own_webhooks),
        tokens,
        access,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::checks;

    fn objects() -> Vec<Value> {
        NAMES.labelled(components(&Version::new(0, 1, 0)))
    }

    #[test]
    fn the_contract_with_clusterctl_is_kept() {
        checks::contract_with_clusterctl(&NAMES, &objects());
        let objects = objects();
        let [deployment] = checks::of_kind(&objects, "Deployment")[..] else { panic!("one Deployment") };
        assert_eq!(deployment["metadata"]["name"], "capi-controller-manager");
        assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["args"][1], "core");
    }

    #[test]
    fn the_network_is_kept_out() {
        checks::the_network_is_kept_out(&NAMES, &objects());
    }

    #[test]
    fn everything_that_leads_to_something_finds_it() {
        checks::everything_is_found(&objects());
        assert_eq!(checks::of_kind(&objects(), "CustomResourceDefinition").len(), 1);
        for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
            assert_eq!(checks::of_kind(&objects(), kind).len(), 1);
        }
        // What the manager calls itself without flags is what the files call it.
        assert_eq!(NAMES.service, "capi-webhook-service");
    }

    #[test]
    fn the_manager_gets_what_its_code_does_and_the_contract_says_and_no_more() {
        let (core, crds, webhooks) =
            ("cluster.x-k8s.io", "apiextensions.k8s.io", "admissionregistration.k8s.io");
        let everywhere = [
            (core, "clusters", "get list patch watch"),
            (core, "clusters/status", "patch"),
            (core, "clusters/finalizers", "update"),
            (core, "machines", "delete get list watch"),
            (core, "machinesets", "delete get list watch"),
            (core, "machinedeployments", "delete get list watch"),
            (core, "machinepools", "delete get list watch"),
            (core, "clusterclasses", "list watch"),
            (core, "machinehealthchecks", ""),
            ("infrastructure.cluster.x-k8s.io", "*", "create delete get list patch update watch"),
            ("controlplane.cluster.x-k8s.io", "*", "delete get list patch watch"),
            ("bootstrap.cluster.x-k8s.io", "*", "delete get list patch watch"),
            ("", "secrets", "create get list patch watch"),
            ("", "events", "create"),
            (crds, "customresourcedefinitions", "get list watch: patch"),
            (webhooks, "mutatingwebhookconfigurations", "list watch: patch"),
            (webhooks, "validatingwebhookconfigurations", "list watch: patch"),
            ("authentication.k8s.io", "tokenreviews", "create"),
            ("authorization.k8s.io", "subjectaccessreviews", "create"),
        ];
        checks::rules_are(&rules(), &everywhere);
        let at_home = [
            ("coordination.k8s.io", "leases", "create get update"),
            ("", "secrets", "create: get list patch watch"),
        ];
        checks::rules_are(&own_rules(), &at_home);
    }

    #[test]
    fn no_rule_is_too_wide() {
        checks::nothing_is_too_wide(&rules());
        checks::nothing_is_too_wide(&own_rules());
    }
}
