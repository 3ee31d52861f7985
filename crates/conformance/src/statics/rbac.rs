//! Whether core may read and write a provider's kinds.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    kind::{Kind, failed, keep_or, not_applicable, not_checked},
    role::{AGGREGATION, Family, family},
};
use crate::{input::Source, report::Outcome, rules::Role};

const ON_OBJECTS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];
const ON_TEMPLATES: [&str; 5] = ["get", "list", "patch", "update", "watch"];

/// The ClusterRoles among some objects.
#[derive(Debug)]
pub(super) struct ClusterRoles<'a>(Vec<&'a Value>);

impl<'a> ClusterRoles<'a> {
    pub(super) fn among(sources: &'a [Source]) -> Self {
        let roles = sources.iter().map(|it| &it.object).filter(|it| {
            it["kind"] == "ClusterRole"
                && it["apiVersion"].as_str().is_some_and(|it| it.starts_with("rbac.authorization.k8s.io/"))
        });
        Self(roles.collect())
    }

    /// The roles that are added to core's, and the roles that are added to those.
    fn aggregated(&self) -> Vec<&'a Value> {
        let is_labelled = |role: &Value, name: &str, value: &str| {
            role["metadata"]["labels"].get(name).is_some_and(|it| it == value)
        };
        let mut taken: Vec<&Value> =
            self.0.iter().copied().filter(|it| is_labelled(it, AGGREGATION, "true")).collect();
        let mut next = 0;
        while let Some(role) = taken.get(next).copied() {
            next += 1;
            let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array().into_iter().flatten();
            for labels in selectors.filter_map(|it| it["matchLabels"].as_object()) {
                let matches = |role: &Value| {
                    labels
                        .iter()
                        .all(|(name, value)| value.as_str().is_some_and(|it| is_labelled(role, name, it)))
                };
                for other in self.0.iter().copied().filter(|it| matches(it)) {
                    if !taken.iter().any(|it| std::ptr::eq(*it, other)) {
                        taken.push(other);
                    }
                }
            }
        }
        taken
    }

    /// The verbs that core gets on a resource.
    fn verbs(&self, group: &str, resource: &str) -> BTreeSet<&'a str> {
        let has = |list: &Value, wanted: &str| {
            list.as_array().is_some_and(|list| list.iter().any(|it| it == "*" || it == wanted))
        };
        let rules = self.aggregated().into_iter().filter_map(|it| it["rules"].as_array()).flatten();
        rules
            .filter(|rule| {
                has(&rule["apiGroups"], group)
                    && has(&rule["resources"], resource)
                    && rule["resourceNames"].as_array().is_none_or(Vec::is_empty)
            })
            .flat_map(|rule| rule["verbs"].as_array().into_iter().flatten().filter_map(Value::as_str))
            .collect()
    }

    /// Whether core may do with a kind what the contract says.
    pub(super) fn check(&self, kind: &Kind<'_>) -> Outcome {
        let crd = kind.crd;
        let group = &crd.id.group;
        if family(group) != Family::Foreign {
            return not_applicable(format!("core may read and write all kinds of {group} by itself"));
        }
        if self.0.is_empty() {
            return not_checked("no ClusterRole was given: give the whole components file");
        }
        let is_cloned_only = matches!(kind.part.role, Role::InfraCluster | Role::ControlPlane);
        let needed = if kind.part.template && is_cloned_only { &ON_TEMPLATES[..] } else { &ON_OBJECTS[..] };
        let verbs = self.verbs(group, crd.plural);
        let missing: Vec<_> =
            needed.iter().copied().filter(|it| !verbs.contains(it) && !verbs.contains("*")).collect();
        keep_or(missing.is_empty(), || {
            failed(
                format!(
                    "{}: no ClusterRole with the label {AGGREGATION}: \"true\" has {} for {} in group {group}",
                    crd.file,
                    missing.join(", "),
                    crd.plural
                ),
                format!(
                    "add a ClusterRole with that label and a rule {{apiGroups: [{group}], resources: [{}], verbs: [{}]}}",
                    crd.plural,
                    needed.join(", ")
                ),
            )
        })
    }
}
