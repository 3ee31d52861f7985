//! Flags of a container's command line.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Flags with values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    by_key: BTreeMap<String, Flag>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Flag {
    name: String,
    value: String,
}

/// What makes two names one flag: Kubernetes programs accept `_` for `-`.
pub(super) fn key(name: &str) -> String {
    name.replace('_', "-")
}

/// Whether a name is that of the flag that restricts a manager to one namespace.
pub(super) fn is_namespace(name: &str) -> bool {
    key(name) == "namespace"
}

/// The name of a flag that is written with or without leading dashes.
pub(super) fn name(text: &str) -> Option<&str> {
    let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-')).unwrap_or(text);
    let is_name =
        !name.is_empty() && !name.starts_with('-') && !name.contains(|c: char| c == '=' || c.is_whitespace());
    is_name.then_some(name)
}

impl Flags {
    pub(super) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Sets a flag, in place of one of the same name.
    pub(super) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.by_key.insert(key(name), Flag { name: name.to_owned(), value: value.into() });
    }

    /// The value of a flag.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.by_key.get(&key(name)).map(|flag| flag.value.as_str())
    }

    /// Sets all flags that others have.
    pub(super) fn extend(&mut self, others: &Self) {
        self.by_key.extend(others.by_key.iter().map(|(key, flag)| (key.clone(), flag.clone())));
    }

    /// Writes the flags to a container, each once: in its first place where the container has it, else at the end of
    /// the args. `None` says that the args are no list.
    pub(super) fn write(&self, container: &mut Map<String, Value>) -> Option<()> {
        let mut written = BTreeSet::new();
        for (field, skipped) in WORDS {
            if let Some(words) = container.get_mut(field).and_then(Value::as_array_mut) {
                self.replace(words, skipped, &mut written);
            }
        }
        let new = self.by_key.iter().filter(|(key, _)| !written.contains(*key));
        let new: Vec<Value> =
            new.map(|(_, flag)| Value::from(format!("--{}={}", flag.name, flag.value))).collect();
        if !new.is_empty() {
            let args = container.entry("args").or_insert(Value::Null);
            if args.is_null() {
                *args = Value::Array(Vec::new());
            }
            args.as_array_mut()?.extend(new);
        }
        Some(())
    }

    fn replace(&self, words: &mut Vec<Value>, skipped: usize, written: &mut BTreeSet<String>) {
        let mut rest = std::mem::take(words).into_iter().peekable();
        words.extend(rest.by_ref().take(skipped));
        while let Some(word) = rest.next() {
            let Some((found, flag)) =
                Word::read(&word).and_then(|it| Some((it, self.by_key.get(&key(it.name()))?)))
            else {
                words.push(word);
                continue;
            };
            if found.value.is_none() && rest.peek().is_some_and(|next| flag.may_replace(next)) {
                rest.next();
            }
            if written.insert(key(found.name())) {
                words.push(Value::from(format!("{}={}", found.spelling, flag.value)));
            }
        }
    }
}

impl Flag {
    /// Whether the word after the bare flag is its value. Behind a boolean flag it may be a subcommand as well.
    fn may_replace(&self, next: &Value) -> bool {
        let is_boolean = |text: &str| matches!(text, "true" | "false");
        let value = next.as_str().filter(|text| !text.starts_with('-'));
        value.is_some_and(|text| is_boolean(text) || !is_boolean(&self.value))
    }
}

/// The fields of a container with the words of its command line, and how many words come before its flags: the first
/// word of a command is the program.
const WORDS: [(&str, usize); 2] = [("command", 1), ("args", 0)];

/// The values that a container's command line gives to a flag.
pub(super) fn values<'a>(container: &'a Map<String, Value>, name: &str) -> Vec<&'a str> {
    let mut values = Vec::new();
    for (field, skipped) in WORDS {
        let words = container.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (at, word) in words.iter().enumerate().skip(skipped) {
            let flag = Word::read(word).filter(|it| key(it.name()) == key(name));
            let next = || words.get(at + 1)?.as_str().filter(|text| !text.starts_with('-'));
            values.extend(flag.and_then(|it| it.value.or_else(next)));
        }
    }
    values
}

/// A word that is a flag: `--name`, `--name=value`, or the same with one dash.
#[derive(Clone, Copy)]
struct Word<'a> {
    /// The dashes and the name.
    spelling: &'a str,
    value: Option<&'a str>,
}

impl<'a> Word<'a> {
    fn read(word: &'a Value) -> Option<Self> {
        let text = word.as_str().filter(|text| text.starts_with('-'))?;
        let (spelling, value) =
            text.split_once('=').map_or((text, None), |(flag, value)| (flag, Some(value)));
        name(spelling).map(|_| Self { spelling, value })
    }

    fn name(self) -> &'a str {
        self.spelling.trim_start_matches('-')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Flags, written like `a=1 b=2`.
    fn flags(text: &str) -> Flags {
        let mut flags = Flags::default();
        for (name, value) in text.split_whitespace().filter_map(|flag| flag.split_once('=')) {
            flags.set(name, value);
        }
        flags
    }

    #[test]
    fn names_are_read_with_or_without_dashes() {
        for (text, expected) in [
            ("awscluster-concurrency", Some("awscluster-concurrency")),
            ("--awscluster-concurrency", Some("awscluster-concurrency")),
            ("-v", Some("v")),
            ("v", Some("v")),
            ("feature_gates", Some("feature_gates")),
            ("", None),
            ("-", None),
            ("--", None),
            ("---v", None),
            ("--v=5", None),
            ("--sync period", None),
        ] {
            assert_eq!(name(text), expected, "{text:?}");
        }
    }

    #[test]
    fn every_flag_appears_once_in_its_first_place() {
        // Args, flags to set, and the args after that.
        for (before, set, after) in [
            ("--x", "", "--x"),
            // New flags come last, sorted.
            ("--x=1", "b=2 a=1 c=", "--x=1 --a=1 --b=2 --c="),
            ("--a=1 --x --b=2", "a=9 b=8", "--a=9 --x --b=8"),
            // The bare form, and the form in two words.
            ("--leader-elect --x", "leader-elect=false", "--leader-elect=false --x"),
            ("--x --sync-period 10m --y", "sync-period=5s", "--x --sync-period=5s --y"),
            ("--sync-period --y", "sync-period=5s", "--sync-period=5s --y"),
            ("--leader-elect true run", "leader-elect=false", "--leader-elect=false run"),
            ("--leader-elect run", "leader-elect=false", "--leader-elect=false run"),
            ("--v", "v=5", "--v=5"),
            // Duplicates.
            ("--v=1 --x -v 2 --v --v=3", "v=5", "--v=5 --x"),
            ("--a=1 --b --a=2 x", "a=9", "--a=9 --b x"),
            // The manifest's spelling stays.
            ("-v=1", "v=5", "-v=5"),
            ("-v 1", "v=5", "-v=5"),
            ("-metrics-addr=:1", "metrics-addr=:2", "-metrics-addr=:2"),
            ("--feature_gates=A=true", "feature-gates=B=true", "--feature_gates=B=true"),
            ("--sync-period=1s", "sync_period=2s", "--sync-period=2s"),
            // What only looks alike.
            ("--v2=1 v=1 --vv v - -- --=1", "v=5", "--v2=1 v=1 --vv v - -- --=1 --v=5"),
            ("--sync-period-max=1s", "sync-period=5s", "--sync-period-max=1s --sync-period=5s"),
            ("--x=a=b", "x=c=d", "--x=c=d"),
        ] {
            let words = |text: &str| json!(text.split_whitespace().collect::<Vec<_>>());
            let flags = flags(set);
            let mut container = json!({"args": words(before)}).as_object().unwrap().clone();
            for round in ["once", "twice"] {
                flags.write(&mut container).unwrap();
                assert_eq!(container["args"], words(after), "{before:?} {set:?} {round}");
            }
        }
    }

    #[test]
    fn flags_of_the_command_stay_there() {
        for (before, after) in [
            (json!({"command": ["/manager", "--v=1"]}), json!({"command": ["/manager", "--v=5"]})),
            (
                json!({"command": ["/manager", "--v", "1"], "args": ["-v=3", "--x"]}),
                json!({"command": ["/manager", "--v=5"], "args": ["--x"]}),
            ),
            (
                json!({"command": ["/tini", "--", "/manager", "--v=0"]}),
                json!({"command": ["/tini", "--", "/manager", "--v=5"]}),
            ),
            (json!({"command": ["-v"]}), json!({"command": ["-v"], "args": ["--v=5"]})),
            (json!({}), json!({"args": ["--v=5"]})),
            (json!({"args": null}), json!({"args": ["--v=5"]})),
            (json!({"args": [5, null]}), json!({"args": [5, null, "--v=5"]})),
        ] {
            let mut container = before.as_object().unwrap().clone();
            assert_eq!(flags("v=5").write(&mut container), Some(()));
            assert_eq!(Value::Object(container), after, "{before}");
        }
        let mut container = json!({"args": "--v=1"}).as_object().unwrap().clone();
        assert_eq!(flags("v=5").write(&mut container), None);
    }

    #[test]
    fn values_are_read_in_every_form() {
        let container =
            json!({"command": ["--x=0", "--x=1"], "args": ["--x", "2", "-x=3", "--x", "--y", "x", "--x"]});
        assert_eq!(values(container.as_object().unwrap(), "x"), ["1", "2", "3"]);
    }
}
