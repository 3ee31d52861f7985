//! `capstan generate`: manifests from releases, templates and any YAML.

pub(super) mod cluster;
mod cluster_classes;
pub(super) mod provider;
mod source;
mod variables;
mod yaml;

use capstan_manifest::text::TextError;

use crate::{
    cli::{
        Globals,
        generate::{Generate, GenerateArgs},
    },
    error::CommandError,
    printer::Printer,
};

pub(crate) async fn run(args: GenerateArgs, globals: &Globals, printer: Printer) -> Result<(), CommandError> {
    match args.what {
        Generate::Cluster(args) => cluster::run(&args, globals, printer).await,
        Generate::Provider(args) => provider::run(&args, globals, printer).await,
        Generate::Yaml(args) => yaml::run(&args, globals, printer).await,
    }
}

/// Says in which file a text could not be rendered.
pub(super) fn unusable(origin: &str, error: &TextError) -> CommandError {
    CommandError::plain(format!("cannot use {origin}: {error}")).hint_if(error.hint())
}
