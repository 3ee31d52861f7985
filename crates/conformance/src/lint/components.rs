//! A components file.

use std::collections::BTreeMap;

use capstan_api::{names::label, provider::ProviderType};

use super::{
    Judged, Spot, broken, links, namespaces,
    object::{Object, escape},
    repository,
    text::Text,
    workloads, writing,
};
use crate::rules::{G17A, R19, V6};

/// Checks a components file and what is beside it.
pub(super) fn check(text: &Text<'_>) -> Vec<Judged> {
    let provider = Provider::of(text);
    let mut judged = repository::check(text, &provider);
    judged.extend(namespaces::check(text));
    judged.extend(workloads::check(text));
    judged.extend(labels(text, &provider));
    judged.extend(links::of_components(text));
    judged.extend(prefixes(text, &provider));
    judged
}

/// What is known of the provider.
#[derive(Clone, Debug, Default)]
pub(super) struct Provider {
    /// The value of the label that most objects have.
    pub(super) label: Option<String>,
    /// The type in the file's name.
    pub(super) file_type: Option<ProviderType>,
}

impl Provider {
    fn of(text: &Text<'_>) -> Self {
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for label in text.objects().iter().filter_map(provider_label) {
            *votes.entry(label).or_default() += 1;
        }
        let label = votes.into_iter().max_by_key(|(_, count)| *count).map(|(label, _)| label.to_owned());
        let name = text.given.base_name();
        let file_type =
            ProviderType::ALL.into_iter().find(|it| name == format!("{}-components.yaml", it.prefix()));
        Self { label, file_type }
    }

    /// Its type, by its label or else by the file's name.
    pub(super) fn provider_type(&self) -> Option<ProviderType> {
        let by_label = self.label.as_deref().and_then(ProviderType::from_label).map(|it| it.0);
        by_label.or(self.file_type)
    }

    /// Its name without its type.
    fn name(&self) -> Option<&str> {
        self.label.as_deref().and_then(ProviderType::from_label).map(|it| it.1)
    }
}

fn provider_label<'a>(object: &Object<'a>) -> Option<&'a str> {
    object.text(&label_pointer())
}

fn label_pointer() -> String {
    format!("/metadata/labels/{}", escape(label::PROVIDER))
}

fn labels(text: &Text<'_>, provider: &Provider) -> Vec<Judged> {
    let mut judged = Vec::new();
    let objects = text.objects();
    let (labelled, unlabelled): (Vec<&Object<'_>>, Vec<&Object<'_>>) =
        objects.iter().filter(|it| it.kind() != "List").partition(|it| provider_label(it).is_some());
    let wanted = provider.label.clone().unwrap_or_else(|| "<type>-<name>".to_owned());
    // A file without any label lacks a line in kustomization.yaml, and not one in each object.
    let told = if labelled.is_empty() { 1 } else { unlabelled.len() };
    for object in unlabelled.iter().take(told) {
        let others = if told < unlabelled.len() {
            format!(", and neither have the other {} objects", unlabelled.len() - 1)
        } else {
            String::new()
        };
        judged.push(broken(
            &G17A,
            Spot::Object { document: object.document, pointer: "/metadata/labels".to_owned() },
            format!("{} does not have the label {}{others}", object.title(), label::PROVIDER),
            format!(
                "label all components {}: {wanted}, e.g. by labels in kustomization.yaml",
                label::PROVIDER
            ),
        ));
    }
    for object in labelled.iter().filter(|it| provider_label(it) != provider.label.as_deref()) {
        judged.push(broken(
            &G17A,
            Spot::Object { document: object.document, pointer: label_pointer() },
            format!(
                "{} has the label {}: {}, while others have {wanted}",
                object.title(),
                label::PROVIDER,
                provider_label(object).unwrap_or_default()
            ),
            "give all components of a provider the same label",
        ));
    }
    judged.extend(label_fits(&labelled, provider));
    judged
}

/// The label is that of a provider, and of the type that the file is named after.
fn label_fits(labelled: &[&Object<'_>], provider: &Provider) -> Option<Judged> {
    let label = provider.label.as_deref()?;
    let first = labelled.iter().find(|it| provider_label(it) == Some(label))?;
    let wanted = provider.file_type;
    let (seen, repair) = match (ProviderType::from_label(label), wanted) {
        (None, _) => {
            let prefix = wanted.map_or("infrastructure", ProviderType::prefix);
            (format!("{label} begins with no type of providers"), format!("write {prefix}-{label}"))
        }
        (Some((found, name)), Some(wanted)) if found != wanted => (
            format!("{label} is a label of {found}s, but the file is named for {wanted}s"),
            if wanted == ProviderType::Core {
                format!("name the file {}-components.yaml", found.prefix())
            } else {
                format!("name the file {}-components.yaml, or write {}", found.prefix(), wanted.label(name))
            },
        ),
        _ => return None,
    };
    let spot = Spot::Object { document: first.document, pointer: label_pointer() };
    Some(broken(&R19, spot, format!("{}: {seen}", label::PROVIDER), repair))
}

/// Variables whose names do not begin with the provider's.
fn prefixes(text: &Text<'_>, provider: &Provider) -> Vec<Judged> {
    let Some(name) = provider.name() else { return Vec::new() };
    let own = name.to_uppercase().replace(['-', '.'], "_");
    let is_told = |variable: &str| {
        let variable = variable.to_uppercase();
        let by_acronym = variable.strip_prefix("CAP").is_some_and(|rest| {
            rest.find('_').is_some_and(|at| at > 0 && rest[..at].chars().all(|it| it.is_ascii_alphanumeric()))
        });
        by_acronym
            || variable.contains(&own)
            || variable.starts_with("EXP_")
            || variable == "CLUSTER_TOPOLOGY"
    };
    writing::first_uses(text)
        .into_iter()
        .filter(|(variable, _)| !is_told(variable))
        .map(|(variable, at)| {
            broken(
                &V6,
                Spot::Offset(at.at.start),
                format!("the name of the variable {variable} does not begin with {own}_"),
                format!("call it {own}_{}", variable.to_uppercase()),
            )
        })
        .collect()
}
