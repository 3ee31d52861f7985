//! What can be wrong with a text that should be YAML.

use granit_parser::ErrorKind;

use crate::Place;

/// Why a text could not be read, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("document {document}, {place}: {problem}")]
pub struct ReadError {
    document: usize,
    place: Place,
    problem: Problem,
}

impl ReadError {
    pub(super) const fn new(document: usize, place: Place, problem: Problem) -> Self {
        Self { document, place, problem }
    }

    /// Which document it is, from 1. Empty documents do not count.
    pub const fn document(&self) -> usize {
        self.document
    }

    /// Where in the whole text it is.
    pub const fn place(&self) -> Place {
        self.place
    }

    /// What is wrong there.
    pub const fn problem(&self) -> &Problem {
        &self.problem
    }
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// More than a comment stands behind the three dashes between two documents.
    #[error("only a comment may follow the three dashes that separate documents, not {0:?}")]
    Separator(String),
    /// It is no YAML.
    #[error("{0}")]
    Syntax(String),
    /// A directive such as `%YAML` without the three dashes that it needs. In a stream, they end it instead.
    #[error("the directive before this line belongs to no document; leave it out")]
    Directive,
    /// A letter that no YAML may contain.
    #[error("the control character U+{:04X} is not allowed", u32::from(*.0))]
    ControlCharacter(char),
    /// A `%YAML` directive with another version than 1.1, which is the one that Kubernetes reads.
    #[error("YAML {major}.{minor} is not supported, only YAML 1.1 is")]
    Version {
        /// The number before the point.
        major: u32,
        /// The number behind the point.
        minor: u32,
    },
    /// Lists and maps inside each other, too many.
    #[error("more than {limit} lists and maps are nested")]
    TooDeep {
        /// How many may be.
        limit: usize,
    },
    /// Aliases that stand for aliases that stand for aliases.
    #[error("the aliases of this document stand for too much: more than {} MiB", .limit >> 20)]
    TooManyAliases {
        /// How much all aliases of a document may stand for, in bytes of memory.
        limit: usize,
    },
    /// An anchor with a name that Go does not take.
    #[error("the anchor &{0} may be named by letters, digits, dashes and underscores only")]
    AnchorName(String),
    /// An alias inside the very value that it stands for.
    #[error("an alias cannot stand for a value that it is a part of")]
    AliasOfItself,
    /// A merge key with something else than maps.
    #[error("the merge key << needs a map or a list of maps")]
    MergeOfNoMap,
    /// A map's key that JSON has no text for.
    #[error("{0} cannot be the key of a map")]
    Key(&'static str),
    /// A number that JSON does not have.
    #[error("{0} is a number that JSON does not have; put it in quotes if it is meant as text")]
    NotFinite(&'static str),
    /// A tag on a value that it does not fit.
    #[error("{text:?} is not of the type that its tag !!{tag} says")]
    Tag {
        /// The tag without the two exclamation marks.
        tag: &'static str,
        /// The value as it is written.
        text: String,
    },
    /// A binary value that is not in Base64.
    #[error("the value tagged !!binary is not valid Base64")]
    Base64,
}

impl From<&ErrorKind> for Problem {
    fn from(kind: &ErrorKind) -> Self {
        Self::Syntax(match in_plain_words(kind) {
            Some(words) => words.to_owned(),
            None => kind.to_string(),
        })
    }
}

/// What people meet most, without the parser's terms.
const fn in_plain_words(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart => "a tab cannot indent a line, only spaces can",
        ErrorKind::UnknownAnchor => "the alias stands for nothing: no anchor of this name comes before it",
        ErrorKind::ExpectedBlockMappingKey => {
            "a key was expected here; is the line indented as the others of its map are?"
        }
        ErrorKind::ExpectedBlockSequenceEntry => {
            "a list item was expected here; is the line indented as the others of its list are?"
        }
        ErrorKind::InvalidIndentation => "the line is indented less than what it belongs to",
        ErrorKind::MappingValueNotAllowed => {
            "a colon is not allowed here; text that contains a colon and a space needs quotes"
        }
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => "a colon was expected behind this key",
        ErrorKind::BlockSequenceEntryNotAllowed => "a list item is not allowed here",
        ErrorKind::UnclosedQuotedScalar => "the quoted text that begins here never ends",
        ErrorKind::ExpectedFlowMappingSeparator => "a comma or a closing brace was expected here",
        ErrorKind::ExpectedFlowSequenceSeparator => "a comma or a closing bracket was expected here",
        ErrorKind::UnknownQuotedScalarEscape => "there is no such escape in double quotes",
        ErrorKind::ExpectedDocumentStart => {
            "the document has ended before this line; is the line indented as the first one is?"
        }
        _ => return None,
    })
}
