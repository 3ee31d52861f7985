//! Manifests made by the binary from local releases, without any cluster.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::user::{CLASS, COMPONENTS, Told, User, VERSION, objects, of_kind};

const TEMPLATE: &str = "\
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata:
  name: ${CLUSTER_NAME}
  namespace: ${NAMESPACE}
  labels: {flavor: 'none', region: '${ACME_REGION:=here}'}
spec:
  paused: false
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata:
  name: ${CLUSTER_NAME}-cp
spec:
  replicas: ${CONTROL_PLANE_MACHINE_COUNT}
  version: ${KUBERNETES_VERSION}
";

const TOPOLOGY: &str = "\
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: '${CLUSTER_NAME}'}
spec:
  topology:
    classRef: {name: quick}
    version: v1.34.0
";

fn with_templates() -> User {
    let user = User::of_acme();
    let flavored = TEMPLATE.replace("'none'", "eks");
    let files = [
        ("cluster-template.yaml", TEMPLATE),
        ("cluster-template-eks.yaml", &flavored),
        ("cluster-template-topology.yaml", TOPOLOGY),
        ("clusterclass-quick.yaml", CLASS),
    ];
    user.release("infrastructure-acme", VERSION, &files);
    user
}

#[test]
fn a_provider_is_printed_as_it_would_be_installed() {
    let objects = User::of_acme().run(&["generate", "provider", "-i", "acme"]).objects();
    let kinds: Vec<_> = objects.iter().map(|it| it["kind"].as_str().unwrap()).collect();
    let expected = ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Deployment"];
    assert_eq!(kinds, expected);
    let labels =
        json!({"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": "infrastructure-acme"});
    assert!(objects.iter().all(|it| it["metadata"]["labels"] == labels), "{objects:?}");
    assert_eq!(of_kind(&objects, "Namespace")["metadata"]["name"], "acme-system");
    let arguments = arguments_of(&objects);
    assert_eq!(arguments, &json!(["--token=t0ken", "--region=here"]));
}

fn arguments_of(objects: &[Value]) -> &Value {
    &of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
}

#[test]
fn a_provider_goes_to_another_namespace_with_all_that_refers_to_it() {
    let user = User::of_acme();
    let objects = user.run(&["generate", "provider", "-i", "acme", "-n", "there"]).objects();
    assert_eq!(of_kind(&objects, "Namespace")["metadata"]["name"], "there");
    for kind in ["ServiceAccount", "Deployment"] {
        assert_eq!(of_kind(&objects, kind)["metadata"]["namespace"], "there", "{kind}");
    }
    assert_eq!(of_kind(&objects, "ClusterRoleBinding")["subjects"][0]["namespace"], "there");
}

#[test]
fn a_provider_looks_at_one_namespace_if_it_is_told_to() {
    let user = User::of_acme();
    let watching = ["generate", "provider", "-i", "acme", "--watching-namespace", "tenant"];
    let objects = user.run(&watching).objects();
    assert_eq!(arguments_of(&objects), &json!(["--token=t0ken", "--region=here", "--namespace=tenant"]));
    assert_eq!(of_kind(&objects, "Namespace")["metadata"]["name"], "acme-system");
}

#[test]
fn roles_get_the_namespace_as_a_prefix_unless_told_otherwise() {
    let user = User::of_acme();
    for (flag, role, binding) in [
        ("--rbac-prefix", "there-acme-role", "there-acme-binding"),
        ("--rbac-prefix=true", "there-acme-role", "there-acme-binding"),
        ("--rbac-prefix=false", "acme-role", "acme-binding"),
    ] {
        let objects = user.run(&["generate", "provider", "-i", "acme", "-n", "there", flag]).objects();
        let found = of_kind(&objects, "ClusterRole");
        assert_eq!(found["metadata"]["name"], role, "{flag}");
        assert_eq!(found["rules"][0]["resourceNames"], json!([role]), "{flag}");
        let found = of_kind(&objects, "ClusterRoleBinding");
        assert_eq!(found["metadata"]["name"], binding, "{flag}");
        assert_eq!(found["roleRef"]["name"], role, "{flag}");
    }
}

#[test]
fn raw_leaves_variables_as_they_are_set_or_not() {
    let user = User::of_acme().without("ACME_TOKEN");
    let objects = user.run(&["generate", "provider", "-i", "acme", "--raw"]).objects();
    assert_eq!(arguments_of(&objects), &json!(["--token=${ACME_TOKEN}", "--region=${ACME_REGION:=here}"]));
    // A switch can be turned off.
    let off = user.run(&["generate", "provider", "-i", "acme", "--raw=false"]);
    off.fails(&["ACME_TOKEN"]);
}

#[test]
fn a_description_tells_what_can_be_set_and_what_is_needed() {
    let user = User::of_acme().without("ACME_TOKEN");
    let text = user.run(&["generate", "provider", "-i", "acme", "--describe"]).only_data();
    let repository = user.path("repository/infrastructure-acme/");
    let expected = format!(
        "\
Name:               acme
Type:               InfrastructureProvider
URL:                {repository}
Version:            v1.0.0
File:               infrastructure-components.yaml
TargetNamespace:    acme-system
Variables:
  - ACME_REGION
  - ACME_TOKEN
Images:
  - registry.example.com/acme/controller:v1.0.0

"
    );
    assert_eq!(text, expected);
    let json = user.run(&["generate", "provider", "-i", "acme", "--describe", "-o", "json"]).only_data();
    let value: Value = serde_json::from_str(&json).unwrap();
    let variables = json!([
        {"name": "ACME_REGION", "required": false, "default": "here"},
        {"name": "ACME_TOKEN", "required": true, "default": null},
    ]);
    assert_eq!(value["variables"], variables);
    assert_eq!(value["images"], json!(["registry.example.com/acme/controller:v1.0.0"]));
    assert_eq!((&value["version"], &value["targetNamespace"]), (&json!("v1.0.0"), &json!("acme-system")));
    let yaml = user.run(&["generate", "provider", "-i", "acme", "--describe", "-o", "yaml"]).only_data();
    assert_eq!(objects(&yaml), [value]);
}

#[test]
fn a_new_file_is_for_its_owner_alone_and_an_old_one_keeps_its_mode() {
    let user = User::of_acme();
    let printed = user.run(&["generate", "provider", "-i", "acme"]).only_data();
    let old = user.write("old.yaml", "from before");
    fs::set_permissions(&old, fs::Permissions::from_mode(0o644)).unwrap();
    for (file, mode) in [(old.with_file_name("new.yaml"), 0o600), (old, 0o644)] {
        let name = file.to_str().unwrap();
        let run = user.run(&["generate", "provider", "-i", "acme", "--write-to", name]);
        assert_eq!(run.only_data(), "");
        assert_eq!(fs::read_to_string(&file).unwrap(), printed);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, mode, "{name}");
    }
    let dash = user.run(&["generate", "provider", "-i", "acme", "--write-to", "-"]);
    assert_eq!(dash.only_data(), printed);
}

#[test]
fn images_are_replaced_where_the_configuration_says_so() {
    let user = User::of_acme();
    let provider = user.local_provider("acme", "InfrastructureProvider");
    let images = json!({"all": {"repository": "mirror.corp/capi"}, "infrastructure-acme": {"tag": "v1.0.1"}});
    user.configure(&json!({"providers": [provider], "images": images}));
    let objects = user.run(&["generate", "provider", "-i", "acme"]).objects();
    let image = &of_kind(&objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "mirror.corp/capi/controller:v1.0.1");
}

#[test]
fn an_overrides_folder_replaces_single_files() {
    let user = User::of_acme();
    let place = "overrides/infrastructure-acme/v1.0.0/infrastructure-components.yaml";
    let changed = COMPONENTS.replace("acme-system", "mine-system");
    let file = user.write(&format!(".cluster-api/{place}"), &changed);
    let run = user.run(&["generate", "provider", "-i", "acme"]);
    assert!(run.err.contains(&format!("using {} in place", file.display())), "{}", run.err);
    assert_eq!(of_kind(&run.objects(), "Namespace")["metadata"]["name"], "mine-system");
}

#[test]
fn the_older_names_print_the_same() {
    let user = with_templates();
    let cluster = ["cluster", "c", "-i", "acme:v1.0.0", "-n", "ns", "--kubernetes-version", "v1.34.0"];
    for rest in [&["provider", "-i", "acme"][..], &cluster] {
        let [old, new] = ["config", "generate"].map(|it| user.run(&[&[it], rest].concat()).only_data());
        assert!(!old.is_empty());
        assert_eq!(old, new);
    }
}

#[test]
fn a_cluster_is_made_from_a_release() {
    let user = with_templates();
    let run = user.run(&[
        "generate",
        "cluster",
        "c",
        "-i",
        "acme",
        "-n",
        "ns",
        "--kubernetes-version",
        "v1.34.0",
        "--controlplane-machine-count",
        "3",
    ]);
    assert!(run.err.contains("using infrastructure-acme v1.0.0, the latest release"), "{}", run.err);
    let objects = run.objects();
    let cluster = of_kind(&objects, "Cluster");
    let labels = json!({"flavor": "none", "region": "here"});
    assert_eq!(cluster["metadata"], json!({"name": "c", "namespace": "ns", "labels": labels}));
    let control_plane = of_kind(&objects, "KubeadmControlPlane");
    assert_eq!(control_plane["metadata"], json!({"name": "c-cp", "namespace": "ns"}));
    assert_eq!(control_plane["spec"], json!({"replicas": 3, "version": "v1.34.0"}));

    // Flags win over the environment, and that over the configuration file.
    let user = user.with("ACME_REGION", "there").with("CONTROL_PLANE_MACHINE_COUNT", "5");
    let words = ["generate", "cluster", "c", "-i", "acme:v1.0.0", "-f", "eks", "-n", "ns"];
    let words = [&words[..], &["--kubernetes-version", "v1.34.0"]].concat();
    let objects = user.run(&words).objects();
    assert_eq!(
        of_kind(&objects, "Cluster")["metadata"]["labels"],
        json!({"flavor": "eks", "region": "there"})
    );
    assert_eq!(of_kind(&objects, "KubeadmControlPlane")["spec"]["replicas"], 5);
    let objects = user.run(&[&words[..], &["--control-plane-machine-count=1"]].concat()).objects();
    assert_eq!(of_kind(&objects, "KubeadmControlPlane")["spec"]["replicas"], 1);
}

#[test]
fn a_cluster_is_made_from_a_file_or_standard_input() {
    let user = User::new().with("KUBERNETES_VERSION", "v1.34.0");
    let file = user.write("template.yaml", TEMPLATE);
    let words = |from| ["generate", "cluster", "c", "-n", "ns", "--from", from];
    let printed = user.run(&words(file.to_str().unwrap())).only_data();
    assert_eq!(of_kind(&objects(&printed), "Cluster")["metadata"]["name"], "c");
    assert_eq!(user.run_with_input(&words("-"), TEMPLATE).only_data(), printed);
    let address = format!("file://{}", file.display());
    for from in [&address, "~/template.yaml"] {
        assert_eq!(user.run(&words(from)).only_data(), printed, "{from}");
    }
}

#[test]
fn without_any_cluster_the_class_of_a_template_comes_with_it() {
    let user = with_templates();
    let words = ["generate", "cluster", "c", "-i", "acme:v1.0.0", "-f", "topology", "-n", "ns"];
    let objects = user.run(&words).objects();
    let kinds: Vec<_> = objects.iter().map(|it| it["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ClusterClass", "AcmeClusterTemplate", "Cluster"]);
    assert!(objects.iter().all(|it| it["metadata"]["namespace"] == "ns"), "{objects:?}");
}

#[test]
fn variables_of_a_template_are_listed_without_namespace_or_value() {
    let user = with_templates();
    let words = ["generate", "cluster", "c", "-i", "acme:v1.0.0", "--list-variables"];
    let expected = "\
Required Variables:
  - KUBERNETES_VERSION

Optional Variables:
  - ACME_REGION                  (defaults to \"here\")
  - CLUSTER_NAME                 (defaults to c)
  - CONTROL_PLANE_MACHINE_COUNT  (defaults to 1)
  - NAMESPACE                    (defaults to current Namespace in the KubeConfig file)

";
    assert_eq!(user.run(&words).only_data(), expected);
    let json = user.run(&[&words[..], &["-o", "json"]].concat()).only_data();
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["required"], json!(["KUBERNETES_VERSION"]));
    assert_eq!(value["optional"][0], json!({"name": "ACME_REGION", "default": "here"}));
}

#[test]
fn variables_in_any_yaml_are_replaced_and_listed() {
    let user = User::new().with("B", "2");
    let text = "a: ${A:=1}\nb: ${B}\n---\nc: [3]\n";
    assert_eq!(user.run_with_input(&["generate", "yaml"], text).only_data(), "a: 1\nb: 2\n---\nc:\n- 3\n");
    let file = user.write("any.yaml", text);
    let listed = user.run(&["generate", "yaml", "--from", file.to_str().unwrap(), "--list-variables"]);
    assert_eq!(listed.only_data(), "Variables:\n  - A\n  - B\n");
}

#[test]
fn repositories_are_listed_with_those_of_the_configuration() {
    let user = User::of_acme();
    let text = user.run(&["config", "repositories"]).only_data();
    let header: Vec<_> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["NAME", "TYPE", "URL", "FILE"]);
    let folder = user.path("repository/infrastructure-acme/latest/");
    let rows: Vec<Vec<_>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let own = ["acme", "InfrastructureProvider", &folder, "infrastructure-components.yaml"];
    assert!(rows.iter().any(|row| row[..] == own), "{text}");
    assert!(rows.iter().any(|row| row[0] == "aws" && row[2].ends_with("provider-aws/releases/latest/")));
    let json = user.run(&["config", "repositories", "-o", "json"]).only_data();
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value.as_array().unwrap().len(), rows.len() - 1);
    let own = json!({"Name": own[0], "ProviderType": own[1], "URL": own[2], "File": own[3]});
    assert!(value.as_array().unwrap().contains(&own), "{value}");
    let yaml = user.run(&["config", "repositories", "-o", "yaml"]).only_data();
    assert_eq!(objects(&yaml), [value]);
}

#[test]
fn images_are_listed_without_any_cluster() {
    let user = User::new();
    user.stock_everything();
    let expected = ["bootstrap-kubeadm", "cert-manager", "cluster-api", "control-plane-kubeadm"];
    for words in [&["init", "list-images"][..], &["init", "--list-images"]] {
        assert_eq!(user.images(words), expected, "{words:?}");
    }
    let none = ["init", "list-images", "--core=-", "-b", "-", "-c", "-", "-i", "acme:v1.0.0"];
    assert_eq!(user.images(&none), ["cert-manager", "infrastructure-acme"]);
    let json = user.run(&[&none[..], &["-o", "json"]].concat()).only_data();
    let value: Value = serde_json::from_str(&json).unwrap();
    let images = ["registry.example.com/cert-manager:v1", "registry.example.com/infrastructure-acme:v1"];
    assert_eq!(value, json!(images));
    let off = user.run(&["init", "--list-images=false"]);
    off.fails(&["no management cluster is named"]);
}

#[test]
fn folders_that_are_no_versions_are_reported_and_passed_over() {
    let user = User::of_acme();
    user.release("infrastructure-acme", "nightly", &[("infrastructure-components.yaml", "never: read")]);
    user.write("repository/infrastructure-acme/.DS_Store/x", "");
    let run = user.run(&["generate", "provider", "-i", "acme"]);
    let warnings: Vec<_> = run.err.lines().collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("warning: infrastructure-acme nightly is skipped"), "{warnings:?}");
    assert_eq!(of_kind(&run.objects(), "Namespace")["metadata"]["name"], "acme-system");
}

#[test]
fn the_newest_stable_release_is_taken() {
    let user = User::of_acme();
    for (version, namespace) in [("v1.1.0", "newer"), ("v1.1.1-rc.0", "candidate")] {
        let text = COMPONENTS.replace("acme-system", namespace);
        user.release("infrastructure-acme", version, &[("infrastructure-components.yaml", &text)]);
    }
    for (argument, namespace) in [
        ("acme", "newer"),
        ("acme:latest", "newer"),
        ("ACME", "newer"),
        ("acme:v1.0.0", "acme-system"),
        ("acme:v1.1.1-rc.0", "candidate"),
    ] {
        let objects = user.run(&["generate", "provider", "-i", argument]).objects();
        assert_eq!(of_kind(&objects, "Namespace")["metadata"]["name"], namespace, "{argument}");
    }
}

#[test]
fn the_version_is_told_in_every_form() {
    let user = User::new();
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    assert_eq!(user.run(&["version", "-o", "short"]).only_data(), format!("{version}\n"));
    let text = user.run(&["version"]).only_data();
    assert!(text.starts_with(&format!("capstan version: {version} (")), "{text}");
    let json = user.run(&["version", "-o", "json"]).only_data();
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["capstan"]["gitVersion"], version);
    assert_eq!(objects(&user.run(&["version", "-o", "yaml"]).only_data()), [value]);
}

#[test]
fn a_link_named_clusterctl_is_clusterctl() {
    let user = User::of_acme();
    let link = user.home.join("clusterctl");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_capstan"), &link).unwrap();
    let run = |words: &[&str]| Told::from(user.command(&link, words).output().unwrap()).only_data();
    let value: Value = serde_json::from_str(&run(&["version", "-o", "json"])).unwrap();
    assert_eq!(value.as_object().unwrap().keys().collect::<Vec<_>>(), ["clusterctl"]);
    for words in [&["--help"][..], &["generate", "cluster", "--help"]] {
        let help = run(words);
        assert!(help.contains("Usage: clusterctl ") && !help.contains("capstan "), "{help}");
    }
    assert!(run(&["generate", "cluster", "--help"]).contains("    clusterctl generate cluster my-cluster"));
    assert!(run(&["completion", "bash"]).contains("clusterctl\n"));
    assert_eq!(run(&["generate", "provider", "-i", "acme"]), {
        user.run(&["generate", "provider", "-i", "acme"]).only_data()
    });
}

#[test]
fn a_group_of_commands_alone_shows_what_is_in_it() {
    let user = User::new();
    for words in [&[][..], &["generate"], &["config"]] {
        let help = user.run(words).only_data();
        assert!(help.contains("Commands:"), "{help}");
    }
}

#[test]
fn passwords_in_addresses_are_not_shown() {
    let user = User::new();
    let url = "https://me:s3cret@example.com/releases/v1.0.0/infrastructure-components.yaml?sig=s3cret";
    user.configure(&json!({"providers": [{"name": "acme", "type": "InfrastructureProvider", "url": url}]}));
    for format in ["text", "json", "yaml"] {
        let text = user.run(&["config", "repositories", "-o", format]).data();
        assert!(text.contains("example.com/releases/v1.0.0/") && !text.contains("s3cret"), "{text}");
    }
}

#[test]
fn credentials_that_cannot_be_read_are_told_of() {
    let user = User::of_acme();
    fs::create_dir_all(user.home.join(".docker/config.json")).unwrap();
    let told = user.run(&["generate", "provider", "-i", "acme"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert_eq!(told.err.matches("are not used").count(), 1, "{told:?}");
}
