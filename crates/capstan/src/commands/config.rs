//! `capstan config`.

use capstan_repository::Provider;
use serde_json::{Value, json};

use super::generate;
use crate::{
    cli::{
        Globals,
        config::{Config, ConfigArgs, RepositoriesArgs},
    },
    error::CommandError,
    output,
    printer::{Printer, Text},
    session::Session,
};

pub(crate) async fn run(args: ConfigArgs, globals: &Globals, printer: Printer) -> Result<(), CommandError> {
    match args.what {
        Config::Repositories(args) => repositories(&args, globals, printer).await,
        Config::Cluster(args) => generate::cluster::run(&args, globals, printer).await,
        Config::Provider(args) => generate::provider::run(&args, globals, printer).await,
    }
}

async fn repositories(
    args: &RepositoriesArgs,
    globals: &Globals,
    printer: Printer,
) -> Result<(), CommandError> {
    let providers = Session::open(globals, printer).await?.config.providers()?;
    let value = Value::Array(providers.iter().map(entry).collect());
    printer.print(&output::list(args.output, &value, || table(&providers)))
}

/// The folder of a URL, with the slash at its end, and the file.
fn split(url: &str) -> (&str, &str) {
    url.split_at(url.rfind('/').map_or(0, |slash| slash + 1))
}

fn entry(provider: &Provider) -> Value {
    let url = provider.shown_url();
    let (folder, file) = split(&url);
    json!({"Name": provider.name, "ProviderType": provider.kind.as_str(), "URL": folder, "File": file})
}

fn table(providers: &[Provider]) -> Text {
    let mut rows = vec![["NAME", "TYPE", "URL", "FILE"].map(str::to_owned).to_vec()];
    rows.extend(providers.iter().map(|it| {
        let url = it.shown_url();
        let (folder, file) = split(&url);
        vec![it.name.clone(), it.kind.to_string(), folder.to_owned(), file.to_owned()]
    }));
    output::columns(&rows, 10, 3)
}
