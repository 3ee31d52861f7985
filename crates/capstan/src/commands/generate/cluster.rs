//! `capstan generate cluster`.

use std::collections::BTreeSet;

use capstan_api::provider::ProviderType;
use capstan_lifecycle::{goal::VersionGoal, release::ReleaseNotice};
use capstan_management::inventory::Installed;
use capstan_manifest::{envsubst::Template, template, text};
use capstan_repository::Repository;
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
    goals::{ProviderArgument, version_goal},
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
    let hint = "name the provider that has the template, e.g. --infrastructure aws:v2.9.1";
    let (name, version) = match provider.map(ProviderArgument::parse).transpose()? {
        Some(ProviderArgument { name, version: version @ Some(_) }) => (name, version_goal(version)),
        Some(ProviderArgument { name, .. }) => {
            // Without a cluster there is no installed version, and the latest will do.
            let version = match cluster.get().await? {
                Some(cluster) => VersionGoal::Exact(installed_version(&name, &cluster.providers().await?)?),
                None => VersionGoal::Latest,
            };
            (name, version)
        }
        None => {
            let needed = "no infrastructure provider is named, and no kubeconfig says which one is installed";
            let installed = cluster.needed(needed, hint).await?.providers().await?;
            let name = installed_provider(&installed).map_err(|error| error.hint(hint))?;
            let version = installed_version(&name, &installed)?;
            (name, VersionGoal::Exact(version))
        }
    };
    let report = |notice: ReleaseNotice<'_>| session.report(notice);
    let releases = session.releases(&report);
    let unusable = |error| session.unusable_release(error);
    let source = releases.source(ProviderType::Infrastructure, &name).await.map_err(unusable)?;
    let found = releases.version(&source, &version).await.map_err(unusable)?;
    if version == VersionGoal::Latest {
        session.printer.step(&format!("using {} {found}, the latest release", source.provider.label()));
    }
    Ok(Release { repository: source.repository, version: found })
}

/// The only infrastructure provider that is installed.
fn installed_provider(installed: &[Installed]) -> Result<String, CommandError> {
    let infrastructure = installed.iter().filter(|it| it.kind == ProviderType::Infrastructure);
    let names: BTreeSet<&str> = infrastructure.map(|it| it.name.as_str()).collect();
    match Vec::from_iter(names).as_slice() {
        [name] => Ok((*name).to_owned()),
        [] => Err(CommandError::plain("no infrastructure provider is installed")),
        names => {
            let names = names.join(", ");
            Err(CommandError::plain(format!("several infrastructure providers are installed: {names}")))
        }
    }
}

/// The version of an infrastructure provider that is installed.
fn installed_version(name: &str, installed: &[Installed]) -> Result<String, CommandError> {
    let is_meant = |it: &&Installed| it.kind == ProviderType::Infrastructure && it.name == name;
    let versions: BTreeSet<&str> = installed.iter().filter(is_meant).map(|it| it.version.as_str()).collect();
    let why = match Vec::from_iter(versions).as_slice() {
        [version] => return Ok((*version).to_owned()),
        [] => format!("infrastructure provider {name} is not installed, so no version is known"),
        versions => {
            let versions = versions.join(", ");
            format!("infrastructure provider {name} is installed in several versions: {versions}")
        }
    };
    Err(CommandError::plain(why).hint(format!("name the version, e.g. --infrastructure {name}:v1.2.3")))
}
