//! `capstan upgrade plan`: what there is, for each contract.

use std::cmp::Ordering;

use capstan_lifecycle::{
    release::ReleaseNotice,
    upgrade::{self, AvailableUpgrades, CertManagerPlan, CertManagerStep, ContractUpgrades, Item, Next},
};
use capstan_management::inventory::Inventory;
use serde_json::{Value, json};

use super::{failed, managed, print_warnings, warn_of_inventory};
use crate::{
    cli::{Globals, upgrade::PlanArgs},
    commands::version::VERSION,
    error::CommandError,
    management::Management,
    operator::{OperatorState, ProviderObject, catalog::OperatorCatalog, setup},
    output,
    printer::{Printer, Text},
    program,
    session::Session,
};

const HEADER: [&str; 5] = ["NAME", "NAMESPACE", "TYPE", "CURRENT VERSION", "NEXT VERSION"];
/// One more column where there are provider objects.
const MANAGED_BY: &str = "MANAGED BY";

pub(super) async fn run(args: &PlanArgs, globals: &Globals, printer: Printer) -> Result<(), CommandError> {
    let session = Session::open(globals, printer).await?;
    let management = Management::open(&args.kubeconfig).await?;
    let cluster = management.cluster();
    let (inventory, state) = futures::try_join!(Inventory::read(cluster), OperatorState::read(cluster))?;
    warn_of_inventory(&state.unmanaged(&inventory), printer);
    for object in state.providers.iter().filter(|it| it.installed_version.is_none()) {
        printer.warn(&managed::not_installed(object).to_string());
    }
    let report = |notice: ReleaseNotice<'_>| session.report(notice);
    let catalog = OperatorCatalog { session: &session, state: &state, cluster };
    let (releases, cert_manager) = (catalog.releases(&report), session.cert_manager()?);
    let upgrades = upgrade::available(cluster, &state.merged(&inventory), &releases, &cert_manager).await;
    let upgrades = upgrades.map_err(|error| failed(error, &session))?;
    print_warnings(&upgrades.warnings, printer);
    printer.print(&output::list(args.output, &as_value(&upgrades, &state), || as_text(&upgrades, &state)))
}

fn as_text(upgrades: &AvailableUpgrades, state: &OperatorState) -> Text {
    let cert_manager = match &upgrades.cert_manager {
        CertManagerPlan::NotOurs => Text::default(),
        CertManagerPlan::UpToDate => Text::from("Cert-Manager is already up to date").ended().ended(),
        CertManagerPlan::Upgrade(CertManagerStep { from, manifest, .. }) => {
            let line = format!("Cert-Manager will be upgraded from {from:?} to {:?}", manifest.version);
            Text::from(line).ended().ended()
        }
    };
    let head = cert_manager.and(operator_as_text(state));
    upgrades.contracts.iter().map(|it| plan_as_text(it, state)).fold(head, Text::and)
}

/// What becomes of the operator; nothing where there is none.
fn operator_as_text(state: &OperatorState) -> Text {
    let Some(operator) = &state.operator else { return Text::default() };
    let line = match setup::age(operator) {
        Some(Ordering::Equal) => "The provider operator is already up to date".to_owned(),
        Some(Ordering::Greater) => {
            format!("The provider operator is {:?}, newer than this program", operator.shown_version())
        }
        Some(Ordering::Less) | None => format!(
            "The provider operator can be upgraded from {:?} to {VERSION:?}: {} upgrade operator",
            operator.shown_version(),
            program::name()
        ),
    };
    Text::from(line).ended().ended()
}

fn plan_as_text(plan: &ContractUpgrades, state: &OperatorState) -> Text {
    let is_managed = !state.providers.is_empty();
    let mut header = HEADER.to_vec();
    header.extend(is_managed.then_some(MANAGED_BY));
    let mut rows = vec![header.into_iter().map(str::to_owned).collect()];
    rows.extend(plan.items.iter().map(|it| {
        let mut row = row(it);
        if is_managed {
            let object = state.find(it.provider.kind, &it.provider.name);
            row.push(object.map_or_else(String::new, |it| it.id().to_string()));
        }
        row
    }));
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

fn as_value(upgrades: &AvailableUpgrades, state: &OperatorState) -> Value {
    let item = |Item { provider, next }: &Item| {
        let object = state.find(provider.kind, &provider.name).map(ProviderObject::id);
        let (version, is_known) = match next {
            Next::Version(version) => (Some(version), true),
            Next::UpToDate => (None, true),
            Next::Unknown => (None, false),
        };
        let mut value = json!({
            "name": provider.label(),
            "namespace": provider.namespace,
            "type": provider.kind.as_str(),
            "currentVersion": provider.version,
            "nextVersion": version,
            "isKnown": is_known,
        });
        if let Some(object) = object {
            value["managedBy"] = json!(object);
        }
        value
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
    let operator = state.operator.as_ref().map(|it| {
        let should_upgrade = matches!(setup::age(it), Some(Ordering::Less) | None);
        json!({"version": it.version, "shouldUpgrade": should_upgrade, "to": should_upgrade.then_some(VERSION)})
    });
    json!({
        "certManager": cert_manager,
        "operator": operator,
        "plans": upgrades.contracts.iter().map(plan).collect::<Vec<_>>(),
        "warnings": warnings.collect::<Vec<_>>(),
    })
}
