//! What came of a step: conditions, and when to look again.

use std::time::Duration;

use capstan_api::{
    conditions::Report,
    operator::{condition, reason},
};
use capstan_lifecycle::{
    install::InstallProblem,
    release::ReleaseError,
    upgrade::{UpgradeError, UpgradeProblem},
};

/// How long to wait before something is tried again that no event announces, such as a right that an admin grants.
pub const RETRY: Duration = Duration::from_secs(10);

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

    /// A condition is False.
    pub fn failed(trouble: Trouble, unless_preflight: &'static str) -> Self {
        let type_ = if trouble.is_preflight { condition::PREFLIGHT } else { unless_preflight };
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
    /// When to look again.
    pub then: Then,
}

impl Trouble {
    /// Trouble that an edit of an input ends.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), is_preflight: false, then: Then::Rest }
    }

    /// The same, tried again after a while.
    #[must_use]
    pub fn retried(self) -> Self {
        Self { then: Then::Again(RETRY), ..self }
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
        let first = problems.first()?;
        Some(if has(is_contract) {
            Self::new(reason::CONTRACT_MISMATCH, text(is_contract)).preflight()
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
            error => Self::of_objects(reason, error.to_string()),
        }
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

fn in_words<'a, T: std::fmt::Display + 'a>(problems: impl IntoIterator<Item = &'a T>) -> String {
    problems.into_iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
