//! Releases in ConfigMaps of a management cluster.

use capstan_api::operator::{FetchConfiguration, annotation::PART, reason};
use capstan_repository::VERSION_LABEL;
use capstan_testkit::{fakes::FakeServer, shared_plane};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::world::{Wanted, fetcher, metadata};

const NAMESPACE: &str = "awesome-system";

async fn apply(client: &Client, map: Value) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let name = map["metadata"]["name"].as_str().unwrap().to_owned();
    maps.patch(&name, &PatchParams::apply("author").force(), &Patch::Apply(map)).await.unwrap();
}

fn map(name: &str, labels: &Value, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": data})
}

fn selecting(selector: Value) -> Wanted {
    let selector = Some(serde_json::from_value(selector).unwrap());
    Wanted { config: Some(FetchConfiguration { url: None, selector }), ..Wanted::at("") }
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_are_found_among_the_config_maps_of_the_provider() {
    let client = shared_plane().await.client().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let server = FakeServer::start().await;
    let fetcher = fetcher(client.clone(), &server, |_, _| {});

    let text = metadata(&["0.4=v1beta2", "0.5=v1beta2"]);
    let azure = || json!({"provider-components": "azure"});
    let release = |components: &str| json!({"components": components, "metadata": text});
    // As in the specification's example of an air-gapped environment.
    let wanted = selecting(json!({"matchLabels": {"provider-components": "azure"}}));
    let error = fetcher.fetch(&wanted.request()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "there are no ConfigMaps in namespace awesome-system that match provider-components=azure"
    );
    assert_eq!((error.reason(), error.is_transient()), (reason::COMPONENTS_FETCH, false));
    for version in ["v0.4.8", "v0.4.9", "v0.5.0-rc.0"] {
        apply(&client, map(version, &azure(), &release(version))).await;
    }
    apply(&client, map("v0.4.10", &json!({"provider-components": "aws"}), &release("of another provider")))
        .await;
    assert_eq!(fetcher.latest(&wanted.request()).await.unwrap(), "v0.4.9");
    let found = fetcher.fetch(&wanted.clone().version("v0.4.8").request()).await.unwrap();
    assert_eq!((found.components.as_str(), found.metadata.as_str()), ("v0.4.8", text.as_str()));
    assert_eq!(found.origin, "the components in ConfigMap awesome-system/v0.4.8");

    // A version without a v is written with it.
    let labels = json!({"provider-components": "azure", VERSION_LABEL: "0.4.11"});
    apply(&client, map("any-name", &labels, &release("0.4.11"))).await;
    assert_eq!(fetcher.latest(&wanted.request()).await.unwrap(), "v0.4.11");
    assert_eq!(
        fetcher.fetch(&wanted.clone().version("v0.4.11").request()).await.unwrap().components,
        "0.4.11"
    );

    // A release in parts, found by expressions.
    for (name, place, data) in [
        ("part-b", "2/2", json!({"components": "two"})),
        ("part-a", "1/2", json!({"components": "one ", "metadata": text})),
    ] {
        let mut part = map(name, &json!({"in-parts": "", VERSION_LABEL: "v0.5.1"}), &data);
        part["metadata"]["annotations"] = json!({PART: place});
        apply(&client, part).await;
        if name == "part-b" {
            let wanted = selecting(json!({"matchExpressions": [{"key": "in-parts", "operator": "Exists"}]}));
            let error = fetcher.fetch(&wanted.request()).await.unwrap_err().to_string();
            assert!(
                error.contains("awesome-system/part-b") && error.contains("part 1 of 2 is missing"),
                "{error}"
            );
        }
    }
    let expressions = json!([
        {"key": "provider-components", "operator": "NotIn", "values": ["azure", "aws"]},
        {"key": "in-parts", "operator": "Exists"},
    ]);
    let in_parts = selecting(json!({"matchExpressions": expressions}));
    let found = fetcher.fetch(&in_parts.request()).await.unwrap();
    assert_eq!((found.version.as_str(), found.components.as_str()), ("v0.5.1", "one two"));

    what_is_wrong_is_told(&client, &fetcher, &wanted).await;
    assert!(server.requests().is_empty(), "nothing of it is on a network");
}

async fn what_is_wrong_is_told(client: &Client, fetcher: &capstan_operator::fetch::Fetcher, wanted: &Wanted) {
    let azure = |version: &str| json!({"provider-components": "azure", VERSION_LABEL: version});
    apply(client, map("without", &azure("v0.5.2"), &json!({"components": "text"}))).await;
    let error = fetcher.fetch(&wanted.clone().version("v0.5.2").request()).await.unwrap_err();
    for part in ["there is v0.4.8, v0.4.9", "awesome-system/without has no data.metadata", "set spec.version"]
    {
        assert!(error.to_string().contains(part), "{error}");
    }
    // It is in nobody's way.
    fetcher.fetch(&wanted.clone().version("v0.4.9").request()).await.unwrap();

    let text = metadata(&["0.4=v1beta2"]);
    apply(client, map("copy", &azure("v0.4.9"), &json!({"components": "text", "metadata": text}))).await;
    let error = fetcher.fetch(&wanted.clone().version("v0.4.9").request()).await.unwrap_err();
    for part in ["awesome-system/copy", "awesome-system/v0.4.9", "both hold version"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!((error.reason(), error.is_transient()), (reason::COMPONENTS_FETCH, false));
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    maps.delete("copy", &DeleteParams::default()).await.unwrap();
    fetcher.fetch(&wanted.clone().version("v0.4.9").request()).await.unwrap();

    let wrong = selecting(json!({"matchExpressions": [{"key": "a", "operator": "="}]}));
    let error = fetcher.fetch(&wrong.request()).await.unwrap_err();
    assert!(error.to_string().contains("none of In, NotIn, Exists and DoesNotExist"), "{error}");
    assert_eq!(error.reason(), reason::FETCH_CONFIG_INVALID);
    let wrong = selecting(json!({"matchLabels": {"not a label": "a"}}));
    let error = fetcher.fetch(&wrong.request()).await.unwrap_err();
    assert_eq!((error.reason(), error.is_transient()), (reason::FETCH_CONFIG_INVALID, false), "{error}");
}
