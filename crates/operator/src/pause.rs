//! Paused providers: their Deployments are scaled to 0, and stay there whatever is applied.

use std::collections::HashMap;

use capstan_api::operator::annotation::ORIGINAL_REPLICAS;
use capstan_management::ObjectRef;
use serde_json::{Value, json};

/// The original replicas of Deployments that are scaled to 0, by the Deployments' names.
pub type OriginalReplicas = HashMap<String, String>;

/// Makes the Deployments of a release stay at 0, with their original replicas: those that are noted already, else those of
/// the release.
pub fn keep_down(objects: &mut [Value], original: &OriginalReplicas) {
    for deployment in objects.iter_mut().filter(|it| is_deployment(it)) {
        let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
        let replicas = original.get(name).cloned().unwrap_or_else(|| match &deployment["spec"]["replicas"] {
            Value::Number(number) => number.to_string(),
            _ => "1".to_owned(),
        });
        deployment["metadata"]["annotations"][ORIGINAL_REPLICAS] = json!(replicas);
        deployment["spec"]["replicas"] = json!(0);
    }
}

/// The names of the Deployments among objects.
pub fn deployments(objects: &[Value]) -> Vec<String> {
    objects.iter().filter(|it| is_deployment(it)).map(|it| ObjectRef::of(it).name).collect()
}

fn is_deployment(object: &Value) -> bool {
    object["kind"] == "Deployment" && object["apiVersion"] == "apps/v1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paused_deployment_stays_at_0_and_remembers_its_replicas() {
        let deployment = |name: &str, spec: Value| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec});
        let mut objects = vec![
            deployment("known", json!({"replicas": 1})),
            deployment("new", json!({"replicas": 2})),
            deployment("open", json!({})),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "known"}}),
        ];
        let service = objects[3].clone();
        keep_down(&mut objects, &[("known".to_owned(), "3".to_owned())].into());
        let found: Vec<_> = objects[..3]
            .iter()
            .map(|it| {
                (it["spec"]["replicas"].clone(), it["metadata"]["annotations"][ORIGINAL_REPLICAS].clone())
            })
            .collect();
        assert_eq!(found, [(json!(0), json!("3")), (json!(0), json!("2")), (json!(0), json!("1"))]);
        assert_eq!(objects[3], service);
        assert_eq!(deployments(&objects), ["known", "new", "open"]);
    }
}
