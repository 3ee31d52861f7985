//! From text to pieces.

use super::error::{SyntaxError, SyntaxProblem, shorten};
use super::names::is_in_name;
use super::source::{Places, Source};
use super::tree::{End, Expression, Function, Occurrence, Piece};
use crate::Place;

/// How deep variables may stand in each other.
const MAX_DEPTH: usize = 100;

type Parsed<T> = Result<T, SyntaxError>;

/// A function and its arguments.
type Call = (Function, Vec<Piece>);

pub(super) fn parse(source: &Source<'_>) -> Parsed<Vec<Piece>> {
    let mut parser = Parser { source, rest: source.text(), places: Places::new(source), open: Vec::new() };
    let mut pieces = Vec::new();
    while !parser.rest.is_empty() {
        pieces.push(parser.piece(&PLAIN)?);
    }
    Ok(pieces)
}

/// A kind of text: at which characters to look closer, and which pairs stand for their second character.
struct Kind {
    stops: &'static [char],
    escapes: &'static [&'static str],
}

const PLAIN: Kind = Kind { stops: &['$'], escapes: &["$$"] };
const WORD: Kind = Kind { stops: &['$', '}'], escapes: &[] };
const POSITION: Kind = Kind { stops: &['$', '}', ':'], escapes: &[] };
/// A text to replace may contain `}`.
const OLD: Kind = Kind { stops: &['$', '/', '\\'], escapes: &["$$", "\\/", "\\\\"] };
const NEW: Kind = Kind { stops: &['$', '}', '\\'], escapes: &["$$", "\\/", "\\\\"] };

struct Parser<'a> {
    source: &'a Source<'a>,
    rest: &'a str,
    places: Places<'a>,
    /// Where the expressions begin that are being read, outermost first.
    open: Vec<Opening>,
}

struct Opening {
    offset: usize,
    place: Place,
}

impl<'a> Parser<'a> {
    /// A variable or a text, whichever comes first. The text is empty if something ends it at once.
    fn piece(&mut self, kind: &Kind) -> Parsed<Piece> {
        if self.rest.starts_with("${") {
            return Ok(Piece::Variable(self.expression()?));
        }
        Ok(Piece::Text(self.text(kind)))
    }

    fn text(&mut self, kind: &Kind) -> String {
        let mut text = String::new();
        loop {
            text += self.take_until(kind.stops);
            if self.rest.starts_with("${") {
                return text;
            }
            if let Some(escape) = kind.escapes.iter().find(|escape| self.rest.starts_with(**escape)) {
                self.take(escape.len() - 1);
                text += self.take(1);
            } else if self.rest.starts_with(['$', '\\']) {
                text += self.take(1);
            } else {
                return text;
            }
        }
    }

    fn expression(&mut self) -> Parsed<Expression> {
        let offset = self.source.text().len() - self.rest.len();
        let place = self.places.find(offset);
        self.open.push(Opening { offset, place });
        if self.open.len() > MAX_DEPTH {
            return Err(self.error(SyntaxProblem::TooDeep));
        }
        self.take("${".len());
        let is_length = self.take_if('#');
        let name = self.name();
        if name.is_empty() {
            return Err(self.error(SyntaxProblem::NoName));
        }
        let (function, arguments) =
            if is_length { self.bare(name, Function::Length)? } else { self.function(name)? };
        self.open.pop();
        Ok(Expression { place, name: name.to_owned(), function, arguments })
    }

    fn function(&mut self, name: &str) -> Parsed<Call> {
        let second = self.rest.chars().nth(1);
        match self.rest.chars().next() {
            Some(':') if matches!(second, Some('=' | '-' | '?' | '+')) => self.default(":=".len()),
            Some(':') => self.substring(),
            Some('=') => self.default("=".len()),
            Some(',' | '^') => self.case(),
            Some('#') => self.trim('#', End::Prefix),
            Some('%') => self.trim('%', End::Suffix),
            Some('/') => self.replace(),
            _ => self.bare(name, Function::Value),
        }
    }

    fn bare(&mut self, name: &str, function: Function) -> Parsed<Call> {
        self.close(|found| SyntaxProblem::NotInName { name: name.to_owned(), found })?;
        Ok((function, Vec::new()))
    }

    fn default(&mut self, operator: usize) -> Parsed<Call> {
        self.take(operator);
        let mut words = Vec::new();
        while !self.take_if('}') {
            if self.rest.is_empty() {
                return Err(self.error(SyntaxProblem::Unclosed));
            }
            words.push(self.piece(&WORD)?);
        }
        Ok((Function::Default, words))
    }

    fn case(&mut self) -> Parsed<Call> {
        let operator = self.take(self.rest.chars().take(2).take_while(|c| matches!(c, ',' | '^')).count());
        let function = match operator {
            "," => Function::LowerFirst,
            ",," => Function::Lower,
            "^" => Function::UpperFirst,
            "^^" => Function::Upper,
            _ => Function::Value,
        };
        self.close(|found| SyntaxProblem::AfterOperator { operator: operator.to_owned(), found })?;
        Ok((function, Vec::new()))
    }

    fn substring(&mut self) -> Parsed<Call> {
        let operator = self.take(1);
        // Upstream loses its way at a character of several bytes here.
        if let Some(found) = self.rest.chars().next().filter(|c| !c.is_ascii()) {
            return Err(self.error(SyntaxProblem::AfterOperator { operator: operator.to_owned(), found }));
        }
        let mut arguments = vec![self.argument(&POSITION, operator)?];
        if self.take_all(':') {
            arguments.push(self.argument(&WORD, operator)?);
        }
        self.close_arguments(operator)?;
        if is_never_possible(&arguments) {
            return Err(self.error(SyntaxProblem::NegativeLength));
        }
        Ok((Function::Substring, arguments))
    }

    fn trim(&mut self, sign: char, end: End) -> Parsed<Call> {
        let operator = self.take(self.rest.chars().take(2).take_while(|c| *c == sign).count());
        let pattern = self.argument(&WORD, operator)?;
        self.close_arguments(operator)?;
        Ok((Function::Trim { end, longest: operator.len() == 2 }, vec![pattern]))
    }

    fn replace(&mut self) -> Parsed<Call> {
        let (operator, occurrence) = match self.rest.as_bytes().get(1) {
            Some(b'/') => (self.take(2), Occurrence::All),
            Some(b'#') => (self.take(2), Occurrence::At(End::Prefix)),
            Some(b'%') => (self.take(2), Occurrence::At(End::Suffix)),
            _ => (self.take(1), Occurrence::First),
        };
        let mut arguments = vec![self.argument(&OLD, operator)?];
        if !self.take_all('/') {
            return Err(self.error(match self.rest.chars().next() {
                None | Some('}') => SyntaxProblem::NoReplacement,
                Some(_) => SyntaxProblem::Mixed { operator: operator.to_owned() },
            }));
        }
        if !self.rest.starts_with('}') {
            arguments.push(self.argument(&NEW, operator)?);
        }
        self.close_arguments(operator)?;
        Ok((Function::Replace(occurrence), arguments))
    }

    /// An argument that is either a text or one variable.
    fn argument(&mut self, kind: &Kind, operator: &str) -> Parsed<Piece> {
        if self.rest.is_empty() {
            return Err(self.error(SyntaxProblem::Unclosed));
        }
        match self.piece(kind)? {
            Piece::Text(text) if text.is_empty() => {
                Err(self.error(SyntaxProblem::NoArgument { operator: operator.to_owned() }))
            }
            piece => Ok(piece),
        }
    }

    fn close_arguments(&mut self, operator: &str) -> Parsed<()> {
        self.close(|_| SyntaxProblem::Mixed { operator: operator.to_owned() })
    }

    /// Reads the closing brace; another character is a problem.
    fn close(&mut self, problem: impl FnOnce(char) -> SyntaxProblem) -> Parsed<()> {
        match self.rest.chars().next() {
            Some('}') => {
                self.take(1);
                Ok(())
            }
            Some(found) => Err(self.error(problem(found))),
            None => Err(self.error(SyntaxProblem::Unclosed)),
        }
    }

    fn error(&self, problem: SyntaxProblem) -> SyntaxError {
        let (offset, place) = self
            .open
            .last()
            .map_or((0, Place { line: 1, column: 1 }), |opening| (opening.offset, opening.place));
        SyntaxError { place, expression: shorten(self.source.original_from(offset)), problem }
    }

    fn name(&mut self) -> &'a str {
        self.take(self.rest.find(|c| !is_in_name(c)).unwrap_or(self.rest.len()))
    }

    fn take_until(&mut self, stops: &[char]) -> &'a str {
        let end = match stops {
            // For a single character the search is many times faster.
            [stop] => self.rest.find(*stop),
            stops => self.rest.find(stops),
        };
        self.take(end.unwrap_or(self.rest.len()))
    }

    fn take_all(&mut self, sign: char) -> bool {
        let rest = self.rest.trim_start_matches(sign);
        let has_any = rest.len() < self.rest.len();
        self.rest = rest;
        has_any
    }

    fn take_if(&mut self, sign: char) -> bool {
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Takes bytes that were just seen to be whole characters.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }
}

/// Whether a substring has a length so negative that it fails for every value.
fn is_never_possible(arguments: &[Piece]) -> bool {
    let [Piece::Text(position), Piece::Text(length)] = arguments else {
        return false;
    };
    match (position.parse::<i64>(), length.parse::<i64>()) {
        (Ok(position), Ok(length)) => position >= 0 && length < 0 && position + length < 0,
        _ => false,
    }
}
