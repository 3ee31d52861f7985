//! Nothing panics, whatever the text and the values; text without `$` stays as it is; places are places of `$`;
//! variables make no more of a text than the limit.
//!
//! The lines before a line `---` are the values, in turn; the rest is the text.

#![no_main]

use capstan_manifest::envsubst::{MAX_RENDERED_SIZE, Template, expand};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let (values, text) = input.split_once("\n---\n").unwrap_or(("", input));
    let values: Vec<&str> = values.lines().collect();
    let lookup = |name: &str| {
        let turn = name.bytes().map(usize::from).sum::<usize>() % (values.len() + 1);
        values.get(turn).map(|value| (*value).to_owned())
    };
    match Template::parse(text) {
        Ok(template) => {
            check_places(&template, text);
            let rendered = template.render(&lookup);
            assert!(rendered.iter().all(|it| it.len() <= text.len().max(MAX_RENDERED_SIZE)));
            if !text.contains(['$', '\0']) {
                assert_eq!(rendered.as_deref(), Ok(text));
            }
        }
        Err(error) => {
            assert!(begins_variable(text, error.place.line, error.place.column), "{error}");
            assert!(!error.to_string().is_empty() && error.correction() != Some(String::new()));
        }
    }
    // Without spaces around names, both forms are the same but for what is missing.
    if let Ok(expanded) = expand(text, &lookup) {
        let template = Template::parse(text).expect("what can be expanded can be parsed");
        if let Ok(rendered) = template.render(&lookup) {
            assert!(rendered == expanded || text.contains(char::is_whitespace));
        }
    }
});

fn check_places(template: &Template, text: &str) {
    for variable in template.variables().values().chain(template.nested_variables().values()) {
        assert!(variable.places.is_sorted() && !variable.places.is_empty());
        for place in &variable.places {
            assert!(begins_variable(text, place.line, place.column), "{} at {place}", variable.name);
        }
    }
}

fn begins_variable(text: &str, line: usize, column: usize) -> bool {
    let line = text.split('\n').nth(line - 1).unwrap_or_default();
    line.chars().skip(column - 1).take(2).eq("${".chars())
}
