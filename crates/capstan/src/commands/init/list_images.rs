//! `capstan init list-images`.

use std::collections::BTreeSet;

use capstan_api::names::CERT_MANAGER;
use capstan_lifecycle::{catalog::CertManagerPolicy, cert_manager::Manifest, release::ReleaseNotice};
use capstan_management::inventory::Inventory;
use serde_json::json;

use crate::{
    cli::{Globals, init::ListImagesArgs},
    error::CommandError,
    goals::install_goals,
    management::Management,
    operator, output,
    printer::{Printer, Text},
    session::Session,
};

/// The namespace that shows whether cert-manager is installed.
const CERT_MANAGER_NAMESPACE: &str = CERT_MANAGER;

pub(super) async fn run(
    args: &ListImagesArgs,
    globals: &Globals,
    printer: Printer,
) -> Result<(), CommandError> {
    let session = Session::open(globals, printer).await?;
    let flags = [&args.kubeconfig.kubeconfig, &args.kubeconfig.kubeconfig_context];
    let is_asked = flags.into_iter().flatten().any(|it| !it.is_empty());
    let cluster = if is_asked { Management::find(&args.kubeconfig).await? } else { None };
    let (is_first, needs_cert_manager) = match &cluster {
        None => (true, true),
        Some(cluster) => {
            let inventory = Inventory::read(cluster.cluster()).await?;
            (inventory.core().is_none(), !cluster.has_namespace(CERT_MANAGER_NAMESPACE).await?)
        }
    };
    let mut images = BTreeSet::new();
    if args.operator {
        images.insert(operator::image(args.operator_image.as_deref(), &session.config.images()?)?);
    }
    if let (true, CertManagerPolicy::Manage(source)) = (needs_cert_manager, session.cert_manager()?) {
        let manifest = Manifest::fetch(&source).await.map_err(|error| session.unusable_release(error))?;
        images.extend(manifest.images().map(str::to_owned));
    }
    let report = |notice: ReleaseNotice<'_>| session.report(notice);
    let releases = session.releases(&report);
    for goal in install_goals(&args.providers.named(), is_first, None)? {
        let found = async { releases.fetch(goal.kind, &goal.name, &goal.version).await?.images() };
        images.extend(found.await.map_err(|error| session.unusable_release(error))?);
    }
    let as_text = || images.iter().fold(Text::default(), |text, image| text.and(image).ended());
    printer.print(&output::list(args.output, &json!(images), as_text))
}
