//! `capstan generate cluster`.

use capstan_api::provider::ProviderType;
use capstan_manifest::{envsubst::Template, template, text};
use capstan_repository::{ProviderArgument, Repository};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::{
    Asked, cluster_classes,
    source::{self, Text},
    unusable, variables,
};
use crate::{
    cli::{
        Globals,
        generate::{ClusterArgs, KubeconfigArgs},
    },
    error::CommandError,
    management::{Located, Management},
    output,
    printer::Printer,
    session::Session,
};

const CONFIG_MAP_KEY: &str = "template";

pub(crate) async fn run(args: &ClusterArgs, globals: &Globals, printer: Printer) -> Result<(), CommandError> {
    let source = Source::of(args)?;
    let mut session = Session::open(globals, printer).await?;
    let cluster = Lazy::new(&args.kubeconfig);
    // The list says where the namespace would come from, so it need not be known.
    if !args.list_variables {
        let namespace = target_namespace(args, &cluster).await?;
        variables::set(&mut session.config, args, &namespace)?;
    }
    let (template, release) = source.fetch(&session, &cluster).await?;
    if args.list_variables {
        let parsed = Template::parse(&template.text);
        let parsed =
            parsed.map_err(|error| unusable(&template.origin, &error.into(), Asked::Cluster, &session))?;
        let list = variables::list(parsed.variables(), args, &session.config);
        return output::write(&list, args.write_to.as_deref(), printer);
    }
    let namespace = target_namespace(args, &cluster).await?;
    let objects = render(&template, &namespace, &session)?;
    let mut all = match release {
        Some(release) => cluster_classes::missing(&objects, &release, &session, &cluster).await?,
        None => Vec::new(),
    };
    all.extend(objects);
    output::write_manifests(&all, args.write_to.as_deref(), printer)
}

/// The objects of a template in their namespace.
pub(super) fn render(
    template: &Text,
    namespace: &str,
    session: &Session,
) -> Result<Vec<Value>, CommandError> {
    let lookup = |name: &str| session.config.variable(name);
    let documents = text::objects(&template.text, Some(&lookup));
    let documents = documents.map_err(|error| unusable(&template.origin, &error, Asked::Cluster, session))?;
    let values = documents.into_iter().map(|it| it.value).collect();
    template::render(values, Some(namespace))
        .map_err(|error| CommandError::plain(format!("cannot use {}: {error}", template.origin)))
}

async fn target_namespace(args: &ClusterArgs, cluster: &Lazy<'_>) -> Result<String, CommandError> {
    if let Some(namespace) = args.target_namespace.as_deref().filter(|it| !it.is_empty()) {
        return Ok(namespace.to_owned());
    }
    let located = cluster.locate().await?.ok_or_else(|| {
        CommandError::plain("no kubeconfig says which namespace the cluster is for")
            .hint("name the namespace with --target-namespace")
    })?;
    Ok(located.namespace().to_owned())
}

/// A management cluster that is connected to when it is needed, and once.
pub(super) struct Lazy<'a> {
    args: &'a KubeconfigArgs,
    located: OnceCell<Option<Located>>,
    connected: OnceCell<Option<Management>>,
}

impl<'a> Lazy<'a> {
    fn new(args: &'a KubeconfigArgs) -> Self {
        Self { args, located: OnceCell::new(), connected: OnceCell::new() }
    }

    /// What the kubeconfig says of the cluster, if there is one. It need not be reachable.
    async fn locate(&self) -> Result<Option<&Located>, CommandError> {
        Ok(self.located.get_or_try_init(|| Located::find(self.args)).await?.as_ref())
    }

    /// The cluster, if there is one.
    pub(super) async fn get(&self) -> Result<Option<&Management>, CommandError> {
        let connect = async || self.locate().await?.map(Located::connect).transpose();
        Ok(self.connected.get_or_try_init(connect).await?.as_ref())
    }

    async fn needed(&self, why: &str, hint: &str) -> Result<&Management, CommandError> {
        self.get().await?.ok_or_else(|| CommandError::plain(why).hint(hint))
    }
}

/// A release whose folder may hold more than the template.
pub(super) struct Release {
    pub(super) repository: Repository,
    pub(super) version: String,
}

/// Where the template is.
enum Source<'a> {
    Repository { provider: Option<&'a str>, flavor: Option<&'a str> },
    ConfigMap { name: &'a str, namespace: Option<&'a str>, key: &'a str },
    Address(&'a str),
}

impl<'a> Source<'a> {
    fn of(args: &'a ClusterArgs) -> Result<Self, CommandError> {
        let given = |it: &'a Option<String>| it.as_deref().filter(|it| !it.is_empty());
        let (provider, flavor) = (given(&args.infrastructure), given(&args.flavor));
        let (name, namespace) = (given(&args.from_config_map), given(&args.from_config_map_namespace));
        let (key, from) = (given(&args.from_config_map_key), given(&args.from));
        let in_repository = provider.or(flavor).is_some();
        let in_config_map = name.or(namespace).or(key).is_some();
        match (in_repository, in_config_map, from) {
            (_, false, None) => Ok(Self::Repository { provider, flavor }),
            (false, true, None) => match name {
                Some(name) => Ok(Self::ConfigMap { name, namespace, key: key.unwrap_or(CONFIG_MAP_KEY) }),
                None => {
                    Err(CommandError::plain("no ConfigMap is named").hint("name it with --from-config-map"))
                }
            },
            (false, false, Some(from)) => Ok(Self::Address(from)),
            _ => Err(CommandError::plain("the template can come from one place only")
                .hint("use one of --infrastructure (with --flavor), --from-config-map and --from")),
        }
    }

    async fn fetch(
        &self,
        session: &Session,
        cluster: &Lazy<'_>,
    ) -> Result<(Text, Option<Release>), CommandError> {
        match *self {
            Self::Address(from) => Ok((source::read(from, session).await?, None)),
            Self::ConfigMap { name, namespace, key } => {
                let needed = "a ConfigMap is in a management cluster, and no kubeconfig names one";
                let cluster = cluster.needed(needed, "name one by --kubeconfig").await?;
                let namespace = namespace.unwrap_or(&cluster.namespace);
                let text = cluster.config_map(namespace, name, key).await?;
                Ok((Text { text, origin: format!("ConfigMap {namespace}/{name}, key {key}") }, None))
            }
            Self::Repository { provider, flavor } => {
                let release = release(provider, session, cluster).await?;
                let file = release.repository.template(&release.version, flavor).await?;
                Ok((Text { text: file.text, origin: file.origin }, Some(release)))
            }
        }
    }
}

/// The release to read: what is asked for, else what is installed.
async fn release(
    provider: Option<&str>,
    session: &Session,
    cluster: &Lazy<'_>,
) -> Result<Release, CommandError> {
    let argument = match provider {
        Some(provider) => ProviderArgument::parse(provider)?,
        None => installed_provider(cluster).await?,
    };
    let provider = session.config.provider(ProviderType::Infrastructure, &argument.name)?;
    let repository = session.repository(&provider)?;
    let wanted = match argument.version {
        Some(version) => Some(version).filter(|it| it != "latest"),
        None => installed_version(&argument.name, cluster).await?,
    };
    let version = session.choose(&repository, wanted.as_deref()).await?;
    if wanted.is_none() {
        session.printer.step(&format!("using {} {version}, the latest release", provider.label()));
    }
    Ok(Release { repository, version })
}

/// The only infrastructure provider that is installed.
async fn installed_provider(cluster: &Lazy<'_>) -> Result<ProviderArgument, CommandError> {
    let hint = "name the provider that has the template, e.g. --infrastructure aws:v2.9.1";
    let needed = "no infrastructure provider is named, and no kubeconfig says which one is installed";
    let installed = cluster.needed(needed, hint).await?.providers().await?;
    let mut names: Vec<_> = installed
        .into_iter()
        .filter(|it| it.kind == ProviderType::Infrastructure)
        .map(|it| it.name)
        .collect();
    names.sort();
    names.dedup();
    match <[String; 1]>::try_from(names) {
        Ok([name]) => Ok(ProviderArgument { name, version: None }),
        Err(names) if names.is_empty() => {
            Err(CommandError::plain("no infrastructure provider is installed").hint(hint))
        }
        Err(names) => Err(CommandError::plain(format!(
            "several infrastructure providers are installed: {}",
            names.join(", ")
        ))
        .hint(hint)),
    }
}

/// The version of a provider that is installed. Without a management cluster it is the latest.
async fn installed_version(name: &str, cluster: &Lazy<'_>) -> Result<Option<String>, CommandError> {
    let Some(cluster) = cluster.get().await? else {
        return Ok(None);
    };
    let is_meant = |kind, other: &str| kind == ProviderType::Infrastructure && other == name;
    let installed = cluster.providers().await?;
    let mut versions: Vec<_> =
        installed.into_iter().filter(|it| is_meant(it.kind, &it.name)).map(|it| it.version).collect();
    versions.sort();
    versions.dedup();
    let hint = format!("name the version, e.g. --infrastructure {name}:v1.2.3");
    match <[String; 1]>::try_from(versions) {
        Ok([version]) => Ok(Some(version)),
        Err(versions) if versions.is_empty() => Err(CommandError::plain(format!(
            "infrastructure provider {name} is not installed, so no version is known"
        ))
        .hint(hint)),
        Err(versions) => Err(CommandError::plain(format!(
            "infrastructure provider {name} is installed in several versions: {}",
            versions.join(", ")
        ))
        .hint(hint)),
    }
}
