//! Errors in variables, for authors and users of templates.

use std::fmt;

use thiserror::Error;

use super::names::is_in_name;
use super::variables::Variable;
use crate::Place;

/// An expression that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: `{expression}`: {problem}")]
pub struct SyntaxError {
    /// Where its `$` stands.
    pub place: Place,
    /// The expression, shortened.
    pub expression: String,
    /// What is wrong.
    pub problem: SyntaxProblem,
}

/// What is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SyntaxProblem {
    /// `${}`, `${ A:=x }`
    #[error("there is no variable name behind the brace")]
    NoName,
    /// `${A$B}`, `${A-w}`
    #[error("{found:?} cannot follow the name {name}")]
    NotInName {
        /// The name up to there.
        name: String,
        /// What follows it.
        found: char,
    },
    /// `${A^x}`, `${A:é}`
    #[error("{found:?} cannot follow `{operator}`")]
    AfterOperator {
        /// The operator.
        operator: String,
        /// What follows it.
        found: char,
    },
    /// `${A:=x` at the end of the text
    #[error("the closing brace is missing")]
    Unclosed,
    /// `${A#}`, `${A:1:}`
    #[error("an argument of `{operator}` is empty")]
    NoArgument {
        /// The operator.
        operator: String,
    },
    /// `${A#${B}x}`
    #[error("an argument of `{operator}` is either text or one variable, not both")]
    Mixed {
        /// The operator.
        operator: String,
    },
    /// `${A/x}` without a later `/`
    #[error("the `/` before the new text is missing")]
    NoReplacement,
    /// `${A:0:-1}`
    #[error("the length is negative")]
    NegativeLength,
    /// Hundreds of variables in each other
    #[error("too many variables stand in each other")]
    TooDeep,
}

impl SyntaxError {
    /// What to write instead. It is about the syntax of variables alone, so that linters and renderers
    /// can both show it.
    pub fn correction(&self) -> Option<String> {
        let inside = self.expression.trim_start_matches("${");
        Some(match &self.problem {
            SyntaxProblem::NoName if inside.starts_with(char::is_whitespace) => self.correct_spaces(),
            SyntaxProblem::NoName => ON_DOLLARS.to_owned(),
            SyntaxProblem::NotInName { found, .. } if found.is_whitespace() => self.correct_spaces(),
            SyntaxProblem::NotInName { name, found: '-' | '+' | '?' } => {
                let word = inside.trim_start_matches(name.as_str()).get(1..).unwrap_or_default();
                format!("a default is written with a colon: `${{{name}:-{word}`")
            }
            SyntaxProblem::NotInName { name, found: '$' } => {
                let other = inside.trim_start_matches(name.as_str()).trim_start_matches(['$', '{']);
                let other: String = other.chars().take_while(|c| is_in_name(*c)).collect();
                let other = if other.is_empty() { "OTHER" } else { &other };
                format!(
                    "a name cannot contain `$`; two variables side by side are written `${{{name}}}${{{other}}}`"
                )
            }
            SyntaxProblem::NotInName { .. } => {
                format!("a name is made of letters, digits and `_`; {ON_DOLLARS}")
            }
            SyntaxProblem::AfterOperator { operator, .. } if operator == ":" => {
                "behind `:` stands a position in bytes, like `${A:2}`; a default is written `${A:-word}`"
                    .to_owned()
            }
            SyntaxProblem::AfterOperator { .. } => {
                "only `,` `,,` `^` and `^^` change the case, and of the whole value or its first letter"
                    .to_owned()
            }
            SyntaxProblem::Unclosed => format!("close it with `}}`; {ON_DOLLARS}"),
            SyntaxProblem::NoArgument { operator } => correct_arguments(operator),
            SyntaxProblem::Mixed { .. } => {
                "only the word of a default, like `${A:-x${B}y}`, can be put together from text and variables"
                    .to_owned()
            }
            SyntaxProblem::NoReplacement => {
                "write `${A/old/new}`, or `${A/old/}` to remove the old text".to_owned()
            }
            SyntaxProblem::NegativeLength => ON_LENGTHS.to_owned(),
            SyntaxProblem::TooDeep => return None,
        })
    }

    fn correct_spaces(&self) -> String {
        let rule = "spaces can stand only around a bare name, and nowhere in URLs and paths";
        let inside = self.expression.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        match inside.map(|inside| (inside, inside.trim())) {
            Some((inside, trimmed)) if trimmed.len() < inside.len() && !trimmed.is_empty() => {
                format!("{rule}: write `${{{trimmed}}}`")
            }
            _ => rule.to_owned(),
        }
    }
}

const ON_DOLLARS: &str = "for a dollar sign that begins no variable, write `$$`";
const ON_LENGTHS: &str = "only a position can be counted from the end, not a length";

fn correct_arguments(operator: &str) -> String {
    match operator {
        ":" => "write a position in bytes, like `${A:2}`, or also a length, like `${A:2:5}`".to_owned(),
        operator if operator.starts_with('/') => format!("write `${{A{operator}old/new}}`"),
        operator => format!("write `${{A{operator}pattern}}`, where the pattern may have `*` and `?`"),
    }
}

/// The expression at the beginning of the text, or as much of it as fits into a message.
pub(super) fn shorten(text: &str) -> String {
    let mut shortened = String::new();
    let mut depth = 0_usize;
    for c in text.chars() {
        if c == '\n' || shortened.chars().count() == 40 {
            shortened.push('…');
            break;
        }
        shortened.push(c);
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => break,
            '}' => depth -= 1,
            _ => {}
        }
    }
    shortened
}

/// Variables that have neither a value nor a default.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct MissingVariables {
    /// All of them, by name.
    pub variables: Vec<Variable>,
}

impl MissingVariables {
    /// Each variable with its places.
    pub fn to_lines(&self) -> Vec<String> {
        self.variables.iter().map(tell_places).collect()
    }
}

/// How many places of a variable a message names.
const PLACES_SHOWN: usize = 3;

impl fmt::Display for MissingVariables {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variables = self.to_lines();
        let noun = if variables.len() == 1 { "variable" } else { "variables" };
        write!(out, "no value is set for the {noun} {}", variables.join(", "))
    }
}

fn tell_places(variable: &Variable) -> String {
    let mut places: Vec<String> = variable.places.iter().take(PLACES_SHOWN).map(Place::to_string).collect();
    let more = variable.places.len() - places.len();
    if more > 0 {
        places.push(format!("and {more} more"));
    }
    format!("{} ({})", variable.name, places.join("; "))
}

/// A function that cannot be applied to the value that was found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: variable {variable}: {problem}")]
pub struct EvaluationError {
    /// Where the `$` of the expression stands.
    pub place: Place,
    /// The variable that the function is applied to.
    pub variable: String,
    /// What is wrong.
    pub problem: EvaluationProblem,
}

/// Why a function cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EvaluationProblem {
    /// A length that was itself taken from a variable is negative.
    #[error("the length {length} is negative")]
    NegativeLength {
        /// The length.
        length: i64,
    },
    /// What is left is not UTF-8.
    #[error("the value is cut in the middle of a character")]
    BrokenCharacter,
    /// A pattern takes too long to be tried.
    #[error("the pattern is longer than {limit} bytes")]
    LongPattern {
        /// The longest pattern in bytes.
        limit: usize,
    },
    /// The variable blows the text up.
    #[error("the rendered text is larger than {limit} bytes")]
    TooLarge {
        /// The most that is rendered.
        limit: usize,
    },
}

impl EvaluationError {
    /// What is to be known to write it right, as [`SyntaxError::correction`].
    pub fn correction(&self) -> &'static str {
        match self.problem {
            EvaluationProblem::NegativeLength { .. } => ON_LENGTHS,
            EvaluationProblem::BrokenCharacter => {
                "positions, lengths and the `?` of a shortest match count bytes, and this value has characters of several"
            }
            EvaluationProblem::LongPattern { .. } => "use a shorter pattern: `*` stands for any text",
            EvaluationProblem::TooLarge { .. } => {
                "use shorter values or fewer replacements: those inside of others, as in `${A//x/${B//y/z}}`, multiply"
            }
        }
    }
}

/// Why a template cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RenderError {
    /// Variables have neither a value nor a default.
    #[error(transparent)]
    Missing(#[from] MissingVariables),
    /// A function cannot be applied to a value.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
}

/// Why a URL or a path cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExpandError {
    /// An expression cannot be understood.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// A function cannot be applied to a value.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
}
