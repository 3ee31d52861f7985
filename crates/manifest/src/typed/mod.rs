//! What Go makes of an object that passes through one of its structs.
//!
//! Upstream's tools read some kinds into typed structs and write them out again, which adds zero values of fields
//! without `omitempty`, drops empty values of fields with it, and writes quantities, times and bytes in one
//! canonical form. Users compare files byte by byte, so ours come out the same way.
//!
//! Some differences are meant: fields that the structs do not know are kept; numbers that do not fit and `items` that
//! are no schema are errors, where Go cuts off the one and drops the other; `items: []` is left out, where Go writes
//! null; and quantities beyond `E` keep their size.

mod quantity;
mod shape;
mod time;

use std::fmt;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Number, Value};

use shape::{Field, Shape, Table};

/// The kinds that have a struct: group, version and kind.
const KINDS: &[(&str, &str, &str)] = &[
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "DaemonSet"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "v1beta1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "v1beta1", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    ("apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition"),
];

/// A value that the struct of its kind has no place for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: expected {expected}, found {found}")]
pub struct Mismatch {
    /// Where it is, e.g. `spec.template.spec.containers[0].image`.
    pub path: String,
    /// What the field holds.
    pub expected: &'static str,
    /// What stands there.
    pub found: String,
}

impl Mismatch {
    /// A mismatch at a path, which may be completed by those who know what is above.
    pub(crate) fn at(path: &str, expected: &'static str, found: &Value) -> Self {
        Self { path: path.to_owned(), expected, found: describe(found) }
    }

    fn under(mut self, step: fmt::Arguments<'_>) -> Self {
        let separator = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{step}{separator}{}", self.path);
        self
    }
}

/// A struct of Go, by the kind that it is for.
#[derive(Clone, Copy, Debug)]
pub struct Struct(usize);

impl Struct {
    /// The struct of a kind, if upstream has one in use for it.
    pub fn of(group: &str, version: &str, kind: &str) -> Option<Self> {
        KINDS.contains(&(group, version, kind)).then_some(())?;
        let package = group.split('.').next()?;
        Table::get().index(&format!("{package}/{version}.{kind}")).map(Self)
    }

    /// The versions that a kind has a struct in, with their groups.
    pub fn versions_of(kind: &str) -> impl Iterator<Item = String> {
        KINDS.iter().filter(move |known| known.2 == kind).map(|known| format!("{}/{}", known.0, known.1))
    }

    /// Brings an object into the form that Go would give it.
    pub fn normalise(self, object: &mut Map<String, Value>) -> Result<(), Mismatch> {
        fit_fields(Table::get(), self.0, object)
    }
}

fn fit_fields(table: &Table, index: usize, object: &mut Map<String, Value>) -> Result<(), Mismatch> {
    let fields = table.fields(index);
    let mut outcome = Ok(());
    object.retain(|name, value| {
        if outcome.is_err() {
            return true;
        }
        let Some(field) = fields.named(name) else { return true };
        if let Err(mismatch) = fit(table, &field.shape, value) {
            outcome = Err(mismatch.under(format_args!("{name}")));
        }
        !is_left_out(field, value)
    });
    outcome?;
    for field in fields.always_written() {
        if !object.contains_key(field.name) {
            object.insert(field.name.to_owned(), zero(table, &field.shape)?);
        }
    }
    Ok(())
}

/// Brings a value into shape; null becomes the zero value.
fn fit(table: &Table, shape: &Shape, value: &mut Value) -> Result<(), Mismatch> {
    match (shape, &mut *value) {
        (_, Value::Null) => *value = zero(table, shape)?,
        (Shape::Json, _)
        | (Shape::Text | Shape::IntOrString, Value::String(_))
        | (Shape::Bool | Shape::OneOrBool(_), Value::Bool(_))
        | (Shape::Float, Value::Number(_)) => {}

        (Shape::Int32 | Shape::IntOrString, Value::Number(number)) => {
            let fitting = whole(number).filter(|whole| i32::try_from(*whole).is_ok());
            *value = Value::from(fitting.ok_or_else(|| mismatch(shape, value))?);
        }
        (Shape::Int64, Value::Number(number)) => {
            *value = Value::from(whole(number).ok_or_else(|| mismatch(shape, value))?);
        }
        (Shape::Quantity, Value::Number(number)) => {
            let text = whole(number).map_or_else(|| number.to_string(), |whole| whole.to_string());
            *value = Value::from(quantity::canonical(&text).ok_or_else(|| mismatch(shape, value))?);
        }
        (Shape::Quantity, Value::String(text)) => {
            *value = Value::from(quantity::canonical(text).ok_or_else(|| mismatch(shape, value))?);
        }
        (Shape::Time, Value::String(text)) => {
            *value = Value::from(time::in_utc(text).ok_or_else(|| mismatch(shape, value))?);
        }
        (Shape::Bytes, Value::String(text)) => {
            *value = Value::from(canonical_base64(text).ok_or_else(|| mismatch(shape, value))?);
        }

        (Shape::Pointer(inner), _) => fit(table, inner, value)?,
        (Shape::List(inner), Value::Array(items)) => fit_items(table, inner, items)?,
        (Shape::Map(inner), Value::Object(entries)) => {
            for (name, entry) in entries {
                fit(table, inner, entry).map_err(|it| it.under(format_args!("{name}")))?;
            }
        }
        (
            Shape::Struct(index)
            | Shape::OneOrBool(index)
            | Shape::OneOrMany(index)
            | Shape::OneOrNames(index),
            Value::Object(object),
        ) => fit_fields(table, *index, object)?,
        (Shape::OneOrMany(_) | Shape::OneOrNames(_), Value::Array(items)) if items.is_empty() => {
            *value = Value::Null;
        }
        (Shape::OneOrMany(index), Value::Array(items)) => fit_items(table, &Shape::Struct(*index), items)?,
        (Shape::OneOrNames(_), Value::Array(items)) => fit_items(table, &Shape::Text, items)?,

        _ => return Err(mismatch(shape, value)),
    }
    Ok(())
}

/// The value of a field that is not set.
fn zero(table: &Table, shape: &Shape) -> Result<Value, Mismatch> {
    Ok(match shape {
        Shape::Text => Value::from(""),
        Shape::Bool | Shape::OneOrBool(_) => Value::from(false),
        Shape::Int32 | Shape::Int64 | Shape::Float | Shape::IntOrString => Value::from(0),
        Shape::Quantity => Value::from("0"),
        Shape::Struct(index) => {
            let mut object = Map::new();
            fit_fields(table, *index, &mut object)?;
            Value::Object(object)
        }
        _ => Value::Null,
    })
}

fn fit_items(table: &Table, shape: &Shape, items: &mut [Value]) -> Result<(), Mismatch> {
    for (at, item) in items.iter_mut().enumerate() {
        fit(table, shape, item).map_err(|it| it.under(format_args!("[{at}]")))?;
    }
    Ok(())
}

fn mismatch(shape: &Shape, value: &Value) -> Mismatch {
    Mismatch::at("", shape.expected(), value)
}

/// Whether Go leaves a field out for its value, which is in shape already.
fn is_left_out(field: &Field, value: &Value) -> bool {
    field.omits_empty && field.shape.can_be_empty() && is_empty(&field.shape, value)
        || field.omits_zero && value.is_null()
}

fn is_empty(shape: &Shape, value: &Value) -> bool {
    match value {
        Value::Null => true,
        // What a pointer points to counts, however little it is.
        _ if matches!(shape, Shape::Pointer(_)) => false,
        Value::Bool(it) => !it,
        Value::Number(it) => it.as_f64() == Some(0.0),
        Value::String(it) => it.is_empty(),
        Value::Array(it) => it.is_empty(),
        Value::Object(it) => it.is_empty(),
    }
}

/// A number that is whole, as Go converts floats.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the range is checked; whole floats in it convert exactly"
)]
fn whole(number: &Number) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        (float.fract() == 0.0 && (-LIMIT..LIMIT).contains(&float)).then_some(float as i64)
    })
}

fn canonical_base64(text: &str) -> Option<String> {
    // As lenient as Go: line breaks may be anywhere, the last bits may be anything.
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
    );
    let text: String = text.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
    LENIENT.decode(text).ok().map(|bytes| LENIENT.encode(bytes))
}

/// A value in words, cut to a length that fits an error.
pub(crate) fn describe(value: &Value) -> String {
    const LONGEST: usize = 40;
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(it) => format!("the boolean {it}"),
        Value::Number(it) => format!("the number {it}"),
        Value::String(it) if it.chars().count() > LONGEST => {
            format!("the string {:?}…", it.chars().take(LONGEST).collect::<String>())
        }
        Value::String(it) => format!("the string {it:?}"),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
