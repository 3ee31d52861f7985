//! `capstan init`.

mod install;
mod list_images;

use crate::{
    cli::{
        Globals,
        init::{Init, InitArgs},
    },
    error::CommandError,
    printer::Printer,
};

pub(crate) async fn run(args: InitArgs, globals: &Globals, printer: Printer) -> Result<(), CommandError> {
    match args.what {
        Some(Init::ListImages(args)) => list_images::run(&args, globals, printer).await,
        None if args.list_images => list_images::run(&args.images, globals, printer).await,
        None => install::run(&args.install, &args.images, globals, printer).await,
    }
}
