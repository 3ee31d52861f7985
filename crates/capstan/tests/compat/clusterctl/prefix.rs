//! The prefix of cluster-wide roles, which is ours alone: expected is what upstream prints, with the names changed.

use std::{collections::BTreeSet, path::Path};

use super::{
    Batch,
    harness::Case,
    releases,
    repository::{CONFIG, with_release},
};

pub(crate) fn cases(releases: &Path) -> Vec<Batch> {
    let made_up = |name: &str, arguments: &str| {
        let case =
            Case::new("prefix", name, &format!("generate provider -i mine {arguments}")).config(CONFIG);
        with_release(case, "v1.1.0", COMPONENTS)
    };
    let config = releases::config(releases);
    let real = |name: &str, arguments: &str| {
        let case = Case::new("prefix", name, &format!("generate provider {arguments}"));
        case.config(config.clone()).envs(releases::VALUES)
    };
    let cases = [
        made_up("made-up", ""),
        made_up("made-up-elsewhere", "-n elsewhere"),
        real("core", "--core cluster-api"),
        real("core-elsewhere", "--core cluster-api -n elsewhere"),
        real("control-plane", "--control-plane kubeadm"),
        real("aws", "--infrastructure aws"),
        real("gcp-elsewhere", "--infrastructure gcp -n elsewhere"),
    ];
    cases.map(|case| case.expecting(prefixed).into()).into()
}

const COMPONENTS: &str = "\
{apiVersion: v1, kind: Namespace, metadata: {name: mine-system}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: manager}, rules: []}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: mine-system-reader}, rules: []}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: manager, namespace: mine-system}, rules: []}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: admin}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: to-cluster-role, namespace: mine-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: to-role, namespace: mine-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: manager}
";

/// Upstream's objects with the prefix, but where a name has it already.
fn prefixed(text: &str) -> String {
    let documents: Vec<_> = text.split("\n---\n").collect();
    let namespace =
        documents.iter().find(|it| has(it, "kind: Namespace")).and_then(|it| name(it, "metadata:"));
    let prefix = format!("{}-", namespace.expect("there is a Namespace"));
    let roles: BTreeSet<_> = documents
        .iter()
        .filter(|it| has(it, "kind: ClusterRole"))
        .filter_map(|it| name(it, "metadata:"))
        .collect();
    let renamed: Vec<_> = documents.iter().map(|document| rename(document, &prefix, &roles)).collect();
    renamed.join("\n---\n")
}

fn rename(document: &str, prefix: &str, roles: &BTreeSet<&str>) -> String {
    let mut text = (*document).to_owned();
    let mut prefix_name = |below: &str| {
        if let Some(name) = name(document, below).filter(|name| !name.starts_with(prefix)) {
            let old = format!("  name: {name}");
            let start = text.find(&format!("\n{below}\n")).expect("it was found before");
            let place = start + text[start..].find(&old).expect("it was found before");
            text.replace_range(place..place + old.len(), &format!("  name: {prefix}{name}"));
        }
    };
    if has(document, "kind: ClusterRole") || has(document, "kind: ClusterRoleBinding") {
        prefix_name("metadata:");
    }
    let refers = has(document, "  kind: ClusterRole")
        && name(document, "roleRef:").is_some_and(|it| roles.contains(it));
    if refers {
        prefix_name("roleRef:");
    }
    text
}

fn has(document: &str, line: &str) -> bool {
    document.lines().any(|it| it == line)
}

/// The name that is directly below a key.
fn name<'a>(document: &'a str, below: &str) -> Option<&'a str> {
    let mut lines = document.lines().skip_while(|line| *line != below).skip(1);
    lines.by_ref().take_while(|line| line.starts_with(' ')).find_map(|line| line.strip_prefix("  name: "))
}
