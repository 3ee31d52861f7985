//! Habits of upstream's command line that scripts rely on.

use clap::{Arg, ArgAction, Command};

/// Gives every switch the form that scripts know: `--switch`, `--switch=true`, `--switch=false`. Of a flag that is given
/// twice the last one counts.
pub(crate) fn with_habits(command: Command) -> Command {
    command.args_override_self(true).mut_args(switch).mut_subcommands(with_habits)
}

/// Lets the examples call the program as its user does.
pub(crate) fn with_examples_of(command: Command, name: &str) -> Command {
    let examples = command.get_after_help().map(|it| it.to_string().replace("capstan ", &format!("{name} ")));
    let command = match examples {
        Some(examples) => command.after_help(examples),
        None => command,
    };
    command.mut_subcommands(|it| with_examples_of(it, name))
}

fn switch(arg: Arg) -> Arg {
    if !matches!(arg.get_action(), ArgAction::SetTrue) {
        return arg;
    }
    arg.action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_value("false")
        .default_missing_value("true")
        .hide_default_value(true)
        .value_name("BOOL")
        .value_parser(go_bool)
}

/// The words that Go takes for true and false.
pub(crate) fn go_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

/// A level of verbosity; more than there are is no mistake.
pub(crate) fn level(text: &str) -> Result<u8, String> {
    Ok(u8::try_from(go_integer(text)?.clamp(0, 255)).unwrap_or(u8::MAX))
}

/// A whole number as Go reads flags: `0x10`, `010` and `0o10` (8), `0b1`, `1_000`.
pub(crate) fn go_integer(text: &str) -> Result<i64, String> {
    let wrong = || "must be a whole number".to_owned();
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'-') => ("-", &text[1..]),
        Some(b'+') => ("", &text[1..]),
        _ => ("", text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    let separated = digits.strip_prefix('_').filter(|_| radix != 10).unwrap_or(digits);
    let is_sound = !separated.is_empty() && separated.split('_').all(|run| !run.is_empty());
    if !is_sound || separated.starts_with(['+', '-']) {
        return Err(wrong());
    }
    i64::from_str_radix(&format!("{sign}{}", separated.replace('_', "")), radix).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Program {
        #[arg(long)]
        switch: bool,
    }

    #[test]
    fn a_switch_can_be_turned_off() {
        for (given, expected) in [
            (vec!["x"], Some(false)),
            (vec!["x", "--switch"], Some(true)),
            (vec!["x", "--switch=true"], Some(true)),
            (vec!["x", "--switch=F"], Some(false)),
            (vec!["x", "--switch=maybe"], None),
            (vec!["x", "--switch", "--switch=false"], Some(false)),
            // What follows a switch is no value of it.
            (vec!["x", "--switch", "false"], None),
        ] {
            use clap::{CommandFactory, FromArgMatches};
            let parsed = with_habits(Program::command())
                .try_get_matches_from(&given)
                .and_then(|it| Program::from_arg_matches(&it));
            assert_eq!(parsed.ok().map(|it| it.switch), expected, "{given:?}");
        }
    }

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("3", Some(3)),
            ("-3", Some(-3)),
            ("+3", Some(3)),
            ("0", Some(0)),
            ("0x10", Some(16)),
            ("010", Some(8)),
            ("0o10", Some(8)),
            ("0b11", Some(3)),
            ("1_0", Some(10)),
            ("0_7", Some(7)),
            ("0x_f", Some(15)),
            ("-0x8000000000000000", Some(i64::MIN)),
            ("08", None),
            ("1__0", None),
            ("_1", None),
            ("1_", None),
            ("", None),
            ("-", None),
            ("0x", None),
            ("0x-1", None),
            ("three", None),
            ("9223372036854775808", None),
        ] {
            assert_eq!(go_integer(text).ok(), expected, "{text}");
        }
    }
}
