//! Where the values of a text stand.

use std::collections::BTreeMap;

use granit_parser::Marker;

use super::{compose::compose, error::Problem, node::Node, resolve::Scalar, split::split};
use crate::Place;

/// Where in a text a value stands: the document's index among those that [`read`](super::read) gives, and the
/// value's JSON pointer in it.
///
/// A value that an alias stands for is where the alias is; what is in it is where it was written.
///
/// ```
/// use capstan_manifest::yaml::locate;
///
/// let text = "kind: Cluster\n---\nkind: Secret\ndata: {a: eA==}\n";
/// assert_eq!(locate(text, 1, "/data/a").unwrap().to_string(), "line 4, column 11");
/// assert_eq!(locate(text, 1, "/data/b"), None);
/// ```
pub fn locate(text: &str, document: usize, pointer: &str) -> Option<Place> {
    let mut before = 0;
    for source in split(text) {
        let mut source = source.ok()?;
        let Some((root, _)) = compose::<Located>(&mut source).ok()? else {
            continue;
        };
        if matches!(root.content, Content::Null) {
            continue;
        }
        if before == document {
            return root.find(pointer).map(|node| source.place(node.at));
        }
        before += 1;
    }
    None
}

/// Where a value and everything in it stand.
#[derive(Clone)]
struct Located {
    at: Marker,
    content: Content,
}

#[derive(Clone)]
enum Content {
    Null,
    Scalar,
    List(Vec<Located>),
    Map(BTreeMap<String, Located>),
}

impl Located {
    fn find(&self, pointer: &str) -> Option<&Self> {
        let mut steps = pointer.split('/');
        // What comes before the first slash is nothing in a pointer that is one.
        if steps.next() != Some("") {
            return None;
        }
        steps.try_fold(self, |node, step| match &node.content {
            Content::Null | Content::Scalar => None,
            Content::List(items) => items.get(index(step)?),
            Content::Map(entries) => entries.get(&step.replace("~1", "/").replace("~0", "~")),
        })
    }
}

fn index(step: &str) -> Option<usize> {
    let is_canonical = step == "0" || !step.starts_with(['0', '+']);
    step.parse().ok().filter(|_| is_canonical)
}

impl Node for Located {
    type Map = BTreeMap<String, Self>;

    fn scalar(scalar: Scalar, at: Marker) -> Result<Self, Problem> {
        let content = if scalar == Scalar::Null { Content::Null } else { Content::Scalar };
        Ok(Self { at, content })
    }

    fn list(items: Vec<Self>, at: Marker) -> Self {
        Self { at, content: Content::List(items) }
    }

    fn map(entries: Self::Map, at: Marker) -> Self {
        Self { at, content: Content::Map(entries) }
    }

    fn insert(entries: &mut Self::Map, key: String, node: Self) {
        entries.insert(key, node);
    }

    fn extend(entries: &mut Self::Map, others: Self::Map) {
        entries.extend(others);
    }

    fn is_map(&self) -> bool {
        matches!(self.content, Content::Map(_))
    }

    fn into_map(self) -> Result<Self::Map, Self> {
        match self.content {
            Content::Map(entries) => Ok(entries),
            content => Err(Self { content, ..self }),
        }
    }

    fn into_list(self) -> Option<Vec<Self>> {
        match self.content {
            Content::List(items) => Some(items),
            _ => None,
        }
    }

    fn moved_to(self, at: Marker) -> Self {
        Self { at, ..self }
    }
}
