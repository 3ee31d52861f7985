//! What can be done about errors and problems of install, upgrade and delete.

use capstan_api::provider::ProviderType;
use capstan_lifecycle::{
    cert_manager::CertManagerError,
    delete::{DeleteError, DeleteProblem},
    install::{InstallError, InstallFailure, InstallPlanError, InstallProblem, SKIP_NAME_CHECK},
    upgrade::{UpgradeError, UpgradeProblem},
};
use capstan_management::inventory::Installed;
use capstan_repository::Version;

use super::Hint;
use crate::program;

impl Hint for CertManagerError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Server(error) => error.hint(),
            Self::Apply(error) => error.hint(),
            Self::NotWorking { .. } => Some(
                "look at its Pods: kubectl get pods --all-namespaces -l app.kubernetes.io/instance=cert-manager; \
                 cert-manager.timeout in the configuration file allows it more time"
                    .to_owned(),
            ),
        }
    }
}

impl Hint for InstallPlanError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Server(error) => error.hint(),
            Self::ServerTooOld { .. } => Some("upgrade it, or choose another by --kubeconfig".to_owned()),
            Self::Twice { .. } => Some("name one version of it".to_owned()),
        }
    }
}

impl Hint for InstallError {
    fn hint(&self) -> Option<String> {
        match &self.reason {
            InstallFailure::Apply(error) => error.hint(),
            InstallFailure::CertManager(error) => error.hint(),
            InstallFailure::Inventory(error) => error.hint(),
        }
    }
}

impl Hint for InstallProblem {
    fn hint(&self) -> Option<String> {
        let name = program::name();
        Some(match self {
            // The session knows more about releases.
            Self::Release { .. } => return None,
            Self::InventoryVersion { .. } => "another tool keeps it: use that one here".to_owned(),
            Self::OtherVersion { installed, version } => format!(
                "upgrade it: {name} upgrade apply --{} {}/{}:{version}",
                installed.kind.prefix(),
                installed.namespace,
                installed.name
            ),
            Self::SecondInstance { .. } => {
                "leave --target-namespace out, or delete the existing instance".to_owned()
            }
            Self::OtherWatchedNamespace { installed, is_alone: false, .. } => format!(
                "it has other instances, and init installs only one: delete all but one by {name} delete --{} {} \
                 --namespace NAMESPACE",
                installed.kind.prefix(),
                installed.name
            ),
            Self::OtherWatchedNamespace { installed, wanted, .. } => rewatch(installed, wanted),
            Self::NoCore => "name a core provider by --core".to_owned(),
            Self::NoCertManager { .. } => {
                "install cert-manager first, or remove externallyProvisioned from cert-manager in the configuration \
                 file to have it installed"
                    .to_owned()
            }
            Self::Cores { .. } => format!("delete the others first: {name} delete --core NAME"),
            Self::UnknownContract { .. } => "upgrade the core provider first".to_owned(),
            Self::Contract { contract, .. } => format!(
                "install a version of the provider, or of core, that is compatible with the other's; {contract} needs core of \
                 the same contract or later"
            ),
            Self::CrdName { .. } => format!(
                "this is for the provider's author to repair; if core never refers to the kind, annotation \
                 {SKIP_NAME_CHECK} says so"
            ),
            Self::ForeignCrd { owner: Some(owner), .. } => format!(
                "delete provider {owner} with --include-crd first, or take the CRD over by --validate=false"
            ),
            Self::ForeignCrd { name, .. } => format!(
                "if nothing needs it, delete it and its objects (kubectl delete crd {name}), or take it over by \
                 --validate=false"
            ),
            Self::KindTaken { taken, .. } => format!(
                "a server serves a kind of a group once: if nothing needs it, delete the existing CRD and its \
                 objects (kubectl delete crd {taken})"
            ),
            Self::SharedCrd { .. } => "install one of the two".to_owned(),
            Self::Refused { .. } => {
                "repair the release or the variables that it is rendered with, or use another version".to_owned()
            }
            Self::UnknownKind { object, .. } => format!("install the CRD of {} first", object.kind),
        })
    }
}

/// How an installed provider comes to watch another namespace.
fn rewatch(installed: &Installed, wanted: &str) -> String {
    let Installed { kind, name, version, namespace, .. } = installed;
    let (flag, program) = (kind.prefix(), program::name());
    // Without core the next init is a first one, which would add kubeadm.
    let only = if *kind == ProviderType::Core { " --bootstrap - --control-plane -" } else { "" };
    format!(
        "to change it, delete the provider and install it again; its CRDs and their objects stay: {program} delete \
         --{flag} {name} --namespace {namespace} --force && {program} init --{flag} {name}:{version}{only} \
         --target-namespace {namespace} --watching-namespace {wanted}"
    )
}

impl Hint for UpgradeError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Server(error) => error.hint(),
            Self::Apply(error) => error.hint(),
            Self::CertManager(error) => error.hint(),
            Self::NothingInstalled => Some(format!("install them first: {} init", program::name())),
            Self::SeveralInstances { namespaces, .. } => {
                let namespace = namespaces.first().map_or("NAMESPACE", String::as_str);
                Some(format!("name the instance by its namespace: {namespace}/NAME:VERSION"))
            }
            Self::UnknownContract { .. } => Some("upgrade plan shows the contracts there are".to_owned()),
            Self::NoCommonVersion { .. } => {
                Some("upgrade to a release first that has both this version and the newer one".to_owned())
            }
            Self::NotMigrated { .. } => Some(
                "nothing was stopped or replaced; check whether the provider's Pods run, which convert the objects"
                    .to_owned(),
            ),
            Self::StillRunning { deployment, .. } => Some(format!(
                "look at its Pods: kubectl -n {} get pods",
                deployment.namespace.as_deref().unwrap_or_default()
            )),
            Self::Cores { found } if found.is_empty() => {
                Some(format!("install one: {} init --core cluster-api", program::name()))
            }
            Self::Cores { .. } => Some(format!(
                "delete the one that is not used: {} delete --core NAME --namespace NAMESPACE",
                program::name()
            )),
            Self::Release { .. }
            | Self::NotInstalled { .. }
            | Self::NamedTwice { .. }
            | Self::CutOff
            | Self::Gone { .. }
            | Self::StillThere { .. } => None,
        }
    }
}

impl Hint for UpgradeProblem {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Downgrade { .. } => Some(
                "a downgrade may leave objects that the older version cannot read; --allow-downgrade does it anyway"
                    .to_owned(),
            ),
            Self::TooFar { farthest, .. } => Some(format!("upgrade to a release of {farthest} first")),
            Self::LeftBehind { provider, .. } => Some(format!(
                "include it in the upgrade, in a version that speaks that contract: --{} {}/{}:VERSION",
                provider.kind.prefix(),
                provider.namespace,
                provider.name
            )),
            // The session knows more about releases.
            Self::Release { .. } | Self::IncompatibleTarget { .. } | Self::Refused { .. } => None,
        }
    }
}

impl Hint for DeleteError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Server(error) => error.hint(),
            Self::NotInstalled { installed, .. } if installed.is_empty() => Some(
                "no provider is installed there: --kubeconfig and --kubeconfig-context choose another management \
                 cluster"
                    .to_owned(),
            ),
            Self::NotInstalled { installed, .. } => {
                Some(format!("these are installed: {}", installed.join(", ")))
            }
            Self::OtherVersion { .. } => Some("name the version that is installed, or none".to_owned()),
            Self::SeveralInstances { namespaces, .. } => {
                let namespace = namespaces.first().map_or("NAMESPACE", String::as_str);
                Some(format!(
                    "name the namespace of one: --namespace {namespace}; --all deletes all instances of all providers"
                ))
            }
            Self::MadeMeanwhile { .. } => Some(
                "delete these objects and run the same command again, or leave --include-crd out to finish without"
                    .to_owned(),
            ),
            Self::NotGone { .. } => Some(
                "remove what holds it, then run the same command again; the provider is still in the inventory"
                    .to_owned(),
            ),
        }
    }
}

impl Hint for DeleteProblem {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::InUse { include_crd: true, .. } => {
                "delete these objects first and wait for their deletion: CRDs take their objects with them".to_owned()
            }
            Self::InUse { .. } => {
                "delete these objects first and wait for their deletion, or move them to another management \
                 cluster; --force deletes the providers anyway, and no controller reconciles the objects any more"
                    .to_owned()
            }
            Self::Answered { deleted, other, .. } => format!(
                "move them to the other instance first: {} upgrade apply --reapply --{} {}/{}:{}; --force deletes the \
                 instance anyway, and the API server cannot call these webhooks until the other is applied again",
                program::name(),
                other.kind.prefix(),
                other.namespace,
                other.name,
                newer(&deleted.version, &other.version)
            ),
        })
    }
}

/// The newer of two versions; the second where they cannot be compared.
fn newer<'a>(a: &'a str, b: &'a str) -> &'a str {
    match (Version::parse(a), Version::parse(b)) {
        (Ok(first), Ok(second)) if first.is_newer_than(&second) => a,
        _ => b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_to_delete_says_what_there_is() {
        let hint = |installed: &[&str]| {
            let installed = installed.iter().map(|it| (*it).to_owned()).collect();
            let label = "infrastructure-other".to_owned();
            DeleteError::NotInstalled { label, namespace: None, installed }.hint().unwrap()
        };
        assert!(hint(&["infrastructure-acme v1.0.0"]).contains("infrastructure-acme v1.0.0"));
        assert!(hint(&[]).contains("no provider is installed"));
    }
}
