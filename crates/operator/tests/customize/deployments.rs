//! Which Deployments and containers change, and in what.

use super::*;

/// Deployments with one container each: namespace, name, container.
fn release(deployments: &[(&str, &str, &str)]) -> Vec<Value> {
    let deployment = |(namespace, name, container): &(&str, &str, &str)| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
            "spec": {"template": {"spec": {"containers": [{"name": container, "image": "a.io/b:v1"}]}}}})
    };
    deployments.iter().map(deployment).collect()
}

#[test]
fn a_spec_applies_to_the_managers_deployments() {
    let shared = "capi-webhook-system";
    // Deployments, and which of them change.
    for (deployments, expected) in [
        (&[("ns", "anything", "x")][..], &[true][..]),
        (&[("ns", "capa-controller-manager", "manager"), ("ns", "other", "manager")], &[true, false]),
        (
            &[
                ("ns", "azureserviceoperator-controller-manager", "manager"),
                ("ns", "capz-controller-manager", "manager"),
            ],
            &[false, true],
        ),
        (&[("ns", "capi-controller-manager", "m"), ("ns", "capa-controller-manager", "m")], &[true, true]),
        (&[("ns", "a", "manager"), ("ns", "b", "proxy"), ("ns", "c", "manager")], &[true, false, true]),
        (&[("ns", "ca-manager", "x"), ("ns", "controller-manager", "manager")], &[false, true]),
        // What all instances share stays, unless there is nothing else.
        (&[(shared, "capa-controller-manager", "manager"), ("ns", "anything", "x")], &[false, true]),
        (&[(shared, "capa-controller-manager", "manager")], &[true]),
        (&[(shared, "a", "x"), (shared, "capa-controller-manager", "manager")], &[false, true]),
    ] {
        let before = release(deployments);
        let mut after = before.clone();
        customize(&mut after, &spec("{deployment: {replicas: 3}, manager: {verbosity: 2}}")).unwrap();
        for (at, is_changed) in expected.iter().enumerate() {
            if *is_changed {
                assert_eq!(after[at]["spec"]["replicas"], 3, "{deployments:?}");
                let container = &after[at]["spec"]["template"]["spec"]["containers"][0];
                assert_eq!(container["args"], json!(["--v=2"]), "{deployments:?}");
            } else {
                assert_eq!(after[at], before[at], "{deployments:?}");
            }
        }
    }
}

#[test]
fn without_a_managers_deployment_there_is_nothing_to_change() {
    let ask = "{deployment: {replicas: 3}}";
    assert_eq!(refused(&[], ask), "the release has no Deployment: remove spec.deployment and spec.manager");
    assert_eq!(
        refused(&release(&[("ns", "a", "x"), ("ns", "b", "y")]), ask),
        "none of the Deployments ns/a and ns/b is named ca…-controller-manager or has a container named \"manager\": \
         remove spec.deployment and spec.manager"
    );
    // Other kinds, and kinds of other groups.
    let mut others = release(&[("ns", "a", "manager"), ("ns", "b", "manager")]);
    others[0]["kind"] = json!("DaemonSet");
    others[1]["apiVersion"] = json!("example.com/v1");
    assert!(refused(&others, ask).starts_with("the release has no Deployment"));
}

#[test]
fn placement_replaces_whole_fields() {
    let toleration = json!({"effect": "NoSchedule", "key": "node-role.kubernetes.io/control-plane"});
    for (text, field, expected) in [
        ("{deployment: {nodeSelector: {a: b, c: d}}}", "nodeSelector", json!({"a": "b", "c": "d"})),
        ("{deployment: {nodeSelector: {}}}", "nodeSelector", Value::Null),
        ("{deployment: {replicas: 0}}", "nodeSelector", json!({"kubernetes.io/os": "linux"})),
        ("{deployment: {tolerations: [{operator: Exists}]}}", "tolerations", json!([{"operator": "Exists"}])),
        ("{deployment: {tolerations: []}}", "tolerations", Value::Null),
        ("{deployment: {tolerations: null, replicas: 1}}", "tolerations", json!([toleration])),
        ("{deployment: {affinity: {podAffinity: {}}}}", "affinity", json!({"podAffinity": {}})),
    ] {
        let changed = customized(AWS, text);
        let deployment = deployment(&changed, "capa-system");
        assert_eq!(deployment["spec"]["template"]["spec"][field], expected, "{text}");
        let mut rest = deployment.clone();
        let before = objects(AWS)[2].clone();
        rest["spec"]["template"]["spec"][field] = before["spec"]["template"]["spec"][field].clone();
        rest["spec"]["replicas"] = before["spec"]["replicas"].clone();
        assert_eq!(rest, before, "{text}");
    }
    for (text, expected) in [
        ("{deployment: {replicas: 0}}", json!(0)),
        ("{deployment: {replicas: 3}}", json!(3)),
        ("{deployment: {nodeSelector: {}}}", json!(1)),
    ] {
        assert_eq!(customized(AWS, text)[2]["spec"]["replicas"], expected, "{text}");
    }
}

#[test]
fn environment_variables_are_replaced_or_appended() {
    let file = json!({"name": "AWS_SHARED_CREDENTIALS_FILE", "value": "/home/.aws/credentials"});
    let region = json!({"name": "AWS_REGION", "value": "eu-central-1"});
    for (env, expected) in [
        ("[]", json!([file, region])),
        (
            "[{name: B, value: b}, {name: A}]",
            json!([file, region, {"name": "B", "value": "b"}, {"name": "A"}]),
        ),
        (
            "[{name: AWS_SHARED_CREDENTIALS_FILE, valueFrom: {secretKeyRef: {name: s, key: k}}}]",
            json!([{"name": "AWS_SHARED_CREDENTIALS_FILE", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}, region]),
        ),
        (
            "[{name: AWS_REGION, value: a}, {name: AWS_REGION, value: b}]",
            json!([file, {"name": "AWS_REGION", "value": "b"}]),
        ),
    ] {
        let text = format!("{{deployment: {{containers: [{{name: manager, env: {env}}}]}}}}");
        assert_eq!(container(&customized(AWS, &text), "manager")["env"], expected, "{text}");
    }
    // A container without an environment.
    let text = "{deployment: {containers: [{name: migrate, env: [{name: A, value: a}]}]}}";
    assert_eq!(container(&customized(CORE, text), "migrate")["env"], json!([{"name": "A", "value": "a"}]));
}

#[test]
fn containers_are_found_by_their_names() {
    let text = "
deployment:
  containers:
  - {name: migrate, image: {tag: v1.14.3}, args: {dry-run: true}, resources: {limits: {cpu: 1}}}
  - {name: manager, image: {repository: mirror.example.com/capi}}
";
    let changed = customized(CORE, text);
    assert_eq!(
        container(&changed, "migrate"),
        &json!({"name": "migrate", "image": "registry.k8s.io/cluster-api/migrate:v1.14.3", "args": ["--dry-run=true"],
            "resources": {"limits": {"cpu": 1}}})
    );
    let mut expected = container(&objects(CORE), "manager").clone();
    expected["image"] = json!("mirror.example.com/capi/cluster-api-controller:v1.14.2");
    assert_eq!(container(&changed, "manager"), &expected);

    // Flags of the manager are for its own container, wherever it is in the list.
    let changed = customized(AWS_V0_6, "{manager: {verbosity: 3}}");
    let before = objects(AWS_V0_6);
    assert_eq!(container(&changed, "kube-rbac-proxy"), container(&before, "kube-rbac-proxy"));
    assert!(args(&changed, "manager").ends_with("\n--v=3"));
    // Without a container of that name, for the first.
    let mut renamed = before.clone();
    renamed[1]["spec"]["template"]["spec"]["containers"][1]["name"] = json!("controller");
    customize(&mut renamed, &spec("{manager: {verbosity: 3}}")).unwrap();
    assert!(args(&renamed, "kube-rbac-proxy").ends_with("\n--v=3"));
    assert_eq!(args(&renamed, "controller"), args(&before, "manager"));
}

#[test]
fn a_container_must_be_in_one_of_the_deployments() {
    let mut two =
        release(&[("ns", "capa-controller-manager", "manager"), ("ns", "capi-controller-manager", "proxy")]);
    customize(&mut two, &spec("{deployment: {containers: [{name: proxy, args: {v: 1}}]}}")).unwrap();
    assert_eq!(two[0]["spec"]["template"]["spec"]["containers"][0].get("args"), None);
    assert_eq!(two[1]["spec"]["template"]["spec"]["containers"][0]["args"], json!(["--v=1"]));

    for (before, names, expected) in [
        (
            objects(AWS),
            "[{name: managr}]",
            "spec.deployment.containers: no container named \"managr\"; \
             Deployment capa-system/capa-controller-manager has \"manager\"",
        ),
        (
            objects(CORE),
            "[{name: z}, {name: manager}, {name: ''}, {name: b}]",
            "spec.deployment.containers: no containers named \"\", \"b\" and \"z\"; \
             Deployment capi-system/capi-controller-manager has \"manager\" and \"migrate\"",
        ),
        (
            two,
            "[{name: x}]",
            "spec.deployment.containers: no container named \"x\"; \
             Deployment ns/capa-controller-manager has \"manager\", Deployment ns/capi-controller-manager has \"proxy\"",
        ),
    ] {
        let text = format!("{{deployment: {{replicas: 5, containers: {names}}}}}");
        assert_eq!(refused(&before, &text), expected);
    }
}

#[test]
fn what_cannot_be_done_says_what_to_change() {
    let manager = |fields: &str| format!("{{deployment: {{containers: [{{name: manager, {fields}}}]}}}}");
    for (text, expected) in [
        (
            manager("args: {'--sync-period=5s': ''}"),
            "spec.deployment.containers[manager].args: \"--sync-period=5s\" is not the name of a flag: \
             write it like sync-period, and its value after the colon",
        ),
        (
            manager("args: {x: [1]}"),
            "spec.deployment.containers[manager].args: \"x\" must be text, a number or a boolean",
        ),
        (
            manager("args: {--x: 1, x: 2}"),
            "spec.deployment.containers[manager].args: \"x\" sets the same flag as \"--x\": remove one of them",
        ),
        (
            manager("env: [{name: A}, {value: b}]"),
            "spec.deployment.containers[manager].env[1]: expected an object with a name",
        ),
        (
            manager("image: 'gcr.io/capa:'"),
            "spec.deployment.containers[manager].image: \"gcr.io/capa:\" cannot be used: \"\" is no tag",
        ),
        (
            "{deployment: {containers: [{name: manager}, {name: manager, args: {x: 1}}]}}".to_owned(),
            "spec.deployment.containers has several entries for container \"manager\": merge them into one",
        ),
        (
            "{manager: {syncPeriod: soon}}".to_owned(),
            "spec.manager.syncPeriod: \"soon\" is not a duration: write it like 30s, 10m or 1h30m",
        ),
        (
            "{manager: {leaderElection: {leaseDuration: a, renewDeadline: b, retryPeriod: c}}, \
              deployment: {containers: [{name: x, args: {a: null}}]}}"
                .to_owned(),
            "spec.deployment.containers[x].args: \"a\" must be text, a number or a boolean; \
             spec.manager.leaderElection.leaseDuration: \"a\" is not a duration: write it like 30s, 10m or 1h30m; \
             spec.manager.leaderElection.renewDeadline: \"b\" is not a duration: write it like 30s, 10m or 1h30m; \
             spec.manager.leaderElection.retryPeriod: \"c\" is not a duration: write it like 30s, 10m or 1h30m",
        ),
    ] {
        assert_eq!(refused(&objects(AWS), &text), expected, "{text}");
    }
    // The same value twice is no conflict.
    assert!(args(&customized(AWS, &manager("args: {--x: 1, x: '1'}")), "manager").ends_with("\n--x=1"));
}

#[test]
fn a_release_that_no_api_server_accepts_is_named() {
    let with = |pointer: &str, value: Value| {
        let mut objects = objects(AWS);
        *objects[2].pointer_mut(pointer).unwrap() = value;
        objects
    };
    let everything = "{manager: {verbosity: 1}, deployment: {containers: [{name: manager, env: [{name: A}], image: {tag: x}}]}}";
    let manager = "/spec/template/spec/containers/0";
    for (before, text, expected) in [
        (
            with("/spec/template/spec", Value::Null),
            "{deployment: {replicas: 1}}",
            "Deployment capa-system/capa-controller-manager of the release has no usable spec.template.spec: \
             correct the release's components",
        ),
        (
            with("/spec/template/spec/containers", json!([])),
            "{manager: {verbosity: 1}}",
            "no usable spec.template.spec.containers:",
        ),
        (
            with(&format!("{manager}/args"), json!("x")),
            everything,
            "no usable spec.template.spec.containers[].args:",
        ),
        (
            with(&format!("{manager}/env"), json!("x")),
            everything,
            "no usable spec.template.spec.containers[].env:",
        ),
        (
            with(&format!("{manager}/image"), json!("a.io/B")),
            everything,
            "cannot replace parts of image \"a.io/B\" of container \"manager\" in Deployment \
             capa-system/capa-controller-manager: the name \"B\" must be lower case; \
             set spec.deployment.containers[manager].image to the whole image",
        ),
    ] {
        let error = refused(&before, text);
        assert!(error.contains(expected), "{error}");
    }
}
