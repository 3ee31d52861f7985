//! `capstan upgrade plan`: what there is, for each contract.

use capstan_lifecycle::upgrade::{self, CertManagerPlan, CertManagerStep, Item, Next, Plan, Plans};
use serde_json::{Value, json};

use super::{failed, tell_unfinished, tell_warnings};
use crate::{
    cli::{Globals, upgrade::PlanArgs},
    error::CommandError,
    management::Management,
    output,
    printer::Printer,
    program,
    session::Session,
};

const HEADER: [&str; 5] = ["NAME", "NAMESPACE", "TYPE", "CURRENT VERSION", "NEXT VERSION"];

pub(super) async fn run(args: &PlanArgs, globals: &Globals, printer: Printer) -> Result<(), CommandError> {
    let session = Session::open(globals, printer).await?;
    let management = Management::open(&args.kubeconfig).await?;
    tell_unfinished(management.cluster(), printer).await?;
    let tell = |oddity: capstan_lifecycle::release::Oddity<'_>| session.tell(oddity);
    let plans = upgrade::plan(management.cluster(), &session.releases(&tell)).await;
    let plans = plans.map_err(|error| failed(error, &session))?;
    tell_warnings(&plans.warnings, printer);
    printer.data(&output::list(args.output, &as_value(&plans), || as_text(&plans)))
}

fn as_text(plans: &Plans) -> String {
    let cert_manager = match &plans.cert_manager {
        CertManagerPlan::NotOurs => String::new(),
        CertManagerPlan::UpToDate => "Cert-Manager is already up to date\n\n".to_owned(),
        CertManagerPlan::Upgrade(CertManagerStep { from, manifest, .. }) => {
            format!("Cert-Manager will be upgraded from {from:?} to {:?}\n\n", manifest.version)
        }
    };
    cert_manager + &plans.plans.iter().map(plan_as_text).collect::<String>()
}

fn plan_as_text(plan: &Plan) -> String {
    let mut rows = vec![HEADER.map(str::to_owned).to_vec()];
    rows.extend(plan.items.iter().map(row));
    let table = output::columns(&rows, 10, 3);
    let Plan { contract, .. } = plan;
    let name = program::name();
    let closing = match (plan.has_upgrades(), plan.is_supported()) {
        (false, _) => "You are already up to date!".to_owned(),
        (true, true) => format!(
            "You can now apply the upgrade by executing the following command:\n\n{name} upgrade apply --contract {contract}"
        ),
        (true, false) => {
            format!(
                "The current version of {name} could not upgrade to {contract} contract (only v1beta2 supported)."
            )
        }
    };
    format!(
        "\nLatest release available for the {contract} Cluster API contract version:\n\n{table}\n{closing}\n\n"
    )
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

fn as_value(plans: &Plans) -> Value {
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
    let plan = |it: &Plan| {
        json!({
            "contract": it.contract,
            "isSupported": it.is_supported(),
            "hasUpgrades": it.has_upgrades(),
            "providers": it.items.iter().map(item).collect::<Vec<_>>(),
        })
    };
    let warnings = plans.warnings.iter().map(|it| json!({"provider": it.label, "message": it.text}));
    let cert_manager = match &plans.cert_manager {
        CertManagerPlan::NotOurs => Value::Null,
        CertManagerPlan::UpToDate => json!({"shouldUpgrade": false}),
        CertManagerPlan::Upgrade(CertManagerStep { from, manifest, .. }) => {
            json!({"shouldUpgrade": true, "from": from, "to": manifest.version})
        }
    };
    json!({
        "certManager": cert_manager,
        "plans": plans.plans.iter().map(plan).collect::<Vec<_>>(),
        "warnings": warnings.collect::<Vec<_>>(),
    })
}
