//! Trees of clusters in many states, from their objects and without a server.
//!
//! With `CAPSTAN_BLESS=1` the golden file is written anew; look at what changed before you keep it.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod objects;
mod server;
#[allow(dead_code, reason = "how upstream draws a state matters to the drawing only")]
mod states;

use std::{env, fs, path::PathBuf};

use capstan_inspect::describe::{Node, build, to_value};
use proptest::prelude::*;
use serde_json::Value;

use crate::{
    server::{options, snapshot},
    states::{State, all},
};

fn tree(state: &State) -> Node {
    build(&snapshot(state), &options(state))
}

#[test]
fn data_is_as_it_is_written_down() {
    let state = all().into_iter().find(|it| it.name == "control-plane-mixed").unwrap();
    let text = format!("{:#}\n", to_value(&tree(&state)));
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/describe/data.json");
    if env::var_os("CAPSTAN_BLESS").is_some() {
        fs::write(&file, &text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(&file).unwrap_or_default());
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
        prop_assert_eq!(before, after);
    }
}
