//! States that a cluster can be in, and how it is looked at.

use serde_json::{Value, json};

use super::objects::{
    CLUSTER, Object, bootstrap_config, bootstrap_template, cluster, control_plane, control_plane_machine,
    control_plane_machines, health_check, infrastructure, infrastructure_template, lone_cluster,
    lone_machine_set, machine, machine_deployment, machine_infrastructure, machine_pool, machine_set,
    machines_of, managed_cluster, pool_infrastructure, resource_set_binding, whole,
};

/// What upstream's clusterctl makes of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upstream {
    /// The same as we do.
    Same,
    /// The same names in the same order, but fewer figures.
    SameNames,
    /// It hides something, or does not get so far.
    Different,
}

/// One state.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Its name, which is also that of its golden file.
    pub(crate) name: &'static str,
    /// Flags of `describe cluster`, separated by blanks.
    pub(crate) flags: &'static str,
    /// All objects, owners before what they own.
    pub(crate) objects: Vec<Value>,
    /// What upstream makes of it.
    pub(crate) upstream: Upstream,
    /// Kinds whose objects the user may neither list nor get.
    pub(crate) forbidden: &'static [&'static str],
}

fn state(name: &'static str, flags: &'static str, objects: impl IntoIterator<Item = Object>) -> State {
    let objects = objects.into_iter().map(|it| it.0).collect();
    State { name, flags, objects, upstream: Upstream::Same, forbidden: &[] }
}

impl State {
    fn upstream(self, upstream: Upstream) -> Self {
        Self { upstream, ..self }
    }

    fn ours(self) -> Self {
        self.upstream(Upstream::Different)
    }

    fn forbidding(self, forbidden: &'static [&'static str]) -> Self {
        Self { forbidden, ..self }
    }
}

/// A cluster whose control plane is fine, and more.
fn running(more: impl IntoIterator<Item = Object>) -> Vec<Object> {
    let mut objects = vec![
        managed_cluster().says("Available", "True"),
        infrastructure(),
        control_plane(1).counts(1, 1, 1, 1).says("Available", "True"),
    ];
    objects.extend(control_plane_machines(&["cp-0"]));
    objects.extend(more);
    objects
}

/// A MachineDeployment with one MachineSet and its Machines, all of which are fine.
fn deployment(name: &str, set: &str, machines: &[&str]) -> Vec<Object> {
    let count = i64::try_from(machines.len()).unwrap_or_default();
    let all = |object: Object| object.counts(count, count, count, count).says("Available", "True");
    let mut objects = vec![all(machine_deployment(name, count)), all(machine_set(set, name, count))];
    objects.extend(machines_of(set, machines));
    objects
}

const LONG: &str = "* Control plane: waiting for the load balancer of the cluster, which the provider of the \
                    infrastructure has asked for, but which was not granted so far\n* Workers: none yet";

/// All of them.
pub(crate) fn all() -> Vec<State> {
    [clusters(), control_planes(), worker_states(), conditions(), legacy(), beyond_upstream(), unreadable()]
        .concat()
}

fn clusters() -> Vec<State> {
    vec![
        state("cluster-alone", "", [lone_cluster()]),
        state(
            "cluster-provisioning",
            "",
            [
                cluster().because("Available", "False", "NotAvailable", LONG),
                infrastructure().because("Provisioned", "False", "Waiting", "no network yet"),
            ],
        ),
        state(
            "cluster-infrastructure-broken",
            "",
            [
                cluster().because(
                    "Available",
                    "Unknown",
                    "AvailableUnknown",
                    "* InfrastructureReady: unknown",
                ),
                infrastructure().set("/status", json!({})).because(
                    "Ready",
                    "False",
                    "QuotaExceeded",
                    "the quota of networks is used up:\n  5 of 5",
                ),
            ],
        ),
        state(
            "cluster-of-a-topology",
            "",
            [
                cluster()
                    .set("/spec/topology", json!({"classRef": {"name": "quick"}, "version": "v1.34.0"}))
                    .says("Available", "True"),
                infrastructure(),
            ],
        ),
        state(
            "cluster-with-figures",
            "",
            [
                cluster()
                    .says("Available", "True")
                    .set(
                        "/status/controlPlane",
                        json!({
                            "replicas": 3, "desiredReplicas": 3, "readyReplicas": 2, "availableReplicas": 2,
                            "upToDateReplicas": 3,
                        }),
                    )
                    .set("/status/workers", json!({"replicas": 4, "desiredReplicas": 5, "readyReplicas": 0})),
                infrastructure(),
            ],
        ),
        state(
            "cluster-deleting",
            "--show-conditions Cluster+",
            [
                cluster()
                    .deleting()
                    .because("Available", "False", "NotAvailable", "* Deleting")
                    .because("Deleting", "True", "WaitingForInfrastructureDeletion", "it takes its time")
                    .says("Paused", "False"),
                infrastructure().deleting(),
            ],
        ),
        state(
            "resource-sets",
            "--show-resourcesets",
            [
                cluster().says("Available", "True"),
                infrastructure(),
                resource_set_binding(&["network", "csi"]),
            ],
        ),
        state(
            "resource-sets-none",
            "--show-resourcesets",
            [cluster().says("Available", "True"), infrastructure()],
        ),
    ]
}

fn control_planes() -> Vec<State> {
    let three = |flags: &'static str, name: &'static str| {
        let mut objects = vec![
            managed_cluster().says("Available", "True"),
            infrastructure(),
            control_plane(3).counts(3, 3, 3, 3).says("Available", "True"),
            infrastructure_template("cp-template"),
        ];
        objects.extend(control_plane_machines(&["cp-0", "cp-1", "cp-2"]));
        state(name, flags, objects)
    };
    let mixed = |flags: &'static str, name: &'static str| {
        let mut objects = vec![
            managed_cluster().because("Available", "False", "NotAvailable", "* ControlPlaneAvailable: etcd"),
            infrastructure(),
            control_plane(5).counts(5, 3, 3, 5).because(
                "Available",
                "False",
                "NotAvailable",
                "2 of 5 members",
            ),
        ];
        objects.extend(control_plane_machines(&["cp-a", "cp-b", "cp-e"]));
        objects.extend([
            control_plane_machine("cp-c").broken("NodeNotHealthy", "* Node is gone\n* etcd: no leader"),
            machine_infrastructure("cp-c").because(
                "Ready",
                "False",
                "InstanceStopped",
                "stopped by its owner",
            ),
            bootstrap_config("cp-c").says("Ready", "True"),
            control_plane_machine("cp-d").broken("NodeNotHealthy", "the same, but longer"),
            machine_infrastructure("cp-d").because("Ready", "False", "NodeNotHealthy", "the same"),
            bootstrap_config("cp-d").says("Ready", "False"),
        ]);
        state(name, flags, objects)
    };
    vec![
        state(
            "control-plane-without-machines",
            "",
            [
                managed_cluster().because(
                    "Available",
                    "False",
                    "NotAvailable",
                    "* ControlPlaneAvailable: no machines",
                ),
                infrastructure(),
                control_plane(3).because(
                    "Available",
                    "False",
                    "NotAvailable",
                    "Control plane not yet initialized",
                ),
            ],
        ),
        three("", "control-plane-grouped"),
        three("--grouping=false", "control-plane-ungrouped"),
        three("--grouping=false --echo", "control-plane-echo"),
        three("--show-templates", "control-plane-templates"),
        mixed("", "control-plane-mixed"),
        mixed("--grouping=false --echo", "control-plane-mixed-echo"),
        state("control-plane-ready-only", "", running_with_ready_control_plane()),
        state("control-plane-group-since-the-oldest", "", {
            let late = "2024-01-01T20:00:00Z";
            let machine = |name: &str, time: &str| {
                whole(
                    control_plane_machine(name)
                        .since(time, "Available", "True", "Available", "")
                        .since(time, "Ready", "True", "Ready", "up for a while")
                        .since(time, "UpToDate", "True", "UpToDate", ""),
                )
            };
            let mut objects = vec![managed_cluster(), infrastructure(), control_plane(2).counts(2, 2, 2, 2)];
            objects.extend(
                [("cp-0", late), ("cp-1", "2024-01-01T02:00:00Z")].map(|it| machine(it.0, it.1)).concat(),
            );
            objects
        }),
    ]
}

fn running_with_ready_control_plane() -> Vec<Object> {
    vec![
        managed_cluster().says("Available", "True"),
        infrastructure(),
        control_plane(1).set("/status/readyReplicas", 1).says("Ready", "True"),
    ]
}

fn worker_states() -> Vec<State> {
    let rolling = |name: &'static str, flags: &'static str| {
        let mut objects = vec![
            machine_deployment("md", 2).counts(3, 2, 2, 1).says("Available", "True"),
            machine_set("md-old", "md", 1).counts(1, 1, 1, 0),
            machine_set("md-new", "md", 2).counts(2, 1, 1, 2),
            bootstrap_template("md"),
            infrastructure_template("md"),
            infrastructure_template("cp-template"),
        ];
        let old =
            machine("md-old-a").says("Available", "True").says("Ready", "True").says("UpToDate", "False");
        objects.extend(whole(old.owned_by("MachineSet", "md-old").deleting()));
        objects.extend(machines_of("md-new", &["md-new-a"]));
        let fresh = machine("md-new-b").broken("NodeNotReady", "* NodeHealthy: waiting for the node");
        objects.extend(whole(fresh.owned_by("MachineSet", "md-new")));
        state(name, flags, running(objects))
    };
    vec![
        state("workers-grouped", "", running(deployment("md", "md-1", &["md-1-a", "md-1-b", "md-1-c"]))),
        state("workers-sets", "--show-machinesets", running(deployment("md", "md-1", &["md-1-a", "md-1-b"]))),
        rolling("workers-rolling-out", ""),
        rolling("workers-rolling-out-sets", "--show-machinesets"),
        rolling("workers-templates", "--show-templates --show-machinesets --grouping=false"),
        state("workers-of-two-deployments", "", {
            let names: Vec<String> = (0..12).map(|it| format!("b-1-{it:02}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            running([deployment("b", "b-1", &names), deployment("a", "a-1", &["a-1-x"])].concat())
        }),
        state("workers-groups-by-size", "", {
            let names: Vec<String> = (0..10).map(|it| format!("m-{it}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut objects = deployment("md", "md-1", &names);
            for name in ["x", "y"] {
                objects.extend(whole(machine(name).broken("Gone", "").owned_by("MachineSet", "md-1")));
            }
            running(objects)
        }),
        state("workers-by-name", "--grouping=false", {
            running(deployment("md", "md-1", &["m", "m-1", "m-10", "m-2", "m.a", "m0"]))
        }),
        state(
            "workers-orphan",
            "",
            running(whole(machine("alone").broken("NodeNotReady", "nobody repairs it"))),
        ),
        state("workers-orphans-beside-a-deployment", "", {
            let mut objects = deployment("md", "md-1", &["md-1-a"]);
            objects.extend([whole(machine("one").healthy()), whole(machine("two").healthy())].concat());
            running(objects)
        }),
        state("machines-without-a-control-plane", "", {
            let mut objects = vec![cluster().says("Available", "True"), infrastructure()];
            objects.extend(control_plane_machines(&["cp-0", "cp-1"]));
            objects.extend(whole(machine("worker").healthy()));
            objects
        }),
        state("machine-without-anything", "", {
            let mut version_less = machine("bare");
            if let Some(spec) = version_less.0["spec"].as_object_mut() {
                spec.remove("version");
            }
            let bare = vec![version_less, machine_infrastructure("bare"), bootstrap_config("bare")];
            running(bare)
        }),
    ]
}

fn conditions() -> Vec<State> {
    let troubled = || {
        let mut objects = deployment("md", "md-1", &["md-1-a"]);
        objects.extend([
            machine("md-1-b")
                .broken(
                    "NodeNotReady",
                    "* NodeHealthy: waiting\n* BootstrapConfigReady: a very long story that does \
                    not fit in one line of a hundred letters, so that it goes on in the next one",
                )
                .says("Deleting", "False")
                .because("Paused", "Unknown", "PausedUnknown", "")
                .because("Updating", "True", "Updating", "in place")
                .owned_by("MachineSet", "md-1"),
            machine_infrastructure("md-1-b").because(
                "Ready",
                "Unknown",
                "Timeout",
                "the cloud does not answer",
            ),
            bootstrap_config("md-1-b").because("Ready", "False", "Waiting", "for the control plane"),
        ]);
        running(objects)
    };
    vec![
        state("conditions-all", "--show-conditions all", troubled()),
        state("conditions-all-that-tell", "--show-conditions all+ --grouping=false", troubled()),
        state("conditions-of-a-kind", "--show-conditions kubeadmcontrolplane,MachineDeployment+", troubled()),
        state("conditions-of-a-machine", "--show-conditions Machine/md-1-b", troubled()),
        state("conditions-of-echoes", "--show-conditions all+ --echo --show-machinesets", troubled()),
        state("messages-in-lines", "", {
            let mut objects = deployment("md", "md-1", &["md-1-a"]);
            let message = "one\n\n   three, indented\nfour   with   blanks \tand a tab";
            objects[0] = machine_deployment("md", 1).because("Available", "False", "NotAvailable", message);
            let last = machine("zzz").broken("Last", "the last line\nof all");
            objects.extend(whole(last));
            running(objects)
        }),
        state(
            "messages-of-other-scripts",
            "",
            [
                cluster().because("Available", "False", "NotAvailable", "日本語 — naïve … ready → not"),
                infrastructure(),
            ],
        ),
    ]
}

fn legacy() -> Vec<State> {
    let ready = |object: Object| object.once_said("Ready", "True", "", "", "");
    let objects = || {
        let mut objects = vec![
            managed_cluster()
                .once_said("Ready", "False", "Warning", "ScalingUp", "2 of 3")
                .once_said("ControlPlaneReady", "False", "Info", "Waiting", "for the third")
                .once_said("Another", "True", "", "", ""),
            ready(infrastructure()),
            control_plane(3).once_said("Ready", "False", "Error", "MemberFailed", &"x".repeat(120)),
        ];
        for name in ["cp-0", "cp-1", "cp-5"] {
            objects.extend(whole(ready(control_plane_machine(name))));
        }
        for (name, severity) in [("cp-2", "Info"), ("cp-3", "Error"), ("cp-4", "Info")] {
            let machine =
                control_plane_machine(name).once_said("Ready", "False", severity, "Waiting", "patience");
            objects.extend([
                machine,
                machine_infrastructure(name).once_said("Ready", "False", "Info", "Waiting", "the same"),
                bootstrap_config(name).once_said("Ready", "False", "Info", "Other", "another"),
            ]);
        }
        objects
    };
    vec![
        state("legacy", "--v1beta2=false", objects()),
        state("legacy-conditions", "--v1beta2=false --show-conditions all", objects()),
        state("legacy-ungrouped", "--v1beta2=false --grouping=false --echo", objects()),
        state(
            "legacy-lines",
            "--v1beta2=false",
            [cluster().once_said("Ready", "Unknown", "", "Odd", "first\nsecond"), infrastructure()],
        ),
        state("legacy-workers", "--v1beta2=false --show-machinesets", {
            running(deployment("md", "md-1", &["md-1-a", "md-1-b"]))
        }),
        state("legacy-only", "--show-machinesets", legacy_only()),
        state("legacy-only-ready", "--v1beta2=false --show-machinesets", legacy_only()),
        state(
            "legacy-only-conditions",
            "--v1beta2=false --show-machinesets --show-conditions all",
            legacy_only(),
        ),
    ]
}

/// Objects of controllers that know no conditions but those of v1beta1.
fn legacy_only() -> Vec<Object> {
    let mut objects = deployment("md", "md-1", &["md-1-a", "md-1-b"]);
    objects.extend(deployment("other", "other-1", &["other-1-a"]));
    let legacy = |mut object: Object| {
        if let Some(status) = object.0["status"].as_object_mut() {
            status.remove("conditions");
        }
        let object = if object.0["metadata"]["name"] == "other-1-a" {
            object.once_said("Ready", "False", "Warning", "NodeNotFound", "not yet")
        } else {
            object.once_said("Ready", "True", "", "", "")
        };
        object.once_said("MachinesCreated", "True", "", "", "")
    };
    running(objects).into_iter().map(legacy).collect()
}

fn beyond_upstream() -> Vec<State> {
    let pool = || {
        let machine = |name: &str| whole(machine(name).healthy().owned_by("MachinePool", "pool"));
        let mut objects = vec![
            machine_pool("pool", 3).counts(2, 2, 2, 1).because("Available", "False", "ScalingUp", "2 of 3"),
            pool_infrastructure("pool").because("Ready", "False", "ScalingUp", "asked for one more"),
            bootstrap_config("pool").says("Ready", "True"),
        ];
        objects.extend([machine("pool-a"), machine("pool-b")].concat());
        objects
    };
    let stuck = "Remediation is not allowed, the number of unhealthy machines exceeds maxUnhealthy";
    vec![
        state("pool", "", running(pool())).upstream(Upstream::SameNames),
        state("pool-echo", "--echo --grouping=false", running(pool())).upstream(Upstream::SameNames),
        state(
            "workers-none",
            "",
            running([machine_deployment("md", 0).counts(0, 0, 0, 0).says("Available", "True")]),
        )
        .ours(),
        state("workers-none-yet", "--show-machinesets", {
            running([machine_deployment("md", 2), machine_set("md-1", "md", 2)])
        })
        .ours(),
        state("set-alone", "", {
            let mut objects = vec![lone_machine_set("alone", 2).counts(2, 2, 2, 2)];
            objects.extend(machines_of("alone", &["alone-a", "alone-b"]));
            running(objects)
        })
        .ours(),
        state("control-plane-machines-alone", "", {
            let mut objects = vec![cluster().says("Available", "True"), infrastructure()];
            objects.extend(control_plane_machines(&["cp-0"]));
            objects
        })
        .ours(),
        state(
            "health-check-stuck",
            "",
            running([
                health_check("stuck")
                    .owned_by("Cluster", CLUSTER)
                    .set("/status/expectedMachines", 3)
                    .set("/status/currentHealthy", 1)
                    .because("RemediationAllowed", "False", "TooManyUnhealthy", stuck),
                health_check("fine").owned_by("Cluster", CLUSTER).says("RemediationAllowed", "True"),
            ]),
        )
        .ours(),
        state("unowned", "", {
            let mut stray = machine_infrastructure("left-behind").says("Ready", "True");
            if let Some(metadata) = stray.0["metadata"].as_object_mut() {
                metadata.remove("ownerReferences");
            }
            running([stray, machine_infrastructure("cp-9").says("Ready", "True"), health_check("new")])
        })
        .ours(),
        state("v1beta1", "", v1beta1()).ours(),
        state("v1beta1-legacy", "--v1beta2=false --show-conditions all", v1beta1()).ours(),
    ]
}

/// A management cluster that does not know v1beta2 yet.
fn v1beta1() -> Vec<Object> {
    let old = |object: Object| {
        let legacy = object.0.pointer("/status/deprecated/v1beta1/conditions").cloned().unwrap_or_default();
        let current = object.0.pointer("/status/conditions").cloned().unwrap_or_default();
        let api_version = object.0["apiVersion"].as_str().unwrap_or_default().replace("v1beta2", "v1beta1");
        object
            .set("/apiVersion", api_version)
            .set("/status/conditions", legacy)
            .set("/status/v1beta2/conditions", current)
            .set("/status/deprecated", Value::Null)
    };
    let reference = |group: &str, kind: &str, name: &str| json!({"apiVersion": format!("{group}.cluster.x-k8s.io/v1beta1"), "kind": kind, "name": name});
    let cluster = managed_cluster()
        .says("Available", "True")
        .once_said("Ready", "True", "", "", "")
        .set("/spec/infrastructureRef", reference("infrastructure", "GenericCluster", CLUSTER))
        .set("/spec/controlPlaneRef", reference("controlplane", "KubeadmControlPlane", CLUSTER));
    let cluster = old(cluster).set(
        "/status/v1beta2/controlPlane",
        json!({"replicas": 1, "desiredReplicas": 1, "readyReplicas": 1}),
    );
    let control_plane = control_plane(1)
        .says("Available", "True")
        .once_said("Ready", "True", "", "", "")
        .set("/status/replicas", 1)
        .set("/status/updatedReplicas", 1)
        .set("/status/readyReplicas", 1);
    let machine = control_plane_machine("cp-0")
        .healthy()
        .once_said("Ready", "False", "Info", "Waiting", "for its node")
        .set("/spec/infrastructureRef", reference("infrastructure", "GenericMachine", "cp-0"))
        .set("/spec/bootstrap/configRef", reference("bootstrap", "KubeadmConfig", "cp-0"));
    vec![
        cluster,
        old(infrastructure().once_said("Ready", "True", "", "", "")),
        old(control_plane),
        old(machine),
        old(machine_infrastructure("cp-0").says("Ready", "True").once_said("Ready", "True", "", "", "")),
        old(bootstrap_config("cp-0").says("Ready", "True").once_said("Ready", "True", "", "", "")),
        old(machine_deployment("md", 1).set("/status/updatedReplicas", 1)).set("/status/replicas", 1),
    ]
}

fn unreadable() -> Vec<State> {
    vec![
        state("missing-infrastructure", "", [cluster().because("Available", "False", "NotAvailable", "* ?")])
            .ours(),
        state("missing-control-plane", "", {
            let mut objects = vec![managed_cluster().says("Available", "False"), infrastructure()];
            objects.extend(control_plane_machines(&["cp-0", "cp-1"]));
            objects
        })
        .ours(),
        state("missing-objects-of-a-machine", "", {
            let mut objects = deployment("md", "md-1", &["md-1-a", "md-1-b", "md-1-c"]);
            objects.retain(|it| !(it.0["kind"] == "GenericMachine" && it.0["metadata"]["name"] == "md-1-b"));
            running(objects)
        })
        .ours(),
        state("missing-objects-of-a-new-machine", "", running([machine("new")])).ours(),
        state("missing-template", "--show-templates", running([])).ours(),
        state(
            "missing-kind",
            "",
            [cluster().set("/spec/infrastructureRef/kind", "UnheardOfCluster").because(
                "Available",
                "False",
                "NotAvailable",
                "",
            )],
        )
        .ours(),
        state("forbidden-infrastructure", "", running(deployment("md", "md-1", &["md-1-a"])))
            .forbidding(&["GenericMachine", "GenericCluster"])
            .ours(),
        state("forbidden-lists", "--show-resourcesets --show-conditions all", running([]))
            .forbidding(&["MachinePool", "MachineHealthCheck", "ClusterResourceSetBinding"])
            .ours(),
        state(
            "malformed-conditions",
            "",
            [
                cluster().says("Available", "True"),
                infrastructure().set("/status/conditions", json!([{"type": "Ready", "status": "yes"}])),
            ],
        )
        .ours(),
    ]
}
