//! Components files that break one rule each.

use capstan_conformance::lint::{Given, check_components};

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
    Twin::new(&fixture::components(), rule, at, seen, repair, spoil)
}

fn rename(given: &mut Given, name: &str) {
    given.file.name = format!("infrastructure-foo/v0.3.1/{name}");
}

fn metadata(given: &mut Given, old: &str, new: &str) {
    let file = given.folder.as_mut().unwrap().metadata.as_mut().unwrap();
    assert_eq!(file.text.matches(old).count(), 1, "{old:?}");
    file.text = file.text.replace(old, new);
}

fn path(given: &mut Given, version: &str, label: &str) {
    let folder = given.folder.as_mut().unwrap();
    folder.path = vec![version.to_owned(), label.to_owned(), "repository".to_owned()];
}

const LABEL: &str = "  labels: {cluster.x-k8s.io/provider: infrastructure-foo}\n";

fn labelled(head: &str, rest: &str) -> String {
    format!("{head}\nmetadata:\n{LABEL}{rest}")
}

pub(crate) fn twins() -> Vec<Twin> {
    let mut twins = of_objects();
    twins.extend(of_variables());
    twins.extend(of_repositories());
    twins.extend(of_namespaces());
    twins.extend(of_workloads());
    twins.extend(of_labels_and_links());
    twins
}

fn of_objects() -> Vec<Twin> {
    vec![
        twin("R1", "[", "the file is not YAML", "make it YAML", |it| replace(it, "rules: []", "rules: [")),
        twin("R1", "just text", "the document is no object", "apiVersion and kind", |it| {
            add(it, "just text\n");
        }),
        twin("R1", "kind: Role", "apiVersion is missing", "give the object its apiVersion", |it| {
            add(it, &labelled("kind: Role", "  name: x\n"));
        }),
        twin("R1", "labels:", "metadata.name is missing", "its metadata.name", |it| {
            add(it, &labelled("apiVersion: v1\nkind: ConfigMap", ""));
        }),
        twin("R1", "1", "kind is no text", "its kind", |it| {
            add(it, &labelled("apiVersion: v1\nkind: 1", "  name: x\n"));
        }),
        twin("R1", "", "there is no object in the file", "its objects", |it| {
            it.file.text = String::from("# nothing\n");
        })
        .also(&["R10", "R14"]),
        twin("R2", "List", "a List of 2 objects", "a document", |it| {
            add(it, "apiVersion: v1\nkind: List\nitems: [{a: 1}, {b: 2}]\n");
        }),
        twin("R3", "foo-issuer", "Issuer foo-issuer is here again; document 10 has it", "keep one", |it| {
            let issuer = labelled(
                "apiVersion: cert-manager.io/v1\nkind: Issuer",
                "  name: foo-issuer\n  namespace: foo-system\n",
            );
            add(it, &issuer);
        }),
        twin("R4", "1", "metadata.labels has tier: 1, which is no string", "in quotes", |it| {
            replace(
                it,
                "  name: foo-webhook-service\n  namespace",
                "    tier: 1\n  name: foo-webhook-service\n  namespace",
            );
        }),
        twin("R4", "true", "metadata.annotations has a/b: true", "in quotes", |it| {
            replace(
                it,
                "  name: foo-webhook-service\n  namespace",
                "  annotations: {a/b: true}\n  name: foo-webhook-service\n  namespace",
            );
        }),
    ]
}

fn of_variables() -> Vec<Twin> {
    vec![
        twin("V1", "${FOO$BAR}", "cannot follow the name FOO", "", |it| {
            replace(it, "${FOO_LOG_LEVEL:=0}", "${FOO$BAR}");
        }),
        twin("V1", "${FOO_LOG_LEVEL:=0", "closing brace is missing", "", |it| {
            let at = it.file.text.find("${FOO_LOG_LEVEL:=0}").unwrap() + "${FOO_LOG_LEVEL:=0".len();
            it.file.text.truncate(at);
        }),
        twin("V2", "${ FOO_B64ENCODED_CREDENTIALS }", "spaces in the braces", "${FOO_B64", |it| {
            replace(it, "${FOO_B64ENCODED_CREDENTIALS}", "${ FOO_B64ENCODED_CREDENTIALS }");
        }),
        twin("V3", "${FOO_log_LEVEL:=0}", "FOO_log_LEVEL has letters", "FOO_LOG_LEVEL", |it| {
            replace(it, "${FOO_LOG_LEVEL:=0}", "${FOO_log_LEVEL:=0}");
        }),
        twin(
            "V4",
            "${FOO_URL}",
            "FOO_URL has no default and is used in comments only",
            "$${FOO_URL}",
            |it| {
                replace(it, "${FOO_URL:=https://foo.example}", "${FOO_URL}");
            },
        ),
        twin("V5", "${FOO_LOG_LEVEL}", "it is empty if it is not set", "${FOO_LOG_LEVEL:=0}", |it| {
            replace(it, "${FOO_LOG_LEVEL:=0}", "${FOO_LOG_LEVEL:=0} --w=${FOO_LOG_LEVEL}");
        }),
        twin("V5", "${FOO_LOG_LEVEL} --w", "has one later on", "${FOO_LOG_LEVEL:=0}", |it| {
            replace(it, "${FOO_LOG_LEVEL:=0}", "${FOO_LOG_LEVEL} --w=${FOO_LOG_LEVEL:=0}");
        }),
        twin("V6", "${LOG_LEVEL:=0}", "LOG_LEVEL does not begin with FOO_", "FOO_LOG_LEVEL", |it| {
            replace(it, "${FOO_LOG_LEVEL:=0}", "${LOG_LEVEL:=0}");
        }),
    ]
}

fn of_repositories() -> Vec<Twin> {
    vec![
        twin("R5", "", "the file is named components.yaml", "infrastructure-components.yaml", |it| {
            rename(it, "components.yaml");
        }),
        twin("R6", "", "no metadata.yaml", "releaseSeries", |it| {
            it.folder.as_mut().unwrap().metadata = None;
        }),
        twin("G17c", "clusterctl.cluster.x-k8s.io/v1", "apiVersion is", "v1alpha3", |it| {
            metadata(it, "v1alpha3", "v1");
        }),
        twin("G17c", "Metadatum", "kind is \"Metadatum\"", "Metadata", |it| {
            metadata(it, "kind: Metadata", "kind: Metadatum");
        }),
        twin("G17c", "major: 0", "nothing for v0.4.0", "add {major, minor, contract}", |it| {
            path(it, "v0.4.0", "infrastructure-foo");
        }),
        twin("G17c", "major: 0", "is not {major, minor, contract}", "a minor number", |it| {
            metadata(it, "minor: 2", "minor: two");
        }),
        twin("G17c", "v1alpha4", "series 0.3 has contract v1alpha4", "the contract that the CRDs", |it| {
            metadata(it, "v1beta2", "v1alpha4");
        }),
        twin("G17c", "- major", "it is not YAML", "make it YAML", |it| {
            metadata(it, "kind: Metadata", "kind: [");
        }),
        twin("R7", "", "no cluster-template.yaml", "publish a template", |it| {
            it.folder.as_mut().unwrap().files.retain(|it| !it.starts_with("cluster-template"));
        }),
        twin("R8", "", "named infrastructure-bar", "name the folder infrastructure-foo", |it| {
            path(it, "v0.3.1", "infrastructure-bar");
        }),
        twin("R8", "", "named v0.3, which is no semantic version", "v1.2.3", |it| {
            path(it, "v0.3", "infrastructure-foo");
        }),
        twin("R8", "", "named latest, which is no semantic version", "v1.2.3", |it| {
            path(it, "latest", "infrastructure-foo");
        }),
        twin("R9", "", "named 0.3.1", "v0.3.1", |it| path(it, "0.3.1", "infrastructure-foo")),
    ]
}

fn of_namespaces() -> Vec<Twin> {
    vec![
        twin(
            "G17d",
            "other",
            "Namespace other is here besides Namespace foo-system",
            "one Namespace",
            |it| {
                add(it, &labelled("apiVersion: v1\nkind: Namespace", "  name: other\n"));
            },
        ),
        twin("R10", "", "there is no Namespace", "add one", |it| {
            drop_document(it, "kind: Namespace\n");
            add(it, &labelled("apiVersion: v1\nkind: Namespace", "  name: capi-webhook-system\n"));
        }),
        twin("R10", "", "there is no Namespace", "add one", |it| drop_document(it, "kind: Namespace\n")),
        twin("R11", "kube-system", "Role x is in namespace kube-system", "put it into foo-system", |it| {
            let head = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role";
            add(it, &labelled(head, "  name: x\n  namespace: kube-system\n"));
        }),
        twin("R12", "kube-system", "a subject is in namespace kube-system", "write foo-system", |it| {
            replace(
                it,
                "  name: foo-manager\n  namespace: foo-system\n---\napiVersion: v1\nkind: Secret",
                "  name: foo-manager\n  namespace: kube-system\n---\napiVersion: v1\nkind: Secret",
            );
        }),
        twin(
            "R12",
            "bar-system",
            "the service of a webhook is in namespace bar-system",
            "foo-system",
            |it| {
                replace(it, "          namespace: foo-system\n", "          namespace: bar-system\n");
            },
        ),
        twin("R12", "bar-system/foo-serving-cert", "the certificate to inject is in", "foo-system", |it| {
            it.file.text = it.file.text.replacen("foo-system/foo-serving", "bar-system/foo-serving", 1);
        }),
        twin(
            "R13",
            "foo-system",
            "the service of a webhook is in namespace foo-system",
            "into capi-webhook",
            |it| {
                replace(
                    it,
                    "  name: foo-webhook-service\n  namespace: foo-system\n---",
                    "  name: foo-webhook-service\n  namespace: capi-webhook-system\n---",
                );
            },
        ),
    ]
}

fn of_workloads() -> Vec<Twin> {
    vec![
        twin("R14", "", "there is no Deployment", "named manager", |it| {
            drop_document(it, "kind: Deployment\n");
        }),
        twin("G17b", "controller", "has the containers controller, proxy", "manager", |it| {
            replace(it, "- name: manager", "- name: controller");
        }),
        twin("R16", "extensions/v1beta1", "is of extensions/v1beta1", "write apps/v1", |it| {
            replace(it, "apiVersion: apps/v1", "apiVersion: extensions/v1beta1");
        }),
        twin(
            "R16",
            "rbac.authorization.k8s.io/v1beta1",
            "is of rbac",
            "write rbac.authorization.k8s.io/v1",
            |it| {
                replace(
                    it,
                    "rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding",
                    "rbac.authorization.k8s.io/v1beta1\nkind: ClusterRoleBinding",
                );
            },
        ),
        twin(
            "R17",
            "${FOO_IMAGE:=foo/manager:v1}",
            "\"foo/manager:v1\": it must name its registry",
            "docker.io/",
            |it| {
                replace(it, "ghcr.io/foo/manager:v0.3.1", "foo/manager:v1");
            },
        ),
        twin("R17", "name: init", "the image \"\": it is empty", "docker.io/", |it| {
            let init = "      initContainers:\n      - name: init\n      serviceAccountName";
            replace(it, "      serviceAccountName", init);
        }),
        twin("R18", "foo-serving-cert", "inject-ca-from is \"foo-serving-cert\"", "with a slash", |it| {
            it.file.text = it.file.text.replacen("foo-system/foo-serving", "foo-serving", 1);
        }),
        twin("R18", "a/b/c", "inject-ca-from is \"a/b/c\"", "with a slash", |it| {
            it.file.text = it.file.text.replacen("foo-system/foo-serving-cert", "a/b/c", 1);
        })
        .also(&["R12", "R20"]),
    ]
}

fn of_labels_and_links() -> Vec<Twin> {
    let label = "cluster.x-k8s.io/provider: infrastructure-foo";
    vec![
        twin(
            "G17a",
            "name: foo-system",
            "Namespace foo-system does not have the label",
            "infrastructure-foo",
            |it| {
                it.file.text = it.file.text.replacen(&format!("  labels:\n    {label}\n"), "", 1);
            },
        ),
        twin("G17a", "name: foo-system", "and neither have the other 10 objects", "<type>-<name>", |it| {
            it.file.text = it.file.text.replace(&format!("    {label}\n"), "    a: b\n");
            replace(it, "  labels:\n    a: b\n  name: foo-system", "  name: foo-system");
        }),
        twin("G17a", "infrastructure-bar", "while others have infrastructure-foo", "the same label", |it| {
            it.file.text = it.file.text.replacen("infrastructure-foo", "infrastructure-bar", 1);
        }),
        twin("R19", "foo", "foo begins with no type of providers", "infrastructure-foo", |it| {
            it.file.text = it.file.text.replace(label, "cluster.x-k8s.io/provider: foo");
        })
        .also(&["R8"]),
        twin(
            "R19",
            "infrastructure-foo",
            "the file is named for BootstrapProviders",
            "bootstrap-foo",
            |it| {
                rename(it, "bootstrap-components.yaml");
            },
        ),
        twin("R20", "other-role", "refers to ClusterRole other-role", "document who makes it", |it| {
            replace(
                it,
                "  kind: ClusterRole\n  name: foo-manager-role",
                "  kind: ClusterRole\n  name: other-role",
            );
        }),
        twin("R20", "other", "refers to ServiceAccount other", "add it to the components", |it| {
            replace(it, "serviceAccountName: foo-manager", "serviceAccountName: other");
        }),
        twin("R20", "foo-credentials", "refers to Secret foo-credentials", "add it", |it| {
            drop_document(it, "kind: Secret\n");
        }),
        twin("R20", "foo-webhook-service", "refers to Service foo-webhook-service", "add it", |it| {
            drop_document(it, "kind: Service\n");
        }),
        twin(
            "R20",
            "foo-system/foo-serving-cert",
            "refers to Certificate foo-serving-cert",
            "add it",
            |it| {
                drop_document(it, "kind: Certificate\n");
            },
        ),
        twin("R20", "foo-issuer", "refers to Issuer foo-issuer", "add it", |it| {
            drop_document(it, "kind: Issuer\nmeta");
        }),
        twin("R20", "foo-settings", "refers to ConfigMap foo-settings", "add it", |it| {
            replace(it, ", optional: true", "");
        }),
    ]
}

#[test]
fn each_twin_breaks_its_rule_and_no_other() {
    let flaws: Vec<_> =
        twins().iter().filter_map(|it| it.flaw(&check_components(std::slice::from_ref(&it.given)))).collect();
    assert!(flaws.is_empty(), "{}", flaws.join("\n"));
}

#[test]
fn what_cannot_be_read_leaves_the_rest_unchecked() {
    for id in ["R1", "V1"] {
        let twins = twins();
        let twin = twins.iter().find(|it| it.rule == id).unwrap();
        let report = check_components(std::slice::from_ref(&twin.given));
        let unchecked = report
            .findings
            .iter()
            .filter(|it| matches!(&it.outcome, capstan_conformance::Outcome::NotChecked { why } if why.ends_with(id)))
            .count();
        assert_eq!(unchecked + 1, report.findings.len());
    }
}

#[test]
fn what_real_releases_have_is_no_finding() {
    let kept: [fn(&mut Given); 5] = [
        // Objects without a namespace are put into the target namespace.
        |it| replace(it, "  name: foo-issuer\n  namespace: foo-system\n", "  name: foo-issuer\n"),
        // Roles that every cluster has.
        |it| {
            replace(
                it,
                "  kind: ClusterRole\n  name: foo-manager-role",
                "  kind: ClusterRole\n  name: cluster-admin",
            );
        },
        // A release that is built somewhere.
        |it| it.folder.as_mut().unwrap().path = vec!["out".to_owned(), "cluster-api".to_owned()],
        // A variable for many lines.
        |it| replace(it, "  scope: Namespaced\n", "  scope: Namespaced\n  ${FOO_EXTRA}\n"),
        // An image that only its user knows.
        |it| replace(it, "${FOO_IMAGE:=ghcr.io/foo/manager:v0.3.1}", "${FOO_IMAGE}"),
    ];
    for change in kept {
        let mut given = fixture::components();
        change(&mut given);
        let report = check_components(&[given]);
        let broken: Vec<_> = report.findings.iter().filter(|it| it.is_broken()).collect();
        assert!(broken.is_empty(), "{broken:#?}");
    }
}
