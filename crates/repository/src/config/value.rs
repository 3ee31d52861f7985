//! Values of configuration files, and the text that a variable gets from them.

use std::fmt;

/// A value, whichever format it was read from.
#[derive(Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    /// Text, and points in time as Go writes them.
    Text(String),
    List(Vec<Value>),
    Map(Map),
}

// Values may be secrets.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

/// Keys as they were written, in their order.
pub(crate) type Map = Vec<(String, Value)>;

impl Value {
    /// The text of a scalar, as `spf13/cast` makes it; lists and maps have none, and neither has null.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Bool(it) => Some(it.to_string()),
            Self::Integer(it) => Some(it.to_string()),
            Self::Float(it) => Some(float_text(*it)),
            Self::Text(it) => Some(it.clone()),
            Self::Null | Self::List(_) | Self::Map(_) => None,
        }
    }

    /// Whether nothing is set by it.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Text(it) => it.is_empty(),
            Self::List(it) => it.is_empty(),
            Self::Map(it) => it.is_empty(),
            Self::Bool(_) | Self::Integer(_) | Self::Float(_) => false,
        }
    }

    /// What to call it in a message.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

/// Go's `FormatFloat` without exponent and with the fewest digits.
fn float_text(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        number.to_string()
    }
}

impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(it) => Self::Bool(it),
            // Go reads every JSON number as a float.
            serde_json::Value::Number(it) => Self::Float(it.as_f64().unwrap_or(f64::NAN)),
            serde_json::Value::String(it) => Self::Text(it),
            serde_json::Value::Array(it) => Self::List(it.into_iter().map(Self::from).collect()),
            serde_json::Value::Object(it) => {
                Self::Map(it.into_iter().map(|(key, value)| (key, Self::from(value))).collect())
            }
        }
    }
}

impl From<toml::Value> for Value {
    fn from(value: toml::Value) -> Self {
        match value {
            toml::Value::Boolean(it) => Self::Bool(it),
            toml::Value::Integer(it) => Self::Integer(it.into()),
            toml::Value::Float(it) => Self::Float(it),
            toml::Value::String(it) => Self::Text(it),
            toml::Value::Datetime(it) => {
                let text = it.to_string();
                // Local dates and times stay as they are; those with an offset are points in time.
                Self::Text(
                    crate::config::yaml::timestamp(&text).filter(|_| it.offset.is_some()).unwrap_or(text),
                )
            }
            toml::Value::Array(it) => Self::List(it.into_iter().map(Self::from).collect()),
            toml::Value::Table(it) => {
                Self::Map(it.into_iter().map(|(key, value)| (key, Self::from(value))).collect())
            }
        }
    }
}
