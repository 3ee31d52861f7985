//! The Helm chart of the provider operator, made from the same objects as its manifest.
//!
//! Values stand in the objects as words of their own, and are replaced by expressions in the text. The chart uses few
//! forms of expressions, so that our own reader can render it where Helm is not installed.

#[cfg(test)]
mod render;

use capstan_components::{
    manager::IMAGE,
    operator::{NAME, Options, components},
};
use capstan_manifest::yaml;
use semver::Version;
use serde_json::{Value, json};

/// What stands for a value in the objects, and the expression that it becomes.
const EXPRESSIONS: [(&str, &str); 5] = [
    ("chart-value-namespace", "\"{{ .Release.Namespace }}\""),
    ("chart-value-image", "\"{{ .Values.image.repository }}:{{ .Values.image.tag }}\""),
    ("chart-value-replicas", "{{ .Values.replicas }}"),
    ("chart-value-args", "{{ toJson (concat .Values.args .Values.extraArgs) }}"),
    ("chart-value-resources", "{{ toJson .Values.resources }}"),
];

/// The files with their names in the chart's folder.
pub(crate) fn files(version: &Version) -> Vec<(String, String)> {
    let (crds, others): (Vec<Value>, Vec<Value>) =
        objects(version).into_iter().partition(|it| it["kind"] == "CustomResourceDefinition");
    let [repository, tag] = [IMAGE.to_owned(), format!("v{version}")];
    let container = &deployment(&others)["spec"]["template"]["spec"]["containers"][0];
    let values = format!(
        "# Values of the chart {NAME}.\n\n\
         # The image of the operator.\n{}\n\
         # Replicas; one of them leads.\n{}\n\
         # What the program is started with.\n{}\n\
         # Flags beside those, as in [--v=4, --migrate-inventory=false].\n{}\n\
         # Requests and limits of the container.\n{}",
        yaml::to_string(&json!({"image": {"repository": repository, "tag": tag}})),
        yaml::to_string(&json!({"replicas": 1})),
        yaml::to_string(&json!({"args": container["args"]})),
        yaml::to_string(&json!({"extraArgs": []})),
        yaml::to_string(&json!({"resources": container["resources"]})),
    );
    let chart = json!({
        "apiVersion": "v2",
        "name": NAME,
        "description": "The provider operator of Capstan: Cluster API providers as declarative objects",
        "type": "application",
        "version": version.to_string(),
        "appVersion": format!("v{version}"),
        "kubeVersion": ">=1.30.0-0",
    });
    vec![
        ("Chart.yaml".to_owned(), yaml::to_string(&chart)),
        ("values.yaml".to_owned(), values),
        ("templates/crds.yaml".to_owned(), template(&crds.into_iter().map(kept).collect::<Vec<_>>())),
        (
            "templates/operator.yaml".to_owned(),
            template(&others.into_iter().map(with_values).collect::<Vec<_>>()),
        ),
    ]
}

/// All objects but the Namespace, which is Helm's business.
fn objects(version: &Version) -> Vec<Value> {
    let mut objects = components(&Options {
        image: "chart-value-image",
        version: &format!("v{version}"),
        namespace: "chart-value-namespace",
        replicas: 1,
    });
    objects.retain(|it| it["kind"] != "Namespace");
    for object in &mut objects {
        object["metadata"]["labels"]["app.kubernetes.io/managed-by"] = json!("Helm");
    }
    objects
}

fn deployment(objects: &[Value]) -> &Value {
    objects.iter().find(|it| it["kind"] == "Deployment").unwrap_or(&Value::Null)
}

/// A CRD stays when the release is uninstalled: all provider objects would be deleted with it.
fn kept(mut crd: Value) -> Value {
    crd["metadata"]["annotations"]["helm.sh/resource-policy"] = json!("keep");
    crd
}

fn with_values(mut object: Value) -> Value {
    if object["kind"] == "Deployment" {
        object["spec"]["replicas"] = json!("chart-value-replicas");
        let container = &mut object["spec"]["template"]["spec"]["containers"][0];
        container["args"] = json!("chart-value-args");
        container["resources"] = json!("chart-value-resources");
    }
    object
}

fn template(objects: &[Value]) -> String {
    let text = yaml::to_multi_document(objects);
    EXPRESSIONS.iter().fold(text, |text, (word, expression)| text.replace(word, expression))
}
