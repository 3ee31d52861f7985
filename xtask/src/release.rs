//! The files of a release of the core provider, as clusterctl and the provider operator expect them.

use anyhow::{Result, bail};
use capstan_api::{
    cluster::{
        self,
        admission::{Address, webhook_configurations},
    },
    crd::Conversion,
    names::{CORE_PROVIDER, label},
};
use capstan_manifest::yaml;
use semver::Version;
use serde_json::{Value, json};

const NAMESPACE: &str = "capi-system";
const SERVICE: &str = "capi-webhook-service";
const SECRET: &str = "capi-webhook-service-ca";
const ACCOUNT: &str = "capi-manager";
const IMAGE: &str = "ghcr.io/capstan-io/capstan";
/// The contract between core and providers that we speak.
const CONTRACT: &str = "v1beta2";
/// Every series that was ever released, for clusterctl wants to find the installed version in the newest metadata.
const SERIES: [(u64, u64); 1] = [(0, 1)];
/// Upstream's series of the same contract, for a release that is to follow on them.
const UPSTREAM_SERIES: [(u64, u64); 4] = [(1, 11), (1, 12), (1, 13), (1, 14)];
const RBAC: &str = "rbac.authorization.k8s.io/v1";

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
    let folder = format!("{CORE_PROVIDER}/{version}");
    Ok(vec![
        (format!("{folder}/core-components.yaml"), yaml::to_multi_document(&components(version))),
        (format!("{folder}/metadata.yaml"), yaml::to_string(&metadata(&parsed))),
    ])
}

fn metadata(version: &Version) -> Value {
    let own = (version.major, version.minor);
    let mut series = SERIES.to_vec();
    if !series.contains(&own) {
        series.push(own);
    }
    // clusterctl looks for releases of the highest series that it finds here, so it must be one that is ours.
    if UPSTREAM_SERIES.iter().all(|upstream| own > *upstream) {
        series.extend(UPSTREAM_SERIES);
    }
    series.sort_unstable_by(|a, b| b.cmp(a));
    let series: Vec<_> = series
        .iter()
        .map(|(major, minor)| json!({"major": major, "minor": minor, "contract": CONTRACT}))
        .collect();
    json!({"apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Metadata", "releaseSeries": series})
}

/// All objects, in the order in which they are to be created.
fn components(version: &str) -> Vec<Value> {
    let address = Address::Service { namespace: NAMESPACE, name: SERVICE };
    let (mutating, validating) = webhook_configurations(address);
    let crd = cluster::crd(Conversion::Service { namespace: NAMESPACE, name: SERVICE });
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {"control-plane": "controller-manager"}}}),
        json!(crd),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": namespaced(ACCOUNT)}),
        json!({"apiVersion": RBAC, "kind": "Role", "metadata": namespaced("capi-leader-election-role"), "rules": own_rules()}),
        json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "capi-aggregated-manager-role"},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label::AGGREGATE_TO_MANAGER: "true"}}]}, "rules": []}),
        json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "capi-manager-role", "labels": {label::AGGREGATE_TO_MANAGER: "true"}},
            "rules": rules()}),
        json!({"apiVersion": RBAC, "kind": "RoleBinding", "metadata": namespaced("capi-leader-election-rolebinding"),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "capi-leader-election-role"}, "subjects": subjects()}),
        json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": "capi-manager-rolebinding"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "capi-aggregated-manager-role"}, "subjects": subjects()}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": namespaced(SERVICE), "spec": {
            "ports": [{"port": 443, "targetPort": "webhook-server"}], "selector": {label::PROVIDER: CORE_PROVIDER}}}),
        deployment(version),
        json!(mutating),
        json!(validating),
    ];
    for object in &mut objects {
        object["metadata"]["labels"][label::PROVIDER] = json!(CORE_PROVIDER);
    }
    objects
}

fn namespaced(name: &str) -> Value {
    json!({"name": name, "namespace": NAMESPACE})
}

fn subjects() -> Value {
    json!([{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}])
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// What a replica does in its own namespace: stand for election, keep the webhooks' authority.
fn own_rules() -> Value {
    let mut secret = rule("", &["secrets"], &["get", "list", "watch", "patch"]);
    secret["resourceNames"] = json!([SECRET]);
    json!([
        rule("coordination.k8s.io", &["leases"], &["get", "create", "update"]),
        // A name cannot be asked for before there is an object.
        rule("", &["secrets"], &["create"]),
        secret,
    ])
}

/// What the core provider does everywhere.
fn rules() -> Value {
    const FOLLOW: [&str; 2] = ["list", "watch"];
    let mut own_crd = rule("apiextensions.k8s.io", &["customresourcedefinitions"], &["patch"]);
    own_crd["resourceNames"] = json!(["clusters.cluster.x-k8s.io"]);
    let webhooks = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
    let mut own_webhooks = rule("admissionregistration.k8s.io", &webhooks, &["patch"]);
    own_webhooks["resourceNames"] =
        json!(["capi-mutating-webhook-configuration", "capi-validating-webhook-configuration"]);
    // A Cluster refers to objects of kinds that nobody knows beforehand.
    let providers = json!({
        "apiGroups": ["bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"],
        "resources": ["*"],
        "verbs": ["get", "list", "watch", "patch", "delete"],
    });
    let machines = ["machinedeployments", "machinepools", "machines", "machinesets"];
    json!([
        rule("cluster.x-k8s.io", &["clusters"], &["get", "list", "watch", "patch"]),
        rule("cluster.x-k8s.io", &["clusters/status"], &["patch"]),
        // Asked for by the admission plugin OwnerReferencesPermissionEnforcement of whoever sets blockOwnerDeletion.
        rule("cluster.x-k8s.io", &["clusters/finalizers"], &["update"]),
        rule("cluster.x-k8s.io", &machines, &["get", "list", "watch", "delete"]),
        rule("cluster.x-k8s.io", &["clusterclasses"], &FOLLOW),
        providers,
        // Kubeconfigs of Clusters, and the authorities that they are made from. A rule cannot ask for a label.
        rule("", &["secrets"], &["get", "list", "watch", "create", "patch"]),
        rule("", &["events"], &["create"]),
        rule("apiextensions.k8s.io", &["customresourcedefinitions"], &["get", "list", "watch"]),
        own_crd,
        rule("admissionregistration.k8s.io", &webhooks, &FOLLOW),
        own_webhooks,
        // Whether a caller may read the metrics is for the API server to say.
        rule("authentication.k8s.io", &["tokenreviews"], &["create"]),
        rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
    ])
}

fn deployment(version: &str) -> Value {
    let labels = json!({label::PROVIDER: CORE_PROVIDER, "control-plane": "controller-manager"});
    let from_field =
        |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let port = |name: &str, number: u16| json!({"name": name, "containerPort": number, "protocol": "TCP"});
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "healthz"}});
    let tolerate = |key: &str| json!({"key": key, "effect": "NoSchedule"});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "capi-controller-manager", "namespace": NAMESPACE, "labels": {"control-plane": "controller-manager"}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [{
                        "name": "manager",
                        "image": format!("{IMAGE}:{version}"),
                        "imagePullPolicy": "IfNotPresent",
                        "command": ["/capstan"],
                        "args": [
                            "manager",
                            "core",
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
                        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
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
                    "serviceAccountName": ACCOUNT,
                    // Longer than open requests and reconciles may take once the manager is told to stop.
                    "terminationGracePeriodSeconds": 30,
                    "tolerations": [tolerate("node-role.kubernetes.io/control-plane"), tolerate("node-role.kubernetes.io/master")],
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
        objects.iter().filter(|it| it["kind"] == kind).collect()
    }

    #[test]
    fn the_contract_with_clusterctl_is_kept() {
        let objects = components("v0.1.0");
        assert_eq!(of_kind(&objects, "Namespace").len(), 1);
        for object in &objects {
            let (kind, metadata) = (&object["kind"], &object["metadata"]);
            assert_eq!(metadata["labels"]["cluster.x-k8s.io/provider"], "cluster-api", "{kind}");
            let cluster_wide = [
                "Namespace",
                "CustomResourceDefinition",
                "ClusterRole",
                "ClusterRoleBinding",
                "MutatingWebhookConfiguration",
                "ValidatingWebhookConfiguration",
            ];
            let expected =
                if cluster_wide.iter().any(|it| kind == it) { json!(null) } else { json!("capi-system") };
            assert_eq!(metadata["namespace"], expected, "{kind}");
            assert_eq!(object.get("status"), None, "{kind}");
            assert!(!object["apiVersion"].as_str().unwrap().contains("cert-manager"), "{kind}");
        }
        let [deployment] = of_kind(&objects, "Deployment")[..] else { panic!("one Deployment") };
        let template = &deployment["spec"]["template"];
        assert_eq!(deployment["metadata"]["name"], "capi-controller-manager");
        assert_eq!(deployment["spec"]["selector"]["matchLabels"], template["metadata"]["labels"]);
        assert_eq!(template["metadata"]["labels"]["cluster.x-k8s.io/provider"], "cluster-api");
        let container = &template["spec"]["containers"][0];
        assert_eq!(
            (&container["name"], &container["image"]),
            (&json!("manager"), &json!("ghcr.io/capstan-io/capstan:v0.1.0"))
        );
        assert!(container["args"].to_string().contains("${CAPI_DIAGNOSTICS_ADDRESS:=:8443}"));
    }

    #[test]
    fn everything_that_leads_to_something_finds_it() {
        let objects = components("v0.1.0");
        let [service] = of_kind(&objects, "Service")[..] else { panic!("one Service") };
        let [deployment] = of_kind(&objects, "Deployment")[..] else { panic!("one Deployment") };
        let pod = &deployment["spec"]["template"];
        for (key, value) in service["spec"]["selector"].as_object().unwrap() {
            assert_eq!(&pod["metadata"]["labels"][key], value);
        }
        let ports = pod["spec"]["containers"][0]["ports"].as_array().unwrap();
        assert!(ports.iter().any(|it| it["name"] == service["spec"]["ports"][0]["targetPort"]));
        let name = |it: &Value| (it["name"].clone(), it["namespace"].clone());
        let service = name(&service["metadata"]);
        let configurations = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
        for object in configurations.iter().flat_map(|kind| of_kind(&objects, kind)) {
            assert_eq!(name(&object["webhooks"][0]["clientConfig"]["service"]), service);
        }
        let [crd] = of_kind(&objects, "CustomResourceDefinition")[..] else { panic!("one CRD") };
        assert_eq!(name(&crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]), service);
        for binding in ["RoleBinding", "ClusterRoleBinding"].iter().flat_map(|kind| of_kind(&objects, kind)) {
            let role = &binding["roleRef"];
            let found =
                objects.iter().any(|it| it["kind"] == role["kind"] && it["metadata"]["name"] == role["name"]);
            assert!(found, "{role}");
            assert_eq!(binding["subjects"][0]["name"], pod["spec"]["serviceAccountName"]);
        }
        // What the manager calls itself without flags is what the files call it.
        assert_eq!(service.0, "capi-webhook-service");
        assert_eq!(SECRET, format!("{SERVICE}-ca"));
    }

    /// The verbs that rules allow on a resource, with those that are for named objects only after a colon.
    fn verbs(rules: &Value, group: &str, resource: &str) -> String {
        let has = |list: &Value, name: &str| list.as_array().unwrap().contains(&json!(name));
        let (mut all, mut named) = (Vec::new(), Vec::new());
        for rule in rules.as_array().unwrap() {
            let resources = &rule["resources"];
            if has(&rule["apiGroups"], group) && (has(resources, resource) || has(resources, "*")) {
                let list = if rule.get("resourceNames").is_some() { &mut named } else { &mut all };
                list.extend(rule["verbs"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()));
            }
        }
        all.sort_unstable();
        named.sort_unstable();
        if named.is_empty() { all.join(" ") } else { format!("{}: {}", all.join(" "), named.join(" ")) }
    }

    #[test]
    fn the_manager_gets_what_its_code_does_and_no_more() {
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
            ("infrastructure.cluster.x-k8s.io", "*", "delete get list patch watch"),
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
        for (group, resource, expected) in everywhere {
            assert_eq!(verbs(&rules(), group, resource), expected, "{resource}.{group}");
        }
        let at_home = [
            ("coordination.k8s.io", "leases", "create get update"),
            ("", "secrets", "create: get list patch watch"),
        ];
        for (group, resource, expected) in at_home {
            assert_eq!(verbs(&own_rules(), group, resource), expected, "{resource}.{group}");
        }
        // The tables above are whole.
        for (rules, table) in [(rules(), &everywhere[..]), (own_rules(), &at_home[..])] {
            for rule in rules.as_array().unwrap() {
                for group in rule["apiGroups"].as_array().unwrap() {
                    for resource in rule["resources"].as_array().unwrap() {
                        let known = table.iter().any(|it| group == it.0 && resource == it.1);
                        assert!(known, "{resource} of {group}");
                    }
                }
            }
        }
    }

    #[test]
    fn nobody_gets_more_than_is_needed() {
        for rule in rules().as_array().unwrap().iter().chain(own_rules().as_array().unwrap()) {
            for list in ["verbs", "apiGroups"] {
                assert!(!rule[list].as_array().unwrap().contains(&json!("*")), "{rule}");
            }
            let foreign = rule["apiGroups"][0].as_str().unwrap().ends_with("apiextensions.k8s.io")
                || rule["apiGroups"][0] == "admissionregistration.k8s.io";
            let writes = rule["verbs"].as_array().unwrap().contains(&json!("patch"));
            assert!(!(foreign && writes) || rule.get("resourceNames").is_some(), "{rule}");
        }
    }

    #[test]
    fn metadata_names_the_series_of_the_release() {
        let series = |version: &str| {
            let text = files(version).unwrap().pop().unwrap().1;
            (text.contains("contract: v1beta2"), text.matches("- contract").count())
        };
        assert_eq!(series("v0.1.7"), (true, 1));
        assert_eq!(series("v0.2.0"), (true, 2));
        assert_eq!(series("v1.14.9"), (true, 2), "upstream's would be higher or the same");
        assert_eq!(series("v1.15.0-rc.1"), (true, 6));
        for wrong in ["0.1.0", "v0.1", "v0.1.0.0", "v0.1.0+build", "v0.1.0-rc.1+1", "latest", ""] {
            assert!(files(wrong).is_err(), "{wrong:?}");
        }
    }
}
