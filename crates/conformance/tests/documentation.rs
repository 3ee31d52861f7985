//! The user's guide has the rules that there are.

use capstan_conformance::rules::{self, SeenIn};

#[test]
fn the_guide_lists_every_rule_as_it_is() {
    let guide = include_str!("../../../docs/conformance.md");
    let rows: Vec<_> =
        guide.lines().filter(|it| it.starts_with("| ") && !it.starts_with("| rule ")).collect();
    let (files, running): (Vec<_>, Vec<_>) =
        rules::all().into_iter().partition(|it| it.seen_in == SeenIn::Files);
    let expected: Vec<_> = files
        .iter()
        .map(|it| {
            format!("| {} | {} | {} |", it.rule.id, it.rule.level, it.rule.statement.replace('<', "&lt;"))
        })
        .collect();
    assert_eq!(rows, expected, "rewrite the table from `capstan conformance rules -o json`");
    let words: Vec<_> = guide.split(|it: char| it.is_whitespace() || it == '.').collect();
    for rule in running {
        assert!(words.contains(&rule.rule.id), "{} is not in the guide", rule.rule.id);
    }
}
