//! Rules for the files of a release, as clusterctl and the operator read them.

use capstan_api::names::{SHARED_NAMESPACE, label};
use serde_json::Value;

use super::kind::{Kind, all, failed, keep_or, not_applicable, not_checked};
use crate::{input::Source, report::Outcome, rule::Rule, rules};

const METADATA_VERSION: &str = "clusterctl.cluster.x-k8s.io/v1alpha3";

/// Where the objects came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Files of a release.
    Files,
    /// A cluster that the provider is installed in.
    Cluster,
}

/// Checks the release as a whole.
pub(super) fn check(
    sources: &[Source],
    kinds: &[Kind<'_>],
    origin: Origin,
) -> Vec<(&'static Rule, String, Outcome)> {
    let (metadata, components): (Vec<_>, Vec<_>) = sources.iter().partition(|it| is_metadata(&it.object));
    let subject = || match origin {
        Origin::Files => "release".to_owned(),
        Origin::Cluster => "installation".to_owned(),
    };
    let metadata_subject = metadata.first().map_or_else(|| "metadata.yaml".to_owned(), |it| it.file.clone());
    vec![
        (&rules::G17A, subject(), labels(&components, kinds, origin)),
        (&rules::G17B, subject(), manager(&components, kinds, origin)),
        (&rules::G17C, metadata_subject, series(&metadata, kinds, origin)),
        (&rules::G17D, subject(), namespaces(&components, origin)),
    ]
}

/// Whether an object is a metadata.yaml, with or without its kind.
fn is_metadata(object: &Value) -> bool {
    object.get("releaseSeries").is_some()
        || (object["kind"] == "Metadata"
            && object["apiVersion"].as_str().is_some_and(|it| it.starts_with("clusterctl.")))
}

fn name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

fn provider(object: &Value) -> Option<&str> {
    object["metadata"]["labels"][label::PROVIDER].as_str()
}

fn labels(components: &[&Source], kinds: &[Kind<'_>], origin: Origin) -> Outcome {
    // A cluster holds more than a provider's components: of its objects only the CRDs are known to be some.
    let is_component = |it: &&&Source| {
        origin == Origin::Files || kinds.iter().any(|kind| it.object["metadata"]["name"] == kind.crd.name)
    };
    let components: Vec<_> = components.iter().filter(is_component).collect();
    let missing: Vec<_> = components.iter().filter(|it| provider(&it.object).is_none()).collect();
    if let Some(first) = missing.first() {
        return failed(
            format!(
                "{}: {} of {} objects have no label {}, such as {}",
                first.file,
                missing.len(),
                components.len(),
                label::PROVIDER,
                name(&first.object)
            ),
            format!(
                "label all components, e.g. by labels in kustomization.yaml: {}: infrastructure-<name>, \
                 bootstrap-<name> or control-plane-<name>",
                label::PROVIDER
            ),
        );
    }
    // Several providers may be looked at in one run, but then each in a file of its own.
    let mut values: Vec<_> = components.iter().map(|it| (it.file.as_str(), provider(&it.object))).collect();
    values.sort_unstable();
    values.dedup();
    match values.windows(2).find(|pair| origin == Origin::Files && pair[0].0 == pair[1].0) {
        Some(pair) => {
            let [one, other] = [pair[0], pair[1]].map(|it| it.1.unwrap_or_default());
            let seen = format!("{}: {} is {one} and {other}", pair[0].0, label::PROVIDER);
            failed(seen, "give all components of a provider the same label")
        }
        None => Outcome::Passed,
    }
}

fn manager(components: &[&Source], kinds: &[Kind<'_>], origin: Origin) -> Outcome {
    let deployments: Vec<_> =
        components.iter().copied().filter(|it| it.object["kind"] == "Deployment").collect();
    if origin == Origin::Files {
        return container(&deployments);
    }
    // A cluster may have several providers, each with a manager of its own.
    let mut providers: Vec<_> = kinds.iter().filter_map(|it| it.crd.labels.get(label::PROVIDER)).collect();
    providers.sort_unstable();
    providers.dedup();
    if providers.is_empty() {
        return not_checked(format!(
            "no CRD has the label {}, by which Deployments are found",
            label::PROVIDER
        ));
    }
    all(providers.into_iter().map(|name| {
        let own: Vec<_> =
            deployments.iter().copied().filter(|it| provider(&it.object) == Some(name.as_str())).collect();
        container(&own)
    }))
}

fn container(deployments: &[&Source]) -> Outcome {
    let Some(first) = deployments.first() else {
        return not_checked("there is no Deployment: give the whole components file");
    };
    let containers = |it: &Source| -> Vec<String> {
        let list = it.object["spec"]["template"]["spec"]["containers"].as_array().into_iter().flatten();
        list.filter_map(|it| it["name"].as_str()).map(str::to_owned).collect()
    };
    // Some providers ship other programs beside their manager.
    let found = deployments.iter().any(|it| containers(it).iter().any(|it| it == "manager"));
    keep_or(found, || {
        failed(
            format!(
                "{}: {} has the containers {}",
                first.file,
                name(&first.object),
                containers(first).join(", ")
            ),
            "name the container that runs the controllers manager",
        )
    })
}

fn namespaces(components: &[&Source], origin: Origin) -> Outcome {
    if origin == Origin::Cluster {
        return not_applicable("it is a rule for the components file");
    }
    let mut found: Vec<_> = components
        .iter()
        // The namespace of shared objects may be among the components.
        .filter(|it| it.object["kind"] == "Namespace" && it.object["metadata"]["name"] != SHARED_NAMESPACE)
        .map(|it| (&it.file, name(&it.object)))
        .collect();
    found.sort_unstable();
    match found.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => failed(
            format!("{}: there are {} and {}", pair[0].0, pair[0].1, pair[1].1),
            "keep one Namespace in the components; clusterctl puts all objects into it",
        ),
        None => Outcome::Passed,
    }
}

/// `(major, minor)` of a version such as `v1.10.0`.
fn major_minor(text: &str) -> Option<(u64, u64)> {
    let mut parts = text.strip_prefix('v')?.splitn(3, '.');
    let (major, minor, _patch) = (parts.next()?, parts.next()?, parts.next()?);
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn series(metadata: &[&Source], kinds: &[Kind<'_>], origin: Origin) -> Outcome {
    if metadata.is_empty() {
        return match origin {
            Origin::Files => {
                not_checked("metadata.yaml was not given: give it, or the folder of the release")
            }
            Origin::Cluster => not_checked("a cluster does not keep metadata.yaml: give the release's files"),
        };
    }
    all(metadata.iter().map(|it| one_series(it, kinds)))
}

fn one_series(metadata: &Source, kinds: &[Kind<'_>]) -> Outcome {
    let file = &metadata.file;
    let folders: Vec<_> = file.rsplit(['/', '\\']).skip(1).collect();
    match broken_series(&metadata.object, &folders, kinds) {
        None => Outcome::Passed,
        Some(it) => failed(format!("{file}: {}", it.seen), it.repair),
    }
}

/// What is wrong with a metadata.yaml, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) pointer: String,
    pub(crate) seen: String,
    pub(crate) repair: String,
}

/// Checks a metadata.yaml. `folders` are those that it is in, nearest first: releases are laid out in folders that are
/// named after their version.
pub(super) fn broken_series(
    object: &Value,
    folders: &[impl AsRef<str>],
    kinds: &[Kind<'_>],
) -> Option<Broken> {
    let broken = |pointer: &str, seen: String, repair: &str| {
        Some(Broken { pointer: pointer.to_owned(), seen, repair: repair.to_owned() })
    };
    if object["apiVersion"] != METADATA_VERSION {
        let seen = format!("apiVersion is {}", object["apiVersion"]);
        return broken("/apiVersion", seen, &format!("set apiVersion to {METADATA_VERSION}"));
    }
    if !matches!(object["kind"].as_str(), None | Some("Metadata" | "")) {
        return broken("/kind", format!("kind is {}", object["kind"]), "set kind to Metadata");
    }
    let read = |it: &Value| {
        let number = |name: &str| it[name].as_u64();
        Some(((number("major")?, number("minor")?), it["contract"].as_str()?.to_owned()))
    };
    let entries = object["releaseSeries"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut list = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let pointer = format!("/releaseSeries/{index}");
        let Some((series, contract)) = read(entry) else {
            return broken(
                &pointer,
                format!("{entry} in releaseSeries is not {{major, minor, contract}}"),
                "give each series a major and a minor number and a contract",
            );
        };
        list.push((series, contract, pointer));
    }
    let version = folders.iter().find_map(|it| Some((it.as_ref(), major_minor(it.as_ref())?)));
    let found = match version {
        Some((_, version)) => list.iter().find(|(series, _, _)| *series == version),
        None => list.iter().max_by_key(|(series, _, _)| *series),
    };
    let Some(((major, minor), contract, pointer)) = found else {
        let release = version.map_or("any release", |(name, _)| name);
        return broken(
            "/releaseSeries",
            format!("releaseSeries has nothing for {release}"),
            "add {major, minor, contract} for the release to releaseSeries",
        );
    };
    let label = format!("{}{contract}", label::CONTRACT_PREFIX);
    // A missing contract label has a rule of its own.
    let unlabelled = kinds.iter().find(|it| {
        matches!(it.picked, super::kind::Picked::View(_)) && !it.crd.labels.contains_key(&label)
    })?;
    broken(
        &format!("{pointer}/contract"),
        format!(
            "series {major}.{minor} has contract {contract}, but {} ({}) has no label {label}",
            unlabelled.crd.name, unlabelled.crd.file
        ),
        "give the series the contract that the CRDs are labelled with, or the CRDs the label",
    )
}
