//! The text of a file: its variables, its objects, and the way from an object back to a line.

use capstan_manifest::{
    self as manifest,
    envsubst::Template,
    yaml::{self, Document},
};
use serde_json::Value;

use super::{
    Given, Judged, Spot, broken, not_checked,
    object::Object,
    variables::{Filled, Use, fill, place_of, uses},
};
use crate::{
    report::Place,
    rule::Rule,
    rules::{R1, V1},
};

/// A file that could be read.
#[derive(Debug)]
pub(super) struct Text<'a> {
    pub(super) given: &'a Given,
    pub(super) uses: Vec<Use>,
    pub(super) documents: Vec<Document>,
    /// The names of variables that are to be set, because they have no default.
    pub(super) required: Vec<String>,
    filled: Filled,
}

/// A file that could not be read, by the rule that it breaks.
#[derive(Clone, Debug)]
pub(super) struct Unreadable {
    rule: &'static Rule,
    place: Place,
    seen: String,
    repair: String,
}

impl<'a> Text<'a> {
    /// Reads a file. `fixed` are variables whose defaults do not count.
    pub(super) fn read(given: &'a Given, fixed: &[&str]) -> Result<Self, Unreadable> {
        let source = given.file.text.as_str();
        let template = Template::parse(source).map_err(|error| Unreadable {
            rule: &V1,
            place: place_in(&given.file.name, error.place),
            seen: format!("{}: {}", error.expression, error.problem),
            repair: error.correction().unwrap_or_else(|| "write ${VAR} or ${VAR:=default}".to_owned()),
        })?;
        let uses = uses(source);
        let (filled, documents) = read_filled(given, &uses, fixed)?;
        let required = template.variables().values().filter(|it| it.is_required());
        Ok(Self { given, required: required.map(|it| it.name.clone()).collect(), uses, documents, filled })
    }

    /// The documents that are objects.
    pub(super) fn objects(&self) -> Vec<Object<'_>> {
        let documents = self.documents.iter().enumerate();
        documents
            .filter(|(_, it)| it.value.is_object())
            .map(|(document, it)| Object { document, value: &it.value })
            .collect()
    }

    /// The objects of a kind.
    pub(super) fn of_kind(&self, kind: &str) -> Vec<Object<'_>> {
        self.objects().into_iter().filter(|it| it.kind() == kind).collect()
    }

    /// What the file holds, in a line.
    pub(super) fn note(&self) -> String {
        let objects = self.objects().len();
        let set = match self.required.as_slice() {
            [] => "no variable has to be set".to_owned(),
            [one] => format!("one variable has to be set: {one}"),
            many => format!("{} variables have to be set: {}", many.len(), many.join(", ")),
        };
        format!(
            "{}: {objects} {}, {set}",
            self.given.file.name,
            if objects == 1 { "object" } else { "objects" }
        )
    }

    /// The line and column of a spot.
    pub(super) fn place(&self, spot: &Spot) -> Option<Place> {
        let file = &self.given.file;
        match spot {
            Spot::File => Some(place_in(&file.name, manifest::Place { line: 1, column: 1 })),
            Spot::Place(place) => Some(place.clone()),
            Spot::Offset(offset) => Some(place_in(&file.name, place_of(&file.text, *offset))),
            Spot::Object { document, pointer } => {
                let begins = self.documents.get(*document)?.line;
                let place = locate(&self.filled.text, begins, pointer);
                Some(place_in(&file.name, self.filled.source_place(&file.text, place)))
            }
            Spot::Metadata(pointer) => {
                let metadata = self.given.folder.as_ref()?.metadata.as_ref()?;
                Some(place_in(&metadata.name, locate(&metadata.text, 1, pointer)))
            }
        }
    }
}

/// Where in the document that begins in a line a value is, or what would hold it if it were there. A document that is a
/// block of text cannot be read from its first line on: that line is its place.
fn locate(text: &str, begins: usize, pointer: &str) -> manifest::Place {
    // What comes before need not be read again: files of CRDs are long.
    let before: usize = text.split_inclusive('\n').take(begins.saturating_sub(1)).map(str::len).sum();
    let text = text.get(before..).unwrap_or_default();
    let mut holders = std::iter::successors(Some(pointer), |it| Some(it.rsplit_once('/')?.0));
    let place = holders.find_map(|it| yaml::locate(text, 0, it));
    let place = place.unwrap_or(manifest::Place { line: 1, column: 1 });
    manifest::Place { line: place.line + begins.saturating_sub(1), ..place }
}

pub(super) fn place_in(file: &str, place: manifest::Place) -> Place {
    Place { file: file.to_owned(), line: place.line, column: place.column }
}

fn read_filled(given: &Given, uses: &[Use], fixed: &[&str]) -> Result<(Filled, Vec<Document>), Unreadable> {
    let source = given.file.text.as_str();
    let filled = fill(source, uses, fixed, false);
    let error = match yaml::read(&filled.text) {
        Ok(documents) => return Ok((filled, documents)),
        Err(error) => error,
    };
    // A variable that has a line for itself can stand for any number of lines: also for none.
    let without = fill(source, uses, fixed, true);
    match yaml::read(&without.text) {
        Ok(documents) => Ok((without, documents)),
        Err(_) => Err(Unreadable {
            rule: &R1,
            place: place_in(&given.file.name, filled.source_place(source, error.place())),
            seen: format!("the file is not YAML: {}", error.problem()),
            repair:
                "make it YAML, with variables where a value can be; templates of charts are not rendered here"
                    .to_owned(),
        }),
    }
}

impl Unreadable {
    /// The rule that is broken; no other can be checked.
    pub(super) fn judge(self, rules: &[&'static Rule]) -> (Vec<Judged>, Option<Place>) {
        let why = format!("the file cannot be read: see {}", self.rule.id);
        let others = rules.iter().filter(|it| it.id != self.rule.id).map(|it| not_checked(it, why.clone()));
        let mut judged: Vec<_> = others.collect();
        judged.push(broken(self.rule, Spot::File, self.seen, self.repair));
        (judged, Some(self.place))
    }
}

/// Whether a text is anywhere in a value, in a key or in a string.
pub(super) fn mentions(value: &Value, text: &str) -> bool {
    match value {
        Value::String(it) => it.contains(text),
        Value::Array(list) => list.iter().any(|it| mentions(it, text)),
        Value::Object(map) => map.iter().any(|(name, it)| name.contains(text) || mentions(it, text)),
        _ => false,
    }
}
