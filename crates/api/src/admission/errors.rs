//! Violations, in the form in which `kubectl` users know them.

use std::fmt;

use serde_json::Value;

/// Longer values are cut in messages.
const SHOWN: usize = 120;
/// A name longer than this is cut in messages: most kinds refuse it for its length.
const LONGEST_NAME: usize = 63;
/// What is left of such a name.
const SHOWN_OF_NAME: usize = 32;
/// More violations than this are not collected: no honest object has so many.
const MOST: usize = 20_000;
/// More violations than this are not listed in a message.
const LISTED: usize = 20;

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// It must be set.
    Required,
    /// Its value (as shown to people) is not allowed.
    Invalid(String),
    /// Its value, which messages do not repeat, is too long.
    TooLong,
    /// It may not be set, removed or changed.
    Forbidden,
    /// Its value (as shown to people) is a duplicate.
    Duplicate(String),
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldError {
    /// The field, like `spec.clusterNetwork.pods.cidrBlocks[0]`.
    pub path: String,
    /// What is wrong.
    pub fault: Fault,
    /// What would be right.
    pub detail: String,
}

impl FieldError {
    /// The reason in the causes of a Kubernetes Status.
    pub fn reason(&self) -> &'static str {
        match self.fault {
            Fault::Required => "FieldValueRequired",
            Fault::Invalid(_) => "FieldValueInvalid",
            Fault::TooLong => "FieldValueTooLong",
            Fault::Forbidden => "FieldValueForbidden",
            Fault::Duplicate(_) => "FieldValueDuplicate",
        }
    }

    /// The violation without its path.
    pub fn message(&self) -> String {
        match &self.fault {
            Fault::Required => format!("Required value: {}", self.detail),
            Fault::Invalid(value) => format!("Invalid value: {value}: {}", self.detail),
            Fault::TooLong => format!("Too long: {}", self.detail),
            Fault::Forbidden => format!("Forbidden: {}", self.detail),
            Fault::Duplicate(value) => format!("Duplicate value: {value}: {}", self.detail),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message())
    }
}

/// All violations of one object. Only so many are kept that a hostile object cannot fill the memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Errors(Vec<FieldError>);

impl Errors {
    /// Notes a field that must be set.
    pub fn required(&mut self, path: impl Into<String>, detail: impl Into<String>) {
        self.push(path, Fault::Required, detail);
    }

    /// Notes a value that is not allowed.
    pub fn invalid(&mut self, path: impl Into<String>, value: &Value, detail: impl Into<String>) {
        self.push(path, Fault::Invalid(shown(value)), detail);
    }

    /// Notes a value that is too long.
    pub fn too_long(&mut self, path: impl Into<String>, detail: impl Into<String>) {
        self.push(path, Fault::TooLong, detail);
    }

    /// Notes a change that is not allowed.
    pub fn forbidden(&mut self, path: impl Into<String>, detail: impl Into<String>) {
        self.push(path, Fault::Forbidden, detail);
    }

    /// Adds a duplicate value.
    pub fn duplicate(&mut self, path: impl Into<String>, value: &Value, detail: impl Into<String>) {
        self.push(path, Fault::Duplicate(shown(value)), detail);
    }

    fn push(&mut self, path: impl Into<String>, fault: Fault, detail: impl Into<String>) {
        if self.0.len() < MOST {
            self.0.push(FieldError { path: path.into(), fault, detail: detail.into() });
        }
    }

    /// Whether so many were found that some may be missing here.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MOST
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds others.
    pub fn extend(&mut self, others: impl IntoIterator<Item = FieldError>) {
        let room = MOST - self.0.len();
        self.0.extend(others.into_iter().take(room));
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, FieldError> {
        self.0.iter()
    }

    /// As many as are worth listing.
    pub fn listed(&self) -> &[FieldError] {
        &self.0[..self.0.len().min(LISTED)]
    }
}

impl IntoIterator for Errors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Errors {
    type Item = &'a FieldError;
    type IntoIter = std::slice::Iter<'a, FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One message for all violations: `Cluster.cluster.x-k8s.io "c" is invalid: [..., ...]`.
pub fn invalid_message(group_kind: &str, name: &str, errors: &Errors) -> String {
    let mut words: Vec<_> = errors.listed().iter().map(ToString::to_string).collect();
    let more = errors.0.len() - words.len();
    if more > 0 {
        words.push(format!("and {more} more"));
    }
    let list = words.join(", ");
    let name =
        if name.len() > LONGEST_NAME { cut(name, SHOWN_OF_NAME) } else { Value::from(name).to_string() };
    if words.len() == 1 {
        format!("{group_kind} {name} is invalid: {list}")
    } else {
        format!("{group_kind} {name} is invalid: [{list}]")
    }
}

/// A value for people: short, and never a whole object.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => cut(text, SHOWN),
        scalar => scalar.to_string(),
    }
}

/// The beginning of a text that is longer than so many characters.
fn cut(text: &str, shown: usize) -> String {
    match text.char_indices().nth(shown) {
        Some((end, _)) => format!("{} ({} bytes)", Value::from(format!("{}…", &text[..end])), text.len()),
        None => Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn violations_read_as_kubernetes_writes_them() {
        let mut errors = Errors::default();
        errors.invalid("spec.a[0]", &json!("x\"y"), "must be a number");
        assert_eq!(
            invalid_message("Cluster.g", "c", &errors),
            r#"Cluster.g "c" is invalid: spec.a[0]: Invalid value: "x\"y": must be a number"#
        );
        errors.required("spec.b", "name it");
        errors.forbidden("spec.c", "cannot be removed");
        errors.duplicate("spec.d", &json!(1), "must be unique");
        assert_eq!(
            invalid_message("Cluster.g", "c", &errors),
            r#"Cluster.g "c" is invalid: [spec.a[0]: Invalid value: "x\"y": must be a number, spec.b: Required value: name it, spec.c: Forbidden: cannot be removed, spec.d: Duplicate value: 1: must be unique]"#
        );
    }

    #[test]
    fn messages_stay_short_whatever_they_are_about() {
        let mut errors = Errors::default();
        for _ in 0..2 * MOST {
            errors.invalid("p", &json!("ä".repeat(10_000)), "too long");
        }
        assert!(errors.is_full());
        let message = invalid_message("K", &"n".repeat(100_000), &errors);
        assert!(message.len() < 10_000, "{}", message.len());
        assert!(message.ends_with("and 19980 more]"), "{}", &message[message.len() - 50..]);
        assert_eq!(shown(&json!({"a": 1})), "an object");
        let mut errors = Errors::default();
        errors.too_long("metadata.name", "at most 63");
        let message = invalid_message("K", &"n".repeat(64), &errors);
        let beginning = "n".repeat(32);
        assert_eq!(
            message,
            format!("K \"{beginning}…\" (64 bytes) is invalid: metadata.name: Too long: at most 63")
        );
        assert!(invalid_message("K", &"n".repeat(63), &errors).contains(&"n".repeat(63)));
    }
}
