//! Variables in manifests: `${NAME}`, defaults, and the other forms of a shell, as clusterctl substitutes them.
//!
//! clusterctl uses `drone/envsubst`, and manifests are written for what that library does, surprises
//! included: `:?` does not fail, `:+` is one more way to write a default, lengths and positions count bytes,
//! a NUL ends the text. What it accepts comes out here byte by byte the same; what it refuses, or crashes on,
//! is refused with the place and a hint. Five things are refused that it accepts: a result that is not
//! UTF-8, a substring that no value can satisfy, variables in variables more than a hundred deep,
//! variables that blow the text up beyond [`MAX_RENDERED_SIZE`], and patterns of more than 4096 bytes.

mod decode;
mod error;
mod functions;
mod glob;
mod names;
mod parse;
mod render;
mod source;
mod tree;
mod variables;

use std::collections::BTreeMap;

pub use error::{
    EvaluationError, EvaluationProblem, ExpandError, MissingVariables, RenderError, SyntaxError,
    SyntaxProblem,
};
pub use variables::Variable;

use render::Values;
use source::Source;
use tree::Piece;

/// The most bytes that a text with variables may have once they are replaced, those of words and patterns inside of
/// variables included. Replacements in replacements multiply, so that a few hundred bytes can ask for gigabytes.
pub const MAX_RENDERED_SIZE: usize = 64 << 20;

/// A text with variables, parsed once.
#[derive(Clone, Debug)]
pub struct Template {
    pieces: Vec<Piece>,
    variables: BTreeMap<String, Variable>,
    nested: BTreeMap<String, Variable>,
}

impl Template {
    /// Parses a manifest. Spaces around a bare name, as in `${ NAME }`, are allowed.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        Self::parse_source(&Source::without_spaces_around_names(text))
    }

    fn parse_source(source: &Source<'_>) -> Result<Self, SyntaxError> {
        let pieces = parse::parse(source)?;
        let (variables, nested) = variables::collect(&pieces);
        Ok(Self { pieces, variables, nested })
    }

    /// The variables that clusterctl lists and asks for, by name.
    pub fn variables(&self) -> &BTreeMap<String, Variable> {
        &self.variables
    }

    /// Variables that are used only inside of another one, like `B` in `${A:=${B}}`.
    ///
    /// Variables that are not required: without a value they are empty.
    pub fn nested_variables(&self) -> &BTreeMap<String, Variable> {
        &self.nested
    }

    /// The text with the values in place of the variables.
    ///
    /// Values are put in as they are: variables in a value stay as they are written.
    pub fn render(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, RenderError> {
        let values = self.look_up(lookup);
        let without_value = |variable: &&Variable| variable.is_required() && !values.has(&variable.name);
        let missing: Vec<Variable> = self.variables.values().filter(without_value).cloned().collect();
        if !missing.is_empty() {
            return Err(MissingVariables { variables: missing }.into());
        }
        Ok(render::render(&self.pieces, &values, MAX_RENDERED_SIZE)?)
    }

    fn look_up(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Values<'_> {
        self.variables.keys().chain(self.nested.keys()).map(|name| (name.as_str(), lookup(name))).collect()
    }
}

/// Expands a URL or a path: a variable without a value is empty, and `${ NAME }` with spaces is an error.
pub fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, ExpandError> {
    let template = Template::parse_source(&Source::as_written(text))?;
    Ok(render::render(&template.pieces, &template.look_up(lookup), MAX_RENDERED_SIZE)?)
}
