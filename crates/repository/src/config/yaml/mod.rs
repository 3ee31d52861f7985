//! YAML as viper reads configuration files: the types of YAML 1.2, no key twice, and only the first document.
//!
//! Everything else is read by `capstan_manifest::yaml`, as Kubernetes reads it.

mod scalar;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Span, Tag};

pub(crate) use scalar::timestamp;

use crate::config::value::{Map, Value};

/// Aliases may not blow a small file up to more values than this.
const MOST_VALUES: usize = 200_000;
const DEEPEST: usize = 100;
const CORE_SCHEMA: &str = "tag:yaml.org,2002:";

/// Text that is not YAML, or not of the kind that can be read here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub(crate) struct YamlError {
    pub(crate) line: usize,
    pub(crate) problem: String,
}

/// Reads the first document; a file without any is null.
pub(crate) fn read(text: &str) -> Result<Value, YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut options = Options::default();
    options.set_emit_comments(false);
    let events = Parser::new_from_str_with_options(text, options);
    Reader { events, anchors: HashMap::new(), values: 0, line: 1 }.document()
}

struct Reader<P> {
    events: P,
    anchors: HashMap<usize, Value>,
    values: usize,
    line: usize,
}

impl<'a, P: Iterator<Item = Result<(Event<'a>, Span), ScanError>>> Reader<P> {
    fn document(&mut self) -> Result<Value, YamlError> {
        loop {
            match self.next()? {
                None | Some(Event::StreamEnd) => return Ok(Value::Null),
                Some(Event::StreamStart | Event::DocumentStart(..)) => {}
                Some(event) => return self.value(event, 0),
            }
        }
    }

    fn next(&mut self) -> Result<Option<Event<'a>>, YamlError> {
        match self.events.next() {
            None => Ok(None),
            Some(Ok((event, span))) => {
                self.line = span.start.line();
                Ok(Some(event))
            }
            Some(Err(error)) => Err(YamlError { line: error.marker().line(), problem: error.info() }),
        }
    }

    fn value(&mut self, event: Event<'a>, depth: usize) -> Result<Value, YamlError> {
        if depth > DEEPEST {
            return self.fail(format!("values are nested more than {DEEPEST} deep"));
        }
        self.count(1)?;
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => (anchor, self.scalar(&text, style, tag)?),
            Event::SequenceStart(_, anchor, _) => (anchor, self.list(depth)?),
            Event::MappingStart(_, anchor, _) => (anchor, self.map(depth)?),
            Event::Alias(anchor) => (0, self.alias(anchor)?),
            _ => (0, Value::Null),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn alias(&mut self, anchor: usize) -> Result<Value, YamlError> {
        match self.anchors.get(&anchor).cloned() {
            Some(value) => {
                self.count(count(&value))?;
                Ok(value)
            }
            None => self.fail("an alias stands inside of what it names".to_owned()),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, YamlError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                None | Some(Event::SequenceEnd) => return Ok(Value::List(items)),
                Some(event) => items.push(self.value(event, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, YamlError> {
        let mut entries = Map::new();
        let mut keys = HashSet::new();
        let mut merged = Vec::new();
        loop {
            let event = match self.next()? {
                None | Some(Event::MappingEnd) => break,
                Some(event) => event,
            };
            let is_merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let key = self.key(event)?;
            let line = self.line;
            let value = match self.next()? {
                Some(event) => self.value(event, depth + 1)?,
                None => Value::Null,
            };
            if is_merge {
                merged.push(value);
                continue;
            }
            if !keys.insert(key.clone()) {
                return Err(YamlError { line, problem: format!("the key {key:?} occurs twice") });
            }
            entries.push((key, value));
        }
        for value in merged {
            self.merge(&mut entries, &mut keys, value)?;
        }
        Ok(Value::Map(entries))
    }

    /// Keys are text, as they were written.
    fn key(&mut self, event: Event<'a>) -> Result<String, YamlError> {
        match event {
            Event::Scalar(text, _, anchor, _) => {
                let text = text.into_owned();
                if anchor != 0 {
                    self.anchors.insert(anchor, Value::Text(text.clone()));
                }
                Ok(text)
            }
            Event::Alias(anchor) => match self.alias(anchor)?.text() {
                Some(text) => Ok(text),
                None => self.fail("a key must be text".to_owned()),
            },
            _ => self.fail("a key must be text".to_owned()),
        }
    }

    /// Adds what a merge key names; existing keys are kept.
    fn merge(&self, entries: &mut Map, keys: &mut HashSet<String>, value: Value) -> Result<(), YamlError> {
        match value {
            Value::Map(others) => {
                for (key, value) in others {
                    if keys.insert(key.clone()) {
                        entries.push((key, value));
                    }
                }
                Ok(())
            }
            Value::List(items) => items.into_iter().try_for_each(|it| match it {
                Value::Map(_) => self.merge(entries, keys, it),
                _ => self.fail("a merge key needs maps".to_owned()),
            }),
            _ => self.fail("a merge key needs a map".to_owned()),
        }
    }

    fn scalar(&self, text: &str, style: ScalarStyle, tag: Option<Cow<'_, Tag>>) -> Result<Value, YamlError> {
        let tag = tag.map(|it| format!("{}{}", it.handle(), it.suffix())).filter(|it| it != "!");
        let typed = match tag.as_deref().map(|it| it.strip_prefix(CORE_SCHEMA)) {
            None if style == ScalarStyle::Plain => return Ok(scalar::resolve(text)),
            // A value with an unknown tag is text.
            None | Some(None | Some("str")) => return Ok(Value::Text(text.to_owned())),
            Some(Some("binary")) => return self.binary(text),
            Some(Some("timestamp")) => match timestamp(text) {
                Some(time) => return Ok(Value::Text(time)),
                None => "timestamp",
            },
            Some(Some(typed)) => typed,
        };
        let value = scalar::resolve(text);
        match (typed, value) {
            ("int", value @ Value::Integer(_))
            | ("float", value @ Value::Float(_))
            | ("bool", value @ Value::Bool(_))
            | ("null", value @ Value::Null) => Ok(value),
            #[expect(clippy::cast_precision_loss, reason = "a float was asked for")]
            ("float", Value::Integer(it)) => Ok(Value::Float(it as f64)),
            // The value itself may be a secret.
            _ => self.fail(format!("a value is not of the type !!{typed}")),
        }
    }

    fn binary(&self, text: &str) -> Result<Value, YamlError> {
        let compact: String = text.split_ascii_whitespace().collect();
        match STANDARD.decode(compact).map(String::from_utf8) {
            Ok(Ok(text)) => Ok(Value::Text(text)),
            Ok(Err(_)) => self.fail("a !!binary value is not text".to_owned()),
            Err(error) => self.fail(format!("a !!binary value is not base64: {error}")),
        }
    }

    fn count(&mut self, more: usize) -> Result<(), YamlError> {
        self.values += more;
        if self.values > MOST_VALUES {
            return self.fail(format!("there are more than {MOST_VALUES} values, aliases counted"));
        }
        Ok(())
    }

    fn fail<T>(&self, problem: String) -> Result<T, YamlError> {
        Err(YamlError { line: self.line, problem })
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::List(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Map(entries) => 1 + entries.iter().map(|(_, it)| count(it)).sum::<usize>(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
