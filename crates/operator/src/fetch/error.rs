//! Why a release cannot be fetched, and what to change.

use capstan_api::{operator::reason, provider::ProviderType};
use capstan_management::error as server;
use capstan_manifest::envsubst::SyntaxError;
use capstan_repository::{
    ConfigMapsError, FetchError as SourceError, LATEST, MetadataError, RepositoryError, Skipped,
};

/// Why a release cannot be fetched. The texts say what to change, and have no value of a Secret in them.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The provider's name does not say where its releases are.
    #[error(
        "no {kind} named {name:?} is built in{}: set spec.fetchConfig.url to the address of its releases, or \
         spec.fetchConfig.selector to the labels of ConfigMaps that hold them", meant(.similar)
    )]
    UnknownProvider {
        /// The type.
        kind: ProviderType,
        /// The name.
        name: String,
        /// Names that may have been meant.
        similar: Vec<String>,
    },
    /// There must be one source.
    #[error("spec.fetchConfig must have exactly one of url and selector, and has {found}")]
    Sources {
        /// What there is instead.
        found: &'static str,
    },
    /// The address cannot be one of releases.
    #[error(
        "spec.fetchConfig.url {url} cannot be used: {reason}; the usual form is \
         https://HOST/OWNER/REPOSITORY/releases"
    )]
    Url {
        /// The address, as it may be shown.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The selector cannot be one of labels.
    #[error("spec.fetchConfig.selector cannot be used: {problem}")]
    Selector {
        /// What is wrong with it.
        problem: String,
    },
    /// The ConfigMaps hold no releases.
    #[error("{}", describe_config_maps(.source))]
    ConfigMaps {
        /// What is wrong with them.
        source: Box<ConfigMapsError>,
    },
    /// A key of the provider's Secret cannot be used.
    #[error("the key {key} of Secret {secret} {problem}")]
    Secret {
        /// Namespace and name of the Secret.
        secret: String,
        /// The key.
        key: String,
        /// What is wrong with its value, without the value.
        problem: String,
    },
    /// The release is not there, or cannot be used.
    #[error("{}{}", .source.without_label(), after_semicolon(.advice))]
    Release {
        /// The failure.
        source: Box<RepositoryError>,
        /// What to do about it.
        advice: String,
        /// Whether it comes from a network.
        is_remote: bool,
    },
    /// The variables of the components cannot be understood.
    #[error("cannot use {origin}: {source}{}", after_semicolon(&.source.correction().unwrap_or_default()))]
    Template {
        /// Where the components were read from.
        origin: String,
        /// What is wrong with them.
        source: Box<SyntaxError>,
    },
}

fn meant(similar: &[String]) -> String {
    if similar.is_empty() { String::new() } else { format!(" (there is {})", similar.join(", ")) }
}

fn after_semicolon(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("; {text}") }
}

fn describe_config_maps(error: &ConfigMapsError) -> String {
    match error {
        ConfigMapsError::List { place, source } => {
            format!("the {place} cannot be listed: {}", server::reason(source))
        }
        other => other.to_string(),
    }
}

impl FetchError {
    /// The release cannot be had. For ConfigMaps, those of them that hold no release are known.
    pub(super) fn of_release(error: RepositoryError, config_maps: Option<&[Skipped]>) -> Self {
        let advice = advice(&error, config_maps);
        Self::Release { source: Box::new(error), advice, is_remote: config_maps.is_none() }
    }

    /// The latest release cannot be determined.
    pub(super) fn of_latest(error: RepositoryError, config_maps: Option<&[Skipped]>) -> Self {
        use SourceError::{Malformed, NotFound, RateLimited, Status, Unauthorized, WebPage};
        const NAME_IT: &str =
            "set spec.version to the release that is wanted: then its source need not list them";
        let is_about_list = match &error {
            RepositoryError::Fetch { source, .. } => matches!(
                source,
                Malformed { .. }
                    | NotFound { .. }
                    | RateLimited { .. }
                    | Status { .. }
                    | Unauthorized { .. }
                    | WebPage { .. }
            ),
            _ => false,
        };
        match Self::of_release(error, config_maps) {
            Self::Release { source, advice, is_remote } if is_about_list && is_remote => {
                let advice =
                    if advice.is_empty() { NAME_IT.to_owned() } else { format!("{NAME_IT}; or {advice}") };
                Self::Release { source, advice, is_remote }
            }
            other => other,
        }
    }

    /// The reason for a condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::UnknownProvider { .. }
            | Self::Sources { .. }
            | Self::Url { .. }
            | Self::Selector { .. } => reason::FETCH_CONFIG_INVALID,
            Self::ConfigMaps { source } if is_about_selector(source) => reason::FETCH_CONFIG_INVALID,
            Self::Release { source, .. } if is_about_contract(source) => reason::CONTRACT_MISMATCH,
            Self::ConfigMaps { .. } | Self::Secret { .. } | Self::Release { .. } | Self::Template { .. } => {
                reason::COMPONENTS_FETCH
            }
        }
    }

    /// Whether it may pass although neither the provider object nor its Secret or ConfigMaps change: what is on a network
    /// may be there, or be corrected, later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::ConfigMaps { source } => match source.as_ref() {
                ConfigMapsError::List { source, .. } => server::is_transient(source),
                _ => false,
            },
            Self::Release { source, is_remote, .. } => {
                let is_input = matches!(
                    **source,
                    RepositoryError::Config(_)
                        | RepositoryError::NotAName { .. }
                        | RepositoryError::OtherVersion { .. }
                );
                *is_remote && !is_input
            }
            _ => false,
        }
    }
}

/// Whether the API server does not take the selector.
fn is_about_selector(error: &ConfigMapsError) -> bool {
    let is_bad = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 400);
    matches!(error, ConfigMapsError::List { source, .. } if is_bad(source))
}

fn is_about_contract(error: &RepositoryError) -> bool {
    matches!(error, RepositoryError::Metadata(MetadataError::Contract { .. }))
}

/// What to do about a release that cannot be had, where the error does not say it.
fn advice(error: &RepositoryError, config_maps: Option<&[Skipped]>) -> String {
    match (error, config_maps) {
        (RepositoryError::Fetch { source: SourceError::NotFound { available, .. }, .. }, Some(unusable)) => {
            let others = unusable.iter().map(|it| format!("{} {}", it.version, it.reason));
            let there = list(available).into_iter().chain(others);
            let all: Vec<_> = there.chain(["set spec.version to one that is there".to_owned()]).collect();
            all.join("; ")
        }
        (RepositoryError::Fetch { source, .. }, _) => advice_on_network(source),
        (RepositoryError::NoUsableVersion { skipped, .. }, None)
            if skipped.iter().any(|it| it.version == LATEST) =>
        {
            "this server does not list its releases: set spec.version to the one that is wanted".to_owned()
        }
        (RepositoryError::NoUsableVersion { .. }, None) => {
            "set spec.version to the release that is wanted".to_owned()
        }
        (RepositoryError::OtherVersion { .. }, _) => {
            "correct spec.version, or the tag in spec.fetchConfig.url".to_owned()
        }
        (RepositoryError::NotAName { .. }, _) => "set spec.version to a version such as v1.2.3".to_owned(),
        (RepositoryError::Metadata(_), _) => {
            "set spec.version to a release of another series, or correct the file".to_owned()
        }
        (RepositoryError::WebPage { .. }, _) => "log in there and save the file again".to_owned(),
        _ => String::new(),
    }
}

fn advice_on_network(error: &SourceError) -> String {
    const SECRET: &str = "the Secret that spec.secretName names";
    match error {
        SourceError::NotFound { available, .. } => {
            let check = format!("check spec.version and spec.fetchConfig; a token is read from {SECRET}");
            list(available).into_iter().chain([check]).collect::<Vec<_>>().join("; ")
        }
        SourceError::RateLimited { withheld: Some(withheld), .. }
        | SourceError::Unauthorized { withheld: Some(withheld), .. } => {
            format!("{withheld}: set it in {SECRET}, beside them")
        }
        SourceError::RateLimited { variable: Some(variable), .. } => {
            format!("put {variable} into {SECRET}: requests with a token are counted separately")
        }
        SourceError::Unauthorized { variable: Some(variable), .. } => {
            format!("put a {variable} that may read it into {SECRET}")
        }
        SourceError::Unauthorized { .. } => {
            format!("a registry's OCI_USERNAME, OCI_PASSWORD and OCI_HOST are read from {SECRET}")
        }
        SourceError::RefusedElsewhere { .. } => {
            "credentials do not follow a redirect to another server: set spec.fetchConfig.url to the address that it leads to"
                .to_owned()
        }
        SourceError::Unreachable { .. } if error.is_certificate_problem() => {
            "the certificate is not trusted: set SSL_CERT_FILE of the operator to a bundle that has its authority"
                .to_owned()
        }
        SourceError::Unreachable { .. } | SourceError::TimedOut { .. } => {
            "check the operator's network and its HTTPS_PROXY, or provide the release in ConfigMaps \
             (spec.fetchConfig.selector)"
                .to_owned()
        }
        SourceError::WebPage { .. } => {
            "this is often the login page of a proxy or of a private server".to_owned()
        }
        SourceError::Checksum { .. } => {
            "the file was damaged or changed on its way, and nothing of it is used".to_owned()
        }
        _ => String::new(),
    }
}

/// As many names as a message lists.
const LISTED: usize = 10;

fn list(available: &[String]) -> Option<String> {
    let listed = available.get(..LISTED).unwrap_or(available).join(", ");
    match available.len() {
        0 => None,
        all if all > LISTED => Some(format!("there is {listed}, and {} more", all - LISTED)),
        _ => Some(format!("there is {listed}")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use capstan_repository::{PartsProblem, Withheld};
    use kube::core::Status;

    use super::*;

    const NETWORK: Option<&[Skipped]> = None;

    fn url() -> String {
        "https://h/f".to_owned()
    }

    fn unreachable(cause: &str) -> SourceError {
        SourceError::Unreachable { url: url(), source: cause.to_owned().into() }
    }

    fn missing(available: &[&str]) -> SourceError {
        let available = available.iter().map(|it| (*it).to_owned()).collect();
        SourceError::NotFound { what: "metadata.yaml of v9.9.9".to_owned(), available }
    }

    fn withheld(wanted: bool) -> Option<Box<Withheld>> {
        let it = Withheld { host: "h".to_owned(), variable: "GITHUB_HOSTS".to_owned() };
        wanted.then(|| Box::new(it))
    }

    fn unauthorized(variable: Option<&str>, is_withheld: bool) -> SourceError {
        let (variable, withheld) = (variable.map(str::to_owned), withheld(is_withheld));
        SourceError::Unauthorized { url: url(), status: 401, detail: String::new(), variable, withheld }
    }

    fn limited(is_withheld: bool) -> SourceError {
        let (variable, withheld) = (Some("GITHUB_TOKEN".to_owned()), withheld(is_withheld));
        SourceError::RateLimited { host: "h".to_owned(), reset: None, variable, withheld }
    }

    fn fetch(source: SourceError) -> RepositoryError {
        RepositoryError::Fetch { label: "infrastructure-aws".to_owned(), source }
    }

    fn skipped(version: &str, reason: &str) -> Skipped {
        Skipped { version: version.to_owned(), reason: reason.to_owned() }
    }

    fn unusable(version: &str) -> RepositoryError {
        let skipped = vec![skipped(version, "no")];
        RepositoryError::NoUsableVersion { label: "l".to_owned(), url: url(), skipped }
    }

    #[test]
    fn every_failure_of_a_network_says_what_to_change_and_may_pass() {
        for (source, expected) in [
            (
                missing(&["v1.0.0", "v1.1.0"]),
                "not found: metadata.yaml of v9.9.9; there is v1.0.0, v1.1.0; check spec.version and spec.fetchConfig",
            ),
            (limited(false), "h takes no more requests for now; put GITHUB_TOKEN into the Secret"),
            (
                limited(true),
                "GITHUB_HOSTS must name h before it is sent your credentials: set it in the Secret",
            ),
            (
                unauthorized(Some("GITHUB_TOKEN"), false),
                "put a GITHUB_TOKEN that may read it into the Secret",
            ),
            (unauthorized(Some("GITHUB_TOKEN"), true), "GITHUB_HOSTS must name h"),
            (
                unauthorized(None, false),
                "a registry's OCI_USERNAME, OCI_PASSWORD and OCI_HOST are read from the Secret",
            ),
            (unreachable("connection refused"), "HTTPS_PROXY, or provide the release in ConfigMaps"),
            (unreachable("invalid peer certificate: UnknownIssuer"), "set SSL_CERT_FILE of the operator"),
            (SourceError::TimedOut { url: url(), after: Duration::from_secs(1) }, "HTTPS_PROXY"),
            (SourceError::WebPage { url: url() }, "login page"),
            (
                SourceError::RefusedElsewhere { url: url(), target: url(), status: 401 },
                "set spec.fetchConfig.url to the address that it leads to",
            ),
            (
                SourceError::Checksum { what: url(), expected: String::new(), found: String::new() },
                "nothing of it is used",
            ),
        ] {
            let error = FetchError::of_release(fetch(source), NETWORK);
            assert!(error.to_string().contains(expected), "{error}");
            // The condition is the provider's own.
            assert!(!error.to_string().contains("infrastructure-aws"), "{error}");
            assert_eq!((error.reason(), error.is_transient()), (reason::COMPONENTS_FETCH, true), "{error}");
        }
    }

    #[test]
    fn a_source_that_does_not_list_its_releases_needs_a_version() {
        for (error, expected) in [
            (
                fetch(missing(&[])),
                "set spec.version to the release that is wanted: then its source need not list",
            ),
            (fetch(limited(false)), "; or put GITHUB_TOKEN into the Secret"),
            (fetch(SourceError::WebPage { url: url() }), "set spec.version to the release that is wanted"),
            (unusable("latest"), "does not list its releases: set spec.version"),
            (unusable("v1.0.0"), "set spec.version to the release that is wanted"),
        ] {
            let error = FetchError::of_latest(error, NETWORK);
            assert!(error.to_string().contains(expected) && error.is_transient(), "{error}");
        }
        // One that cannot be reached can be reached for no version.
        let error = FetchError::of_latest(fetch(unreachable("connection refused")), NETWORK).to_string();
        assert!(!error.contains("spec.version"), "{error}");
    }

    #[test]
    fn what_is_not_in_config_maps_is_reported_with_what_is() {
        let others = [skipped("ns/v9.9.9", "has no data.metadata")];
        let error = FetchError::of_release(fetch(missing(&["v1.0.0"])), Some(&others));
        assert_eq!(
            error.to_string(),
            "not found: metadata.yaml of v9.9.9; there is v1.0.0; ns/v9.9.9 has no data.metadata; \
             set spec.version to one that is there"
        );
        assert!(!error.is_transient());
        let all: Vec<_> = (0..12).map(|it| format!("v1.{it}.0")).collect();
        assert!(list(&all).unwrap().ends_with("v1.9.0, and 2 more"));
    }

    #[test]
    fn reasons_distinguish_the_spec_from_the_contract_and_the_rest() {
        let contract = |origin: &str| {
            let origin = origin.to_owned();
            RepositoryError::Metadata(MetadataError::Contract {
                origin,
                version: "v0.3.0".to_owned(),
                contract: "v1alpha3".to_owned(),
            })
        };
        let no_series = RepositoryError::Metadata(MetadataError::Empty { origin: "o".to_owned() });
        let other = RepositoryError::OtherVersion { url: url(), only: "v1.0.0".to_owned(), version: None };
        let no_name = RepositoryError::NotAName { what: "version", text: String::new() };
        let listed = |code| FetchError::ConfigMaps {
            source: Box::new(ConfigMapsError::List {
                place: "ConfigMaps of mine".to_owned(),
                source: Box::new(kube::Error::Api(Status::failure("no", "").with_code(code).boxed())),
            }),
        };
        let parts = ConfigMapsError::Parts {
            names: vec!["ns/a".to_owned()],
            version: "v1.0.0".to_owned(),
            problem: Box::new(PartsProblem::NoMetadata),
            skipped: Vec::new(),
        };
        let unknown = |similar: &[&str]| FetchError::UnknownProvider {
            kind: ProviderType::Infrastructure,
            name: "awss".to_owned(),
            similar: similar.iter().map(|it| (*it).to_owned()).collect(),
        };
        for (error, expected, transient, text) in [
            (
                unknown(&["aws"]),
                reason::FETCH_CONFIG_INVALID,
                false,
                "no InfrastructureProvider named \"awss\" is built in (there is aws): set spec.fetchConfig.url",
            ),
            (unknown(&[]), reason::FETCH_CONFIG_INVALID, false, "is built in: set spec.fetchConfig.url"),
            (FetchError::Sources { found: "both" }, reason::FETCH_CONFIG_INVALID, false, "and has both"),
            (
                FetchError::of_release(contract("o"), NETWORK),
                reason::CONTRACT_MISMATCH,
                true,
                "only v1beta2 and v1beta1 can be managed; set spec.version",
            ),
            (FetchError::of_release(contract("o"), Some(&[])), reason::CONTRACT_MISMATCH, false, "o: v0.3.0"),
            (FetchError::of_release(no_series, NETWORK), reason::COMPONENTS_FETCH, true, "correct the file"),
            (FetchError::of_release(other, NETWORK), reason::COMPONENTS_FETCH, false, "correct spec.version"),
            (FetchError::of_release(no_name, NETWORK), reason::COMPONENTS_FETCH, false, "such as v1.2.3"),
            (listed(503), reason::COMPONENTS_FETCH, true, "the ConfigMaps of mine cannot be listed: no"),
            (listed(400), reason::FETCH_CONFIG_INVALID, false, "cannot be listed: no"),
            (listed(403), reason::COMPONENTS_FETCH, false, "cannot be listed: no"),
            (
                FetchError::ConfigMaps { source: Box::new(parts) },
                reason::COMPONENTS_FETCH,
                false,
                "the ConfigMaps ns/a do not make up version v1.0.0: none has data.metadata",
            ),
        ] {
            assert!(error.to_string().contains(text), "{error}");
            assert_eq!((error.reason(), error.is_transient()), (expected, transient), "{error}");
        }
    }
}
