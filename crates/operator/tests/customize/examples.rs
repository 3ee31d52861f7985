//! The examples of the operator's specification, and the acceptance scenarios for customisation.

use serde_json::json;

use super::*;

/// The spec of a provider object among documents.
fn provider_spec(documents: &str) -> ProviderSpec {
    let documents = yaml::read(documents).unwrap();
    let provider = documents.iter().find(|it| it.value["spec"].is_object()).unwrap();
    serde_json::from_value(provider.value["spec"].clone()).unwrap()
}

#[test]
fn aws_with_controller_flags() {
    let spec = provider_spec(
        r#"
apiVersion: v1
kind: Secret
metadata:
 name: aws-variables
 namespace: capa-system
type: Opaque
data:
 AWS_REGION: ...
 AWS_ACCESS_KEY_ID: ...
 AWS_SECRET_ACCESS_KEY: ...
---
apiVersion: management.cluster.x-k8s.io/v1alpha1
kind: InfrastructureProvider
metadata:
 name: aws
 namespace: capa-system
spec:
 version: v0.6.0
 secretName: aws-variables
 manager:
   # These top level controller manager flags, supported by all the providers.
   # These flags come with sensible defaults, thus requiring no or minimal
   # changes for the most common scenarios.
   metricsAddress: ":8181"
   syncPeriod: 660
 fetchConfig:
   url: https://github.com/kubernetes-sigs/cluster-api-provider-aws/releases
 deployment:
   containers:
   - name: manager
     args:
         # These are controller flags that are specific to a provider; usage
         # is reserved for advanced scenarios only.
         awscluster-concurrency: 12
         awsmachine-concurrency: 11
"#,
    );
    let mut objects = objects(AWS_V0_6);
    customize(&mut objects, &spec).unwrap();
    assert_eq!(
        args(&objects, "manager"),
        "--metrics-addr=127.0.0.1:8080\n\
         --enable-leader-election\n\
         --feature-gates=EKS=false,EKSEnableIAM=false\n\
         --awscluster-concurrency=12\n\
         --awsmachine-concurrency=11\n\
         --metrics-bind-addr=:8181\n\
         --sync-period=660s"
    );
    let before = super::objects(AWS_V0_6);
    assert_eq!(container(&objects, "kube-rbac-proxy"), container(&before, "kube-rbac-proxy"));
    assert_eq!(objects[0], before[0], "what instances share");
}

#[test]
fn aws_with_another_image() {
    let spec = provider_spec(
        "
---
apiVersion: management.cluster.x-k8s.io/v1alpha1
kind: InfrastructureProvider
metadata:
 name: aws
 namespace: capa-system
spec:
 version: v0.6.0
 secretName: aws-variables
 deployment:
   containers:
   - name: manager
     image: gcr.io/myregistry/capa-controller:v0.6.0-foo
",
    );
    let mut objects = objects(AWS_V0_6);
    customize(&mut objects, &spec).unwrap();
    let mut expected = super::objects(AWS_V0_6);
    expected[1]["spec"]["template"]["spec"]["containers"][1]["image"] =
        json!("gcr.io/myregistry/capa-controller:v0.6.0-foo");
    assert_eq!(objects, expected);
}

#[test]
fn kubeadm_with_other_resources() {
    let spec = provider_spec(
        "
---
apiVersion: management.cluster.x-k8s.io/v1alpha1
kind: ControlPlaneProvider
metadata:
 name: kubeadm
 namespace: capi-kubeadm-control-plane-system
spec:
 version: v0.3.10
 secretName: capi-variables
 deployment:
   containers:
   - name: manager
     resources:
       limits:
         cpu: 100m
         memory: 30Mi
       requests:
         cpu: 100m
         memory: 20Mi
",
    );
    let mut objects = objects(CORE);
    customize(&mut objects, &spec).unwrap();
    let mut expected = super::objects(CORE);
    expected[0]["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({"limits": {"cpu": "100m", "memory": "30Mi"}, "requests": {"cpu": "100m", "memory": "20Mi"}});
    assert_eq!(objects, expected);
}

/// The examples of other repositories, of embedded ones and of ConfigMaps customize nothing.
#[test]
fn examples_of_fetching_change_nothing() {
    for text in [
        "{version: v0.4.9, secretName: azure-variables, fetchConfig: {url: 'https://github.com/myorg/awesome-azure-provider/releases'}}",
        "{version: v0.4.9, secretName: vsphere-variables}",
        "{version: v0.4.9, secretName: azure-variables, fetchConfig: {selector: {matchLabels: {provider-components: azure}}}}",
    ] {
        assert_eq!(customized(AWS, text), objects(AWS), "{text}");
    }
}

#[test]
fn manager_flags_and_precedence() {
    let text = r#"
manager: {syncPeriod: 500s, verbosity: 5, profilerAddress: "localhost:6060", featureGates: {ClusterTopology: true, A: false}, health: {healthProbeBindAddress: ":9441"}, leaderElection: {leaderElect: true, leaseDuration: 30s, renewDeadline: 20s, retryPeriod: 5s, resourceLock: leases, resourceName: "n", resourceNamespace: s}}
deployment: {containers: [{name: manager, args: {"--sync-period": "1s", "--feature-gates": "ClusterTopology=false", "--foo": "bar"}}]}
"#;
    assert_eq!(
        args(&customized(CORE, text), "manager"),
        "--leader-elect=true\n\
         --diagnostics-address=:8443\n\
         --insecure-diagnostics=false\n\
         --feature-gates=A=false,ClusterTopology=true,MachinePool=true\n\
         --foo=bar\n\
         --health-addr=:9441\n\
         --leader-elect-lease-duration=30s\n\
         --leader-elect-renew-deadline=20s\n\
         --leader-elect-retry-period=5s\n\
         --leader-election-id=s/n\n\
         --profiler-address=localhost:6060\n\
         --sync-period=500s\n\
         --v=5"
    );
}

#[test]
fn debug_mode() {
    let expected = "--leader-elect\n\
         --feature-gates=EKS=true,EKSEnableIAM=false,MachinePool=false,ROSA=false\n\
         --v=5\n\
         --diagnostics-address=:8443\n\
         --insecure-diagnostics=false\n\
         --profiler-address=localhost:6060";
    for text in [
        "{manager: {debug: true}}",
        "{manager: {debug: true, verbosity: 2, profilerAddress: ':6061'}}",
        "{manager: {debug: true}, deployment: {containers: [{name: manager, args: {v: 9, profiler-address: x}}]}}",
    ] {
        assert_eq!(args(&customized(AWS, text), "manager"), expected, "{text}");
    }
}

#[test]
fn the_namespace_arg_is_ignored() {
    let text = r#"{deployment: {containers: [{name: manager, args: {"--namespace": "x", "namespace": "y", "-namespace": "z"}}]}}"#;
    assert_eq!(customized(AWS, text), objects(AWS));
    // What the release itself sets stays.
    let mut restricted = objects(AWS);
    restricted[2]["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["--namespace=here", "--v=0"]);
    customize(&mut restricted, &spec(text)).unwrap();
    assert_eq!(args(&restricted, "manager"), "--namespace=here\n--v=0");
}

#[test]
fn resources_replicas_image_env_and_placement() {
    let text = r#"deployment: {replicas: 2, nodeSelector: {a: b}, tolerations: [], containers: [{name: manager, image: "gcr.io/my/capa:v0.6.0-foo", env: [{name: X, value: "1"}], resources: {limits: {cpu: 100m, memory: 30Mi}, requests: {cpu: 100m, memory: 20Mi}}}]}"#;
    let mut expected = objects(AWS);
    let deployment = expected[2]["spec"].as_object_mut().unwrap();
    deployment.insert("replicas".to_owned(), json!(2));
    let pod = deployment["template"]["spec"].as_object_mut().unwrap();
    pod.insert("nodeSelector".to_owned(), json!({"a": "b"}));
    pod.remove("tolerations");
    let manager = pod["containers"][0].as_object_mut().unwrap();
    manager.insert("image".to_owned(), json!("gcr.io/my/capa:v0.6.0-foo"));
    manager["env"].as_array_mut().unwrap().push(json!({"name": "X", "value": "1"}));
    manager.insert(
        "resources".to_owned(),
        json!({"limits": {"cpu": "100m", "memory": "30Mi"}, "requests": {"cpu": "100m", "memory": "20Mi"}}),
    );
    assert_eq!(customized(AWS, text), expected);
}
