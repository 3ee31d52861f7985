//! The objects that `init --operator` creates for a provider: its object, and what the operator needs of the local
//! configuration.

use std::collections::{BTreeMap, BTreeSet};

use capstan_api::{
    names::FIELD_MANAGER,
    operator::{FetchConfiguration, GROUP, ProviderSpec, VERSION},
    provider::ProviderType,
};
use capstan_manifest::{
    images::{Override, Overrides},
    yaml,
};
use k8s_openapi::{
    ByteString,
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use serde_json::{Value, json};

use super::state::reference;
use capstan_management::ObjectRef;

/// On Secrets and ConfigMaps that were made from the local configuration: the provider that they are for. ConfigMaps are
/// selected by it.
pub(crate) const INPUT_LABEL: &str = "management.cluster.x-k8s.io/provider";
/// The key of the image overrides in a Secret of variables.
const IMAGES_KEY: &str = "images";

/// A provider object that is to be created, with all that belongs to it.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) kind: ProviderType,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) version: String,
    /// The contract that the release speaks.
    pub(crate) contract: String,
    /// The variables of the components that have a value here.
    pub(crate) variables: BTreeMap<String, String>,
    /// The Secret for its variables that is there already.
    pub(crate) secret: FoundSecret,
    /// Image overrides in clusterctl's format.
    pub(crate) images: Option<String>,
    pub(crate) source: ReleaseSource,
    /// Whether the components have objects of cert-manager's kinds.
    pub(crate) needs_cert_manager: bool,
}

/// A Secret for a provider's variables, before anything is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum FoundSecret {
    /// There is none.
    #[default]
    None,
    /// An earlier run of this program made it.
    Ours,
    /// Its user made it, with these keys. What it says counts, and it is never ours to delete.
    Users(BTreeSet<String>),
}

/// Where the operator fetches releases from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReleaseSource {
    /// The built-in address.
    BuiltIn,
    /// This address.
    Url(String),
    /// These ConfigMaps.
    ConfigMaps(Vec<Value>),
}

impl Draft {
    /// The provider's label.
    pub(crate) fn label(&self) -> String {
        self.kind.label(&self.name)
    }

    /// The reference to the provider object.
    pub(crate) fn id(&self) -> ObjectRef {
        reference(self.kind, &self.namespace, &self.name)
    }

    /// The Secret and the ConfigMaps.
    pub(crate) fn inputs(&self) -> Vec<Value> {
        let config_maps = match &self.source {
            ReleaseSource::ConfigMaps(it) => it.clone(),
            ReleaseSource::BuiltIn | ReleaseSource::Url(_) => Vec::new(),
        };
        self.secret().into_iter().chain(config_maps).collect()
    }

    /// The Secret with the variables and the image overrides, if there are any. A user's Secret gets what it lacks, and
    /// no label: everything with our label is deleted with the operator.
    fn secret(&self) -> Option<Value> {
        let is_lacking = |it: &(String, &String)| match &self.secret {
            FoundSecret::Users(keys) => !keys.contains(&it.0),
            FoundSecret::None | FoundSecret::Ours => true,
        };
        let images = self.images.iter().map(|it| (IMAGES_KEY.to_owned(), it));
        let variables = self.variables.iter().map(|(name, value)| (name.clone(), value));
        let encode = |(name, value): (String, &String)| (name, ByteString(value.clone().into_bytes()));
        let data: BTreeMap<String, ByteString> =
            images.chain(variables).filter(is_lacking).map(encode).collect();
        let label = self.label();
        (!data.is_empty()).then(|| {
            let mut secret = json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": secret_name(&label), "namespace": self.namespace},
                "data": data,
            });
            if !matches!(self.secret, FoundSecret::Users(_)) {
                secret["metadata"]["labels"] = json!(input_labels(&label));
                secret["type"] = json!("Opaque");
            }
            secret
        })
    }

    /// The provider object.
    pub(crate) fn provider(&self) -> Value {
        let label = self.label();
        let has_secret =
            self.secret != FoundSecret::None || !self.variables.is_empty() || self.images.is_some();
        let fetch_config = match &self.source {
            ReleaseSource::BuiltIn => None,
            ReleaseSource::Url(url) => Some(FetchConfiguration { url: Some(url.clone()), selector: None }),
            ReleaseSource::ConfigMaps(_) => {
                Some(FetchConfiguration { url: None, selector: Some(input_selector(&label)) })
            }
        };
        let spec = ProviderSpec {
            version: Some(self.version.clone()),
            secret_name: has_secret.then(|| secret_name(&label)),
            fetch_config,
            ..ProviderSpec::default()
        };
        json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": self.kind.as_str(),
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": spec,
        })
    }
}

/// The name of the Secret with a provider's variables.
pub(crate) fn secret_name(label: &str) -> String {
    format!("{label}-variables")
}

/// The labels of what is made for a provider.
pub(crate) fn input_labels(label: &str) -> BTreeMap<String, String> {
    [(INPUT_LABEL.to_owned(), label.to_owned())].into()
}

/// Whether this program made a Secret or ConfigMap for a provider: a user's copy, label and all, is the user's.
pub(crate) fn is_input(metadata: &ObjectMeta) -> bool {
    let field = format!("f:{INPUT_LABEL}");
    metadata.managed_fields.iter().flatten().any(|it| {
        let labels = it.fields_v1.as_ref().map(|it| &it.0["f:metadata"]["f:labels"]);
        it.manager.as_deref() == Some(FIELD_MANAGER) && labels.is_some_and(|it| it.get(&field).is_some())
    })
}

/// The selector of the ConfigMaps that are made for a provider.
pub(crate) fn input_selector(label: &str) -> LabelSelector {
    LabelSelector { match_labels: Some(input_labels(label)), match_expressions: None }
}

/// Whether a selector is that of the ConfigMaps that are made for a provider.
pub(crate) fn is_input_selector(selector: &LabelSelector, label: &str) -> bool {
    *selector == input_selector(label)
}

/// The image overrides that concern a component, in clusterctl's format.
pub(crate) fn images_of(overrides: &Overrides, component: &str) -> Option<String> {
    let parts = |it: &Override| -> BTreeMap<&str, String> {
        let parts = [("repository", &it.repository), ("name", &it.name), ("tag", &it.tag)];
        parts.into_iter().filter(|it| !it.1.is_empty()).map(|(name, value)| (name, value.clone())).collect()
    };
    let found = overrides.of_component(component);
    let entries: BTreeMap<&str, _> = found.iter().map(|(key, value)| (*key, parts(value))).collect();
    (!entries.is_empty()).then(|| yaml::to_string(&json!(entries)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        Draft {
            kind: ProviderType::Infrastructure,
            name: "acme".to_owned(),
            namespace: "acme-system".to_owned(),
            version: "v1.0.0".to_owned(),
            contract: "v1beta2".to_owned(),
            variables: BTreeMap::new(),
            secret: FoundSecret::None,
            images: None,
            source: ReleaseSource::BuiltIn,
            needs_cert_manager: false,
        }
    }

    #[test]
    fn an_object_says_no_more_than_it_has_to() {
        let plain = draft();
        assert!(plain.inputs().is_empty());
        let expected = json!({
            "apiVersion": "management.cluster.x-k8s.io/v1alpha1",
            "kind": "InfrastructureProvider",
            "metadata": {"name": "acme", "namespace": "acme-system"},
            "spec": {"version": "v1.0.0"},
        });
        assert_eq!(plain.provider(), expected);
        let url = Draft { source: ReleaseSource::Url("https://x.example.com/f".to_owned()), ..draft() };
        assert_eq!(url.provider()["spec"]["fetchConfig"], json!({"url": "https://x.example.com/f"}));
        let there = Draft { secret: FoundSecret::Ours, ..draft() };
        assert!(there.inputs().is_empty(), "it is left as it is");
        assert_eq!(there.provider()["spec"]["secretName"], "infrastructure-acme-variables");
    }

    #[test]
    fn variables_and_overrides_are_in_a_secret_and_releases_in_config_maps() {
        let config_map = json!({"kind": "ConfigMap"});
        let full = Draft {
            variables: [("ACME_TOKEN".to_owned(), "t0ken".to_owned())].into(),
            images: Some("all: {}\n".to_owned()),
            source: ReleaseSource::ConfigMaps(vec![config_map.clone()]),
            ..draft()
        };
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "infrastructure-acme-variables",
                "namespace": "acme-system",
                "labels": {"management.cluster.x-k8s.io/provider": "infrastructure-acme"},
            },
            "type": "Opaque",
            "data": {"ACME_TOKEN": "dDBrZW4=", "images": "YWxsOiB7fQo="},
        });
        assert_eq!(full.inputs(), [secret, config_map]);
        let spec = json!({
            "version": "v1.0.0",
            "secretName": "infrastructure-acme-variables",
            "fetchConfig": {"selector": {"matchLabels": {
                "management.cluster.x-k8s.io/provider": "infrastructure-acme"
            }}},
        });
        assert_eq!(full.provider()["spec"], spec);
    }

    /// What a user's Secret says counts, and it must not get the label by which inputs are deleted.
    #[test]
    fn a_users_secret_gets_only_what_it_lacks() {
        let variables = ["ACME_TOKEN", "ACME_REGION"].map(|it| (it.to_owned(), "local".to_owned()));
        let keys = |it: &[&str]| FoundSecret::Users(it.iter().map(|it| (*it).to_owned()).collect());
        let draft = Draft { variables: variables.into(), secret: keys(&["ACME_TOKEN"]), ..draft() };
        let expected = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "infrastructure-acme-variables", "namespace": "acme-system"},
            "data": {"ACME_REGION": "bG9jYWw="},
        });
        assert_eq!(draft.inputs(), [expected]);
        let complete = Draft { secret: keys(&["ACME_REGION", "ACME_TOKEN"]), ..draft };
        assert!(complete.inputs().is_empty());
        assert_eq!(complete.provider()["spec"]["secretName"], "infrastructure-acme-variables");
    }

    #[test]
    fn overrides_of_other_components_stay_at_home() {
        let part = |repository: &str, tag: &str| Override {
            repository: repository.to_owned(),
            name: String::new(),
            tag: tag.to_owned(),
        };
        let overrides: Overrides = [
            ("all", part("mirror.example.com", "")),
            ("infrastructure-acme/manager", part("", "v9")),
            ("infrastructure-acme-two", part("", "v8")),
            ("cert-manager", part("", "v7")),
            ("infrastructure-acme", Override::default()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect();
        let expected = "all:\n  repository: mirror.example.com\ninfrastructure-acme/manager:\n  tag: v9\n";
        assert_eq!(images_of(&overrides, "infrastructure-acme").as_deref(), Some(expected));
        assert_eq!(images_of(&Overrides::default(), "infrastructure-acme"), None);
    }
}
