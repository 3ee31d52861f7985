//! What came of a step: conditions, and when to look again.

use std::time::Duration;

use capstan_api::{
    conditions::Report,
    operator::{condition, reason},
};
use capstan_lifecycle::{
    install::InstallProblem,
    release::ReleaseError,
    upgrade::{Failed, UpgradeError, UpgradeProblem},
};

use crate::{plan::Step, record::ProviderRecord};

/// How long to wait before something is tried again that no event announces, such as a right that an admin grants.
pub const RETRY: Duration = Duration::from_secs(10);

/// How soon a release is looked for again that its server does not have, or that cannot be used.
const FETCH_RETRY: Duration = Duration::from_secs(30);

/// When a provider object is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// At once: something changed.
    Continue,
    /// When something changes.
    Rest,
    /// After this time, or when something changes.
    Again(Duration),
}

/// What came of a step.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Conditions to report.
    pub reports: Vec<Report>,
    /// Conditions that do not apply any more.
    pub obsolete: Vec<&'static str>,
    /// What is installed now, if that changed: the version and its contract, if it is known.
    pub installed: Option<(String, Option<String>)>,
    /// When to look again.
    pub then: Then,
}

impl Outcome {
    /// Nothing to report.
    pub fn then(then: Then) -> Self {
        Self { reports: Vec::new(), obsolete: Vec::new(), installed: None, then }
    }

    /// The same with a report.
    #[must_use]
    pub fn report(mut self, report: Report) -> Self {
        self.reports.push(report);
        self
    }

    /// The same without a condition.
    #[must_use]
    pub fn without(mut self, condition: &'static str) -> Self {
        self.obsolete.push(condition);
        self
    }

    /// What came of a step that failed.
    pub fn failed(trouble: Trouble, step: &Step) -> Self {
        // A process that stops says nothing about the provider, and a comparison that failed changes nothing of it.
        if trouble.is_cut_off || matches!(step, Step::Verify { .. }) {
            return Self::then(Then::Again(RETRY));
        }
        let type_ = match step {
            _ if trouble.is_preflight => condition::PREFLIGHT,
            Step::Upgrade { .. } => condition::UPGRADED,
            _ => condition::INSTALLED,
        };
        Self::then(trouble.then)
            .report(Report::new(type_, false, trouble.reason).with_message(trouble.message))
    }
}

/// Why a step could not be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The condition's reason.
    pub reason: &'static str,
    /// The condition's message.
    pub message: String,
    /// Whether the change was refused before anything was tried.
    pub is_preflight: bool,
    /// Whether the process was stopped meanwhile.
    pub is_cut_off: bool,
    /// When to look again.
    pub then: Then,
}

impl Trouble {
    /// Trouble that an edit of an input ends.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        // What is wrong with the fetch configuration is found before anything is tried.
        let is_preflight = reason == reason::FETCH_CONFIG_INVALID;
        Self { reason, message: message.into(), is_preflight, is_cut_off: false, then: Then::Rest }
    }

    /// The same, tried again after a while.
    #[must_use]
    pub fn retried(self) -> Self {
        Self { then: Then::Again(RETRY), ..self }
    }

    /// The same, tried again where an edit of the input is no event: releases on a network are not watched.
    #[must_use]
    pub fn of_source(self, provider: &ProviderRecord) -> Self {
        let is_in_cluster = provider.spec.fetch_config.as_ref().is_some_and(|it| it.selector.is_some());
        let is_about_release =
            [reason::COMPONENTS_FETCH, reason::FETCH_CONFIG_INVALID].contains(&self.reason);
        if self.then == Then::Rest && is_about_release && !is_in_cluster {
            Self { then: Then::Again(FETCH_RETRY), ..self }
        } else {
            self
        }
    }

    fn preflight(self) -> Self {
        Self { is_preflight: true, ..self }
    }

    /// What keeps a provider from being installed.
    pub fn of_install(problems: &[InstallProblem]) -> Option<Self> {
        let text = |wanted: fn(&InstallProblem) -> bool| in_words(problems.iter().filter(|it| wanted(it)));
        let has = |wanted: fn(&InstallProblem) -> bool| problems.iter().any(wanted);
        let is_contract = |it: &InstallProblem| {
            matches!(it, InstallProblem::Contract { .. } | InstallProblem::UnknownContract { .. })
        };
        let is_instance = |it: &InstallProblem| {
            matches!(
                it,
                InstallProblem::OtherVersion { .. }
                    | InstallProblem::SecondInstance { .. }
                    | InstallProblem::Cores { .. }
            )
        };
        let is_core = |it: &InstallProblem| matches!(it, InstallProblem::NoCore);
        let is_unknown = |it: &InstallProblem| matches!(it, InstallProblem::UnknownContract { .. });
        let first = problems.first()?;
        Some(if has(is_contract) {
            let trouble = Self::new(reason::CONTRACT_MISMATCH, text(is_contract)).preflight();
            // No event says when core's CRD can be read.
            if has(is_unknown) { trouble.retried() } else { trouble }
        } else if has(is_instance) {
            Self::new(reason::MORE_THAN_ONE_EXISTS, text(is_instance)).preflight()
        } else if has(is_core) {
            Self::new(reason::WAITING_FOR_CORE, text(is_core)).preflight()
        } else if let InstallProblem::Release { error, .. } = first {
            Self::of_release(error)
        } else {
            Self::of_objects(reason::INSTALL_FAILED, text(|_| true))
        })
    }

    /// What keeps a provider from being upgraded or applied again.
    pub fn of_upgrade(problems: &[UpgradeProblem], reason: &'static str) -> Option<Self> {
        let first = problems.first()?;
        let text = in_words(problems);
        Some(match first {
            UpgradeProblem::Release { source, .. } => Self::of_release(source),
            UpgradeProblem::Downgrade { .. } => Self::new(reason::UNSUPPORTED_DOWNGRADE, text).preflight(),
            UpgradeProblem::IncompatibleTarget { .. } | UpgradeProblem::LeftBehind { .. } => {
                Self::new(reason::CONTRACT_MISMATCH, text).preflight()
            }
            UpgradeProblem::TooFar { .. } => Self::new(reason, text).preflight(),
            UpgradeProblem::Refused { .. } => Self::of_objects(reason, text),
        })
    }

    /// An upgrade that cannot be planned, or stopped on its way.
    pub fn of_upgrade_error(error: &UpgradeError, reason: &'static str) -> Self {
        match error {
            UpgradeError::Release { source, .. } => Self::of_release(source),
            error => {
                let is_cut_off = matches!(error, UpgradeError::CutOff);
                Self { is_cut_off, ..Self::of_objects(reason, error.to_string()) }
            }
        }
    }

    /// An upgrade that stopped on its way, with what could not be put right after it.
    pub fn of_failed_upgrade(failed: &Failed, reason: &'static str) -> Self {
        let mut trouble = Self::of_upgrade_error(&failed.error, reason);
        let others = failed.others.iter().map(|(error, _)| error.to_string());
        let stopped =
            failed.stopped.iter().chain(failed.others.iter().map(|it| &it.1)).chain(&failed.waiting);
        let after = stopped.flat_map(|it| {
            let started =
                it.not_started.as_ref().map(|error| format!("its controllers do not run again: {error}"));
            let marked = it
                .not_unmarked
                .as_ref()
                .map(|error| format!("it is still marked as being upgraded: {error}"));
            started.into_iter().chain(marked)
        });
        let more: Vec<String> = others.chain(after).collect();
        if !more.is_empty() {
            // That its controllers stay stopped is worth a condition, even when the process ends.
            trouble.is_cut_off = false;
            trouble.message = [vec![trouble.message], more].concat().join("; ");
        }
        trouble
    }

    /// A release that cannot be used.
    pub fn of_release(error: &ReleaseError) -> Self {
        let reason = match error {
            ReleaseError::Alter { .. } => reason::COMPONENTS_CUSTOMIZATION,
            ReleaseError::Metadata(_) => reason::CONTRACT_MISMATCH,
            _ => reason::COMPONENTS_FETCH,
        };
        Self::new(reason, error.to_string())
    }

    /// Objects that the server refuses.
    pub fn of_objects(reason: &'static str, message: String) -> Self {
        match crate::rights::missing(&message) {
            Some(rules) => Self::new(
                reason::FORBIDDEN,
                format!(
                    "The operator lacks rights: {rules}. Grant them to it, see docs/operator.md ({message})"
                ),
            ),
            None if message.contains("is forbidden") => Self::new(reason::FORBIDDEN, message),
            None => Self::new(reason, message),
        }
        .retried()
    }
}

/// How long a message may be. The schema allows more, but a list of objects prints all of them.
const LONGEST_MESSAGE: usize = 16 << 10;

/// A message that is not too long.
pub fn clamped(message: String) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message;
    }
    let at = message.floor_char_boundary(LONGEST_MESSAGE);
    let left = message[at..].chars().count();
    format!("{} … and {left} more characters", &message[..at])
}

fn in_words<'a, T: std::fmt::Display + 'a>(problems: impl IntoIterator<Item = &'a T>) -> String {
    problems.into_iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use capstan_lifecycle::upgrade::Stopped;

    use super::*;

    fn stopped(not_started: Option<UpgradeError>) -> Stopped {
        Stopped { label: "infrastructure-aws".to_owned(), is_defined: true, not_started, not_unmarked: None }
    }

    #[test]
    fn a_failure_says_what_it_concerns() {
        let version = || "v1.0.0".to_owned();
        let plain = Trouble::new(reason::INSTALL_FAILED, "m");
        let invalid = Trouble::new(reason::FETCH_CONFIG_INVALID, "m");
        let cut_off = Trouble::of_upgrade_error(&UpgradeError::CutOff, reason::COMPONENTS_UPGRADE);
        for (what, trouble, step, type_, then) in [
            (
                "an installation",
                &plain,
                Step::Install { version: version() },
                Some(condition::INSTALLED),
                Then::Rest,
            ),
            (
                "an upgrade",
                &plain,
                Step::Upgrade { version: version() },
                Some(condition::UPGRADED),
                Then::Rest,
            ),
            (
                "the spec",
                &invalid,
                Step::Upgrade { version: version() },
                Some(condition::PREFLIGHT),
                Then::Rest,
            ),
            ("a comparison", &plain, Step::Verify { version: version() }, None, Then::Again(RETRY)),
            (
                "a process that stops",
                &cut_off,
                Step::Upgrade { version: version() },
                None,
                Then::Again(RETRY),
            ),
            ("a process that stops", &cut_off, Step::Apply { version: version() }, None, Then::Again(RETRY)),
        ] {
            let outcome = Outcome::failed(trouble.clone(), &step);
            let found: Vec<&str> = outcome.reports.iter().map(|it| it.type_.as_str()).collect();
            assert_eq!((found, outcome.then), (Vec::from_iter(type_), then), "{what}");
        }
    }

    #[test]
    fn controllers_that_do_not_run_again_are_reported() {
        let failed = |error, not_started| Failed {
            error,
            stopped: Some(stopped(not_started)),
            others: Vec::new(),
            waiting: Vec::new(),
            upgraded: Vec::new(),
        };
        let quiet =
            Trouble::of_failed_upgrade(&failed(UpgradeError::CutOff, None), reason::COMPONENTS_UPGRADE);
        assert!(quiet.is_cut_off);
        let loud = failed(UpgradeError::CutOff, Some(UpgradeError::NothingInstalled));
        let loud = Trouble::of_failed_upgrade(&loud, reason::COMPONENTS_UPGRADE);
        assert!(!loud.is_cut_off);
        assert_eq!(
            loud.message,
            "the upgrade was stopped before its end; its controllers do not run again: no providers are installed"
        );
    }

    #[test]
    fn the_contract_of_core_is_asked_for_again_where_it_could_not_be_read() {
        let unknown =
            || InstallProblem::UnknownContract { core: "cluster-api".to_owned(), reason: "503".to_owned() };
        let trouble = Trouble::of_install(&[unknown()]).unwrap();
        assert_eq!((trouble.reason, trouble.then), (reason::CONTRACT_MISMATCH, Then::Again(RETRY)));
    }

    #[test]
    fn no_message_is_too_long() {
        assert_eq!(clamped("short".to_owned()), "short");
        let long = clamped("ä".repeat(20_000));
        assert!(long.len() < 17 << 10 && long.ends_with("ä … and 11808 more characters"), "{}", long.len());
    }
}
