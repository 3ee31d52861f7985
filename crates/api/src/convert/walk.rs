//! The walk that carries fields over.
//!
//! The tables under [`super::fields`] say all that differs from kind to kind. Empty values are left out where
//! upstream's types leave them out, because users compare what both tools write.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    ConvertError, Elsewhere, duration,
    shape::{Field, Fields, Shape, Shown},
};

/// Where we are in an object, and what could not be carried over so far.
#[derive(Default)]
pub(super) struct Walk {
    path: String,
    pub(super) lost: Vec<String>,
    /// The namespace of the object.
    pub(super) namespace: Option<String>,
    pub(super) elsewhere: Vec<Elsewhere>,
}

/// A value in v1beta2.
struct Made {
    value: Value,
    /// Whether it says nothing, so that it may be left out.
    is_empty: bool,
    /// Whether nothing was ever said: a list without elements is empty, but it is not nothing.
    is_zero: bool,
}

impl Made {
    fn scalar(value: Value) -> Self {
        let is_zero = value.is_null() || value == "" || value == 0 || value == false;
        Self { value, is_empty: is_zero, is_zero }
    }

    fn container(value: Value, is_empty: bool) -> Self {
        Self { value, is_empty, is_zero: false }
    }

    fn is_shown(&self, field: &Field) -> bool {
        match field.shown {
            Shown::NotEmpty => !self.is_empty,
            Shown::Present | Shown::Always => true,
        }
    }

    fn is_zero_in(&self, field: &Field) -> bool {
        match field.shown {
            // A list that moves is built from scratch, and an empty one is not made at all.
            Shown::NotEmpty if field.old != field.new => self.is_empty,
            Shown::NotEmpty => self.is_zero,
            Shown::Present | Shown::Always => false,
        }
    }
}

type Object = Map<String, Value>;

impl Walk {
    /// Carries an object over. Fields that are not known stay as they are.
    pub(super) fn object(&mut self, fields: &Fields, mut source: Object) -> Result<Object, ConvertError> {
        let mut target = Object::new();
        self.carry(fields, &mut source, &mut target)?;
        merge(&mut target, source);
        Ok(target)
    }

    /// Carries the known fields over, and says whether they were all zero.
    fn carry(
        &mut self,
        fields: &Fields,
        source: &mut Object,
        target: &mut Object,
    ) -> Result<bool, ConvertError> {
        let mut are_zero = true;
        for field in fields.all() {
            are_zero &= self.within(field.old, |walk| walk.carry_field(field, source, target))?;
        }
        Ok(are_zero)
    }

    /// Carries one field over, and says whether it was zero.
    fn carry_field(
        &mut self,
        field: &Field,
        source: &mut Object,
        target: &mut Object,
    ) -> Result<bool, ConvertError> {
        let value = source.remove(field.old).unwrap_or_default();
        match field.shape {
            Shape::Implied => {
                let own = self.namespace.as_deref().filter(|own| !own.is_empty());
                let named = value.as_str().filter(|named| !named.is_empty() && own != Some(*named));
                if field.old == "namespace"
                    && let Some(named) = named
                {
                    self.elsewhere.push(Elsewhere {
                        path: self.path.clone(),
                        namespace: named.to_owned(),
                        is_certain: own.is_some(),
                    });
                }
            }
            Shape::Gone => {
                if !value.is_null() {
                    self.lost.push(self.path.clone());
                }
            }
            Shape::Spread(fields) => {
                let mut members = self.members(value)?;
                if members.is_empty() {
                    return Ok(true);
                }
                let are_zero = self.carry(fields, &mut members, target)?;
                if !members.is_empty() {
                    source.insert(field.old.to_owned(), members.into());
                }
                return Ok(are_zero);
            }
            _ if field.is_void(&value) => {}
            shape => {
                let made = self.make(shape, value)?;
                let is_zero = made.is_zero_in(field);
                if made.is_shown(field) {
                    put(target, field.new, made.value);
                }
                return Ok(is_zero);
            }
        }
        Ok(true)
    }

    fn make(&mut self, shape: Shape, value: Value) -> Result<Made, ConvertError> {
        let made = match shape {
            Shape::List(element) => return self.list(*element, value),
            Shape::Objects(fields) => return self.list(Shape::Object(fields), value),
            Shape::Map(member) => return self.map(*member, value),
            Shape::NamedList(fields) => return self.named_list(fields, value),
            Shape::Object(fields) => {
                let mut members = self.members(value)?;
                let mut target = Object::new();
                let is_zero = self.carry(fields, &mut members, &mut target)? && members.is_empty();
                merge(&mut target, members);
                return Ok(Made { value: target.into(), is_empty: is_zero, is_zero });
            }
            Shape::Anything | Shape::Spread(_) | Shape::Gone | Shape::Implied => value,
            Shape::Flag | Shape::Number if is_variable(&value) => value,
            Shape::Text => self.text(value)?.into(),
            Shape::Flag => match value {
                Value::Null => false.into(),
                Value::Bool(flag) => flag.into(),
                other => return Err(self.unfit(&other, "true or false")),
            },
            Shape::Number => self.number(&value)?.into(),
            Shape::NumberOrText => match value {
                Value::String(_) | Value::Null => value,
                other => self.number(&other)?.into(),
            },
            Shape::Time => self.time(value)?,
            Shape::Seconds => self.seconds(&value)?.into(),
            Shape::Group => self.group(value)?.into(),
        };
        // Any value but null is a statement, even an empty one.
        if matches!(shape, Shape::Anything) {
            let is_zero = made.is_null();
            return Ok(Made { value: made, is_empty: is_zero, is_zero });
        }
        Ok(Made::scalar(made))
    }

    fn list(&mut self, shape: Shape, value: Value) -> Result<Made, ConvertError> {
        let elements = match value {
            Value::Null => Vec::new(),
            Value::Array(elements) => elements,
            other => return Err(self.unfit(&other, "a list")),
        };
        let mut list = Vec::with_capacity(elements.len());
        for (index, element) in elements.into_iter().enumerate() {
            let step = format!("[{index}]");
            list.push(self.within(&step, |walk| walk.make(shape, element))?.value);
        }
        let is_empty = list.is_empty();
        Ok(Made::container(list.into(), is_empty))
    }

    fn map(&mut self, shape: Shape, value: Value) -> Result<Made, ConvertError> {
        let mut map = Object::new();
        for (name, member) in self.members(value)? {
            let made = self.within(&name, |walk| walk.make(shape, member))?;
            map.insert(name, made.value);
        }
        let is_empty = map.is_empty();
        Ok(Made::container(map.into(), is_empty))
    }

    fn named_list(&mut self, fields: &'static Fields, value: Value) -> Result<Made, ConvertError> {
        let made = self.map(Shape::Object(fields), value)?;
        let mut members: Vec<_> = match made.value {
            Value::Object(map) => map.into_iter().collect(),
            _ => Vec::new(),
        };
        members.sort_by(|(left, _), (right, _)| left.cmp(right));
        let named = |(name, mut member): (String, Value)| {
            if let Value::Object(member) = &mut member {
                member.insert("name".to_owned(), name.into());
            }
            member
        };
        Ok(Made { value: members.into_iter().map(named).collect(), ..made })
    }

    fn members(&self, value: Value) -> Result<Object, ConvertError> {
        match value {
            Value::Null => Ok(Object::new()),
            Value::Object(members) => Ok(members),
            other => Err(self.unfit(&other, "an object")),
        }
    }

    fn text(&self, value: Value) -> Result<String, ConvertError> {
        match value {
            Value::Null => Ok(String::new()),
            Value::String(text) => Ok(text),
            other => Err(self.unfit(&other, "a text; does it lack quotes?")),
        }
    }

    fn number(&self, value: &Value) -> Result<i64, ConvertError> {
        if value.is_null() {
            return Ok(0);
        }
        // A float that is whole is written as a whole number, which leaves the parsing of large ones to serde.
        let whole = value.as_f64().filter(|number| number.fract() == 0.0);
        value
            .as_i64()
            .or_else(|| whole.and_then(|number| format!("{number:.0}").parse().ok()))
            .ok_or_else(|| self.unfit(value, "a whole number"))
    }

    fn time(&self, value: Value) -> Result<Value, ConvertError> {
        if value.is_null() {
            return Ok(value);
        }
        let moment = value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
        let moment = moment.ok_or_else(|| self.unfit(&value, "a time such as 2025-01-31T12:00:00Z"))?;
        Ok(moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into())
    }

    fn seconds(&self, value: &Value) -> Result<i32, ConvertError> {
        match value {
            Value::Null => Some(0),
            Value::String(text) => duration::seconds(text),
            _ => None,
        }
        .ok_or_else(|| self.unfit(value, "a duration such as 1h30m"))
    }

    fn group(&self, value: Value) -> Result<String, ConvertError> {
        let version = self.text(value)?;
        match version.split_once('/') {
            None => Ok(String::new()),
            Some((_, rest)) if rest.contains('/') => {
                Err(self.unfit(&version.into(), "of the form group/version"))
            }
            Some((group, _)) => Ok(group.to_owned()),
        }
    }

    fn unfit(&self, value: &Value, wanted: &str) -> ConvertError {
        ConvertError::InvalidValue { path: self.path.clone(), reason: format!("{value} is not {wanted}") }
    }

    pub(super) fn within<T>(&mut self, step: &str, go: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if length > 0 && !step.starts_with('[') {
            self.path.push('.');
        }
        self.path.push_str(step);
        let result = go(self);
        self.path.truncate(length);
        result
    }
}

/// Whether a template's variable stands where a value will be.
fn is_variable(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains("${"))
}

/// Sets a field, and makes the objects around it. An object is merged into an existing one.
fn put(object: &mut Object, path: &str, value: Value) {
    let Some((field, rest)) = path.split_once('.') else {
        match (object.get_mut(path), value) {
            (Some(Value::Object(present)), Value::Object(new)) => merge(present, new),
            (_, value) => {
                object.insert(path.to_owned(), value);
            }
        }
        return;
    };
    let inner = object.entry(field).or_insert_with(|| json!({}));
    if let Value::Object(inner) = inner {
        put(inner, rest, value);
    } else {
        let mut made = Object::new();
        put(&mut made, rest, value);
        *inner = made.into();
    }
}

/// Adds what is not there yet.
fn merge(object: &mut Object, others: Object) {
    for (name, other) in others {
        match (object.get_mut(&name), other) {
            (None, other) => {
                object.insert(name, other);
            }
            (Some(Value::Object(present)), Value::Object(other)) => merge(present, other),
            _ => {}
        }
    }
}
