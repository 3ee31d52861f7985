//! The fields of Go's structs, from `go-types.txt`.

use std::collections::HashMap;
use std::sync::OnceLock;

/// What a field holds.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Text,
    Bool,
    Int32,
    Int64,
    Float,
    Bytes,
    Quantity,
    IntOrString,
    Time,
    /// Anything, kept as it is.
    Json,
    Pointer(Box<Shape>),
    List(Box<Shape>),
    Map(Box<Shape>),
    Struct(usize),
    /// A schema, or whether anything is allowed.
    OneOrBool(usize),
    /// A schema, or a list of them.
    OneOrMany(usize),
    /// A schema, or a list of names.
    OneOrNames(usize),
}

impl Shape {
    fn parse(text: &str, structs: &HashMap<&str, usize>) -> Option<Self> {
        let inner = |text| Some(Box::new(Self::parse(text, structs)?));
        let index = |name| structs.get(name).copied();
        if let Some(rest) = text.strip_prefix('*') {
            return Some(Self::Pointer(inner(rest)?));
        }
        if let Some(rest) = text.strip_prefix("[]") {
            return Some(Self::List(inner(rest)?));
        }
        if let Some(rest) = text.strip_prefix("{}") {
            return Some(Self::Map(inner(rest)?));
        }
        Some(match text.split_once(' ') {
            Some(("OrBool", name)) => Self::OneOrBool(index(name)?),
            Some(("OrArray", name)) => Self::OneOrMany(index(name)?),
            Some(("OrStringArray", name)) => Self::OneOrNames(index(name)?),
            _ => match text {
                "string" => Self::Text,
                "bool" => Self::Bool,
                "int32" => Self::Int32,
                "int64" => Self::Int64,
                "float64" => Self::Float,
                "bytes" => Self::Bytes,
                "Quantity" => Self::Quantity,
                "IntOrString" => Self::IntOrString,
                "Time" => Self::Time,
                "JSON" => Self::Json,
                name => Self::Struct(index(name)?),
            },
        })
    }

    /// Whether `omitempty` means something for it: it does not for Go's structs.
    pub(super) const fn can_be_empty(&self) -> bool {
        matches!(
            self,
            Self::Text
                | Self::Bool
                | Self::Int32
                | Self::Int64
                | Self::Float
                | Self::Bytes
                | Self::Pointer(_)
                | Self::List(_)
                | Self::Map(_)
        )
    }

    /// What is expected of a value, in words.
    pub(super) const fn expected(&self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Bool => "a boolean",
            Self::Int32 => "an integer of 32 bits",
            Self::Int64 => "an integer of 64 bits",
            Self::Float => "a number",
            Self::Bytes => "a string in base64",
            Self::Quantity => "a quantity like 100m or 64Mi",
            Self::IntOrString => "an integer of 32 bits or a string",
            Self::Time => "a time like 2006-01-02T15:04:05Z",
            Self::Json => "anything",
            Self::Pointer(inner) => inner.expected(),
            Self::List(_) => "a list",
            Self::Map(_) | Self::Struct(_) => "an object",
            Self::OneOrBool(_) => "a schema or a boolean",
            Self::OneOrMany(_) => "a schema or a list of schemas",
            Self::OneOrNames(_) => "a schema or a list of names",
        }
    }
}

/// A field of a struct.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) omits_empty: bool,
    pub(super) omits_zero: bool,
}

impl Field {
    fn parse(line: &'static str, structs: &HashMap<&str, usize>) -> Option<Self> {
        let (name, shape) = line.split_once(' ')?;
        let shape = Shape::parse(shape, structs)?;
        let (name, omits_zero) = name.strip_suffix('0').map_or((name, false), |name| (name, true));
        let (name, omits_empty) = name.strip_suffix('?').map_or((name, false), |name| (name, true));
        Some(Self { name, shape, omits_empty, omits_zero })
    }

    fn is_always_written(&self) -> bool {
        !(self.omits_zero || self.omits_empty && self.shape.can_be_empty())
    }
}

/// The fields of a struct, in the order of their names.
#[derive(Debug, Default)]
pub(super) struct Fields {
    fields: Vec<Field>,
    always_written: Vec<usize>,
}

impl Fields {
    fn new(mut fields: Vec<Field>) -> Self {
        fields.sort_unstable_by_key(|field| field.name);
        let is_always_written = |(at, field): (usize, &Field)| field.is_always_written().then_some(at);
        let always_written = fields.iter().enumerate().filter_map(is_always_written).collect();
        Self { fields, always_written }
    }

    pub(super) fn named(&self, name: &str) -> Option<&Field> {
        let at = self.fields.binary_search_by(|field| field.name.cmp(name)).ok()?;
        self.fields.get(at)
    }

    /// Those that are written whatever they hold.
    pub(super) fn always_written(&self) -> impl Iterator<Item = &Field> {
        self.always_written.iter().filter_map(|at| self.fields.get(*at))
    }
}

/// All structs.
#[derive(Debug)]
pub(super) struct Table {
    structs: Vec<Fields>,
    indices: HashMap<&'static str, usize>,
}

impl Table {
    pub(super) fn get() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| Self::parse(include_str!("go-types.txt")))
    }

    fn parse(text: &'static str) -> Self {
        let is_name = |line: &&str| !line.starts_with(' ');
        let indices: HashMap<_, _> =
            text.lines().filter(is_name).enumerate().map(|(at, name)| (name, at)).collect();
        let mut structs: Vec<Vec<Field>> = Vec::with_capacity(indices.len());
        for line in text.lines() {
            match (line.strip_prefix("  "), structs.last_mut()) {
                (Some(line), Some(fields)) => fields.extend(Field::parse(line, &indices)),
                _ => structs.push(Vec::new()),
            }
        }
        Self { structs: structs.into_iter().map(Fields::new).collect(), indices }
    }

    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.indices.get(name).copied()
    }

    /// The fields of a struct; none where there is no such struct.
    pub(super) fn fields(&self, index: usize) -> &Fields {
        static NONE: Fields = Fields { fields: Vec::new(), always_written: Vec::new() };
        self.structs.get(index).unwrap_or(&NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood() {
        let text = include_str!("go-types.txt");
        let lines = text.lines().filter(|line| line.starts_with("  ")).count();
        let fields: usize = Table::get().structs.iter().map(|it| it.fields.len()).sum();
        assert_eq!(fields, lines);
        assert!(lines > 800);
    }

    #[test]
    fn every_kind_has_a_struct() {
        for (group, version, kind) in super::super::KINDS {
            assert!(super::super::Struct::of(group, version, kind).is_some(), "{group}/{version} {kind}");
        }
        assert!(super::super::Struct::of("extensions", "v1", "Deployment").is_none());
    }
}
