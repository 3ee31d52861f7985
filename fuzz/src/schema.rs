//! Clusters as their schemas have them: what fits one, and how to add to an object something that does.

use std::{collections::BTreeSet, sync::LazyLock};

use capstan_api::{cluster, crd::Conversion};
use fastrand::Rng;
use serde_json::{Value, json};

use crate::json::{any, members};

/// The schemas of both versions of a Cluster.
pub struct Schemas {
    pub v1beta1: Value,
    pub v1beta2: Value,
    /// The names of all fields in either.
    pub names: Vec<String>,
}

pub static CLUSTER: LazyLock<Schemas> = LazyLock::new(|| {
    let crd = json!(cluster::crd(Conversion::Nobody));
    let schema = |name: &str| {
        let versions = crd["spec"]["versions"].as_array().expect("a CRD has versions");
        let version = versions.iter().find(|version| version["name"] == name).expect("it is one of them");
        version["schema"]["openAPIV3Schema"].clone()
    };
    let (v1beta1, v1beta2) = (schema("v1beta1"), schema("v1beta2"));
    let mut names = BTreeSet::from(
        ["finalizers", "labels", "annotations", "namespace", "deletionTimestamp"].map(str::to_owned),
    );
    collect(&v1beta1, &mut names);
    collect(&v1beta2, &mut names);
    Schemas { v1beta1, v1beta2, names: names.into_iter().collect() }
});

impl Schemas {
    /// The schema of the version that an object says it is of.
    pub fn of(&self, object: &Value) -> &Value {
        if object["apiVersion"] == "cluster.x-k8s.io/v1beta1" { &self.v1beta1 } else { &self.v1beta2 }
    }

    /// The schema of the other version.
    pub fn other(&self, object: &Value) -> &Value {
        if object["apiVersion"] == "cluster.x-k8s.io/v1beta1" { &self.v1beta2 } else { &self.v1beta1 }
    }
}

fn collect(schema: &Value, names: &mut BTreeSet<String>) {
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        names.insert(name.clone());
        collect(schema, names);
    }
    collect_from(&schema["items"], names);
    collect_from(&schema["additionalProperties"], names);
}

fn collect_from(schema: &Value, names: &mut BTreeSet<String>) {
    if schema.is_object() {
        collect(schema, names);
    }
}

/// Whether all values have the types that the schema gives them.
pub fn fits(value: &Value, schema: &Value) -> bool {
    match (schema["type"].as_str(), value) {
        (None, _)
        | (Some("string"), Value::String(_))
        | (Some("boolean"), Value::Bool(_))
        | (Some("integer"), Value::Number(_)) => true,
        (Some("object"), Value::Object(members)) => members.iter().all(|(name, member)| {
            let known = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
            !known.is_object() || fits(member, known)
        }),
        (Some("array"), Value::Array(items)) => items.iter().all(|item| fits(item, &schema["items"])),
        _ => false,
    }
}

/// Sets a field that the schema knows, mostly to what fits there.
pub fn grow(value: &mut Value, schema: &Value, rng: &mut Rng) {
    if rng.u8(..32) == 0 {
        *value = any(rng);
        return;
    }
    let values = schema["enum"].as_array().map_or(&[][..], Vec::as_slice);
    *value = match schema["type"].as_str() {
        Some("object") => {
            let properties = schema["properties"].as_object().filter(|properties| !properties.is_empty());
            if let Some((name, schema)) = properties.and_then(|it| it.iter().nth(rng.usize(..it.len()))) {
                grow(members(value).entry(name).or_insert(Value::Null), schema, rng);
            } else {
                let name = ["", "a", "b", "cluster.x-k8s.io/x"][rng.usize(..4)];
                grow(members(value).entry(name).or_insert(Value::Null), &schema["additionalProperties"], rng);
            }
            return;
        }
        Some("array") => {
            if let Value::Array(items) = value {
                let at = rng.usize(..=items.len());
                if at == items.len() {
                    items.push(Value::Null);
                }
                grow(&mut items[at], &schema["items"], rng);
                return;
            }
            json!([])
        }
        Some("boolean") => json!(rng.bool()),
        Some("integer") => json!(rng.i32(-2..100)),
        Some("string") if !values.is_empty() => values[rng.usize(..values.len())].clone(),
        Some("string") => loop {
            let text = any(rng);
            if text.is_string() {
                break text;
            }
        },
        _ => any(rng),
    };
}
