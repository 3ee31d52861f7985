//! The API examples of the specification, as they stand there.

use std::{collections::BTreeSet, fs, path::Path};

use capstan_api::{
    operator::{self, ProviderSpec},
    provider::ProviderType,
};
use serde_json::{Value, json};

/// All documents of all examples, each with its file's name.
fn documents() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/operator/examples");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut documents: Vec<_> = files
        .flat_map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let text = fs::read_to_string(&path).unwrap();
            let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            objects.into_iter().filter(|it| !it.is_null()).map(move |it| (name.clone(), it))
        })
        .collect();
    documents.sort_by(|(one, _), (other, _)| one.cmp(other));
    documents
}

/// The provider objects among them.
fn providers() -> Vec<(String, ProviderType, Value)> {
    let api_version = format!("{}/{}", operator::GROUP, operator::VERSION);
    documents()
        .into_iter()
        .filter(|(_, object)| object["apiVersion"] == api_version.as_str())
        .map(|(file, object)| {
            let kind = ProviderType::from_name(object["kind"].as_str().unwrap()).unwrap();
            (file, kind, object)
        })
        .collect()
}

#[test]
fn the_specifications_examples_are_all_here() {
    let found: Vec<_> = providers()
        .iter()
        .map(|(file, kind, object)| {
            let (metadata, spec) = (&object["metadata"], &object["spec"]);
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (
                file.clone(),
                *kind,
                text(&metadata["name"]),
                text(&metadata["namespace"]),
                text(&spec["version"]),
            )
        })
        .collect();
    let expected = [
        ("1-manager-flags.yaml", ProviderType::Infrastructure, "aws", "capa-system", "v0.6.0"),
        ("2-image.yaml", ProviderType::Infrastructure, "aws", "capa-system", "v0.6.0"),
        (
            "3-resources.yaml",
            ProviderType::ControlPlane,
            "kubeadm",
            "capi-kubeadm-control-plane-system",
            "v0.3.10",
        ),
        ("4-url.yaml", ProviderType::Infrastructure, "myazure", "capz-system", "v0.4.9"),
        ("5-known-name.yaml", ProviderType::Infrastructure, "vsphere", "capv-system", "v0.4.9"),
        ("air-gapped.yaml", ProviderType::Infrastructure, "azure", "capz-system", "v0.4.9"),
        ("every-field.yaml", ProviderType::Infrastructure, "aws", "capa-system", "v2.9.1"),
    ]
    .map(|(file, kind, name, namespace, version)| {
        (file.to_owned(), kind, name.to_owned(), namespace.to_owned(), version.to_owned())
    });
    assert_eq!(found, expected);
}

#[test]
fn decoding_keeps_every_field() {
    for (file, _, object) in providers() {
        let spec: ProviderSpec = serde_json::from_value(object["spec"].clone()).unwrap();
        assert_eq!(json!(spec), object["spec"], "{file}");
    }
}

#[test]
fn nothing_is_wrong_with_the_examples() {
    for (file, kind, object) in providers() {
        let spec = operator::read_spec(&object).unwrap();
        let name = object["metadata"]["name"].as_str().unwrap();
        assert_eq!(operator::problems(kind, name, &spec), [], "{file}");
        let verdict = operator::admission::judge(kind, &object, None);
        assert!(verdict.errors.is_empty() && verdict.patch.is_empty(), "{file}: {verdict:?}");
        let expected: &[&str] = match file.as_str() {
            "every-field.yaml" => &[
                "spec.manager.cacheNamespace is ignored: every provider watches all namespaces",
                "spec.manager.verbosity 2 is overridden: debug sets 5",
            ],
            _ => &[],
        };
        assert_eq!(verdict.warnings, expected, "{file}");
    }
}

#[test]
fn one_example_has_every_field_of_the_schema() {
    let (_, kind, mut object) =
        providers().into_iter().find(|(file, ..)| file == "every-field.yaml").unwrap();
    // The two do not go together.
    object["spec"]["fetchConfig"]["url"] = json!("https://example.com");
    let crd = json!(operator::crd(kind));
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut missing = BTreeSet::new();
    compare(schema, &object["spec"], "spec", &mut missing);
    assert_eq!(missing, BTreeSet::new());
}

/// Notes the properties of a schema that a value does not have. The items of a list share what they have.
fn compare(schema: &Value, value: &Value, path: &str, missing: &mut BTreeSet<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match &value[name] {
            Value::Null => drop(missing.insert(path)),
            Value::Array(items) => {
                let mut lacking = items.iter().map(|item| {
                    let mut lacking = BTreeSet::new();
                    compare(&property["items"], item, &path, &mut lacking);
                    lacking
                });
                let first = lacking.next().unwrap_or_default();
                missing.extend(lacking.fold(first, |common, one| &common & &one));
            }
            value => compare(property, value, &path, missing),
        }
    }
}
