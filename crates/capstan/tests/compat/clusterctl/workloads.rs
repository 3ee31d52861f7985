//! Deployments and DaemonSets of our own making: what a round trip through their types does, and which images they have.

use super::{
    Batch,
    corpus::named,
    harness::Case,
    repository::{CONFIG, NAMESPACE, as_upstream, generate, with_release},
};

pub(crate) fn cases() -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    for (name, spec) in named(include_str!("cases/pod-specs.txt")) {
        batches.push(generate("workloads", name, "", &deployment(&spec)).into());
    }
    for (name, container) in named(include_str!("cases/containers.txt")) {
        let spec = format!("containers: [{{name: c, image: 'x.io/a:1', {}}}]", container.trim());
        batches.push(generate("workloads", name, "", &deployment(&spec)).into());
    }
    for (name, object) in named(include_str!("cases/workloads.txt")) {
        batches.push(generate("workloads", name, "", &format!("{NAMESPACE}---\n{object}")).into());
    }
    for (name, spec) in named(include_str!("cases/pod-specs-refused.txt")) {
        batches.push(generate("workloads", name, "", &deployment(&spec)).refused().into());
    }
    batches.extend(images());
    batches
}

fn deployment(pod_spec: &str) -> String {
    format!(
        "{NAMESPACE}---\n{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: d, namespace: mine-system}}, spec: \
         {{selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {{{}}}}}}}}}\n",
        pod_spec.trim()
    )
}

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn images() -> Vec<Batch> {
    let one = |name: &str, image: &str| {
        let spec = format!("containers: [{{name: c, image: '{}'}}]", image.replace("DIGEST", DIGEST));
        generate("images", name, "", &deployment(&spec))
    };
    let mut batches: Vec<Batch> = Vec::new();
    batches.extend(IMAGES.iter().map(|image| one(&format!("kept {image}"), image).into()));
    batches.extend(BAD_IMAGES.iter().map(|image| one(&format!("refused {image}"), image).refused().into()));
    for (name, images) in OVERRIDES {
        let components = format!(
            "{}---\n{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: s}}, spec: {{template: {{spec: {{initContainers: \
             [{{name: i, image: 'x.io/team/agent:v1'}}], containers: [{{name: a, image: 'y.io:5000/proxy'}}]}}}}}}}}\n",
            deployment(&format!(
                "containers: [{{name: m, image: 'x.io/team/manager:v1'}}, {{name: d, image: 'x.io/pinned@{DIGEST}'}}, \
                 {{name: b, image: 'x.io/both:v1@{DIGEST}'}}]"
            ))
        );
        let case = as_upstream(Case::new("images", name, "generate provider -i mine"));
        let case = with_release(case, "v1.1.0", &components);
        batches.push(case.config(format!("{CONFIG}images:\n{images}")).into());
    }
    for (name, images) in BAD_OVERRIDES {
        let case = as_upstream(Case::new("images", name, "generate provider -i mine"));
        let case = with_release(case, "v1.1.0", &deployment("containers: [{name: a, image: 'x.io/a:1'}]"));
        batches.push(case.config(format!("{CONFIG}images:{images}\n")).refused().into());
    }
    batches.push(
        generate("images", "env-empty", "", &deployment("containers: [{name: a, image: 'x.io/a:1'}]"))
            .env("IMAGES", "")
            .refused()
            .into(),
    );
    batches.push(
        generate("images", "env-text", "", &deployment("containers: [{name: a, image: 'x.io/a:1'}]"))
            .env("IMAGES", "x")
            .refused()
            .into(),
    );
    batches.push(
        generate("images", "raw-variable", "--raw", &deployment("containers: [{name: a, image: '${IMG}'}]"))
            .refused()
            .into(),
    );
    batches.push(
        generate(
            "images",
            "by-variable",
            "",
            &deployment("containers: [{name: a, image: '${IMG:=x.io/a:1}'}]"),
        )
        .into(),
    );
    batches
}

const IMAGES: &[&str] = &[
    "x.io/a",
    "x.io/a:1",
    "x.io/a/b/c:v1.2.3",
    "x.io:5000/a:1",
    "localhost/a:1",
    "localhost:5000/a",
    "x.io/a@DIGEST",
    "x.io/a:1@DIGEST",
    "docker.io/library/nginx:1",
    "docker.io/o/nginx",
    "10.0.0.1:80/a/b:c",
    "x.io/a__b/c.d-e:T_1.2-x",
    "registry.k8s.io/cluster-api/cluster-api-controller:v1.14.2",
    "X.io/a:1",
    "[::1]:80/a:1",
];

const BAD_IMAGES: &[&str] = &[
    "nginx",
    "nginx:1",
    "docker.io/nginx",
    "library/nginx",
    "x.io/A:1",
    "x.io/a:",
    "x.io/a@sha256:12",
    "x.io/a:1:2",
    "x.io//a",
    "x.io/",
    "",
    " x.io/a",
    "x.io/a b",
    "https://x.io/a",
    "x.io/a:-1",
    "x.io/-a",
    "x.io/a@DIGESTff",
];

const OVERRIDES: &[(&str, &str)] = &[
    ("all-repository", "  all: {repository: mirror.io/all}\n"),
    ("all-repository-slash", "  all: {repository: mirror.io/all/}\n"),
    ("all-repository-slashes", "  all: {repository: 'mirror.io/all//'}\n"),
    ("all-tag", "  all: {tag: v9}\n"),
    ("all-name", "  all: {name: other}\n"),
    ("provider", "  infrastructure-mine: {repository: mirror.io/mine}\n"),
    ("image", "  infrastructure-mine/manager: {repository: mirror.io/m, tag: v2}\n"),
    ("image-name", "  infrastructure-mine/agent: {name: spy}\n"),
    (
        "levels",
        "  all: {repository: mirror.io/all, tag: a}\n  infrastructure-mine: {tag: b}\n  infrastructure-mine/manager: {tag: c}\n",
    ),
    (
        "levels-by-field",
        "  all: {repository: mirror.io/all}\n  infrastructure-mine: {tag: b}\n  infrastructure-mine/manager: {name: n}\n",
    ),
    ("levels-reset", "  all: {repository: mirror.io/all}\n  infrastructure-mine: {repository: ''}\n"),
    ("other-provider", "  infrastructure-other: {repository: mirror.io/x}\n  cert-manager: {tag: z}\n"),
    ("upper-case-key", "  ALL: {Repository: mirror.io/all}\n"),
    ("digest-with-tag", "  infrastructure-mine/pinned: {tag: v9}\n"),
    ("digest-with-repository", "  infrastructure-mine/pinned: {repository: mirror.io/p}\n"),
    ("none", "  {}\n"),
    ("null-entry", "  all:\n"),
    ("unknown-field", "  all: {repository: mirror.io/all, more: 1}\n"),
    ("repository-not-valid", "  all: {repository: 'Not Valid'}\n"),
    ("tag-not-valid", "  all: {tag: '-'}\n"),
    ("tag-number", "  all: {tag: 1.10}\n"),
];

const BAD_OVERRIDES: &[(&str, &str)] = &[("text", " x"), ("list", " [x]"), ("entry-text", "\n  all: x")];
