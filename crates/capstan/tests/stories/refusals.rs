//! What cannot be rendered is refused with one clear error: exit code 1, nothing printed, nothing written.

use std::{fs, os::unix::fs::symlink};

use serde_json::json;

use crate::user::{COMPONENTS, METADATA, User, VERSION};

const FILE: &str = "infrastructure-components.yaml";

/// Refuses a command, printed and with `--write-to`, which leaves the old file and no other.
pub(crate) fn refused(user: &User, words: &[&str], expected: &[&str]) {
    let printed = user.run(words).fails(expected);
    let old = user.write("out/old.yaml", "from before");
    for file in ["out/old.yaml", "out/new.yaml"] {
        let written = user.run(&[words, &["--write-to", file]].concat()).fails(expected);
        assert_eq!(written, printed);
    }
    assert_eq!(fs::read_to_string(old).unwrap(), "from before");
    let files: Vec<_> =
        fs::read_dir(user.home.join("out")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(files, ["old.yaml"]);
}

/// Refuses `generate provider` of a release with these components.
fn refused_components(components: &str, expected: &[&str]) {
    let user = User::of_acme();
    user.release("infrastructure-acme", VERSION, &[(FILE, components)]);
    let path = user.path(&format!("repository/infrastructure-acme/v1.0.0/{FILE}"));
    refused(&user, &["generate", "provider", "-i", "acme"], &[&[path.as_str()], expected].concat());
}

/// Refuses `generate cluster` from a file.
fn refused_template(template: &str, expected: &[&str]) {
    let user = User::new();
    let file = user.write("template.yaml", template);
    let file = file.to_str().unwrap();
    refused(&user, &["generate", "cluster", "c", "-n", "ns", "--from", file], &[&[file], expected].concat());
}

#[test]
fn two_namespaces() {
    let second = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: other-system}\n";
    refused_components(&format!("{COMPONENTS}{second}"), &["two: \"acme-system\" and \"other-system\""]);
}

#[test]
fn no_namespace_and_no_target() {
    let (_, without) = COMPONENTS.split_once("---\n").unwrap();
    refused_components(
        without,
        &["no Namespace among the components", "hint: name one with --target-namespace"],
    );
    // With a target it is no error.
    let user = User::of_acme();
    user.release("infrastructure-acme", VERSION, &[(FILE, without)]);
    user.run(&["generate", "provider", "-i", "acme", "-n", "there"]).only_data();
}

#[test]
fn an_unknown_flavor() {
    let user = User::of_acme();
    let files = [("cluster-template-eks.yaml", ""), ("cluster-template-machinepool.yaml", "")];
    user.release("infrastructure-acme", VERSION, &files);
    let words = ["generate", "cluster", "c", "-i", "acme:v1.0.0", "-n", "ns", "-f", "nope"];
    refused(
        &user,
        &words,
        &["infrastructure-acme v1.0.0", "flavor \"nope\"", "cluster-template-nope.yaml", "eks, machinepool"],
    );
}

#[test]
fn variables_without_a_value() {
    refused_template(
        "kind: A\nb: ${FIRST}\nc: [1, '${SECOND}']\nd: ${FIRST}\ne: ${THIRD:=3}\n",
        &[
            "no value is set for 2 variables",
            "FIRST (line 2, column 4; line 4, column 4)",
            "SECOND (line 3, column 9)",
            "hint: set each in the environment (`export FIRST=...`) or in the configuration file (`FIRST: ...`)",
        ],
    );
    refused_components(&COMPONENTS.replace("ACME_TOKEN", "ACME_KEY"), &["ACME_KEY (line 50, column 25)"]);
}

#[test]
fn a_dollar_in_the_name_of_a_variable() {
    let expected = [
        "line 2, column 4: `${VAR$FOO}`: '$' cannot follow the name VAR",
        "hint: a name cannot contain `$`; two variables side by side are written `${VAR}${FOO}`",
    ];
    refused_template("kind: A\nb: ${VAR$FOO}\n", &expected);
    let user = User::new();
    user.run_with_input(&["generate", "yaml"], "kind: A\nb: ${VAR$FOO}\n").fails(&expected);
}

#[test]
fn a_text_that_its_variables_blow_up() {
    let user = User::new().with("A", "aaaaaaaaaa");
    let nested = (0..60).fold("b".to_owned(), |text, _| format!("${{A//a/{text}}}"));
    let file = user.write("t.yaml", &format!("kind: {nested}\n"));
    let file = file.to_str().unwrap();
    let expected = [
        file,
        "line 1, column 371: variable A: the rendered text is larger than 67108864 bytes",
        "hint: use shorter values or fewer replacements",
    ];
    user.run(&["generate", "yaml", "--from", file]).fails(&expected);
}

#[test]
fn a_limit_of_the_cache_that_is_no_size() {
    let user = User::of_acme().with("CAPSTAN_CACHE_LIMIT", "plenty");
    let expected = [
        "CAPSTAN_CACHE_LIMIT is \"plenty\", which is not a size in bytes",
        "hint: set it to a size such as 512Mi",
    ];
    refused(&user, &["generate", "provider", "-i", "acme"], &expected);
}

#[test]
fn yaml_that_is_none() {
    let template = "kind: A\n---\n# a comment\nkind: B\nspec: [1, 2\nmore: x\n";
    refused_template(template, &["document 2, line 6, column "]);
    refused_components(&format!("{COMPONENTS}---\nkind: B\n\tx: 1\n"), &["document 6, line 52, column 7"]);
    refused_template("- a list\n", &["document 1", "line 1", "a list where an object is expected"]);
}

#[test]
fn metadata_without_the_series_of_the_version() {
    let user = User::of_acme();
    user.release("infrastructure-acme", "v2.0.0", &[(FILE, COMPONENTS)]);
    let words = ["generate", "provider", "-i", "acme:v2.0.0"];
    let path = user.path("repository/infrastructure-acme/v2.0.0/metadata.yaml");
    refused(
        &user,
        &words,
        &[&path, "does not list the release series of v2.0.0; it lists 1.0 (v1beta2), 1.1"],
    );
    // The latest release is then the one before.
    let run = user.run(&["generate", "provider", "-i", "acme"]);
    assert!(run.err.contains("warning: infrastructure-acme v2.0.0 is skipped"), "{}", run.err);
    assert!(run.data().contains("name: acme-system"));
}

#[test]
fn a_contract_that_nobody_speaks_any_more() {
    let user = User::of_acme();
    let old = METADATA.replace("v1beta2", "v1alpha3");
    user.release("infrastructure-acme", VERSION, &[("metadata.yaml", &old)]);
    refused(&user, &["generate", "provider", "-i", "acme:v1.0.0"], &["speaks contract v1alpha3"]);
}

#[test]
fn links_that_lead_out_of_the_repository() {
    let user = User::of_acme();
    let secret = user.write("secret.yaml", COMPONENTS);
    let file = user.home.join("repository/infrastructure-acme/v1.0.0").join(FILE);
    fs::remove_file(&file).unwrap();
    symlink(&secret, &file).unwrap();
    let words = ["generate", "provider", "-i", "acme"];
    refused(&user, &words, &[file.to_str().unwrap(), "symbolic link leads to", "outside of the repository"]);
    // Within it they are fine.
    fs::remove_file(&file).unwrap();
    symlink(user.write("repository/shared.yaml", COMPONENTS), &file).unwrap();
    user.run(&words).only_data();
}

#[test]
fn a_web_page_in_place_of_the_file() {
    let page = "<!DOCTYPE html>\n<html><body>Sign in</body></html>\n";
    refused_components(page, &["is a web page, not YAML"]);
    refused_template(page, &["is a web page, not YAML", "hint: "]);
}

#[test]
fn an_image_without_its_registry() {
    let short = COMPONENTS.replace("registry.example.com/acme/controller:v1.0.0", "nginx:1.27");
    refused_components(
        &short,
        &[
            "Deployment",
            "acme-manager",
            "image \"nginx:1.27\" of container \"manager\"",
            "docker.io/library/nginx:1.27",
        ],
    );
}

#[test]
fn an_unknown_provider() {
    let user = User::of_acme();
    let words = ["generate", "provider", "-i", "acm"];
    refused(
        &user,
        &words,
        &["no InfrastructureProvider named \"acm\"; there is acme\n", "config repositories"],
    );
    let words = ["generate", "provider", "-i", "kubeadm"];
    refused(&user, &words, &["kubeadm (BootstrapProvider), kubeadm (ControlPlaneProvider)"]);
}

#[test]
fn an_argument_that_names_no_provider() {
    let user = User::of_acme();
    for (argument, reason) in [
        ("acme:v1:v2", "more than one colon"),
        ("acme:", "the version is empty"),
        (":v1.0.0", "the name is empty"),
        ("my.cloud", "letters, digits and dashes"),
    ] {
        let words = ["generate", "provider", "-i", argument];
        let form = "Provider name should be in the form name[:version]";
        refused(&user, &words, &[&format!("{argument:?}"), form, reason, "e.g. aws:v2.9.1"]);
    }
    let words = ["generate", "provider", "-i", "acme:v9.9.9"];
    refused(&user, &words, &["the version v9.9.9", "hint: available: v1.0.0"]);
    let words = ["generate", "provider", "-i", "acme:../../etc"];
    refused(&user, &words, &["\"../../etc\" cannot be part of a file name"]);
}

#[test]
fn a_configuration_that_cannot_be_used() {
    let user = User::of_acme();
    let words = ["generate", "provider", "-i", "acme", "--config", "nowhere.yaml"];
    refused(&user, &words, &["the configuration file nowhere.yaml does not exist"]);
    user.write("bad.yaml", "providers:\n- name: [\n");
    let words = ["generate", "provider", "-i", "acme", "--config", "bad.yaml"];
    refused(&user, &words, &["the configuration file bad.yaml is malformed", "line 2"]);
    user.write("wrong.yaml", &json!({"providers": "acme"}).to_string());
    let words = ["generate", "provider", "-i", "acme", "--config", "wrong.yaml"];
    refused(&user, &words, &["providers must be"]);
    let user = user.with("PROVIDERS", "x");
    let words = ["generate", "provider", "-i", "acme"];
    refused(&user, &words, &["environment variable PROVIDERS", "unset it"]);
}

#[test]
fn a_provider_in_a_folder_of_another_name() {
    let user = User::of_acme();
    let url = user.path(&format!("repository/acme/latest/{FILE}"));
    user.configure(&json!({"providers": [{"name": "acme", "type": "InfrastructureProvider", "url": url}]}));
    let words = ["generate", "provider", "-i", "acme"];
    refused(&user, &words, &[&url, "with infrastructure-acme as the label, not \"acme\""]);
}

#[test]
fn a_manager_that_cannot_be_told_what_to_watch() {
    let user = User::of_acme();
    let text = COMPONENTS.replace("name: manager", "name: controller");
    user.release("infrastructure-acme", VERSION, &[(FILE, &text)]);
    let words = ["generate", "provider", "-i", "acme", "--watching-namespace", "tenant"];
    refused(&user, &words, &["cannot watch only namespace tenant", "container named \"manager\""]);
}

#[test]
fn a_cluster_that_cannot_be() {
    let user = User::new();
    user.write("t.yaml", "kind: A\n");
    let with = |more: &[&'static str]| {
        [&["generate", "cluster", "c", "-n", "ns", "--from", "t.yaml"], more].concat()
    };
    refused(&user, &with(&["--kubernetes-version", "1.34"]), &["--kubernetes-version 1.34 is no version"]);
    refused(&user, &with(&["--control-plane-machine-count", "0"]), &["it must be 1 at least"]);
    refused(&user, &with(&["--worker-machine-count=-1"]), &["--worker-machine-count is -1"]);
    refused(&user, &with(&["-i", "aws"]), &["the template can come from one place only"]);
    refused(&user, &with(&["--from-config-map-key", "k"]), &["the template can come from one place only"]);
    let name = ["generate", "cluster", "My_Cluster", "-n", "ns", "--from", "t.yaml"];
    refused(&user, &name, &["\"My_Cluster\" cannot be the name of a cluster"]);
    let long = "x".repeat(64);
    let name = ["generate", "cluster", &long, "-n", "ns", "--from", "t.yaml"];
    let told = user.run(&name).fails(&["at most 63 characters, and this one has 64"]);
    assert!(!told.contains(&long), "{told}");
    // Nothing is started for a Cluster that cannot be.
    for (name, expected) in
        [("My_Cluster", "cannot be the name of a cluster"), (&long, "at most 63 characters")]
    {
        let told = user.run(&["quickstart", "--name", name]).fails(&[expected, "hint: --name takes"]);
        assert!(told.starts_with("error: "), "{told}");
    }
    let namespace = ["generate", "cluster", "c", "-n", "n.s", "--from", "t.yaml"];
    refused(&user, &namespace, &["\"n.s\" cannot be the name of a namespace"]);
    let none = ["generate", "cluster", "c", "--from", "t.yaml"];
    refused(&user, &none, &["no kubeconfig says which namespace", "--target-namespace"]);
    let missing = ["generate", "cluster", "c", "-n", "ns", "--from", "missing.yaml"];
    refused(&user, &missing, &["cannot read missing.yaml"]);
    let scheme = ["generate", "cluster", "c", "-n", "ns", "--from", "ftp://h/t.yaml"];
    refused(&user, &scheme, &["ftp:// is not supported"]);
}

#[test]
fn a_file_that_cannot_be_written() {
    let user = User::of_acme();
    let words = ["generate", "provider", "-i", "acme", "--write-to", "missing/out.yaml"];
    user.run(&words).fails(&["cannot write missing/out.yaml"]);
    assert!(!user.home.join("missing").exists());
}

#[test]
fn flags_that_there_are_not() {
    let user = User::of_acme();
    for (words, expected) in [
        (&["generate", "provider", "-i", "acme", "--describ"][..], "--describ"),
        (&["generate", "provider", "-i", "acme", "-o", "json"], "--describe"),
        (&["generate", "provider", "-i", "acme", "-b", "kubeadm"], "more than one provider is named"),
        (&["generate", "provider"], "--infrastructure"),
        (&["generate", "provider", "-i", "acme", "--raw=perhaps"], "must be true or false"),
        (&["generate", "cluster", "c", "--worker-machine-count", "some"], "must be a whole number"),
        (&["generate", "cluster"], "<NAME>"),
        (&["config", "repositories", "-o", "xml"], "possible values: text, yaml, json"),
        (&["completion", "tcsh"], "possible values: bash, zsh, fish"),
        (&["frobnicate"], "frobnicate"),
    ] {
        user.run(words).fails(&[expected]);
    }
}
