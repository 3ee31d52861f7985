//! Whether there is a newer Capstan: asked at most once a day by a process of its own, so that no command waits for it,
//! and reported by later commands. Failures here are not reported and never change the exit code.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use capstan_api::provider::ProviderType;
use capstan_repository::{Provider, Repository, Version, shown_address};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    cli::Globals,
    commands::version::VERSION,
    error::CommandError,
    printer::Printer,
    session::{self, Session},
};

/// Where releases of Capstan are, for those who mirror it; otherwise the package's home, where it has one.
const RELEASES_VARIABLE: &str = "CAPSTAN_RELEASES";
const HOME: &str = env!("CARGO_PKG_REPOSITORY");
/// Either disables the check; the second one is clusterctl's.
const OFF_VARIABLES: [&str; 2] = ["CAPSTAN_DISABLE_VERSIONCHECK", "CLUSTERCTL_DISABLE_VERSIONCHECK"];
/// How long an answer is valid, and how long a failed request is not repeated.
const GOOD_FOR: Duration = Duration::from_hours(24);
/// The command that sends the request.
const ASK: [&str; 2] = ["version", "--check"];

/// The last answer, as stored in the cache folder.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    /// The time of the last request.
    asked: Timestamp,
    /// The address of the releases.
    releases: String,
    /// The newest stable version; `None` if the request failed.
    latest: Option<String>,
}

/// What to do after a command.
#[derive(Debug, PartialEq, Eq)]
struct Next<'a> {
    newer: Option<&'a str>,
    ask: bool,
}

/// Reports a newer version if one is known, and starts the next request in the background if it is due.
pub(crate) async fn remind(globals: &Globals, printer: Printer) {
    let environment = session::capture();
    // Without an address there is no request, and a remote configuration is not fetched again for it.
    let is_nowhere = environment.get(RELEASES_VARIABLE).unwrap_or(HOME).is_empty();
    if is_nowhere || globals.config.as_deref().is_some_and(|it| it.contains("://")) {
        return;
    }
    let Ok(session) = Session::open(globals, Printer::silent()).await else { return };
    let Some((releases, file)) = releases(&session).zip(file(&session)) else { return };
    let known = read(&file);
    let next = decide(known.as_ref(), &releases, VERSION, Timestamp::now());
    if let Some(newer) = next.newer {
        let page = shown_address(&releases);
        printer.note(&format!("Capstan {newer} is available, this is {VERSION}: see {page}"));
    }
    if next.ask {
        // Written first: a question that is never answered is not repeated by every command.
        let latest = known.and_then(|it| it.latest);
        let asked = Known { asked: Timestamp::now(), releases, latest };
        if write(&file, &asked).is_ok() {
            ask_in_the_background();
        }
    }
}

/// Asks now and keeps the answer: the newest stable version.
pub(crate) async fn ask(session: &Session) -> Result<Option<String>, CommandError> {
    let releases = releases(session).ok_or_else(|| {
        CommandError::plain(
            "it is not known where releases of Capstan are, or looking for them is turned off",
        )
        .hint(format!(
            "set {RELEASES_VARIABLE} to their address, e.g. https://github.com/OWNER/REPO/releases"
        ))
    })?;
    let provider = Provider {
        name: env!("CARGO_PKG_NAME").to_owned(),
        kind: ProviderType::Core,
        url: format!("{}/latest/metadata.yaml", releases.trim_end_matches('/').trim_end_matches("/latest")),
    };
    let repository = Repository::open(&provider, &session.config, &session.http)?;
    let (versions, _) = repository.versions().await?;
    let latest = versions.iter().find(|it| it.is_stable()).map(|it| it.as_str().to_owned());
    if let Some(file) = file(session) {
        let known = Known { asked: Timestamp::now(), releases, latest: latest.clone() };
        write(&file, &known).map_err(|error| {
            CommandError::new(format!("cannot keep the answer in {}", file.display()), error)
        })?;
    }
    Ok(latest)
}

/// Whether a version is newer than another one; words that are no versions are not.
pub(crate) fn is_newer(version: &str, than: &str) -> bool {
    match (Version::parse(version), Version::parse(than)) {
        (Ok(version), Ok(than)) => version > than && !version.is_same_release(&than),
        _ => false,
    }
}

fn decide<'a>(known: Option<&'a Known>, releases: &str, own: &str, now: Timestamp) -> Next<'a> {
    let known = known.filter(|it| it.releases == releases);
    // A clock that was set back must not silence the question for good.
    let is_fresh = |it: &Known| now.duration_since(it.asked).unsigned_abs() < GOOD_FOR;
    let latest = known.and_then(|it| it.latest.as_deref());
    Next { newer: latest.filter(|it| is_newer(it, own)), ask: !known.is_some_and(is_fresh) }
}

fn releases(session: &Session) -> Option<String> {
    let named = session.environment.get(RELEASES_VARIABLE).unwrap_or(HOME);
    let is_off = || OFF_VARIABLES.iter().any(|it| session.config.variable(it).as_deref() == Some("true"));
    (!named.is_empty() && !is_off()).then(|| named.to_owned())
}

/// The file in which it is kept.
fn file(session: &Session) -> Option<PathBuf> {
    Some(session.environment.cache_folder()?.join("version-check.json"))
}

fn read(file: &Path) -> Option<Known> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// Writes beside and renames: another command may read at the same time.
fn write(file: &Path, known: &Known) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let beside = file.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&beside, serde_json::to_vec(known)?)?;
    fs::rename(beside, file)
}

/// A process that outlives this one and says nothing.
fn ask_in_the_background() {
    let Ok(program) = env::current_exe() else { return };
    let mut command = Command::new(program);
    command.args(ASK).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        // Ctrl-C in the terminal is not meant for it.
        command.process_group(0);
    }
    // If it does not start, the next request is due tomorrow.
    let _ = command.spawn();
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "https://example.com/releases";

    fn known(hours_ago: u64, latest: Option<&str>) -> (Known, Timestamp) {
        let now: Timestamp = "2030-01-02T03:04:05Z".parse().unwrap();
        let asked = now - Duration::from_hours(hours_ago);
        (Known { asked, releases: HERE.to_owned(), latest: latest.map(str::to_owned) }, now)
    }

    #[test]
    fn a_newer_version_is_told_and_an_old_answer_asked_for_again() {
        for (hours_ago, latest, newer, ask) in [
            (1, Some("v1.2.0"), Some("v1.2.0"), false),
            (25, Some("v1.2.0"), Some("v1.2.0"), true),
            (1, Some("v1.1.0"), None, false),
            (1, Some("v1.0.9"), None, false),
            (1, Some("latest"), None, false),
            (1, None, None, false),
            (25, None, None, true),
        ] {
            let (known, now) = known(hours_ago, latest);
            assert_eq!(
                decide(Some(&known), HERE, "v1.1.0", now),
                Next { newer, ask },
                "{hours_ago} {latest:?}"
            );
        }
        let (known, now) = known(1, Some("v2.0.0"));
        let nothing = Next { newer: None, ask: true };
        assert_eq!(decide(Some(&known), "https://elsewhere", "v1.1.0", now), nothing);
        assert_eq!(decide(None, HERE, "v1.1.0", now), nothing);
        let tomorrow = known.asked - Duration::from_hours(48);
        assert!(decide(Some(&known), HERE, "v1.1.0", tomorrow).ask, "the clock was set back");
    }
}
