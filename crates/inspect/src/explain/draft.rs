//! Findings in the making.

use std::fmt::Display;

use capstan_api::conditions::Report;
use jiff::Timestamp;
use serde_json::Value;

use super::{
    commands,
    controllers::{Controller, controller},
    finding::{CommandPurpose, ConditionSeen, ExplainProblem, Finding, FindingCommand},
    inspector::Inspector,
    snapshot::ExplainSnapshot,
};
use crate::fields;
use capstan_management::ObjectRef;

/// A finding, and the object that its conditions, times and commands are taken from.
pub(crate) struct Draft<'a, 'o> {
    snapshot: &'a ExplainSnapshot,
    now: Timestamp,
    source: &'o Value,
    finding: Finding,
}

impl<'a> Inspector<'a> {
    /// A finding with an object as its subject: `predicate` follows the object's name.
    pub(crate) fn finding<'o>(
        &self,
        problem: ExplainProblem,
        object: &'o Value,
        predicate: impl Display,
    ) -> Draft<'a, 'o> {
        self.sentence(problem, object, format!("{} {predicate}", self.title(object)))
    }

    /// A finding with a sentence of its own.
    pub(crate) fn sentence<'o>(
        &self,
        problem: ExplainProblem,
        object: &'o Value,
        sentence: String,
    ) -> Draft<'a, 'o> {
        let finding = Finding {
            problem,
            object: ObjectRef::of(object),
            sentence,
            condition: None,
            since: None,
            controller: None,
            commands: Vec::new(),
        };
        Draft { snapshot: self.snapshot, now: self.now, source: object, finding }
    }
}

impl Draft<'_, '_> {
    /// The object concerned, where it is not the source.
    pub(crate) fn about(mut self, object: ObjectRef) -> Self {
        self.finding.object = object;
        self
    }

    pub(crate) fn since(mut self, since: Option<Timestamp>) -> Self {
        self.finding.since = since.or(self.finding.since);
        self
    }

    pub(crate) fn since_created(self) -> Self {
        let created = fields::created(self.source);
        self.since(created)
    }

    pub(crate) fn since_deleted(self) -> Self {
        let deleted = fields::deleted(self.source);
        self.since(deleted)
    }

    /// With a condition, and since when it holds.
    pub(crate) fn condition(mut self, report: Option<&Report>) -> Self {
        self.finding.condition = report.map(ConditionSeen::from);
        self.since(report.and_then(|it| it.since))
    }

    /// With the source's condition of a type.
    pub(crate) fn reported(self, type_: &str) -> Self {
        let report = fields::report(self.source, type_);
        self.condition(report.as_ref())
    }

    /// With the source's controller.
    pub(crate) fn controller(mut self) -> Self {
        self.finding.controller = Some(controller(self.snapshot, self.source, self.now));
        self
    }

    /// With the command that shows the last log lines of the controller, if it runs.
    pub(crate) fn logs(self) -> Self {
        match self.finding.controller.as_ref().and_then(Controller::logs) {
            Some(command) => self.look(command),
            None => self,
        }
    }

    /// With the command that shows the source.
    pub(crate) fn describe(self) -> Self {
        let command = commands::describe(self.snapshot, self.source);
        self.look(command)
    }

    /// With the command that patches the source.
    pub(crate) fn patch(self, patch: &Value) -> Self {
        let command = commands::patch(self.snapshot, self.source, patch);
        self.go_on(command)
    }

    pub(crate) fn look(self, command: String) -> Self {
        self.with(CommandPurpose::Look, command)
    }

    pub(crate) fn go_on(self, command: String) -> Self {
        self.with(CommandPurpose::GoOn, command)
    }

    /// Adds the finding.
    pub(crate) fn add_to(self, inspector: &mut Inspector<'_>) {
        inspector.add(self.finding);
    }

    /// Adds a finding that concerns many objects, for the first of them.
    pub(crate) fn add_once_to(self, inspector: &mut Inspector<'_>) {
        inspector.add_once(self.finding);
    }

    fn with(mut self, purpose: CommandPurpose, command: String) -> Self {
        self.finding.commands.push(FindingCommand { purpose, command });
        self
    }
}
