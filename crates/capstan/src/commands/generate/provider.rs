//! `capstan generate provider`.

use capstan_lifecycle::{
    catalog::Source,
    release::{self, Fetched, Placement, ReleaseError, ReleaseNotice},
};
use capstan_manifest::{components::Components, envsubst::Template};
use serde_json::json;

use super::{Asked, check_namespace, unusable};
use crate::{
    cli::{Globals, generate::ProviderArgs},
    error::CommandError,
    goals::goal,
    output,
    printer::{Output, Printer},
    session::Session,
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
    let goal = goal(kind, argument)?;
    let report = |notice: ReleaseNotice<'_>| session.report(notice);
    let fetched = session.releases(&report).fetch(goal.kind, &goal.name, &goal.version).await;
    let fetched = fetched.map_err(|error| session.unusable_release(error))?;
    let placement = Placement {
        target_namespace: args.target_namespace.as_deref().filter(|it| !it.is_empty()),
        watching_namespace: args.watching_namespace.as_deref().filter(|it| !it.is_empty()),
        rbac_prefix: args.rbac_prefix,
    };
    if args.describe {
        let components = render_raw(&fetched, &placement);
        let components = components.map_err(|error| session.unusable_release(error))?;
        let output = describe(&fetched, &components, args, &session)?;
        return output::write(&output, args.write_to.as_deref(), printer);
    }
    let components = if args.raw {
        render_raw(&fetched, &placement)
    } else {
        fetched.parse().await.and_then(|it| it.render(&placement)).map(|it| it.components)
    };
    let components = components.map_err(|error| session.unusable_release(error))?;
    output::write_manifests(components.objects(), args.write_to.as_deref(), printer)
}

/// The components with their variables as they are.
fn render_raw(fetched: &Fetched<'_>, placement: &Placement<'_>) -> Result<Components, ReleaseError> {
    release::render(&fetched.source, fetched.parse_raw()?, &fetched.file.origin, placement)
}

fn describe(
    release: &Fetched<'_>,
    components: &Components,
    args: &ProviderArgs,
    session: &Session,
) -> Result<Output, CommandError> {
    let Fetched { source: Source { provider, .. }, version, file, .. } = release;
    let template = Template::parse(&file.text)
        .map_err(|error| unusable(&file.origin, &error.into(), Asked::Provider, session))?;
    let variables: Vec<_> = template.variables().keys().cloned().collect();
    let url = provider.shown_url();
    let (folder, name) = url.rsplit_once('/').unwrap_or(("", &url));
    let base = folder.rsplit_once('/').map_or_else(String::new, |(base, _)| format!("{base}/"));
    let fields = [
        ("Name", provider.name.as_str()),
        ("Type", provider.kind.as_str()),
        ("URL", &base),
        ("Version", version),
        ("File", name),
        ("TargetNamespace", &components.target_namespace),
    ];
    let as_text = || {
        let rows = fields.map(|(name, value)| vec![format!("{name}:"), value.to_owned()]);
        let mut text = output::columns(&rows, LABEL_WIDTH, 0);
        for (title, items) in [("Variables:", &variables), ("Images:", &components.images)] {
            if !items.is_empty() {
                text.line(title);
                text.push(output::bullets(items));
            }
        }
        text.ended()
    };
    let value = json!({
        "name": provider.name,
        "type": provider.kind.as_str(),
        "url": url,
        "version": version,
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
