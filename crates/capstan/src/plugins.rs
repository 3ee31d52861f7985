//! Commands that others add: programs on the PATH whose names begin with ours.

use std::{env, ffi::OsString, io, path::PathBuf, process::Command};

use capstan_repository::find_program;

use crate::{cli::Cli, error::CommandError, program};

/// Words that shells and people ask for by themselves; no plugin answers to them.
const RESERVED: [&str; 3] = ["help", "__complete", "__completeNoDesc"];

/// A program that takes the place of a command.
#[derive(Debug, PartialEq, Eq)]
struct Plugin {
    path: PathBuf,
    /// What is left for it of what was typed.
    arguments: Vec<OsString>,
}

/// Becomes the plugin that was typed, if one was: returns only if there is none, or if it cannot be run.
pub(crate) fn become_plugin() -> Result<(), CommandError> {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    let Some(first) = words.first().and_then(|it| it.to_str()) else { return Ok(()) };
    if first.starts_with('-') || RESERVED.contains(&first) || is_command(first) {
        return Ok(());
    }
    let path = env::var_os("PATH");
    match find(&words, &prefixes(), |name| find_program(path.as_deref(), name)) {
        None => Ok(()),
        Some(plugin) => {
            let doing = format!("cannot run plugin {}", plugin.path.display());
            Err(CommandError::new(doing, run(&plugin)))
        }
    }
}

fn is_command(word: &str) -> bool {
    let cli = <Cli as clap::CommandFactory>::command();
    cli.get_subcommands().any(|it| it.get_name_and_visible_aliases().contains(&word))
}

/// Plugins of the name that the program was called by come first.
fn prefixes() -> [&'static str; 2] {
    let all = [program::CAPSTAN, program::CLUSTERCTL];
    if program::name() == program::CLUSTERCTL { [all[1], all[0]] } else { all }
}

/// The plugin with the longest name that the leading words make: `a b-c --x` is for `PREFIX-a-b_c` before `PREFIX-a`.
fn find(words: &[OsString], prefixes: &[&str], look: impl Fn(&str) -> Option<PathBuf>) -> Option<Plugin> {
    let leading = words.iter().map_while(|it| it.to_str().filter(|it| !it.starts_with('-')));
    let leading: Vec<String> = leading.map(|it| it.replace('-', "_")).collect();
    (1..=leading.len()).rev().find_map(|count| {
        let name = leading[..count].join("-");
        let path = prefixes.iter().find_map(|prefix| look(&format!("{prefix}-{name}")))?;
        Some(Plugin { path, arguments: words[count..].to_vec() })
    })
}

/// Takes the process over; comes back only with the reason why that failed.
#[cfg(unix)]
fn run(plugin: &Plugin) -> io::Error {
    use std::os::unix::process::CommandExt;
    Command::new(&plugin.path).args(&plugin.arguments).exec()
}

#[cfg(not(unix))]
#[expect(clippy::exit, reason = "the plugin's exit code is ours")]
fn run(plugin: &Plugin) -> io::Error {
    match Command::new(&plugin.path).args(&plugin.arguments).status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_longest_name_wins_and_the_rest_is_handed_on() {
        let there = ["capstan-foo", "capstan-foo-bar", "clusterctl-foo-bar-baz", "clusterctl-b_ar"];
        let look = |name: &str| there.contains(&name).then(|| Path::new("/bin").join(name));
        for (typed, found, rest) in [
            ("foo", Some("capstan-foo"), ""),
            ("foo bar", Some("capstan-foo-bar"), ""),
            ("foo other --x=1 y", Some("capstan-foo"), "other --x=1 y"),
            // Flags end the name.
            ("foo --x bar", Some("capstan-foo"), "--x bar"),
            ("foo bar baz", Some("clusterctl-foo-bar-baz"), ""),
            ("b-ar", Some("clusterctl-b_ar"), ""),
            ("nope foo", None, ""),
        ] {
            let words: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
            let plugin = find(&words, &["capstan", "clusterctl"], look);
            let expected = found.map(|name| Plugin {
                path: Path::new("/bin").join(name),
                arguments: rest.split_whitespace().map(OsString::from).collect(),
            });
            assert_eq!(plugin, expected, "{typed}");
        }
    }

    #[test]
    fn the_name_decides_only_between_plugins_of_the_same_words() {
        let look = |name: &str| Some(PathBuf::from(name));
        let words = [OsString::from("foo")];
        for (prefixes, expected) in
            [(["capstan", "clusterctl"], "capstan-foo"), (["clusterctl", "capstan"], "clusterctl-foo")]
        {
            assert_eq!(find(&words, &prefixes, look).unwrap().path, Path::new(expected));
        }
    }
}
