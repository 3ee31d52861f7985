//! Real releases of upstream's providers: components as they are installed, and templates as they are applied.

use std::{fs, path::Path};

use super::{
    Batch,
    harness::{Case, Fate},
    repository::as_upstream,
};

/// The flag of a provider, its name, the folder of its releases and its components.
const PROVIDERS: &[(&str, &str, &str, &str, &str)] = &[
    ("--core", "cluster-api", "CoreProvider", "cluster-api", "core-components.yaml"),
    ("--bootstrap", "kubeadm", "BootstrapProvider", "bootstrap-kubeadm", "bootstrap-components.yaml"),
    (
        "--control-plane",
        "kubeadm",
        "ControlPlaneProvider",
        "control-plane-kubeadm",
        "control-plane-components.yaml",
    ),
    (
        "--infrastructure",
        "aws",
        "InfrastructureProvider",
        "infrastructure-aws",
        "infrastructure-components.yaml",
    ),
    (
        "--infrastructure",
        "gcp",
        "InfrastructureProvider",
        "infrastructure-gcp",
        "infrastructure-components.yaml",
    ),
];

/// The variables that the components need.
pub(crate) const VALUES: &[(&str, &str)] = &[
    ("AWS_B64ENCODED_CREDENTIALS", "W2RlZmF1bHRdCg=="),
    ("GCP_B64ENCODED_CREDENTIALS", "e30K"),
    ("EXP_CLUSTER_RESOURCE_SET", "true"),
];

/// Cases on the releases that are laid out in a folder.
pub(crate) fn cases(releases: &Path) -> Vec<Batch> {
    let config = config(releases);
    let mut batches = Vec::new();
    for (flag, name, _, label, _) in PROVIDERS {
        let bare = |form: &str, arguments: &str| {
            let case = Case::new(
                "releases",
                format!("{label}{form}"),
                &format!("generate provider {flag} {name}{arguments}"),
            );
            as_upstream(case).config(config.clone())
        };
        let case = |form: &str, arguments: &str| bare(form, arguments).envs(VALUES);
        batches.push(case(" latest", "").into());
        for version in entries(&releases.join(label)) {
            batches.push(case(&format!(" {version}"), &format!(":{version}")).into());
            batches.push(case(&format!(" {version} elsewhere"), &format!(":{version} -n elsewhere")).into());
            batches.push(case(&format!(" {version} raw"), &format!(":{version} --raw")).into());
            batches.push(case(&format!(" {version} described"), &format!(":{version} --describe")).into());
            if *flag == "--infrastructure" {
                // It requires its own name.
                batches.push(
                    bare(&format!(" {version} without values"), &format!(":{version}"))
                        .fate(Fate::Either)
                        .into(),
                );
            }
            batches.extend(templates(&releases.join(label), name, &version, &config));
        }
    }
    batches
}

/// A configuration that knows the releases.
pub(crate) fn config(releases: &Path) -> String {
    PROVIDERS.iter().fold("providers:\n".to_owned(), |text, (_, name, kind, label, file)| {
        let url = releases.join(label).join("latest").join(file);
        format!("{text}- {{name: {name}, type: {kind}, url: {}}}\n", url.display())
    })
}

fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Every template of a release, with a value for every variable, and the list of them.
fn templates(provider: &Path, name: &str, version: &str, config: &str) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    for file in entries(&provider.join(version)) {
        let Some(flavor) = file.strip_prefix("cluster-template").and_then(|rest| rest.strip_suffix(".yaml"))
        else {
            continue;
        };
        let flavor = flavor.trim_start_matches('-');
        let flag = if flavor.is_empty() { String::new() } else { format!("--flavor {flavor}") };
        let case = |form: &str, more: &str| {
            let arguments = format!("generate cluster one -n ns -i {name}:{version} {flag} {more}");
            Case::new("releases", format!("{name} {version} template '{flavor}' {form}"), &arguments)
                .config(config)
        };
        let text = fs::read_to_string(provider.join(version).join(&file)).unwrap();
        let filled = names_in(&text).into_iter().fold(case("filled", ""), |case, name| {
            // Numbers are wanted by some.
            let value = if name.ends_with("COUNT") { "3".to_owned() } else { format!("value-of-{name}") };
            case.env(&name, &value)
        });
        batches.push(filled.fate(Fate::Either).into());
        batches.push(case("listed", "--list-variables").into());
        if flavor.is_empty() {
            batches.push(case("not filled", "").refused().into());
        }
    }
    batches
}

/// The names that follow `${`.
fn names_in(text: &str) -> Vec<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let names = text
        .split("${")
        .skip(1)
        .map(|rest| rest.trim_start().chars().take_while(|it| is_part(*it)).collect());
    let mut names: Vec<String> = names.filter(|name: &String| !name.is_empty()).collect();
    names.sort();
    names.dedup();
    names
}
