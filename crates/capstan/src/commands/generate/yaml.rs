//! `capstan generate yaml`.

use capstan_manifest::{envsubst::Template, text};
use serde_json::json;

use super::{Asked, source, unusable};
use crate::{
    cli::{Globals, generate::YamlArgs},
    error::CommandError,
    output,
    printer::{Printer, Text},
    session::Session,
};

pub(super) async fn run(args: &YamlArgs, globals: &Globals, printer: Printer) -> Result<(), CommandError> {
    let session = Session::open(globals, printer).await?;
    let file = source::read(&args.from, &session).await?;
    if args.list_variables {
        let template = Template::parse(&file.text)
            .map_err(|error| unusable(&file.origin, &error.into(), Asked::Yaml, &session))?;
        let names: Vec<_> = template.variables().keys().collect();
        let as_text = || match names.as_slice() {
            [] => Text::default().ended(),
            names => Text::from("Variables:").ended().and(output::bullets(names)),
        };
        return printer.print(&output::list(args.output, &json!(names), as_text));
    }
    let lookup = |name: &str| session.config.variable(name);
    let documents = text::objects(&file.text, Some(&lookup))
        .map_err(|error| unusable(&file.origin, &error, Asked::Yaml, &session))?;
    let values: Vec<_> = documents.into_iter().map(|it| it.value).collect();
    output::write_manifests(&values, None, printer)
}
