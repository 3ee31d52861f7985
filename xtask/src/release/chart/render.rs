//! The chart renders to the objects of the manifest: by Helm where it is installed, and by a reader of its few expressions.

use std::{env, fs, path::Path, process::Command};

use capstan_components::operator::{NAMESPACE, Options, components};
use capstan_manifest::yaml;
use semver::Version;
use serde_json::{Value, json};

use super::files;

const VERSION: Version = Version::new(0, 1, 0);

/// What an installation sets.
fn values_of_a_user() -> Value {
    json!({
        "image": {"repository": "r.example.com/own", "tag": "v7"},
        "replicas": 3,
        "extraArgs": ["--v=4", "--migrate-inventory=false"],
        "resources": {"limits": {"memory": "1Gi"}},
    })
}

/// Renders a text: `{{ .Release.Namespace }}`, `{{ .Values.PATH }}`, `{{ toJson .Values.PATH }}` and
/// `{{ toJson (concat .Values.PATH .Values.PATH) }}`. Anything else is an error.
fn render(text: &str, values: &Value, namespace: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (expression, after) = after.split_once("}}").ok_or("an expression does not end")?;
        out.push_str(before);
        out.push_str(&evaluate(expression.trim(), values, namespace)?);
        rest = after;
    }
    Ok(out + rest)
}

fn evaluate(expression: &str, values: &Value, namespace: &str) -> Result<String, String> {
    let words: Vec<&str> = expression.split(' ').collect();
    match words[..] {
        [".Release.Namespace"] => Ok(namespace.to_owned()),
        ["toJson", "(concat", one, other] => {
            let other = other.strip_suffix(')').ok_or_else(|| unknown(expression))?;
            let lists = [look_up(one, values)?, look_up(other, values)?];
            let items = lists.iter().map(|it| it.as_array().ok_or_else(|| format!("{expression}: no list")));
            let items: Vec<_> = items.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
            Ok(json!(items).to_string())
        }
        ["toJson", path] => look_up(path, values).map(Value::to_string),
        [path] => match look_up(path, values)? {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            _ => Err(format!("{expression} is no text")),
        },
        _ => Err(unknown(expression)),
    }
}

fn look_up<'v>(path: &str, values: &'v Value) -> Result<&'v Value, String> {
    let path_in = path.strip_prefix(".Values.").ok_or_else(|| unknown(path))?;
    values.pointer(&format!("/{}", path_in.replace('.', "/"))).ok_or_else(|| format!("{path} is not set"))
}

fn unknown(expression: &str) -> String {
    format!("{expression:?} is no expression that the chart may use")
}

/// The same with other values over them, as Helm merges files: objects field by field.
fn merged(mut base: Value, over: &Value) -> Value {
    for (key, value) in over.as_object().unwrap() {
        base[key] = if value.is_object() { merged(base[key].clone(), value) } else { value.clone() };
    }
    base
}

fn documents(text: &str) -> Vec<Value> {
    let documents = text.split("\n---\n").map(|it| it.trim_start_matches("---\n"));
    documents.filter(|it| !it.trim().is_empty()).map(|it| serde_saphyr::from_str(it).unwrap()).collect()
}

/// The objects that our reader makes of the chart.
fn read(over: &Value, namespace: &str) -> Vec<Value> {
    let files = files(&VERSION);
    let (_, values) = files.iter().find(|it| it.0 == "values.yaml").unwrap();
    let values = merged(serde_saphyr::from_str(values).unwrap(), over);
    let templates = files.iter().filter(|it| it.0.starts_with("templates/"));
    templates.flat_map(|(_, text)| documents(&render(text, &values, namespace).unwrap())).collect()
}

/// By kind and name.
fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_key(|it| (it["kind"].to_string(), it["metadata"]["name"].to_string()));
    objects
}

/// The objects of the manifest as the chart has them.
fn expected(image: &str, namespace: &str, replicas: u32) -> Vec<Value> {
    let mut objects = components(&Options { image, version: "v0.1.0", namespace, replicas });
    objects.retain(|it| it["kind"] != "Namespace");
    for object in &mut objects {
        object["metadata"]["labels"]["app.kubernetes.io/managed-by"] = json!("Helm");
        if object["kind"] == "CustomResourceDefinition" {
            object["metadata"]["annotations"]["helm.sh/resource-policy"] = json!("keep");
        }
    }
    // Whole numbers are integers in YAML, whatever they were before.
    sorted(documents(&yaml::to_multi_document(&objects)))
}

fn expected_of_a_user() -> Vec<Value> {
    let mut objects = expected("r.example.com/own:v7", "mine", 3);
    let deployment = objects.iter_mut().find(|it| it["kind"] == "Deployment").unwrap();
    let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
    container["args"] =
        json!(["manager", "operator", "--leader-elect", "--v=4", "--migrate-inventory=false"]);
    container["resources"]["limits"] = json!({"memory": "1Gi"});
    objects
}

#[test]
fn the_chart_has_the_objects_of_the_manifest() {
    let image = "ghcr.io/capstan-io/capstan:v0.1.0";
    assert_eq!(sorted(read(&json!({}), NAMESPACE)), expected(image, NAMESPACE, 1));
    assert_eq!(sorted(read(&values_of_a_user(), "mine")), expected_of_a_user());
}

#[test]
fn other_expressions_are_refused() {
    let values = json!({"a": {"b": "c"}, "l": [1], "o": {}});
    let rendered = |text: &str| render(text, &values, "ns");
    assert_eq!(
        rendered("x: {{ .Values.a.b }}-{{ .Release.Namespace }} {{ toJson .Values.l }}").unwrap(),
        "x: c-ns [1]"
    );
    for text in [
        "{{ .Values.none }}",
        "{{ .Values.o }}",
        "{{ .Chart.Version }}",
        "{{ if .Values.a }}",
        "{{ .Values.a.b | quote }}",
        "{{ toJson (concat .Values.l .Values.a.b) }}",
        "{{ include \"x\" . }}",
        "{{ .Values.a.b",
    ] {
        assert!(rendered(text).is_err(), "{text}");
    }
}

/// Helm makes the same of it as our reader.
#[test]
fn helm_renders_the_same() {
    let Some(helm) = env::var_os("PATH")
        .and_then(|it| env::split_paths(&it).map(|it| it.join("helm")).find(|it| it.is_file()))
    else {
        println!("not checked: helm is not installed");
        return;
    };
    let folder = env::temp_dir().join(format!("capstan-chart-{}", std::process::id()));
    for (name, text) in files(&VERSION) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or_else(|| Path::new("/"))).unwrap();
        fs::write(path, text).unwrap();
    }
    let values = folder.join("own-values.yaml");
    fs::write(&values, values_of_a_user().to_string()).unwrap();
    let mut run = Command::new(helm);
    run.args(["template", "own", "--namespace", "mine", "--values"]).arg(values).arg(&folder);
    let run = run.output().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    // Helm names each object's template in a comment.
    let text: String = String::from_utf8(run.stdout).unwrap();
    let text: String = text
        .lines()
        .filter(|it| !it.starts_with("# Source: "))
        .fold(String::new(), |all, it| all + it + "\n");
    assert_eq!(sorted(documents(&text)), expected_of_a_user());
}
