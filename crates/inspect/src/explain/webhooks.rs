//! Webhooks that the API server must call, and that do not answer.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};
use serde_json::Value;

use super::{draft::Draft, finding::ExplainProblem, inspector::Inspector, snapshot::ExplainSnapshot};
use crate::fields::{self, kind, labels, service, text};
use crate::snapshot::Crd;
use capstan_management::ObjectRef;

/// The Services that must answer before objects of these kinds can be written or read.
pub(crate) fn services(webhooks: &[Value], crds: &[&Crd]) -> BTreeSet<Service> {
    let of_kind = |crd: &&Crd| {
        let asked = webhooks.iter().flat_map(hooks).filter(|hook| governs(hook, crd)).filter_map(called);
        asked.chain(crd.converter.clone()).collect::<Vec<_>>()
    };
    crds.iter().flat_map(of_kind).collect()
}

fn hooks(configuration: &Value) -> impl Iterator<Item = &Value> {
    configuration["webhooks"].as_array().into_iter().flatten()
}

fn called(hook: &Value) -> Option<Service> {
    service(hook, "/clientConfig/service")
}

/// Whether a write to a kind must not happen without the webhook.
fn governs(hook: &Value, crd: &Crd) -> bool {
    let names = |rule: &Value, field: &str, wanted: &[&str]| {
        rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).any(|it| wanted.contains(&it))
    };
    let with_parts = format!("{}/*", crd.plural);
    let rules = hook["rules"].as_array().into_iter().flatten();
    let mut of_kind = rules.filter(|rule| {
        names(rule, "apiGroups", &[&crd.group, "*"])
            && names(rule, "resources", &[&crd.plural, &with_parts, "*", "*/*"])
    });
    hook["failurePolicy"] != "Ignore" && of_kind.next().is_some()
}

/// Whether the selectors of a webhook match an object.
fn selects(snapshot: &ExplainSnapshot, hook: &Value, object: &Value) -> bool {
    matches(&hook["objectSelector"], &labels(object))
        && matches(&hook["namespaceSelector"], &snapshot.namespace_labels)
}

/// No selector, and one that cannot be understood, match everything.
fn matches(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let selector = serde_json::from_value::<LabelSelector>(selector.clone()).unwrap_or_default();
    Selector::try_from(selector).map_or(true, |it| it.matches(labels))
}

impl<'a> Inspector<'a> {
    /// What keeps an object from being written or read, but for Services of one namespace.
    pub(crate) fn unanswered<'o>(&self, object: &'o Value, but: Option<&str>) -> Vec<Draft<'a, 'o>> {
        let snapshot = self.snapshot;
        let Some(crd) = snapshot.workload.crd(fields::group(object), kind(object)) else {
            return Vec::new();
        };
        let unready = |service: &Service| unready(snapshot, service).filter(|it| but != Some(&it.0.0));
        let down = snapshot.webhooks.iter().filter_map(|configuration| {
            let (hook, (service, reason)) = hooks(configuration)
                .filter(|hook| governs(hook, crd) && selects(snapshot, hook, object))
                .find_map(|hook| Some((hook, unready(&called(hook)?)?)))?;
            let sentence = format!(
                "The API server refuses changes to {} objects: it must call webhook {} of {} {} first, whose Service {}/{} {}.",
                kind(object),
                text(hook, "/name").unwrap_or_default(),
                kind(configuration),
                fields::name(configuration),
                service.0,
                service.1,
                reason,
            );
            let draft = self.sentence(ExplainProblem::WebhookUnreachable, object, sentence);
            Some(with_commands(draft.about(ObjectRef::of(configuration)), &service))
        });
        let unconvertible = crd.converter.as_ref().and_then(unready).map(|(service, reason)| {
            let sentence = format!(
                "{} objects cannot be converted between versions: the webhook of CRD {} is Service {}/{}, which {}.",
                kind(object),
                crd.name,
                service.0,
                service.1,
                reason,
            );
            let draft = self.sentence(ExplainProblem::ConversionWebhookUnreachable, object, sentence);
            with_commands(draft.about(crd.reference()), &service)
        });
        down.chain(unconvertible).collect()
    }
}

/// Namespace and name of a Service.
type Service = (String, String);

/// A Service that does not answer, and why.
fn unready(snapshot: &ExplainSnapshot, service: &Service) -> Option<(Service, &'static str)> {
    let reason = match snapshot.services.get(service)? {
        None => "does not exist",
        Some(0) => "has no endpoint that is ready",
        Some(_) => return None,
    };
    Some((service.clone(), reason))
}

fn with_commands<'a, 'o>(draft: Draft<'a, 'o>, (namespace, name): &Service) -> Draft<'a, 'o> {
    draft
        .look(format!("kubectl get endpointslices -n {namespace} -l kubernetes.io/service-name={name}"))
        .look(format!("kubectl get deployments,pods -n {namespace}"))
        .controller()
}
