//! The releases of one provider: its versions and their files.

use crate::{
    CertManager, Config, ConfigError, ConfigMaps, FetchError, Provider,
    config::built_in,
    latest::{Chosen, Search, Skipped},
    local::LATEST,
    metadata::{METADATA_FILE, Metadata, MetadataError},
    overrides::Overrides,
    remote::{Http, Sha256, looks_like_web_page, shown_address},
    source::{Found, ReleaseFiles, Source},
    version::Version,
};

const TEMPLATE: &str = "cluster-template";
const CLUSTER_CLASS: &str = "clusterclass";

/// The releases of one provider.
pub struct Repository {
    label: String,
    /// The address, as it may be shown.
    url: String,
    components_file: String,
    source: Source,
    overrides: Overrides,
}

/// A file of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name in the release.
    pub name: String,
    /// Its content.
    pub text: String,
    /// The path or address that it was read from.
    pub origin: String,
    /// The SHA-256 of its content, in hex.
    pub sha256: String,
    /// Whether a file of the overrides folder took its place.
    pub is_override: bool,
}

/// Why a release or one of its files cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The source cannot provide a file or the versions.
    #[error("{label}: {source}")]
    Fetch {
        /// The provider.
        label: String,
        /// The error of the source.
        source: FetchError,
    },
    /// No version can be used.
    #[error("no release of {label} in {url} can be used{}", reasons(.skipped))]
    NoUsableVersion {
        /// The provider.
        label: String,
        /// The repository.
        url: String,
        /// Why each one cannot.
        skipped: Vec<Skipped>,
    },
    /// The address has one version only, and it is not the one that is wanted.
    #[error("{url} is the address of {only} only{}", wanted_instead(.version.as_deref()))]
    OtherVersion {
        /// The repository.
        url: String,
        /// The tag or digest in its address.
        only: String,
        /// The version that was named.
        version: Option<String>,
    },
    /// A version, flavor or name that cannot be part of a file's name.
    #[error(
        "the {what} {text:?} cannot be part of a file name: it is empty, or has slashes or control characters"
    )]
    NotAName {
        /// What was given.
        what: &'static str,
        /// Its text.
        text: String,
    },
    /// There is no such cluster template or ClusterClass.
    #[error("{label} {version} has no {what}: there is no file {file}{}", list_available(.available.as_deref()))]
    NoSuchTemplate {
        /// The provider.
        label: String,
        /// The version.
        version: String,
        /// What was looked for.
        what: String,
        /// The file that it would be in.
        file: String,
        /// What there is instead, where that is known.
        available: Option<Vec<String>>,
    },
    /// A page for a browser where a file was wanted.
    #[error(
        "{origin} is a web page, not YAML; it is most likely a login or error page that was saved in its place"
    )]
    WebPage {
        /// Where the file is.
        origin: String,
    },
    /// Bytes that are not text.
    #[error("{origin} is not UTF-8 text: {problem}")]
    NotText {
        /// Where the file is.
        origin: String,
        /// Where it stops being text.
        problem: String,
    },
    /// The metadata file cannot be used.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

fn wanted_instead(version: Option<&str>) -> String {
    match version {
        Some(version) => format!(", not of {version}"),
        None => ", which is no version: name the version that it is".to_owned(),
    }
}

fn reasons(skipped: &[Skipped]) -> String {
    match skipped {
        [] => ": there are no versions".to_owned(),
        some => {
            let each: Vec<_> = some.iter().map(|it| format!("{}: {}", it.version, it.reason)).collect();
            format!("; {}", each.join("; "))
        }
    }
}

fn list_available(names: Option<&[String]>) -> String {
    match names {
        None => String::new(),
        Some([]) => ", and none of the kind".to_owned(),
        Some(names) => format!("; there is {}", names.join(", ")),
    }
}

impl RepositoryError {
    /// Whether the source was asked and does not have it.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Fetch { source, .. } => source.is_not_found(),
            Self::NoSuchTemplate { .. } => true,
            _ => false,
        }
    }

    /// The provider that the message begins with, for those who name it themselves.
    pub fn label(&self) -> Option<&str> {
        match self {
            Self::Fetch { label, .. } => Some(label),
            _ => None,
        }
    }

    /// The message without the provider, for places that name it already.
    pub fn without_label(&self) -> String {
        match self {
            Self::Fetch { source, .. } => source.to_string(),
            other => other.to_string(),
        }
    }

    /// What there is instead of what was not found, where that is known.
    pub fn available(&self) -> &[String] {
        match self {
            Self::Fetch { source, .. } => source.available(),
            Self::NoSuchTemplate { available: Some(available), .. } => available,
            _ => &[],
        }
    }
}

impl Repository {
    /// The repository of a provider. Nothing is read yet, and no version looked up.
    pub fn open(provider: &Provider, config: &Config, http: &Http) -> Result<Self, RepositoryError> {
        let default_file = provider.default_components_file();
        let prefix = artifact_prefix(provider);
        Self::new(provider.label(), prefix, &provider.url, &default_file, config, http)
    }

    /// The repository of cert-manager, whose manifest takes the place of the components.
    pub fn open_cert_manager(
        cert_manager: &CertManager,
        config: &Config,
        http: &Http,
    ) -> Result<Self, RepositoryError> {
        let label = CertManager::LABEL.to_owned();
        Self::new(label.clone(), label, &cert_manager.url, "cert-manager.yaml", config, http)
    }

    /// The repository of a provider whose releases are in ConfigMaps; no files replace them.
    pub fn in_config_maps(provider: &Provider, config_maps: ConfigMaps) -> Self {
        Self {
            label: provider.label(),
            url: config_maps.place().to_owned(),
            components_file: provider.default_components_file(),
            source: Source::ConfigMaps(config_maps),
            overrides: Overrides::default(),
        }
    }

    /// The repository of a provider at an address on the network. Nothing of this machine is read, neither a folder nor
    /// files that replace others: the address is not its user's.
    ///
    /// Where the address names no file, the components are in the one that the built-in provider of this type and name
    /// has, else in that of its type.
    pub fn on_network(provider: &Provider, http: &Http) -> Result<Self, RepositoryError> {
        let label = provider.label();
        let source = Source::on_network(&provider.url, artifact_prefix(provider), http)
            .map_err(|source| RepositoryError::Fetch { label: label.clone(), source })?;
        // In an artifact, files are called by their provider and version, or by its type.
        let built_in = built_in::components_file_of(provider.kind, &provider.name);
        let built_in = built_in.filter(|_| !source.is_registry());
        let named = source.components_file().or(built_in).map(str::to_owned);
        Ok(Self {
            label,
            url: shown_address(&provider.url),
            components_file: named.unwrap_or_else(|| provider.default_components_file()),
            source,
            overrides: Overrides::default(),
        })
    }

    /// The repository of a provider with one release, which the caller has; no files replace its files.
    pub fn in_memory(provider: &Provider, release: ReleaseFiles) -> Self {
        Self {
            label: provider.label(),
            url: provider.shown_url(),
            components_file: provider.default_components_file(),
            source: Source::Memory(Box::new(release)),
            overrides: Overrides::default(),
        }
    }

    fn new(
        label: String,
        prefix: String,
        url: &str,
        default_file: &str,
        config: &Config,
        http: &Http,
    ) -> Result<Self, RepositoryError> {
        let source = Source::parse(url, &label, prefix, http)
            .map_err(|source| RepositoryError::Fetch { label: label.clone(), source })?;
        let components_file = source.components_file().unwrap_or(default_file).to_owned();
        Ok(Self { label, url: shown_address(url), components_file, source, overrides: config.overrides()? })
    }

    /// The provider's label.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Where it is, as it may be shown.
    pub fn shown_url(&self) -> &str {
        &self.url
    }

    /// Whether the releases are in a folder of this machine, which nothing in a cluster can read.
    pub fn is_local(&self) -> bool {
        matches!(self.source, Source::Local(_))
    }

    /// The name of the components file.
    pub fn components_file(&self) -> &str {
        &self.components_file
    }

    /// The version that is wanted: the named one, else the one in the repository's address, else the newest that
    /// can be used. Only the last takes any reading, and so does `latest`.
    pub async fn version(&self, wanted: Option<&str>) -> Result<Chosen, RepositoryError> {
        let version = match wanted.or_else(|| self.source.fixed_version()) {
            Some(LATEST) | None => return self.newest().await,
            Some(version) => version,
        };
        check_name("version", version)?;
        let another = |only: &str| match (Version::parse(only), Version::parse(version)) {
            (Ok(only), Ok(version)) => !only.is_same_release(&version),
            // A digest does not say which version it is, and is none itself.
            _ => only == version,
        };
        match self.source.only_version().filter(|it| another(it)) {
            None => Ok(Chosen { version: version.to_owned(), skipped: Vec::new() }),
            Some(only) => Err(RepositoryError::OtherVersion {
                url: self.url.clone(),
                only: only.to_owned(),
                version: wanted.map(str::to_owned),
            }),
        }
    }

    async fn newest(&self) -> Result<Chosen, RepositoryError> {
        let mut search = Search::new(&self.listed().await?);
        while let Some(version) = search.next() {
            let judged = match self.metadata(version.as_str()).await {
                Ok(metadata) => Ok(metadata),
                Err(error) if self.is_at_fault_alone(&error) => Err(error.without_label()),
                // A network that fails must not make an old version look like the newest.
                Err(error) => return Err(error),
            };
            search.record(&version, judged);
        }
        let with_own = |mut skipped: Vec<Skipped>| {
            skipped.extend(self.source_skipped());
            skipped
        };
        match search.finish() {
            Ok(Chosen { version, skipped }) => Ok(Chosen { version, skipped: with_own(skipped) }),
            Err(skipped) => Err(RepositoryError::NoUsableVersion {
                label: self.label.clone(),
                url: self.url.clone(),
                skipped: with_own(skipped),
            }),
        }
    }

    /// Whether the release itself is at fault, so that another one may do.
    fn is_at_fault_alone(&self, error: &RepositoryError) -> bool {
        use RepositoryError::{Fetch, Metadata, NotText, WebPage};
        match error {
            Fetch { .. } => error.is_not_found() || matches!(self.source, Source::Local(_)),
            Metadata(_) | WebPage { .. } | NotText { .. } => true,
            _ => false,
        }
    }

    fn source_skipped(&self) -> Vec<Skipped> {
        match &self.source {
            Source::ConfigMaps(it) => it.skipped().to_vec(),
            _ => Vec::new(),
        }
    }

    async fn listed(&self) -> Result<Vec<String>, RepositoryError> {
        self.source.versions().await.map_err(|source| self.failed(source))
    }

    /// All versions, in order of preference, and the names that are no versions.
    pub async fn versions(&self) -> Result<(Vec<Version>, Vec<Skipped>), RepositoryError> {
        let (versions, mut skipped) = Search::new(&self.listed().await?).into_versions();
        skipped.extend(self.source_skipped());
        Ok((versions, skipped))
    }

    /// What a version says about the series of the provider.
    pub async fn metadata(&self, version: &str) -> Result<Metadata, RepositoryError> {
        let file = self.metadata_file(version).await?;
        Ok(Metadata::parse(&file.text, &file.origin)?)
    }

    /// The same as it is written.
    pub async fn metadata_file(&self, version: &str) -> Result<File, RepositoryError> {
        self.file(version, METADATA_FILE).await
    }

    /// The components of a version.
    pub async fn components(&self, version: &str) -> Result<File, RepositoryError> {
        self.file(version, &self.components_file).await
    }

    /// The cluster template of a version, of a flavor or the plain one.
    pub async fn template(&self, version: &str, flavor: Option<&str>) -> Result<File, RepositoryError> {
        match flavor.filter(|it| !it.is_empty()) {
            None => self.one_of(version, TEMPLATE, None, "cluster template").await,
            Some(flavor) => {
                check_name("flavor", flavor)?;
                let what = format!("cluster template of flavor {flavor:?}");
                self.one_of(version, TEMPLATE, Some(flavor), &what).await
            }
        }
    }

    /// The flavors of the cluster templates of a version; none where the source cannot list its files.
    pub async fn flavors(&self, version: &str) -> Result<Vec<String>, RepositoryError> {
        let files = self.source.files(version).await.map_err(|source| self.failed(source))?;
        let is_flavor = |it: &String| *it != format!("{TEMPLATE}.yaml");
        Ok(variants(&files.unwrap_or_default(), TEMPLATE).into_iter().filter(is_flavor).collect())
    }

    /// The file of a ClusterClass.
    pub async fn cluster_class(&self, version: &str, name: &str) -> Result<File, RepositoryError> {
        check_name("ClusterClass name", name)?;
        self.one_of(version, CLUSTER_CLASS, Some(name), &format!("ClusterClass {name:?}")).await
    }

    /// A file; if it does not exist, the error names files with the same prefix.
    async fn one_of(
        &self,
        version: &str,
        prefix: &str,
        variant: Option<&str>,
        what: &str,
    ) -> Result<File, RepositoryError> {
        let file = variant.map_or_else(|| format!("{prefix}.yaml"), |it| format!("{prefix}-{it}.yaml"));
        match self.file(version, &file).await {
            Err(RepositoryError::Fetch { source, .. }) if source.is_not_found() => {
                let files = match self.source.files(version).await {
                    // If the whole version is missing, the error says that instead.
                    Err(error) if error.is_not_found() => return Err(self.failed(error)),
                    // What else there is would only have been a help.
                    Err(_) => None,
                    Ok(files) => files,
                };
                Err(RepositoryError::NoSuchTemplate {
                    label: self.label.clone(),
                    version: version.to_owned(),
                    what: what.to_owned(),
                    file,
                    available: files.map(|it| variants(&it, prefix)),
                })
            }
            outcome => outcome,
        }
    }

    async fn file(&self, version: &str, name: &str) -> Result<File, RepositoryError> {
        check_name("version", version)?;
        let replaced = self.overrides.read(&self.label, version, name).map_err(|it| self.failed(it))?;
        if let Some((path, bytes)) = replaced {
            return File::new(name, Found { bytes, origin: path.display().to_string() }, true);
        }
        let found = self.source.file(version, name, &self.components_file).await;
        File::new(name, found.map_err(|source| self.failed(source))?, false)
    }

    fn failed(&self, source: FetchError) -> RepositoryError {
        RepositoryError::Fetch { label: self.label.clone(), source }
    }
}

impl File {
    fn new(name: &str, found: Found, is_override: bool) -> Result<Self, RepositoryError> {
        let Found { bytes, origin } = found;
        if looks_like_web_page(&bytes) {
            return Err(RepositoryError::WebPage { origin });
        }
        let sha256 = Sha256::of(&bytes).to_string();
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { name: name.to_owned(), text, origin, sha256, is_override }),
            Err(error) => Err(RepositoryError::NotText { origin, problem: error.utf8_error().to_string() }),
        }
    }
}

/// What a provider's files begin with in artifacts that hold several providers.
fn artifact_prefix(provider: &Provider) -> String {
    format!("{}-{}", provider.kind.prefix(), provider.name)
}

/// Parts of file names must not lead anywhere else.
fn check_name(what: &'static str, text: &str) -> Result<(), RepositoryError> {
    let bad = text.is_empty()
        || text == "."
        || text == ".."
        || text.contains(|it: char| it == '/' || it == '\\' || it.is_control());
    if bad { Err(RepositoryError::NotAName { what, text: text.to_owned() }) } else { Ok(()) }
}

/// What stands between prefix and extension; the plain file counts as well.
fn variants(files: &[String], prefix: &str) -> Vec<String> {
    let variant = |it: &String| {
        let inner = it.strip_prefix(prefix)?.strip_suffix(".yaml")?;
        match inner.strip_prefix('-') {
            Some(variant) if !variant.is_empty() => Some(variant.to_owned()),
            _ => inner.is_empty().then(|| format!("{prefix}.yaml")),
        }
    };
    let mut names: Vec<_> = files.iter().filter_map(variant).collect();
    names.sort();
    names
}
