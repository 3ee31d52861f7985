//! docs/air-gap.md, followed to the letter.

use capstan_management::{Kind, ManagementCluster, apply::apply};
use capstan_manifest::yaml;
use serde_json::{Value, json};

use crate::world::{Release, World, condition, selector};

const PAGE: &str = include_str!("../../../../docs/air-gap.md");

/// The documents of the page that a reader applies.
fn documents() -> Vec<Value> {
    let (_, rest) = PAGE.split_once("<!-- test: air-gap -->\n```yaml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    yaml::read(text).unwrap().into_iter().map(|it| it.value).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_the_page_installs_a_provider_from_config_maps() {
    let world = World::new().await;
    let operator = world.operator();
    world.publish(&Release::core("v1.10.0", "v1beta1")).await;
    world.core().create(json!({"version": "v1.10.0", "fetchConfig": selector("core")})).await;
    world.core().until_ready().await;

    world.create_namespace("capz-system").await;
    let cluster = ManagementCluster::new(world.client.clone(), "the story's server");
    apply(&cluster, &documents(), &|_| {}).await.unwrap();
    let azure = world.aws().within("capz-system").called("azure");
    let installed = azure.until_installed("v0.4.9").await;
    assert_eq!(condition(&installed, "PreflightCheckPassed").0, "True");
    let account = cluster.objects(&Kind::namespaced("", "v1", "ServiceAccount"), Some("capz-system"));
    account.get("capz-manager").await.unwrap();
    operator.stop().await;
}
