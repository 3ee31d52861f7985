//! Why there is no Cluster to look at, and which ones there are.

use capstan_api::names::CORE_GROUP;

use capstan_management::ServerError;

/// A Cluster cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The server refused to answer, or could not be reached.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The kind is not there.
    #[error("{url} knows no kind Cluster of {CORE_GROUP}: Cluster API is not installed there")]
    NotInstalled {
        /// The API server.
        url: String,
    },
    /// The name is empty.
    #[error("the name of the Cluster is empty")]
    NameMissing,
    /// No Cluster can have that name.
    #[error("the name of the Cluster has {length} characters, but the name of a Cluster has at most {limit}")]
    NameTooLong {
        /// How long the name is.
        length: usize,
        /// How long a name can be.
        limit: usize,
    },
    /// No Cluster has that name.
    #[error("there is no Cluster {namespace}/{name} in {url}")]
    NotFound {
        /// The API server.
        url: String,
        /// The namespace that was looked at.
        namespace: String,
        /// The name.
        name: String,
        /// The Clusters that are there, by namespace and name; none where they may not be listed.
        others: Vec<(String, String)>,
    },
}

/// How many names a hint tells.
const SOME: usize = 10;

impl ClusterError {
    /// What to do about it, where something can be.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Server(_) => None,
            Self::NotInstalled { .. } => Some(
                "name the management cluster by --kubeconfig or --kubeconfig-context, or install Cluster API by init"
                    .to_owned(),
            ),
            Self::NameMissing | Self::NameTooLong { .. } => {
                Some("list the Clusters: capstan get clusters -A".to_owned())
            }
            Self::NotFound { namespace, name, others, .. } => Some(suggest(namespace, name, others)),
        }
    }
}

fn suggest(namespace: &str, name: &str, others: &[(String, String)]) -> String {
    let elsewhere = others.iter().filter(|it| it.1 == name).map(|it| format!("-n {}", it.0));
    if let Some(namespaces) = listed(elsewhere) {
        return format!("one of that name is in another namespace: {namespaces}");
    }
    let here = || others.iter().filter(|it| it.0 == namespace).map(|it| it.1.as_str());
    if let Some(similar) = listed(here().filter(|it| is_similar(it, name))) {
        return format!("there is one of a similar name: {similar}");
    }
    if let Some(names) = listed(here()) {
        return format!("namespace {namespace} has these: {names}");
    }
    let all = listed(others.iter().map(|(namespace, name)| format!("{namespace}/{name}")));
    let rest = all.map_or_else(
        || {
            "nor has any other: --kubeconfig or --kubeconfig-context names another management cluster"
                .to_owned()
        },
        |all| format!("-n names another one: {all}"),
    );
    format!("namespace {namespace} has no Clusters; {rest}")
}

fn listed(names: impl Iterator<Item = impl Into<String>>) -> Option<String> {
    let mut names: Vec<String> = names.map(Into::into).collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(SOME);
    names.truncate(SOME);
    let list = names.join(", ");
    match (names.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(list),
        (false, more) => Some(format!("{list} and {more} more")),
    }
}

/// Whether one name is a slip of the other: the beginning of it, or a letter of three off, but not more than two.
fn is_similar(one: &str, other: &str) -> bool {
    let slips = (one.len().max(other.len()) / 3).min(2);
    one.starts_with(other) || other.starts_with(one) || strsim::levenshtein(one, other) <= slips
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_says_where_to_look() {
        let pair = |it: &(&str, &str)| (it.0.to_owned(), it.1.to_owned());
        for (others, expected) in [
            (&[][..], "namespace a has no Clusters; nor has any other"),
            (&[("b", "prod"), ("c", "prod"), ("a", "x")], "in another namespace: -n b, -n c"),
            (&[("a", "prud"), ("a", "zzz")], "similar name: prud"),
            (&[("a", "zzz"), ("a", "qqq"), ("b", "x")], "namespace a has these: qqq, zzz"),
            (&[("b", "zzz")], "namespace a has no Clusters; -n names another one: b/zzz"),
        ] {
            let others: Vec<_> = others.iter().map(pair).collect();
            let hint = suggest("a", "prod", &others);
            assert!(hint.ends_with(expected) || hint.starts_with(expected), "{hint}");
        }
        let many: Vec<_> = (10..30).map(|it| ("a".to_owned(), format!("other-{it}"))).collect();
        assert!(suggest("a", "prod", &many).ends_with("other-19 and 10 more"));
    }
}
