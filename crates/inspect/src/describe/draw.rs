//! From a tree to text.

use jiff::Timestamp;

use crate::human_duration;

use super::{
    Condition, ConditionStyle, Node, NodeKind, Shown,
    condition::{AVAILABLE, READY},
    paragraph,
    table::{Lines, Paint, Text, render},
};

const BRANCH: &str = "├─";
const LAST_BRANCH: &str = "└─";
const PIPE: &str = "│ ";
const INDENT: &str = "  ";
/// Conditions stand further in than objects.
const FILLER: &str = "          ";

const HEADER: [&str; 9] =
    ["NAME", "REPLICAS", "AVAILABLE", "READY", "UP TO DATE", "STATUS", "REASON", "SINCE", "MESSAGE"];
const LEGACY_HEADER: [&str; 6] = ["NAME", "READY", "SEVERITY", "REASON", "SINCE", "MESSAGE"];
/// Where a legacy message is cut.
const LEGACY_MESSAGE: usize = 100;

/// The tree as a table. All text of its cells is escaped by the caller's rules before it is measured.
pub fn draw(root: &Node, style: ConditionStyle, now: Timestamp, escape: fn(&str) -> String) -> Lines {
    let (mut rows, mut legacy_rows) = (Vec::new(), Vec::new());
    walk(root, &[], &mut |node, place| match style {
        ConditionStyle::Current => add_rows(node, place, now, &mut rows),
        ConditionStyle::Legacy => add_legacy_rows(node, place, now, &mut legacy_rows),
    });
    match style {
        ConditionStyle::Current => render(HEADER, &rows, 2, escape),
        ConditionStyle::Legacy => render(LEGACY_HEADER, &legacy_rows, 1, escape),
    }
}

/// Where a node is: for every level from the top whether it is the last one there.
type Place<'a> = &'a [bool];

fn walk(node: &Node, place: Place<'_>, visit: &mut impl FnMut(&Node, Place<'_>)) {
    visit(node, place);
    let count = node.children.len();
    for (index, child) in node.children.iter().enumerate() {
        let below = [place, &[index + 1 == count]].concat();
        walk(child, &below, visit);
    }
}

fn lines_above(place: Place<'_>) -> String {
    place.iter().map(|is_last| if *is_last { INDENT } else { PIPE }).collect()
}

fn prefix(place: Place<'_>) -> String {
    match place.split_last() {
        None => String::new(),
        Some((is_last, above)) => lines_above(above) + if *is_last { LAST_BRANCH } else { BRANCH },
    }
}

/// What stands before the further lines of a node's message.
fn continuation(node: &Node, place: Place<'_>) -> String {
    let is_end = node.children.is_empty() && place.iter().all(|is_last| *is_last);
    match (is_end, node.children.is_empty()) {
        (true, _) => String::new(),
        (false, true) => lines_above(place),
        (false, false) => lines_above(place) + PIPE,
    }
}

/// What stands before a node's conditions, but for the branch.
fn before_conditions(node: &Node, place: Place<'_>) -> String {
    lines_above(place) + if node.children.is_empty() { INDENT } else { PIPE } + FILLER
}

fn title(node: &Node) -> Text {
    match &node.what {
        NodeKind::Group(_) => Text::new(Paint::BoldWhite, node.title()),
        NodeKind::Virtual => Text::plain(node.title()),
        NodeKind::Object => {
            let deleted = if node.is_deleting { "!! DELETED !!" } else { "" };
            let gap = if node.is_deleting { " " } else { "" };
            let version = node.version.as_ref().map(|it| format!(", {it}")).unwrap_or_default();
            Text::new(Paint::Red, deleted)
                .and(Paint::Plain, format!("{gap}{} ", node.kind))
                .and(Paint::Bold, node.full_name())
                .and(Paint::Plain, version)
        }
    }
}

/// Which Machines are in a group, as far as there is room.
fn members(items: &[String]) -> String {
    match items {
        [one, other, _, ..] => format!("See {one}, {other}, ..."),
        items => format!("See {}", items.join(", ")),
    }
}

fn age(condition: &Condition, now: Timestamp) -> String {
    condition.since.map(|since| human_duration(since, now)).unwrap_or_default()
}

fn number(figure: Option<i64>) -> Text {
    Text::plain(figure.map(|it| it.to_string()).unwrap_or_default())
}

fn paint(condition: &Condition) -> Paint {
    match (condition.status.as_str(), condition.is_negative()) {
        ("True", false) | ("False", true) => Paint::Green,
        ("True", true) | ("False", false) | ("Missing", _) => Paint::Red,
        ("Unknown", _) => Paint::Yellow,
        _ => Paint::Grey,
    }
}

/// The cells from STATUS to the first line of MESSAGE, and the further lines.
fn verdict(condition: &Condition, now: Timestamp) -> ([Text; 4], Vec<String>) {
    let mut lines = paragraph::lines(&condition.message).into_iter();
    let first = lines.next().unwrap_or_default();
    let cells = [
        Text::new(paint(condition), &condition.status),
        Text::plain(&condition.reason),
        Text::plain(age(condition, now)),
        Text::plain(first),
    ];
    (cells, lines.collect())
}

fn only_message(before: String, message: String) -> [Text; 9] {
    let mut row: [Text; 9] = Default::default();
    row[0] = Text::new(Paint::Grey, before);
    row[8] = Text::plain(message);
    row
}

fn add_rows(node: &Node, place: Place<'_>, now: Timestamp, rows: &mut Vec<[Text; 9]>) {
    let shown = if node.unreadable.is_some() { Shown::Summary } else { node.shown };
    let summary = node.summary.as_ref().filter(|_| shown == Shown::Summary);
    let ([status, reason, since, mut message], more) = summary.map(|it| verdict(it, now)).unwrap_or_default();
    if let NodeKind::Group(items) = &node.what {
        message = Text::new(Paint::Grey, members(items));
    }
    let figures = &node.figures;
    rows.push([
        Text::new(Paint::Grey, prefix(place)).followed_by(title(node)),
        Text::plain(figures.replicas()),
        number(figures.available),
        number(figures.ready),
        number(figures.up_to_date),
        status,
        reason,
        since,
        message,
    ]);
    rows.extend(more.into_iter().map(|line| only_message(continuation(node, place), line)));
    if shown != Shown::Summary {
        add_conditions(node, place, now, shown, rows);
    }
}

fn add_conditions(node: &Node, place: Place<'_>, now: Timestamp, shown: Shown, rows: &mut Vec<[Text; 9]>) {
    let always = [AVAILABLE, READY];
    let is_shown =
        |it: &&Condition| shown == Shown::All || always.contains(&it.type_.as_str()) || !it.is_zero();
    let conditions: Vec<_> = node.conditions.iter().filter(is_shown).collect();
    let before = before_conditions(node, place);
    for (index, condition) in conditions.iter().enumerate() {
        let is_last = index + 1 == conditions.len();
        let (branch, below) = if is_last { (LAST_BRANCH, "") } else { (BRANCH, PIPE) };
        let ([status, reason, since, message], more) = verdict(condition, now);
        let name = Text::new(Paint::Grey, format!("{before}{branch}")).and(Paint::Cyan, &condition.type_);
        let [replicas, available, ready, up_to_date] = <[Text; 4]>::default();
        rows.push([name, replicas, available, ready, up_to_date, status, reason, since, message]);
        rows.extend(more.into_iter().map(|line| only_message(format!("{before}{below}"), line)));
    }
}

fn legacy_paint(condition: &Condition) -> Paint {
    match (condition.status.as_str(), condition.severity.as_str()) {
        ("True", _) => Paint::Green,
        ("False" | "Unknown" | "Missing", "Error") => Paint::Red,
        ("False" | "Unknown", "Warning") => Paint::Yellow,
        ("False" | "Unknown", _) => Paint::White,
        _ => Paint::Grey,
    }
}

fn add_legacy_rows(node: &Node, place: Place<'_>, now: Timestamp, rows: &mut Vec<[Text; 6]>) {
    let name = Text::new(Paint::Grey, prefix(place)).followed_by(title(node));
    let message = match &node.what {
        NodeKind::Group(items) => Some(Text::new(Paint::Grey, members(items))),
        _ => None,
    };
    add_legacy(name, node.summary.as_ref(), message.as_ref(), now, rows);
    if node.shown == Shown::Summary {
        return;
    }
    let mut others: Vec<_> = node.conditions.iter().filter(|it| it.type_ != READY).collect();
    others.sort_by(|one, other| one.type_.cmp(&other.type_));
    let before = before_conditions(node, place);
    for (index, condition) in others.iter().enumerate() {
        let branch = if index + 1 == others.len() { LAST_BRANCH } else { BRANCH };
        let name = Text::new(Paint::Grey, format!("{before}{branch}")).and(Paint::Cyan, &condition.type_);
        add_legacy(name, Some(condition), None, now, rows);
    }
}

/// Rows for a legacy condition; lines of its message that follow the first one stand alone.
fn add_legacy(
    name: Text,
    condition: Option<&Condition>,
    message: Option<&Text>,
    now: Timestamp,
    rows: &mut Vec<[Text; 6]>,
) {
    let nothing = Condition::default();
    let condition = condition.unwrap_or(&nothing);
    let painted = |text: &str| Text::new(legacy_paint(condition), text);
    let cut = cut(&condition.message).replace('\t', "    ");
    let mut lines = cut.split('\n').map(Text::plain);
    let first = lines.next().unwrap_or_default();
    rows.push([
        name,
        painted(&condition.status),
        painted(&condition.severity),
        painted(&condition.reason),
        Text::plain(age(condition, now)),
        message.cloned().unwrap_or(first),
    ]);
    if message.is_none() {
        rows.extend(lines.map(|line| {
            let [name, status, severity, reason, since] = <[Text; 5]>::default();
            [name, status, severity, reason, since, line]
        }));
    }
}

fn cut(message: &str) -> String {
    if message.len() <= LEGACY_MESSAGE {
        return message.to_owned();
    }
    let end = (0..=LEGACY_MESSAGE).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
    format!("{} ...", &message[..end])
}
