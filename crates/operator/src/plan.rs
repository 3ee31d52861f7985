//! What to do next for a provider object: a pure function of a snapshot.

use capstan_api::{
    conditions::{self, Condition, ConditionStatus, Report},
    operator::{change_problems, condition, problems, reason},
};

use crate::{
    gates::{self, Refusal},
    record::ProviderRecord,
    snapshot::{Scale, Snapshot},
};

/// The next step for a provider object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing, until something changes.
    Rest,
    /// Add the finalizer.
    Hold,
    /// Find the latest version and write it to the spec.
    FindVersion,
    /// Write this version to the spec.
    SetVersion(String),
    /// Take over what is installed already: only the status is written.
    Adopt {
        /// The installed version.
        version: String,
    },
    /// Install a version.
    Install {
        /// The version.
        version: String,
    },
    /// Upgrade to a version.
    Upgrade {
        /// The version.
        version: String,
    },
    /// Apply the installed version again, since the spec changed.
    Apply {
        /// The version.
        version: String,
    },
    /// Compare what is installed with the release, and heal what others changed.
    Verify {
        /// The version.
        version: String,
    },
    /// Scale the Deployments to 0.
    Pause,
    /// Apply the installed version again and scale the Deployments to what they were.
    Unpause {
        /// The version.
        version: String,
    },
    /// Delete the provider, unless it is used.
    Delete,
    /// Remove the finalizer: nothing is installed for the object.
    Release,
}

/// What to do, and what to report meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The next step.
    pub step: Step,
    /// Conditions to report.
    pub reports: Vec<Report>,
    /// Conditions that do not apply any more.
    pub obsolete: Vec<&'static str>,
}

impl Step {
    /// Whether it writes something else than the provider object: one provider at a time does.
    pub fn needs_turn(&self) -> bool {
        match self {
            Self::Rest | Self::Hold | Self::FindVersion | Self::SetVersion(_) | Self::Release => false,
            Self::Adopt { .. }
            | Self::Install { .. }
            | Self::Upgrade { .. }
            | Self::Apply { .. }
            | Self::Verify { .. }
            | Self::Pause
            | Self::Unpause { .. }
            | Self::Delete => true,
        }
    }
}

impl Plan {
    fn new(step: Step) -> Self {
        Self { step, reports: Vec::new(), obsolete: Vec::new() }
    }

    fn report(mut self, report: Report) -> Self {
        self.reports.push(report);
        self
    }

    fn without(mut self, condition: &'static str) -> Self {
        self.obsolete.push(condition);
        self
    }
}

/// Decides the next step.
pub fn decide(snapshot: &Snapshot) -> Plan {
    let provider = &*snapshot.provider;
    if provider.is_deleting() {
        return delete(snapshot);
    }
    if !is_held(provider) {
        return Plan::new(Step::Hold);
    }
    if let Some(refusal) = gates::duplicate(snapshot) {
        return refuse(refusal);
    }
    // What is wrong with the rest of the spec keeps no provider from being paused.
    if is_to_be_paused(snapshot) {
        return Plan::new(Step::Pause);
    }
    if let Some(refusal) = invalid(snapshot) {
        return refuse(refusal);
    }
    match snapshot.installed() {
        None => install(snapshot),
        Some(installed) if provider.status.installed_version.as_deref() != Some(&installed.version) => {
            Plan::new(Step::Adopt { version: installed.version.clone() })
        }
        Some(installed) => keep(snapshot, &installed.version, installed.upgrading_to.as_deref()),
    }
}

/// Whether anything of an installed provider still runs that is to be paused, or its status does not say yet that nothing
/// does.
fn is_to_be_paused(snapshot: &Snapshot) -> bool {
    let provider = &*snapshot.provider;
    let is_done = snapshot.scale() == Scale::Down && provider.is_scaled_down();
    provider.spec.paused && snapshot.installed().is_some() && !is_done
}

/// What to do for a provider that is not installed.
fn install(snapshot: &Snapshot) -> Plan {
    let provider = &*snapshot.provider;
    if provider.spec.paused {
        let message = "Paused providers are not installed: set spec.paused to false";
        return refuse(Refusal { reason: reason::PAUSED, message: message.to_owned() })
            .report(paused("The provider is paused before it was installed"));
    }
    if let Some(refusal) = gates::installed_elsewhere(snapshot).or_else(|| gates::waits_for_core(snapshot)) {
        return refuse(refusal).without(condition::PAUSED);
    }
    match provider.spec.version.clone().filter(|it| !it.is_empty()) {
        None => Plan::new(Step::FindVersion),
        Some(version) => Plan::new(Step::Install { version }),
    }
    .without(condition::PAUSED)
}

/// What to do for a provider that is installed.
fn keep(snapshot: &Snapshot, installed: &str, upgrading_to: Option<&str>) -> Plan {
    let provider = &*snapshot.provider;
    let Some(wanted) = provider.spec.version.clone().filter(|it| !it.is_empty()) else {
        return Plan::new(Step::SetVersion(installed.to_owned()));
    };
    if let Some(refusal) = gates::downgrade(provider, installed, &wanted) {
        return refuse(refusal);
    }
    if wanted != installed || upgrading_to.is_some() {
        // The contract is known once the release was fetched.
        let contract = snapshot.wanted_contract.as_deref();
        return match contract.and_then(|it| gates::contract_upgrade(snapshot, it)) {
            Some(refusal) => refuse(refusal),
            None => Plan::new(Step::Upgrade { version: wanted }),
        };
    }
    let plan = |step| settled(Plan::new(step), provider);
    let version = installed.to_owned();
    match snapshot.scale() {
        Scale::Down if provider.spec.paused => {
            return plan(Step::Rest).report(paused("The provider's Deployments are scaled to 0"));
        }
        Scale::Down => {
            return match gates::unpause(snapshot) {
                Some(refusal) => plan(Step::Rest).report(
                    Report::new(condition::PAUSED, true, refusal.reason).with_message(refusal.message),
                ),
                None => plan(Step::Unpause { version }),
            };
        }
        // What was begun is ended: something runs already.
        Scale::Partly => return plan(Step::Unpause { version }),
        Scale::Up if provider.is_scaled_down() => return plan(Step::Unpause { version }),
        Scale::Up => {}
    }
    if !provider.is_applied() {
        return plan(Step::Apply { version });
    }
    // Drift that was only reported is healed once that is allowed.
    let is_reported = conditions::is_true(&provider.status.conditions, condition::DRIFTED);
    let is_due = snapshot.is_unverified || (is_reported && !provider.only_reports_drift());
    plan(if is_due { Step::Verify { version } } else { Step::Rest }).without(condition::PAUSED)
}

/// What to do for an object that is being deleted.
fn delete(snapshot: &Snapshot) -> Plan {
    let provider = &*snapshot.provider;
    if !is_held(provider) {
        return Plan::new(Step::Rest);
    }
    // An object that never came first owns nothing.
    let is_installed = snapshot.installed().is_some();
    if !is_installed
        && (gates::duplicate(snapshot).is_some() || gates::installed_elsewhere(snapshot).is_some())
    {
        return Plan::new(Step::Release);
    }
    // A provider that is used runs on until it is deleted, and a change of the contract waits for it.
    if is_to_be_paused(snapshot) {
        return Plan::new(Step::Pause);
    }
    if is_installed
        && !provider.is_deletion_forced()
        && let Some(refusal) = gates::needs_core(snapshot)
    {
        return Plan::new(Step::Rest).report(blocked(refusal.message));
    }
    Plan::new(Step::Delete)
}

/// Whether the object carries the operator's finalizer.
fn is_held(provider: &ProviderRecord) -> bool {
    let finalizers = provider.metadata.finalizers.as_deref().unwrap_or_default();
    finalizers.iter().any(|it| it == capstan_api::operator::FINALIZER)
}

/// What is wrong with the object itself.
fn invalid(snapshot: &Snapshot) -> Option<Refusal> {
    let provider = &*snapshot.provider;
    if let Some(message) = &provider.malformed {
        return Some(Refusal { reason: reason::INVALID_SPEC, message: message.clone() });
    }
    let mut problems = problems(provider.kind, &provider.key.name, &provider.spec);
    // The schema and the webhook refuse this as well, where they are in force.
    problems.extend(snapshot.applied.iter().flat_map(|it| change_problems(it, &provider.spec)));
    let reason = problems.first()?.reason();
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    Some(Refusal { reason, message: texts.join("; ") })
}

fn refuse(refusal: Refusal) -> Plan {
    Plan::new(Step::Rest)
        .report(Report::new(condition::PREFLIGHT, false, refusal.reason).with_message(refusal.message))
}

/// All preflight checks passed.
pub fn passed() -> Report {
    Report::new(condition::PREFLIGHT, true, reason::PREFLIGHT_CHECKS_PASSED)
        .with_message("All preflight checks passed")
}

/// The provider is paused.
pub fn paused(message: &str) -> Report {
    Report::new(condition::PAUSED, true, reason::PAUSED).with_message(message)
}

/// The provider cannot be deleted.
pub fn blocked(message: String) -> Report {
    Report::new(condition::DELETION_BLOCKED, true, reason::IN_USE).with_message(message)
}

/// Takes away what says that something is under way: a refusal says that it is not.
pub fn forget_progress(conditions: &mut Vec<Condition>) {
    if conditions::is_false(conditions, condition::PREFLIGHT) {
        let is_progress = |it: &Condition| {
            it.reason == reason::IN_PROGRESS
                && [condition::INSTALLED, condition::UPGRADED].contains(&it.type_.as_str())
        };
        conditions.retain(|it| !is_progress(it));
    }
}

/// Whether a version that is installed is that of an upgrade whose end was not reported.
pub fn ended_upgrade(provider: &ProviderRecord, version: &str) -> bool {
    conditions::is_false(&provider.status.conditions, condition::UPGRADED)
        && provider.spec.version.as_deref() == Some(version)
}

/// Nothing is wanted that failed before: a failed upgrade that was taken back is forgotten.
fn settled(plan: Plan, provider: &ProviderRecord) -> Plan {
    let plan = plan.report(passed());
    match provider.condition(condition::UPGRADED) {
        Some(it) if it.status == ConditionStatus::False => plan.without(condition::UPGRADED),
        _ => plan,
    }
}

/// Whether the provider serves: installed as wanted, all Deployments available.
pub fn ready(snapshot: &Snapshot, conditions: &[Condition]) -> Report {
    let provider = &*snapshot.provider;
    let report =
        |reason: &str, message: String| Report::new(condition::READY, false, reason).with_message(message);
    if provider.is_deleting() {
        return report(reason::DELETING, "The provider is being deleted".to_owned());
    }
    let failed =
        [condition::PREFLIGHT, condition::INSTALLED, condition::UPGRADED].into_iter().find_map(|type_| {
            conditions::get(conditions, type_).filter(|it| it.status == ConditionStatus::False)
        });
    if let Some(failed) = failed {
        return report(&failed.reason, failed.message.clone());
    }
    if !conditions::is_true(conditions, condition::INSTALLED) {
        return report(reason::IN_PROGRESS, "The provider is not installed yet".to_owned());
    }
    if let Some(paused) = conditions::get(conditions, condition::PAUSED) {
        return report(&paused.reason, paused.message.clone());
    }
    let unavailable = snapshot.unavailable();
    if unavailable.is_empty() {
        Report::new(condition::READY, true, reason::AVAILABLE).with_message("All Deployments are available")
    } else {
        report(reason::NOT_AVAILABLE, unavailable.join("; "))
    }
}

#[cfg(test)]
mod tests;
