//! Trees of clusters in many states, as text: from objects to what is printed, without a server.
//!
//! With `CAPSTAN_BLESS=1` the golden files are written anew; look at what changed before you keep it.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod objects;
mod server;
mod states;

use std::{collections::BTreeSet, env, fs, path::PathBuf};

use capstan_inspect::describe::{Node, build, draw, to_value};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::Value;

use crate::{
    server::{options, snapshot},
    states::{State, Upstream, all},
};

fn now() -> Timestamp {
    "2024-01-02T03:04:05Z".parse().unwrap()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/describe/goldens")
}

fn tree(state: &State) -> Node {
    build(&snapshot(state), &options(state))
}

/// The tree as text, with the codes of its colours or without.
fn text(state: &State, in_colours: bool) -> String {
    let mut text = String::new();
    for line in draw(&tree(state), options(state).style, now(), str::to_owned) {
        for (paint, piece) in line {
            match paint.code().filter(|_| in_colours) {
                Some(code) => text.extend(["\u{1b}[", code, "m", &piece, "\u{1b}[0m"]),
                None => text.push_str(&piece),
            }
        }
        text.push('\n');
    }
    text
}

/// Compares with a golden file, or writes it.
fn check(name: &str, text: &str) -> Result<(), String> {
    let file = folder().join(name);
    if env::var_os("CAPSTAN_BLESS").is_some() {
        fs::write(&file, text).unwrap();
        return Ok(());
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    if golden == text { Ok(()) } else { Err(format!("{name}: expected\n{golden}\nbut got\n{text}")) }
}

#[test]
fn every_state_is_drawn_as_it_is_written_down() {
    let states = all();
    let as_upstream = states.iter().filter(|it| it.upstream == Upstream::Same).count();
    assert!(states.len() >= 30 && as_upstream >= 20, "{as_upstream} of {} states", states.len());
    let wrong: Vec<_> = states
        .iter()
        .filter_map(|it| {
            // Blanks at the ends of lines would not survive an editor.
            let text: Vec<String> =
                text(it, false).lines().map(|line| format!("{}\n", line.trim_end())).collect();
            check(&format!("{}.txt", it.name), &text.concat()).err()
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn there_is_a_golden_file_for_every_state_and_no_other() {
    let found: BTreeSet<String> =
        fs::read_dir(folder()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    let mut expected: BTreeSet<String> = all().iter().map(|it| format!("{}.txt", it.name)).collect();
    assert_eq!(expected.len(), all().len(), "two states of one name");
    expected.extend(["coloured.txt".to_owned(), "data.json".to_owned()]);
    assert_eq!(found, expected);
}

fn named(name: &str) -> State {
    all().into_iter().find(|it| it.name == name).unwrap()
}

#[test]
fn colours_and_data_are_as_they_are_written_down() {
    let state = named("conditions-all");
    let coloured = text(&state, true).replace('\u{1b}', "^");
    let lines: Vec<_> = coloured.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    check("coloured.txt", &lines.concat()).unwrap();
    check("data.json", &format!("{:#}\n", to_value(&tree(&named("control-plane-mixed"))))).unwrap();
}

#[test]
fn colours_change_nothing_but_the_looks() {
    for state in all() {
        let coloured = text(&state, true);
        let mut plain = String::new();
        for (index, piece) in coloured.split("\u{1b}[").enumerate() {
            plain.push_str(if index == 0 { piece } else { piece.split_once('m').unwrap().1 });
        }
        assert_eq!(plain, text(&state, false), "{}", state.name);
    }
}

#[test]
fn every_line_is_as_wide_as_the_header() {
    // Letters of other scripts may be wider than one column.
    for state in all().iter().filter(|it| it.name != "messages-of-other-scripts") {
        let text = text(state, false);
        let widths: BTreeSet<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths.len(), 1, "{}: {widths:?}", state.name);
    }
}

fn names(node: &Value, found: &mut Vec<(String, String)>) {
    let text = |key: &str| node[key].as_str().unwrap_or_default().to_owned();
    if let Some(items) = node["items"].as_array() {
        found.extend(items.iter().map(|it| ("Machine".to_owned(), it.as_str().unwrap().to_owned())));
    } else {
        found.push((text("kind"), text("name")));
    }
    for child in node["children"].as_array().into_iter().flatten() {
        names(child, found);
    }
}

#[test]
fn no_machine_is_lost_and_none_is_shown_twice() {
    for state in all() {
        let mut shown = Vec::new();
        names(&to_value(&tree(&state)), &mut shown);
        shown.retain(|it| it.0 == "Machine");
        shown.sort_unstable();
        let machines = state.objects.iter().filter(|it| it["kind"] == "Machine");
        let mut expected: Vec<_> = machines
            .map(|it| ("Machine".to_owned(), it["metadata"]["name"].as_str().unwrap().to_owned()))
            .collect();
        expected.sort_unstable();
        assert_eq!(shown, expected, "{}", state.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// In whichever order a server lists objects, the tree is the same.
    #[test]
    fn the_order_of_lists_is_of_no_importance(index in any::<prop::sample::Index>(), seed in any::<u64>()) {
        let states = all();
        let state = index.get(&states);
        let mut snapshot = snapshot(state);
        let options = options(state);
        let before = build(&snapshot, &options);
        let turn = usize::try_from(seed % 1000).unwrap() % snapshot.objects.len().max(1);
        snapshot.objects.rotate_left(turn);
        if seed % 2 == 0 {
            snapshot.objects.reverse();
        }
        let after = build(&snapshot, &options);
        prop_assert_eq!(draw(&before, options.style, now(), str::to_owned), draw(&after, options.style, now(), str::to_owned));
    }
}
