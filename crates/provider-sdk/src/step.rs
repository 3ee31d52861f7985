//! What the contract says is to be done next.

use capstan_api::{
    cluster::v1beta2::ApiEndpoint,
    contract::{is_paused, owned_by_cluster},
};
use capstan_runtime::ObjectKey;
use serde_json::{Value, json};

use crate::{
    identity::{ID_ANNOTATION, InfrastructureId},
    provider::{EndpointSource, Owner},
    record::Record,
    report::is_failed,
};

/// The next thing to do about an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// It is none of our business, now or at all.
    Leave,
    /// Say that nothing is done, and why.
    Pause(Vec<String>),
    /// Put finalizer and id on record, before anything is made.
    Begin(Value),
    /// Say that the endpoint is awaited.
    AwaitEndpoint,
    /// Make the infrastructure.
    Provision(InfrastructureId, Option<ApiEndpoint>),
    /// Take the infrastructure down, then let the object go.
    Deprovision(InfrastructureId),
    /// There is nothing that could be taken down: let the object go.
    Release,
}

/// Decides the next step.
pub(crate) fn next_step<S>(
    key: &ObjectKey,
    object: &Record<S>,
    owner: Option<&Owner>,
    finalizer: &str,
    source: EndpointSource,
) -> Step {
    if object.is_externally_managed() {
        return Step::Leave;
    }
    let owned = owned_by_cluster(&object.metadata).is_some();
    let why = pause_reasons(object, owner);
    if !why.is_empty() {
        // The status of an object without owner is not read.
        return if owned { Step::Pause(why) } else { Step::Leave };
    }
    let id = InfrastructureId::of(key, &object.metadata);
    let is_copy = id.is_none() && InfrastructureId::is_recorded(&object.metadata);
    let has_finalizer = object.has_finalizer(finalizer);
    if object.is_deleting() {
        return match (has_finalizer, id) {
            (false, _) => Step::Leave,
            // The owner may be gone before its infrastructure: what has a name can still be taken down.
            (true, Some(id)) => Step::Deprovision(id),
            (true, None) if is_copy => Step::Release,
            // The annotation was removed: it held this id, unless the object was moved.
            (true, None) => Step::Deprovision(InfrastructureId::mint(key, &object.metadata)),
        };
    }
    // The Cluster's arrival is an event.
    let (true, Some(owner)) = (owned, owner) else {
        return Step::Leave;
    };
    let endpoint = object
        .endpoint
        .clone()
        .or_else(|| owner.spec.control_plane_endpoint.clone().filter(ApiEndpoint::is_valid));
    match id {
        Some(id) if has_finalizer => {
            if is_failed(&object.status) {
                // Only a new Cluster helps.
                Step::Leave
            } else if source == EndpointSource::Cluster && endpoint.is_none() {
                Step::AwaitEndpoint
            } else {
                Step::Provision(id, endpoint)
            }
        }
        // For a Cluster that goes away nothing is begun any more.
        _ if owner.metadata.deletion_timestamp.is_some() => Step::Leave,
        id => {
            let id = id.unwrap_or_else(|| InfrastructureId::mint(key, &object.metadata));
            Step::Begin(begin(object, finalizer, &id))
        }
    }
}

fn pause_reasons<S>(object: &Record<S>, owner: Option<&Owner>) -> Vec<String> {
    let mut why: Vec<String> = owner.and_then(owner_pauses).into_iter().collect();
    if is_paused(&object.metadata) {
        why.push("the object has the cluster.x-k8s.io/paused annotation".to_owned());
    }
    why
}

/// Why a Cluster keeps its infrastructure from being touched.
pub(crate) fn owner_pauses(owner: &Owner) -> Option<String> {
    match &owner.unreadable {
        Some(error) => Some(format!("the Cluster cannot be read: {error}")),
        None if owner.spec.paused == Some(true) => Some("Cluster spec.paused is set to true".to_owned()),
        None => None,
    }
}

fn begin<S>(object: &Record<S>, finalizer: &str, id: &InfrastructureId) -> Value {
    let mut patch = finalizers(object, finalizer, true);
    patch["metadata"]["annotations"] = json!({ID_ANNOTATION: id.as_str()});
    patch
}

/// The patch that takes the finalizer off, and with it our hand from the object.
pub(crate) fn release<S>(object: &Record<S>, finalizer: &str) -> Value {
    finalizers(object, finalizer, false)
}

fn finalizers<S>(object: &Record<S>, finalizer: &str, wanted: bool) -> Value {
    let mut names = object.metadata.finalizers.clone().unwrap_or_default();
    names.retain(|name| name != finalizer);
    if wanted {
        names.push(finalizer.to_owned());
    }
    json!({"metadata": {"resourceVersion": object.metadata.resource_version, "finalizers": names}})
}

/// The patch that records where the control plane can be reached.
pub(crate) fn record_endpoint<S>(object: &Record<S>, endpoint: &ApiEndpoint) -> Option<Value> {
    (object.endpoint.as_ref() != Some(endpoint)).then(|| {
        json!({
            "metadata": {"resourceVersion": object.metadata.resource_version},
            "spec": {"controlPlaneEndpoint": endpoint},
        })
    })
}

#[cfg(test)]
mod tests {
    use capstan_api::names::annotation;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
    use proptest::prelude::*;

    use super::*;

    const FINALIZER: &str = "foocluster.g.io";

    fn key() -> ObjectKey {
        ObjectKey::new("n", "a")
    }

    #[derive(Clone, Copy, Debug)]
    struct State {
        owned: bool,
        begun: bool,
        deleting: bool,
    }

    fn object(state: State) -> Record<()> {
        let owner = OwnerReference {
            api_version: "cluster.x-k8s.io/v1beta2".into(),
            kind: "Cluster".into(),
            name: "c".into(),
            uid: "u".into(),
            ..OwnerReference::default()
        };
        Record {
            metadata: ObjectMeta {
                uid: Some("first".into()),
                resource_version: Some("1".into()),
                owner_references: state.owned.then(|| vec![owner]),
                finalizers: state.begun.then(|| vec![FINALIZER.to_owned()]),
                annotations: state.begun.then(|| [(ID_ANNOTATION.to_owned(), "n/a/first".to_owned())].into()),
                deletion_timestamp: state.deleting.then(|| Time("2026-01-01T00:00:00Z".parse().unwrap())),
                ..ObjectMeta::default()
            },
            ..Record::default()
        }
    }

    fn cluster(paused: bool, endpoint: Option<(&str, i32)>) -> Owner {
        let mut owner = Owner::default();
        owner.spec.paused = Some(paused);
        owner.spec.control_plane_endpoint =
            endpoint.map(|(host, port)| ApiEndpoint { host: host.into(), port });
        owner
    }

    fn step(object: &Record<()>, owner: Option<&Owner>) -> Step {
        next_step(&key(), object, owner, FINALIZER, EndpointSource::Provider)
    }

    fn id() -> InfrastructureId {
        InfrastructureId::of(&key(), &object(State { owned: true, begun: true, deleting: false }).metadata)
            .unwrap()
    }

    #[test]
    fn the_contract_decides_the_step() {
        let fine = cluster(false, None);
        for (owned, begun, deleting, expected) in [
            (false, false, false, Step::Leave),
            (true, true, false, Step::Provision(id(), None)),
            (true, true, true, Step::Deprovision(id())),
            (true, false, true, Step::Leave),
            (false, false, true, Step::Leave),
            (false, true, false, Step::Leave),
            (false, true, true, Step::Deprovision(id())),
        ] {
            let state = State { owned, begun, deleting };
            assert_eq!(step(&object(state), Some(&fine)), expected, "{state:?}");
        }
        let Step::Begin(patch) =
            step(&object(State { owned: true, begun: false, deleting: false }), Some(&fine))
        else {
            panic!("not begun");
        };
        assert_eq!(
            patch["metadata"],
            json!({"resourceVersion": "1", "finalizers": [FINALIZER], "annotations": {ID_ANNOTATION: "n/a/first"}})
        );
    }

    #[test]
    fn nothing_is_begun_for_a_cluster_that_goes_or_is_not_known() {
        let new = object(State { owned: true, begun: false, deleting: false });
        assert_eq!(step(&new, None), Step::Leave);
        let mut going = cluster(false, None);
        going.metadata.deletion_timestamp = Some(Time("2026-01-01T00:00:00Z".parse().unwrap()));
        assert_eq!(step(&new, Some(&going)), Step::Leave);
    }

    #[test]
    fn what_has_no_id_of_its_own_is_not_taken_down() {
        let mut copied = object(State { owned: true, begun: true, deleting: true });
        copied.metadata.annotations = Some([(ID_ANNOTATION.to_owned(), "n/other/first".to_owned())].into());
        assert_eq!(step(&copied, None), Step::Release);
        copied.metadata.deletion_timestamp = None;
        let Step::Begin(patch) = step(&copied, Some(&cluster(false, None))) else { panic!("not begun anew") };
        assert_eq!(patch["metadata"]["annotations"][ID_ANNOTATION], "n/a/first");
    }

    #[test]
    fn the_recorded_endpoint_comes_first_then_the_clusters() {
        let mut begun = object(State { owned: true, begun: true, deleting: false });
        let at = |host: &str, port| Some(ApiEndpoint { host: host.into(), port });
        let users = cluster(false, Some(("10.0.0.1", 1)));
        assert_eq!(step(&begun, Some(&users)), Step::Provision(id(), at("10.0.0.1", 1)));
        begun.endpoint = at("127.0.0.1", 2);
        assert_eq!(step(&begun, Some(&users)), Step::Provision(id(), at("127.0.0.1", 2)));
        begun.endpoint = None;
        let half = cluster(false, Some(("10.0.0.1", 0)));
        assert_eq!(step(&begun, Some(&half)), Step::Provision(id(), None), "half an endpoint is none");
        let waits =
            |owner: &Owner| next_step(&key(), &begun, Some(owner), FINALIZER, EndpointSource::Cluster);
        assert_eq!(waits(&half), Step::AwaitEndpoint);
        assert_eq!(waits(&users), Step::Provision(id(), at("10.0.0.1", 1)));
    }

    #[test]
    fn a_terminal_failure_is_final_but_can_be_deleted() {
        let mut failed = object(State { owned: true, begun: true, deleting: false });
        failed.status = json!({"failureReason": "Broken"});
        assert_eq!(step(&failed, Some(&cluster(false, None))), Step::Leave);
        failed.metadata.deletion_timestamp = Some(Time("2026-01-01T00:00:00Z".parse().unwrap()));
        assert_eq!(step(&failed, Some(&cluster(false, None))), Step::Deprovision(id()));
    }

    proptest! {
        /// Whatever else is true of it: what others manage is left alone, and what is paused is not acted on.
        #[test]
        fn hands_off(owned: bool, begun: bool, deleting: bool, by_label: bool, cluster_pauses: bool, known: bool) {
            let state = State { owned, begun, deleting };
            let mut managed = object(state);
            let marks = if by_label { &mut managed.metadata.labels } else { &mut managed.metadata.annotations };
            marks.get_or_insert_default().insert(annotation::MANAGED_BY.to_owned(), "x".to_owned());
            let owner = cluster(cluster_pauses, None);
            prop_assert_eq!(step(&managed, known.then_some(&owner)), Step::Leave);

            let mut paused = object(state);
            let owner = cluster(cluster_pauses, None);
            if !cluster_pauses || !known {
                paused.metadata.annotations.get_or_insert_default().insert(annotation::PAUSED.to_owned(), String::new());
            }
            let step = step(&paused, known.then_some(&owner));
            prop_assert!(matches!(step, Step::Leave | Step::Pause(_)), "{step:?}");
            prop_assert_eq!(matches!(step, Step::Pause(_)), owned);
        }
    }
}
