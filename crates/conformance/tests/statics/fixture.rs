//! A small provider that keeps the contract: clusters, machines, pools, bootstrap and control planes of Foo.

use capstan_conformance::Source;
use serde_json::{Value, json};

/// A group of the provider's own, so that core has to be let in.
pub(crate) const INFRASTRUCTURE: &str = "infrastructure.foo.io";
pub(crate) const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
pub(crate) const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io";

const COMPONENTS: &str = "out/v0.3.1/components.yaml";
const METADATA: &str = "out/v0.3.1/metadata.yaml";

pub(crate) fn object(properties: &Value) -> Value {
    json!({"type": "object", "properties": properties})
}

pub(crate) fn boolean() -> Value {
    json!({"type": "boolean"})
}

pub(crate) fn integer() -> Value {
    json!({"type": "integer", "format": "int32"})
}

pub(crate) fn string() -> Value {
    json!({"type": "string"})
}

fn endpoint() -> Value {
    object(&json!({"host": string(), "port": integer()}))
}

fn metadata() -> Value {
    object(&json!({
        "labels": {"type": "object", "additionalProperties": string()},
        "annotations": {"type": "object", "additionalProperties": string()},
    }))
}

/// The shapes of the two contracts, newest first.
fn cluster() -> [(Value, Value); 2] {
    let entry = json!({"controlPlane": boolean(), "attributes": {"type": "object", "additionalProperties": string()}});
    let mut named = entry.clone();
    named["name"] = string();
    [
        (
            object(&json!({"controlPlaneEndpoint": endpoint()})),
            object(&json!({
                "initialization": object(&json!({"provisioned": boolean()})),
                "failureDomains": {"type": "array", "items": object(&named)},
            })),
        ),
        (
            object(&json!({"controlPlaneEndpoint": endpoint()})),
            object(&json!({
                "ready": boolean(),
                "failureDomains": {"type": "object", "additionalProperties": object(&entry)},
            })),
        ),
    ]
}

fn machine() -> [(Value, Value); 2] {
    let spec = || object(&json!({"providerID": string(), "size": string()}));
    [
        (spec(), object(&json!({"initialization": object(&json!({"provisioned": boolean()}))}))),
        (spec(), object(&json!({"ready": boolean()}))),
    ]
}

fn machine_pool() -> [(Value, Value); 2] {
    let spec = || object(&json!({"providerIDList": {"type": "array", "items": string()}}));
    [
        (
            spec(),
            object(
                &json!({"initialization": object(&json!({"provisioned": boolean()})), "replicas": integer()}),
            ),
        ),
        (spec(), object(&json!({"ready": boolean(), "replicas": integer()}))),
    ]
}

fn config() -> [(Value, Value); 2] {
    let spec = || object(&json!({"script": string()}));
    [
        (
            spec(),
            object(&json!({
                "initialization": object(&json!({"dataSecretCreated": boolean()})), "dataSecretName": string(),
            })),
        ),
        (spec(), object(&json!({"ready": boolean(), "dataSecretName": string()}))),
    ]
}

fn control_plane() -> [(Value, Value); 2] {
    let reference = |first: &str| object(&json!({first: string(), "kind": string(), "name": string()}));
    let newer = object(&json!({
        "metadata": metadata(),
        "spec": object(&json!({
            "infrastructureRef": reference("apiGroup"),
            "deletion": object(&json!({
                "nodeDrainTimeoutSeconds": integer(),
                "nodeVolumeDetachTimeoutSeconds": integer(),
                "nodeDeletionTimeoutSeconds": integer(),
            })),
        })),
    }));
    let older = object(&json!({
        "metadata": metadata(),
        "infrastructureRef": reference("apiVersion"),
        "nodeDrainTimeout": string(),
        "nodeVolumeDetachTimeout": string(),
        "nodeDeletionTimeout": string(),
    }));
    let spec = |template: Value| {
        object(&json!({
            "controlPlaneEndpoint": endpoint(), "replicas": integer(), "version": string(), "machineTemplate": template,
        }))
    };
    let versions = object(&json!({"version": string(), "replicas": integer()}));
    let counters = json!({"selector": string(), "replicas": integer(), "readyReplicas": integer()});
    let status = |more: Value| {
        let mut all = counters.clone();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object(&all)
    };
    [
        (
            spec(newer),
            status(json!({
                "initialization": object(&json!({"controlPlaneInitialized": boolean()})),
                "availableReplicas": integer(),
                "upToDateReplicas": integer(),
                "versions": {"type": "array", "items": versions},
            })),
        ),
        (
            spec(older),
            status(json!({
                "initialized": boolean(),
                "ready": boolean(),
                "unavailableReplicas": integer(),
                "updatedReplicas": integer(),
                "version": string(),
            })),
        ),
    ]
}

fn crd(group: &str, kind: &str, versions: &[Value]) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "labels": {
                "cluster.x-k8s.io/provider": "infrastructure-foo",
                "cluster.x-k8s.io/v1beta1": "v1alpha1",
                "cluster.x-k8s.io/v1beta2": "v1alpha2",
            },
        },
        "spec": {
            "group": group,
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "categories": ["cluster-api"]},
            "scope": "Namespaced",
            "versions": versions,
        },
    })
}

/// A kind and its template, each with a version for each contract: index 0 is `v1alpha2`, index 1 `v1alpha1`.
fn pair(group: &str, kind: &str, shapes: [(Value, Value); 2]) -> [Value; 2] {
    let version = |index: usize, schema: Value, subresources: Value| {
        json!({
            "name": if index == 0 { "v1alpha2" } else { "v1alpha1" },
            "served": true,
            "storage": index == 0,
            "schema": {"openAPIV3Schema": schema},
            "subresources": subresources,
        })
    };
    let mut subresources = json!({"status": {}});
    if kind.ends_with("ControlPlane") {
        subresources["scale"] = json!({
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        });
    }
    let (mut objects, mut templates) = (Vec::new(), Vec::new());
    for (index, (spec, status)) in shapes.into_iter().enumerate() {
        let template = object(&json!({"metadata": metadata(), "spec": spec.clone()}));
        let template = object(&json!({"spec": object(&json!({"template": template}))}));
        templates.push(version(index, template, Value::Null));
        let schema = json!({"apiVersion": string(), "kind": string(), "metadata": {"type": "object"}, "spec": spec, "status": status});
        objects.push(version(index, object(&schema), subresources.clone()));
    }
    [crd(group, kind, &objects), crd(group, &format!("{kind}Template"), &templates)]
}

/// All objects of the provider, and its metadata.yaml.
pub(crate) fn good() -> Vec<Source> {
    let labels = json!({"cluster.x-k8s.io/provider": "infrastructure-foo"});
    let all = ["create", "delete", "get", "list", "patch", "update", "watch"];
    let templates = ["get", "list", "patch", "update", "watch"];
    let rule = |resources: &[&str], verbs: &[&str]| json!({"apiGroups": [INFRASTRUCTURE], "resources": resources, "verbs": verbs});
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foo-system", "labels": labels}}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": "foo-for-core",
                "labels": {
                    "cluster.x-k8s.io/provider": "infrastructure-foo",
                    "cluster.x-k8s.io/aggregate-to-manager": "true",
                },
            },
            "rules": [
                rule(
                    &["fooclusters", "foomachines", "foomachinetemplates", "foomachinepools", "foomachinepooltemplates"],
                    &all,
                ),
                rule(&["fooclustertemplates"], &templates),
            ],
        }),
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "foo-manager", "namespace": "foo-system", "labels": labels},
            "spec": {"template": {"spec": {"containers": [{"name": "proxy"}, {"name": "manager"}]}}},
        }),
    ];
    objects.extend(pair(INFRASTRUCTURE, "FooCluster", cluster()));
    objects.extend(pair(INFRASTRUCTURE, "FooMachine", machine()));
    objects.extend(pair(INFRASTRUCTURE, "FooMachinePool", machine_pool()));
    objects.extend(pair(BOOTSTRAP, "FooConfig", config()));
    objects.extend(pair(CONTROL_PLANE, "FooControlPlane", control_plane()));
    let mut sources: Vec<_> =
        objects.into_iter().map(|object| Source { file: COMPONENTS.to_owned(), object }).collect();
    sources.push(Source {
        file: METADATA.to_owned(),
        object: json!({
            "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
            "kind": "Metadata",
            "releaseSeries": [
                {"major": 0, "minor": 3, "contract": "v1beta2"},
                {"major": 0, "minor": 2, "contract": "v1beta1"},
            ],
        }),
    });
    sources
}

/// The same provider as it was when it spoke contract v1beta1 only.
pub(crate) fn good_v1beta1() -> Vec<Source> {
    let mut sources = good();
    for source in &mut sources {
        if let Some(labels) = source.object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
            labels.remove("cluster.x-k8s.io/v1beta2");
        }
        if source.object.get("releaseSeries").is_some() {
            source.object["releaseSeries"][0]["contract"] = json!("v1beta1");
        }
    }
    sources
}

/// The object of a kind, or the CRD that defines a kind.
pub(crate) fn find<'a>(sources: &'a mut [Source], kind: &str) -> &'a mut Value {
    let found = sources
        .iter_mut()
        .map(|it| &mut it.object)
        .find(|it| it["kind"] == kind || it.pointer("/spec/names/kind").is_some_and(|it| it == kind));
    found.unwrap_or_else(|| panic!("the fixture has no {kind}"))
}

/// Takes a value out of the object or CRD of a kind, by JSON pointer.
pub(crate) fn remove(sources: &mut [Source], kind: &str, pointer: &str) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = find(sources, kind).pointer_mut(parent).unwrap_or_else(|| panic!("{kind} has no {parent}"));
    let removed = match parent {
        Value::Object(map) => map.remove(&name.replace("~1", "/")).is_some(),
        Value::Array(list) => {
            list.remove(name.parse().unwrap());
            true
        }
        _ => false,
    };
    assert!(removed, "{kind} has no {pointer}");
}

/// Puts a value into the object or CRD of a kind, where there is one already.
pub(crate) fn replace(sources: &mut [Source], kind: &str, pointer: &str, value: Value) {
    *find(sources, kind).pointer_mut(pointer).unwrap_or_else(|| panic!("{kind} has no {pointer}")) = value;
}

/// A pointer into the schema of a version: 0 for `v1alpha2`, 1 for `v1alpha1`.
pub(crate) fn schema(version: usize, path: &str) -> String {
    let path = path.replace('.', "/properties/");
    format!("/spec/versions/{version}/schema/openAPIV3Schema/properties/{path}")
}
