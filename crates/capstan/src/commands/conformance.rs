//! `capstan conformance`.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use capstan_api::names::label;
use capstan_conformance::{
    NothingToCheck, Origin, Report, Source, dynamic, input,
    output::{Counts, json, junit, rules, table},
    statics,
};
use capstan_runtime::{
    client::{self, ClientOptions},
    metrics::Metrics,
    shell::stop_on_signal,
};
use k8s_openapi::{
    api::{apps::v1::Deployment, rbac::v1::ClusterRole},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, Client, Resource, ResourceExt, api::ListParams};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tokio::process::Command;

use crate::{
    cli::{
        Conformance, ConformanceArgs, InfraClusterArgs, PlaysCore, ReportFormat, RulesArgs, RulesFormat,
        StaticArgs,
    },
    error::CommandError,
    management::client_options,
    printer::{Output, Printer, Text},
};

pub(crate) async fn run(args: ConformanceArgs, printer: Printer) -> Result<(), CommandError> {
    match args.what {
        Conformance::Static(args) => check_statically(&args, printer).await,
        Conformance::Infracluster(args) => check_running(args, printer).await,
        Conformance::Rules(args) => print_rules(&args, printer),
    }
}

fn print_rules(args: &RulesArgs, printer: Printer) -> Result<(), CommandError> {
    printer.print(&match args.output {
        RulesFormat::Table => Output::Text(Text::laid_out(&rules::table())),
        RulesFormat::Json => Output::Data(
            rules::json().map_err(|error| CommandError::new("cannot write the rules as JSON", error))?,
        ),
    })
}

async fn check_statically(args: &StaticArgs, printer: Printer) -> Result<(), CommandError> {
    let report = match &args.kubeconfig {
        None => check_files(&args.components)?,
        Some(kubeconfig) => {
            let options = client_options(Some(kubeconfig.clone()), args.context.clone());
            check_cluster(&options, args.provider.as_deref()).await?
        }
    };
    finish(&report, args.output, printer)
}

async fn check_running(args: InfraClusterArgs, printer: Printer) -> Result<(), CommandError> {
    let stop = stop_on_signal().map_err(|error| CommandError::new("cannot listen for signals", error))?;
    let (name, text) = read_text(&args.manifest)?;
    let sources = input::read(&name, &text)?;
    let target = dynamic::Target {
        kind: args.kind,
        group: args.group,
        version: args.version,
        documents: sources.into_iter().map(|source| source.object).collect(),
    };
    let options = client_options(args.kubeconfig.clone(), args.context.clone());
    let unusable = |error| CommandError::new("cannot connect to the cluster", error);
    let server = client::find_config(&options).await.map_err(unusable)?;
    let client = client::connect(server, &options, &Metrics::default()).map_err(unusable)?;
    let options = dynamic::Options {
        core: match args.core {
            PlaysCore::Fake => dynamic::Core::Fake,
            PlaysCore::Beside => dynamic::Core::Beside,
            PlaysCore::Real => dynamic::Core::Real,
        },
        namespace: args.namespace,
        timeout: args.timeout,
        quiet_time: args.quiet_time,
        only: args.only,
        restart: args.restart_command.map(restart_by),
        stop,
        ..dynamic::Options::default()
    };
    let checked = dynamic::check(client, target, options, |progress| printer.progress(progress)).await;
    printer.progress_done();
    let report =
        checked.map_err(|error| CommandError::new(format!("{name} cannot be put to the test"), error))?;
    finish(&report, args.output, printer)
}

/// Restarts the provider by a command of the user's.
fn restart_by(command: String) -> dynamic::Restart {
    Arc::new(move || {
        let command = command.clone();
        Box::pin(async move {
            let ended = Command::new("sh").args(["-c", &command]).stdout(Stdio::null()).status().await;
            match ended {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(format!("`{command}` ended with {status}")),
                Err(error) => Err(format!("`{command}` cannot be run: {error}")),
            }
        })
    })
}

/// Prints a report, and fails where the provider does.
pub(super) fn finish(report: &Report, format: ReportFormat, printer: Printer) -> Result<(), CommandError> {
    printer.print(&match format {
        ReportFormat::Table => Output::Text(Text::laid_out(&table::render(report))),
        ReportFormat::Json => Output::Data(json::render(report)),
        ReportFormat::Junit => Output::Data(junit::render(report)),
    })?;
    if !report.is_failed() {
        return Ok(());
    }
    let failed = Counts::of(report).failed;
    let (findings, are) = if failed == 1 { ("finding", "is") } else { ("findings", "are") };
    Err(CommandError::plain(format!(
        "{} does not keep the contract: {failed} {findings} {are} of rules that must be kept",
        report.about
    )))
}

fn check_files(given: &[PathBuf]) -> Result<Report, CommandError> {
    let name = |it: &PathBuf| {
        if is_standard_input(it) { "standard input".to_owned() } else { it.display().to_string() }
    };
    let names: Vec<_> = given.iter().map(name).collect();
    let mut sources = Vec::new();
    for file in given.iter().map(|it| files(it)).collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
        let (name, text) = read_text(&file)?;
        sources.extend(input::read(&name, &text)?);
    }
    statics::check(&names.join(", "), &sources, Origin::Files).map_err(|error| nothing(&error))
}

/// What a file is called, and what it holds.
pub(super) fn read_text(file: &Path) -> Result<(String, String), CommandError> {
    let (name, text) = if is_standard_input(file) {
        ("standard input".to_owned(), io::read_to_string(io::stdin()))
    } else {
        (file.display().to_string(), fs::read_to_string(file))
    };
    let text = text.map_err(|error| CommandError::new(format!("cannot read {name}"), error))?;
    Ok((name, text))
}

pub(super) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The file itself, or the files of a folder that can have components, in the order of their names.
fn files(given: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let name = given.display();
    let wrap = |error| CommandError::new(format!("cannot read {name}"), error);
    if is_standard_input(given) || !fs::metadata(given).map_err(wrap)?.is_dir() {
        return Ok(vec![given.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(given).map_err(wrap)? {
        let path = entry.map_err(wrap)?.path();
        if is_read(&path) && path.is_file() {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Err(CommandError::plain(format!("{name} has no .yaml, .yml or .json files of components"))
            .hint("subfolders are not looked into: name the folder of one release, or of the CRDs"));
    }
    found.sort();
    Ok(found)
}

/// Whether a file of a folder can have components. Templates of workload clusters have variables that are no YAML
/// before they are filled in, and belong to no provider's installation.
fn is_read(path: &Path) -> bool {
    let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
    let ends = |end: &str| path.extension().is_some_and(|it| it == end);
    (ends("yaml") || ends("yml") || ends("json"))
        && !["cluster-template", "clusterclass", "kustomization."].iter().any(|it| name.starts_with(it))
}

fn nothing(error: &NothingToCheck) -> CommandError {
    let hint = match error {
        NothingToCheck::NoCrds { .. } => "give the components file of a release, or the folder of its CRDs",
        NothingToCheck::Core { .. } => {
            "give the components of a provider, e.g. infrastructure-components.yaml"
        }
        NothingToCheck::NoContractKinds { .. } => {
            "core's kinds are found by names such as FooCluster, FooMachine, FooConfig and FooControlPlane, \
             and by fields such as status.initialization.provisioned"
        }
        NothingToCheck::Twice { .. } => "name the files or the folder of one release",
    };
    CommandError::plain(error.to_string()).hint(hint)
}

async fn check_cluster(options: &ClientOptions, provider: Option<&str>) -> Result<Report, CommandError> {
    let unusable = |error| CommandError::new("cannot connect to the cluster", error);
    let server = client::find_config(options).await.map_err(unusable)?;
    let about = match provider {
        Some(provider) => format!("{provider} in {}", server.url()),
        None => server.url(),
    };
    let file = server.url();
    let client = client::connect(server, options, &Metrics::default()).map_err(unusable)?;
    let crds = list::<CustomResourceDefinition>(&client, ListParams::default()).await?;
    let of_provider = |it: &CustomResourceDefinition| {
        provider.is_none_or(|provider| it.labels().get(label::PROVIDER).is_some_and(|it| it == provider))
    };
    let chosen: Vec<_> = crds.iter().filter(|it| of_provider(it)).collect();
    if let (Some(provider), true) = (provider, chosen.is_empty()) {
        let mut known: Vec<_> = crds.iter().filter_map(|it| it.labels().get(label::PROVIDER)).collect();
        known.sort_unstable();
        known.dedup();
        let known = known.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ");
        let hint = if known.is_empty() {
            format!("no CRD there has the label {}", label::PROVIDER)
        } else {
            format!("CRDs there have the labels {known}")
        };
        return Err(CommandError::plain(format!("no CRD of provider {provider} is installed")).hint(hint));
    }
    let roles = list::<ClusterRole>(&client, ListParams::default()).await?;
    let deployments = list::<Deployment>(&client, ListParams::default().labels(label::PROVIDER)).await?;
    let objects = chosen.iter().map(|it| json!(it)).chain(roles.iter().map(|it| json!(it)));
    let objects = objects.chain(deployments.iter().map(|it| json!(it)));
    let sources: Vec<_> = objects.map(|object| Source { file: file.clone(), object }).collect();
    statics::check(&about, &sources, Origin::Cluster).map_err(|error| nothing(&error))
}

async fn list<K>(client: &Client, params: ListParams) -> Result<Vec<K>, CommandError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let answer = Api::<K>::all(client.clone()).list(&params).await;
    let wrap = |error| CommandError::new(format!("cannot list {}", K::plural(&())), error);
    Ok(answer.map_err(wrap)?.items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use capstan_api::crd::Conversion;
    use capstan_provider_local::api as local;

    /// A folder that goes with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let path =
                std::env::temp_dir().join(format!("capstan-conformance-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            for (name, text) in files {
                fs::write(path.join(name), text).unwrap();
            }
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn our_own_provider_keeps_the_contract() {
        for conversion in [local::WEBHOOK_SERVICE, Conversion::Nobody] {
            let crds = local::crds(conversion);
            let sources: Vec<_> =
                crds.iter().map(|crd| Source { file: "local".to_owned(), object: json!(crd) }).collect();
            let report = statics::check("local", &sources, Origin::Files).unwrap();
            let broken: Vec<_> = report.findings.iter().filter(|it| it.is_broken()).collect();
            assert!(broken.is_empty(), "{broken:#?}");
            assert!(report.notes[0].starts_with("LocalCluster is an InfraCluster"), "{:?}", report.notes);
            assert!(report.notes[1].starts_with("LocalClusterTemplate is an InfraClusterTemplate"));
        }
    }

    #[test]
    fn what_crds_prints_can_be_checked_from_files_and_folders() {
        let crds: Vec<_> = local::crds(Conversion::Nobody).iter().map(|crd| json!(crd)).collect();
        let text = capstan_manifest::yaml::to_multi_document(&crds);
        let unread = "a: {{ not yaml";
        let files = [("crds.yaml", text.as_str()), ("cluster-template.yaml", unread), ("NOTES.md", unread)];
        let folder = Folder::new("crds", &files);
        for given in [folder.0.clone(), folder.0.join("crds.yaml")] {
            assert!(!check_files(&[given]).unwrap().is_failed());
        }
    }

    #[test]
    fn bad_input_is_named_with_what_to_do() {
        let core = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
                    metadata: {name: clusters.cluster.x-k8s.io}\n\
                    spec: {group: cluster.x-k8s.io, names: {kind: Cluster, plural: clusters}, versions: []}\n";
        let folder = Folder::new(
            "bad",
            &[
                ("text.yaml", "this: is: not yaml\n"),
                ("template.yaml", "apiVersion: v1\nkind: A\n${EXTRA}\nb: {\n"),
                ("none.yaml", "apiVersion: v1\nkind: ConfigMap\n"),
                ("core.yaml", core),
            ],
        );
        let empty = Folder::new("empty", &[("README.md", "")]);
        for (given, message, hint) in [
            (folder.0.join("missing.yaml"), "cannot read ", None),
            (empty.0.clone(), "has no .yaml, .yml or .json files", Some("name the folder of one release")),
            (folder.0.join("text.yaml"), "text.yaml is not YAML", Some("give the YAML that is released")),
            (folder.0.join("template.yaml"), "template.yaml is not YAML", Some("substitute them first")),
            (
                folder.0.join("none.yaml"),
                "none.yaml has no CustomResourceDefinitions",
                Some("components file"),
            ),
            (folder.0.join("core.yaml"), "core.yaml holds core's own kinds (Cluster)", Some("of a provider")),
        ] {
            let error = check_files(std::slice::from_ref(&given)).unwrap_err();
            assert!(error.message.contains(message), "{}", error.message);
            assert!(error.message.contains(&given.display().to_string()), "{}", error.message);
            let found = error.hint.unwrap_or_default();
            assert!(
                found.contains(hint.unwrap_or_default()) && found.is_empty() == hint.is_none(),
                "{found}"
            );
        }
    }
}
