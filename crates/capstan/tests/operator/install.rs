//! Installing providers: from the first object to ready, and everything that holds it up.

use serde_json::json;

use crate::world::{
    AWS, CORE, LIMIT, Release, World, arguments, condition, container, replicas, run_operator, selector,
    until_event,
};
use capstan_api::provider::ProviderType;
use capstan_management::{ManagementCluster, inventory::Inventory};
use capstan_repository::Environment;
use capstan_testkit::{
    faults::{Fault, Injection, RequestId, Transport, Verb},
    wait,
};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Event},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn core_is_installed_from_a_config_map_and_others_follow() {
    let world = World::new().await;
    let operator = world.operator();
    for release in [Release::core("v1.10.0", "v1beta1"), Release::aws("v2.1.0", "v1beta1")] {
        world.publish(&release).await;
    }
    world.create_secret(AWS, "aws-variables", &[("AWS_REGION", "eu-1")]).await;
    // The other one comes first, and waits.
    let spec = json!({"version": "v2.1.0", "secretName": "aws-variables", "fetchConfig": selector("aws")});
    world.aws().create(spec).await;
    let waiting =
        world.aws().until_condition("PreflightCheckPassed", "False", "WaitingForCoreProviderReady").await;
    assert_eq!(condition(&waiting, "Ready").0, "False");
    assert!(world.deployment(AWS).get_opt("capa-controller-manager").await.unwrap().is_none());

    world.core().create(json!({"version": "v1.10.0", "fetchConfig": selector("core")})).await;
    let core = world.core().until_ready().await;
    assert_eq!(core.finalizers(), ["provider.cluster.x-k8s.io"]);
    let status = &core.data["status"];
    assert_eq!(status["installedVersion"], "v1.10.0");
    assert_eq!(status["contract"], "v1beta1");
    assert_eq!(status["observedGeneration"], json!(core.metadata.generation));
    for type_ in ["PreflightCheckPassed", "ProviderInstalled", "Ready"] {
        assert_eq!(condition(&core, type_).0, "True", "{type_}");
    }
    let manager = world.deployment(CORE).get("capi-controller-manager").await.unwrap();
    assert_eq!(manager.labels()["cluster.x-k8s.io/provider"], "cluster-api");
    assert_eq!(manager.labels()["clusterctl.cluster.x-k8s.io"], "");

    let aws = world.aws().until_ready().await;
    assert_eq!(aws.data["status"]["installedVersion"], "v2.1.0");
    let manager = world.deployment(AWS).get("capa-controller-manager").await.unwrap();
    assert_eq!(container(&manager).env.as_ref().unwrap()[0].value.as_deref(), Some("eu-1"));

    // clusterctl finds both.
    let cluster = ManagementCluster::new(world.client.clone(), "the story's server");
    let inventory = Inventory::read(&cluster).await.unwrap();
    let installed: Vec<_> = inventory.providers.iter().map(|it| (it.label(), it.version.clone())).collect();
    let expected = [("cluster-api", "v1.10.0"), ("infrastructure-aws", "v2.1.0")];
    assert_eq!(installed, expected.map(|(label, version)| (label.to_owned(), version.to_owned())));
    until_event(&world.client, AWS, "aws", "Normal ProviderInstalled").await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_version_the_latest_stable_one_is_written_to_the_spec() {
    let world = World::new().await;
    let operator = world.operator();
    for version in ["v1.9.0", "v1.10.0", "v1.11.0-rc.0"] {
        world.publish(&Release::core(version, "v1beta1")).await;
    }
    world.core().create(json!({"fetchConfig": selector("core")})).await;
    let core = world.core().until_installed("v1.10.0").await;
    assert_eq!(core.data["spec"]["version"], "v1.10.0");
    // Cleared later, it is set back to what is installed.
    world.publish(&Release::core("v1.10.1", "v1beta1")).await;
    world.core().edit(json!({"spec": {"version": null}})).await;
    world.core().until("back at its version", |it| it.data["spec"]["version"] == "v1.10.0").await;
    assert_eq!(world.core().until_ready().await.data["status"]["installedVersion"], "v1.10.0");
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_named_and_the_installation_goes_on_once_it_is_there() {
    let world = World::new().await;
    let operator = world.operator();
    world.publish(&Release::core("v1.10.0", "v1beta1")).await;
    world.core().create(json!({"version": "v1.10.0", "fetchConfig": selector("core")})).await;
    world.core().until_ready().await;

    let spec = json!({"version": "v2.1.0", "secretName": "aws-variables", "fetchConfig": selector("aws")});
    world.aws().create(spec).await;
    let object = world.aws().until_condition("ProviderInstalled", "False", "ComponentsFetchError").await;
    let message = condition(&object, "ProviderInstalled").2;
    assert!(message.contains("Secret capa-system/aws-variables does not exist"), "{message}");

    world.create_secret(AWS, "aws-variables", &[("OTHER", "x")]).await;
    let says = |words: &'static str| {
        move |it: &kube::api::DynamicObject| condition(it, "ProviderInstalled").2.contains(words)
    };
    world.aws().until("without ConfigMaps", says("there are no ConfigMaps")).await;

    world.publish(&Release::aws("v2.1.0", "v1beta1")).await;
    world.aws().until("without a variable", says("[AWS_REGION]")).await;
    assert!(world.deployment(AWS).get_opt("capa-controller-manager").await.unwrap().is_none());

    world.create_secret(AWS, "aws-variables", &[("AWS_REGION", "eu-1")]).await;
    let ready = world.aws().until_ready().await;
    for type_ in ["PreflightCheckPassed", "ProviderInstalled"] {
        assert_eq!(condition(&ready, type_).0, "True", "{type_}");
    }
    until_event(&world.client, AWS, "aws", "Warning ComponentsFetchError").await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_and_deployments_are_customized() {
    let world = World::new().await;
    let operator = world.operator();
    world.publish(&Release::core("v1.10.0", "v1beta1")).await;
    world
        .core()
        .create(json!({
            "version": "v1.10.0",
            "fetchConfig": selector("core"),
            "manager": {
                "syncPeriod": "500s", "verbosity": 5, "profilerAddress": "localhost:6060",
                "featureGates": {"ClusterTopology": true, "A": false}, "metricsAddress": ":8181",
                "leaderElection": {"leaderElect": true, "leaseDuration": "30s"},
            },
            "deployment": {
                "replicas": 2,
                "nodeSelector": {"a": "b"},
                "tolerations": [],
                "containers": [{
                    "name": "manager", "image": {"tag": "v1.10.0-foo"},
                    "args": {"--sync-period": "1s", "feature-gates": "ClusterTopology=false", "foo": 7,
                             "namespace": "x"},
                    "env": [{"name": "X", "value": "1"}],
                    "resources": {"limits": {"cpu": "100m", "memory": "30Mi"}},
                }],
            },
        }))
        .await;
    world.core().until_ready().await;
    let manager = world.deployment(CORE).get("capi-controller-manager").await.unwrap();
    let found = arguments(&manager);
    for expected in [
        "--sync-period=500s",
        "--v=5",
        "--profiler-address=localhost:6060",
        "--metrics-bind-addr=:8181",
        "--leader-elect=true",
        "--leader-elect-lease-duration=30s",
        "--foo=7",
        "--feature-gates=A=false,ClusterTopology=true,MachinePool=true",
    ] {
        assert!(found.iter().any(|it| it == expected), "{expected} in {found:?}");
    }
    assert!(!found.iter().any(|it| it == "--leader-elect" || it.contains("namespace")), "{found:?}");
    assert_eq!(replicas(&manager), 2);
    let container = container(&manager);
    assert_eq!(container.image.as_deref(), Some("registry.example.com/capi/manager:v1.10.0-foo"));
    let limits = container.resources.as_ref().unwrap().limits.as_ref().unwrap();
    assert_eq!(limits["memory"].0, "30Mi");
    until_event(&world.client, CORE, "cluster-api", "Warning Ignored").await;
    // An edit that has no effect is warned of as well.
    world.core().edit(json!({"spec": {"manager": {"cacheNamespace": "y"}}})).await;
    let events: Api<Event> = Api::namespaced(world.client.clone(), CORE);
    wait::until_any(&events, "a warning of cacheNamespace", LIMIT, |it| {
        it.reason.as_deref() == Some("Ignored")
            && it.message.as_ref().is_some_and(|it| it.contains("spec.manager.cacheNamespace"))
    })
    .await;

    // Taken away again, the release's own values are back.
    let spec = json!({"spec": {"manager": null, "deployment": {"nodeSelector": null, "replicas": null, "containers": null}}});
    world.core().edit(spec).await;
    let manager =
        wait::until_is(&world.deployment(CORE), "capi-controller-manager", "as released", LIMIT, |it| {
            arguments(it).iter().any(|it| it == "--leader-elect")
        })
        .await;
    assert_eq!(replicas(&manager), 1);
    let pod = manager.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    assert_eq!(pod.node_selector.clone().unwrap_or_default().len(), 0);
    world.core().until_ready().await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_object_for_a_provider_waits_until_the_first_is_gone() {
    let world = World::new().await;
    world.create_namespace("elsewhere").await;
    let operator = world.operator();
    world.with_providers().await;
    let elsewhere = world.aws().within("elsewhere");
    let release = Release { namespace: "elsewhere", ..Release::aws("v2.1.0", "v1beta1") };
    world.publish(&release).await;
    world.create_secret("elsewhere", "aws-variables", &[("AWS_REGION", "eu-1")]).await;
    let spec = json!({"version": "v2.1.0", "secretName": "aws-variables", "fetchConfig": selector("aws")});
    elsewhere.create(spec).await;
    let second = elsewhere.until_condition("PreflightCheckPassed", "False", "MoreThanOneExists").await;
    let message = condition(&second, "PreflightCheckPassed").2;
    assert!(message.contains("InfrastructureProvider aws") && message.contains(AWS), "{message}");
    let other_core = world.core().within("elsewhere").called("other");
    other_core.create(json!({"version": "v1.10.0", "fetchConfig": selector("core")})).await;
    other_core.until_condition("PreflightCheckPassed", "False", "MoreThanOneExists").await;
    other_core.delete().await;
    other_core.until_gone().await;
    world.core().until_ready().await;

    world.aws().delete().await;
    world.aws().until_gone().await;
    elsewhere.until_ready().await;
    assert!(world.deployment("elsewhere").get_opt(&release.manager()).await.unwrap().is_some());
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn contracts_that_do_not_go_together_are_refused() {
    let world = World::new().await;
    let operator = world.operator();
    world.publish(&Release::core("v1.10.0", "v1beta1")).await;
    world.publish(&Release::aws("v2.1.0", "v1beta2")).await;
    world.publish(&Release::aws("v2.0.0", "v1beta1")).await;
    world.create_secret(AWS, "aws-variables", &[("AWS_REGION", "eu-1")]).await;
    world.core().create(json!({"version": "v1.10.0", "fetchConfig": selector("core")})).await;
    world.core().until_ready().await;
    let spec = json!({"version": "v2.1.0", "secretName": "aws-variables", "fetchConfig": selector("aws")});
    world.aws().create(spec).await;
    let refused =
        world.aws().until_condition("PreflightCheckPassed", "False", "CAPIVersionIncompatibility").await;
    let message = condition(&refused, "PreflightCheckPassed").2;
    assert!(message.contains("v1beta2") && message.contains("v1beta1"), "{message}");
    assert!(world.deployment(AWS).get_opt("capa-controller-manager").await.unwrap().is_none());
    world.aws().set_version("v2.0.0").await;
    world.aws().until_installed("v2.0.0").await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_gives_a_condition_and_recovers() {
    let world = World::new().await;
    let operator = world.operator();
    world.publish(&Release::core("v1.10.0", "v1beta1")).await;
    let broken = Release {
        more: vec![
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Bad_Name", "namespace": CORE}}),
        ],
        ..Release::core("v1.10.1", "v1beta1")
    };
    world.publish(&broken).await;
    let good = json!({"version": "v1.10.0", "fetchConfig": selector("core")});
    let core = world.core();
    for (what, spec, type_, reason, words) in [
        (
            "a version without v",
            json!({"spec": {"version": "1.10.0"}}),
            "PreflightCheckPassed",
            "IncorrectVersionFormat",
            "1.10.0",
        ),
        (
            "a version that is not there",
            json!({"spec": {"version": "v1.99.0"}}),
            "ProviderInstalled",
            "ComponentsFetchError",
            "v1.99.0",
        ),
        (
            "an unknown container",
            json!({"spec": {"deployment": {"containers": [{"name": "nope"}]}}}),
            "ProviderInstalled",
            "ComponentsCustomizationError",
            "nope",
        ),
        (
            "an object that the server refuses",
            json!({"spec": {"version": "v1.10.1"}}),
            "ProviderInstalled",
            "InstallFailed",
            "Bad_Name",
        ),
    ] {
        let mut bad = good.clone();
        for (field, value) in spec["spec"].as_object().unwrap() {
            bad[field] = value.clone();
        }
        core.create(bad).await;
        let object = core.until_condition(type_, "False", reason).await;
        let message = condition(&object, type_).2;
        assert!(message.contains(words), "{what}: {message}");
        assert!(world.deployment(CORE).get_opt("capi-controller-manager").await.unwrap().is_none(), "{what}");
        core.delete().await;
        core.until_gone().await;
    }
    let unknown = world.aws().called("nowhere");
    unknown.create(json!({"version": "v1.0.0"})).await;
    unknown.until_condition("PreflightCheckPassed", "False", "WaitingForCoreProviderReady").await;
    core.create(good).await;
    core.until_ready().await;
    let object = unknown
        .until("without a source", |it| {
            condition(it, "PreflightCheckPassed").1 == "FetchConfigValidationError"
        })
        .await;
    let message = condition(&object, "PreflightCheckPassed").2;
    assert!(message.contains("fetchConfig"), "{message}");

    // A bad edit of what runs leaves it running, and is forgotten once it is taken back.
    let uid = world.deployment(CORE).get("capi-controller-manager").await.unwrap().uid();
    core.edit(json!({"spec": {"deployment": {"containers": [{"name": "nope"}]}}})).await;
    core.until_condition("ProviderInstalled", "False", "ComponentsCustomizationError").await;
    core.edit(json!({"spec": {"deployment": null}})).await;
    core.until_ready().await;
    core.set_version("v1.9.0").await;
    core.until_condition("PreflightCheckPassed", "False", "UnsupportedProviderDowngradeReason").await;
    core.set_version("v1.99.0").await;
    core.until_condition("ProviderUpgraded", "False", "ComponentsFetchError").await;
    core.set_version("v1.10.0").await;
    let ready = core.until_ready().await;
    for condition in ready.data["status"]["conditions"].as_array().unwrap() {
        assert_eq!(condition["status"], "True", "{condition}");
    }
    assert_eq!(world.deployment(CORE).get("capi-controller-manager").await.unwrap().uid(), uid);
    assert_eq!(core.kind, ProviderType::Core);
    operator.stop().await;
}

/// Several times as long as a condition or a start may take, for a machine that has other things to do.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_ready_before_it_is_available_and_others_start_right_after_core() {
    let world = World::new().await;
    let operator = world.operator();
    for release in [Release::core("v1.10.0", "v1beta1"), Release::aws("v2.1.0", "v1beta1")] {
        world.publish(&release).await;
    }
    world.create_secret(AWS, "aws-variables", &[("AWS_REGION", "eu-1")]).await;
    world.kubelet.hold_back("capi-controller-manager");
    world.core().create(json!({"version": "v1.10.0", "fetchConfig": selector("core")})).await;
    let spec = json!({"version": "v2.1.0", "secretName": "aws-variables", "fetchConfig": selector("aws")});
    world.aws().create(spec).await;
    // Ready was never True, not even for a moment.
    let installed = world
        .core()
        .until("installed", |it| {
            assert_ne!(condition(it, "Ready").0, "True", "{it:?}");
            condition(it, "ProviderInstalled").0 == "True"
        })
        .await;
    assert_eq!(condition(&installed, "Ready").1, "NoDeploymentAvailableConditionReason");
    let held = world.core().until_words("Ready", "Deployment capi-controller-manager is not available").await;
    assert_eq!(condition(&held, "ProviderInstalled").0, "True");
    world.aws().until_condition("PreflightCheckPassed", "False", "WaitingForCoreProviderReady").await;
    assert!(world.deployment(AWS).get_opt("capa-controller-manager").await.unwrap().is_none());

    world.kubelet.let_go(CORE, "capi-controller-manager").await;
    world.core().until_ready().await;
    let ready = Instant::now();
    world.aws().until("started", |it| !condition(it, "ProviderInstalled").0.is_empty()).await;
    assert!(ready.elapsed() < SOON, "{:?}", ready.elapsed());

    // After an upgrade as well.
    world.aws().until_ready().await;
    world.kubelet.hold_back("capi-controller-manager");
    world.publish(&Release::core("v1.10.1", "v1beta1")).await;
    world.core().set_version("v1.10.1").await;
    world
        .core()
        .until("upgraded", |it| {
            let is_upgraded = it.data["status"]["installedVersion"] == "v1.10.1";
            assert!(!is_upgraded || condition(it, "Ready").0 == "False", "{it:?}");
            is_upgraded
        })
        .await;
    world.kubelet.let_go(CORE, "capi-controller-manager").await;
    world.core().until_installed("v1.10.1").await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_cannot_be_used_is_refused_soon_and_recovers_in_place() {
    let world = World::new().await;
    let operator = world.operator();
    world.publish(&Release::core("v1.10.0", "v1beta1")).await;
    world.core().create(json!({"version": "v1.10.0", "fetchConfig": selector("core")})).await;
    world.core().until_ready().await;
    world.create_secret(AWS, "aws-variables", &[("AWS_REGION", "eu-1")]).await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), AWS);
    let release = Release::aws("v2.1.0", "v1beta1");
    let aws = world.aws();
    let spec = json!({"version": "v2.1.0", "secretName": "aws-variables", "fetchConfig": selector("aws")});
    aws.create(spec).await;
    let refused = async |type_: &str, reason: &str, words: &str| {
        let started = Instant::now();
        let object = aws.until_words(type_, words).await;
        assert!(started.elapsed() < SOON, "{words}: {:?}", started.elapsed());
        assert_eq!(condition(&object, type_).1, reason, "{words}");
        assert_eq!(condition(&object, "Ready").0, "False", "{words}");
        let installed = world.deployment(AWS).get_opt("capa-controller-manager").await.unwrap();
        assert!(installed.is_none(), "{words}");
    };
    let fetch = "ComponentsFetchError";
    refused("ProviderInstalled", fetch, "there are no ConfigMaps").await;

    world.publish_text(&release, "{ this is: [not yaml").await;
    refused("ProviderInstalled", fetch, "cannot use").await;

    let stray = json!({"apiVersion": "v1", "kind": "ConfigMap",
                       "metadata": {"name": "stray", "namespace": "kube-system"}, "data": {}});
    world.publish(&Release { more: vec![stray], ..release.clone() }).await;
    refused("ProviderInstalled", fetch, "ConfigMap kube-system/stray").await;
    let anywhere: Api<ConfigMap> = Api::all(world.client.clone());
    let strays =
        anywhere.list(&kube::api::ListParams::default().fields("metadata.name=stray")).await.unwrap();
    assert!(strays.items.is_empty(), "nothing is moved to another namespace");

    // One that cannot be used is named with what it lacks.
    maps.patch("v2.1.0", &PatchParams::default(), &Patch::Merge(json!({"data": {"metadata": null}})))
        .await
        .unwrap();
    refused("ProviderInstalled", fetch, "metadata").await;

    world.publish(&release).await;
    let twin = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "twin", "labels": {"pc": "aws", "provider.cluster.x-k8s.io/version": "v2.1.0"}},
        "data": {"metadata": release.metadata().to_string(), "components": ""}});
    aws.edit(json!({"spec": {"fetchConfig": {"selector": {"matchLabels": {"pc": "nothing"}}}}})).await;
    maps.patch("twin", &PatchParams::apply("story"), &Patch::Apply(twin)).await.unwrap();
    aws.delete().await;
    aws.until_gone().await;
    let spec = json!({"version": "v2.1.0", "secretName": "aws-variables", "fetchConfig": selector("aws")});
    aws.create(spec).await;
    let object = aws.until_words("ProviderInstalled", "twin").await;
    let message = condition(&object, "ProviderInstalled").2;
    assert!(message.contains("v2.1.0"), "both are named: {message}");
    maps.delete("twin", &DeleteParams::default()).await.unwrap();
    aws.until_ready().await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_not_served_holds_nothing_up() {
    let world = World::new().await;
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let name = "addonproviders.management.cluster.x-k8s.io";
    crds.delete(name, &DeleteParams::default()).await.unwrap();
    wait::until_gone(&crds, name, LIMIT).await;
    let operator = world.operator();
    world.publish(&Release::core("v1.10.0", "v1beta1")).await;
    world.core().create(json!({"version": "v1.10.0", "fetchConfig": selector("core")})).await;
    world.core().until_ready().await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_failed_try_wrote_is_gone_when_another_version_is_installed() {
    let world = World::new().await;
    world.publish(&Release::core("v1.10.0", "v1beta1")).await;
    world.publish(&Release::core("v1.10.1", "v1beta1")).await;
    let extra =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra", "namespace": CORE}});
    world.publish(&Release { more: vec![extra], ..Release::core("v1.10.1", "v1beta1") }).await;
    // The operator ends while it installs: its Deployments come after everything else.
    let request = RequestId {
        verb: Verb::Patch,
        path: "deployments.apps/capi-controller-manager".to_owned(),
        number: 1,
    };
    let transport =
        Transport::new(world.client.clone(), Some(Injection { request, fault: Fault::CrashBefore }));
    let operator = run_operator(transport.client(), Environment::default());
    world.core().create(json!({"version": "v1.10.1", "fetchConfig": selector("core")})).await;
    assert!(transport.fired_within(LIMIT).await, "{:?}", transport.requests());
    operator.crash().await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), CORE);
    assert!(maps.get_opt("extra").await.unwrap().is_some());
    world.core().set_version("v1.10.0").await;
    let operator = world.operator();
    world.core().until_installed("v1.10.0").await;
    assert!(maps.get_opt("extra").await.unwrap().is_none());
    operator.stop().await;
}
