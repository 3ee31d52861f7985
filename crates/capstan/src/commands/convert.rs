//! `capstan convert`.

use std::{fmt, fs, io, path::Path};

use capstan_api::convert::{self, ConvertError, Converted};
use capstan_manifest::yaml::{self, Document};
use serde_json::Value;

use crate::{
    cli::ConvertArgs,
    error::CommandError,
    output,
    printer::{Output, Printer},
};

pub(crate) fn run(args: &ConvertArgs, printer: Printer) -> Result<(), CommandError> {
    let (name, text) = read_source(args.source.as_deref())?;
    let refused = |problem: String| {
        CommandError::plain(format!("cannot convert {name}: {problem}")).hint("nothing was written")
    };
    let documents = yaml::read(&text).map_err(|error| refused(error.to_string()))?;
    let locate = |document: usize, pointer: &str| yaml::locate(&text, document, pointer);
    let conversion = convert_all(documents, locate).map_err(refused)?;
    for warning in &conversion.warnings {
        printer.warn(&format!("{name}: {warning}"));
    }
    let text = Output::Data(yaml::to_multi_document(&conversion.documents));
    output::write(&text, args.output.as_deref(), printer)?;
    printer.done(&format!(
        "Converted {} resource(s) to {}. {} resource(s) passed through unchanged.",
        conversion.changed,
        args.to_version,
        conversion.documents.len() - conversion.changed
    ));
    Ok(())
}

/// What a file is called, and what it holds.
fn read_source(source: Option<&Path>) -> Result<(String, String), CommandError> {
    let (name, text) = match source {
        Some(file) if file.as_os_str() != "-" => (file.display().to_string(), fs::read_to_string(file)),
        _ => ("standard input".to_owned(), io::read_to_string(io::stdin())),
    };
    let text = text.map_err(|error| CommandError::new(format!("cannot read {name}"), error))?;
    Ok((name, text))
}

/// All documents in their order, converted where they are concerned.
#[derive(Debug, Default, PartialEq)]
struct Conversion {
    documents: Vec<Value>,
    changed: usize,
    warnings: Vec<String>,
}

/// A document, for people.
struct Place {
    number: usize,
    line: usize,
    object: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "document {}, which begins in line {}{}", self.number, self.line, self.object)
    }
}

/// Converts documents; `locate` knows where in the text a value of a document stands.
fn convert_all<P: fmt::Display>(
    documents: Vec<Document>,
    locate: impl Fn(usize, &str) -> Option<P>,
) -> Result<Conversion, String> {
    let mut conversion = Conversion::default();
    for (index, Document { value, line }) in documents.into_iter().enumerate() {
        let place = Place { number: index + 1, line, object: describe(&value) };
        match convert::to_v1beta2(value).map_err(|error| explain(&place, &error, |at| locate(index, at)))? {
            Converted::Changed { object, lost, elsewhere } => {
                conversion.warnings.extend(elsewhere.iter().map(|it| {
                    let advice = if it.is_certain {
                        "move the object that it names there".to_owned()
                    } else {
                        format!("apply this object in namespace {}", it.namespace)
                    };
                    format!(
                        "{place}: {} is left out: a v1beta2 reference is always in the namespace of its own object, so \
                         {advice}",
                        it.path
                    )
                }));
                if !lost.is_empty() {
                    let lost = lost.join(", ");
                    conversion
                        .warnings
                        .push(format!("{place}: left out, because v1beta2 does not have it: {lost}"));
                }
                conversion.changed += 1;
                conversion.documents.push(object);
            }
            Converted::Unchanged(object) => {
                conversion.warnings.extend(oversight(&object).map(|text| format!("{place}: {text}")));
                conversion.documents.push(object);
            }
        }
    }
    Ok(conversion)
}

/// What is wrong, and where.
fn explain<P: fmt::Display>(
    place: &Place,
    error: &ConvertError,
    locate: impl Fn(&str) -> Option<P>,
) -> String {
    let found = match error {
        ConvertError::InvalidValue { path, .. } => locate(&pointer(path)),
        ConvertError::NotAnObject | ConvertError::Missing(_) => None,
    };
    match found {
        Some(found) => format!("{place}: {error} ({found})"),
        None => format!("{place}: {error}"),
    }
}

/// A path such as `spec.items[1].name` as a JSON pointer.
fn pointer(path: &str) -> String {
    path.split(['.', '[']).fold(String::new(), |pointer, step| {
        format!("{pointer}/{}", step.trim_end_matches(']').replace('~', "~0").replace('/', "~1"))
    })
}

/// What was passed through and perhaps should not have been.
fn oversight(object: &Value) -> Option<String> {
    if convert::is_v1beta1(object) {
        return Some("passed through, because v1beta2 has no such kind".to_owned());
    }
    let items = object.get("items").and_then(Value::as_array).into_iter().flatten();
    let old = items.filter(|item| convert::is_v1beta1(item)).count();
    (old > 0).then(|| {
        format!("passed through with {old} object(s) of v1beta1: only documents are converted, not the items of a List")
    })
}

/// Kind and name of an object, as far as it says them.
fn describe(object: &Value) -> String {
    let said = |pointer| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let Some(kind) = said("/kind") else { return String::new() };
    match (said("/metadata/namespace"), said("/metadata/name").or_else(|| said("/metadata/generateName"))) {
        (Some(namespace), Some(name)) => format!(" ({kind} {namespace}/{name})"),
        (None, Some(name)) => format!(" ({kind} {name})"),
        (_, None) => format!(" ({kind})"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(line: usize, value: Value) -> Document {
        Document { value, line }
    }

    fn convert_all(documents: Vec<Document>) -> Result<Conversion, String> {
        super::convert_all(documents, |_, _| None::<&str>)
    }

    fn of_core(kind: &str, name: &str) -> Value {
        json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": name}})
    }

    #[test]
    fn documents_keep_their_order_and_are_counted() {
        let other = json!({"apiVersion": "v1", "kind": "Secret", "data": {}});
        let conversion =
            convert_all(vec![document(1, other.clone()), document(5, of_core("Machine", "m"))]).unwrap();
        assert_eq!(conversion.changed, 1);
        assert_eq!(conversion.documents[0], other);
        assert_eq!(conversion.documents[1]["apiVersion"], "cluster.x-k8s.io/v1beta2");
        assert!(conversion.warnings.is_empty());
    }

    #[test]
    fn whoever_loses_something_is_told() {
        let mut deployment = of_core("MachineDeployment", "md");
        deployment["metadata"]["namespace"] = json!("ns");
        deployment["spec"] = json!({"progressDeadlineSeconds": 600});
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [of_core("Machine", "m"), {}]});
        let documents =
            vec![document(1, deployment), document(9, of_core("Flotilla", "f")), document(12, list)];
        assert_eq!(
            convert_all(documents).unwrap().warnings,
            [
                "document 1, which begins in line 1 (MachineDeployment ns/md): left out, because v1beta2 does not have it: \
                 spec.progressDeadlineSeconds",
                "document 2, which begins in line 9 (Flotilla f): passed through, because v1beta2 has no such kind",
                "document 3, which begins in line 12 (List): passed through with 1 object(s) of v1beta1: only documents are \
                 converted, not the items of a List",
            ]
        );
    }

    #[test]
    fn references_into_another_namespace_are_warned_about() {
        let cluster = |own: &str, namespace: &str| {
            let mut cluster = of_core("Cluster", "c");
            cluster["metadata"]["namespace"] = json!(own);
            cluster["spec"] = json!({"infrastructureRef": {
                "apiVersion": "g.io/v1", "kind": "K", "name": "n", "namespace": namespace,
            }});
            cluster
        };
        for (own, namespace, advice) in [
            ("ns", "ns", None),
            ("ns", "", None),
            ("", "", None),
            ("ns", "other", Some(("(Cluster ns/c)", "move the object that it names there"))),
            ("", "other", Some(("(Cluster c)", "apply this object in namespace other"))),
        ] {
            let conversion = convert_all(vec![document(1, cluster(own, namespace))]).unwrap();
            let warning = advice.map(|(object, advice)| {
                format!(
                    "document 1, which begins in line 1 {object}: spec.infrastructureRef.namespace is left out: \
                     a v1beta2 reference is always in the namespace of its own object, so {advice}"
                )
            });
            assert_eq!(conversion.warnings, Vec::from_iter(warning), "{own:?}, {namespace:?}");
            assert_eq!(conversion.changed, 1);
        }
    }

    #[test]
    fn a_cluster_gets_the_spec_that_v1beta2_requires() {
        let conversion = convert_all(vec![document(1, of_core("Cluster", "c"))]).unwrap();
        assert_eq!(conversion.documents[0]["spec"], json!({}));
    }

    #[test]
    fn errors_name_the_document() {
        let mut machine = of_core("Machine", "m");
        machine["spec"] = json!({"nodeDrainTimeout": "soon"});
        let documents = vec![document(1, of_core("Machine", "a")), document(7, machine)];
        assert_eq!(
            convert_all(documents).unwrap_err(),
            r#"document 2, which begins in line 7 (Machine m): spec.nodeDrainTimeout: "soon" is not a duration such as 1h30m"#
        );
        assert_eq!(
            convert_all(vec![document(3, json!({"kind": "Machine"}))]).unwrap_err(),
            "document 1, which begins in line 3 (Machine): it has no apiVersion"
        );
    }

    #[test]
    fn errors_name_the_place_of_the_value() {
        let text = "apiVersion: v1\nkind: A\n---\napiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nspec:\n  topology:\n    \
                    variables:\n    - name: a\n    - name: 1\n";
        let documents = yaml::read(text).unwrap();
        let error =
            super::convert_all(documents, |document, at| yaml::locate(text, document, at)).unwrap_err();
        assert_eq!(
            error,
            "document 2, which begins in line 4 (Cluster): spec.topology.variables[1].name: 1 is not a text; does it lack \
             quotes? (line 10, column 13)"
        );
    }
}
