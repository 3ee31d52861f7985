//! `capstan convert`.

use std::{
    fmt,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    process,
};

use capstan_api::convert::{self, Converted};
use capstan_manifest::yaml;
use serde_json::Value;

use self::stand_in::Document;
use crate::{cli::ConvertArgs, error::CommandError, printer::Printer};

pub(crate) fn run(args: &ConvertArgs, printer: Printer) -> Result<(), CommandError> {
    let (name, text) = read_source(args.source.as_deref())?;
    let documents = stand_in::read(&text)
        .map_err(|error| CommandError::plain(format!("cannot convert {name}: {error}")))?;
    let conversion = convert_all(documents)
        .map_err(|problem| CommandError::plain(format!("cannot convert {name}: {problem}")).hint(HINT))?;
    for warning in &conversion.warnings {
        printer.warn(&format!("{name}: {warning}"));
    }
    let output = yaml::to_multi_document(&conversion.documents);
    match args.output.as_deref().filter(|file| !file.as_os_str().is_empty()) {
        None => printer.data(&output)?,
        Some(file) => write_whole(file, &output)
            .map_err(|error| CommandError::new(format!("cannot write {}", file.display()), error))?,
    }
    printer.done(&format!(
        "Converted {} resource(s) to {}. {} resource(s) passed through unchanged.",
        conversion.changed,
        args.to_version,
        conversion.documents.len() - conversion.changed
    ));
    Ok(())
}

const HINT: &str = "nothing was written";

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

fn convert_all(documents: Vec<Document>) -> Result<Conversion, String> {
    let mut conversion = Conversion::default();
    for (index, Document { value, line }) in documents.into_iter().enumerate() {
        let place = Place { number: index + 1, line, object: describe(&value) };
        match convert::to_v1beta2(value).map_err(|error| format!("{place}: {error}"))? {
            Converted::Changed { object, lost } => {
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

/// For who may read a new file: it can hold what is nobody else's business.
const NEW_FILE_MODE: u32 = 0o600;

/// Writes a file so that at any moment there is the old one or the new one.
fn write_whole(file: &Path, text: &str) -> io::Result<()> {
    // A link keeps pointing to the file.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let existing = fs::metadata(&file).ok();
    if existing.as_ref().is_some_and(|existing| !existing.is_file()) {
        // A pipe or a terminal cannot be replaced.
        return OpenOptions::new().write(true).open(&file)?.write_all(text.as_bytes());
    }
    let mode = existing.map_or(NEW_FILE_MODE, |existing| existing.permissions().mode());
    let temporary = beside(&file);
    let new = OpenOptions::new().write(true).create_new(true).mode(NEW_FILE_MODE).open(&temporary)?;
    let written = fill(new, text, mode).and_then(|()| fs::rename(&temporary, &file));
    if written.is_err() {
        // What is left of it is of no use; that it failed is what matters.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn fill(mut new: File, text: &str, mode: u32) -> io::Result<()> {
    new.set_permissions(Permissions::from_mode(mode))?;
    new.write_all(text.as_bytes())?;
    new.sync_all()
}

/// A name in the same folder, so that the file can be renamed.
fn beside(file: &Path) -> PathBuf {
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    file.with_file_name(format!(".{name}.{}.tmp", process::id()))
}

/// Stands in for `capstan_manifest::yaml::read`.
mod stand_in {
    use serde_json::Value;

    #[derive(Debug)]
    pub(super) struct Document {
        pub(super) value: Value,
        pub(super) line: usize,
    }

    pub(super) fn read(text: &str) -> Result<Vec<Document>, String> {
        let mut parts = vec![(1, String::new())];
        for (index, line) in text.split_inclusive('\n').enumerate() {
            if line.starts_with("---") {
                parts.push((index + 2, String::new()));
            } else if let Some((_, body)) = parts.last_mut() {
                body.push_str(line);
            }
        }
        let mut documents = Vec::new();
        for (line, body) in parts {
            let value: Value = serde_saphyr::from_str(&body).map_err(|error| error.to_string())?;
            if !value.is_null() {
                documents.push(Document { value, line });
            }
        }
        Ok(documents)
    }
}

#[cfg(test)]
mod tests {
    use std::env;

    use serde_json::json;

    use super::*;

    fn document(line: usize, value: Value) -> Document {
        Document { value, line }
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
    fn a_file_is_written_whole_or_not_at_all() {
        let folder = env::temp_dir().join(format!("capstan-convert-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("out.yaml");
        let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;

        write_whole(&file, "a: 1\n").unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("a: 1\n", 0o600));

        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        let link = folder.join("link.yaml");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_whole(&link, "a: 2\n").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("a: 2\n", 0o644));

        // Somebody else is writing: neither file is touched.
        fs::write(beside(&fs::canonicalize(&file).unwrap()), "").unwrap();
        assert!(write_whole(&file, "a: 3\n").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "a: 2\n");
        assert!(beside(&fs::canonicalize(&file).unwrap()).exists());

        assert!(write_whole(&folder, "a: 4\n").is_err(), "a folder is no file");
        write_whole(Path::new("/dev/null"), "a: 5\n").unwrap();
        assert!(fs::metadata("/dev/null").is_ok_and(|it| !it.is_file()), "a device stays one");
        fs::remove_dir_all(&folder).unwrap();
    }
}
