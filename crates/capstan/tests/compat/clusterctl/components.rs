//! Components of our own making: what becomes of namespaces, subjects, webhooks, kinds, certificates and labels.

use super::{
    Batch,
    corpus::named,
    repository::{NAMESPACE, generate},
};

pub(crate) fn cases() -> Vec<Batch> {
    let mut batches = Vec::new();
    for (name, objects) in named(include_str!("cases/objects.txt")) {
        let components = format!("{NAMESPACE}---\n{objects}");
        batches.push(generate("components", name, "", &components).into());
        batches
            .push(generate("components", &format!("{name}-elsewhere"), "-n elsewhere", &components).into());
    }
    batches.extend(named(include_str!("cases/objects-refused.txt")).map(|(name, objects)| {
        generate("components", name, "", &format!("{NAMESPACE}---\n{objects}")).refused().into()
    }));
    batches.extend(
        WHOLE.iter().map(|(name, arguments, text)| generate("components", name, arguments, text).into()),
    );
    batches.extend(
        REFUSED_WHOLE
            .iter()
            .map(|(name, arguments, text)| generate("components", name, arguments, text).refused().into()),
    );
    batches.extend(
        DESCRIBED.iter().map(|(name, arguments, text)| generate("describe", name, arguments, text).into()),
    );
    batches
}

/// Files as they are: name, arguments, text.
const WHOLE: &[(&str, &str, &str)] = &[
    ("no-namespace-but-flag", "-n other", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"),
    ("empty-but-flag", "-n other", ""),
    ("namespace-only", "", NAMESPACE),
    (
        "namespace-with-labels",
        "-n other",
        "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {control-plane: x}, annotations: {x: z}}, spec: {}}\n",
    ),
    ("namespace-of-other-group", "", "{apiVersion: x.io/v1, kind: Namespace, metadata: {name: a}}\n"),
    (
        "namespace-last",
        "",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n",
    ),
    ("namespace-flag-not-checked", "-n Not_A.Name", NAMESPACE),
    (
        "raw",
        "--raw",
        "{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {x: '${X}', y: '$${Y}', z: '${Z:=1}'}}\n",
    ),
    (
        "raw-elsewhere",
        "--raw -n other",
        "{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {x: '${X}'}}\n",
    ),
    (
        "raw-flag-false",
        "--raw=false",
        "{apiVersion: v1, kind: Namespace, metadata: {name: a}, x: '${X:=1}'}\n",
    ),
    ("pinned", "-n x -i mine:v1.1.0", NAMESPACE),
    ("written", "--write-to -", NAMESPACE),
    (
        "namespace-by-variable",
        "",
        "{apiVersion: v1, kind: Namespace, metadata: {name: '${NS:=by-default}'}}\n",
    ),
];

const REFUSED_WHOLE: &[(&str, &str, &str)] = &[
    ("no-namespace", "", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"),
    ("empty", "", ""),
    ("raw-bad-variable", "--raw", "{apiVersion: v1, kind: Namespace, metadata: {name: a}, x: '${A-b}'}\n"),
    (
        "raw-variable-outside-quotes",
        "--raw",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\nx: ${X}: ${Y}\n",
    ),
    ("web-page", "", "<html></html>\n"),
];

const DESCRIBED: &[(&str, &str, &str)] = &[
    ("bare", "--describe", NAMESPACE),
    ("elsewhere", "--describe -n elsewhere", NAMESPACE),
    ("pinned", "--describe -i mine:v1.1.0", NAMESPACE),
    ("variables", "--describe", "{apiVersion: v1, kind: Namespace, metadata: {name: a}, x: '${B} ${A:=1} ${C:=${D}} $${E}'}\n"),
    ("images", "--describe", "\
{apiVersion: v1, kind: Namespace, metadata: {name: a}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: b}, spec: {template: {spec: {containers: [{name: a, image: 'x.io/a:1'}, {name: b, image: 'x.io/b@sha256:0123456789012345678901234567890123456789012345678901234567890123'}], initContainers: [{name: c, image: 'x.io/c'}]}}}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: b}, spec: {template: {spec: {containers: [{name: a, image: 'x.io/a:1'}]}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: b}, spec: {template: {spec: {containers: [{name: a, image: 'x.io/no:1'}]}}}}
"),
    ("raw-too", "--describe --raw", "{apiVersion: v1, kind: Namespace, metadata: {name: a}, x: '${B}'}\n"),
];
