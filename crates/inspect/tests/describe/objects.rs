//! Objects of management clusters in few words.

use serde_json::{Value, json};

/// When everything happened that is not said to have happened at another time.
pub(crate) const BEGIN: &str = "2024-01-01T00:00:00Z";
/// The Cluster that all states are about.
pub(crate) const CLUSTER: &str = "prod";
/// Where it is.
pub(crate) const NAMESPACE: &str = "default";

const CORE: &str = "cluster.x-k8s.io";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io";
const VERSION: &str = "v1.34.0";

/// An object that is being made.
#[derive(Clone, Debug)]
pub(crate) struct Object(pub(crate) Value);

impl Object {
    fn new(group: &str, kind: &str, name: &str) -> Self {
        Self(json!({
            "apiVersion": format!("{group}/v1beta2"),
            "kind": kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
        }))
    }

    /// Sets what is at a place.
    pub(crate) fn set(mut self, pointer: &str, value: impl Into<Value>) -> Self {
        let mut place = &mut self.0;
        for key in pointer.trim_start_matches('/').split('/') {
            place = &mut place[key.replace("~1", "/")];
        }
        *place = value.into();
        self
    }

    fn with_spec(self, spec: Value) -> Self {
        self.set("/spec", spec)
    }

    fn labelled(self) -> Self {
        self.set("/metadata/labels/cluster.x-k8s.io~1cluster-name", CLUSTER)
    }

    fn push(mut self, pointer: &[&str], entry: Value) -> Self {
        let mut place = &mut self.0["status"];
        for key in pointer {
            place = &mut place[*key];
        }
        match place.as_array_mut() {
            Some(list) => list.push(entry),
            None => *place = json!([entry]),
        }
        self
    }

    /// With a condition, whose reason is its type, with `Not` before it unless it holds.
    pub(crate) fn says(self, type_: &str, status: &str) -> Self {
        let reason = if status == "True" { type_.to_owned() } else { format!("Not{type_}") };
        self.because(type_, status, &reason, "")
    }

    /// With a condition.
    pub(crate) fn because(self, type_: &str, status: &str, reason: &str, message: &str) -> Self {
        self.since(BEGIN, type_, status, reason, message)
    }

    /// With a condition from some time on.
    pub(crate) fn since(self, time: &str, type_: &str, status: &str, reason: &str, message: &str) -> Self {
        let condition = json!({
            "type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": time,
        });
        self.push(&["conditions"], condition)
    }

    /// With a condition in the style of v1beta1.
    pub(crate) fn once_said(
        self,
        type_: &str,
        status: &str,
        severity: &str,
        reason: &str,
        message: &str,
    ) -> Self {
        let mut condition = json!({"type": type_, "status": status, "lastTransitionTime": BEGIN});
        for (key, value) in [("severity", severity), ("reason", reason), ("message", message)] {
            if !value.is_empty() {
                condition[key] = value.into();
            }
        }
        self.push(&["deprecated", "v1beta1", "conditions"], condition)
    }

    /// Available, ready and up to date.
    pub(crate) fn healthy(self) -> Self {
        self.says("Available", "True").says("Ready", "True").says("UpToDate", "True")
    }

    /// Neither available nor ready, for a reason.
    pub(crate) fn broken(self, reason: &str, message: &str) -> Self {
        self.because("Available", "False", "NotReady", "")
            .because("Ready", "False", reason, message)
            .says("UpToDate", "True")
    }

    /// With replicas that exist, are available, ready and up to date.
    pub(crate) fn counts(self, replicas: i64, available: i64, ready: i64, up_to_date: i64) -> Self {
        self.set("/status/replicas", replicas)
            .set("/status/availableReplicas", available)
            .set("/status/readyReplicas", ready)
            .set("/status/upToDateReplicas", up_to_date)
    }

    /// With an owner that acts for it, of core's group.
    pub(crate) fn owned_by(self, kind: &str, name: &str) -> Self {
        self.set(
            "/metadata/ownerReferences",
            json!([{
                "apiVersion": format!("{CORE}/v1beta2"), "kind": kind, "name": name, "uid": format!("{kind}-{name}"),
                "controller": true,
            }]),
        )
    }

    /// One that is being deleted.
    pub(crate) fn deleting(self) -> Self {
        self.set("/metadata/deletionTimestamp", BEGIN)
            .set("/metadata/finalizers", json!(["test.example.com/held"]))
    }
}

fn reference(group: &str, kind: &str, name: &str) -> Value {
    json!({"apiGroup": group, "kind": kind, "name": name})
}

/// A Cluster that refers to nothing.
pub(crate) fn lone_cluster() -> Object {
    Object::new(CORE, "Cluster", CLUSTER).with_spec(json!({"paused": false}))
}

/// A Cluster that refers to its infrastructure.
pub(crate) fn cluster() -> Object {
    lone_cluster().set("/spec/infrastructureRef", reference(INFRASTRUCTURE, "GenericCluster", CLUSTER))
}

/// A Cluster that refers to its infrastructure and its control plane.
pub(crate) fn managed_cluster() -> Object {
    cluster().set("/spec/controlPlaneRef", reference(CONTROL_PLANE, "KubeadmControlPlane", CLUSTER))
}

/// The infrastructure of the Cluster.
pub(crate) fn infrastructure() -> Object {
    Object::new(INFRASTRUCTURE, "GenericCluster", CLUSTER).labelled().says("Ready", "True")
}

/// The control plane of the Cluster.
pub(crate) fn control_plane(replicas: i64) -> Object {
    Object::new(CONTROL_PLANE, "KubeadmControlPlane", CLUSTER).labelled().with_spec(json!({
        "version": VERSION,
        "replicas": replicas,
        "machineTemplate": {
            "spec": {"infrastructureRef": reference(INFRASTRUCTURE, "GenericMachineTemplate", "cp-template")},
        },
    }))
}

fn machine_spec(name: &str, template: &str) -> Value {
    json!({
        "clusterName": CLUSTER,
        "version": VERSION,
        "bootstrap": {"configRef": reference(BOOTSTRAP, &format!("KubeadmConfig{template}"), name)},
        "infrastructureRef": reference(INFRASTRUCTURE, &format!("GenericMachine{template}"), name),
    })
}

/// A Machine.
pub(crate) fn machine(name: &str) -> Object {
    Object::new(CORE, "Machine", name).labelled().with_spec(machine_spec(name, ""))
}

/// A Machine of the control plane.
pub(crate) fn control_plane_machine(name: &str) -> Object {
    machine(name).set("/metadata/labels/cluster.x-k8s.io~1control-plane", "")
}

/// The infrastructure of a Machine.
pub(crate) fn machine_infrastructure(name: &str) -> Object {
    Object::new(INFRASTRUCTURE, "GenericMachine", name).labelled().owned_by("Machine", name)
}

/// The bootstrap configuration of a Machine.
pub(crate) fn bootstrap_config(name: &str) -> Object {
    let config = Object::new(BOOTSTRAP, "KubeadmConfig", name).labelled().owned_by("Machine", name);
    config.with_spec(json!({"format": "cloud-config"}))
}

/// A Machine with its objects, all of which are ready.
pub(crate) fn whole(machine: Object) -> Vec<Object> {
    let name = machine.0["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let infrastructure = machine_infrastructure(&name).says("Ready", "True");
    let bootstrap = bootstrap_config(&name).says("Ready", "True");
    vec![machine, infrastructure, bootstrap]
}

/// Machines of the control plane with their objects, all of which are fine.
pub(crate) fn control_plane_machines(names: &[&str]) -> Vec<Object> {
    names.iter().flat_map(|name| whole(control_plane_machine(name).healthy())).collect()
}

/// Machines of a MachineSet with their objects, all of which are fine.
pub(crate) fn machines_of(set: &str, names: &[&str]) -> Vec<Object> {
    let machine = |name: &&str| whole(machine(name).healthy().owned_by("MachineSet", set));
    names.iter().flat_map(machine).collect()
}

fn workers(kind: &str, name: &str, replicas: i64) -> Object {
    Object::new(CORE, kind, name).labelled().with_spec(json!({
        "clusterName": CLUSTER,
        "replicas": replicas,
        "selector": {"matchLabels": {"set": name}},
        "template": {"metadata": {"labels": {"set": name}}, "spec": machine_spec(name, "Template")},
    }))
}

/// A MachineDeployment.
pub(crate) fn machine_deployment(name: &str, replicas: i64) -> Object {
    workers("MachineDeployment", name, replicas)
}

/// A MachineSet of a MachineDeployment.
pub(crate) fn machine_set(name: &str, deployment: &str, replicas: i64) -> Object {
    workers("MachineSet", name, replicas).owned_by("MachineDeployment", deployment)
}

/// A MachineSet of nobody.
pub(crate) fn lone_machine_set(name: &str, replicas: i64) -> Object {
    workers("MachineSet", name, replicas)
}

/// A MachinePool.
pub(crate) fn machine_pool(name: &str, replicas: i64) -> Object {
    let spec = json!({
        "clusterName": CLUSTER,
        "replicas": replicas,
        "template": {"spec": {
            "clusterName": CLUSTER,
            "version": VERSION,
            "bootstrap": {"configRef": reference(BOOTSTRAP, "KubeadmConfig", name)},
            "infrastructureRef": reference(INFRASTRUCTURE, "GenericMachinePool", name),
        }},
    });
    Object::new(CORE, "MachinePool", name).labelled().with_spec(spec)
}

/// The infrastructure of a MachinePool.
pub(crate) fn pool_infrastructure(name: &str) -> Object {
    Object::new(INFRASTRUCTURE, "GenericMachinePool", name).labelled().owned_by("MachinePool", name)
}

/// A template of Machines' infrastructure.
pub(crate) fn infrastructure_template(name: &str) -> Object {
    Object::new(INFRASTRUCTURE, "GenericMachineTemplate", name)
}

/// A template of Machines' bootstrap configurations.
pub(crate) fn bootstrap_template(name: &str) -> Object {
    let spec = json!({"template": {"spec": {"format": "cloud-config"}}});
    Object::new(BOOTSTRAP, "KubeadmConfigTemplate", name).with_spec(spec)
}

/// What ClusterResourceSets did.
pub(crate) fn resource_set_binding(names: &[&str]) -> Object {
    let bindings = names.iter().map(|it| json!({"clusterResourceSetName": it}));
    let spec = json!({"clusterName": CLUSTER, "bindings": bindings.collect::<Vec<_>>()});
    Object::new("addons.cluster.x-k8s.io", "ClusterResourceSetBinding", CLUSTER).with_spec(spec)
}

/// A MachineHealthCheck.
pub(crate) fn health_check(name: &str) -> Object {
    let spec = json!({"clusterName": CLUSTER, "selector": {"matchLabels": {"set": "md"}}});
    Object::new(CORE, "MachineHealthCheck", name).labelled().with_spec(spec)
}
