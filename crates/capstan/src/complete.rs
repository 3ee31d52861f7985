//! What can be completed on the command line beyond its own words: providers, versions, flavors, contexts, namespaces.
//!
//! A completion that fails completes nothing: the shell has no place for an error.

use std::{ffi::OsStr, future::Future, time::Duration};

use capstan_api::provider::ProviderType;
use capstan_lifecycle::catalog::Catalog;
use clap_complete::CompletionCandidate;
use kube::config::Kubeconfig;

use crate::{
    cli::{Globals, generate::KubeconfigArgs},
    goals::ProviderArgument,
    management::Management,
    printer::{Printer, harmless_line},
    session::Session,
};

/// The variable by which a shell asks.
pub(crate) const VARIABLE: &str = "CAPSTAN_COMPLETE";
/// A shell that hangs is worse than one that completes nothing.
const LIMIT: Duration = Duration::from_secs(2);

/// Names of providers of a type, and versions behind a colon.
pub(crate) fn providers(kind: ProviderType) -> impl Fn(&OsStr) -> Vec<CompletionCandidate> + Send + Sync {
    move |current| {
        let current = current.to_string_lossy().into_owned();
        let found = wait(async {
            let session = session().await?;
            match current.split_once(':') {
                None => {
                    let all = session.config.providers().ok()?;
                    Some(all.into_iter().filter(|it| it.kind == kind).map(|it| it.name).collect())
                }
                Some((name, _)) => {
                    let source = session.source(kind, name).await.ok()?;
                    let (versions, _) = source.repository.versions().await.ok()?;
                    Some(versions.iter().map(|version| format!("{name}:{}", version.as_str())).collect())
                }
            }
        });
        candidates(found, &current)
    }
}

/// Names of providers of a type that are installed.
pub(crate) fn installed(kind: ProviderType) -> impl Fn(&OsStr) -> Vec<CompletionCandidate> + Send + Sync {
    move |current| {
        let found = wait(async {
            let all = Management::find(&management()).await.ok()??.providers().await.ok()?;
            Some(all.into_iter().filter(|it| it.kind == kind).map(|it| it.name).collect())
        });
        candidates(found, &current.to_string_lossy())
    }
}

/// The flavors of the provider that the command line names.
pub(crate) fn flavors(current: &OsStr) -> Vec<CompletionCandidate> {
    let found = wait(async {
        let argument = ProviderArgument::parse(&word_after(&["-i", "--infrastructure"])?).ok()?;
        let session = session().await?;
        let source = session.source(ProviderType::Infrastructure, &argument.name).await.ok()?;
        let chosen = source.repository.version(argument.version.as_deref()).await.ok()?;
        source.repository.flavors(&chosen.version).await.ok()
    });
    candidates(found, &current.to_string_lossy())
}

/// The contexts of the kubeconfig.
pub(crate) fn contexts(current: &OsStr) -> Vec<CompletionCandidate> {
    let kubeconfig = match word_after(&["--kubeconfig"]) {
        Some(file) => Kubeconfig::read_from(file),
        None => Kubeconfig::read(),
    };
    let found = kubeconfig.ok().map(|it| it.contexts.into_iter().map(|it| it.name).collect());
    candidates(found, &current.to_string_lossy())
}

/// The namespaces of the management cluster.
pub(crate) fn namespaces(current: &OsStr) -> Vec<CompletionCandidate> {
    let found = wait(async { Management::find(&management()).await.ok()??.namespaces().await.ok() });
    candidates(found, &current.to_string_lossy())
}

/// The management cluster that the line names.
fn management() -> KubeconfigArgs {
    KubeconfigArgs {
        kubeconfig: word_after(&["--kubeconfig"]),
        kubeconfig_context: word_after(&["--kubeconfig-context"]),
    }
}

async fn session() -> Option<Session> {
    let globals = Globals { config: word_after(&["--config"]), verbosity: None };
    Session::open(&globals, Printer::silent()).await.ok()
}

/// The value of a flag on the line that is being completed.
fn word_after(flags: &[&str]) -> Option<String> {
    let words: Vec<String> = std::env::args().collect();
    value_of(&words, flags)
}

fn value_of(words: &[String], flags: &[&str]) -> Option<String> {
    words.iter().enumerate().find_map(|(index, word)| {
        let (flag, value) = word.split_once('=').map_or((word.as_str(), None), |(flag, it)| (flag, Some(it)));
        let is_meant = flags.contains(&flag);
        is_meant.then(|| value.map(str::to_owned).or_else(|| words.get(index + 1).cloned()))?
    })
}

/// Runs to its end, within the limit.
fn wait(work: impl Future<Output = Option<Vec<String>>>) -> Option<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let found = runtime.block_on(async { tokio::time::timeout(LIMIT, work).await }).ok().flatten();
    runtime.shutdown_background();
    found
}

fn candidates(found: Option<Vec<String>>, typed: &str) -> Vec<CompletionCandidate> {
    // What would have to be escaped is no name that anybody can type.
    let fits = |it: &String| it.starts_with(typed) && harmless_line(it) == *it;
    let fitting = found.unwrap_or_default().into_iter().filter(fits);
    fitting.map(CompletionCandidate::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_flag_is_found_in_both_forms() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (line, expected) in [
            ("x -i aws:v1 --flavor", Some("aws:v1")),
            ("x --infrastructure=aws -f", Some("aws")),
            ("x --infrastructures=aws", None),
            ("x -i", None),
        ] {
            let found = value_of(&words(line), &["-i", "--infrastructure"]);
            assert_eq!(found.as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn only_what_fits_is_offered() {
        let found = Some(["aws", "azure", "gcp", "a\u{1b}[2J", "a\u{200b}ws"].map(str::to_owned).to_vec());
        let texts: Vec<_> =
            candidates(found, "a").iter().map(|it| it.get_value().to_string_lossy().into_owned()).collect();
        assert_eq!(texts, ["aws", "azure"]);
        assert!(candidates(None, "").is_empty());
    }
}
