//! Machines in the same state become one node.

use super::{
    Condition, ConditionStyle, Figures, Node, NodeKind, UnreadReason,
    condition::{AVAILABLE, READY, UP_TO_DATE, find},
};

type Verdict = Option<(String, String, String)>;

/// Machines that are in the same state as another become a group with it.
///
/// A Machine whose objects are gone stays visible: that is worth a look, whatever its conditions say.
pub(super) fn group(machines: Vec<Node>, style: ConditionStyle) -> Vec<Node> {
    let mut states: Vec<([Verdict; 3], Vec<Node>)> = Vec::new();
    let mut nodes = Vec::new();
    for machine in machines {
        if machine.children.iter().any(is_gone) {
            nodes.push(machine);
            continue;
        }
        let state = state(&machine, style);
        match states.iter_mut().find(|(other, _)| *other == state) {
            Some((_, members)) => members.push(machine),
            None => states.push((state, vec![machine])),
        }
    }
    for (_, mut members) in states {
        match members.len() {
            1 => nodes.append(&mut members),
            _ => nodes.push(together(&members)),
        }
    }
    nodes
}

fn is_gone(node: &Node) -> bool {
    node.unreadable.as_ref().is_some_and(|it| it.why == UnreadReason::NotFound)
}

fn state(machine: &Node, style: ConditionStyle) -> [Verdict; 3] {
    let verdict = |type_: &str| find(&machine.conditions, type_).map(Condition::verdict);
    match style {
        ConditionStyle::Current => [verdict(AVAILABLE), verdict(READY), verdict(UP_TO_DATE)],
        ConditionStyle::Legacy => [verdict(READY), None, None],
    }
}

fn together(members: &[Node]) -> Node {
    let mut names: Vec<String> = members.iter().map(|it| it.name.clone()).collect();
    names.sort_unstable();
    let namespace = members.first().map(|it| it.namespace.as_str()).unwrap_or_default();
    let summaries = members.iter().filter_map(|it| it.summary.as_ref());
    let oldest = summaries.clone().filter_map(|it| it.since).min();
    let summary =
        summaries.clone().next().map(|it| Condition { message: String::new(), since: oldest, ..it.clone() });
    Node {
        figures: Figures::sum(members.iter().map(|it| it.figures)),
        summary,
        ..Node::new(NodeKind::Group(names), "MachineGroup", namespace, "")
    }
}
