//! `capstan init list-images`.

use std::collections::BTreeSet;

use capstan_api::provider::ProviderType;
use capstan_lifecycle::{install::queue::NONE, inventory::Installed};
use capstan_manifest::{components, text};
use serde_json::json;

use crate::commands::generate::{Asked, unusable};
use crate::{
    cli::{
        Globals,
        init::{ListImagesArgs, ManyProviders},
    },
    error::CommandError,
    hints::Hint,
    management::Management,
    output,
    printer::Printer,
    session::Session,
};

const CERT_MANAGER_NAMESPACE: &str = "cert-manager";

pub(super) async fn run(
    args: &ListImagesArgs,
    globals: &Globals,
    printer: Printer,
) -> Result<(), CommandError> {
    let session = Session::open(globals, printer).await?;
    let flags = [&args.kubeconfig.kubeconfig, &args.kubeconfig.kubeconfig_context];
    let is_asked = flags.into_iter().flatten().any(|it| !it.is_empty());
    let cluster = if is_asked { Management::find(&args.kubeconfig).await? } else { None };
    let (first, needs_cert_manager) = match &cluster {
        None => (true, true),
        Some(cluster) => {
            let is_core = |it: &Installed| it.kind == ProviderType::Core;
            let first = !cluster.providers().await?.iter().any(is_core);
            (first, !cluster.has_namespace(CERT_MANAGER_NAMESPACE).await?)
        }
    };
    let mut images = BTreeSet::new();
    if needs_cert_manager && !session.config.cert_manager()?.externally_provisioned {
        images.extend(cert_manager_images(&session).await?);
    }
    for (kind, argument) in wanted(&args.providers, first) {
        images.extend(provider_images(&session, kind, &argument).await?);
    }
    let as_text = || images.iter().fold(String::new(), |text, image| text + image + "\n");
    printer.data(&output::list(args.output, &json!(images), as_text))
}

/// The providers that are asked for, and those that a first installation has by default.
fn wanted(given: &ManyProviders, first: bool) -> Vec<(ProviderType, String)> {
    let mut named = given.named();
    let defaults = [
        (ProviderType::Core, capstan_api::names::CORE_PROVIDER),
        (ProviderType::Bootstrap, "kubeadm"),
        (ProviderType::ControlPlane, "kubeadm"),
    ];
    for (kind, name) in defaults.into_iter().filter(|_| first) {
        if !named.iter().any(|it| it.0 == kind) {
            named.push((kind, name.to_owned()));
        }
    }
    named.retain(|it| it.1 != NONE);
    named.sort_by_key(|it| it.0);
    named
}

async fn provider_images(
    session: &Session,
    kind: ProviderType,
    argument: &str,
) -> Result<Vec<String>, CommandError> {
    let release = session.release(kind, argument).await?;
    let file = session.components(&release).await?;
    images(session, &release.provider.label(), &file.text, &file.origin)
}

async fn cert_manager_images(session: &Session) -> Result<Vec<String>, CommandError> {
    let file = session.cert_manager().await?;
    images(session, CERT_MANAGER_NAMESPACE, &file.text, &file.origin)
}

/// The images of a file. Its variables are replaced where they have a value or a default: an image may be one.
fn images(session: &Session, component: &str, text: &str, origin: &str) -> Result<Vec<String>, CommandError> {
    let lookup = |name: &str| Some(session.config.variable(name).unwrap_or_default());
    let documents = text::objects(text, Some(&lookup))
        .map_err(|error| unusable(origin, &error, Asked::Provider, session))?;
    let values: Vec<_> = documents.into_iter().map(|it| it.value).collect();
    components::images(&values, &session.image_overrides()?, component)
        .map_err(|error| CommandError::plain(format!("cannot use {origin}: {error}")).hint_if(error.hint()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_installation_has_core_and_kubeadm_unless_they_are_turned_down() {
        let given = |core: Option<&str>, bootstrap: &[&str], infrastructure: &[&str]| ManyProviders {
            core: core.map(str::to_owned),
            bootstrap: bootstrap.iter().map(|it| (*it).to_owned()).collect(),
            control_plane: Vec::new(),
            infrastructure: infrastructure.iter().map(|it| (*it).to_owned()).collect(),
            ipam: Vec::new(),
            runtime_extension: Vec::new(),
            addon: Vec::new(),
        };
        let names = |given: &ManyProviders, first| -> Vec<String> {
            wanted(given, first).into_iter().map(|(kind, name)| kind.label(&name)).collect()
        };
        let all = ["cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-aws"];
        assert_eq!(names(&given(None, &[], &["aws"]), true), all);
        assert_eq!(names(&given(None, &[], &["aws"]), false), ["infrastructure-aws"]);
        assert_eq!(names(&given(Some("-"), &["-"], &[]), true), ["control-plane-kubeadm"]);
        assert_eq!(names(&given(None, &["talos"], &[]), false), ["bootstrap-talos"]);
    }
}
