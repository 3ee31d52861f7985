//! The local infrastructure provider's files.

use capstan_api::names::{CORE_GROUP, INFRASTRUCTURE_GROUP, label};
use capstan_components::manager::{FOLLOW, Names, RBAC, asking_who_may_read_metrics, named, rule};
use capstan_provider_local::{
    LEASE, WEBHOOK_SERVICE,
    api::{self, PROVIDER},
};
use semver::Version;
use serde_json::{Value, json};

use super::{deployment, manifest, metadata, network_policy};

pub(super) const NAMES: Names<'static> = Names {
    label: (label::PROVIDER, PROVIDER),
    namespace: "capstan-local-system",
    account: "capstan-local-manager",
    service: WEBHOOK_SERVICE,
    prefix: "capstan-local",
    controllers: "local",
};
// clusterctl deletes a ClusterRole or ClusterRoleBinding only if its name begins with that of the namespace.
const MANAGER_ROLE: &str = "capstan-local-system-manager-role";
const MANAGER_BINDING: &str = "capstan-local-system-manager-rolebinding";
const CORES_ROLE: &str = "capstan-local-system-capi-clusters";
const CLUSTERS: &str = "localclusters";
const TEMPLATES: &str = "localclustertemplates";

/// The files with their names.
pub(super) fn files(version: &Version) -> Vec<(&'static str, String)> {
    vec![
        ("infrastructure-components.yaml", manifest(&NAMES, components(version))),
        ("metadata.yaml", metadata(version, &[])),
        ("cluster-template.yaml", include_str!("local/cluster-template.yaml").to_owned()),
        ("cluster-template-tenant.yaml", include_str!("local/cluster-template-tenant.yaml").to_owned()),
    ]
}

/// All objects, in the order in which they are to be created.
fn components(version: &Version) -> Vec<Value> {
    let mut objects = vec![NAMES.namespace()];
    objects.extend(api::crds(api::WEBHOOK_SERVICE).iter().map(|crd| json!(crd)));
    objects.extend([
        NAMES.account(),
        NAMES.own_role(&own_rules()),
        json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": MANAGER_ROLE}, "rules": rules()}),
        json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": CORES_ROLE, "labels": {label::AGGREGATE_TO_MANAGER: "true"}},
            "rules": cores_rules()}),
        NAMES.own_binding(),
        NAMES.cluster_binding(MANAGER_BINDING, MANAGER_ROLE),
        NAMES.service(),
        network_policy(&NAMES),
        deployment(&NAMES, version),
    ]);
    objects
}

/// What a replica does in its own namespace: stand for election, keep the webhook's authority.
fn own_rules() -> Value {
    json!([
        // A name cannot be asked for before there is an object.
        rule("coordination.k8s.io", &["leases"], &["create"]),
        named(rule("coordination.k8s.io", &["leases"], &["get", "update"]), &[LEASE]),
        rule("", &["secrets"], &["create"]),
        named(rule("", &["secrets"], &["get", "list", "watch", "patch"]), &[&NAMES.secret()]),
    ])
}

/// What the provider does everywhere.
fn rules() -> Value {
    let own_crds = [CLUSTERS, TEMPLATES].map(|plural| format!("{plural}.{INFRASTRUCTURE_GROUP}"));
    let definitions =
        rule("apiextensions.k8s.io", &["customresourcedefinitions"], &["list", "watch", "patch"]);
    let webhooks = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
    let [tokens, access] = asking_who_may_read_metrics();
    json!([
        rule(INFRASTRUCTURE_GROUP, &[CLUSTERS], &["get", "list", "watch", "patch"]),
        rule(INFRASTRUCTURE_GROUP, &["localclusters/status"], &["patch"]),
        // Before infrastructure is taken down, its Cluster is asked for past the watch.
        rule(CORE_GROUP, &["clusters"], &["get", "list", "watch"]),
        // A tenant's Secret, whose name only the LocalCluster knows.
        rule("", &["secrets"], &["get"]),
        rule("", &["events"], &["create"]),
        // For the webhook's bundle. Who lists with a name may be asked for that name.
        named(definitions, &[&own_crds[0], &own_crds[1]]),
        // There are none of ours; that has to be seen.
        rule("admissionregistration.k8s.io", &webhooks, &FOLLOW),
        tokens,
        access,
    ])
}

/// What the core provider does with this one's kinds, as the contract asks a provider to grant it.
///
/// Core may do that in this group anyway; a provider with a group of its own needs it.
fn cores_rules() -> Value {
    json!([
        rule(
            INFRASTRUCTURE_GROUP,
            &[CLUSTERS],
            &["create", "delete", "get", "list", "patch", "update", "watch"]
        ),
        rule(INFRASTRUCTURE_GROUP, &[TEMPLATES], &["get", "list", "patch", "update", "watch"]),
    ])
}

#[cfg(test)]
mod tests {
    use capstan_api::{cluster::v1beta2::Cluster, crd::Conversion};
    use capstan_provider_local::api::v1beta2::LocalCluster;

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
        assert_eq!(deployment["metadata"]["name"], "capstan-local-controller-manager");
        assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["args"][1], "local");
        assert_eq!(NAMES.label.1, "infrastructure-local");
        for object in
            ["ClusterRole", "ClusterRoleBinding"].iter().flat_map(|kind| checks::of_kind(&objects, kind))
        {
            let name = object["metadata"]["name"].as_str().unwrap();
            assert!(name.starts_with("capstan-local-system-"), "clusterctl would never delete {name}");
        }
    }

    #[test]
    fn the_network_is_kept_out() {
        checks::the_network_is_kept_out(&NAMES, &objects());
    }

    #[test]
    fn everything_that_leads_to_something_finds_it() {
        checks::everything_is_found(&objects());
        let crds: Vec<_> = checks::of_kind(&objects(), "CustomResourceDefinition")
            .iter()
            .map(|it| it["metadata"]["name"].clone())
            .collect();
        let (cluster, template) = (
            "localclusters.infrastructure.cluster.x-k8s.io",
            "localclustertemplates.infrastructure.cluster.x-k8s.io",
        );
        assert_eq!(crds, [cluster, template]);
        // The rules speak of those, and what the manager calls itself without flags is what the files call it.
        let named: Vec<_> =
            rules().as_array().unwrap().iter().filter_map(|it| it.get("resourceNames").cloned()).collect();
        assert_eq!(named, [json!([cluster, template])]);
        let service = Conversion::Service { namespace: NAMES.namespace, name: NAMES.service };
        assert_eq!(api::WEBHOOK_SERVICE, service);
    }

    #[test]
    fn the_manager_gets_what_its_code_does_and_no_more() {
        let webhooks = "admissionregistration.k8s.io";
        let everywhere = [
            (INFRASTRUCTURE_GROUP, "localclusters", "get list patch watch"),
            (INFRASTRUCTURE_GROUP, "localclusters/status", "patch"),
            (INFRASTRUCTURE_GROUP, "localclustertemplates", ""),
            (CORE_GROUP, "clusters", "get list watch"),
            (CORE_GROUP, "machines", ""),
            ("", "secrets", "get"),
            ("", "events", "create"),
            ("apiextensions.k8s.io", "customresourcedefinitions", ": list patch watch"),
            (webhooks, "mutatingwebhookconfigurations", "list watch"),
            (webhooks, "validatingwebhookconfigurations", "list watch"),
            ("authentication.k8s.io", "tokenreviews", "create"),
            ("authorization.k8s.io", "subjectaccessreviews", "create"),
        ];
        checks::rules_are(&rules(), &everywhere);
        let at_home = [
            ("coordination.k8s.io", "leases", "create: get update"),
            ("", "secrets", "create: get list patch watch"),
        ];
        checks::rules_are(&own_rules(), &at_home);
        let for_core = [
            (INFRASTRUCTURE_GROUP, "localclusters", "create delete get list patch update watch"),
            (INFRASTRUCTURE_GROUP, "localclustertemplates", "get list patch update watch"),
        ];
        checks::rules_are(&cores_rules(), &for_core);
    }

    #[test]
    fn nobody_gets_more_than_is_needed() {
        for rules in [rules(), own_rules(), cores_rules()] {
            checks::nothing_is_too_wide(&rules);
            for rule in rules.as_array().unwrap() {
                assert!(!rule["resources"].as_array().unwrap().contains(&json!("*")), "{rule}");
            }
        }
        let objects = objects();
        let aggregated: Vec<_> = checks::of_kind(&objects, "ClusterRole")
            .into_iter()
            .filter(|it| it["metadata"]["labels"].get(label::AGGREGATE_TO_MANAGER).is_some())
            .map(|it| &it["rules"])
            .collect();
        assert_eq!(aggregated, [&cores_rules()], "core gets nothing else");
    }

    /// The objects of a template, with variables filled in as clusterctl would.
    fn rendered(name: &str, values: &[(&str, &str)]) -> Vec<Value> {
        let files = files(&Version::new(0, 1, 0));
        let (_, text) = files.iter().find(|it| it.0 == name).unwrap();
        let text = values.iter().fold(text.clone(), |text, (name, value)| text.replace(name, value));
        assert!(!text.contains('$'), "a variable was forgotten: {text}");
        text.split("\n---\n").map(|document| serde_saphyr::from_str(document).unwrap()).collect()
    }

    #[test]
    fn templates_make_a_cluster_that_finds_its_infrastructure() {
        let tenant = "cluster-template-tenant.yaml";
        for (file, kinds) in [
            ("cluster-template.yaml", &["Cluster", "LocalCluster"][..]),
            (tenant, &["Cluster", "LocalCluster", "Secret"]),
        ] {
            let values = [
                // Names that YAML takes for something else.
                ("${CLUSTER_NAME}", "1e3"),
                ("${NAMESPACE}", "007"),
                ("${CONTROL_PLANE_BACKENDS:=[]}", "[127.0.0.1:6443, 127.0.0.2:6443]"),
                ("${CONTROL_PLANE_ENDPOINT_HOST:=127.0.0.1}", "127.0.0.9"),
            ];
            let objects = rendered(file, &values);
            let found: Vec<_> = objects.iter().map(|it| it["kind"].as_str().unwrap()).collect();
            assert_eq!(found, kinds);
            for object in &objects {
                assert_eq!(object["metadata"]["namespace"], "007");
            }
            let cluster: Cluster = serde_json::from_value(objects[0].clone()).unwrap();
            assert_eq!(objects[0]["apiVersion"], "cluster.x-k8s.io/v1beta2");
            let reference = json!(cluster.spec.infrastructure_ref.unwrap());
            assert_eq!(
                reference,
                json!({"apiGroup": INFRASTRUCTURE_GROUP, "kind": "LocalCluster", "name": "1e3"})
            );
            let local: LocalCluster = serde_json::from_value(objects[1].clone()).unwrap();
            assert_eq!(objects[1]["apiVersion"], "infrastructure.cluster.x-k8s.io/v1beta2");
            assert_eq!(local.metadata.name.as_deref(), Some("1e3"));
            assert_eq!(local.spec.backends, ["127.0.0.1:6443", "127.0.0.2:6443"]);
            let identity = local.spec.identity_ref.map(|it| json!(it.name));
            assert_eq!(identity.as_ref(), objects.get(2).map(|secret| &secret["metadata"]["name"]));
            // Nothing is written that the kind does not know.
            assert_eq!(
                json!(serde_json::from_value::<LocalCluster>(objects[1].clone()).unwrap()),
                objects[1]
            );
        }
        let defaults = [
            ("${CLUSTER_NAME}", "c"),
            ("${NAMESPACE}", "n"),
            ("${CONTROL_PLANE_BACKENDS:=[]}", "[]"),
            ("${CONTROL_PLANE_ENDPOINT_HOST:=127.0.0.1}", "127.0.0.1"),
        ];
        let objects = rendered(tenant, &defaults);
        assert_eq!(objects[1]["spec"]["backends"], json!([]));
        assert_eq!(objects[2]["stringData"], json!({"host": "127.0.0.1"}));
    }
}
