//! The list of providers: those that are built in, and those of the configuration file.

use capstan_api::{admission::rules::is_dns_subdomain, names::CORE_PROVIDER, provider::ProviderType};

use super::{ConfigError, built_in, fields::Fields, variables::Variables};
use crate::{config::value::Value, provider::Provider, remote::shown_address};

pub(super) const KEY: &str = "providers";

/// All providers by type and name; the user's replace those that are built in.
pub(super) fn read(variables: &Variables) -> Result<(Vec<Provider>, Vec<String>), ConfigError> {
    let mut providers = built_in::providers();
    let built_in = providers.len();
    let mut warnings = Vec::new();
    // An empty variable hides the file's providers; that is of use where a file is shared.
    if variables.environment.get(&super::variables::environment_name(KEY)) == Some("") {
        if variables.in_file(KEY).is_some_and(|it| !it.is_empty()) {
            warnings.push(
                "the environment variable PROVIDERS is empty: the providers of the configuration file do not count"
                    .to_owned(),
            );
        }
        return Ok((providers, warnings));
    }
    warnings.extend(super::check_environment(variables, KEY)?);

    for (at, value) in entries(variables)?.iter().enumerate() {
        let place = format!("{KEY}[{at}]");
        let mut fields = Fields::of(value, &place)?;
        let provider = one(&mut fields, &place, variables)?;
        warnings.extend(fields.unknown());
        let same = |it: &Provider| (it.kind, &it.name) == (provider.kind, &provider.name);
        match providers.iter().position(same) {
            Some(at) => {
                if at >= built_in {
                    warnings.push(format!(
                        "{place}: the {} {} occurs twice, and this entry counts",
                        provider.kind, provider.name
                    ));
                }
                if let Some(existing) = providers.get_mut(at) {
                    *existing = provider;
                }
            }
            None => providers.push(provider),
        }
    }
    providers.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    Ok((providers, warnings))
}

/// A list, or a single entry without one.
fn entries(variables: &Variables) -> Result<&[Value], ConfigError> {
    match variables.in_file(KEY) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Text(it)) if it.is_empty() => Ok(&[]),
        Some(Value::List(items)) => Ok(items),
        Some(single @ Value::Map(entries)) => {
            Ok(if entries.is_empty() { &[] } else { std::slice::from_ref(single) })
        }
        Some(other) => Err(ConfigError::setting(KEY, "a list of providers", other)),
    }
}

fn one(fields: &mut Fields<'_>, place: &str, variables: &Variables) -> Result<Provider, ConfigError> {
    let name = fields.text("name")?.unwrap_or_default();
    let kind = fields.text("type")?.unwrap_or_default();
    let url = fields.text("url")?.unwrap_or_default();
    let url = super::expand_address(&url, &format!("{place}.url"), variables)?;
    let invalid = |problem: String| ConfigError::Provider {
        place: place.to_owned(),
        name: name.clone(),
        kind: kind.clone(),
        problem,
    };
    if name.is_empty() {
        return Err(invalid("its name is missing".to_owned()));
    }
    let Some(known_kind) = ProviderType::from_name(&kind) else {
        return Err(invalid(unknown_kind(&kind)));
    };
    check_name(&name, known_kind).map_err(invalid)?;
    check_url(&url).map_err(invalid)?;
    Ok(Provider { name, kind: known_kind, url })
}

fn unknown_kind(kind: &str) -> String {
    let known = ProviderType::ALL.map(ProviderType::as_str).join(", ");
    match kind {
        "" => format!("its type is missing; it must be one of {known}"),
        other => format!("there is no type {other}; it must be one of {known}"),
    }
}

fn check_name(name: &str, kind: ProviderType) -> Result<(), String> {
    if name.chars().any(char::is_uppercase) {
        return Err("its name must be in lower case".to_owned());
    }
    if (name == CORE_PROVIDER) != (kind == ProviderType::Core) {
        return Err(format!(
            "the {} must be named {CORE_PROVIDER}, and nothing else may be",
            ProviderType::Core
        ));
    }
    if !is_dns_subdomain(name) {
        return Err("its name may have letters, digits, dashes and dots only, and each part between dots \
            must begin and end with a letter or digit"
            .to_owned());
    }
    Ok(())
}

fn check_url(url: &str) -> Result<(), String> {
    if url.is_empty() {
        return Err("its url is missing, or is empty after its variables were replaced".to_owned());
    }
    if url.contains(char::is_control) {
        return Err(format!("its url {:?} has control characters", shown_address(url)));
    }
    match url::Url::parse(url) {
        Err(url::ParseError::RelativeUrlWithoutBase) | Ok(_) => Ok(()),
        Err(error) => Err(format!("its url {:?} is not an address: {error}", shown_address(url))),
    }
}

/// The names of the same type that may have been meant, and other types that have a provider of this name.
pub(super) fn similar(providers: &[Provider], kind: ProviderType, name: &str) -> Vec<String> {
    let close = |it: &str| {
        // Two changes make any short name out of any other.
        strsim::levenshtein(it, name) <= if it.len().min(name.len()) > 3 { 2 } else { 1 }
            || (name.len() > 2 && it.contains(name))
            || (it.len() > 2 && name.contains(it))
    };
    let same_kind = providers.iter().filter(|it| it.kind == kind && close(&it.name));
    let mut near: Vec<_> = same_kind.map(|it| it.name.as_str()).collect();
    near.sort_by_key(|it| (strsim::levenshtein(it, name), *it));
    let other_kinds = providers.iter().filter(|it| it.kind != kind && it.name == name);
    near.into_iter()
        .map(str::to_owned)
        .chain(other_kinds.map(|it| format!("{} ({})", it.name, it.kind)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found() {
        let providers = built_in::providers();
        for (kind, name, expected) in [
            (ProviderType::Infrastructure, "awss", &["aws"][..]),
            (ProviderType::Infrastructure, "vpshere", &["vsphere"]),
            (
                ProviderType::Infrastructure,
                "kubeadm",
                &["kubeadm (BootstrapProvider)", "kubeadm (ControlPlaneProvider)"],
            ),
            (ProviderType::Infrastructure, "linode", &["linode-linode"]),
            (ProviderType::Addon, "zzzzzz", &[]),
        ] {
            let found = similar(&providers, kind, name);
            assert!(expected.iter().all(|it| found.contains(&(*it).to_owned())), "{name}: {found:?}");
            assert_eq!(expected.is_empty(), found.is_empty(), "{name}: {found:?}");
        }
    }
}
