//! What a text with variables is made of.

use crate::Place;

/// A part of a text, or of an argument of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Variable(Expression),
}

impl Piece {
    /// The bytes that stand there without a variable.
    pub(super) fn text_len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Variable(_) => 0,
        }
    }
}

/// A variable and what is done to its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expression {
    /// Where its `$` stands.
    pub(super) place: Place,
    pub(super) name: String,
    pub(super) function: Function,
    pub(super) arguments: Vec<Piece>,
}

/// What is done to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// `${A}`
    Value,
    /// `${#A}`
    Length,
    /// `${A,}`
    LowerFirst,
    /// `${A,,}`
    Lower,
    /// `${A^}`
    UpperFirst,
    /// `${A^^}`
    Upper,
    /// `${A:=word}` and its four other spellings; any number of arguments
    Default,
    /// `${A:position}` and `${A:position:length}`; one or two arguments
    Substring,
    /// `${A#pattern}` and the like; one argument
    Trim { end: End, longest: bool },
    /// `${A/old/new}` and the like; one or two arguments
    Replace(Occurrence),
}

/// An end of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Prefix,
    Suffix,
}

/// What of the old text is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occurrence {
    First,
    All,
    At(End),
}
