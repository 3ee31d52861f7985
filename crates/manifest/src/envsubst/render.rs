//! From pieces and values to text.

use std::collections::BTreeMap;

use super::error::{EvaluationError, EvaluationProblem};
use super::functions;
use super::tree::{Expression, Piece};
use crate::Place;

/// What was found for the variables.
pub(super) struct Values<'a>(BTreeMap<&'a str, Option<String>>);

impl<'a> FromIterator<(&'a str, Option<String>)> for Values<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, Option<String>)>>(found: I) -> Self {
        Self(found.into_iter().collect())
    }
}

impl Values<'_> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(Option::is_some)
    }

    fn get(&self, name: &str) -> &str {
        self.0.get(name).and_then(Option::as_deref).unwrap_or_default()
    }
}

pub(super) fn render(pieces: &[Piece], values: &Values<'_>) -> Result<String, EvaluationError> {
    let mut bytes = Vec::new();
    // Functions count bytes, so that only all pieces together need to be whole characters.
    let mut ends = Vec::new();
    for piece in pieces {
        write(piece, values, &mut bytes)?;
        if let Piece::Variable(expression) = piece {
            ends.push((bytes.len(), expression));
        }
    }
    String::from_utf8(bytes).map_err(|error| broken_character(&ends, error.utf8_error().valid_up_to()))
}

fn write(piece: &Piece, values: &Values<'_>, out: &mut Vec<u8>) -> Result<(), EvaluationError> {
    let expression = match piece {
        Piece::Text(text) => {
            out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        Piece::Variable(expression) => expression,
    };
    let mut arguments = Vec::with_capacity(expression.arguments.len());
    for piece in &expression.arguments {
        let mut argument = Vec::new();
        write(piece, values, &mut argument)?;
        arguments.push(argument);
    }
    let result = functions::apply(expression.function, values.get(&expression.name), &arguments)
        .map_err(|problem| error(expression, problem))?;
    out.extend_from_slice(&result);
    Ok(())
}

/// Blames the variable that wrote the first byte that belongs to no character.
fn broken_character(ends: &[(usize, &Expression)], offset: usize) -> EvaluationError {
    let problem = EvaluationProblem::BrokenCharacter;
    match ends.iter().find(|(end, _)| *end > offset) {
        Some((_, expression)) => error(expression, problem),
        // Text is never broken, so that there is always a variable.
        None => EvaluationError { place: Place { line: 1, column: 1 }, variable: String::new(), problem },
    }
}

fn error(expression: &Expression, problem: EvaluationProblem) -> EvaluationError {
    EvaluationError { place: expression.place, variable: expression.name.clone(), problem }
}
