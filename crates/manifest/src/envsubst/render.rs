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

/// The bytes that variables may still write, into the text or into an argument on its way there.
pub(super) struct Room {
    limit: usize,
    left: usize,
}

impl Room {
    /// Refuses what does not fit. A size that is too large to be counted is none.
    pub(super) fn check(&self, bytes: Option<usize>) -> Result<(), EvaluationProblem> {
        let fits = bytes.is_some_and(|bytes| bytes <= self.left);
        if fits { Ok(()) } else { Err(EvaluationProblem::TooLarge { limit: self.limit }) }
    }

    fn take(&mut self, bytes: usize) -> Result<(), EvaluationProblem> {
        self.check(Some(bytes))?;
        self.left -= bytes;
        Ok(())
    }
}

/// The text, unless its variables make more than `limit` bytes of it.
pub(super) fn render(pieces: &[Piece], values: &Values<'_>, limit: usize) -> Result<String, EvaluationError> {
    // The text itself is in memory already: it may leave no room for variables, but is no problem alone.
    let text: usize = pieces.iter().map(Piece::text_len).sum();
    let mut room = Room { limit, left: limit.saturating_sub(text) };
    let mut bytes = Vec::new();
    // Functions count bytes, so that only all pieces together need to be whole characters.
    let mut ends = Vec::new();
    for piece in pieces {
        write(piece, values, &mut room, &mut bytes)?;
        if let Piece::Variable(expression) = piece {
            ends.push((bytes.len(), expression));
        }
    }
    String::from_utf8(bytes).map_err(|error| broken_character(&ends, error.utf8_error().valid_up_to()))
}

fn write(
    piece: &Piece,
    values: &Values<'_>,
    room: &mut Room,
    out: &mut Vec<u8>,
) -> Result<(), EvaluationError> {
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
        write(piece, values, room, &mut argument)?;
        arguments.push(argument);
    }
    let result = functions::apply(expression.function, values.get(&expression.name), &arguments, room)
        .and_then(|result| room.take(result.len()).map(|()| result))
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
