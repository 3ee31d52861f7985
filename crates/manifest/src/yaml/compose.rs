//! From the parser's events to values: anchors, aliases, merge keys, and keys that are no strings.
//!
//! Nothing here recurses, so that no text can exhaust the stack.

use std::{borrow::Cow, collections::HashMap, mem};

use granit_parser::{
    ErrorKind, Event, Marker, Parser, ScalarStyle, ScanError, Span, StructureStyle, Tag, YamlVersion,
};

use super::{
    error::Problem,
    node::Node,
    number,
    resolve::{self, Scalar},
    source::{Source, is_in_name},
};
use crate::Place;

/// How deep lists and maps may nest. What reads, copies, writes or drops a value recurses that deep.
const MAX_DEPTH: usize = 500;
/// How much memory may go into the copies that the anchors and aliases of a document ask for, about.
const MAX_COPIED: usize = 64 << 20;
/// What a value takes beside its text, about.
const NODE_SIZE: usize = 64;

/// Reads the first document of a text, and where its value begins. There may be none.
///
/// What follows the document is not looked at: Go does not, either. But what follows its value and is no further
/// document is an error, where Go drops it without a word.
pub(super) fn compose<N: Node>(source: &mut Source) -> Result<Option<(N, Marker)>, (Place, Problem)> {
    if let Some((place, letter)) = source.control_character() {
        return Err((place, Problem::ControlCharacter(letter)));
    }
    loop {
        let mut composer = Composer::default();
        match composer.run(source.text()) {
            Ok(root) => return Ok(root),
            Err(Failure::Scan(error)) if source.patch(&error, composer.indent()) => {}
            Err(Failure::Scan(error)) => {
                let is_directive =
                    *error.kind() == ErrorKind::ExpectedDocumentStart && composer.begin.is_none();
                let problem = if is_directive { Problem::Directive } else { error.kind().into() };
                return Err((source.place(*error.marker()), problem));
            }
            Err(Failure::Compose(at, problem)) => return Err((source.place(at), problem)),
        }
    }
}

enum Failure {
    Scan(ScanError),
    Compose(Marker, Problem),
}

struct Composer<N: Node> {
    /// The lists and maps around the place that we are at, outermost first.
    open: Vec<Open<N>>,
    anchors: HashMap<usize, Anchored<N>>,
    /// Where the document's value begins.
    begin: Option<Marker>,
    /// How much memory the document takes so far, about.
    size: usize,
    /// How much of it is copies that anchors and aliases asked for.
    copied: usize,
}

/// A list or map that has not ended yet.
struct Open<N: Node> {
    at: Marker,
    anchor: usize,
    items: Items<N>,
    is_flow: bool,
    /// How deep what it holds is nested.
    height: usize,
    size_before: usize,
}

enum Items<N: Node> {
    List(Vec<N>),
    Map(N::Map, Next),
}

/// What the next node of a map is.
enum Next {
    Key,
    Value(String),
    Merge,
}

/// What aliases stand for. A scalar may become a key, which depends on more than its JSON.
#[derive(Clone)]
enum Target<N> {
    Scalar(Scalar),
    Collection(N),
}

struct Anchored<N> {
    target: Target<N>,
    height: usize,
    size: usize,
}

impl<N: Node> Default for Composer<N> {
    fn default() -> Self {
        Self { open: Vec::new(), anchors: HashMap::new(), begin: None, size: 0, copied: 0 }
    }
}

impl<N: Node> Composer<N> {
    fn run(&mut self, text: &str) -> Result<Option<(N, Marker)>, Failure> {
        let options = granit_parser::options! {
            emit_anchor_events: true,
            emit_comments: false,
            flow_nesting_limit: usize::MAX,
            block_nesting_limit: usize::MAX,
        };
        let mut events = Parser::new_from_str_with_options(text, options);
        let has_tabs = text.contains('\t');
        let mut root = None;
        while let Some((event, span)) = events.next_event().transpose().map_err(Failure::Scan)? {
            let ends_here = match &event {
                // Three dots: what follows belongs to no document.
                Event::DocumentEnd if !span.is_empty() => true,
                // What stands behind a value that is complete is an error, and found to be one only now.
                Event::StreamEnd => true,
                Event::DocumentStart(..) => root.is_some(),
                _ => false,
            };
            if ends_here {
                break;
            }
            if event.is_node() {
                if self.open.is_empty() {
                    self.begin = Some(span.start);
                }
                if has_tabs && !self.is_in_flow() && is_indented_by_tab(text, span.start) {
                    return Err(Failure::Compose(span.start, (&ErrorKind::TabInIndentation).into()));
                }
            }
            let event = without_added_break(event, &span, text);
            let complete =
                self.take(event, span.start).map_err(|problem| Failure::Compose(span.start, problem))?;
            root = root.or(complete);
        }
        Ok(root.zip(self.begin))
    }

    /// How far a line must be indented to belong to all that is open.
    fn indent(&self) -> usize {
        self.open.iter().map(|open| open.at.col() + 1).max().unwrap_or(0) + 1
    }

    /// Takes the next event, and returns the document's value once it is complete.
    fn take(&mut self, event: Event<'_>, at: Marker) -> Result<Option<N>, Problem> {
        match event {
            Event::DocumentStart(_, Some(YamlVersion { major, minor })) if (major, minor) != (1, 1) => {
                Err(Problem::Version { major, minor })
            }
            Event::Scalar(text, style, anchor, tag) => self.scalar(text, style, anchor, tag.as_deref(), at),
            Event::SequenceStart(style, anchor, _) => self.begin(Items::List(Vec::new()), style, anchor, at),
            Event::MappingStart(style, anchor, _) => {
                self.begin(Items::Map(N::Map::default(), Next::Key), style, anchor, at)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.alias(anchor, at),
            Event::Anchor(_, name) if !name.chars().all(is_in_name) => {
                Err(Problem::AnchorName(name.into_owned()))
            }
            _ => Ok(None),
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        at: Marker,
    ) -> Result<Option<N>, Problem> {
        let size = NODE_SIZE + text.len();
        self.size += size;
        let is_plain = style == ScalarStyle::Plain;
        if anchor == 0
            && text == "<<"
            && self.awaits_key()
            && tag.map_or(is_plain, |tag| matches!(full(tag).as_ref(), "!" | "tag:yaml.org,2002:merge"))
        {
            self.expect(Next::Merge);
            return Ok(None);
        }
        let scalar = match tag {
            None if is_plain => resolve::untagged(&text).unwrap_or_else(|| Scalar::Text(text.into_owned())),
            None => Scalar::Text(text.into_owned()),
            Some(tag) => resolve::tagged(&full(tag), text.into_owned())?,
        };
        if anchor != 0 {
            self.remember(anchor, Target::Scalar(scalar.clone()), 0, size)?;
        }
        self.put_scalar(scalar, at)
    }

    fn put_scalar(&mut self, scalar: Scalar, at: Marker) -> Result<Option<N>, Problem> {
        if self.awaits_key() {
            self.expect(Next::Value(key(scalar)?));
            return Ok(None);
        }
        let node = N::scalar(scalar, at)?;
        self.put(node, 0)
    }

    fn begin(
        &mut self,
        items: Items<N>,
        style: StructureStyle,
        anchor: usize,
        at: Marker,
    ) -> Result<Option<N>, Problem> {
        if self.awaits_key() {
            return Err(collection_as_key(matches!(items, Items::Map(..))));
        }
        self.check_depth(1)?;
        let is_flow = style == StructureStyle::Flow;
        self.open.push(Open { at, anchor, items, is_flow, height: 0, size_before: self.size });
        self.size += NODE_SIZE;
        // Its aliases are good from its end on.
        self.anchors.remove(&anchor);
        Ok(None)
    }

    fn end(&mut self) -> Result<Option<N>, Problem> {
        let Some(ended) = self.open.pop() else {
            return Ok(None);
        };
        let node = match ended.items {
            Items::List(items) => N::list(items, ended.at),
            Items::Map(entries, _) => N::map(entries, ended.at),
        };
        let height = ended.height + 1;
        if ended.anchor != 0 {
            let size = self.size - ended.size_before;
            self.remember(ended.anchor, Target::Collection(node.clone()), height, size)?;
        }
        self.put(node, height)
    }

    fn alias(&mut self, anchor: usize, at: Marker) -> Result<Option<N>, Problem> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err(Problem::AliasOfItself);
        };
        let height = anchored.height;
        let size = anchored.size;
        self.check_depth(height)?;
        self.pay(size)?;
        self.size += size;
        match self.anchors.get(&anchor).map(|anchored| anchored.target.clone()) {
            Some(Target::Scalar(scalar)) => self.put_scalar(scalar, at),
            Some(Target::Collection(node)) if self.awaits_key() => Err(collection_as_key(node.is_map())),
            Some(Target::Collection(node)) if self.awaits_merge() && !node.is_map() => {
                Err(Problem::MergeOfNoMap)
            }
            Some(Target::Collection(node)) => self.put(node.moved_to(at), height),
            None => Ok(None),
        }
    }

    fn remember(
        &mut self,
        anchor: usize,
        target: Target<N>,
        height: usize,
        size: usize,
    ) -> Result<(), Problem> {
        self.pay(size)?;
        self.anchors.insert(anchor, Anchored { target, height, size });
        Ok(())
    }

    fn pay(&mut self, size: usize) -> Result<(), Problem> {
        self.copied = self.copied.saturating_add(size);
        if self.copied > MAX_COPIED { Err(Problem::TooManyAliases { limit: MAX_COPIED }) } else { Ok(()) }
    }

    fn check_depth(&self, more: usize) -> Result<(), Problem> {
        if self.open.len() + more > MAX_DEPTH { Err(Problem::TooDeep { limit: MAX_DEPTH }) } else { Ok(()) }
    }

    fn is_in_flow(&self) -> bool {
        self.open.last().is_some_and(|open| open.is_flow)
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { items: Items::Map(_, Next::Key), .. }))
    }

    fn awaits_merge(&self) -> bool {
        matches!(self.open.last(), Some(Open { items: Items::Map(_, Next::Merge), .. }))
    }

    fn expect(&mut self, then: Next) {
        if let Some(Open { items: Items::Map(_, next), .. }) = self.open.last_mut() {
            *next = then;
        }
    }

    /// Puts a value where it belongs. What belongs nowhere is the document's own.
    fn put(&mut self, node: N, height: usize) -> Result<Option<N>, Problem> {
        let Some(outer) = self.open.last_mut() else {
            return Ok(Some(node));
        };
        outer.height = outer.height.max(height);
        match &mut outer.items {
            Items::List(items) => items.push(node),
            Items::Map(entries, next) => match mem::replace(next, Next::Key) {
                Next::Value(key) => N::insert(entries, key, node),
                Next::Merge => merge(entries, node)?,
                Next::Key => {}
            },
        }
        Ok(None)
    }
}

/// A block text that ends with a last line that has no line break has none either. Our parser gives it one.
fn without_added_break<'text>(event: Event<'text>, span: &Span, text: &str) -> Event<'text> {
    match event {
        Event::Scalar(mut content, style @ (ScalarStyle::Literal | ScalarStyle::Folded), anchor, tag)
            if span.end.byte_offset() == Some(text.len()) && !text.ends_with(['\n', '\r']) =>
        {
            let last_line = text.rsplit(['\n', '\r']).next().unwrap_or_default();
            // Blanks that only indent are a line of their own, and count if such lines do.
            let is_indent = last_line.len() <= span.start.col() && last_line.trim_matches(' ').is_empty();
            let is_added = if is_indent {
                content == "\n" || content.ends_with("\n\n")
            } else {
                content.ends_with('\n')
            };
            if is_added {
                content.to_mut().pop();
            }
            Event::Scalar(content, style, anchor, tag)
        }
        event => event,
    }
}

/// Whether a tab is among the blanks between a value and the beginning of its line or the sign of its list item.
fn is_indented_by_tab(text: &str, at: Marker) -> bool {
    let before = at.byte_offset().and_then(|offset| text.get(..offset)).unwrap_or_default();
    let content = before.trim_end_matches([' ', '\t']);
    let blanks = before.get(content.len()..).unwrap_or_default();
    let is_begin = |text: &str| text.is_empty() || text.ends_with(['\n', '\r', ' ', '\t']);
    let is_behind_sign = || content.strip_suffix(['-', '?']).is_some_and(is_begin);
    blanks.contains('\t') && (is_begin(content) || is_behind_sign())
}

/// Merges a map, or a list of maps of which the first wins, without replacing existing keys.
fn merge<N: Node>(entries: &mut N::Map, node: N) -> Result<(), Problem> {
    let maps = match node.into_map() {
        Ok(map) => {
            N::extend(entries, map);
            return Ok(());
        }
        Err(node) => node.into_list().ok_or(Problem::MergeOfNoMap)?,
    };
    for map in maps.into_iter().rev() {
        N::extend(entries, map.into_map().map_err(|_| Problem::MergeOfNoMap)?);
    }
    Ok(())
}

/// The text that a scalar is as the key of a map.
fn key(scalar: Scalar) -> Result<String, Problem> {
    Ok(match scalar {
        Scalar::Text(text) => text,
        Scalar::Bool(bool) => bool.to_string(),
        Scalar::Int(int) => int.to_string(),
        Scalar::Float(float) => number::key(float),
        Scalar::Null => return Err(Problem::Key("null")),
        Scalar::Uint(_) => return Err(Problem::Key("a number of more than 63 bits")),
    })
}

const fn collection_as_key(is_map: bool) -> Problem {
    Problem::Key(if is_map { "a map" } else { "a list" })
}

fn full(tag: &Tag) -> Cow<'_, str> {
    match tag.parts() {
        (handle, "") => Cow::Borrowed(handle),
        (handle, suffix) => Cow::Owned(format!("{handle}{suffix}")),
    }
}
