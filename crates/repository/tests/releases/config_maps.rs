//! Releases in ConfigMaps.

use capstan_api::provider::ProviderType;
use capstan_repository::{ConfigMaps, ConfigMapsError, Provider, Repository};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, core::Selector};
use serde_json::json;

use crate::{folder::metadata, server::Server};

fn config_map(name: &str, series: &str) -> ConfigMap {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "mine-system"},
        "data": {"metadata": metadata(series), "components": format!("components of {name}")},
    }))
    .unwrap()
}

fn repository(config_maps: &[ConfigMap]) -> Repository {
    let provider =
        Provider { name: "mine".to_owned(), kind: ProviderType::Infrastructure, url: String::new() };
    Repository::in_config_maps(&provider, ConfigMaps::judge(config_maps, "ConfigMaps of mine").unwrap())
}

#[tokio::test]
async fn several_versions_are_a_repository() {
    let repository = repository(&[
        config_map("v1.14.0-rc.0", "1.14=v1beta2"),
        config_map("v1.12.0", "1.12=v1beta2"),
        config_map("v1.13.0", "1.13=v1beta2"),
        config_map("not-a-version", "1.0=v1beta2"),
    ]);
    let chosen = repository.version(None).await.unwrap();
    assert_eq!(chosen.version, "v1.13.0");
    let [skipped] = &chosen.skipped[..] else { panic!("{:?}", chosen.skipped) };
    assert_eq!(skipped.version, "mine-system/not-a-version");

    let file = repository.components("v1.12.0").await.unwrap();
    assert_eq!(file.text, "components of v1.12.0");
    assert_eq!(file.origin, "the components in ConfigMap mine-system/v1.12.0");
    assert_eq!(repository.metadata("1.12.0").await.unwrap().contract_of("v1.12.0").unwrap(), "v1beta2");
}

#[tokio::test]
async fn what_is_not_there_is_told_with_what_is() {
    let repository = repository(&[config_map("v1.12.0", "1.12=v1beta2")]);
    let error = repository.components("v1.13.0").await.unwrap_err();
    assert!(
        error.is_not_found() && error.to_string().contains("of v1.13.0 in the ConfigMaps of mine"),
        "{error}"
    );
    assert_eq!(error.available(), ["v1.12.0"]);
    let error = repository.template("v1.12.0", None).await.unwrap_err().to_string();
    assert!(error.contains("infrastructure-mine v1.12.0 has no cluster template"), "{error}");
}

async fn list(server: &Server) -> Result<ConfigMaps, ConfigMapsError> {
    let client = Client::try_from(kube::Config::new(server.address.parse().unwrap())).unwrap();
    let selector: Selector = [("provider-components", "mine")].into_iter().collect();
    ConfigMaps::list(client, "mine-system", &selector).await
}

#[tokio::test]
async fn they_are_listed_by_namespace_and_selector() {
    let items = [config_map("v1.12.0", "1.12=v1beta2"), config_map("v1.13.0", "1.13=v1beta2")];
    let body = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {}, "items": items});
    let server = Server::start("200 OK", &body.to_string());
    assert_eq!(list(&server).await.unwrap().versions(), ["v1.12.0", "v1.13.0"]);
    let request = server.request.recv().unwrap();
    let wanted = "GET /api/v1/namespaces/mine-system/configmaps?&labelSelector=provider-components%3Dmine ";
    assert!(request.starts_with(wanted), "{request}");

    let refusal =
        json!({"kind": "Status", "status": "Failure", "code": 403, "message": "no", "reason": "Forbidden"});
    let message = list(&Server::start("403 Forbidden", &refusal.to_string())).await.unwrap_err().to_string();
    assert!(
        message.contains("in namespace mine-system that match provider-components=mine cannot be listed"),
        "{message}"
    );
}
