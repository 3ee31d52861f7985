//! `capstan generate provider`.

use std::borrow::Cow;

use capstan_manifest::{
    components::{self, Components, Options},
    envsubst::Template,
    text,
};
use capstan_repository::File;
use serde_json::json;

use super::{Asked, check_namespace, unusable};
use crate::{
    cli::{Globals, generate::ProviderArgs},
    error::CommandError,
    hints::Hint,
    output,
    printer::Printer,
    session::{Release, Session},
};

const ONE_FLAG: &str = "use one of --core, --bootstrap, --control-plane, --infrastructure, --ipam, \
                        --runtime-extension and --addon, e.g. --infrastructure aws:v2.9.1";
/// The width of the names in a description.
const LABEL_WIDTH: usize = 20;

pub(crate) async fn run(
    args: &ProviderArgs,
    globals: &Globals,
    printer: Printer,
) -> Result<(), CommandError> {
    let (kind, argument) = match args.provider.named().as_slice() {
        &[one] => one,
        [] => return Err(CommandError::plain("no provider is named").hint(ONE_FLAG)),
        _ => return Err(CommandError::plain("more than one provider is named").hint(ONE_FLAG)),
    };
    check_namespace("--target-namespace", args.target_namespace.as_deref())?;
    check_namespace("--watching-namespace", args.watching_namespace.as_deref())?;
    let session = Session::open(globals, printer).await?;
    let release = session.release(kind, argument).await?;
    let file = session.components(&release).await?;
    if args.describe {
        let components = render(&release, &file.origin, &file.text, args, &session)?;
        let text = describe(&release, &file, &components, args, &session)?;
        return output::write(&text, args.write_to.as_deref(), printer);
    }
    let components = render(&release, &file.origin, file.text, args, &session)?;
    output::write_manifests(components.objects(), args.write_to.as_deref(), printer)
}

fn render<'a>(
    release: &Release,
    origin: &str,
    text: impl Into<Cow<'a, str>>,
    args: &ProviderArgs,
    session: &Session,
) -> Result<Components, CommandError> {
    let lookup = |name: &str| session.config.variable(name);
    let keeps_variables = args.raw || args.describe;
    let lookup: Option<text::Lookup<'_>> = if keeps_variables { None } else { Some(&lookup) };
    let documents =
        text::objects(text, lookup).map_err(|error| unusable(origin, &error, Asked::Provider, session))?;
    let images = session.image_overrides()?;
    let options = Options {
        label: &release.provider.label(),
        target_namespace: args.target_namespace.as_deref().filter(|it| !it.is_empty()),
        watching_namespace: args.watching_namespace.as_deref().filter(|it| !it.is_empty()),
        rbac_prefix: args.rbac_prefix,
        images: &images,
    };
    let values = documents.into_iter().map(|it| it.value).collect();
    components::render(values, &options)
        .map_err(|error| CommandError::plain(format!("cannot use {origin}: {error}")).hint_if(error.hint()))
}

fn describe(
    release: &Release,
    file: &File,
    components: &Components,
    args: &ProviderArgs,
    session: &Session,
) -> Result<String, CommandError> {
    let template = Template::parse(&file.text)
        .map_err(|error| unusable(&file.origin, &error.into(), Asked::Provider, session))?;
    let variables: Vec<_> = template.variables().keys().cloned().collect();
    let url = release.provider.shown_url();
    let (folder, name) = url.rsplit_once('/').unwrap_or(("", &url));
    let base = folder.rsplit_once('/').map_or_else(String::new, |(base, _)| format!("{base}/"));
    let fields = [
        ("Name", release.provider.name.as_str()),
        ("Type", release.provider.kind.as_str()),
        ("URL", &base),
        ("Version", &release.version),
        ("File", name),
        ("TargetNamespace", &components.target_namespace),
    ];
    let as_text = || {
        let rows = fields.map(|(name, value)| vec![format!("{name}:"), value.to_owned()]);
        let mut text = output::columns(&rows, LABEL_WIDTH, 0);
        for (title, items) in [("Variables:\n", &variables), ("Images:\n", &components.images)] {
            if !items.is_empty() {
                text.extend([title, output::bullets(items).as_str()]);
            }
        }
        text.push('\n');
        text
    };
    let value = json!({
        "name": release.provider.name,
        "type": release.provider.kind.as_str(),
        "url": url,
        "version": release.version,
        "file": name,
        "sha256": file.sha256,
        "targetNamespace": components.target_namespace,
        "variables": template.variables().values()
            .map(|it| json!({"name": it.name, "required": it.is_required(), "default": it.default}))
            .collect::<Vec<_>>(),
        "images": components.images,
    });
    Ok(output::list(args.output, &value, as_text))
}
