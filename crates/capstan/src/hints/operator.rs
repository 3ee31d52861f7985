//! What can be done about what stands in the way of a command in a cluster with the provider operator.

use capstan_api::provider::ProviderType;
use capstan_management::ObjectRef;

use super::Hint;
use crate::{operator::OperatorProblem, program};

impl Hint for OperatorProblem {
    fn hint(&self) -> Option<String> {
        let program = program::name();
        Some(match self {
            Self::InCharge { named, .. } => {
                format!("create provider objects: {program} init --operator{}", flags(named))
            }
            Self::Managed { objects, .. } => {
                let commands: Vec<String> = objects.iter().map(delete_command).collect();
                format!(
                    "delete the objects, and the operator deletes the providers: {}; {program} delete --all deletes \
                     everything, the operator last",
                    commands.join("; ")
                )
            }
            Self::OperatorVersion { is_newer: false, .. } => {
                format!("upgrade it: {program} upgrade operator")
            }
            Self::OperatorVersion { installed, is_newer: true } | Self::OperatorDowngrade { installed } => {
                format!("use {program} {installed}")
            }
            Self::NoOperator => format!("install it: {program} init --operator"),
            Self::Upstream { namespace, name } => format!(
                "stop it first: kubectl scale deployment {name} -n {namespace} --replicas=0; what it has installed \
                 needs entries in the inventory before, see \"From upstream's operator\" in docs/differences.md"
            ),
            Self::Foreign { namespace, by, .. } if by == "Helm" => {
                format!("upgrade its release: helm upgrade --namespace {namespace}")
            }
            Self::Foreign { .. } => "upgrade it as it was installed".to_owned(),
            Self::OtherVersion { kind, object, version, .. } => {
                format!(
                    "upgrade it: {program} upgrade apply --{} {}:{version}",
                    kind.prefix(),
                    full_name(object)
                )
            }
            Self::SecondObject { .. } => {
                "leave --target-namespace out, or delete the existing object".to_owned()
            }
            Self::Installed { installed } => format!(
                "create its object first: {program} init --operator --{} {}:{}; upgrade apply upgrades it then",
                installed.kind.prefix(),
                installed.name,
                installed.version
            ),
            Self::SeveralInstances { label, .. } => match ProviderType::from_label(label) {
                Some((kind, name)) => format!(
                    "delete all but one first: {program} delete --{} {name} --namespace NAMESPACE",
                    kind.prefix()
                ),
                None => "delete all but one first".to_owned(),
            },
            Self::WatchesNamespace { installed } => format!(
                "delete it first: {program} delete --{} {}; its CRDs and their objects stay",
                installed.kind.prefix(),
                installed.name
            ),
            Self::VersionLabel { .. } => {
                "publish the release under a version without what follows +".to_owned()
            }
            Self::Contract { .. } => {
                "choose a version of the provider, or of core, that is compatible with the other's".to_owned()
            }
            Self::NotInstalledYet { object, .. } => format!(
                "once that is fixed, the operator goes on by itself; to change its version: kubectl edit {} {} -n {}",
                resource(object),
                object.name,
                object.namespace.as_deref().unwrap_or_default()
            ),
            Self::Mixed { unmanaged, .. } => format!(
                "name versions, and upgrade those without the operator by a command of their own ({}), or let the \
                 operator manage them: {program} init --operator{}",
                unmanaged.join(", "),
                flags_of_labels(unmanaged)
            ),
            Self::NotPausable { unmanaged, .. } => {
                format!(
                    "let the operator manage them: {program} init --operator{}",
                    flags_of_labels(unmanaged)
                )
            }
            Self::StaysBehind { kind, object, contract, .. } => format!(
                "name a version that speaks {contract}: --{} {}:VERSION",
                kind.prefix(),
                full_name(object)
            ),
            Self::Downgrade { .. } => return None,
        })
    }
}

/// The command that deletes a provider object.
fn delete_command(object: &ObjectRef) -> String {
    format!(
        "kubectl delete {} {} -n {}",
        resource(object),
        object.name,
        object.namespace.as_deref().unwrap_or_default()
    )
}

fn resource(object: &ObjectRef) -> String {
    object.kind.to_lowercase()
}

fn full_name(object: &ObjectRef) -> String {
    match &object.namespace {
        Some(namespace) => format!("{namespace}/{}", object.name),
        None => object.name.clone(),
    }
}

/// The flags that name providers.
fn flags(named: &[(ProviderType, String)]) -> String {
    named.iter().fold(String::new(), |text, (kind, name)| format!("{text} --{} {name}", kind.prefix()))
}

fn flags_of_labels(labels: &[String]) -> String {
    let named = labels.iter().filter_map(|it| ProviderType::from_label(it));
    flags(&named.map(|(kind, name)| (kind, name.to_owned())).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aws() -> ObjectRef {
        ObjectRef::new(
            "management.cluster.x-k8s.io/v1alpha1",
            "InfrastructureProvider",
            Some("capa-system"),
            "aws",
        )
    }

    #[test]
    fn a_refusal_names_the_command_to_use_instead() {
        let labels = vec!["infrastructure-aws".to_owned()];
        let named = vec![(ProviderType::Infrastructure, "aws:v2.9.1".to_owned())];
        for (problem, expected) in [
            (
                OperatorProblem::InCharge { objects: vec![aws()], named },
                "init --operator --infrastructure aws:v2.9.1",
            ),
            (
                OperatorProblem::Managed { labels: labels.clone(), objects: vec![aws()] },
                "kubectl delete infrastructureprovider aws -n capa-system",
            ),
            (
                OperatorProblem::OtherVersion {
                    kind: ProviderType::Infrastructure,
                    object: Box::new(aws()),
                    found: None,
                    version: "v2.9.1".to_owned(),
                },
                "upgrade apply --infrastructure capa-system/aws:v2.9.1",
            ),
            (
                OperatorProblem::Mixed { managed: Vec::new(), unmanaged: labels },
                "init --operator --infrastructure aws",
            ),
            (
                OperatorProblem::OperatorVersion { installed: "v0.1.0".to_owned(), is_newer: false },
                "upgrade operator",
            ),
            (
                OperatorProblem::Upstream { namespace: "ns".to_owned(), name: "op".to_owned() },
                "kubectl scale deployment op -n ns --replicas=0",
            ),
        ] {
            let hint = problem.hint().unwrap();
            assert!(hint.contains(expected), "{problem}: {hint}");
        }
    }
}
