//! Providers that commands installed become provider objects, and nothing of them is touched.

use capstan_api::provider::ProviderType;
use capstan_management::{
    ManagementCluster,
    inventory::{self, Installed},
};
use capstan_operator::Options;
use capstan_repository::Environment;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

use crate::world::{AWS, CORE, Release, World, condition, run_operator_with, selector, until_event};

#[tokio::test(flavor = "multi_thread")]
async fn what_commands_installed_gets_objects_and_is_left_as_it_is() {
    let world = World::new().await;
    // The operator installs, and forgets: what is left is what a command leaves.
    let operator = world.operator();
    world.with_providers().await;
    operator.stop().await;
    for provider in [world.core(), world.aws()] {
        provider.edit(json!({"metadata": {"finalizers": null}})).await;
        provider.delete().await;
        provider.until_gone().await;
    }
    let secrets: Api<Secret> = Api::all(world.client.clone());
    for secret in secrets.list(&ListParams::default()).await.unwrap() {
        if secret.type_.as_deref() == Some("management.cluster.x-k8s.io/release") {
            let api: Api<Secret> = Api::namespaced(world.client.clone(), &secret.namespace().unwrap());
            api.delete(&secret.name_any(), &DeleteParams::default()).await.unwrap();
        }
    }
    let before = world.installed().await;
    let versions = async || {
        let mut found = Vec::new();
        for (namespace, name) in [(CORE, "capi-controller-manager"), (AWS, "capa-controller-manager")] {
            let deployment = world.deployment(namespace).get(name).await.unwrap();
            found.push((deployment.uid(), deployment.metadata.generation));
        }
        found
    };
    let deployments = versions().await;

    let operator = world.operator();
    for (provider, version) in [(world.core(), "v1.10.0"), (world.aws(), "v2.1.0")] {
        let object = provider.until_ready().await;
        assert_eq!(object.data["spec"], json!({"version": version}));
        assert_eq!(object.data["status"]["installedVersion"], version);
        assert_eq!(object.data["status"]["contract"], "v1beta1");
        let installed = condition(&object, "ProviderInstalled");
        assert_eq!(installed.0, "True");
        assert!(installed.2.contains("by another tool"), "{}", installed.2);
    }
    until_event(&world.client, AWS, "aws", "Normal Migrated").await;
    assert_eq!(world.installed().await, before);
    assert_eq!(versions().await, deployments);

    // While it runs, too.
    let cluster = ManagementCluster::new(world.client.clone(), "the story's server");
    let entry = Installed {
        namespace: AWS.to_owned(),
        name: "azure".to_owned(),
        kind: ProviderType::Infrastructure,
        version: "v1.2.0".to_owned(),
        watched_namespace: None,
        upgrading_to: None,
    };
    inventory::record(&cluster, &entry).await.unwrap();
    let azure = world.aws().called("azure").until("there", |_| true).await;
    assert_eq!(azure.data["spec"]["version"], "v1.2.0");

    // An entry that lost its object gets another one.
    azure_is_created_again(&world).await;

    // A Deployment that is gone is noticed, although the release is not known.
    let deployments = world.deployment(AWS);
    deployments.delete("capa-controller-manager", &DeleteParams::default()).await.unwrap();
    world.aws().until_words("Ready", "Deployment capa-controller-manager does not exist").await;

    // From then on it is upgraded like any other.
    world.publish(&Release::aws("v2.2.0", "v1beta1")).await;
    let spec = json!({"version": "v2.2.0", "secretName": "aws-variables", "fetchConfig": selector("aws")});
    world.aws().edit(json!({"spec": spec})).await;
    world.aws().until_installed("v2.2.0").await;
    operator.stop().await;
}

async fn azure_is_created_again(world: &World) {
    let azure = world.aws().called("azure");
    let uid = azure.get().await.uid();
    azure.edit(json!({"metadata": {"finalizers": null}})).await;
    azure.delete().await;
    azure.until("there again", |it| it.uid() != uid).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_installed_elsewhere_holds_an_object_up_until_it_is_gone() {
    let world = World::new().await;
    world.create_namespace("elsewhere").await;
    let options = Options { migrate_inventory: false, ..Options::default() };
    let operator = run_operator_with(world.client.clone(), Environment::default(), options);
    world.publish(&Release::core("v1.10.0", "v1beta1")).await;
    world.core().create(json!({"version": "v1.10.0", "fetchConfig": selector("core")})).await;
    world.core().until_ready().await;
    let cluster = ManagementCluster::new(world.client.clone(), "the story's server");
    let entry = Installed {
        namespace: "elsewhere".to_owned(),
        name: "aws".to_owned(),
        kind: ProviderType::Infrastructure,
        version: "v2.0.0".to_owned(),
        watched_namespace: None,
        upgrading_to: None,
    };
    inventory::record(&cluster, &entry).await.unwrap();
    world.publish(&Release::aws("v2.1.0", "v1beta1")).await;
    world.create_secret(AWS, "aws-variables", &[("AWS_REGION", "eu-1")]).await;
    let spec = json!({"version": "v2.1.0", "secretName": "aws-variables", "fetchConfig": selector("aws")});
    world.aws().create(spec).await;
    let refused = world.aws().until_condition("PreflightCheckPassed", "False", "MoreThanOneExists").await;
    assert!(condition(&refused, "PreflightCheckPassed").2.contains("elsewhere"));
    assert!(
        world.aws().within("elsewhere").api().get_opt("aws").await.unwrap().is_none(),
        "nothing is migrated"
    );
    let entries = cluster.objects(&inventory::kind(), Some("elsewhere"));
    entries.delete(&entry.label(), &DeleteParams::default()).await.unwrap();
    world.aws().until_ready().await;
    operator.stop().await;
}
