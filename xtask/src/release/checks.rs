//! What is true of every provider's release.

use capstan_components::manager::Names;
use serde_json::{Value, json};

use super::manifest;

pub(super) fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|it| it["kind"] == kind).collect()
}

/// One namespace, one label, one Deployment with a container `manager`, and no need for cert-manager.
pub(super) fn contract_with_clusterctl(names: &Names<'_>, objects: &[Value]) {
    let cluster_wide = [
        "Namespace",
        "CustomResourceDefinition",
        "ClusterRole",
        "ClusterRoleBinding",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ];
    let [namespace] = of_kind(objects, "Namespace")[..] else { panic!("one Namespace") };
    assert_eq!(namespace["metadata"]["name"], names.namespace);
    for object in objects {
        let (kind, metadata) = (&object["kind"], &object["metadata"]);
        assert_eq!(metadata["labels"]["cluster.x-k8s.io/provider"], names.label.1, "{kind}");
        let expected =
            if cluster_wide.iter().any(|it| kind == it) { json!(null) } else { json!(names.namespace) };
        assert_eq!(metadata["namespace"], expected, "{kind}");
        assert_eq!(object.get("status"), None, "{kind}");
        assert!(!object["apiVersion"].as_str().unwrap().contains("cert-manager"), "{kind}");
    }
    let [deployment] = of_kind(objects, "Deployment")[..] else { panic!("one Deployment") };
    let template = &deployment["spec"]["template"];
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], template["metadata"]["labels"]);
    assert_eq!(template["metadata"]["labels"]["cluster.x-k8s.io/provider"], names.label.1);
    let container = &template["spec"]["containers"][0];
    assert_eq!(
        (&container["name"], &container["image"]),
        (&json!("manager"), &json!("ghcr.io/capstan-io/capstan:v0.1.0"))
    );
    assert!(container["args"].to_string().contains("${CAPI_DIAGNOSTICS_ADDRESS:=:8443}"));
}

/// The manager's Pod is reached on the ports that the policy names, and has a limit on its memory.
pub(super) fn the_network_is_kept_out(names: &Names<'_>, objects: &[Value]) {
    let [policy] = of_kind(objects, "NetworkPolicy")[..] else { panic!("one NetworkPolicy") };
    let [deployment] = of_kind(objects, "Deployment")[..] else { panic!("one Deployment") };
    let template = &deployment["spec"]["template"];
    assert_eq!(policy["spec"]["podSelector"]["matchLabels"], template["metadata"]["labels"]);
    let container = &template["spec"]["containers"][0];
    assert_eq!(container["resources"]["limits"], json!({"memory": "512Mi"}));
    // As it is once clusterctl has filled in the default: webhooks for everybody, metrics for Pods, health for nobody.
    let text = manifest(names, vec![policy.clone()]).replace("${CAPI_WEBHOOK_PEERS:=[]}", "[]");
    let policy: Value = serde_saphyr::from_str(&text).unwrap();
    let rules = policy["spec"]["ingress"].as_array().unwrap();
    let expected = [("webhook-server", json!([])), ("metrics", json!([{"namespaceSelector": {}}]))];
    for (rule, (port, peers)) in rules.iter().zip(&expected) {
        assert_eq!((&rule["ports"][0]["port"], &rule["from"]), (&json!(port), peers));
        assert!(container["ports"].as_array().unwrap().iter().any(|it| it["name"] == *port));
    }
    assert_eq!((rules.len(), &policy["spec"]["policyTypes"]), (expected.len(), &json!(["Ingress"])));
}

/// Service → Pod, webhooks and CRDs → Service, bindings → roles and account.
pub(super) fn everything_is_found(objects: &[Value]) {
    let [service] = of_kind(objects, "Service")[..] else { panic!("one Service") };
    let [deployment] = of_kind(objects, "Deployment")[..] else { panic!("one Deployment") };
    let [account] = of_kind(objects, "ServiceAccount")[..] else { panic!("one ServiceAccount") };
    let pod = &deployment["spec"]["template"];
    for (key, value) in service["spec"]["selector"].as_object().unwrap() {
        assert_eq!(&pod["metadata"]["labels"][key], value);
    }
    let ports = pod["spec"]["containers"][0]["ports"].as_array().unwrap();
    assert!(ports.iter().any(|it| it["name"] == service["spec"]["ports"][0]["targetPort"]));
    let name = |it: &Value| (it["name"].clone(), it["namespace"].clone());
    let service = name(&service["metadata"]);
    let configurations = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
    for object in configurations.iter().flat_map(|kind| of_kind(objects, kind)) {
        assert_eq!(name(&object["webhooks"][0]["clientConfig"]["service"]), service);
    }
    let is_converted = |it: &&Value| it["spec"]["conversion"]["strategy"] == "Webhook";
    for crd in of_kind(objects, "CustomResourceDefinition").into_iter().filter(is_converted) {
        assert_eq!(name(&crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]), service);
    }
    assert_eq!(account["metadata"]["name"], pod["spec"]["serviceAccountName"]);
    for kind in ["RoleBinding", "ClusterRoleBinding"] {
        let [binding] = of_kind(objects, kind)[..] else { panic!("one {kind}") };
        let role = &binding["roleRef"];
        let found =
            objects.iter().any(|it| it["kind"] == role["kind"] && it["metadata"]["name"] == role["name"]);
        assert!(found, "{role}");
        assert_eq!(name(&binding["subjects"][0]), name(&account["metadata"]));
    }
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

/// Rules allow what a table of group, resource and verbs says, and the table is whole.
pub(super) fn rules_are(rules: &Value, table: &[(&str, &str, &str)]) {
    for (group, resource, expected) in table {
        assert_eq!(verbs(rules, group, resource), *expected, "{resource}.{group}");
    }
    for rule in rules.as_array().unwrap() {
        for group in rule["apiGroups"].as_array().unwrap() {
            for resource in rule["resources"].as_array().unwrap() {
                let known = table.iter().any(|it| group == it.0 && resource == it.1);
                assert!(known, "{resource} of {group}");
            }
        }
    }
}

/// No wildcards of verbs or groups, and nothing of everybody's is written but by name.
pub(super) fn nothing_is_too_wide(rules: &Value) {
    for rule in rules.as_array().unwrap() {
        for list in ["verbs", "apiGroups"] {
            assert!(!rule[list].as_array().unwrap().contains(&json!("*")), "{rule}");
        }
        let foreign = rule["apiGroups"][0].as_str().unwrap().ends_with("apiextensions.k8s.io")
            || rule["apiGroups"][0] == "admissionregistration.k8s.io";
        let writes = rule["verbs"].as_array().unwrap().contains(&json!("patch"));
        assert!(!(foreign && writes) || rule.get("resourceNames").is_some(), "{rule}");
    }
}
