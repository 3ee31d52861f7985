//! The names of a release's files and folders, and its metadata.yaml.

use capstan_api::provider::ProviderType;
use capstan_manifest::yaml;

use super::{
    Folder, Judged, Spot, broken,
    components::Provider,
    not_applicable, not_checked,
    text::{Text, place_in},
};
use crate::{
    input::Source,
    rules::{G17C, R5, R6, R7, R8, R9},
    statics,
};

const NO_FOLDER: &str = "standard input has no name and no folder: give the file of a release";

/// Checks what is around a components file.
pub(super) fn check(text: &Text<'_>, provider: &Provider) -> Vec<Judged> {
    let Some(folder) = &text.given.folder else {
        return [&R5, &R6, &G17C, &R7, &R8, &R9].map(|rule| not_checked(rule, NO_FOLDER)).into();
    };
    let mut judged: Vec<_> = file_name(text, provider).into_iter().collect();
    judged.extend(metadata(text, folder));
    judged.extend(templates(folder, provider));
    judged.extend(layout(folder, provider));
    judged
}

fn file_name(text: &Text<'_>, provider: &Provider) -> Option<Judged> {
    let prefix = provider.provider_type().map_or("<type>", ProviderType::prefix);
    provider.file_type.is_none().then(|| {
        broken(
            &R5,
            Spot::File,
            format!("the file is named {}", text.given.base_name()),
            format!("name it {prefix}-components.yaml"),
        )
    })
}

fn metadata(text: &Text<'_>, folder: &Folder) -> Vec<Judged> {
    let Some(file) = &folder.metadata else {
        return vec![
            broken(
                &R6,
                Spot::File,
                "there is no metadata.yaml in the folder of the file",
                "write one with apiVersion, kind and releaseSeries, and publish it with the release",
            ),
            not_checked(&G17C, "there is no metadata.yaml: see R6"),
        ];
    };
    let documents = match yaml::read(&file.text) {
        Ok(documents) => documents,
        Err(error) => {
            let spot = Spot::Place(place_in(&file.name, error.place()));
            return vec![broken(&G17C, spot, format!("it is not YAML: {}", error.problem()), "make it YAML")];
        }
    };
    let Some(object) = documents.first().map(|it| &it.value) else {
        let spot = Spot::Metadata(String::new());
        return vec![broken(
            &G17C,
            spot,
            "metadata.yaml is empty",
            "write apiVersion, kind and releaseSeries",
        )];
    };
    let sources: Vec<_> = text
        .objects()
        .iter()
        .map(|it| Source { file: text.given.file.name.clone(), object: it.value.clone() })
        .collect();
    statics::broken_metadata(object, &folder.path, &sources)
        .map(|it| broken(&G17C, Spot::Metadata(it.pointer), it.seen, it.repair))
        .into_iter()
        .collect()
}

fn templates(folder: &Folder, provider: &Provider) -> Option<Judged> {
    if provider.provider_type() != Some(ProviderType::Infrastructure) {
        return Some(not_applicable(&R7, "it is a rule for infrastructure providers"));
    }
    (!folder.files.iter().any(|it| is_cluster_template(it))).then(|| {
        broken(
            &R7,
            Spot::File,
            "there is no cluster-template.yaml in the folder of the file",
            "publish a template with the release, e.g. cluster-template.yaml",
        )
    })
}

/// Whether a file's name is that of a template of workload clusters.
pub(super) fn is_cluster_template(name: &str) -> bool {
    let flavor = name.strip_prefix("cluster-template").and_then(|it| it.strip_suffix(".yaml"));
    flavor.is_some_and(|it| it.is_empty() || (it.starts_with('-') && it.len() > 1))
}

/// Whether a name is a version as clusterctl reads it.
fn is_version(name: &str) -> bool {
    semver::Version::parse(name.strip_prefix('v').unwrap_or(name)).is_ok()
}

/// Whether a name looks like a version.
fn is_like_version(name: &str) -> bool {
    name == "latest" || name.strip_prefix('v').unwrap_or(name).starts_with(|it: char| it.is_ascii_digit())
}

fn layout(folder: &Folder, provider: &Provider) -> Vec<Judged> {
    let (Some(version), Some(above)) = (folder.path.first(), folder.path.get(1)) else {
        return vec![not_laid_out(&R8), not_laid_out(&R9)];
    };
    if !is_like_version(version) || ProviderType::from_label(above).is_none() {
        return vec![not_laid_out(&R8), not_laid_out(&R9)];
    }
    let mut judged = Vec::new();
    if let Some(label) = provider.label.as_ref().filter(|it| *it != above) {
        judged.push(broken(
            &R8,
            Spot::File,
            format!("the folder above is named {above}, but the objects have the label {label}"),
            format!("name the folder {label}"),
        ));
    }
    if !is_version(version) {
        judged.push(broken(
            &R8,
            Spot::File,
            format!("the folder is named {version}, which is no semantic version"),
            "name it after the release, e.g. v1.2.3",
        ));
    } else if !version.starts_with('v') {
        judged.push(broken(
            &R9,
            Spot::File,
            format!("the folder is named {version}"),
            format!("name it v{version}"),
        ));
    }
    judged
}

fn not_laid_out(rule: &'static crate::rule::Rule) -> Judged {
    not_applicable(rule, "the folders are not named <provider-label>/<version>/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        for (name, expected) in [
            ("cluster-template.yaml", true),
            ("cluster-template-dev.yaml", true),
            ("cluster-template-.yaml", false),
            ("cluster-templates.yaml", false),
            ("cluster-template.yml", false),
            ("my-cluster-template.yaml", false),
        ] {
            assert_eq!(is_cluster_template(name), expected, "{name}");
        }
        for (name, is, is_like) in [
            ("v1.2.3", true, true),
            ("1.2.3-rc.1+x", true, true),
            ("v1.2", false, true),
            ("v01.2.3", false, true),
            ("latest", false, true),
            ("vNext", false, false),
            ("out", false, false),
        ] {
            assert_eq!((is_version(name), is_like_version(name)), (is, is_like), "{name}");
        }
    }
}
