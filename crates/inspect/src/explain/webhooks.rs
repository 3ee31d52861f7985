//! Webhooks that the API server must ask, and that nobody answers.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};
use serde_json::Value;

use super::{
    finding::{Finding, Problem},
    snapshot::ExplainSnapshot,
};
use crate::fields::{self, kind, service, text};
use crate::snapshot::Crd;
use capstan_management::ObjectRef;

/// The Services that must answer before objects of these kinds can be written or read.
pub(crate) fn services(webhooks: &[Value], crds: &[&Crd]) -> BTreeSet<(String, String)> {
    let of_kind = |crd: &&Crd| {
        let asked = webhooks.iter().flat_map(hooks).filter(|hook| governs(hook, crd)).filter_map(called);
        asked.chain(crd.converter.clone()).collect::<Vec<_>>()
    };
    crds.iter().flat_map(of_kind).collect()
}

fn hooks(configuration: &Value) -> impl Iterator<Item = &Value> {
    configuration["webhooks"].as_array().into_iter().flatten()
}

fn called(hook: &Value) -> Option<(String, String)> {
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
    let labels = object.pointer("/metadata/labels").cloned().unwrap_or_default();
    let labels: BTreeMap<String, String> = serde_json::from_value(labels).unwrap_or_default();
    matches(&hook["objectSelector"], &labels)
        && matches(&hook["namespaceSelector"], &snapshot.namespace_labels)
}

/// No selector, and one that cannot be understood, match everything.
fn matches(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let selector = serde_json::from_value::<LabelSelector>(selector.clone()).unwrap_or_default();
    Selector::try_from(selector).map_or(true, |it| it.matches(labels))
}

/// What keeps an object from being written or read, but for Services of one namespace.
pub(crate) fn complaints(snapshot: &ExplainSnapshot, object: &Value, but: Option<&str>) -> Vec<Finding> {
    let Some(crd) = snapshot.workload.crd(fields::group(object), kind(object)) else {
        return Vec::new();
    };
    let silence = |service: &(String, String)| {
        silence(snapshot, service).filter(|it| but != Some(it.namespace.as_str()))
    };
    let mut findings = Vec::new();
    for configuration in &snapshot.webhooks {
        let silent = hooks(configuration)
            .filter(|hook| governs(hook, crd) && selects(snapshot, hook, object))
            .find_map(|hook| Some((hook, silence(&called(hook)?)?)));
        if let Some((hook, silence)) = silent {
            findings.push(unreachable(configuration, hook, object, &silence));
        }
    }
    if let Some(silence) = crd.converter.as_ref().and_then(silence) {
        findings.push(unconvertible(crd, object, &silence));
    }
    findings
}

/// A Service that does not answer.
struct Silence {
    namespace: String,
    name: String,
    reason: &'static str,
}

fn silence(snapshot: &ExplainSnapshot, service: &(String, String)) -> Option<Silence> {
    let reason = match snapshot.services.get(service)? {
        None => "does not exist",
        Some(0) => "has no endpoint that is ready",
        Some(_) => return None,
    };
    Some(Silence { namespace: service.0.clone(), name: service.1.clone(), reason })
}

impl Silence {
    fn with_commands(&self, finding: Finding) -> Finding {
        let Self { namespace, name, .. } = self;
        finding
            .look(format!("kubectl get endpointslices -n {namespace} -l kubernetes.io/service-name={name}"))
            .look(format!("kubectl get deployments,pods -n {namespace}"))
    }
}

fn unreachable(configuration: &Value, hook: &Value, object: &Value, silence: &Silence) -> Finding {
    let sentence = format!(
        "The API server refuses changes to {} objects: it must ask webhook {} of {} {} first, whose Service {}/{} {}.",
        kind(object),
        text(hook, "/name").unwrap_or_default(),
        kind(configuration),
        fields::name(configuration),
        silence.namespace,
        silence.name,
        silence.reason,
    );
    silence.with_commands(Finding::new(Problem::WebhookUnreachable, ObjectRef::of(configuration), sentence))
}

fn unconvertible(crd: &Crd, object: &Value, silence: &Silence) -> Finding {
    let sentence = format!(
        "{} objects cannot be converted between versions: the webhook of CustomResourceDefinition {} is Service {}/{}, \
         which {}.",
        kind(object),
        crd.name,
        silence.namespace,
        silence.name,
        silence.reason,
    );
    let crd = ObjectRef {
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        namespace: None,
        name: crd.name.clone(),
    };
    silence.with_commands(Finding::new(Problem::ConversionWebhookUnreachable, crd, sentence))
}
