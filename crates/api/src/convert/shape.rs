//! What fields hold: the words that the tables are written in.

use serde_json::{Map, Value};

/// The known fields of an object in v1beta1.
pub(super) struct Fields {
    pub(super) own: &'static [Field],
    /// Groups of fields that several objects have.
    pub(super) shared: &'static [&'static Fields],
}

/// A field: its name in v1beta1, its path in v1beta2, and what it holds.
#[derive(Clone, Copy)]
pub(super) struct Field {
    pub(super) old: &'static str,
    pub(super) new: &'static str,
    pub(super) shape: Shape,
    pub(super) shown: Shown,
}

/// When a field is written.
#[derive(Clone, Copy)]
pub(super) enum Shown {
    /// If it is not empty: empty says the same as absent.
    NotEmpty,
    /// If it was there: zero says something else than absent.
    Present,
    /// With its object.
    Always,
}

#[derive(Clone, Copy)]
pub(super) enum Shape {
    Text,
    Flag,
    Number,
    NumberOrText,
    /// A moment, written in UTC to the second.
    Time,
    /// A duration as text; seconds.
    Seconds,
    /// A group and version; the group.
    Group,
    /// Any value, carried over as it is.
    Anything,
    List(&'static Shape),
    Map(&'static Shape),
    /// A map of objects; a list of them with names.
    NamedList(&'static Fields),
    Object(&'static Fields),
    /// A list of objects.
    Objects(&'static Fields),
    /// An object whose members have their places in the object around it.
    Spread(&'static Fields),
    /// v1beta2 cannot say it.
    Gone,
    /// v1beta2 need not say it.
    Implied,
}

pub(super) const fn moved(old: &'static str, new: &'static str, shape: Shape) -> Field {
    Field { old, new, shape, shown: Shown::NotEmpty }
}

pub(super) const fn same(name: &'static str, shape: Shape) -> Field {
    moved(name, name, shape)
}

pub(super) const fn text(name: &'static str) -> Field {
    same(name, Shape::Text)
}

pub(super) const fn number(name: &'static str) -> Field {
    same(name, Shape::Number)
}

impl Field {
    pub(super) const fn if_present(self) -> Self {
        Self { shown: Shown::Present, ..self }
    }

    pub(super) const fn always(self) -> Self {
        Self { shown: Shown::Always, ..self }
    }

    /// Unset fields are not added: not even those that upstream's types always have.
    pub(super) fn is_void(&self, value: &Value) -> bool {
        match (self.shown, self.shape) {
            (Shown::Always, _) => false,
            (Shown::NotEmpty, Shape::Object(_)) => {
                value.is_null() || value.as_object().is_some_and(Map::is_empty)
            }
            _ => value.is_null(),
        }
    }
}

impl Fields {
    pub(super) fn all(&self) -> impl Iterator<Item = &Field> {
        self.own.iter().chain(self.shared.iter().flat_map(|fields| fields.own))
    }
}
