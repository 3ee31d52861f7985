//! What keeps instances in several namespaces apart: names of roles, and the namespace that a manager watches.

use capstan_manifest::components::Options;
use serde_json::{Value, json};

use crate::{SHARED, deployment, names, object, refused, render, render_with};

#[test]
fn cluster_wide_roles_get_a_prefix_and_references_follow() {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let api_version = "rbac.authorization.k8s.io/v1";
    let role = |kind: &str, name: &str, rules: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "rules": rules});
    let binding = |kind: &str, name: &str, role: [&str; 2]| {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name},
            "roleRef": {"apiGroup": GROUP, "kind": role[0], "name": role[1]}, "subjects": []})
    };
    let rules = json!([
        {"apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["manager", "cluster-admin", "binding"]},
        {"apiGroups": [GROUP], "resources": ["clusterrolebindings"], "resourceNames": ["manager", "binding"]},
        {"apiGroups": [GROUP], "resources": ["clusterroles", "roles"], "resourceNames": ["manager"]},
        {"apiGroups": [GROUP], "resources": ["clusterroles", "clusterrolebindings"], "resourceNames": ["manager", "both"]},
        {"apiGroups": ["*"], "resources": ["*"], "resourceNames": ["manager"]},
        {"apiGroups": [""], "resources": ["clusterroles"], "resourceNames": ["manager"]},
        {"apiGroups": [GROUP], "resources": ["clusterroles"]},
    ]);
    let documents = vec![
        role("ClusterRole", "manager", rules.clone()),
        role("ClusterRole", "new-already", json!([])),
        role("ClusterRole", "both", json!([])),
        role("Role", "manager", rules),
        binding("ClusterRoleBinding", "binding", ["ClusterRole", "manager"]),
        binding("ClusterRoleBinding", "both", ["ClusterRole", "cluster-admin"]),
        binding("ClusterRoleBinding", "new-binding-too", ["ClusterRole", "new-already"]),
        binding("RoleBinding", "one", ["ClusterRole", "manager"]),
        binding("RoleBinding", "two", ["Role", "manager"]),
    ];
    let objects = render(documents.clone()).into_objects();
    let objects = &objects[1..];
    let expected = [
        "new-manager",
        "new-already",
        "new-both",
        "manager",
        "new-binding",
        "new-both",
        "new-binding-too",
        "one",
        "two",
    ];
    assert_eq!(names(objects), expected);
    let roles: Vec<_> = objects[4..].iter().map(|it| it["roleRef"]["name"].as_str().unwrap()).collect();
    assert_eq!(roles, ["new-manager", "cluster-admin", "new-already", "new-manager", "manager"]);
    for role in [&objects[0], &objects[3]] {
        let named: Vec<_> =
            role["rules"].as_array().unwrap().iter().map(|it| it["resourceNames"].clone()).collect();
        let expected = [
            json!(["new-manager", "cluster-admin", "binding"]),
            json!(["manager", "new-binding"]),
            json!(["manager", "new-manager"]),
            json!(["manager", "new-manager", "new-both"]),
            json!(["manager", "new-manager"]),
            json!(["manager"]),
            Value::Null,
        ];
        assert_eq!(named, expected);
    }

    let left_alone = render_with(documents, |options| Options { rbac_prefix: false, ..options }).unwrap();
    let roles: Vec<_> =
        left_alone.objects()[5..].iter().map(|it| it["roleRef"]["name"].as_str().unwrap()).collect();
    assert_eq!(roles, ["manager", "cluster-admin", "new-already", "manager", "manager"]);
    assert_eq!(names(left_alone.objects())[1], "manager");
}

#[test]
fn a_prefix_makes_no_two_roles_one() {
    let role = |name| object("rbac.authorization.k8s.io/v1", "ClusterRole", name);
    let expected = "ClusterRole a cannot be renamed to new-a, which exists already".to_owned();
    assert_eq!(refused(vec![role("new-a"), role("a")]), (expected, Some(1)));
}

#[test]
fn the_manager_is_told_what_to_watch() {
    let watching = |container: Value| {
        let documents = vec![deployment(&json!([{"name": "sidecar", "image": "r.io/a"}, container]))];
        let rendered =
            render_with(documents, |options| Options { watching_namespace: Some("team"), ..options });
        let pod = rendered.unwrap().objects()[1]["spec"]["template"]["spec"]["containers"].clone();
        assert_eq!(pod[0].get("args"), None);
        json!([pod[1]["command"], pod[1]["args"]])
    };
    let manager = |command: Value, args: Value| json!({"name": "manager", "image": "r.io/a", "command": command, "args": args});
    for (command, args, expected) in [
        (json!(null), json!(null), json!([null, ["--namespace=team"]])),
        (json!(["/m"]), json!(["--v=2"]), json!([["/m"], ["--v=2", "--namespace=team"]])),
        (json!(["/m"]), json!(["--namespace=x", "--v=2"]), json!([["/m"], ["--namespace=team", "--v=2"]])),
        (json!(["/m"]), json!(["--namespace", "x", "--v=2"]), json!([["/m"], ["--namespace=team", "--v=2"]])),
        (json!(["/m"]), json!(["--v=2", "--namespace"]), json!([["/m"], ["--v=2", "--namespace=team"]])),
        (json!(["/m", "--namespace="]), json!(["--v=2"]), json!([["/m", "--namespace=team"], ["--v=2"]])),
        (json!(["/m"]), json!(["--namespaces=x"]), json!([["/m"], ["--namespaces=x", "--namespace=team"]])),
    ] {
        assert_eq!(watching(manager(command.clone(), args.clone())), expected, "{command} {args}");
    }
}

#[test]
fn without_a_manager_nobody_can_be_told_what_to_watch() {
    let other = deployment(&json!([{"name": "other", "image": "r.io/a"}]));
    let mut shared = deployment(&json!([{"name": "manager", "image": "r.io/a"}]));
    shared["metadata"]["namespace"] = json!(SHARED);
    let watch = |namespace| {
        let documents = vec![other.clone(), shared.clone()];
        render_with(documents, |options| Options { watching_namespace: namespace, ..options })
    };
    let expected = "cannot watch only namespace team: no Deployment has a container named \"manager\"";
    assert_eq!(watch(Some("team")).unwrap_err().to_string(), expected);
    assert!(watch(Some("")).is_ok());
    assert!(watch(None).is_ok());
}
