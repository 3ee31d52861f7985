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
/// Nor to more text than this, in bytes.
const MOST_COPIED_TEXT: usize = 16 << 20;
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
    Reader { events, anchors: HashMap::new(), values: 0, copied_text: 0, line: 1 }.document()
}

struct Reader<P> {
    events: P,
    anchors: HashMap<usize, Anchored>,
    values: usize,
    copied_text: usize,
    line: usize,
}

/// What an alias stands for.
struct Anchored {
    value: Value,
    extent: Extent,
}

/// How large a value is, all that is in it counted.
#[derive(Clone, Copy)]
struct Extent {
    values: usize,
    text: usize,
    depth: usize,
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
        self.check_depth(depth)?;
        self.count(1)?;
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => (anchor, self.scalar(&text, style, tag)?),
            Event::SequenceStart(_, anchor, _) => (anchor, self.list(depth)?),
            Event::MappingStart(_, anchor, _) => (anchor, self.map(depth)?),
            Event::Alias(anchor) => (0, self.alias(anchor, depth)?),
            _ => (0, Value::Null),
        };
        self.remember(anchor, &value)?;
        Ok(value)
    }

    /// Keeps a value that has an anchor.
    fn remember(&mut self, anchor: usize, value: &Value) -> Result<(), YamlError> {
        if anchor == 0 {
            return Ok(());
        }
        let extent = Extent::of(value);
        self.copy_text(extent.text)?;
        self.anchors.insert(anchor, Anchored { value: value.clone(), extent });
        Ok(())
    }

    fn alias(&mut self, anchor: usize, depth: usize) -> Result<Value, YamlError> {
        let Some(Extent { values, text, depth: height }) = self.anchors.get(&anchor).map(|it| it.extent)
        else {
            return self.fail("an alias stands inside of what it names".to_owned());
        };
        self.check_depth(depth + height)?;
        self.count(values)?;
        self.copy_text(text)?;
        Ok(self.anchors.get(&anchor).map_or(Value::Null, |it| it.value.clone()))
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
                self.remember(anchor, &Value::Text(text.clone()))?;
                Ok(text)
            }
            Event::Alias(anchor) => match self.alias(anchor, 0)?.text() {
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

    fn copy_text(&mut self, more: usize) -> Result<(), YamlError> {
        self.copied_text = self.copied_text.saturating_add(more);
        if self.copied_text > MOST_COPIED_TEXT {
            let limit = MOST_COPIED_TEXT >> 20;
            return self.fail(format!("the aliases stand for more than {limit} MiB of text"));
        }
        Ok(())
    }

    fn check_depth(&self, depth: usize) -> Result<(), YamlError> {
        if depth > DEEPEST {
            return self.fail(format!("values are nested more than {DEEPEST} deep"));
        }
        Ok(())
    }

    fn fail<T>(&self, problem: String) -> Result<T, YamlError> {
        Err(YamlError { line: self.line, problem })
    }
}

impl Extent {
    fn of(value: &Value) -> Self {
        let mut extent = Self { values: 1, text: 0, depth: 0 };
        match value {
            Value::Text(text) => extent.text = text.len(),
            Value::List(items) => items.iter().for_each(|item| extent.add(item)),
            Value::Map(entries) => entries.iter().for_each(|(key, item)| {
                extent.text += key.len();
                extent.add(item);
            }),
            _ => {}
        }
        extent
    }

    fn add(&mut self, part: &Value) {
        let part = Self::of(part);
        self.values += part.values;
        self.text += part.text;
        self.depth = self.depth.max(part.depth + 1);
    }
}

#[cfg(test)]
mod tests;
