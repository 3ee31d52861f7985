//! What can be done about errors of looking at workload clusters.

use capstan_inspect::{
    clusters::ClusterError,
    kubeconfig::KubeconfigError,
    rollout::{RolloutError, RolloutRefusal},
};

use super::Hint;
use crate::program;

/// How many names a hint lists.
const LISTED: usize = 10;

impl Hint for ClusterError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Server(error) => return error.hint(),
            Self::NotInstalled { .. } => {
                "name the management cluster by --kubeconfig or --kubeconfig-context, or install Cluster API by init"
                    .to_owned()
            }
            Self::NameMissing | Self::NameTooLong { .. } => {
                format!("list the Clusters: {} get clusters -A", program::name())
            }
            Self::NotFound { namespace, name, others, .. } => suggest(namespace, name, others),
        })
    }
}

impl Hint for KubeconfigError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Cluster(error) => return error.hint(),
            Self::Server(error) if error.is_forbidden() => {
                "a kubeconfig is a credential, and reading Secrets is granted apart: ask for verb get on that Secret"
                    .to_owned()
            }
            Self::Server(error) => return error.hint(),
            Self::NotYet { namespace, name, .. } => {
                format!("what it waits for: {} explain cluster {name} -n {namespace}", program::name())
            }
            Self::NoKey { namespace, secret, .. } | Self::NotText { namespace, secret } => format!(
                "no control plane provider wrote it; look at it: kubectl get secret {secret} -n {namespace} -o yaml"
            ),
        })
    }
}

impl Hint for RolloutError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Server(error) => return error.hint(),
            Self::NotInstalled { resource, .. } => {
                format!("install the provider of {} there: {} init", resource.target.kind(), program::name())
            }
            Self::NotFound { here, namespace, .. } if here.is_empty() => {
                format!("namespace {namespace} has none; -n names another one")
            }
            Self::NotFound { here, namespace, .. } => {
                format!("namespace {namespace} has these: {}", here.join(", "))
            }
            Self::Refused { resource, namespace, refusal, .. } => match refusal {
                RolloutRefusal::Paused => format!(
                    "resume it first: {} alpha rollout resume {resource} -n {namespace}",
                    program::name()
                ),
                RolloutRefusal::PausedAlready | RolloutRefusal::NotPaused => "nothing was changed".to_owned(),
                RolloutRefusal::Planned { field, .. } | RolloutRefusal::OddTime { field, .. } => {
                    format!("remove {field} first, or wait for it")
                }
            },
        })
    }
}

/// Where a Cluster that was not found may be.
fn suggest(namespace: &str, name: &str, others: &[(String, String)]) -> String {
    let elsewhere = others.iter().filter(|it| it.1 == name).map(|it| format!("-n {}", it.0));
    if let Some(namespaces) = listed(elsewhere) {
        return format!("one of that name is in another namespace: {namespaces}");
    }
    let here = || others.iter().filter(|it| it.0 == namespace).map(|it| it.1.as_str());
    if let Some(similar) = listed(here().filter(|it| is_similar(it, name))) {
        return format!("there is one of a similar name: {similar}");
    }
    if let Some(names) = listed(here()) {
        return format!("namespace {namespace} has these: {names}");
    }
    let rest = match listed(others.iter().map(|(namespace, name)| format!("{namespace}/{name}"))) {
        Some(all) => format!("-n names another one: {all}"),
        None => "nor has any other: --kubeconfig or --kubeconfig-context names another management cluster"
            .to_owned(),
    };
    format!("namespace {namespace} has no Clusters; {rest}")
}

fn listed(names: impl Iterator<Item = impl Into<String>>) -> Option<String> {
    let mut names: Vec<String> = names.map(Into::into).collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(LISTED);
    names.truncate(LISTED);
    let list = names.join(", ");
    match (names.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(list),
        (false, more) => Some(format!("{list} and {more} more")),
    }
}

/// Whether one name is a slip of the other: the beginning of it, or a letter of three off, but not more than two.
fn is_similar(one: &str, other: &str) -> bool {
    let slips = (one.len().max(other.len()) / 3).min(2);
    one.starts_with(other) || other.starts_with(one) || strsim::levenshtein(one, other) <= slips
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_says_where_to_look() {
        let pair = |it: &(&str, &str)| (it.0.to_owned(), it.1.to_owned());
        for (others, expected) in [
            (&[][..], "namespace a has no Clusters; nor has any other"),
            (&[("b", "prod"), ("c", "prod"), ("a", "x")], "in another namespace: -n b, -n c"),
            (&[("a", "prud"), ("a", "zzz")], "similar name: prud"),
            (&[("a", "zzz"), ("a", "qqq"), ("b", "x")], "namespace a has these: qqq, zzz"),
            (&[("b", "zzz")], "namespace a has no Clusters; -n names another one: b/zzz"),
        ] {
            let others: Vec<_> = others.iter().map(pair).collect();
            let hint = suggest("a", "prod", &others);
            assert!(hint.ends_with(expected) || hint.starts_with(expected), "{hint}");
        }
        let many: Vec<_> = (10..30).map(|it| ("a".to_owned(), format!("other-{it}"))).collect();
        assert!(suggest("a", "prod", &many).ends_with("other-19 and 10 more"));
    }
}
