//! `capstan init`.

mod install;
mod list_images;
mod operator;

use std::time::Duration;

use crate::{
    cli::{
        Globals,
        init::{Init, InitArgs, InstallArgs},
    },
    error::CommandError,
    printer::Printer,
};

pub(crate) async fn run(args: InitArgs, globals: &Globals, printer: Printer) -> Result<(), CommandError> {
    match args.what {
        Some(Init::ListImages(args)) => list_images::run(&args, globals, printer).await,
        None if args.list_images => list_images::run(&args.images, globals, printer).await,
        None if args.images.operator => {
            Box::pin(operator::run(&args.install, &args.images, globals, printer)).await
        }
        None => install::run(&args.install, &args.images, globals, printer).await,
    }
}

/// What stands in the way of an installation, each with what to do about it.
fn refused(found: Vec<(Vec<String>, Option<String>)>) -> CommandError {
    let count = match found.len() {
        1 => "1 problem was found".to_owned(),
        count => format!("{count} problems were found"),
    };
    let mut error = CommandError::plain(format!("cannot install: {count}; nothing was changed"));
    let mut hints: Vec<String> = Vec::new();
    for (causes, hint) in found {
        error.causes.extend(causes);
        hints.extend(hint.filter(|it| !hints.contains(it)));
    }
    error.hint(hints.join("\n"))
}

/// How long to wait for providers.
fn limit(args: &InstallArgs) -> Result<Duration, CommandError> {
    let seconds = u64::try_from(args.wait_provider_timeout);
    seconds.map(Duration::from_secs).map_err(|_| {
        CommandError::plain(format!("--wait-provider-timeout is {}", args.wait_provider_timeout))
            .hint("give a number of seconds that is not negative")
    })
}

/// How an installation that failed continues.
fn go_on(hint: Option<String>) -> String {
    let go_on = "the same command again completes what was begun";
    match hint {
        Some(hint) => format!("{hint}; then {go_on}"),
        None => go_on.to_owned(),
    }
}
