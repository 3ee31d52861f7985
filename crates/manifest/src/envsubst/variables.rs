//! Which variables a text uses, and which of them need a value.

use std::collections::BTreeMap;

use super::tree::{Expression, Piece};
use crate::Place;

/// A variable of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The variable's name.
    pub name: String,
    /// What clusterctl takes for its default: the arguments of its first use, whatever the function, with
    /// variables in them as `${NAME}`. Never empty: an empty default is none.
    pub default: Option<String>,
    /// Where its uses begin, in the order of the text, those inside of other variables included.
    pub places: Vec<Place>,
}

impl Variable {
    /// Whether a template cannot be rendered without a value for it.
    pub fn is_required(&self) -> bool {
        self.default.is_none()
    }
}

type Variables = BTreeMap<String, Variable>;

/// The variables that count, and those that stand only inside of others.
pub(super) fn collect(pieces: &[Piece]) -> (Variables, Variables) {
    let (mut variables, mut nested) = (Variables::new(), Variables::new());
    for expression in expressions(pieces) {
        add(&mut variables, expression);
        collect_nested(&expression.arguments, &mut nested);
    }
    for (name, variable) in &mut variables {
        if let Some(inside) = nested.remove(name) {
            variable.places.extend(inside.places);
            variable.places.sort_unstable();
        }
    }
    (variables, nested)
}

fn collect_nested(pieces: &[Piece], nested: &mut Variables) {
    for expression in expressions(pieces) {
        add(nested, expression);
        collect_nested(&expression.arguments, nested);
    }
}

/// Of several uses of a name, the first sets the default.
fn add(variables: &mut Variables, expression: &Expression) {
    let first = || Variable {
        name: expression.name.clone(),
        default: Some(default(&expression.arguments)).filter(|default| !default.is_empty()),
        places: Vec::new(),
    };
    variables.entry(expression.name.clone()).or_insert_with(first).places.push(expression.place);
}

fn default(arguments: &[Piece]) -> String {
    let mut default = String::new();
    for piece in arguments {
        match piece {
            Piece::Text(text) => default += text,
            Piece::Variable(inner) => default.extend(["${", &inner.name, "}"]),
        }
    }
    default
}

fn expressions(pieces: &[Piece]) -> impl Iterator<Item = &Expression> {
    pieces.iter().filter_map(|piece| match piece {
        Piece::Text(_) => None,
        Piece::Variable(expression) => Some(expression),
    })
}
