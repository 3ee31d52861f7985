//! What an object's status says, in the words of every contract that its version speaks.

use capstan_api::{
    cluster::v1beta2::FailureDomain,
    conditions::Report,
    contract::{ContractVersion, InfraClusterWriter},
};
use capstan_runtime::patch::merge_diff;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    kind::{Domains, FailureAt, Shape},
    provider::{Failure, Infrastructure, Wait},
    record::Record,
};

/// The condition that core mirrors.
const READY: &str = "Ready";
const PAUSED: &str = "Paused";
/// Characters; what is longer is cut off.
const LONGEST_MESSAGE: usize = 4096;

/// The status to be, made from the one that is: what the contract does not know stays.
pub(crate) struct StatusDraft<'a, S> {
    object: &'a Record<S>,
    shape: Shape,
    now: Timestamp,
    /// An object with the status in it, so that paths are the contract's.
    draft: Value,
}

impl<'a, S> StatusDraft<'a, S> {
    pub(crate) fn new(object: &'a Record<S>, shape: Shape, now: Timestamp) -> Self {
        let status = if object.status.is_object() { object.status.clone() } else { json!({}) };
        Self { object, shape, now, draft: json!({ "status": status }) }
    }

    /// The infrastructure is complete.
    pub(crate) fn provisioned(mut self, made: &Infrastructure) -> Self {
        for (there, contract) in
            [(self.shape.provisioned, ContractVersion::V1Beta2), (self.shape.ready, ContractVersion::V1Beta1)]
        {
            if there {
                InfraClusterWriter::new(&mut self.draft, contract).set_provisioned(true);
            }
        }
        self.failure_domains(&made.failure_domains);
        for report in [Report::new(READY, true, READY), Report::new(PAUSED, false, "NotPaused")] {
            if made.conditions.iter().all(|own| own.type_ != report.type_) {
                self.say(&report);
            }
        }
        for report in &made.conditions {
            self.say(report);
        }
        self
    }

    /// Something is awaited, while it is made or while it is taken down.
    pub(crate) fn waiting(mut self, wait: &Wait) -> Self {
        self.say(&Report::new(READY, false, &wait.reason).with_message(&wait.message));
        self.say(&Report::new(PAUSED, false, "NotPaused"));
        self
    }

    /// Nothing is done.
    pub(crate) fn paused(mut self, why: &[String]) -> Self {
        self.say(&Report::new(PAUSED, true, PAUSED).with_message(why.join(", ")));
        self
    }

    /// It will never be.
    pub(crate) fn failed(mut self, failure: &Failure) -> Self {
        let place = match self.shape.failure {
            Some(FailureAt::Status) => Some(&mut self.draft["status"]),
            Some(FailureAt::Deprecated) => Some(&mut self.draft["status"]["deprecated"]["v1beta1"]),
            None => None,
        };
        if let Some(place) = place {
            if !place.is_object() {
                *place = json!({});
            }
            place["failureReason"] = json!(failure.reason);
            place["failureMessage"] = json!(failure.message);
        }
        self.waiting(&Wait::new(&failure.reason, &failure.message))
    }

    /// The patch for it, guarded by the version that it was made from; nothing if nothing differs.
    pub(crate) fn patch(mut self) -> Option<Value> {
        let status = merge_diff(&or_empty(&self.object.status), self.draft["status"].take())?;
        let version = &self.object.metadata.resource_version;
        Some(json!({"metadata": {"resourceVersion": version}, "status": status}))
    }

    fn failure_domains(&mut self, domains: &[FailureDomain]) {
        let contract = match self.shape.failure_domains {
            Some(Domains::List) => ContractVersion::V1Beta2,
            Some(Domains::Map) => ContractVersion::V1Beta1,
            None => return,
        };
        if domains.is_empty() {
            if let Some(status) = self.draft["status"].as_object_mut() {
                status.remove("failureDomains");
            }
        } else {
            InfraClusterWriter::new(&mut self.draft, contract).set_failure_domains(domains);
        }
    }

    fn say(&mut self, report: &Report) {
        if !self.shape.conditions {
            return;
        }
        let list = &mut self.draft["status"]["conditions"];
        if !list.is_array() {
            *list = json!([]);
        }
        let Some(list) = list.as_array_mut() else { return };
        let known = list.iter().position(|condition| condition["type"] == report.type_.as_str());
        let before = known.map(|place| &list[place]);
        // The time of the last transition changes only with the status.
        let since = before
            .filter(|it| it["status"] == report.status.as_str())
            .and_then(|it| it["lastTransitionTime"].as_str())
            .map_or_else(|| whole_seconds(report.since.unwrap_or(self.now)), ToOwned::to_owned);
        let mut next = Map::new();
        next.insert("type".to_owned(), json!(report.type_));
        next.insert("status".to_owned(), json!(report.status));
        next.insert("lastTransitionTime".to_owned(), json!(since));
        next.insert("reason".to_owned(), json!(word(&report.reason)));
        if self.shape.message_required || !report.message.is_empty() {
            let message: String = report.message.chars().take(LONGEST_MESSAGE).collect();
            next.insert("message".to_owned(), json!(message));
        }
        if let (true, Some(generation)) = (self.shape.observed_generation, self.object.metadata.generation) {
            next.insert("observedGeneration".to_owned(), json!(generation));
        }
        match known {
            Some(place) => list[place] = Value::Object(next),
            None => list.push(Value::Object(next)),
        }
    }
}

/// Whether a failure that cannot be recovered from is on record.
pub(crate) fn is_failed(status: &Value) -> bool {
    [status, &status["deprecated"]["v1beta1"]].into_iter().any(|place| {
        ["failureReason", "failureMessage"]
            .into_iter()
            .any(|name| place[name].as_str().is_some_and(|text| !text.is_empty()))
    })
}

/// Whether the status says that all was there once.
pub(crate) fn was_provisioned(status: &Value) -> bool {
    status["initialization"]["provisioned"] == true || status["ready"] == true
}

fn or_empty(status: &Value) -> Value {
    if status.is_object() { status.clone() } else { json!({}) }
}

/// A reason that the API server accepts: what an author says must not keep the status from being written.
fn word(reason: &str) -> String {
    let mut word: String =
        reason.chars().filter(|it| it.is_ascii_alphanumeric() || *it == '_').take(256).collect();
    if !word.starts_with(|first: char| first.is_ascii_alphabetic()) {
        word.insert_str(0, "Unknown");
    }
    word.trim_end_matches('_').to_owned()
}

/// Kubernetes' times have no fractions.
fn whole_seconds(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Shape = Shape {
        provisioned: true,
        ready: false,
        failure_domains: Some(Domains::List),
        failure: Some(FailureAt::Deprecated),
        conditions: true,
        observed_generation: true,
        message_required: true,
    };
    const OLD: Shape = Shape {
        provisioned: false,
        ready: true,
        failure_domains: Some(Domains::Map),
        failure: Some(FailureAt::Status),
        conditions: true,
        observed_generation: false,
        message_required: false,
    };

    fn record(status: Value) -> Record<()> {
        let mut record = Record { status, ..Record::default() };
        record.metadata.generation = Some(3);
        record
    }

    fn at(second: u32) -> Timestamp {
        format!("2026-01-01T00:00:{second:02}.5Z").parse().unwrap()
    }

    fn made() -> Infrastructure {
        let domain = |name: &str| FailureDomain { name: name.into(), ..FailureDomain::default() };
        Infrastructure { failure_domains: vec![domain("a"), domain("b")], ..Infrastructure::default() }
    }

    #[test]
    fn both_contracts_get_their_own_words() {
        let object = record(Value::Null);
        let new = StatusDraft::new(&object, NEW, at(1)).provisioned(&made()).patch().unwrap();
        assert_eq!(new["status"]["initialization"], json!({"provisioned": true}));
        assert_eq!(new["status"]["failureDomains"][1]["name"], "b");
        assert_eq!(
            new["status"]["conditions"][0],
            json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 3,
                   "lastTransitionTime": "2026-01-01T00:00:01Z"})
        );
        assert!(new["status"].get("ready").is_none());

        let old = StatusDraft::new(&object, OLD, at(1)).provisioned(&made()).patch().unwrap();
        assert_eq!(old["status"]["ready"], true);
        assert_eq!(old["status"]["failureDomains"]["b"], json!({"controlPlane": false}));
        assert!(old["status"]["conditions"][0].get("observedGeneration").is_none());
    }

    #[test]
    fn a_status_that_is_right_is_not_written_again() {
        for shape in [NEW, OLD] {
            let mut object = record(json!({"mine": 1}));
            let patch = StatusDraft::new(&object, shape, at(1)).provisioned(&made()).patch().unwrap();
            for (name, value) in patch["status"].as_object().unwrap() {
                object.status[name] = value.clone();
            }
            assert_eq!(object.status["mine"], 1);
            assert_eq!(StatusDraft::new(&object, shape, at(9)).provisioned(&made()).patch(), None);
            let wait = Wait::new("Slow", "still");
            let patch = StatusDraft::new(&object, shape, at(9)).waiting(&wait).patch().unwrap();
            let ready = &patch["status"]["conditions"][0];
            assert_eq!(
                (&ready["reason"], &ready["lastTransitionTime"]),
                (&json!("Slow"), &json!("2026-01-01T00:00:09Z"))
            );
            assert!(patch["status"].get("initialization").is_none(), "what was reached stays");
        }
    }

    #[test]
    fn what_an_author_says_takes_the_place_of_what_is_said_anyway() {
        let degraded = Report::new("Ready", false, "1 degraded!").with_message("x".repeat(5000));
        let made = Infrastructure { conditions: vec![degraded], ..Infrastructure::default() };
        let mut object = record(Value::Null);
        let patch = StatusDraft::new(&object, NEW, at(1)).provisioned(&made).patch().unwrap();
        object.status = patch["status"].clone();
        let ready =
            object.status["conditions"].as_array().unwrap().iter().find(|it| it["type"] == "Ready").unwrap();
        assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("Unknown1degraded")));
        assert_eq!(ready["message"].as_str().unwrap().len(), LONGEST_MESSAGE);
        assert_eq!(StatusDraft::new(&object, NEW, at(9)).provisioned(&made).patch(), None, "and is settled");
    }

    #[test]
    fn a_failure_is_told_where_the_version_has_room_for_it() {
        let failure = Failure { reason: "Broken".into(), message: "for good".into() };
        let object = record(Value::Null);
        let new = StatusDraft::new(&object, NEW, at(1)).failed(&failure).patch().unwrap();
        assert_eq!(new["status"]["deprecated"]["v1beta1"]["failureReason"], "Broken");
        let old = StatusDraft::new(&object, OLD, at(1)).failed(&failure).patch().unwrap();
        assert_eq!(old["status"]["failureMessage"], "for good");
        for patch in [new, old] {
            assert!(is_failed(&patch["status"]));
            assert_eq!(patch["status"]["conditions"][0]["reason"], "Broken");
        }
        assert!(!is_failed(&json!({"failureReason": ""})));
    }
}
