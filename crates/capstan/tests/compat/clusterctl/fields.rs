//! Every field of the kinds that are read as typed objects: alone, as null, and as the zero of its type.

use std::{fs, path::Path};

use serde_json::{Map, Value, json};

use super::{
    Batch,
    harness::{Case, Fate},
    repository::{CONFIG, METADATA, NAMESPACE, as_upstream, path},
};

const KINDS: &[&str] = &[
    "apps.v1.Deployment",
    "apps.v1.DaemonSet",
    "rbac.authorization.k8s.io.v1.ClusterRoleBinding",
    "rbac.authorization.k8s.io.v1.RoleBinding",
    "admissionregistration.k8s.io.v1.MutatingWebhookConfiguration",
    "admissionregistration.k8s.io.v1.ValidatingWebhookConfiguration",
    "admissionregistration.k8s.io.v1beta1.MutatingWebhookConfiguration",
    "admissionregistration.k8s.io.v1beta1.ValidatingWebhookConfiguration",
];

/// As many objects as make a file of a usual size.
const TOGETHER: usize = 250;

/// Cases from the examples of Kubernetes' module, which have all fields.
pub(crate) fn cases(upstream: &Path) -> Vec<Batch> {
    let module = fs::read_to_string(upstream.join("kubernetes-api.dir")).unwrap();
    KINDS.iter().flat_map(|kind| of_kind(Path::new(module.trim()), kind)).collect()
}

fn of_kind(module: &Path, kind: &str) -> Vec<Batch> {
    let text = fs::read_to_string(module.join(format!("testdata/HEAD/{kind}.json"))).unwrap();
    // The example's own word is no reference to an image.
    let example: Value = serde_json::from_str(&text.replace("imageValue", "x.io/a:1")).unwrap();
    let mut cases = vec![case(kind, "all", &example)];
    for place in places(&example).into_iter().filter(|place| !is_seen_elsewhere(kind, &place.join("."))) {
        let value = at(&example, &place);
        for (form, value) in [("alone", value.clone()), ("null", Value::Null), ("zero", zero(value))] {
            let mut object = only(&example, &place, value);
            let more = json!({"apiVersion": example["apiVersion"], "kind": example["kind"]});
            object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            cases.push(case(kind, &format!("{} {form}", place.join(".")), &object));
        }
    }
    cases.chunks(TOGETHER).map(|cases| Batch(cases.to_vec())).collect()
}

/// Types that other places have, too: each is looked at once.
fn is_seen_elsewhere(kind: &str, place: &str) -> bool {
    let twice = [
        "spec.template.metadata.",
        "spec.template.spec.initContainers.0.",
        "spec.template.spec.ephemeralContainers.0.",
        "spec.template.spec.containers.0.readinessProbe.",
        "spec.template.spec.containers.0.startupProbe.",
        "spec.template.spec.containers.0.lifecycle.postStart.",
    ];
    let of_deployments = ["spec.template.", "metadata."];
    twice.iter().any(|it| place.starts_with(it))
        || (!kind.ends_with("Deployment") && of_deployments.iter().any(|it| place.starts_with(it)))
}

fn case(kind: &str, name: &str, object: &Value) -> Case {
    let case = as_upstream(Case::new("fields", format!("{kind} {name}"), "generate provider -i mine"))
        .config(CONFIG);
    // Some fields are refused where they are null or empty.
    case.fate(Fate::Either)
        .file(path("v1.1.0", "metadata.yaml"), METADATA)
        .input_in(path("v1.1.0", "infrastructure-components.yaml"), NAMESPACE)
        .input(format!("{object}\n"))
}

/// All places in a value, but for those that say what the object is.
fn places(value: &Value) -> Vec<Vec<String>> {
    let below = |name: String, value: &Value| {
        let deeper =
            places(value).into_iter().map(|place| [vec![name.clone()], place].concat()).collect::<Vec<_>>();
        [vec![vec![name]], deeper].concat()
    };
    match value {
        Value::Object(fields) => {
            let fields =
                fields.iter().filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind" | "image"));
            fields.flat_map(|(name, value)| below(name.clone(), value)).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(index, item)| below(index.to_string(), item)).collect()
        }
        _ => Vec::new(),
    }
}

fn at<'a>(value: &'a Value, place: &[String]) -> &'a Value {
    let Some((first, rest)) = place.split_first() else { return value };
    match value {
        Value::Array(items) => at(&items[first.parse::<usize>().unwrap()], rest),
        value => at(&value[first], rest),
    }
}

/// Nothing but the value at a place, and the image that a container must have.
fn only(example: &Value, place: &[String], value: Value) -> Value {
    let Some((first, rest)) = place.split_first() else { return value };
    match example {
        Value::Array(items) => json!([only(&items[first.parse::<usize>().unwrap()], rest, value)]),
        example => {
            let mut fields = Map::from_iter([(first.clone(), only(&example[first], rest, value))]);
            if let Some(image) = example.get("image").filter(|image| image.is_string()) {
                fields.insert("image".to_owned(), image.clone());
            }
            Value::Object(fields)
        }
    }
}

fn zero(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Bool(_) => json!(false),
        Value::Number(_) => json!(0),
        Value::String(_) => json!(""),
        Value::Array(_) => json!([]),
        Value::Object(_) => json!({}),
    }
}
