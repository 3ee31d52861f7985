//! Templates that break one rule each.

use capstan_conformance::lint::{Given, check_templates};

use crate::{
    fixture,
    twin::{Twin, add, drop_document, replace},
};

fn twin(
    rule: &'static str,
    at: &'static str,
    seen: &'static str,
    repair: &'static str,
    spoil: impl FnOnce(&mut Given),
) -> Twin {
    Twin::new(&fixture::template(), rule, at, seen, repair, spoil)
}

fn topology(
    rule: &'static str,
    at: &'static str,
    seen: &'static str,
    repair: &'static str,
    spoil: impl FnOnce(&mut Given),
) -> Twin {
    Twin::new(&fixture::topology(), rule, at, seen, repair, spoil)
}

pub(crate) fn twins() -> Vec<Twin> {
    let mut twins = of_files_and_scopes();
    twins.extend(of_common_variables());
    twins.extend(of_links());
    twins
}

fn of_files_and_scopes() -> Vec<Twin> {
    vec![
        twin("R1", ": Secret", "the file is not YAML", "make it YAML", |it| {
            replace(it, "region: ${FOO_REGION}", "region: {");
        }),
        twin(
            "R3",
            "${CLUSTER_NAME}-identity",
            "Secret ${CLUSTER_NAME}-identity is here again",
            "keep one",
            |it| {
                add(
                    it,
                    "apiVersion: v1\nkind: Secret\nmetadata:\n  namespace: ${NAMESPACE}\n  name: ${CLUSTER_NAME}-identity\n",
                );
            },
        ),
        twin("V2", "${ CLUSTER_NAME }", "spaces in the braces of CLUSTER_NAME", "${CLUSTER_NAME}", |it| {
            replace(it, "\"${CLUSTER_NAME}\"", "\"${ CLUSTER_NAME }\"");
        }),
        twin("V3", "${foo_region}", "foo_region has letters", "FOO_REGION", |it| {
            replace(it, "${FOO_REGION}", "${foo_region}");
        }),
        twin("V4", "${FOO_URL}", "used in comments only", "$${FOO_URL}", |it| {
            replace(it, "# A cluster", "# See ${FOO_URL}. A cluster");
        }),
        twin("T1", "", "the file is named template.yaml", "cluster-template-<flavor>.yaml", |it| {
            it.file.name = String::from("infrastructure-foo/v0.3.1/template.yaml");
        }),
        twin("T2", "", "no components file", "infrastructure-components.yaml", |it| {
            it.folder.as_mut().unwrap().files.remove("infrastructure-components.yaml");
        }),
        twin("T3", "Namespace", "Namespace ${NAMESPACE} is in the template", "leave it out", |it| {
            add(it, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ${NAMESPACE}\n");
        }),
        twin(
            "T4",
            "other",
            "Secret x is in namespace other, while others are in ${NAMESPACE}",
            "leave",
            |it| {
                add(it, "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\n  namespace: other\n");
            },
        )
        .also(&["T7"]),
        twin(
            "T4",
            "other",
            "a reference of Cluster ${CLUSTER_NAME} is in namespace other",
            "${NAMESPACE}",
            |it| {
                replace(it, "    kind: FooCluster\n", "    kind: FooCluster\n    namespace: other\n");
            },
        ),
        twin("T5", "ClusterRole", "ClusterRole x is cluster-wide", "take it out", |it| {
            add(it, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: x\n");
        }),
        twin("T6", "", "neither a Cluster nor a ClusterClass", "add the Cluster", |it| {
            drop_document(it, "kind: Cluster\n");
        }),
    ]
}

fn of_common_variables() -> Vec<Twin> {
    vec![
        twin(
            "T7",
            "default",
            "Cluster ${CLUSTER_NAME} is in namespace default, and 6 other",
            "${NAMESPACE}",
            |it| {
                it.file.text = it.file.text.replace("  namespace: ${NAMESPACE}", "  namespace: default");
            },
        ),
        twin("T8", "\"${FOO_NAME}\"", "metadata.name is ${FOO_NAME}", "${CLUSTER_NAME}", |it| {
            replace(it, "\"${CLUSTER_NAME}\"", "\"${FOO_NAME}\"");
        }),
        twin("T9", "\"v1.30.0\"", "spec.version is v1.30.0", "${KUBERNETES_VERSION}", |it| {
            replace(it, "\"${KUBERNETES_VERSION}\"", "\"v1.30.0\"");
        }),
        twin(
            "T9",
            "${FOO_VERSION}",
            "spec.template.spec.version is ${FOO_VERSION}",
            "${KUBERNETES_VERSION}",
            |it| {
                replace(it, "version: ${KUBERNETES_VERSION}", "version: ${FOO_VERSION}");
            },
        ),
        topology("T9", "v1.30.0", "spec.topology.version is v1.30.0", "${KUBERNETES_VERSION}", |it| {
            replace(it, "version: ${KUBERNETES_VERSION}", "version: v1.30.0");
        }),
        twin(
            "T10",
            "3",
            "FooControlPlane ${CLUSTER_NAME}-control-plane: spec.replicas is 3",
            "MACHINE_COUNT}",
            |it| {
                replace(it, "${CONTROL_PLANE_MACHINE_COUNT:=3}", "3");
            },
        ),
        topology("T10", "1", "spec.topology.controlPlane.replicas is 1", "MACHINE_COUNT}", |it| {
            replace(it, "${CONTROL_PLANE_MACHINE_COUNT}", "1");
        }),
        twin("T11", "${FOO_WORKERS:=2}", "the number of workers is 2", "${WORKER_MACHINE_COUNT}", |it| {
            replace(it, "${WORKER_MACHINE_COUNT}", "${FOO_WORKERS:=2}");
        }),
        topology("T11", "2", "the number of workers is 2", "${WORKER_MACHINE_COUNT}", |it| {
            replace(it, "${WORKER_MACHINE_COUNT}", "2");
        }),
    ]
}

fn of_links() -> Vec<Twin> {
    vec![
        twin(
            "T12",
            "${CLUSTER_NAME}",
            "Cluster ${CLUSTER_NAME} refers to FooCluster ${CLUSTER_NAME}, which",
            "add it",
            |it| {
                drop_document(it, "kind: FooCluster\nmeta");
            },
        ),
        twin("T12", "${CLUSTER_NAME}-control-plane", "refers to FooControlPlane", "document", |it| {
            drop_document(it, "kind: FooControlPlane\nmeta");
        }),
        twin("T12", "${CLUSTER_NAME}-md-0", "refers to FooConfigTemplate", "add it", |it| {
            drop_document(it, "kind: FooConfigTemplate\nmeta");
        }),
        twin(
            "T12",
            "${CLUSTER_NAME}-identity",
            "refers to Secret ${CLUSTER_NAME}-identity",
            "add it",
            |it| {
                drop_document(it, "kind: Secret\nmeta");
            },
        ),
        twin("T12", "${CLUSTER_NAME}-addons", "refers to ConfigMap ${CLUSTER_NAME}-addons", "add it", |it| {
            drop_document(it, "kind: ConfigMap\nmeta");
        }),
        twin("T12", "other", "refers to Secret other", "add it", |it| {
            replace(it, "      name: ${CLUSTER_NAME}-kubeconfig", "      name: other");
        }),
        topology(
            "T13",
            "small",
            "is of class small, and there is no clusterclass-small.yaml",
            "publish",
            |it| {
                it.folder.as_mut().unwrap().files.remove("clusterclass-small.yaml");
            },
        ),
        Twin::new(&fixture::class(), "T12", "other", "refers to FooClusterTemplate other", "add it", |it| {
            replace(it, "      name: small\n", "      name: other\n");
        }),
    ]
}

#[test]
fn each_twin_breaks_its_rule_and_no_other() {
    let flaws: Vec<_> =
        twins().iter().filter_map(|it| it.flaw(&check_templates(std::slice::from_ref(&it.given)))).collect();
    assert!(flaws.is_empty(), "{}", flaws.join("\n"));
}

#[test]
fn a_class_may_be_in_the_template_itself() {
    let mut given = fixture::topology();
    add(&mut given, fixture::CLASS);
    given.folder.as_mut().unwrap().files.remove("clusterclass-small.yaml");
    let report = check_templates(&[given]);
    let broken: Vec<_> = report.findings.iter().filter(|it| it.is_broken()).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}
