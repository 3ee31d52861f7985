//! `capstan completion`.

use clap_complete::env::Shells;

use crate::{
    cli::completion::{CompletionArgs, Shell},
    complete,
    error::CommandError,
    printer::Printer,
    program,
};

/// Bash takes words apart at colons and equal signs, so the words are made from the line instead, and what bash has of
/// the last one already is taken off the answers.
const BASH: &str = include_str!("completion.bash");

pub(crate) fn run(args: &CompletionArgs, printer: Printer) -> Result<(), CommandError> {
    let name = program::name();
    if args.shell == Shell::Bash {
        return printer.data(&BASH.replace("@NAME@", name).replace("@VARIABLE@", complete::VARIABLE));
    }
    let shell = args.shell.as_str();
    let shells = Shells::builtins();
    let Some(completer) = shells.completer(shell) else {
        return Err(CommandError::plain(format!("there is no completion for {shell}")));
    };
    let mut script = Vec::new();
    completer
        .write_registration(complete::VARIABLE, name, name, name, &mut script)
        .map_err(|error| CommandError::new("cannot write the script", error))?;
    printer.data(&String::from_utf8_lossy(&script))
}
