//! Clusters in the states of `describe`'s golden trees, on a real server.

#[allow(dead_code, reason = "not everybody needs all of it")]
#[path = "../../../inspect/tests/describe/objects.rs"]
pub(crate) mod objects;
#[allow(dead_code, reason = "not everybody needs all of it")]
#[path = "../../../inspect/tests/describe/server.rs"]
pub(crate) mod server;
#[allow(dead_code, reason = "not everybody needs all of it")]
#[path = "../../../inspect/tests/describe/states.rs"]
pub(crate) mod states;

use std::collections::BTreeMap;

use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

use self::states::State;

/// Where an object of a state is.
pub(crate) fn api(client: &Client, namespace: &str, object: &Value) -> Api<DynamicObject> {
    let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
    let kind = object["kind"].as_str().unwrap();
    let kind_of_group = GroupVersionKind::gvk(group, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&kind_of_group, &format!("{}s", kind.to_lowercase()));
    Api::namespaced_with(client.clone(), namespace, &resource)
}

/// Creates the objects of a state with what they report; those that are being deleted are deleted at the end.
pub(crate) async fn create(client: &Client, namespace: &str, state: &State) {
    let mut uids: BTreeMap<(String, String), String> = BTreeMap::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for wanted in &state.objects {
        let mut object = wanted.clone();
        let status = object.as_object_mut().unwrap().remove("status");
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.remove("deletionTimestamp");
        metadata.insert("namespace".to_owned(), json!(namespace));
        for owner in metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(uid) = uids.get(&(text(&owner["kind"]), text(&owner["name"]))) {
                owner["uid"] = json!(uid);
            }
        }
        let api = api(client, namespace, &object);
        let name = text(&object["metadata"]["name"]);
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let wrong = |error: kube::Error| format!("{}: {wanted}: {error}", state.name);
        let created = api.create(&PostParams::default(), &object).await.map_err(wrong).unwrap();
        uids.insert((text(&wanted["kind"]), name.clone()), created.metadata.uid.unwrap());
        if let Some(status) = status {
            let patch = Patch::Merge(json!({"status": status}));
            api.patch_status(&name, &PatchParams::default(), &patch).await.map_err(wrong).unwrap();
        }
    }
    for object in state.objects.iter().filter(|it| !it["metadata"]["deletionTimestamp"].is_null()) {
        let api = api(client, namespace, object);
        api.delete(&text(&object["metadata"]["name"]), &DeleteParams::default()).await.unwrap();
    }
}
