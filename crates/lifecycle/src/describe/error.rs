//! Why there is nothing to describe.

use crate::ServerError;

/// A Cluster cannot be described.
#[derive(Debug, thiserror::Error)]
pub enum DescribeError {
    /// There are no Clusters at all.
    #[error(
        "{url} has no kind Cluster of cluster.x-k8s.io in v1beta2 or v1beta1: it is no management cluster, or its core \
         provider is not installed"
    )]
    NotInstalled {
        /// The API server.
        url: String,
    },
    /// There is no Cluster of that name.
    #[error("there is no Cluster {namespace}/{name} in {url}")]
    NoSuchCluster {
        /// The API server.
        url: String,
        /// Where it was looked for.
        namespace: String,
        /// Its name.
        name: String,
        /// The Clusters that are there, by namespace and name; none where they may not be listed.
        others: Vec<(String, String)>,
    },
    /// The server could not be asked.
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// How many names a hint tells.
const SOME: usize = 10;

impl DescribeError {
    /// What to do about it, where something can be.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotInstalled { .. } => Some(
                "name a management cluster by --kubeconfig and --kubeconfig-context, or install providers by `init`"
                    .to_owned(),
            ),
            Self::NoSuchCluster { namespace, name, others, .. } => Some(suggest(namespace, name, others)),
            Self::Server(error) => error.hint(),
        }
    }
}

fn suggest(namespace: &str, name: &str, others: &[(String, String)]) -> String {
    let elsewhere = listed(others.iter().filter(|it| it.1 == name).map(|it| it.0.as_str()));
    if let Some(namespaces) = elsewhere {
        return format!("one of that name is in another namespace; name it by -n: {namespaces}");
    }
    let here = || others.iter().filter(|it| it.0 == namespace).map(|it| it.1.as_str());
    if let Some(similar) = listed(here().filter(|it| is_similar(it, name))) {
        return format!("there is one of a similar name: {similar}");
    }
    if let Some(names) = listed(here()) {
        return format!("the Clusters in namespace {namespace} are: {names}");
    }
    match listed(others.iter().map(|(namespace, name)| format!("{namespace}/{name}"))) {
        Some(all) => format!("namespace {namespace} has no Clusters; name another one by -n: {all}"),
        None => {
            "no Clusters are to be seen in any namespace: look whether --kubeconfig and --kubeconfig-context \
                 name the right management cluster"
                .to_owned()
        }
    }
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
    one.starts_with(other) || other.starts_with(one) || distance(one, other) <= slips
}

fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut before = index;
        let mut left = index + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, wanted) in row.iter_mut().skip(1).zip(&other) {
            let here = (before + usize::from(letter != *wanted)).min(*cell + 1).min(left + 1);
            before = std::mem::replace(cell, here);
            left = here;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_far_apart_as_letters_must_change() {
        for (one, other, expected) in
            [("", "", 0), ("a", "", 1), ("", "ab", 2), ("kitten", "sitting", 3), ("prod-1", "prod-2", 1)]
        {
            assert_eq!((distance(one, other), distance(other, one)), (expected, expected), "{one} {other}");
        }
    }

    #[test]
    fn a_hint_says_where_to_look() {
        let pair = |it: &(&str, &str)| (it.0.to_owned(), it.1.to_owned());
        for (others, expected) in [
            (&[][..], "no Clusters are to be seen"),
            (&[("b", "prod"), ("c", "prod"), ("a", "x")], "by -n: b, c"),
            (&[("a", "prud"), ("a", "zzz")], "similar name: prud"),
            (&[("a", "zzz"), ("a", "qqq"), ("b", "x")], "in namespace a are: qqq, zzz"),
            (&[("b", "zzz")], "by -n: b/zzz"),
        ] {
            let others: Vec<_> = others.iter().map(pair).collect();
            let hint = suggest("a", "prod", &others);
            assert!(hint.ends_with(expected) || hint.starts_with(expected), "{hint}");
        }
        let many: Vec<_> = (10..30).map(|it| ("a".to_owned(), format!("other-{it}"))).collect();
        assert!(suggest("a", "prod", &many).ends_with("other-19 and 10 more"));
    }
}
