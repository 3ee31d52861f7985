//! `capstan generate`: manifests from releases, templates and any YAML.

pub(super) mod cluster;
mod cluster_classes;
pub(super) mod provider;
mod source;
mod variables;
mod yaml;

use capstan_manifest::{
    envsubst::{MissingVariables, RenderError},
    text::TextError,
};

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
    match error {
        TextError::Variables(RenderError::Missing(missing)) => unset(origin, missing),
        error => CommandError::plain(format!("cannot use {origin}: {error}")).hint_if(error.hint()),
    }
}

/// Names all variables that have no value, each with its places.
fn unset(origin: &str, missing: &MissingVariables) -> CommandError {
    let count = match missing.variables.len() {
        1 => "1 variable".to_owned(),
        count => format!("{count} variables"),
    };
    let mut error = CommandError::plain(format!("cannot use {origin}: no value is set for {count}"));
    error.causes = missing.to_lines();
    let example = missing.variables.first().map_or("NAME", |it| it.name.as_str());
    error.hint(format!(
        "set each in the environment (`export {example}=...`) or in the configuration file (`{example}: ...`); \
         --list-variables (of a template) or --describe (of a provider) tells what there is to set"
    ))
}
