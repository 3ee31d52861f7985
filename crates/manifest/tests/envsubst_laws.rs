//! What holds for every text with variables.

use capstan_manifest::envsubst::{Template, expand};
use proptest::prelude::*;

/// Texts in which much looks like a variable.
fn any_text() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        6 => prop::sample::select(vec![
            "$", "{", "}", "${", "${A", "${ A }", ":", ":=", ":-", "#", "##", "%", "/", "//", "/#", "\\", "^", ",",
            "1", "-1", "A", "B_2", "é", "日", "*", "?", "[", "]", " ", "\n", "\0", "$$",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop_oneof![
        4 => prop::collection::vec(parts, 0..30).prop_map(|parts| parts.concat()),
        4 => prop::collection::vec(expression(any_word()), 0..4).prop_map(|parts| parts.concat()),
        1 => any::<String>(),
    ]
}

fn any_word() -> BoxedStrategy<String> {
    prop_oneof![3 => "[-0-9]{1,3}", 3 => "[a-c*?]{1,3}", 2 => "[-a-cé日*?\\[\\]\\\\^:/#% $]{1,5}"].boxed()
}

/// A word without any sign of another variable.
fn plain_word() -> BoxedStrategy<String> {
    "[a-z0-9]{1,4}".boxed()
}

/// A well-formed use of a variable around words, or around another variable.
fn expression(word: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    let name = || prop::sample::select(vec!["A", "B", "C_3", "é"]);
    let bare = prop_oneof![
        name().prop_map(|name| format!("${{{name}}}")),
        name().prop_map(|name| format!("${{ {name} }}"))
    ];
    bare.prop_recursive(3, 12, 2, move |inner| {
        let argument = prop_oneof![word.clone(), inner].boxed();
        prop_oneof![
            (name(), prop::sample::select(vec![",", ",,", "^", "^^"]))
                .prop_map(|(name, form)| format!("${{{name}{form}}}")),
            name().prop_map(|name| format!("${{#{name}}}")),
            (
                name(),
                prop::sample::select(vec![":=", "=", ":-", ":?", ":+"]),
                argument.clone(),
                argument.clone()
            )
                .prop_map(|(name, form, first, second)| format!("${{{name}{form}{first}{second}}}")),
            (name(), argument.clone()).prop_map(|(name, position)| format!("${{{name}:{position}}}")),
            (name(), argument.clone(), argument.clone())
                .prop_map(|(name, position, length)| format!("${{{name}:{position}:{length}}}")),
            (name(), prop::sample::select(vec!["#", "##", "%", "%%"]), argument.clone())
                .prop_map(|(name, form, pattern)| format!("${{{name}{form}{pattern}}}")),
            (name(), prop::sample::select(vec!["/", "//", "/#", "/%"]), argument.clone(), argument)
                .prop_map(|(name, form, old, new)| format!("${{{name}{form}{old}/{new}}}")),
        ]
    })
}

/// The characters from a place on.
fn text_at(text: &str, line: usize, column: usize) -> String {
    text.split('\n').nth(line - 1).unwrap_or_default().chars().skip(column - 1).collect()
}

fn begins_with_use_of(text: &str, name: &str) -> bool {
    let Some(inside) = text.strip_prefix("${") else { return false };
    let inside = inside.strip_prefix('#').unwrap_or(inside).trim_start();
    inside
        .strip_prefix(name)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn nothing_panics(text in any_text(), values in prop::collection::vec(prop::option::of(any_text()), 1..5)) {
        let lookup = |name: &str| values.get(name.len() % values.len()).cloned().flatten();
        match Template::parse(&text) {
            // What happens to the values is for other tests; here it only must come to an end.
            Ok(template) => drop(template.render(&lookup)),
            Err(error) => drop((error.to_string(), error.correction())),
        }
        drop(expand(&text, &lookup));
    }

    #[test]
    fn text_without_variables_stays(text in "[^$\0]*") {
        let template = Template::parse(&text).unwrap();
        prop_assert!(template.variables().is_empty());
        prop_assert_eq!(template.render(&|_| None), Ok(text));
    }

    #[test]
    fn what_is_rendered_has_no_variables(
        parts in prop::collection::vec(prop_oneof![expression(plain_word()), "[^$\0]{0,5}"], 0..5),
        value in "[^$\0]{1,8}",
    ) {
        let Ok(template) = Template::parse(&parts.concat()) else { return Err(TestCaseError::reject("not a template")) };
        let Ok(once) = template.render(&|_| Some(value.clone())) else { return Err(TestCaseError::reject("cut value")) };
        let rendered = Template::parse(&once).unwrap();
        prop_assert!(rendered.variables().is_empty());
        prop_assert_eq!(rendered.render(&|_| None), Ok(once));
    }

    #[test]
    fn places_are_those_of_uses(text in any_text()) {
        let Ok(template) = Template::parse(&text) else { return Ok(()) };
        let all = template.variables().iter().chain(template.nested_variables());
        for (name, variable) in all {
            prop_assert_eq!(name, &variable.name);
            prop_assert!(!variable.places.is_empty());
            prop_assert!(variable.places.is_sorted());
            for place in &variable.places {
                let found = text_at(&text, place.line, place.column);
                let across_lines = text.split('\n').skip(place.line).fold(found, |found, line| found + "\n" + line);
                prop_assert!(begins_with_use_of(&across_lines, name), "{name} at {place} of {text:?}");
            }
        }
    }
}
