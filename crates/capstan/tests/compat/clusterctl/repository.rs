//! A repository of our own making, in the case's folder.

use super::harness::Case;

/// Where the provider `mine` is.
pub(crate) const CONFIG: &str = "\
providers:
- {name: mine, type: InfrastructureProvider, url: <DIR>/repo/infrastructure-mine/latest/infrastructure-components.yaml}
";

/// What every release has beside its components.
pub(crate) const METADATA: &str = "\
apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 1, minor: 0, contract: v1beta1}
- {major: 1, minor: 1, contract: v1beta2}
";

/// Components with nothing to say.
pub(crate) const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: mine-system}\n";

/// The path of a file of a release of `mine`.
pub(crate) fn path(version: &str, file: &str) -> String {
    format!("repo/infrastructure-mine/{version}/{file}")
}

/// A case with a configuration that knows `mine`, and a release of it.
pub(crate) fn with_release(case: Case, version: &str, components: &str) -> Case {
    case.file(path(version, "infrastructure-components.yaml"), components)
        .file(path(version, "metadata.yaml"), METADATA)
}

/// `generate provider` of components of `mine`, with further arguments.
pub(crate) fn generate(group: &str, name: &str, arguments: &str, components: &str) -> Case {
    let case = Case::new(group, name, &format!("generate provider -i mine {arguments}")).config(CONFIG);
    with_release(as_upstream(case), "v1.1.0", components)
}

/// ClusterRoles keep their names, as they do with upstream.
pub(crate) fn as_upstream(case: Case) -> Case {
    case.only_ours("--rbac-prefix=false")
}
