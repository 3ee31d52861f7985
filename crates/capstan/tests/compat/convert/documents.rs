//! Documents of v1beta1 made from upstream's CRDs: one with every field, and for each field one with nothing else.

use std::{fs, path::Path};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Map, Value, json};

/// A document, and what it is for.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) document: Value,
}

/// What a document is to have.
#[derive(Clone, Copy)]
enum Want<'a> {
    Everything,
    /// What the schema requires.
    Required,
    /// That, and the field at a path.
    Field(&'a [String], Filled),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Filled {
    /// With a value.
    Full,
    /// With the zero of its type.
    Empty,
}

/// The cases of all kinds in upstream's core group.
pub(super) fn generate(module: &Path) -> Vec<Case> {
    let mut files: Vec<_> = fs::read_dir(module.join("core/config/crd/bases"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("cluster.x-k8s.io_"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 8, "{files:?}");
    files.iter().flat_map(|file| cases(&fs::read_to_string(file).unwrap())).collect()
}

fn cases(definition: &str) -> Vec<Case> {
    let crd: CustomResourceDefinition = serde_saphyr::from_str(definition).unwrap();
    let kind = &crd.spec.names.kind;
    let version = crd.spec.versions.iter().find(|version| version.name == "v1beta1").unwrap();
    let schema = version.schema.clone().unwrap().open_api_v3_schema.unwrap();
    let mut paths = Vec::new();
    collect_paths(&schema, &mut Vec::new(), &mut paths);
    let case = |name: String, want| {
        let mut document = build(&schema, "", want);
        document["apiVersion"] = json!("cluster.x-k8s.io/v1beta1");
        document["kind"] = json!(kind);
        document["metadata"] = json!({"name": "x", "namespace": "default"});
        Case { name: format!("{kind} with {name}"), document }
    };
    let mut cases =
        vec![case("everything".to_owned(), Want::Everything), case("nothing".to_owned(), Want::Required)];
    for path in &paths {
        for filled in [Filled::Full, Filled::Empty] {
            cases.push(case(format!("{filled:?} {}", path.join(".")), Want::Field(path, filled)));
        }
    }
    cases
}

/// The paths of all fields. Elements of lists and members of maps are no steps of their own.
fn collect_paths(schema: &JSONSchemaProps, path: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    for (name, property) in schema.properties.iter().flatten() {
        if path.is_empty() && !matches!(name.as_str(), "spec" | "status") {
            continue;
        }
        path.push(name.clone());
        paths.push(path.clone());
        collect_paths(inner(property).unwrap_or(property), path, paths);
        path.pop();
    }
}

/// The schema of a list's elements or of a map's members.
fn inner(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match (&schema.items, &schema.additional_properties) {
        (Some(JSONSchemaPropsOrArray::Schema(schema)), _)
        | (_, Some(JSONSchemaPropsOrBool::Schema(schema))) => Some(schema),
        _ => None,
    }
}

fn build(schema: &JSONSchemaProps, name: &str, want: Want<'_>) -> Value {
    if let Want::Field([], Filled::Empty) = want {
        return zero(schema, name);
    }
    let want = if let Want::Field([], _) = want { Want::Everything } else { want };
    if schema.x_kubernetes_int_or_string == Some(true) {
        return json!("30%");
    }
    match schema.type_.as_deref() {
        Some("array") => match inner(schema) {
            Some(element) => json!([build(element, name, want)]),
            None => json!([]),
        },
        Some("object") if schema.properties.is_some() => build_object(schema, want),
        Some("object") => match inner(schema) {
            Some(member) => json!({"key": build(member, name, want)}),
            None => json!({}),
        },
        Some("string") => text(schema, name).into(),
        Some("integer") => 3.into(),
        Some("boolean") => true.into(),
        _ => anything(name),
    }
}

fn build_object(schema: &JSONSchemaProps, want: Want<'_>) -> Value {
    let mut object = Map::new();
    for (name, property) in schema.properties.iter().flatten() {
        let required = schema.required.iter().flatten().any(|required| required == name);
        let want = match want {
            Want::Field([first, rest @ ..], filled) if first == name => Want::Field(rest, filled),
            Want::Everything => Want::Everything,
            _ if required => Want::Required,
            _ => continue,
        };
        object.insert(name.clone(), build(property, name, want));
    }
    object.into()
}

fn text(schema: &JSONSchemaProps, name: &str) -> String {
    if schema.format.as_deref() == Some("date-time") {
        return "2025-03-04T05:06:07+02:00".to_owned();
    }
    let first = schema.enum_.iter().flatten().filter_map(|it| it.0.as_str()).find(|it| !it.is_empty());
    if let Some(first) = first {
        return first.to_owned();
    }
    match name {
        "apiVersion" => "example.cluster.x-k8s.io/v1beta1".to_owned(),
        name if name.ends_with("Timeout") || name == "timeout" => "1h2m3.5s".to_owned(),
        name => format!("a-{name}"),
    }
}

fn zero(schema: &JSONSchemaProps, name: &str) -> Value {
    match schema.type_.as_deref() {
        Some("array") => json!([]),
        Some("object") => json!({}),
        Some("string") if schema.format.as_deref() == Some("date-time") => Value::Null,
        Some("string") if name.ends_with("Timeout") || name == "timeout" => json!("0s"),
        Some("string") => json!(""),
        Some("boolean") => json!(false),
        Some("integer") => json!(0),
        _ if schema.x_kubernetes_int_or_string == Some(true) => json!(0),
        _ => Value::Null,
    }
}

/// Values that the CRDs leave open: those of variables, and schemas within schemas.
fn anything(name: &str) -> Value {
    let schema = json!({
        "type": "object",
        "uniqueItems": true,
        "properties": {"a": {"type": "integer", "maximum": 7, "exclusiveMaximum": true, "x-metadata": {"labels": {"a": "b"}}}},
        "required": ["a"],
        "x-kubernetes-validations": [{"rule": "self.a > 1", "fieldPath": ".a"}],
    });
    match name {
        "properties" => json!({"key": schema}),
        "additionalProperties" | "items" | "not" => schema,
        "allOf" | "oneOf" | "anyOf" => json!([schema, {"format": "date"}]),
        _ => json!({"text": "yes", "list": [1, null, 2.5], "empty": {}, "none": null}),
    }
}
