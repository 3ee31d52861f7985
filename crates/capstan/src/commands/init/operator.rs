//! `capstan init --operator`: the provider operator and provider objects into a management cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use capstan_api::{contract::is_compatible, provider::ProviderType};
use capstan_lifecycle::{
    catalog::CertManagerPolicy,
    cert_manager::{self, Action, CertManagerEvent, Presence},
    diff::{self, Intent as Difference},
    goal::ProviderGoal,
    install::{self, InstallPlanError, InstallProblem},
    release::{Fetched, Placement, ReleaseError, ReleaseNotice, Releases},
};
use capstan_management::{
    ManagementCluster, ObjectRef,
    apply::{self, ApplyEvent},
    contract::installed_core_contract,
    inventory::{Installed, Inventory},
    server_version::ServerVersion,
};
use capstan_manifest::envsubst::Template;
use capstan_repository::{Config, Provider};
use futures::future::join_all;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::Api;
use serde_json::{Value, json};

use super::{go_on, install::described, limit, refused};
use crate::{
    cli::{
        Globals,
        generate::ListFormat,
        init::{InstallArgs, ListImagesArgs},
    },
    commands::{
        generate::{Asked, check_namespace, unusable},
        upgrade,
        version::VERSION,
        waiting,
    },
    difference,
    error::CommandError,
    goals::install_goals,
    hints::Hint,
    management::Management,
    operator::{
        self, COMPONENT, DEPLOYMENT, InstalledOperator, NAMESPACE, OperatorProblem, OperatorState,
        ProviderObject,
        config_maps::{ReleaseFiles, metadata_to_upload},
        draft::{Draft, FoundSecret, ReleaseSource, images_of, input_labels, is_input, secret_name},
        intent::{Intent, intend},
        setup::{self, Setup},
    },
    printer::Printer,
    program,
    progress::Progress,
    session::Session,
};

/// A problem in words, and what to do about it.
type Problem = (Vec<String>, Option<String>);

/// What is to be done.
struct Plan {
    setup: Setup,
    /// The operator's objects.
    manifest: Vec<Value>,
    cert_manager: Action,
    /// How long cert-manager may take to answer.
    cert_manager_limit: Duration,
    /// Objects of named providers that are there.
    present: Vec<ObjectRef>,
    drafts: Vec<Draft>,
}

pub(super) async fn run(
    args: &InstallArgs,
    asked: &ListImagesArgs,
    globals: &Globals,
    printer: Printer,
) -> Result<(), CommandError> {
    refuse_flags(args)?;
    check_namespace("--target-namespace", args.target_namespace.as_deref())?;
    let limit = limit(args)?;
    if !args.dry_run && asked.output != ListFormat::Text {
        return Err(CommandError::plain("--output is for --dry-run and --list-images: init prints nothing"));
    }
    let session = Session::open(globals, printer).await?;
    let management = Management::open(&asked.kubeconfig).await?;
    let cluster = management.cluster();
    let found = ServerVersion::read(cluster).await?;
    if found.is_too_old() {
        return Err(InstallPlanError::ServerTooOld { found }.into());
    }
    let (inventory, mut state) = futures::try_join!(Inventory::read(cluster), OperatorState::read(cluster))?;
    if state.operator.is_none() {
        // A part of it may be there without the kinds of its objects.
        state.operator = InstalledOperator::find(cluster).await?;
    }
    InstalledOperator::check_alone(cluster).await?;
    upgrade::warn_of_inventory(&state.unmanaged(&inventory), printer);
    let plan = make_plan(args, asked, &session, cluster, &inventory, &state).await?;
    if args.dry_run {
        return show(cluster, &plan, args.diff, asked.output, printer).await;
    }
    for object in &plan.present {
        printer.step(&format!("{object} exists already"));
    }
    if plan.is_empty() {
        printer.done("nothing to do: the operator and everything that is asked for is there");
    } else {
        carry_out(cluster, &plan, printer).await?;
    }
    say_what_the_operator_takes_over(&plan, &inventory, &state, printer);
    if args.wait_providers {
        return wait(cluster, &plan, &mut state, limit, printer).await;
    }
    say_what_next(&plan, &state, printer);
    Ok(())
}

/// Flags that only a command can honour that installs by itself.
fn refuse_flags(args: &InstallArgs) -> Result<(), CommandError> {
    let refused = |flag: &str, why: &str| {
        Err(CommandError::plain(format!("{flag} cannot be used with --operator: {why}")).hint("leave it out"))
    };
    if args.watching_namespace.as_ref().is_some_and(|it| !it.is_empty()) {
        return refused("--watching-namespace", "the operator lets every provider watch all namespaces");
    }
    if !args.validate {
        return refused("--validate=false", "the operator makes its checks by itself");
    }
    if !args.rbac_prefix {
        return refused("--rbac-prefix=false", "the operator names cluster-wide roles by itself");
    }
    Ok(())
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.setup == Setup::Present
            && self.drafts.is_empty()
            && !matches!(self.cert_manager, Action::Install { .. })
    }

    /// What is written for a draft before its object: its namespace, unless an earlier one is in it, and its inputs.
    fn inputs(&self) -> Vec<(&Draft, Vec<Value>)> {
        let mut namespaces = BTreeSet::new();
        let each = self.drafts.iter().map(|draft| {
            let namespace = namespaces.insert(draft.namespace.as_str()).then(
                || json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": draft.namespace}}),
            );
            (draft, namespace.into_iter().chain(draft.inputs()).collect())
        });
        each.collect()
    }
}

async fn make_plan(
    args: &InstallArgs,
    asked: &ListImagesArgs,
    session: &Session,
    cluster: &ManagementCluster,
    inventory: &Inventory,
    state: &OperatorState,
) -> Result<Plan, CommandError> {
    let image = operator::image(asked.operator_image.as_deref(), &session.config.images()?)?;
    let manifest = operator::components(&image);
    let is_whole = state.operator.is_some() && setup::is_whole(cluster, &manifest).await?;
    let setup = setup::decide(state.operator.as_ref(), is_whole)?;
    let is_first = inventory.core().is_none() && state.core().is_none();
    let namespace = args.target_namespace.as_deref().filter(|it| !it.is_empty());
    let goals = install_goals(&asked.providers.named(), is_first, namespace)?;
    let mut problems: Vec<Problem> = Vec::new();
    let (mut present, mut wanted) = (Vec::new(), Vec::new());
    for goal in install::distinct(&goals)? {
        match intend(goal, state, inventory) {
            Ok(Intent::Present(object)) => present.push(object),
            Ok(Intent::Create(goal)) => wanted.push(goal),
            Err(problem) => problems.push(in_words(&problem)),
        }
    }
    if !wanted.is_empty() {
        session.printer.step("fetching providers");
    }
    let report = |notice: ReleaseNotice<'_>| session.report(notice);
    let releases = session.releases(&report);
    let found = join_all(wanted.iter().map(|it| draft(it, session, &releases, cluster))).await;
    let mut drafts = Vec::new();
    for found in found {
        match found {
            Ok(draft) => drafts.push(draft),
            Err(error) => {
                problems.push(([error.message].into_iter().chain(error.causes).collect(), error.hint));
            }
        }
    }
    problems.extend(check_core(&drafts, &wanted, inventory, state).map(|it| described(it, session)));
    let core = core_contract(cluster, &drafts, inventory, state).await?;
    problems.extend(check_contracts(&drafts, core.as_ref()).iter().map(in_words));
    let policy = session.cert_manager()?;
    let is_needed = match policy {
        CertManagerPolicy::Manage(_) => !drafts.is_empty(),
        CertManagerPolicy::LeaveAlone { .. } => drafts.iter().any(|it| it.needs_cert_manager),
    };
    let cert_manager = match cert_manager::decide(cluster, &policy, is_needed).await? {
        Ok(action) => action,
        Err(error) => {
            let provider = capstan_api::names::CERT_MANAGER.to_owned();
            let error = Box::new(error);
            problems.push(described(InstallProblem::Release { provider, error }, session));
            Action::Nothing
        }
    };
    if matches!(&cert_manager, Action::Await(found) if found.presence == Presence::Absent) {
        let providers = drafts.iter().filter(|it| it.needs_cert_manager).map(Draft::label).collect();
        problems.push(described(InstallProblem::NoCertManager { providers }, session));
    }
    if !problems.is_empty() {
        return Err(refused(problems));
    }
    Ok(Plan { setup, manifest, cert_manager, cert_manager_limit: policy.limit(), present, drafts })
}

fn in_words(problem: &OperatorProblem) -> Problem {
    (vec![problem.to_string()], problem.hint())
}

/// Whether there will be one core provider.
fn check_core(
    drafts: &[Draft],
    wanted: &[ProviderGoal],
    inventory: &Inventory,
    state: &OperatorState,
) -> Option<InstallProblem> {
    let is_core = |kind: ProviderType| kind == ProviderType::Core;
    let new = drafts.iter().filter(|it| is_core(it.kind)).map(Draft::label);
    let objects = state.providers.iter().filter(|it| is_core(it.kind)).map(ProviderObject::label);
    let installed = inventory.providers.iter().filter(|it| is_core(it.kind)).map(Installed::label);
    let cores: BTreeSet<String> = new.chain(objects).chain(installed).collect();
    if cores.len() > 1 {
        return Some(InstallProblem::Cores { cores: cores.into_iter().collect() });
    }
    // A core provider whose release cannot be had is a problem of its own.
    let is_alone = cores.is_empty() && !wanted.iter().any(|it| is_core(it.kind));
    (is_alone && !wanted.is_empty()).then_some(InstallProblem::NoCore)
}

/// Core and its version, and the contract that it will speak, if that is known.
async fn core_contract(
    cluster: &ManagementCluster,
    drafts: &[Draft],
    inventory: &Inventory,
    state: &OperatorState,
) -> Result<Option<(String, String)>, CommandError> {
    if let Some(new) = drafts.iter().find(|it| it.kind == ProviderType::Core) {
        return Ok(Some((format!("{} {}", new.label(), new.version), new.contract.clone())));
    }
    if let Some(object) = state.core() {
        let name = format!("{} {}", object.label(), object.installed_version.as_deref().unwrap_or_default());
        return Ok(object.contract.clone().map(|it| (name.trim_end().to_owned(), it)));
    }
    let Some(installed) = inventory.core() else { return Ok(None) };
    let contract = installed_core_contract(cluster).await?;
    Ok(contract.map(|it| (format!("{} {}", installed.label(), installed.version), it)))
}

fn check_contracts(drafts: &[Draft], core: Option<&(String, String)>) -> Vec<OperatorProblem> {
    let Some((core, core_contract)) = core else { return Vec::new() };
    let is_at_odds =
        |it: &&Draft| it.kind != ProviderType::Core && !is_compatible(core_contract, &it.contract);
    let problem = |it: &Draft| OperatorProblem::Contract {
        label: it.label(),
        version: it.version.clone(),
        contract: it.contract.clone(),
        core: core.clone(),
        core_contract: core_contract.clone(),
    };
    drafts.iter().filter(is_at_odds).map(problem).collect()
}

/// Fetches and renders a release, so that whatever is wrong with it or with its variables is known before anything is
/// written.
async fn draft(
    goal: &ProviderGoal,
    session: &Session,
    releases: &Releases<'_>,
    cluster: &ManagementCluster,
) -> Result<Draft, CommandError> {
    let label = goal.label();
    let unusable_release = |error| session.unusable_release_of(&label, error);
    let mut fetched = releases.fetch(goal.kind, &goal.name, &goal.version).await.map_err(unusable_release)?;
    let template = Template::parse(&fetched.file.text)
        .map_err(|error| unusable(&fetched.file.origin, &error.into(), Asked::Provider, session))?;
    let names: BTreeSet<&String> =
        template.variables().keys().chain(template.nested_variables().keys()).collect();
    let value = |name: &&String| Some(((*name).clone(), session.config.variable(name)?));
    let variables: BTreeMap<String, String> = names.iter().filter_map(value).collect();
    let namespace = match &goal.namespace {
        Some(namespace) => Some(namespace.clone()),
        None => own_namespace(&fetched).map_err(unusable_release)?,
    };
    // What has no value here may have one in the Secret of an earlier run, or in one that its user made.
    let (secret, there) = match namespace {
        Some(namespace) => read_secret(cluster, &namespace, &secret_name(&label)).await?,
        None => (FoundSecret::None, BTreeMap::new()),
    };
    // A user's Secret is not overwritten: its values are those that the operator finds.
    let mut values = variables.clone();
    match secret {
        FoundSecret::Users(_) => {
            let differs = |it: &&String| values.get(*it).is_some_and(|local| *local != there[*it]);
            let kept: Vec<&str> = there.keys().filter(differs).map(String::as_str).collect();
            if !kept.is_empty() {
                let words = kept.join(", ");
                session
                    .printer
                    .note(&format!("Secret {} keeps its own values of {words}", secret_name(&label)));
            }
            values.extend(there);
        }
        FoundSecret::None | FoundSecret::Ours => {
            let mut all = there;
            all.extend(values);
            values = all;
        }
    }
    fetched.source.variables = Box::new(move |name: &str| values.get(name).cloned());
    let images = images_of(&fetched.source.images, &label);
    let metadata = metadata_to_upload(&fetched).await?;
    let provider = fetched.source.provider.clone();
    let placement = Placement { target_namespace: goal.namespace.as_deref(), ..Placement::default() };
    let components = fetched.file.text.clone();
    let prepared = fetched.parse().await.and_then(|it| it.render(&placement)).map_err(unusable_release)?;
    let (namespace, version) = (prepared.components.target_namespace.clone(), prepared.version.clone());
    let source = match metadata {
        Some(metadata) => {
            let labels = input_labels(&label);
            let files = ReleaseFiles {
                label: &label,
                version: &version,
                namespace: &namespace,
                labels: &labels,
                metadata: &metadata,
                components: &components,
            };
            ReleaseSource::ConfigMaps(files.config_maps()?)
        }
        None if is_built_in(&provider) => ReleaseSource::BuiltIn,
        None => ReleaseSource::Url(provider.url.clone()),
    };
    Ok(Draft {
        kind: goal.kind,
        name: goal.name.clone(),
        namespace,
        version,
        contract: prepared.contract.as_str().to_owned(),
        variables,
        secret,
        images,
        source,
        needs_cert_manager: prepared.components.objects().iter().any(cert_manager::needs_it),
    })
}

/// The namespace that the components bring.
fn own_namespace(fetched: &Fetched<'_>) -> Result<Option<String>, ReleaseError> {
    let documents = fetched.parse_raw()?;
    let found = documents.iter().find(|it| it.value["kind"] == "Namespace");
    Ok(found.and_then(|it| it.value["metadata"]["name"].as_str()).map(str::to_owned))
}

/// Whether the operator finds the releases by the provider's name.
fn is_built_in(provider: &Provider) -> bool {
    Config::default().provider(provider.kind, &provider.name).is_ok_and(|it| it == *provider)
}

/// What there is of a Secret for variables, with its values.
async fn read_secret(
    cluster: &ManagementCluster,
    namespace: &str,
    name: &str,
) -> Result<(FoundSecret, BTreeMap<String, String>), CommandError> {
    let secrets: Api<Secret> = Api::namespaced(cluster.client().clone(), namespace);
    let found = secrets.get_opt(name).await;
    let found = found.map_err(|error| cluster.failed(format!("read Secret {namespace}/{name}"), error))?;
    let text = |(key, value): (String, ByteString)| Some((key, String::from_utf8(value.0).ok()?));
    let Some(Secret { metadata, data, .. }) = found else { return Ok((FoundSecret::None, BTreeMap::new())) };
    let data = data.unwrap_or_default();
    let found = if is_input(&metadata) {
        FoundSecret::Ours
    } else {
        FoundSecret::Users(data.keys().cloned().collect())
    };
    Ok((found, data.into_iter().filter_map(text).collect()))
}

/// Shows what would be created.
async fn show(
    cluster: &ManagementCluster,
    plan: &Plan,
    with_differences: bool,
    format: ListFormat,
    printer: Printer,
) -> Result<(), CommandError> {
    let mut parts: Vec<(String, Vec<Value>)> = Vec::new();
    if plan.setup != Setup::Present {
        parts.push((COMPONENT.to_owned(), plan.manifest.clone()));
    }
    if let Action::Install { manifest, .. } = &plan.cert_manager {
        parts.push((capstan_api::names::CERT_MANAGER.to_owned(), manifest.objects.clone()));
    }
    for (draft, mut objects) in plan.inputs() {
        objects.push(draft.provider());
        parts.push((draft.label(), objects));
    }
    let intents: Vec<Difference<'_>> = parts
        .iter()
        .map(|(provider, wanted)| Difference { provider, wanted: wanted.iter().collect(), removed: &[] })
        .collect();
    let preview = diff::preview(cluster, &intents).await?;
    difference::print(&preview, with_differences, format, printer)?;
    difference::refused(&preview).map_or(Ok(()), Err)
}

async fn carry_out(cluster: &ManagementCluster, plan: &Plan, printer: Printer) -> Result<(), CommandError> {
    let progress = Progress::new(printer);
    let result = write(cluster, plan, &progress).await;
    progress.end();
    result.map_err(|error| {
        let hint = go_on(error.hint.clone());
        error.hint(hint)
    })
}

async fn write(cluster: &ManagementCluster, plan: &Plan, progress: &Progress) -> Result<(), CommandError> {
    let report = |event: ApplyEvent<'_>| {
        if let ApplyEvent::Retrying { reason, .. } = event {
            progress.say(|printer| printer.warn(&format!("{reason}; retrying")));
        }
    };
    if plan.setup != Setup::Present {
        let verb = if plan.setup == Setup::Complete { "completing" } else { "installing" };
        let step = format!("{verb} the provider operator {VERSION} in namespace {NAMESPACE}");
        progress.say(|printer| printer.step(&step));
        apply::apply(cluster, &plan.manifest, &report).await?;
        cluster.refresh_kinds().await?;
        progress.say(|printer| printer.done(&format!("installed the provider operator {VERSION}")));
    }
    if let Action::Install { manifest, is_begun } = &plan.cert_manager {
        let verb = if *is_begun { "completing" } else { "installing" };
        progress.say(|printer| printer.step(&format!("{verb} cert-manager {}", manifest.version)));
    }
    let tell = |event: CertManagerEvent<'_>| match event {
        CertManagerEvent::Apply(event) => report(event),
        CertManagerEvent::Waiting { reason } => {
            progress.waiting(&format!("waiting for cert-manager: {reason}"));
        }
    };
    cert_manager::carry_out(cluster, &plan.cert_manager, plan.cert_manager_limit, &tell).await?;
    if plan.cert_manager != Action::Nothing {
        progress.say(|printer| printer.done("cert-manager works"));
    }
    let inputs: Vec<Value> = plan.inputs().into_iter().flat_map(|it| it.1).collect();
    apply::apply(cluster, &inputs, &report).await?;
    // Core's object comes last: while it is missing, the same command again is a first run again, and adds the same
    // defaults.
    let (cores, others): (Vec<&Draft>, Vec<&Draft>) =
        plan.drafts.iter().partition(|it| it.kind == ProviderType::Core);
    for drafts in [others, cores] {
        let objects: Vec<Value> = drafts.iter().map(|it| it.provider()).collect();
        apply::apply(cluster, &objects, &report).await?;
        for draft in drafts {
            progress.say(|printer| printer.done(&created(draft)));
        }
    }
    Ok(())
}

fn created(draft: &Draft) -> String {
    let from = match &draft.source {
        ReleaseSource::BuiltIn => String::new(),
        ReleaseSource::Url(url) => format!(", from {url}"),
        ReleaseSource::ConfigMaps(it) if it.len() == 1 => {
            ", from a ConfigMap with the local release".to_owned()
        }
        ReleaseSource::ConfigMaps(it) => format!(", from {} ConfigMaps with the local release", it.len()),
    };
    format!("created {} for {}{from}", draft.id(), draft.version)
}

/// Providers that are installed and not named: the operator makes objects of them by itself.
fn say_what_the_operator_takes_over(
    plan: &Plan,
    inventory: &Inventory,
    state: &OperatorState,
    printer: Printer,
) {
    let is_new = |label: &String| plan.drafts.iter().any(|it| it.label() == *label);
    let left: Vec<String> = state.unmanaged(inventory).providers.iter().map(Installed::label).collect();
    let left: Vec<String> = left.into_iter().filter(|it| !is_new(it)).collect();
    if !left.is_empty() {
        printer.note(&format!("the operator takes over what was installed without it: {}", left.join(", ")));
    }
}

/// Waits for the operator and for what was named; where nothing was, for all objects.
async fn wait(
    cluster: &ManagementCluster,
    plan: &Plan,
    state: &mut OperatorState,
    limit: Duration,
    printer: Printer,
) -> Result<(), CommandError> {
    let operator = state.operator.as_ref().map(|it| (it.namespace.clone(), it.name.clone()));
    let (namespace, name) = operator.unwrap_or_else(|| (NAMESPACE.to_owned(), DEPLOYMENT.to_owned()));
    waiting::for_operator(cluster, (&namespace, &name), limit, printer).await?;
    let mut awaited: Vec<ObjectRef> = plan.present.clone();
    awaited.extend(plan.drafts.iter().map(Draft::id));
    if awaited.is_empty() {
        awaited = state.providers.iter().map(ProviderObject::id).collect();
    }
    waiting::for_objects(cluster, state, &awaited, limit, printer).await
}

fn say_what_next(plan: &Plan, state: &OperatorState, printer: Printer) {
    if plan.drafts.is_empty() {
        return;
    }
    if state.operator.as_ref().is_some_and(|it| !it.is_available) {
        printer.warn("the provider operator does not run: provider objects wait for it");
    }
    printer.step(&format!(
        "the operator installs the providers; {} init --operator --wait-providers waits for all of them",
        program::name()
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(kind: ProviderType, name: &str, namespace: &str, contract: &str) -> Draft {
        Draft {
            kind,
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            version: "v1.0.0".to_owned(),
            contract: contract.to_owned(),
            variables: BTreeMap::new(),
            secret: FoundSecret::None,
            images: None,
            source: ReleaseSource::BuiltIn,
            needs_cert_manager: false,
        }
    }

    #[test]
    fn a_namespace_is_written_once() {
        use ProviderType::{Bootstrap, ControlPlane, Infrastructure};
        let plan = Plan {
            setup: Setup::Present,
            manifest: Vec::new(),
            cert_manager: Action::Nothing,
            cert_manager_limit: Duration::ZERO,
            present: Vec::new(),
            drafts: vec![
                draft(Bootstrap, "a", "shared", "v1beta2"),
                draft(ControlPlane, "a", "shared", "v1beta2"),
                draft(Infrastructure, "b", "own", "v1beta2"),
            ],
        };
        let counts: Vec<usize> = plan.inputs().iter().map(|it| it.1.len()).collect();
        assert_eq!(counts, [1, 0, 1]);
    }

    #[test]
    fn contracts_go_with_cores() {
        let drafts = [
            draft(ProviderType::Core, "cluster-api", "a", "v1beta2"),
            draft(ProviderType::Infrastructure, "old", "b", "v1beta1"),
            draft(ProviderType::Infrastructure, "new", "c", "v1beta2"),
        ];
        let problems = |contract: &str| {
            let core = ("cluster-api v1.0.0".to_owned(), contract.to_owned());
            check_contracts(&drafts, Some(&core)).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(problems("v1beta2").is_empty());
        let [problem] = problems("v1beta1").try_into().unwrap();
        assert!(problem.contains("infrastructure-new v1.0.0 speaks contract v1beta2"), "{problem}");
        assert!(check_contracts(&drafts, None).is_empty(), "the operator finds out");
    }

    #[test]
    fn there_is_one_core_provider() {
        let state = OperatorState::default();
        let (core, other) = (
            draft(ProviderType::Core, "cluster-api", "a", "v1beta2"),
            draft(ProviderType::Infrastructure, "b", "b", "v1beta2"),
        );
        let goal = |draft: &Draft| ProviderGoal {
            kind: draft.kind,
            name: draft.name.clone(),
            version: capstan_lifecycle::goal::VersionGoal::Latest,
            namespace: None,
        };
        let check = |drafts: &[Draft], wanted: &[&Draft]| {
            let wanted: Vec<ProviderGoal> = wanted.iter().map(|it| goal(it)).collect();
            check_core(drafts, &wanted, &Inventory::default(), &state).map(|it| it.to_string())
        };
        assert_eq!(check(&[core.clone(), other.clone()], &[&core, &other]), None);
        assert_eq!(check(&[], &[]), None, "the operator alone");
        assert_eq!(
            check(std::slice::from_ref(&other), &[&core, &other]),
            None,
            "why there is none is said already"
        );
        assert!(check(std::slice::from_ref(&other), &[&other]).unwrap().contains("no core provider"));
        let second = Draft { name: "mine".to_owned(), ..core.clone() };
        assert!(
            check(&[core.clone(), second.clone()], &[&core, &second]).unwrap().contains("cluster-api, mine")
        );
    }
}
