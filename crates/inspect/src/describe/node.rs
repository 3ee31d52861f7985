//! One line of the tree and what hangs below it.

use super::{Condition, Figures};

/// Why something could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadReason {
    /// The object does not exist.
    NotFound,
    /// Its kind is not installed.
    NoSuchKind,
    /// The user may not look at it.
    Forbidden,
    /// The server could not answer.
    ServerError,
    /// Its conditions break the rules for conditions.
    Malformed,
}

impl UnreadReason {
    /// One word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "NotFound",
            Self::NoSuchKind => "NoSuchKind",
            Self::Forbidden => "Forbidden",
            Self::ServerError => "ServerError",
            Self::Malformed => "Malformed",
        }
    }
}

/// What could not be read of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadNode {
    /// Why, for a program.
    pub why: UnreadReason,
    /// Why, for a person.
    pub message: String,
}

/// What a node stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// An object.
    Object,
    /// Nothing but its children.
    Virtual,
    /// Machines that are in the same state, by their names.
    Group(Vec<String>),
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it stands for.
    pub what: NodeKind,
    /// Group and version, where it is known.
    pub api_version: Option<String>,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The part that it plays, such as `ClusterInfrastructure`.
    pub role: Option<&'static str>,
    /// The Kubernetes version that is asked for; empty where there could be one.
    pub version: Option<String>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Its replicas.
    pub figures: Figures,
    /// The condition that sums it up.
    pub summary: Option<Condition>,
    /// All of its conditions.
    pub conditions: Vec<Condition>,
    /// Why it could not be read, or not wholly.
    pub unreadable: Option<UnreadNode>,
    /// Whether it comes before its siblings, whatever its name.
    pub is_first: bool,
    /// What hangs below it.
    pub children: Vec<Node>,
}

impl Node {
    /// One without anything.
    pub(super) fn new(what: NodeKind, kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            what,
            api_version: None,
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            role: None,
            version: None,
            is_deleting: false,
            figures: Figures::default(),
            summary: None,
            conditions: Vec::new(),
            unreadable: None,
            is_first: false,
            children: Vec::new(),
        }
    }

    /// One that stands for nothing but its children.
    pub(super) fn group_of(kind: &str, namespace: &str, name: &str, children: Vec<Self>) -> Self {
        Self { children, ..Self::new(NodeKind::Virtual, kind, namespace, name) }
    }

    /// Its title in four parts: the mark of a deletion, the kind, the name, and the version. Siblings are ordered by it.
    pub fn title(&self) -> [String; 4] {
        let whole = |text: String| [String::new(), String::new(), text, String::new()];
        match &self.what {
            NodeKind::Group(items) => whole(format!("{} Machines...", items.len())),
            NodeKind::Virtual => whole(self.role.unwrap_or(&self.name).to_owned()),
            NodeKind::Object => {
                let (mark, gap) = if self.is_deleting { ("!! DELETED !!", " ") } else { ("", "") };
                let namespace = if self.namespace.is_empty() { "" } else { &format!("{}/", self.namespace) };
                let version = self.version.as_ref().map(|it| format!(", {it}")).unwrap_or_default();
                [
                    mark.to_owned(),
                    format!("{gap}{} ", self.kind),
                    format!("{namespace}{}", self.name),
                    version,
                ]
            }
        }
    }

    /// Orders all that hangs below it.
    pub(super) fn ordered(mut self) -> Self {
        self.children = self.children.into_iter().map(Self::ordered).collect();
        self.children.sort_by_cached_key(|it| {
            let items = if let NodeKind::Group(items) = &it.what { items.clone() } else { Vec::new() };
            (!it.is_first, it.title().concat(), items, it.namespace.clone())
        });
        self
    }
}
