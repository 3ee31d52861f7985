//! `capstan completion`.

use clap_complete::env::Shells;

use crate::{cli::completion::CompletionArgs, complete, error::CommandError, printer::Printer, program};

pub(crate) fn run(args: &CompletionArgs, printer: Printer) -> Result<(), CommandError> {
    let shell = args.shell.as_str();
    let shells = Shells::builtins();
    let Some(completer) = shells.completer(shell) else {
        return Err(CommandError::plain(format!("there is no completion for {shell}")));
    };
    let name = program::name();
    let mut script = Vec::new();
    completer
        .write_registration(complete::VARIABLE, name, name, name, &mut script)
        .map_err(|error| CommandError::new("cannot write the script", error))?;
    printer.data(&String::from_utf8_lossy(&script))
}
