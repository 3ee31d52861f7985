//! Tables: a snapshot, and what is first in the way.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Controller, ControllerState, Definition, Explanation, Problem, Purpose, Snapshot, State, explain,
};
use capstan_management::{
    ObjectRef,
    inventory::{Installed, Inventory},
};

const GROUP: &str = "infrastructure.cluster.x-k8s.io";
const NOW: &str = "2026-01-02T00:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn definition(kind: &str, group: &str, labels: &[(&str, &str)]) -> Definition {
    let plural = capstan_api::contract::plural::pluralize(&kind.to_lowercase());
    Definition {
        name: format!("{plural}.{group}"),
        group: group.to_owned(),
        plural,
        labels: labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        served: vec!["v1beta1".to_owned(), "v1beta2".to_owned()],
        converter: None,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "cases read better so")]
fn object(api_version: &str, kind: &str, name: &str, spec: Value, status: Value) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}"), "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": spec, "status": status,
    })
}

fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T12:00:00Z"})
}

fn reference(kind: &str, name: &str) -> Value {
    json!({"apiGroup": GROUP, "kind": kind, "name": name})
}

/// A Cluster that was seen by core, on a FooCluster that is not done.
fn snapshot() -> Snapshot {
    let mut snapshot = Snapshot {
        cluster: object(
            "cluster.x-k8s.io/v1beta2",
            "Cluster",
            "c",
            json!({
                "infrastructureRef": reference("FooCluster", "c"), "controlPlaneRef": reference("FooPlane", "c"),
                "controlPlaneEndpoint": {"host": "h", "port": 6443},
            }),
            json!({"phase": "Provisioning", "conditions": [condition("Available", "False", "NotAvailable")]}),
        ),
        objects: vec![
            object(&format!("{GROUP}/v1beta2"), "FooCluster", "c", json!({}), json!({})),
            object(&format!("{GROUP}/v1beta2"), "FooPlane", "c", json!({"version": "v1.33.0"}), json!({})),
        ],
        deployments: Some(Vec::new()),
        ..Snapshot::default()
    };
    for kind in ["FooCluster", "FooPlane", "FooMachine", "FooConfig"] {
        let it = definition(kind, GROUP, &[("cluster.x-k8s.io/v1beta2", "v1beta2")]);
        snapshot.definitions.insert(it.name.clone(), it);
    }
    snapshot
}

/// The same, all done.
fn healthy() -> Snapshot {
    let mut it = snapshot();
    it.cluster["status"] = json!({
        "phase": "Provisioned",
        "initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true},
        "conditions": [condition("Available", "True", "Available")],
    });
    it.objects[0]["status"] = json!({"initialization": {"provisioned": true}});
    it.objects[1]["status"] = json!({"initialization": {"controlPlaneInitialized": true}});
    it
}

fn problems(explanation: &Explanation) -> Vec<Problem> {
    explanation.findings.iter().map(|it| it.problem).collect()
}

fn explained(snapshot: &Snapshot) -> Explanation {
    explain(snapshot, "capstan", now())
}

fn deployment(provider: &str, replicas: i64, available: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "foo-system", "name": "foo", "labels": {"cluster.x-k8s.io/provider": provider}},
        "spec": {"replicas": replicas}, "status": {"availableReplicas": available},
    })
}

fn belongs_to(snapshot: &mut Snapshot, kind: &str, provider: &str) {
    let it = snapshot.definitions.values_mut().find(|it| it.name.starts_with(&kind.to_lowercase())).unwrap();
    it.labels.insert("cluster.x-k8s.io/provider".to_owned(), provider.to_owned());
}

fn machine(spec: Value, status: Value) -> Value {
    let mut machine = object("cluster.x-k8s.io/v1beta2", "Machine", "m", spec, status);
    machine["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": "c"});
    machine
}

#[test]
fn a_cluster_without_trouble_is_called_so() {
    let explanation = explained(&healthy());
    assert_eq!((explanation.state, problems(&explanation)), (State::Available, Vec::new()));
    assert_eq!(explanation.summary, "Cluster ns/c is available. Nothing is in its way.");
    assert_eq!(explanation.since.unwrap().to_string(), "2026-01-01T12:00:00Z");
}

#[test]
fn the_first_in_the_order_of_dependence_is_the_answer() {
    use Problem::*;
    let change = |change: &dyn Fn(&mut Snapshot)| {
        let mut it = snapshot();
        change(&mut it);
        problems(&explained(&it))
    };
    let waiting = [InfrastructureNotReady, ControlPlaneNotInitialized];
    assert_eq!(change(&|_| {}), waiting);
    assert_eq!(change(&|it| it.cluster["spec"]["paused"] = json!(true)), [&[Paused], &waiting[..]].concat());
    assert_eq!(
        change(&|it| it.objects[0]["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""})),
        [PausedByAnnotation, ControlPlaneNotInitialized]
    );
    assert_eq!(change(&|it| drop(it.objects.remove(0))), [ObjectMissing, ControlPlaneNotInitialized]);
    assert_eq!(
        change(&|it| drop(it.definitions.remove("fooclusters.infrastructure.cluster.x-k8s.io"))),
        [KindNotInstalled, ControlPlaneNotInitialized]
    );
    // What nobody can look at is not called missing.
    assert_eq!(
        change(&|it| {
            it.objects.remove(0);
            it.unreadable.push(super::Unreadable {
                what: ObjectRef {
                    api_version: format!("{GROUP}/v1beta2"),
                    kind: "FooCluster".to_owned(),
                    namespace: Some("ns".to_owned()),
                    name: "c".to_owned(),
                },
                reason: "forbidden".to_owned(),
            });
        }),
        [Unreadable, ControlPlaneNotInitialized]
    );
    assert_eq!(
        change(&|it| it.cluster["spec"]["topology"] = json!({"classRef": {"name": "x"}})),
        [&[ClusterClassMissing], &waiting[..]].concat()
    );
    assert_eq!(
        change(&|it| it.objects[0]["metadata"]["deletionTimestamp"] = json!(NOW)),
        [ObjectDeleting, ControlPlaneNotInitialized]
    );
    // A controller that is down is in the way only of what waits for it.
    assert_eq!(
        change(&|it| {
            belongs_to(it, "FooPlane", "control-plane-foo");
            it.deployments = Some(vec![deployment("control-plane-foo", 0, 0)]);
        }),
        [InfrastructureNotReady, ControllerScaledToZero, ControlPlaneNotInitialized]
    );
}

#[test]
fn final_failures_count_only_where_the_contract_knows_them() {
    let failure = json!({"failureReason": "Quota", "failureMessage": "none left"});
    for (contract, expected) in
        [("v1beta1", Problem::TerminalFailure), ("v1beta2", Problem::InfrastructureNotReady)]
    {
        let mut it = snapshot();
        let name = format!("cluster.x-k8s.io/{contract}");
        let definition = definition("FooCluster", GROUP, &[(&name, "v1beta2")]);
        it.definitions.insert(definition.name.clone(), definition);
        it.objects[0]["status"] = failure.clone();
        assert_eq!(problems(&explained(&it))[0], expected, "{contract}");
    }
}

#[test]
fn controllers_are_judged_by_deployment_inventory_and_lease() {
    use ControllerState::*;
    let lease = |seconds: i64| {
        let renewed = Timestamp::from_second(now().as_second() - seconds).unwrap();
        json!({
            "metadata": {"namespace": "foo-system"},
            "spec": {"holderIdentity": "foo-1_x", "leaseDurationSeconds": 15, "renewTime": renewed.to_string()},
        })
    };
    let recorded = Installed {
        namespace: "foo-system".to_owned(),
        name: "foo".to_owned(),
        kind: capstan_api::provider::ProviderType::Infrastructure,
        version: "v1.2.3".to_owned(),
        watched_namespace: None,
        upgrading_to: None,
    };
    for (labelled, deployments, leases, is_recorded, expected) in [
        (true, Some(vec![deployment("infrastructure-foo", 1, 1)]), vec![], true, Running),
        (true, Some(vec![deployment("infrastructure-foo", 1, 1)]), vec![lease(10)], true, Running),
        (true, Some(vec![deployment("infrastructure-foo", 1, 1)]), vec![lease(61)], false, WithoutLeader),
        (true, Some(vec![deployment("infrastructure-foo", 2, 1)]), vec![], false, Running),
        (true, Some(vec![deployment("infrastructure-foo", 2, 0)]), vec![lease(61)], false, NotAvailable),
        (true, Some(vec![deployment("infrastructure-foo", 0, 0)]), vec![], true, ScaledToZero),
        // The worst of several counts.
        (
            true,
            Some(vec![deployment("infrastructure-foo", 1, 1), deployment("infrastructure-foo", 1, 0)]),
            vec![],
            true,
            NotAvailable,
        ),
        (true, Some(vec![deployment("infrastructure-bar", 1, 1)]), vec![], true, Missing),
        (true, Some(vec![]), vec![], false, NotInstalled),
        (true, None, vec![], true, Unknown),
        (false, Some(vec![]), vec![], true, Unknown),
    ] {
        let mut it = snapshot();
        if labelled {
            belongs_to(&mut it, "FooCluster", "infrastructure-foo");
        }
        it.deployments = deployments.clone();
        it.leases = leases;
        if is_recorded {
            it.inventory = Inventory { providers: vec![recorded.clone()], strange: Vec::new() };
        }
        let explanation = explained(&it);
        let first = &explanation.findings[0];
        let found: &Controller = first.controller.as_ref().unwrap();
        assert_eq!(found.state, expected, "{deployments:?}: {}", first.sentence);
        let is_answer = first.problem == Problem::InfrastructureNotReady;
        assert_eq!(is_answer, matches!(expected, Running | Unknown), "{}", first.sentence);
        assert_eq!(
            found.version.as_deref(),
            (is_recorded && labelled && deployments.is_some()).then_some("v1.2.3")
        );
    }
}

#[test]
fn a_cluster_that_nobody_has_looked_at_is_told_so() {
    let mut it = snapshot();
    it.cluster["status"] = json!({});
    assert_eq!(problems(&explained(&it))[0], Problem::NotObserved);
    // Core's kinds are labelled, but core is nowhere: that is the better answer, unless core has seen the Cluster.
    let core = definition("Cluster", "cluster.x-k8s.io", &[("cluster.x-k8s.io/provider", "cluster-api")]);
    it.definitions.insert(core.name.clone(), core);
    assert_eq!(problems(&explained(&it))[0], Problem::ProviderNotInstalled);
    it.cluster["metadata"]["generation"] = json!(2);
    for (seen, expected) in [(1, Problem::ProviderNotInstalled), (2, Problem::InfrastructureNotReady)] {
        it.cluster["status"] = json!({"phase": "Provisioning", "observedGeneration": seen});
        assert_eq!(problems(&explained(&it))[0], expected, "{seen}");
    }
}

#[test]
fn what_is_in_the_way_of_many_is_told_once() {
    let mut it = healthy();
    belongs_to(&mut it, "FooMachine", "infrastructure-foo");
    for name in ["m", "n"] {
        let spec = json!({"infrastructureRef": reference("FooMachine", name)});
        let mut machine = machine(spec, json!({}));
        machine["metadata"]["name"] = json!(name);
        it.objects.push(machine);
        it.objects.push(object(&format!("{GROUP}/v1beta2"), "FooMachine", name, json!({}), json!({})));
    }
    let expected =
        [Problem::ProviderNotInstalled, Problem::InfrastructureNotReady, Problem::InfrastructureNotReady];
    assert_eq!(problems(&explained(&it)), expected);
}

#[test]
fn webhooks_of_a_controller_that_is_down_go_without_saying() {
    use Problem::*;
    let mut it = snapshot();
    belongs_to(&mut it, "FooCluster", "infrastructure-foo");
    let hook = |namespace: &str, policy: &str| {
        json!({
            "kind": "MutatingWebhookConfiguration", "metadata": {"name": namespace},
            "webhooks": [{
                "name": "hook", "failurePolicy": policy,
                "clientConfig": {"service": {"namespace": namespace, "name": "hooks"}},
                "rules": [{"apiGroups": ["*"], "resources": ["fooclusters/*"]}],
            }],
        })
    };
    for namespace in ["foo-system", "policies", "ignored", "well"] {
        let policy = if namespace == "ignored" { "Ignore" } else { "Fail" };
        it.webhooks.push(hook(namespace, policy));
        let ready = usize::from(namespace == "well");
        it.services.insert((namespace.to_owned(), "hooks".to_owned()), Some(ready));
    }
    for (available, expected) in [
        (0, vec![ControllerNotAvailable, WebhookUnreachable]),
        (1, vec![WebhookUnreachable, WebhookUnreachable]),
    ] {
        it.deployments = Some(vec![deployment("infrastructure-foo", 1, available)]);
        let rest = [InfrastructureNotReady, ControlPlaneNotInitialized];
        assert_eq!(problems(&explained(&it)), [&expected, &rest[..]].concat(), "{available}");
    }
}

#[test]
fn every_finding_tells_what_to_do() {
    let mut it = snapshot();
    it.cluster["spec"]["paused"] = json!(true);
    it.objects.push(machine(json!({"bootstrap": {"dataSecretName": "d"}}), json!({})));
    for finding in explained(&it).findings {
        assert!(!finding.commands.is_empty(), "{finding:?}");
        assert!(finding.sentence.ends_with('.'), "{finding:?}");
    }
}

#[test]
fn machines_are_looked_at_in_the_order_in_which_they_are_made() {
    use Problem::*;
    let refs = json!({"bootstrap": {"configRef": reference("FooConfig", "m")}, "infrastructureRef": reference("FooMachine", "m")});
    let of = |kind: &str, status: Value| object(&format!("{GROUP}/v1beta2"), kind, "m", json!({}), status);
    let done = json!({"initialization": {"provisioned": true, "dataSecretCreated": true}});
    let node = json!({"nodeRef": {"name": "n"}, "conditions": [condition("Ready", "False", "Sick")]});
    for (machine, parts, expected) in [
        (machine(refs.clone(), json!({})), vec![], Some(ObjectMissing)),
        (machine(refs.clone(), json!({})), vec![of("FooConfig", json!({}))], Some(BootstrapNotReady)),
        (machine(refs.clone(), json!({})), vec![of("FooConfig", done.clone())], Some(ObjectMissing)),
        (
            machine(refs.clone(), json!({})),
            vec![of("FooConfig", done.clone()), of("FooMachine", json!({}))],
            Some(InfrastructureNotReady),
        ),
        (
            machine(refs.clone(), json!({})),
            vec![of("FooConfig", done.clone()), of("FooMachine", done.clone())],
            Some(MachineWithoutNode),
        ),
        (
            machine(refs.clone(), node),
            vec![of("FooConfig", done.clone()), of("FooMachine", done.clone())],
            Some(MachineNotReady),
        ),
        (machine(refs.clone(), json!({"failureReason": "x"})), vec![], Some(MachineFailed)),
        (
            machine(
                refs,
                json!({"nodeRef": {"name": "n"}, "conditions": [condition("Ready", "True", "Ready")]}),
            ),
            vec![],
            None,
        ),
    ] {
        let mut it = healthy();
        it.objects.push(machine);
        it.objects.extend(parts);
        assert_eq!(problems(&explained(&it)).first().copied(), expected, "{:#?}", it.objects.last());
    }
}

#[test]
fn machines_newer_than_their_control_plane_are_told() {
    for (version, expected) in
        [("v1.34.0", true), ("v2.0.0", true), ("v1.33.9", false), ("v1.32.0", false), ("odd", false)]
    {
        let mut it = healthy();
        let spec = json!({"replicas": 1, "template": {"spec": {"version": version}}});
        it.objects.push(object("cluster.x-k8s.io/v1beta2", "MachineDeployment", "md", spec, json!({})));
        let found = problems(&explained(&it));
        assert_eq!(found.contains(&Problem::VersionSkew), expected, "{version}");
        assert!(found.contains(&Problem::WorkersNotAvailable));
    }
}

#[test]
fn clusters_of_v1beta1_are_understood() {
    use Problem::*;
    let refer = |kind: &str| json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": kind, "name": "c", "namespace": "ns"});
    let mut it = snapshot();
    it.cluster = object(
        "cluster.x-k8s.io/v1beta1",
        "Cluster",
        "c",
        json!({"infrastructureRef": refer("FooCluster"), "controlPlaneRef": refer("FooPlane")}),
        json!({"phase": "Provisioning", "conditions": [condition("Ready", "False", "Waiting")]}),
    );
    for kind in ["FooCluster", "FooPlane"] {
        let definition = definition(kind, GROUP, &[("cluster.x-k8s.io/v1beta1", "v1beta1")]);
        it.definitions.insert(definition.name.clone(), definition);
    }
    assert_eq!(problems(&explained(&it)), [InfrastructureNotReady, ControlPlaneNotInitialized]);
    it.objects[0]["status"] = json!({"ready": true});
    it.objects[1]["status"] = json!({"initialized": true});
    it.cluster["status"]["infrastructureReady"] = json!(true);
    assert_eq!(problems(&explained(&it)), [EndpointMissing]);
    it.cluster["spec"]["controlPlaneEndpoint"] = json!({"host": "h", "port": 1});
    let last = explained(&it);
    assert_eq!(problems(&last), [Condition], "its own words are better than none");
    assert!(last.findings[0].sentence.contains("Ready is False (Waiting)"), "{last:?}");
    it.cluster["spec"]["topology"] = json!({"class": "quick", "classNamespace": "classes"});
    let first = explained(&it).findings.remove(0);
    assert_eq!(
        (first.problem, first.object.to_string().as_str()),
        (ClusterClassMissing, "ClusterClass classes/quick")
    );
}

#[test]
fn gates_are_part_of_the_answer() {
    let mut it = healthy();
    it.cluster["status"]["conditions"] =
        json!([condition("Available", "False", "NotAvailable"), condition("Backup", "False", "Never")]);
    it.cluster["spec"]["availabilityGates"] =
        json!([{"conditionType": "Backup"}, {"conditionType": "Full", "polarity": "Negative"}]);
    let explanation = explained(&it);
    assert_eq!(problems(&explanation), [Problem::Condition; 2]);
    for (finding, words) in explanation.findings.iter().zip([
        "waits for its gate Backup: Backup is False (Never)",
        "waits for its gate Full: nobody reports it",
    ]) {
        assert!(finding.sentence.contains(words), "{}", finding.sentence);
    }
}

#[test]
fn deletions_are_followed_to_whoever_holds_them() {
    use Problem::*;
    let deleting = |mut object: Value, finalizers: &[&str]| {
        object["metadata"]["deletionTimestamp"] = json!(NOW);
        object["metadata"]["finalizers"] = json!(finalizers);
        object
    };
    let mut it = healthy();
    it.cluster = deleting(it.cluster, &["cluster.cluster.x-k8s.io"]);
    it.objects[1] = deleting(it.objects[1].clone(), &["foo.controlplane.cluster.x-k8s.io"]);
    let explanation = explained(&it);
    assert_eq!((explanation.state, problems(&explanation)), (State::Deleting, vec![DeletionHeldByFinalizer]));
    assert_eq!(explanation.findings[0].object.kind, "FooPlane");
    // Machines go first: their makers wait for them, and the Cluster for all.
    let mut maker = object("cluster.x-k8s.io/v1beta2", "MachineSet", "ms", json!({}), json!({}));
    maker = deleting(maker, &["cluster.x-k8s.io/machineset"]);
    let mut machine = deleting(machine(json!({}), json!({})), &["machine.cluster.x-k8s.io"]);
    machine["metadata"]["ownerReferences"] = json!([{"uid": "uid-ms"}]);
    it.objects.extend([maker, machine]);
    let explanation = explained(&it);
    let kinds: Vec<_> = explanation.findings.iter().map(|it| it.object.kind.as_str()).collect();
    assert_eq!(kinds, ["Machine", "Cluster", "FooPlane"]);
    assert_eq!(problems(&explanation)[1], DeletionWaitsForDescendants);
    // Nothing is left but the Cluster and core's own finalizer.
    it.objects.clear();
    let explanation = explained(&it);
    assert_eq!(problems(&explanation), [DeletionHeldByFinalizer]);
    assert!(
        explanation.findings[0].commands.iter().all(|it| it.purpose == Purpose::Look),
        "core's is not for people"
    );
}

#[test]
fn an_explanation_is_data() {
    let data = json!(explained(&snapshot()));
    assert_eq!(data["state"], "not-available");
    let first = &data["findings"][0];
    assert_eq!(first["problem"], "infrastructure-not-ready");
    assert_eq!(
        first["object"],
        json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "FooCluster", "namespace": "ns", "name": "c"})
    );
    assert_eq!(first["controller"]["state"], "unknown");
    assert_eq!(first["since"], "2026-01-01T00:00:00Z");
    assert_eq!(
        first["commands"],
        json!([{"purpose": "look", "command": "kubectl describe fooclusters.infrastructure.cluster.x-k8s.io c -n ns"}])
    );
}
