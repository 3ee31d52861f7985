//! The controller of an object, and whether it runs.

use capstan_api::{
    names::{CORE_GROUP, CORE_PROVIDER, label},
    provider::ProviderType,
};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use super::{
    commands, draft::Draft, finding::ExplainProblem, inspector::Inspector, snapshot::ExplainSnapshot,
};
use crate::fields::{self, number, text, time};
use crate::human_duration;
use capstan_management::{
    Kind,
    inventory::{self, Installed},
};

/// A Lease that was not renewed for this long has no holder, however short its own term is.
const LEAST_TERM: SignedDuration = SignedDuration::from_secs(60);

/// A condition that changed within this time was set by a controller that still runs.
const RECENT: SignedDuration = SignedDuration::from_mins(10);

/// Whether a controller runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControllerState {
    /// Its provider is not installed.
    NotInstalled,
    /// Its provider is in the inventory, but has no Deployment.
    Missing,
    /// Its Deployment is to have no replicas.
    ScaledToZero,
    /// Its Deployment has no replica that is available.
    NotAvailable,
    /// Its replicas are available, but none of them leads.
    WithoutLeader,
    /// It runs.
    Running,
    /// Nothing here shows where it runs, but it has reported on the object as it is now.
    Elsewhere,
    /// It is not known which it is, or whether it runs.
    Unknown,
}

/// The replica of a controller that holds its Lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ControllerLeader {
    /// Its identity in the Lease.
    pub holder: String,
    /// When it last renewed the Lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewed: Option<Timestamp>,
}

/// The controller of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Controller {
    /// Whether it runs.
    pub state: ControllerState,
    /// Its state in a sentence.
    pub sentence: String,
    /// Its provider, by the label of its components.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The provider's version, by the inventory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The namespace of its Deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its Deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// Its leader, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<ControllerLeader>,
}

impl Controller {
    /// The command that shows its last log lines.
    pub(crate) fn logs(&self) -> Option<String> {
        let is_up = matches!(self.state, ControllerState::Running | ControllerState::WithoutLeader);
        let (namespace, deployment) = (self.namespace.as_ref()?, self.deployment.as_ref()?);
        is_up.then(|| commands::logs(namespace, deployment))
    }

    fn of_provider(state: ControllerState, provider: Option<&str>, sentence: String) -> Self {
        Self {
            state,
            sentence,
            provider: provider.map(str::to_owned),
            version: None,
            namespace: None,
            deployment: None,
            leader: None,
        }
    }
}

/// The controller of an object.
pub(crate) fn controller(snapshot: &ExplainSnapshot, object: &Value, now: Timestamp) -> Controller {
    let (group, kind) = (fields::group(object), fields::kind(object));
    let unknown = |sentence: String| Controller::of_provider(ControllerState::Unknown, None, sentence);
    let Some(provider) = provider(snapshot, group, kind) else {
        return unknown(format!(
            "the controller is not known: the CRD of {kind} has no label {}",
            label::PROVIDER
        ));
    };
    let known = |state, sentence| Controller::of_provider(state, Some(&provider), sentence);
    let Some(deployments) = &snapshot.deployments else {
        let sentence = format!(
            "that of provider {provider}; whether it runs is not known, since Deployments cannot be read"
        );
        return known(ControllerState::Unknown, sentence);
    };
    let installed = snapshot.inventory.providers.iter().find(|it| it.label() == provider);
    let own = deployments.iter().filter(|it| fields::label(it, label::PROVIDER) == Some(&provider));
    let worst = own.map(|it| of_deployment(snapshot, it, &provider, now)).min_by_key(|it| it.state);
    let is_seen = || {
        is_current(object, now) || provider == CORE_PROVIDER && is_current(&snapshot.workload.cluster, now)
    };
    let mut found = worst.unwrap_or_else(|| match installed {
        Some(Installed { namespace, .. }) => {
            let sentence = format!(
                "provider {provider} is in the inventory, but namespace {namespace} has no Deployment of it"
            );
            Controller { namespace: Some(namespace.clone()), ..known(ControllerState::Missing, sentence) }
        }
        None if is_seen() => {
            let sentence = format!(
                "provider {provider} is neither in the inventory nor has it a Deployment here, but it has reported on {kind} \
                 {} as it is now: it runs outside this cluster, or was removed since",
                fields::name(object)
            );
            known(ControllerState::Elsewhere, sentence)
        }
        None => {
            let sentence =
                format!("provider {provider} is neither in the inventory nor has it a Deployment anywhere");
            known(ControllerState::NotInstalled, sentence)
        }
    });
    found.version = installed.map(|it| it.version.clone());
    found
}

/// Whether a controller has reported on an object as it is now: on its generation, or within the last minutes.
fn is_current(object: &Value, now: Timestamp) -> bool {
    let lists = ["/status/v1beta2/conditions", "/status/conditions"];
    let conditions = lists.iter().filter_map(|it| object.pointer(it)?.as_array()).flatten();
    let observed = conditions.map(|it| number(it, "/observedGeneration"));
    let mut observed = observed.chain([number(object, "/status/observedGeneration")]).flatten();
    let is_recent = |it: Timestamp| now.duration_since(it) < RECENT;
    number(object, "/metadata/generation").is_some_and(|now| observed.any(|it| it == now))
        || fields::reports(object).iter().filter_map(|it| it.since).any(is_recent)
}

/// The provider that a kind belongs to, by the label that every installation puts on its CRD.
fn provider(snapshot: &ExplainSnapshot, group: &str, kind: &str) -> Option<String> {
    let labels = snapshot.workload.crd(group, kind).map(|it| &it.labels);
    if let Some(provider) = labels.and_then(|it| it.get(label::PROVIDER)) {
        return Some(provider.clone());
    }
    // Core's own kinds may have been installed by other means than its Deployment.
    let deployments = snapshot.deployments.iter().flatten();
    let is_there = snapshot.inventory.core().is_some()
        || deployments.into_iter().any(|it| fields::label(it, label::PROVIDER) == Some(CORE_PROVIDER));
    (group == CORE_GROUP && is_there).then(|| CORE_PROVIDER.to_owned())
}

fn of_deployment(
    snapshot: &ExplainSnapshot,
    deployment: &Value,
    provider: &str,
    now: Timestamp,
) -> Controller {
    let namespace = fields::namespace(deployment);
    let name = fields::name(deployment);
    let desired = number(deployment, "/spec/replicas").unwrap_or(1);
    let available = number(deployment, "/status/availableReplicas").unwrap_or(0);
    let leader = leader(snapshot, namespace, name, now);
    let place = format!("Deployment {namespace}/{name} of provider {provider}");
    let (state, sentence) = if desired == 0 {
        (ControllerState::ScaledToZero, format!("{place} is scaled to zero"))
    } else if available == 0 {
        (
            ControllerState::NotAvailable,
            format!("{place} has none of its {desired} replicas available{}", why(deployment)),
        )
    } else {
        let counts = format!("{available} of {desired} replicas available");
        match &leader {
            Some((leader, true)) => {
                let ago =
                    leader.renewed.map(|it| format!(" for {}", human_duration(it, now))).unwrap_or_default();
                let sentence =
                    format!("{place} has {counts}, but its Lease was not renewed{ago} by {}", leader.holder);
                (ControllerState::WithoutLeader, sentence)
            }
            Some((leader, false)) => {
                (ControllerState::Running, format!("{place} runs: {counts}, led by {}", leader.holder))
            }
            None => (ControllerState::Running, format!("{place} runs: {counts}")),
        }
    };
    Controller {
        namespace: Some(namespace.to_owned()),
        deployment: Some(name.to_owned()),
        leader: leader.map(|(leader, _)| leader),
        ..Controller::of_provider(state, Some(provider), sentence)
    }
}

/// Why a Deployment is not available, in its own words.
fn why(deployment: &Value) -> String {
    let reports = fields::reports(deployment);
    let bad = reports.iter().find(|it| it.type_ == "Available" && it.status.as_str() != "True");
    match bad {
        Some(report) if !report.message.is_empty() => format!(" ({}: {})", report.reason, report.message),
        _ => String::new(),
    }
}

/// The replica that holds a Lease, and whether it has let it lapse.
fn leader(
    snapshot: &ExplainSnapshot,
    namespace: &str,
    deployment: &str,
    now: Timestamp,
) -> Option<(ControllerLeader, bool)> {
    let prefix = format!("{deployment}-");
    let lease = snapshot.leases.iter().find(|it| {
        fields::namespace(it) == namespace
            && text(it, "/spec/holderIdentity").is_some_and(|holder| holder.starts_with(&prefix))
    })?;
    let holder = text(lease, "/spec/holderIdentity")?.to_owned();
    let renewed = time(lease, "/spec/renewTime");
    let term = SignedDuration::from_secs(number(lease, "/spec/leaseDurationSeconds").unwrap_or(0));
    let limit = LEAST_TERM.max(term.saturating_mul(3));
    let has_lapsed = renewed.is_some_and(|it| now.duration_since(it) > limit);
    Some((ControllerLeader { holder, renewed }, has_lapsed))
}

impl<'a> Inspector<'a> {
    /// What is wrong with the controller of an object, if anything.
    pub(crate) fn doubt<'o>(&self, object: &'o Value, controller: &Controller) -> Option<Draft<'a, 'o>> {
        let problem = match controller.state {
            ControllerState::Running | ControllerState::Unknown => return None,
            ControllerState::NotInstalled | ControllerState::Elsewhere => {
                ExplainProblem::ProviderNotInstalled
            }
            ControllerState::Missing => ExplainProblem::ControllerMissing,
            ControllerState::ScaledToZero => ExplainProblem::ControllerScaledToZero,
            ControllerState::NotAvailable => ExplainProblem::ControllerNotAvailable,
            ControllerState::WithoutLeader => ExplainProblem::ControllerWithoutLeader,
        };
        let namespace = controller.namespace.as_deref().unwrap_or_default();
        let provider = controller.provider.as_deref().unwrap_or_default();
        let name = controller.deployment.as_deref().unwrap_or_default();
        let concerned = if controller.deployment.is_some() {
            Kind::deployment().object(Some(namespace), name)
        } else {
            inventory::kind().object(controller.namespace.as_deref(), provider)
        };
        let certainty = if controller.state == ControllerState::Elsewhere { "may be" } else { "is" };
        let sentence = format!(
            "No controller {certainty} reconciling {} objects: {}.",
            fields::kind(object),
            controller.sentence
        );
        let draft = self.sentence(problem, object, sentence).about(concerned).controller();
        Some(match controller.state {
            ControllerState::ScaledToZero => draft
                .look(format!("kubectl describe deployment {name} -n {namespace}"))
                .go_on(format!("kubectl scale deployment {name} -n {namespace} --replicas 1")),
            ControllerState::NotAvailable => draft
                .look(format!("kubectl describe deployment {name} -n {namespace}"))
                .look(format!("kubectl get pods -n {namespace}")),
            ControllerState::WithoutLeader => draft
                .look(commands::logs(namespace, name))
                .go_on(format!("kubectl rollout restart deployment {name} -n {namespace}")),
            ControllerState::Missing => draft
                .look(format!("kubectl get deployments,pods -n {namespace}"))
                .go_on(install(self.program, provider, controller.version.as_deref())),
            _ => draft
                .look(format!("kubectl get deployments -A -l {}={provider}", label::PROVIDER))
                .go_on(install(self.program, provider, None)),
        })
    }
}

/// Installs a provider.
fn install(program: &str, provider: &str, version: Option<&str>) -> String {
    let version = version.map(|it| format!(":{it}")).unwrap_or_default();
    match ProviderType::from_label(provider) {
        Some((kind, name)) => format!("{program} init --{} {name}{version}", kind.prefix()),
        None => format!("{program} init"),
    }
}
