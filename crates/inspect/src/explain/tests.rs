//! Tables: a snapshot, and what is first in the way.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    ClusterState, CommandPurpose, Controller, ControllerState, ExplainProblem, ExplainSnapshot, Explanation,
    explain,
};
use crate::snapshot::{self, Crd, WorkloadSnapshot};
use capstan_management::{
    ObjectRef,
    inventory::{Installed, Inventory},
};

const GROUP: &str = "infrastructure.cluster.x-k8s.io";
const NOW: &str = "2026-01-02T00:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn crd_of(kind: &str, group: &str, labels: &[(&str, &str)]) -> Crd {
    let plural = capstan_api::contract::plural::pluralize(&kind.to_lowercase());
    Crd {
        name: format!("{plural}.{group}"),
        group: group.to_owned(),
        plural,
        labels: labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        is_namespaced: true,
        versions: vec![("v1beta1".to_owned(), true), ("v1beta2".to_owned(), true)],
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
fn snapshot() -> ExplainSnapshot {
    let workload = WorkloadSnapshot {
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
        ..WorkloadSnapshot::default()
    };
    let mut snapshot =
        ExplainSnapshot { workload, deployments: Some(Vec::new()), ..ExplainSnapshot::default() };
    for kind in ["FooCluster", "FooPlane", "FooMachine", "FooConfig"] {
        let it = crd_of(kind, GROUP, &[("cluster.x-k8s.io/v1beta2", "v1beta2")]);
        snapshot.workload.crds.insert(it.name.clone(), it);
    }
    snapshot
}

/// The same, all done.
fn healthy() -> ExplainSnapshot {
    let mut it = snapshot();
    it.workload.cluster["status"] = json!({
        "phase": "Provisioned",
        "initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true},
        "conditions": [condition("Available", "True", "Available")],
    });
    it.workload.objects[0]["status"] = json!({"initialization": {"provisioned": true}});
    it.workload.objects[1]["status"] = json!({"initialization": {"controlPlaneInitialized": true}});
    it
}

fn problems(explanation: &Explanation) -> Vec<ExplainProblem> {
    explanation.findings.iter().map(|it| it.problem).collect()
}

fn explained(snapshot: &ExplainSnapshot) -> Explanation {
    explain(snapshot, "capstan", now())
}

fn deployment(provider: &str, replicas: i64, available: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "foo-system", "name": "foo", "labels": {"cluster.x-k8s.io/provider": provider}},
        "spec": {"replicas": replicas}, "status": {"availableReplicas": available},
    })
}

fn belongs_to(snapshot: &mut ExplainSnapshot, kind: &str, provider: &str) {
    let it =
        snapshot.workload.crds.values_mut().find(|it| it.name.starts_with(&kind.to_lowercase())).unwrap();
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
    assert_eq!((explanation.state, problems(&explanation)), (ClusterState::Available, Vec::new()));
    assert_eq!(explanation.summary, "Cluster ns/c is available. Nothing is in its way.");
    assert_eq!(explanation.since.unwrap().to_string(), "2026-01-01T12:00:00Z");
}

#[test]
fn the_first_in_the_order_of_dependence_is_the_answer() {
    use ExplainProblem::*;
    let change = |change: &dyn Fn(&mut ExplainSnapshot)| {
        let mut it = snapshot();
        change(&mut it);
        problems(&explained(&it))
    };
    let waiting = [InfrastructureNotReady, ControlPlaneNotInitialized];
    assert_eq!(change(&|_| {}), waiting);
    assert_eq!(
        change(&|it| it.workload.cluster["spec"]["paused"] = json!(true)),
        [&[Paused], &waiting[..]].concat()
    );
    assert_eq!(
        change(
            &|it| it.workload.objects[0]["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""})
        ),
        [PausedByAnnotation, ControlPlaneNotInitialized]
    );
    assert_eq!(
        change(&|it| drop(it.workload.objects.remove(0))),
        [ObjectMissing, ControlPlaneNotInitialized]
    );
    assert_eq!(
        change(&|it| drop(it.workload.crds.remove("fooclusters.infrastructure.cluster.x-k8s.io"))),
        [KindNotInstalled, ControlPlaneNotInitialized]
    );
    // What cannot be read is not called missing.
    assert_eq!(
        change(&|it| {
            it.workload.objects.remove(0);
            it.workload.unreadable.push(snapshot::Unreadable {
                what: ObjectRef {
                    api_version: format!("{GROUP}/v1beta2"),
                    kind: "FooCluster".to_owned(),
                    namespace: Some("ns".to_owned()),
                    name: "c".to_owned(),
                },
                is_forbidden: true,
                reason: "forbidden".to_owned(),
            });
        }),
        [Unreadable, ControlPlaneNotInitialized]
    );
    assert_eq!(
        change(&|it| it.workload.cluster["spec"]["topology"] = json!({"classRef": {"name": "x"}})),
        [&[ClusterClassMissing], &waiting[..]].concat()
    );
    assert_eq!(
        change(&|it| it.workload.objects[0]["metadata"]["deletionTimestamp"] = json!(NOW)),
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
fn contract_labels_are_judged_by_what_the_crd_serves() {
    const NEW: &str = "cluster.x-k8s.io/v1beta2";
    const OLD: &str = "cluster.x-k8s.io/v1beta1";
    let label = |label: &str, version: &str| {
        format!("kubectl label crd fooclusters.{GROUP} {label}={version} --overwrite")
    };
    let serve = |index: usize| {
        let patch =
            json!([{"op": "replace", "path": format!("/spec/versions/{index}/served"), "value": true}]);
        format!("kubectl patch crd fooclusters.{GROUP} --type json -p '{patch}'")
    };
    // v1beta1 and v1beta2 are served, v1alpha1 is defined and not served.
    for (labels, expected, words) in [
        (&[][..], Some((ExplainProblem::NoContract, vec![label(NEW, "v1beta2")])), "has no label"),
        (&[(NEW, "")], Some((ExplainProblem::NoContract, vec![label(NEW, "v1beta2")])), "has no label"),
        (
            &[(OLD, "v1beta9")],
            Some((ExplainProblem::VersionNotServed, vec![label(OLD, "v1beta2")])),
            "it has cluster.x-k8s.io/v1beta1=v1beta9, and serves v1beta1, v1beta2",
        ),
        (
            &[(NEW, "v1beta9"), (OLD, "v1beta8_v1alpha1")],
            Some((ExplainProblem::VersionNotServed, vec![label(NEW, "v1beta2"), serve(2)])),
            "it has cluster.x-k8s.io/v1beta2=v1beta9, cluster.x-k8s.io/v1beta1=v1beta8_v1alpha1, and serves",
        ),
        // Nothing to check_controller: the greatest version that is named and served, in the newest contract that has one.
        (&[(NEW, "v1beta2_v1beta9")], None, "status.initialization.provisioned is not true"),
        (&[(NEW, "v1beta9"), (OLD, "v1beta1")], None, "status.ready is not true"),
        (&[(OLD, "v1beta2")], None, "status.ready is not true"),
    ] {
        let mut it = snapshot();
        let mut crd = crd_of("FooCluster", GROUP, labels);
        crd.versions.push(("v1alpha1".to_owned(), false));
        it.workload.crds.insert(crd.name.clone(), crd);
        let first = explained(&it).findings.remove(0);
        let go_on = first.commands.iter().filter(|it| it.purpose == CommandPurpose::GoOn);
        let go_on: Vec<_> = go_on.map(|it| it.command.clone()).collect();
        let expected = expected.unwrap_or((ExplainProblem::InfrastructureNotReady, Vec::new()));
        assert_eq!((first.problem, go_on), expected, "{labels:?}: {}", first.sentence);
        assert!(first.sentence.contains(words), "{labels:?}: {}", first.sentence);
    }
}

#[test]
fn a_kind_that_is_cluster_scoped_breaks_the_contract() {
    let mut it = snapshot();
    let crd = it.workload.crds.values_mut().find(|it| it.name.starts_with("fooclusters")).unwrap();
    crd.is_namespaced = false;
    let first = explained(&it).findings.remove(0);
    assert_eq!(first.problem, ExplainProblem::ClusterScoped);
    assert_eq!(first.object.to_string(), format!("CustomResourceDefinition fooclusters.{GROUP}"));
    for words in ["cluster-scoped", "the contract asks for a namespaced one"] {
        assert!(first.sentence.contains(words), "{}", first.sentence);
    }
}

#[test]
fn findings_name_the_field_of_the_contract_that_the_object_speaks() {
    let config = json!({"bootstrap": {"configRef": reference("FooConfig", "m")}});
    for (contract, provisioned, initialized, created) in [
        (
            Some("v1beta1"),
            "provisioned: status.ready is",
            "yet: status.initialized is",
            "created: status.ready is",
        ),
        (
            Some("v1beta2"),
            "provisioned: status.initialization.provisioned is",
            "yet: status.initialization.controlPlaneInitialized is",
            "created: status.initialization.dataSecretCreated is",
        ),
        (
            None,
            "provisioned: status.initialization.provisioned or status.ready is",
            "yet: status.initialization.controlPlaneInitialized or status.initialized is",
            "created: status.initialization.dataSecretCreated or status.ready is",
        ),
    ] {
        let mut it = snapshot();
        it.workload.objects.push(machine(config.clone(), json!({})));
        it.workload.objects.push(object(&format!("{GROUP}/v1beta2"), "FooConfig", "m", json!({}), json!({})));
        for kind in ["FooCluster", "FooPlane", "FooConfig"] {
            let name = format!("cluster.x-k8s.io/{}", contract.unwrap_or("v1beta2"));
            let crd = crd_of(kind, GROUP, &[(&name, "v1beta2")]);
            if contract.is_some() {
                it.workload.crds.insert(crd.name.clone(), crd);
                continue;
            }
            // The user may not read CRDs.
            it.workload.crds.remove(&crd.name);
            it.workload.unreadable.push(snapshot::Unreadable {
                what: ObjectRef {
                    api_version: "apiextensions.k8s.io/v1".to_owned(),
                    kind: "CustomResourceDefinition".to_owned(),
                    namespace: None,
                    name: crd.name,
                },
                is_forbidden: true,
                reason: "forbidden".to_owned(),
            });
        }
        let sentences: Vec<_> = explained(&it).findings.into_iter().map(|it| it.sentence).collect();
        for words in [provisioned, initialized, created] {
            assert!(sentences.iter().any(|it| it.contains(words)), "{words}: {sentences:#?}");
        }
    }
}

#[test]
fn final_failures_count_only_where_the_contract_knows_them() {
    let failure = json!({"failureReason": "Quota", "failureMessage": "none left"});
    for (contract, expected) in
        [("v1beta1", ExplainProblem::TerminalFailure), ("v1beta2", ExplainProblem::InfrastructureNotReady)]
    {
        let mut it = snapshot();
        let name = format!("cluster.x-k8s.io/{contract}");
        let crd = crd_of("FooCluster", GROUP, &[(&name, "v1beta2")]);
        it.workload.crds.insert(crd.name.clone(), crd);
        it.workload.objects[0]["status"] = failure.clone();
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
            it.inventory = Inventory { providers: vec![recorded.clone()], unreadable: Vec::new() };
        }
        let explanation = explained(&it);
        let first = &explanation.findings[0];
        let found: &Controller = first.controller.as_ref().unwrap();
        assert_eq!(found.state, expected, "{deployments:?}: {}", first.sentence);
        let is_answer = first.problem == ExplainProblem::InfrastructureNotReady;
        assert_eq!(is_answer, matches!(expected, Running | Unknown), "{}", first.sentence);
        assert_eq!(
            found.version.as_deref(),
            (is_recorded && labelled && deployments.is_some()).then_some("v1.2.3")
        );
    }
}

/// A provider without Deployment and inventory entry, on whose object something is reported or not.
#[test]
fn an_object_that_its_controller_reports_on_speaks_before_the_inventory() {
    use ExplainProblem::*;
    let ready = |seen: Value, since: &str| {
        let mut ready = condition("Ready", "False", "PortInUse");
        ready["observedGeneration"] = seen;
        ready["lastTransitionTime"] = json!(since);
        json!([ready])
    };
    let (long_ago, just_now) = ("2026-01-01T12:00:00Z", "2026-01-01T23:59:00Z");
    let speaks = vec![InfrastructureNotReady, ProviderNotInstalled];
    let is_silent = vec![ProviderNotInstalled, InfrastructureNotReady];
    for (status, expected) in [
        (json!({"conditions": ready(json!(3), long_ago)}), &speaks),
        (json!({"v1beta2": {"conditions": ready(json!(3), long_ago)}}), &speaks),
        (json!({"conditions": ready(Value::Null, long_ago), "observedGeneration": 3}), &speaks),
        (json!({"conditions": ready(Value::Null, just_now)}), &speaks),
        (json!({"conditions": ready(json!(2), long_ago), "observedGeneration": 2}), &is_silent),
        (json!({"conditions": ready(Value::Null, long_ago)}), &is_silent),
        (json!({}), &is_silent),
    ] {
        let mut it = snapshot();
        it.workload.cluster["spec"]["controlPlaneRef"] = Value::Null;
        it.workload.cluster["status"]["conditions"][0]["status"] = json!("True");
        belongs_to(&mut it, "FooCluster", "infrastructure-foo");
        it.workload.objects[0]["metadata"]["generation"] = json!(3);
        it.workload.objects[0]["status"] = status.clone();
        let explanation = explained(&it);
        assert_eq!(problems(&explanation), *expected, "{status}");
        let own = explanation.findings.iter().find(|it| it.problem == InfrastructureNotReady).unwrap();
        let state = own.controller.as_ref().unwrap().state;
        let doubted = explanation.findings.iter().find(|it| it.problem == ProviderNotInstalled).unwrap();
        if *expected == speaks {
            assert_eq!(state, ControllerState::Elsewhere, "{status}");
            assert!(own.sentence.contains("Ready is False (PortInUse)"), "{}", own.sentence);
            assert!(doubted.sentence.contains("runs outside this cluster, or was removed"), "{doubted:?}");
        } else {
            assert_eq!(state, ControllerState::NotInstalled, "{status}");
        }
    }
    // A Deployment that is down is known to be down, whatever was reported before.
    let mut it = snapshot();
    belongs_to(&mut it, "FooCluster", "infrastructure-foo");
    it.workload.objects[0]["status"]["conditions"] = ready(Value::Null, just_now);
    it.deployments = Some(vec![deployment("infrastructure-foo", 0, 0)]);
    assert_eq!(problems(&explained(&it))[..2], [ControllerScaledToZero, InfrastructureNotReady]);
}

#[test]
fn a_cluster_without_any_report_is_not_observed() {
    let mut it = snapshot();
    it.workload.cluster["status"] = json!({});
    assert_eq!(problems(&explained(&it))[0], ExplainProblem::NotObserved);
    // Core's kinds are labelled, but core is nowhere: that is the better answer, unless core has seen the Cluster.
    let core = crd_of("Cluster", "cluster.x-k8s.io", &[("cluster.x-k8s.io/provider", "cluster-api")]);
    it.workload.crds.insert(core.name.clone(), core);
    assert_eq!(problems(&explained(&it))[0], ExplainProblem::ProviderNotInstalled);
    it.workload.cluster["metadata"]["generation"] = json!(2);
    for (seen, expected) in
        [(1, ExplainProblem::ProviderNotInstalled), (2, ExplainProblem::InfrastructureNotReady)]
    {
        it.workload.cluster["status"] = json!({"phase": "Provisioning", "observedGeneration": seen});
        assert_eq!(problems(&explained(&it))[0], expected, "{seen}");
    }
}

#[test]
fn what_concerns_many_objects_is_reported_once() {
    let mut it = healthy();
    belongs_to(&mut it, "FooMachine", "infrastructure-foo");
    for name in ["m", "n"] {
        let spec = json!({"infrastructureRef": reference("FooMachine", name)});
        let mut machine = machine(spec, json!({}));
        machine["metadata"]["name"] = json!(name);
        it.workload.objects.push(machine);
        it.workload.objects.push(object(
            &format!("{GROUP}/v1beta2"),
            "FooMachine",
            name,
            json!({}),
            json!({}),
        ));
    }
    let expected = [
        ExplainProblem::ProviderNotInstalled,
        ExplainProblem::InfrastructureNotReady,
        ExplainProblem::InfrastructureNotReady,
    ];
    assert_eq!(problems(&explained(&it)), expected);
}

#[test]
fn webhooks_of_a_controller_that_is_down_go_without_saying() {
    use ExplainProblem::*;
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
fn every_finding_has_commands() {
    let mut it = snapshot();
    it.workload.cluster["spec"]["paused"] = json!(true);
    it.workload.objects.push(machine(json!({"bootstrap": {"dataSecretName": "d"}}), json!({})));
    for finding in explained(&it).findings {
        assert!(!finding.commands.is_empty(), "{finding:?}");
        assert!(finding.sentence.ends_with('.'), "{finding:?}");
    }
}

#[test]
fn machines_are_looked_at_in_the_order_in_which_they_are_made() {
    use ExplainProblem::*;
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
        it.workload.objects.push(machine);
        it.workload.objects.extend(parts);
        assert_eq!(problems(&explained(&it)).first().copied(), expected, "{:#?}", it.workload.objects.last());
    }
}

#[test]
fn machines_newer_than_their_control_plane_are_found() {
    for (version, expected) in
        [("v1.34.0", true), ("v2.0.0", true), ("v1.33.9", false), ("v1.32.0", false), ("odd", false)]
    {
        let mut it = healthy();
        let spec = json!({"replicas": 1, "template": {"spec": {"version": version}}});
        it.workload.objects.push(object(
            "cluster.x-k8s.io/v1beta2",
            "MachineDeployment",
            "md",
            spec,
            json!({}),
        ));
        let found = problems(&explained(&it));
        assert_eq!(found.contains(&ExplainProblem::VersionSkew), expected, "{version}");
        assert!(found.contains(&ExplainProblem::WorkersNotAvailable));
    }
}

#[test]
fn clusters_of_v1beta1_are_understood() {
    use ExplainProblem::*;
    let refer = |kind: &str| json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": kind, "name": "c", "namespace": "ns"});
    let mut it = snapshot();
    it.workload.cluster = object(
        "cluster.x-k8s.io/v1beta1",
        "Cluster",
        "c",
        json!({"infrastructureRef": refer("FooCluster"), "controlPlaneRef": refer("FooPlane")}),
        json!({"phase": "Provisioning", "conditions": [condition("Ready", "False", "Waiting")]}),
    );
    for kind in ["FooCluster", "FooPlane"] {
        let crd = crd_of(kind, GROUP, &[("cluster.x-k8s.io/v1beta1", "v1beta1")]);
        it.workload.crds.insert(crd.name.clone(), crd);
    }
    assert_eq!(problems(&explained(&it)), [InfrastructureNotReady, ControlPlaneNotInitialized]);
    it.workload.objects[0]["status"] = json!({"ready": true});
    it.workload.objects[1]["status"] = json!({"initialized": true});
    it.workload.cluster["status"]["infrastructureReady"] = json!(true);
    assert_eq!(problems(&explained(&it)), [EndpointMissing]);
    it.workload.cluster["spec"]["controlPlaneEndpoint"] = json!({"host": "h", "port": 1});
    let last = explained(&it);
    assert_eq!(problems(&last), [Condition], "its own words are better than none");
    assert!(last.findings[0].sentence.contains("Ready is False (Waiting)"), "{last:?}");
    it.workload.cluster["spec"]["topology"] = json!({"class": "quick", "classNamespace": "classes"});
    let first = explained(&it).findings.remove(0);
    assert_eq!(
        (first.problem, first.object.to_string().as_str()),
        (ClusterClassMissing, "ClusterClass classes/quick")
    );
}

#[test]
fn gates_are_part_of_the_answer() {
    let mut it = healthy();
    it.workload.cluster["status"]["conditions"] =
        json!([condition("Available", "False", "NotAvailable"), condition("Backup", "False", "Never")]);
    it.workload.cluster["spec"]["availabilityGates"] =
        json!([{"conditionType": "Backup"}, {"conditionType": "Full", "polarity": "Negative"}]);
    let explanation = explained(&it);
    assert_eq!(problems(&explanation), [ExplainProblem::Condition; 2]);
    for (finding, words) in explanation.findings.iter().zip([
        "waits for its gate Backup: Backup is False (Never)",
        "waits for its gate Full: no controller reports it",
    ]) {
        assert!(finding.sentence.contains(words), "{}", finding.sentence);
    }
}

#[test]
fn deletions_are_followed_to_the_finalizer_that_holds_them() {
    use ExplainProblem::*;
    let deleting = |mut object: Value, finalizers: &[&str]| {
        object["metadata"]["deletionTimestamp"] = json!(NOW);
        object["metadata"]["finalizers"] = json!(finalizers);
        object
    };
    let mut it = healthy();
    it.workload.cluster = deleting(it.workload.cluster, &["cluster.cluster.x-k8s.io"]);
    it.workload.objects[1] = deleting(it.workload.objects[1].clone(), &["foo.controlplane.cluster.x-k8s.io"]);
    let explanation = explained(&it);
    assert_eq!(
        (explanation.state, problems(&explanation)),
        (ClusterState::Deleting, vec![DeletionHeldByFinalizer])
    );
    assert_eq!(explanation.findings[0].object.kind, "FooPlane");
    // Machines go first: their owners wait for them, and the Cluster for all.
    let mut owner = object("cluster.x-k8s.io/v1beta2", "MachineSet", "ms", json!({}), json!({}));
    owner = deleting(owner, &["cluster.x-k8s.io/machineset"]);
    let mut machine = deleting(machine(json!({}), json!({})), &["machine.cluster.x-k8s.io"]);
    machine["metadata"]["ownerReferences"] = json!([{"uid": "uid-ms"}]);
    it.workload.objects.extend([owner, machine]);
    let explanation = explained(&it);
    let kinds: Vec<_> = explanation.findings.iter().map(|it| it.object.kind.as_str()).collect();
    assert_eq!(kinds, ["Machine", "Cluster", "FooPlane"]);
    assert_eq!(problems(&explanation)[1], DeletionWaitsForDescendants);
    // Nothing is left but the Cluster and core's own finalizer.
    it.workload.objects.clear();
    let explanation = explained(&it);
    assert_eq!(problems(&explanation), [DeletionHeldByFinalizer]);
    assert!(
        explanation.findings[0].commands.iter().all(|it| it.purpose == CommandPurpose::Look),
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
