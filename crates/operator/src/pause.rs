//! Paused providers: their Deployments are scaled to 0, and stay there whatever is applied.

use std::collections::{HashMap, HashSet};

use capstan_api::operator::annotation::ORIGINAL_REPLICAS;
use capstan_management::ObjectRef;
use serde_json::{Value, json};

use crate::snapshot::Snapshot;

/// The Deployments of a provider of which at least one is scaled to 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paused {
    /// Those that are scaled to 0, with their original replicas.
    down: HashMap<String, String>,
    /// Those that run: they were scaled up again already.
    up: HashSet<String>,
}

impl Paused {
    /// The Deployments of a snapshot's provider; none if nothing of it is scaled to 0.
    pub fn of(snapshot: &Snapshot) -> Option<Self> {
        let mut found = Self::default();
        for deployment in snapshot.deployments_of(&snapshot.provider) {
            let name = deployment.name().to_owned();
            match deployment.original_replicas() {
                Some(replicas) => drop(found.down.insert(name, replicas.to_owned())),
                None => drop(found.up.insert(name)),
            }
        }
        let is_down = !found.down.is_empty() || (found.up.is_empty() && snapshot.provider.is_scaled_down());
        is_down.then_some(found)
    }

    /// Makes the Deployments of a release stay at 0, with their original replicas: those that the spec asks for, else those
    /// that are noted, else those of the release. What runs is left alone; what is new comes at 0.
    pub fn keep_down(&self, objects: &mut [Value], from_spec: &HashMap<String, i64>) {
        for deployment in objects.iter_mut().filter(|it| is_deployment(it)) {
            let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
            if self.up.contains(name) {
                continue;
            }
            let wanted = from_spec.get(name).map(ToString::to_string);
            let original = wanted.or_else(|| self.down.get(name).cloned());
            let original = original.unwrap_or_else(|| match &deployment["spec"]["replicas"] {
                Value::Number(number) => number.to_string(),
                _ => "1".to_owned(),
            });
            deployment["metadata"]["annotations"][ORIGINAL_REPLICAS] = json!(original);
            deployment["spec"]["replicas"] = json!(0);
        }
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
            deployment("wanted", json!({"replicas": 4})),
            deployment("runs", json!({})),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "known"}}),
        ];
        let before = objects.clone();
        let text = |it: &str| it.to_owned();
        let paused = Paused {
            down: [(text("known"), text("3")), (text("wanted"), text("1"))].into(),
            up: [text("runs")].into(),
        };
        paused.keep_down(&mut objects, &[("wanted".to_owned(), 4)].into());
        let found: Vec<_> = objects[..4]
            .iter()
            .map(|it| {
                assert_eq!(it["spec"]["replicas"], 0);
                it["metadata"]["annotations"][ORIGINAL_REPLICAS].clone()
            })
            .collect();
        assert_eq!(found, [json!("3"), json!("2"), json!("1"), json!("4")]);
        // Scaled up before the status said so: it is not touched again.
        assert_eq!(objects[4..], before[4..]);
        assert_eq!(deployments(&objects), ["known", "new", "open", "wanted", "runs"]);
    }
}
