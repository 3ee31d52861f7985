//! `generate cluster`: templates of our own making, and what flags, environment and configuration do to them.

use super::{
    Batch,
    harness::Case,
    repository::{CONFIG, METADATA, NAMESPACE, path},
};

const TEMPLATE: &str = "\
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: '${CLUSTER_NAME}', namespace: '${NAMESPACE}'}
spec: {k: '${KUBERNETES_VERSION:=none}', c: '${CONTROL_PLANE_MACHINE_COUNT}', w: '${WORKER_MACHINE_COUNT}'}
---
apiVersion: x.io/v1
kind: Thing
metadata: {name: '${CLUSTER_NAME}-thing', namespace: other}
data: {a: '${A:=a}'}
";

const CLUSTER: &str = "\
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: '${CLUSTER_NAME}', namespace: '${NAMESPACE}'}
spec: {topology: {classRef: {name: quick}, version: v1.30.0}}
";

const CLASS: &str = "\
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: quick, namespace: '${NAMESPACE}'}
spec: {x: '${X:=x}'}
---
{apiVersion: x.io/v1, kind: ThingTemplate, metadata: {name: quick}}
";

/// A release with a template, by way of a namespace and a version, so that no cluster is asked.
fn with_template(case: Case, file: &str, template: &str) -> Case {
    case.config(CONFIG)
        .file(path("v1.1.0", "infrastructure-components.yaml"), NAMESPACE)
        .file(path("v1.1.0", "metadata.yaml"), METADATA)
        .file(path("v1.1.0", file), template)
}

fn generate(name: &str, arguments: &str) -> Case {
    let arguments = format!("generate cluster -n ns -i mine:v1.1.0 {arguments}");
    with_template(Case::new("templates", name, &arguments), "cluster-template.yaml", TEMPLATE)
}

fn of(name: &str, template: &str) -> Case {
    with_template(
        Case::new("templates", name, "generate cluster one -n ns -i mine:v1.1.0"),
        "cluster-template.yaml",
        template,
    )
}

pub(crate) fn cases() -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    batches.extend(flags().into_iter().map(Batch::from));
    batches.extend(sources().into_iter().map(Batch::from));
    batches.extend(objects().into_iter().map(Batch::from));
    batches.extend(classes().into_iter().map(Batch::from));
    batches.extend(listed().into_iter().map(Batch::from));
    batches
}

fn flags() -> Vec<Case> {
    let mut cases = vec![
        generate("defaults", "one"),
        generate("counts", "one --control-plane-machine-count 3 --worker-machine-count 5"),
        generate("counts-equals", "one --control-plane-machine-count=3 --worker-machine-count=5"),
        generate("counts-from-env", "one")
            .env("CONTROL_PLANE_MACHINE_COUNT", "3")
            .env("WORKER_MACHINE_COUNT", "2"),
        generate("counts-flag-over-env", "one --worker-machine-count 1").env("WORKER_MACHINE_COUNT", "2"),
        generate("counts-default-flag-over-env", "one --worker-machine-count 0")
            .env("WORKER_MACHINE_COUNT", "2"),
        generate("counts-hexadecimal", "one --worker-machine-count 0x10"),
        generate("counts-octal", "one --worker-machine-count 010"),
        generate("counts-underscore", "one --worker-machine-count 1_0"),
        generate("counts-octal-from-env", "one").env("WORKER_MACHINE_COUNT", "010"),
        generate("counts-huge", "one --worker-machine-count 9223372036854775807"),
        generate("counts-plus", "one --worker-machine-count +5"),
        generate("version", "one --kubernetes-version v1.30.0"),
        generate("version-without-v", "one --kubernetes-version 1.30.0"),
        generate("version-build", "one --kubernetes-version v1.30.0+x"),
        generate("version-candidate", "one --kubernetes-version v1.30.0-rc.1"),
        generate("version-from-env", "one").env("KUBERNETES_VERSION", "v1.29.0"),
        generate("version-from-env-not-checked", "one").env("KUBERNETES_VERSION", "any"),
        generate("version-flag-over-env", "one --kubernetes-version v1.30.0")
            .env("KUBERNETES_VERSION", "v1.29.0"),
        generate("version-empty", "one --kubernetes-version="),
        generate("version-blank-behind", "one").argument("--kubernetes-version").argument("v1.30.0 "),
        generate("name-dotted", "a.b"),
        generate("name-number", "1"),
        generate("name-long", &"a".repeat(100)),
        generate("name-env-has-no-say", "one").env("CLUSTER_NAME", "env").env("NAMESPACE", "env"),
        generate("flags-first", "--worker-machine-count 2 one"),
        generate("namespace-number", "one -n 1"),
        generate("namespace-long-flag", "one --target-namespace other"),
        generate("variable-from-env", "one").env("A", "env"),
        generate("written-to-output", "one --write-to -"),
        generate("written", "one --write-to <DIR>/out.yaml").writes("out.yaml"),
        generate("written-relative", "one --write-to out.yaml").writes("out.yaml"),
        generate("written-over", "one --write-to old.yaml")
            .file("old.yaml", &*"old\n".repeat(999))
            .writes("old.yaml"),
    ];
    let refused = [
        ("no-name", ""),
        ("two-names", "one two"),
        ("name-upper-case", "One"),
        ("name-underscore", "a_b"),
        ("name-dash-last", "a-"),
        ("name-empty-part", "a..b"),
        ("namespace-dotted", "one -n a.b"),
        ("namespace-upper-case", "one -n Ns"),
        ("control-plane-zero", "one --control-plane-machine-count 0"),
        ("control-plane-negative", "one --control-plane-machine-count=-1"),
        ("workers-negative", "one --worker-machine-count=-1"),
        ("workers-text", "one --worker-machine-count x"),
        ("workers-fraction", "one --worker-machine-count 1.5"),
        ("workers-too-many", "one --worker-machine-count 9223372036854775808"),
        ("workers-empty", "one --worker-machine-count="),
        ("version-two-parts", "one --kubernetes-version v1.30"),
        ("version-text", "one --kubernetes-version latest"),
        ("version-leading-zero", "one --kubernetes-version v1.030.0"),
        ("flavor-missing", "one --flavor nope"),
        ("provider-version-missing", "one -i mine:v9.9.9"),
        ("provider-unknown", "one -i other:v1.0.0"),
        ("two-sources", "one --from x.yaml"),
        ("two-sources-config-map", "one --from-config-map x"),
        ("written-to-missing-folder", "one --write-to <DIR>/nowhere/out.yaml"),
    ];
    cases.extend(refused.map(|(name, arguments)| generate(name, arguments).refused()));
    let environment = [
        ("CONTROL_PLANE_MACHINE_COUNT", "0"),
        ("CONTROL_PLANE_MACHINE_COUNT", "x"),
        ("WORKER_MACHINE_COUNT", "-1"),
        ("WORKER_MACHINE_COUNT", ""),
    ];
    cases.extend(
        environment
            .map(|(name, value)| generate(&format!("env-{name}={value}"), "one").env(name, value).refused()),
    );
    for (name, value) in [
        ("COUNT-number", "WORKER_MACHINE_COUNT: 4"),
        ("COUNT-text", "WORKER_MACHINE_COUNT: '4'"),
        ("version", "KUBERNETES_VERSION: v1.28.0"),
        ("A", "A: b"),
        ("name", "CLUSTER_NAME: other"),
        ("namespace", "NAMESPACE: other"),
    ] {
        cases.push(
            generate(&format!("config-{name}"), "one")
                .file("more.yaml", format!("{CONFIG}{value}\n"))
                .argument("--config=more.yaml"),
        );
    }
    cases
}

fn sources() -> Vec<Case> {
    let from = |name: &str, arguments: &str| {
        Case::new("templates", name, &format!("generate cluster one -n ns {arguments}"))
    };
    vec![
        from("from-file", "--from <DIR>/t.yaml").file("t.yaml", TEMPLATE),
        from("from-relative-file", "--from t.yaml").file("t.yaml", TEMPLATE),
        from("from-file-url", "--from file://<DIR>/t.yaml").file("t.yaml", TEMPLATE),
        from("from-input", "--from -").input(TEMPLATE),
        from("from-input-class-not-looked-up", "--from -").input(CLUSTER),
        from("from-missing-file", "--from nowhere.yaml").refused(),
        from("from-folder", "--from <DIR>").refused(),
        from("from-home-not-expanded", "--from ~/t.yaml").file("home/t.yaml", TEMPLATE).refused(),
        from("from-http", "--from http://example.invalid/t.yaml").refused(),
        from("from-empty-input", "--from -"),
        from("from-input-list", "--from - --list-variables").input(TEMPLATE),
        from("from-github-short", "--from https://github.com/o/r").refused(),
        from("flavor-and-from", "--flavor x --from t.yaml").file("t.yaml", TEMPLATE).refused(),
        Case::new("templates", "yaml-from-file", "generate yaml --from t.yaml")
            .file("t.yaml", "a: ${A:=1}\n"),
        Case::new("templates", "yaml-from-file-url", "generate yaml --from file://<DIR>/t.yaml")
            .file("t.yaml", "a: 1\n"),
        Case::new("templates", "yaml-from-missing", "generate yaml --from nowhere.yaml").refused(),
        Case::new("templates", "yaml-from-nothing", "generate yaml --from=").refused(),
        Case::new("templates", "yaml-list-false", "generate yaml --list-variables=false")
            .input("a: ${A:=1}\n"),
        with_template(
            Case::new("templates", "flavor", "generate cluster one -n ns -i mine:v1.1.0 --flavor dev"),
            "cluster-template-dev.yaml",
            TEMPLATE,
        ),
        with_template(
            Case::new("templates", "flavor-short", "generate cluster one -n ns -i mine:v1.1.0 -f dev"),
            "cluster-template-dev.yaml",
            TEMPLATE,
        ),
        with_template(
            Case::new("templates", "flavor-upper-case", "generate cluster one -n ns -i mine:v1.1.0 -f DEV"),
            "cluster-template-DEV.yaml",
            TEMPLATE,
        ),
        with_template(
            Case::new("templates", "provider-latest", "generate cluster one -n ns -i mine:latest"),
            "cluster-template.yaml",
            TEMPLATE,
        ),
        with_template(
            Case::new("templates", "provider-upper-case", "generate cluster one -n ns -i MINE:v1.1.0"),
            "cluster-template.yaml",
            TEMPLATE,
        ),
        generate("override", "one").file(
            "home/.config/cluster-api/overrides/infrastructure-mine/v1.1.0/cluster-template.yaml",
            "{kind: Cluster, apiVersion: x.io/v1, metadata: {name: from-override}}\n",
        ),
        generate("override-of-other-version", "one").file(
            "home/.config/cluster-api/overrides/infrastructure-mine/v1.1.1/cluster-template.yaml",
            "kind: X\n",
        ),
    ]
}

fn objects() -> Vec<Case> {
    vec![
        of("namespaced", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"),
        of("namespace-object", "{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n"),
        of(
            "two-namespaces",
            "{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: b}}\n",
        ),
        of(
            "cluster-scoped",
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}\n",
        ),
        of(
            "subjects",
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, roleRef: {apiGroup: x, kind: Role, name: a}, subjects: [{kind: ServiceAccount, name: a, namespace: b}]}\n",
        ),
        of(
            "deployment-untouched",
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {more: 1, template: {spec: {containers: [{image: nginx}]}}}}\n",
        ),
        of(
            "order-kept",
            "{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: a}}\n---\n{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: b}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: c}}\n",
        ),
        of("no-kind", "a: 1\n"),
        of("empty", ""),
        of("comments-and-empty-documents", "# a\n---\n---\nkind: X\n---\n# b\n"),
        of(
            "refs-untouched",
            "{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: a}, spec: {infrastructureRef: {kind: X, name: z, namespace: other}}}\n",
        ),
        of("not-yaml", "a: [\n").refused(),
        of("missing-variable", "a: ${MISSING}\n").refused(),
        of("bad-variable", "a: ${A-b}\n").refused(),
        of("list", "- a\n").refused(),
    ]
}

fn classes() -> Vec<Case> {
    let class = path("v1.1.0", "clusterclass-quick.yaml");
    let with = |name: &str, cluster: &str| of(name, cluster).file(class.clone(), CLASS);
    let v1beta1 = CLUSTER.replace("v1beta2", "v1beta1").replace("classRef: {name: quick}", "class: quick");
    let elsewhere = CLUSTER.replace("{name: quick}", "{name: quick, namespace: elsewhere}");
    let two = format!("{CLUSTER}---\n{}", CLUSTER.replace("'${CLUSTER_NAME}'", "second"));
    vec![
        with("class", CLUSTER),
        with("class-v1beta1", &v1beta1),
        with(
            "class-v1beta1-elsewhere",
            &v1beta1.replace("class: quick", "class: quick, classNamespace: elsewhere"),
        ),
        with("class-elsewhere", &elsewhere),
        with("class-by-two-clusters", &two),
        with("class-unknown-version", &CLUSTER.replace("v1beta2", "v1alpha4")),
        with("class-of-other-group", &CLUSTER.replace("cluster.x-k8s.io", "x.io")),
        with(
            "class-and-objects",
            &format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}}}\n---\n{CLUSTER}"),
        ),
        with("class-with-other-name-in-file", &CLUSTER.replace("quick", "slow")).refused(),
        with("class-empty-name", &CLUSTER.replace("{name: quick}", "{name: ''}")).refused(),
        with("class-null", &CLUSTER.replace("{classRef: {name: quick}, version: v1.30.0}", "null")),
        of("class-missing", CLUSTER).refused(),
        of("class-in-template", &format!("{CLASS}---\n{CLUSTER}")).refused(),
        of("class-missing-but-listed", CLUSTER).argument("--list-variables"),
        of("class-with-missing-variable", CLUSTER)
            .file(class.clone(), CLASS.replace("${X:=x}", "${X}"))
            .refused(),
        of("class-variable-from-env", CLUSTER)
            .file(class.clone(), CLASS.replace("${X:=x}", "${X}"))
            .env("X", "env"),
        of("class-override", CLUSTER).file(
            "home/.config/cluster-api/overrides/infrastructure-mine/v1.1.0/clusterclass-quick.yaml",
            CLASS,
        ),
    ]
}

fn listed() -> Vec<Case> {
    let list = |name: &str, arguments: &str, template: &str| {
        let case = Case::new(
            "templates",
            format!("list-{name}"),
            &format!("generate cluster one -i mine:v1.1.0 --list-variables {arguments}"),
        );
        with_template(case, "cluster-template.yaml", template)
    };
    vec![
        list("usual", "-n ns", TEMPLATE),
        list("usual-no-namespace", "", TEMPLATE).refused(),
        list(
            "flags",
            "-n ns --kubernetes-version v1.30.0 --worker-machine-count 3 --control-plane-machine-count 5",
            TEMPLATE,
        ),
        list("env", "-n ns", TEMPLATE)
            .env("KUBERNETES_VERSION", "v1.28.0")
            .env("WORKER_MACHINE_COUNT", "7")
            .env("A", "env"),
        list("none", "-n ns", "a: 1\n"),
        list("required-only", "-n ns", "a: ${B} ${A}\n"),
        list("optional-only", "-n ns", "a: ${BBBBBBBB:=1} ${A:=\"\"}\n"),
        list(
            "defaults",
            "-n ns",
            "a: ${A:=x y} ${B:=\"quoted\"} ${C:='single'} ${D:=a\"b} ${E:=\\} ${F:=ä} ${G:=${H}} ${I:=1} ${J:=\"a b\" c}\n",
        ),
        list("functions", "-n ns", "a: ${A/x/y} ${B:0:3} ${C#p} ${D^^} ${#E}\n"),
        list("kubernetes-version-required", "-n ns", "a: ${KUBERNETES_VERSION}\n"),
        list("kubernetes-version-default", "-n ns", "a: ${KUBERNETES_VERSION:=v1.27.0}\n"),
        list(
            "counts-with-defaults",
            "-n ns",
            "a: ${WORKER_MACHINE_COUNT:=9} ${CONTROL_PLANE_MACHINE_COUNT:=9}\n",
        ),
        list("namespace-with-default", "-n ns", "a: ${NAMESPACE:=x} ${CLUSTER_NAME:=y}\n"),
        list("long-names", "-n ns", "a: ${A:=1} ${A_VERY_LONG_NAME_OF_A_VARIABLE:=2} ${MIDDLE_NAME:=3}\n"),
        list("newline-in-default", "-n ns", "a: ${A:=x\ny}\n"),
        list("written", "-n ns --write-to out.txt", TEMPLATE).writes("out.txt"),
    ]
}
