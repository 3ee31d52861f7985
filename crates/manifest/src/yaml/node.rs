//! What a document can be composed into.

use granit_parser::Marker;
use serde_json::{Map, Value};

use super::{error::Problem, number, resolve::Scalar};

/// A value, or something that stands for one.
pub(super) trait Node: Clone + Sized {
    /// The entries of a map.
    type Map: Default;

    fn scalar(scalar: Scalar, at: Marker) -> Result<Self, Problem>;
    fn list(items: Vec<Self>, at: Marker) -> Self;
    fn map(entries: Self::Map, at: Marker) -> Self;

    /// Adds an entry, replacing one with the same key.
    fn insert(entries: &mut Self::Map, key: String, node: Self);
    /// Adds the entries of another map, replacing those with the same keys.
    fn extend(entries: &mut Self::Map, others: Self::Map);

    fn is_map(&self) -> bool;
    /// The entries of a map, or the node itself if it is none.
    fn into_map(self) -> Result<Self::Map, Self>;
    fn into_list(self) -> Option<Vec<Self>>;
    /// The same at the place of an alias for it.
    fn moved_to(self, at: Marker) -> Self;
}

impl Node for Value {
    type Map = Map<String, Self>;

    fn scalar(scalar: Scalar, _: Marker) -> Result<Self, Problem> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "Go's detour through JSON makes floats of all numbers"
        )]
        let float = match scalar {
            Scalar::Null => return Ok(Self::Null),
            Scalar::Bool(bool) => return Ok(Self::Bool(bool)),
            Scalar::Text(text) => return Ok(Self::String(text)),
            Scalar::Int(int) => int as f64,
            Scalar::Uint(int) => int as f64,
            Scalar::Float(float) => float,
        };
        let name = if float.is_nan() { "not-a-number" } else { "infinity" };
        number::from_float(float).map(Self::Number).ok_or(Problem::NotFinite(name))
    }

    fn list(items: Vec<Self>, _: Marker) -> Self {
        Self::Array(items)
    }

    fn map(entries: Self::Map, _: Marker) -> Self {
        Self::Object(entries)
    }

    fn insert(entries: &mut Self::Map, key: String, node: Self) {
        entries.insert(key, node);
    }

    fn extend(entries: &mut Self::Map, others: Self::Map) {
        entries.extend(others);
    }

    fn is_map(&self) -> bool {
        self.is_object()
    }

    fn into_map(self) -> Result<Self::Map, Self> {
        match self {
            Self::Object(entries) => Ok(entries),
            other => Err(other),
        }
    }

    fn into_list(self) -> Option<Vec<Self>> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    fn moved_to(self, _: Marker) -> Self {
        self
    }
}
