//! From a tree to text.

use capstan_inspect::{
    describe::{AVAILABLE, Condition, ConditionStyle, Figures, Node, NodeKind, READY},
    human_duration,
};
use jiff::Timestamp;

use super::{
    paragraph,
    table::{Cell, Paint, render},
};
use crate::{
    cli::show_conditions::{ShowConditions, Shown},
    printer::Text,
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

/// The tree as a table.
pub(super) fn draw(root: &Node, style: ConditionStyle, show: &ShowConditions, now: Timestamp) -> Text {
    let (mut rows, mut legacy_rows) = (Vec::new(), Vec::new());
    walk(root, &[], &mut |node, place| {
        let shown = shown(node, show);
        match style {
            ConditionStyle::Current => add_rows(node, place, shown, now, &mut rows),
            ConditionStyle::Legacy => add_legacy_rows(node, place, shown, now, &mut legacy_rows),
        }
    });
    match style {
        ConditionStyle::Current => render(HEADER, &rows, 2),
        ConditionStyle::Legacy => render(LEGACY_HEADER, &legacy_rows, 1),
    }
}

/// Which conditions of a node are shown: nodes that are no objects, or that could not be read, have only a summary.
fn shown(node: &Node, show: &ShowConditions) -> Shown {
    match node.what {
        NodeKind::Object if node.unreadable.is_none() => show.of(&node.kind, &node.name),
        _ => Shown::Summary,
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

fn name_cell(node: &Node, place: Place<'_>) -> Cell {
    let paints = match &node.what {
        NodeKind::Group(_) => [Paint::Plain, Paint::Plain, Paint::BoldWhite, Paint::Plain],
        NodeKind::Virtual => [Paint::Plain; 4],
        NodeKind::Object => [Paint::Red, Paint::Plain, Paint::Bold, Paint::Plain],
    };
    let branch = Cell::new(Paint::Grey, prefix(place));
    paints.into_iter().zip(node.title()).fold(branch, |text, (paint, part)| text.and(paint, part))
}

/// Which Machines are in a group, as far as there is room.
fn members(items: &[String]) -> String {
    match items {
        [one, other, _, ..] => format!("See {one}, {other}, ..."),
        items => format!("See {}", items.join(", ")),
    }
}

/// Replicas as `current/desired`.
fn replicas(figures: &Figures) -> String {
    match (figures.current, figures.desired) {
        (current, Some(desired)) => format!("{}/{desired}", current.unwrap_or(0)),
        (Some(current), None) => current.to_string(),
        (None, None) => String::new(),
    }
}

fn age(condition: &Condition, now: Timestamp) -> String {
    condition.since.map(|since| human_duration(since, now)).unwrap_or_default()
}

fn number(figure: Option<i64>) -> Cell {
    Cell::plain(figure.map(|it| it.to_string()).unwrap_or_default())
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
fn verdict(condition: &Condition, now: Timestamp) -> ([Cell; 4], Vec<String>) {
    let mut lines = paragraph::lines(&condition.message).into_iter();
    let first = lines.next().unwrap_or_default();
    let cells = [
        Cell::new(paint(condition), &condition.status),
        Cell::plain(&condition.reason),
        Cell::plain(age(condition, now)),
        Cell::plain(first),
    ];
    (cells, lines.collect())
}

fn only_message(before: String, message: String) -> [Cell; 9] {
    let mut row: [Cell; 9] = Default::default();
    row[0] = Cell::new(Paint::Grey, before);
    row[8] = Cell::plain(message);
    row
}

/// Whether a condition is as it should be and has no message.
fn is_zero(condition: &Condition) -> bool {
    let normal = if condition.is_negative() { "False" } else { "True" };
    condition.status == normal && condition.message.is_empty()
}

fn add_rows(node: &Node, place: Place<'_>, shown: Shown, now: Timestamp, rows: &mut Vec<[Cell; 9]>) {
    let summary = node.summary.as_ref().filter(|_| shown == Shown::Summary);
    let ([status, reason, since, mut message], more) = summary.map(|it| verdict(it, now)).unwrap_or_default();
    if let NodeKind::Group(items) = &node.what {
        message = Cell::new(Paint::Grey, members(items));
    }
    let figures = &node.figures;
    rows.push([
        name_cell(node, place),
        Cell::plain(replicas(figures)),
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

fn add_conditions(node: &Node, place: Place<'_>, now: Timestamp, shown: Shown, rows: &mut Vec<[Cell; 9]>) {
    let always = [AVAILABLE, READY];
    let is_shown =
        |it: &&Condition| shown == Shown::All || always.contains(&it.type_.as_str()) || !is_zero(it);
    let conditions: Vec<_> = node.conditions.iter().filter(is_shown).collect();
    let before = before_conditions(node, place);
    for (index, condition) in conditions.iter().enumerate() {
        let is_last = index + 1 == conditions.len();
        let (branch, below) = if is_last { (LAST_BRANCH, "") } else { (BRANCH, PIPE) };
        let ([status, reason, since, message], more) = verdict(condition, now);
        let name = Cell::new(Paint::Grey, format!("{before}{branch}")).and(Paint::Cyan, &condition.type_);
        let [replicas, available, ready, up_to_date] = <[Cell; 4]>::default();
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

fn add_legacy_rows(node: &Node, place: Place<'_>, shown: Shown, now: Timestamp, rows: &mut Vec<[Cell; 6]>) {
    let message = match &node.what {
        NodeKind::Group(items) => Some(Cell::new(Paint::Grey, members(items))),
        _ => None,
    };
    add_legacy(name_cell(node, place), node.summary.as_ref(), message.as_ref(), now, rows);
    if shown == Shown::Summary {
        return;
    }
    let mut others: Vec<_> = node.conditions.iter().filter(|it| it.type_ != READY).collect();
    others.sort_by(|one, other| one.type_.cmp(&other.type_));
    let before = before_conditions(node, place);
    for (index, condition) in others.iter().enumerate() {
        let branch = if index + 1 == others.len() { LAST_BRANCH } else { BRANCH };
        let name = Cell::new(Paint::Grey, format!("{before}{branch}")).and(Paint::Cyan, &condition.type_);
        add_legacy(name, Some(condition), None, now, rows);
    }
}

/// Rows for a legacy condition; lines of its message that follow the first one stand alone.
fn add_legacy(
    name: Cell,
    condition: Option<&Condition>,
    message: Option<&Cell>,
    now: Timestamp,
    rows: &mut Vec<[Cell; 6]>,
) {
    let nothing = Condition::default();
    let condition = condition.unwrap_or(&nothing);
    let painted = |text: &str| Cell::new(legacy_paint(condition), text);
    let cut = cut(&condition.message).replace('\t', "    ");
    let mut lines = cut.split('\n').map(Cell::plain);
    let first = lines.next().unwrap_or_default();
    rows.push([
        name,
        painted(&condition.status),
        painted(&condition.severity),
        painted(&condition.reason),
        Cell::plain(age(condition, now)),
        message.cloned().unwrap_or(first),
    ]);
    if message.is_none() {
        rows.extend(lines.map(|line| {
            let [name, status, severity, reason, since] = <[Cell; 5]>::default();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_as_it_should_be_has_nothing_to_tell() {
        for (type_, status, message, expected) in [
            ("Ready", "True", "", true),
            ("Ready", "True", "m", false),
            ("Ready", "False", "", false),
            ("Ready", "Unknown", "", false),
            ("Paused", "False", "", true),
            ("Paused", "True", "", false),
            ("Paused", "Unknown", "", false),
        ] {
            let condition = Condition {
                type_: type_.to_owned(),
                status: status.to_owned(),
                message: message.to_owned(),
                ..Condition::default()
            };
            assert_eq!(is_zero(&condition), expected, "{condition:?}");
        }
    }

    #[test]
    fn replicas_stand_beside_those_that_are_wanted() {
        for (current, desired, expected) in
            [(None, None, ""), (Some(3), Some(3), "3/3"), (None, Some(2), "0/2"), (Some(1), None, "1")]
        {
            assert_eq!(replicas(&Figures { current, desired, ..Figures::default() }), expected);
        }
    }
}
