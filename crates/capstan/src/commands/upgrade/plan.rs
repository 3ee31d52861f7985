//! `capstan upgrade plan`: what there is, for each contract.

use capstan_lifecycle::{
    release::ReleaseNotice,
    upgrade::{self, AvailableUpgrades, CertManagerPlan, CertManagerStep, ContractUpgrades, Item, Next},
};
use capstan_management::inventory::Inventory;
use serde_json::{Value, json};

use super::{failed, print_warnings, warn_of_inventory};
use crate::{
    cli::{Globals, upgrade::PlanArgs},
    error::CommandError,
    management::Management,
    output,
    printer::{Printer, Text},
    program,
    session::Session,
};

const HEADER: [&str; 5] = ["NAME", "NAMESPACE", "TYPE", "CURRENT VERSION", "NEXT VERSION"];

pub(super) async fn run(args: &PlanArgs, globals: &Globals, printer: Printer) -> Result<(), CommandError> {
    let session = Session::open(globals, printer).await?;
    let management = Management::open(&args.kubeconfig).await?;
    let inventory = Inventory::read(management.cluster()).await?;
    warn_of_inventory(&inventory, printer);
    let report = |notice: ReleaseNotice<'_>| session.report(notice);
    let (releases, cert_manager) = (session.releases(&report), session.cert_manager()?);
    let upgrades = upgrade::available(management.cluster(), &inventory, &releases, &cert_manager).await;
    let upgrades = upgrades.map_err(|error| failed(error, &session))?;
    print_warnings(&upgrades.warnings, printer);
    printer.print(&output::list(args.output, &as_value(&upgrades), || as_text(&upgrades)))
}

fn as_text(upgrades: &AvailableUpgrades) -> Text {
    let cert_manager = match &upgrades.cert_manager {
        CertManagerPlan::NotOurs => Text::default(),
        CertManagerPlan::UpToDate => Text::from("Cert-Manager is already up to date").ended().ended(),
        CertManagerPlan::Upgrade(CertManagerStep { from, manifest, .. }) => {
            let line = format!("Cert-Manager will be upgraded from {from:?} to {:?}", manifest.version);
            Text::from(line).ended().ended()
        }
    };
    upgrades.contracts.iter().map(plan_as_text).fold(cert_manager, Text::and)
}

fn plan_as_text(plan: &ContractUpgrades) -> Text {
    let mut rows = vec![HEADER.map(str::to_owned).to_vec()];
    rows.extend(plan.items.iter().map(row));
    let table = output::columns(&rows, 10, 3);
    let ContractUpgrades { contract, .. } = plan;
    let name = program::name();
    let closing = match (plan.has_upgrades(), plan.is_supported()) {
        (false, _) => Text::from("You are already up to date!"),
        // clusterctl prints a command here that it refuses then.
        (true, true) if plan.is_too_far() => {
            Text::from("This upgrade takes more than one step: the warnings name the version to go to first.")
        }
        (true, true) => Text::from("You can now apply the upgrade by executing the following command:")
            .ended()
            .ended()
            .and(format!("{name} upgrade apply --contract {contract}")),
        (true, false) => Text::from(format!(
            "The current version of {name} could not upgrade to {contract} contract (only v1beta2 supported)."
        )),
    };
    let title = format!("Latest release available for the {contract} Cluster API contract version:");
    Text::default().ended().and(title).ended().ended().and(table).ended().and(closing).ended().ended()
}

fn row(Item { provider, next }: &Item) -> Vec<String> {
    let next = match next {
        Next::Version(version) => version,
        Next::UpToDate => "Already up to date",
        Next::Unknown => "Unknown",
    };
    let cells = [&provider.label(), &provider.namespace, provider.kind.as_str(), &provider.version, next];
    cells.map(str::to_owned).to_vec()
}

fn as_value(upgrades: &AvailableUpgrades) -> Value {
    let item = |Item { provider, next }: &Item| {
        let (version, is_known) = match next {
            Next::Version(version) => (Some(version), true),
            Next::UpToDate => (None, true),
            Next::Unknown => (None, false),
        };
        json!({
            "name": provider.label(),
            "namespace": provider.namespace,
            "type": provider.kind.as_str(),
            "currentVersion": provider.version,
            "nextVersion": version,
            "isKnown": is_known,
        })
    };
    let plan = |it: &ContractUpgrades| {
        json!({
            "contract": it.contract,
            "isSupported": it.is_supported(),
            "isTooFar": it.is_too_far(),
            "hasUpgrades": it.has_upgrades(),
            "providers": it.items.iter().map(item).collect::<Vec<_>>(),
        })
    };
    let warnings = upgrades.warnings.iter().map(|it| json!({"provider": it.label, "message": it.text}));
    let cert_manager = match &upgrades.cert_manager {
        CertManagerPlan::NotOurs => Value::Null,
        CertManagerPlan::UpToDate => json!({"shouldUpgrade": false}),
        CertManagerPlan::Upgrade(CertManagerStep { from, manifest, .. }) => {
            json!({"shouldUpgrade": true, "from": from, "to": manifest.version})
        }
    };
    json!({
        "certManager": cert_manager,
        "plans": upgrades.contracts.iter().map(plan).collect::<Vec<_>>(),
        "warnings": warnings.collect::<Vec<_>>(),
    })
}
