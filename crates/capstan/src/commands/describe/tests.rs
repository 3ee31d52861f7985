//! Trees of clusters in many states as text, without a server.
//!
//! With `CAPSTAN_BLESS=1` the golden files are written again; review what changed.

#[allow(dead_code, reason = "not everybody needs all of it")]
#[path = "../../../../inspect/tests/describe/objects.rs"]
mod objects;
#[allow(dead_code, reason = "the flags of a state are read as the command line reads them")]
#[path = "../../../../inspect/tests/describe/server.rs"]
mod server;
#[path = "../../../../inspect/tests/describe/states.rs"]
mod states;

use std::{collections::BTreeSet, env, fs, path::PathBuf};

use capstan_inspect::describe::build;
use jiff::Timestamp;

use self::{
    server::snapshot,
    states::{State, Upstream, all},
};
use super::draw::draw;
use crate::{
    cli::{Cli, Command, describe::Describe},
    printer::Text,
};

/// The text of a state as its flags ask for it.
fn text(state: &State) -> Text {
    let words = ["capstan", "describe", "cluster", "prod"].into_iter().chain(state.flags.split_whitespace());
    let Command::Describe(args) = Cli::read(words).unwrap().command else { panic!("{}", state.flags) };
    let Describe::Cluster(args) = args.what;
    let now: Timestamp = "2024-01-02T03:04:05Z".parse().unwrap();
    let tree = build(&snapshot(state), &args.options());
    draw(&tree, args.options().style, &args.show_conditions, now)
}

fn plain(state: &State) -> String {
    text(state).plain()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/described/goldens")
}

/// Compares with a golden file, or writes it. Blanks at the ends of lines would not survive an editor.
fn check(name: &str, text: &str) -> Result<(), String> {
    let text: Vec<String> = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    let text = text.concat();
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
    let wrong: Vec<_> =
        states.iter().filter_map(|it| check(&format!("{}.txt", it.name), &plain(it)).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn there_is_a_golden_file_for_every_state_and_no_other() {
    let found: BTreeSet<String> =
        fs::read_dir(folder()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    let mut expected: BTreeSet<String> = all().iter().map(|it| format!("{}.txt", it.name)).collect();
    assert_eq!(expected.len(), all().len(), "two states of one name");
    expected.insert("coloured.txt".to_owned());
    assert_eq!(found, expected);
}

#[test]
fn colours_are_as_they_are_written_down() {
    let state = all().into_iter().find(|it| it.name == "conditions-all").unwrap();
    let lines: Vec<String> = text(&state).lines().map(|line| line.replace('\u{1b}', "^")).collect();
    check("coloured.txt", &lines.join("\n")).unwrap();
}

#[test]
fn every_line_is_as_wide_as_the_header() {
    // Letters of other scripts may be wider than one column.
    for state in all().iter().filter(|it| it.name != "messages-of-other-scripts") {
        let text = plain(state);
        let widths: BTreeSet<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths.len(), 1, "{}: {widths:?}", state.name);
    }
}
