//! Conversion there and back keeps everything, whatever the object.

use capstan_api::cluster::conversion::{CONVERSION_DATA, V1BETA1_DATA, to_v1beta1, to_v1beta2};
use capstan_api::cluster::{v1beta1, v1beta2};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

type Json = BoxedStrategy<Value>;

fn unknown_version(_: &str, _: &str) -> Option<String> {
    None
}

/// Takes out what conversion may add or change. These, and nothing else, are normalised:
/// * the two annotations that conversion parks things in, and the map of annotations if it is then empty;
/// * in v1beta1, `spec.controlPlaneEndpoint.{host,port}` and `status.{infrastructureReady,controlPlaneReady}`,
///   which are always written when `spec` or `status` is, as `""`, `0` and `false`.
fn normalised(mut object: Value) -> Value {
    if object["apiVersion"] == "cluster.x-k8s.io/v1beta1" {
        if let Some(spec) = object["spec"].as_object_mut() {
            let endpoint = spec.entry("controlPlaneEndpoint").or_insert_with(|| json!({}));
            let endpoint = endpoint.as_object_mut().unwrap();
            endpoint.entry("host").or_insert_with(|| json!(""));
            endpoint.entry("port").or_insert_with(|| json!(0));
        }
        if let Some(status) = object["status"].as_object_mut() {
            for flag in ["infrastructureReady", "controlPlaneReady"] {
                status.entry(flag).or_insert(json!(false));
            }
        }
        for part in ["spec", "status"] {
            if object[part].is_null() {
                object.as_object_mut().unwrap().remove(part);
            }
        }
    }
    if let Some(annotations) = object["metadata"].get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(CONVERSION_DATA);
        annotations.remove(V1BETA1_DATA);
        if annotations.is_empty() {
            object["metadata"].as_object_mut().unwrap().remove("annotations");
        }
    }
    object
}

/// Which fields a generated object has beside those of its version.
#[derive(Clone, Copy)]
enum Extra {
    /// Fields that neither version has.
    Unknown,
    /// Also fields that only the other version has, with any value.
    Misplaced,
}

fn any_json() -> Json {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map("[a-z]{1,2}", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
    .boxed()
}

/// An object with some of the fields.
fn object(extra: Extra, fields: Vec<(&'static str, Json)>) -> Json {
    let misplaced = select(vec![
        "class",
        "classRef",
        "conditions",
        "controlPlane",
        "deletion",
        "deprecated",
        "failureDomains",
        "healthCheck",
        "initialization",
        "machineHealthCheck",
        "name",
        "namespace",
        "nodeDrainTimeout",
        "rollout",
        "rolloutAfter",
        "apiGroup",
        "apiVersion",
        "strategy",
        "templateRef",
        "timeout",
        "timeoutSeconds",
        "v1beta2",
        "workers",
    ]);
    let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
    let extra = match extra {
        Extra::Unknown => Just("unknownField").boxed(),
        Extra::Misplaced => prop_oneof![Just("unknownField"), misplaced].boxed(),
    };
    let extra = option::weighted(0.2, (extra, any_json()));
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| option::of(value).prop_map(move |value| (name, value)))
        .collect();
    (fields, extra)
        .prop_map(move |(fields, extra)| {
            let mut object: Map<_, _> =
                fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
            object.extend(
                extra.filter(|(name, _)| !names.contains(name)).map(|(name, value)| (name.to_owned(), value)),
            );
            Value::Object(object)
        })
        .boxed()
}

fn required(object: Json, fields: Vec<(&'static str, Json)>) -> Json {
    let fields: Vec<_> =
        fields.into_iter().map(|(name, value)| value.prop_map(move |value| (name, value))).collect();
    (object, fields)
        .prop_map(|(mut object, fields)| {
            for (name, value) in fields {
                object[name] = value;
            }
            object
        })
        .boxed()
}

fn list(element: Json) -> Json {
    vec(element, 0..3).prop_map(Value::from).boxed()
}

/// A list whose elements' names differ.
fn named(element: Json) -> Json {
    vec(element, 0..3)
        .prop_map(|elements| {
            let name = |(index, mut element): (usize, Value)| {
                element["name"] = json!(["x", "b", "m"][index]);
                element
            };
            elements.into_iter().enumerate().map(name).collect()
        })
        .boxed()
}

fn word() -> Json {
    "[a-z]{1,4}".prop_map(Value::from).boxed()
}

fn one_of(words: &'static [&'static str]) -> Json {
    select(words).prop_map(Value::from).boxed()
}

fn flag() -> Json {
    any::<bool>().prop_map(Value::from).boxed()
}

fn count() -> Json {
    prop_oneof![Just(0), 1..9].prop_map(Value::from).boxed()
}

fn int_or_string() -> Json {
    prop_oneof![count(), one_of(&["10%", "33%"])].boxed()
}

fn time() -> Json {
    one_of(&["2030-01-01T00:00:00Z", "2031-12-31T23:59:59Z"])
}

fn strings() -> Json {
    btree_map("[a-z]{1,2}", "[a-z]{0,2}", 0..3)
        .prop_map(|members| members.into_iter().map(|(name, value)| (name, Value::from(value))).collect())
        .boxed()
}

fn duration() -> Json {
    one_of(&["0s", "0", "5s", "10m", "10m0s", "1h30m", "1500ms", "1.5s", "2562047h", "-3s"])
}

fn conditions() -> Json {
    list(condition())
}

/// Of either family.
fn condition() -> Json {
    (one_of(&["Ready", "Available"]), one_of(&["True", "False", "Unknown"]), one_of(&["", "text"]), time())
        .prop_map(|(type_, status, message, time)| {
            json!({"type": type_, "status": status, "reason": "Reason", "message": message, "lastTransitionTime": time})
        })
        .boxed()
}

fn counts(extra: Extra) -> Json {
    let version = required(object(extra, vec![("replicas", count())]), vec![("version", word())]);
    let step = required(object(extra, vec![]), vec![("version", word())]);
    object(
        extra,
        vec![
            ("desiredReplicas", count()),
            ("replicas", count()),
            ("upToDateReplicas", count()),
            ("readyReplicas", count()),
            ("availableReplicas", count()),
            ("versions", list(version)),
            ("upgradePlan", list(step)),
        ],
    )
}

fn gates(extra: Extra) -> Json {
    list(required(
        object(extra, vec![("polarity", one_of(&["Positive", "Negative"]))]),
        vec![("conditionType", word())],
    ))
}

fn taints(extra: Extra) -> Json {
    let taint = object(extra, vec![("value", word())]);
    list(required(
        taint,
        vec![("key", word()), ("effect", one_of(&["NoExecute"])), ("propagation", one_of(&["Always"]))],
    ))
}

fn network(extra: Extra) -> Json {
    let ranges = object(extra, vec![("cidrBlocks", list(word()))]);
    object(
        extra,
        vec![
            ("apiServerPort", count()),
            ("pods", ranges.clone()),
            ("services", ranges),
            ("serviceDomain", word()),
        ],
    )
}

fn endpoint(extra: Extra) -> Json {
    object(extra, vec![("host", one_of(&["", "h"])), ("port", count())])
}

fn metadata(extra: Extra) -> Json {
    object(extra, vec![("labels", strings()), ("annotations", strings())])
}

/// Fields that groups of Machines have alike in both versions.
fn machines(extra: Extra, variable: &Json) -> Vec<(&'static str, Json)> {
    vec![
        ("metadata", metadata(extra)),
        ("replicas", count()),
        ("taints", taints(extra)),
        ("variables", object(extra, vec![("overrides", named(variable.clone()))])),
    ]
}

fn topology(
    extra: Extra,
    class: Vec<(&'static str, Json)>,
    variable: &Json,
    deletion: &[(&'static str, Json)],
    health_check: &[(&'static str, Json)],
    deployment: Vec<(&'static str, Json)>,
) -> Json {
    let gates = || ("readinessGates", gates(extra));
    let mut control_plane = machines(extra, variable);
    control_plane.extend([gates(), ("rollout", object(extra, vec![("after", time())]))]);
    control_plane.extend(deletion.iter().chain(health_check).cloned());

    let mut machine_deployment = machines(extra, variable);
    machine_deployment.extend([
        gates(),
        ("class", word()),
        ("minReadySeconds", count()),
        ("failureDomain", one_of(&["", "f"])),
    ]);
    machine_deployment.extend(deployment);

    let mut machine_pool = machines(extra, variable);
    machine_pool.extend([("class", word()), ("minReadySeconds", count()), ("failureDomains", list(word()))]);
    machine_pool.extend(deletion.iter().cloned());

    let workers = object(
        extra,
        vec![
            ("machineDeployments", named(object(extra, machine_deployment))),
            ("machinePools", named(object(extra, machine_pool))),
        ],
    );
    let mut fields = class;
    fields.extend([
        ("version", word()),
        ("controlPlane", object(extra, control_plane)),
        ("workers", workers),
        ("variables", named(variable.clone())),
    ]);
    object(extra, fields)
}

fn root(version: &'static str, spec: Json, status: Json) -> Json {
    let metadata = option::of(strings()).prop_map(|annotations| {
        let mut metadata = json!({"name": "a", "namespace": "ns", "uid": "u"});
        if let Some(annotations) = annotations.filter(|annotations| annotations != &json!({})) {
            metadata["annotations"] = annotations;
        }
        metadata
    });
    (spec, option::of(status), metadata)
        .prop_map(move |(spec, status, metadata)| {
            let mut object = json!({
                "apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": "Cluster", "metadata": metadata, "spec": spec,
            });
            if let Some(status) = status {
                object["status"] = status;
            }
            object
        })
        .boxed()
}

fn v1beta1_cluster(extra: Extra) -> Json {
    let reference = object(
        extra,
        vec![
            ("apiVersion", one_of(&["", "v1", "g.x/v1beta1", "g.x/v1beta2", "h.x/v1"])),
            ("kind", word()),
            ("namespace", one_of(&["ns", "other"])),
            ("name", word()),
            ("uid", word()),
            ("resourceVersion", word()),
            ("fieldPath", word()),
        ],
    );
    let variable = object(extra, vec![("definitionFrom", one_of(&["", "d"])), ("value", any_json())]);
    let deletion = [
        ("nodeDrainTimeout", duration()),
        ("nodeVolumeDetachTimeout", duration()),
        ("nodeDeletionTimeout", duration()),
    ];
    let unhealthy = list(object(extra, vec![("type", word()), ("status", word()), ("timeout", duration())]));
    let health_check = [(
        "machineHealthCheck",
        object(
            extra,
            vec![
                ("enable", flag()),
                ("nodeStartupTimeout", duration()),
                ("unhealthyConditions", unhealthy.clone()),
                ("unhealthyMachineConditions", unhealthy),
                ("maxUnhealthy", int_or_string()),
                ("unhealthyRange", one_of(&["[1-2]"])),
                ("remediationTemplate", reference.clone()),
            ],
        ),
    )];
    let rolling_update = object(
        extra,
        vec![
            ("maxUnavailable", int_or_string()),
            ("maxSurge", int_or_string()),
            ("deletePolicy", one_of(&["Random", "Oldest"])),
        ],
    );
    let strategy = object(
        extra,
        vec![
            ("type", one_of(&["RollingUpdate", "OnDelete"])),
            ("rollingUpdate", rolling_update),
            ("remediation", object(extra, vec![("maxInFlight", int_or_string())])),
        ],
    );
    let mut deployment = vec![("rollout", object(extra, vec![("after", time())])), ("strategy", strategy)];
    deployment.extend(deletion.iter().chain(&health_check).cloned());
    let class = vec![("class", word()), ("classNamespace", word()), ("rolloutAfter", time())];
    let spec = object(
        extra,
        vec![
            ("paused", flag()),
            ("clusterNetwork", network(extra)),
            ("controlPlaneEndpoint", endpoint(extra)),
            ("controlPlaneRef", reference.clone()),
            ("infrastructureRef", reference),
            ("availabilityGates", gates(extra)),
            ("topology", topology(extra, class, &variable, &deletion, &health_check, deployment)),
        ],
    );
    let domain = object(extra, vec![("controlPlane", flag()), ("attributes", strings())]);
    let domains = btree_map("[a-z]{1,2}", domain, 0..3)
        .prop_map(|domains| Value::Object(domains.into_iter().collect()))
        .boxed();
    let status = object(
        extra,
        vec![
            ("failureDomains", domains),
            ("failureReason", word()),
            ("failureMessage", word()),
            ("phase", one_of(&["Pending", "Provisioned"])),
            ("infrastructureReady", flag()),
            ("controlPlaneReady", flag()),
            ("conditions", conditions()),
            ("observedGeneration", count()),
            (
                "v1beta2",
                object(
                    extra,
                    vec![
                        ("conditions", conditions()),
                        ("controlPlane", counts(extra)),
                        ("workers", counts(extra)),
                    ],
                ),
            ),
        ],
    );
    root("v1beta1", spec, status)
}

fn v1beta2_cluster(extra: Extra) -> Json {
    let seconds = || prop_oneof![Just(0), 1..90_000, Just(i32::MAX)].prop_map(Value::from).boxed();
    let reference =
        object(extra, vec![("apiGroup", one_of(&["", "g.x", "h.x"])), ("kind", word()), ("name", word())]);
    let template = object(extra, vec![("apiVersion", one_of(&["g/v1"])), ("kind", word()), ("name", word())]);
    let variable = object(extra, vec![("value", any_json())]);
    let timeouts = || {
        vec![
            ("nodeDrainTimeoutSeconds", seconds()),
            ("nodeVolumeDetachTimeoutSeconds", seconds()),
            ("nodeDeletionTimeoutSeconds", seconds()),
        ]
    };
    let unhealthy =
        list(object(extra, vec![("type", word()), ("status", word()), ("timeoutSeconds", seconds())]));
    let checks = object(
        extra,
        vec![
            ("nodeStartupTimeoutSeconds", seconds()),
            ("unhealthyNodeConditions", unhealthy.clone()),
            ("unhealthyMachineConditions", unhealthy),
        ],
    );
    let trigger = object(
        extra,
        vec![("unhealthyLessThanOrEqualTo", int_or_string()), ("unhealthyInRange", one_of(&["[1-2]"]))],
    );
    let health_check = |remediation: Vec<(&'static str, Json)>| {
        let mut fields = vec![("triggerIf", trigger.clone()), ("templateRef", template.clone())];
        fields.extend(remediation);
        let remediation = object(extra, fields);
        (
            "healthCheck",
            object(
                extra,
                vec![("enabled", flag()), ("checks", checks.clone()), ("remediation", remediation)],
            ),
        )
    };
    let mut deletion_with_order = timeouts();
    deletion_with_order.push(("order", one_of(&["Random", "Oldest"])));
    let rolling_update =
        object(extra, vec![("maxUnavailable", int_or_string()), ("maxSurge", int_or_string())]);
    let strategy = object(
        extra,
        vec![("type", one_of(&["RollingUpdate", "OnDelete"])), ("rollingUpdate", rolling_update)],
    );
    let deployment = vec![
        ("rollout", object(extra, vec![("after", time()), ("strategy", strategy)])),
        ("deletion", object(extra, deletion_with_order)),
        health_check(vec![("maxInFlight", int_or_string())]),
    ];
    let class = vec![("classRef", object(extra, vec![("name", word()), ("namespace", word())]))];
    let deletion = [("deletion", object(extra, timeouts()))];
    let spec = object(
        extra,
        vec![
            ("paused", flag()),
            ("clusterNetwork", network(extra)),
            ("controlPlaneEndpoint", endpoint(extra)),
            ("controlPlaneRef", reference.clone()),
            ("infrastructureRef", reference),
            ("availabilityGates", gates(extra)),
            ("topology", topology(extra, class, &variable, &deletion, &[health_check(vec![])], deployment)),
        ],
    );
    let domain = object(extra, vec![("controlPlane", flag()), ("attributes", strings())]);
    let deprecated = object(
        extra,
        vec![("conditions", conditions()), ("failureReason", word()), ("failureMessage", word())],
    );
    let status = object(
        extra,
        vec![
            ("conditions", conditions()),
            (
                "initialization",
                object(
                    extra,
                    vec![("infrastructureProvisioned", flag()), ("controlPlaneInitialized", flag())],
                ),
            ),
            ("controlPlane", counts(extra)),
            ("workers", counts(extra)),
            ("failureDomains", named(domain)),
            ("phase", one_of(&["Pending", "Provisioned"])),
            ("observedGeneration", count()),
            ("deprecated", object(extra, vec![("v1beta1", deprecated)])),
        ],
    );
    root("v1beta2", spec, status)
}

/// Gives an object another's body under its own metadata, as an edit of everything would.
fn edited(mut object: Value, other: &Value) -> Value {
    for part in ["spec", "status"] {
        object.as_object_mut().unwrap().remove(part);
        if let Some(value) = other.get(part) {
            object[part] = value.clone();
        }
    }
    object
}

proptest! {
    #[test]
    fn v1beta1_survives_v1beta2(
        old in prop_oneof![v1beta1_cluster(Extra::Unknown), v1beta1_cluster(Extra::Misplaced)],
    ) {
        let new = to_v1beta2(old.clone()).unwrap();
        let back = to_v1beta1(new, &unknown_version).unwrap();
        prop_assert_eq!(normalised(back), normalised(old));
    }

    #[test]
    fn v1beta2_survives_v1beta1(
        new in prop_oneof![v1beta2_cluster(Extra::Unknown), v1beta2_cluster(Extra::Misplaced)],
    ) {
        let old = to_v1beta1(new.clone(), &unknown_version).unwrap();
        let back = to_v1beta2(old).unwrap();
        prop_assert_eq!(normalised(back), normalised(new));
    }

    /// What was parked on an earlier trip gets in the way of no later one.
    #[test]
    fn objects_survive_with_stale_data(old in v1beta1_cluster(Extra::Unknown), new in v1beta2_cluster(Extra::Unknown)) {
        let stale = edited(to_v1beta1(new.clone(), &unknown_version).unwrap(), &old);
        let back = to_v1beta1(to_v1beta2(stale.clone()).unwrap(), &unknown_version).unwrap();
        prop_assert_eq!(normalised(back), normalised(stale));

        let stale = edited(to_v1beta2(old).unwrap(), &new);
        let back = to_v1beta2(to_v1beta1(stale.clone(), &unknown_version).unwrap()).unwrap();
        prop_assert_eq!(normalised(back), normalised(stale));
    }

    /// And it changes nothing that the other version can say.
    #[test]
    fn stale_data_says_nothing_new(old in v1beta1_cluster(Extra::Unknown), new in v1beta2_cluster(Extra::Unknown)) {
        let plain = |object: Value| {
            let old = to_v1beta1(normalised(object), &unknown_version).unwrap();
            normalised(to_v1beta2(normalised(old)).unwrap())
        };
        let stale = edited(to_v1beta1(new, &unknown_version).unwrap(), &old);
        let without = normalised(stale.clone());
        prop_assert_eq!(plain(to_v1beta2(stale).unwrap()), plain(to_v1beta2(without).unwrap()));
    }

    #[test]
    fn nothing_is_parked_twice(new in v1beta2_cluster(Extra::Unknown)) {
        let once = to_v1beta2(to_v1beta1(new, &unknown_version).unwrap()).unwrap();
        let twice = to_v1beta2(to_v1beta1(once.clone(), &unknown_version).unwrap()).unwrap();
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn what_is_generated_and_what_comes_out_can_be_decoded(
        old in v1beta1_cluster(Extra::Unknown), new in v1beta2_cluster(Extra::Unknown),
    ) {
        for cluster in [new.clone(), to_v1beta2(old.clone()).unwrap()] {
            serde_json::from_value::<v1beta2::Cluster>(cluster).unwrap();
        }
        for cluster in [old, to_v1beta1(new, &unknown_version).unwrap()] {
            serde_json::from_value::<v1beta1::Cluster>(cluster).unwrap();
        }
    }

    /// Nothing that can be sent makes conversion panic.
    #[test]
    fn conversion_is_total(
        body in any_json(), spec in any_json(), metadata in any_json(), topology in any_json(),
        seed in v1beta1_cluster(Extra::Misplaced), path in vec("[a-z]{1,3}", 0..3), junk in any_json(),
    ) {
        let mut seed = seed;
        damage(&mut seed, &path, &junk);
        for version in ["v1beta1", "v1beta2"] {
            let api_version = format!("cluster.x-k8s.io/{version}");
            let mut whole = seed.clone();
            if whole.is_object() {
                whole["apiVersion"] = json!(api_version);
            }
            let objects = [
                body.clone(),
                json!({"apiVersion": api_version, "spec": spec, "status": body, "metadata": metadata}),
                json!({"apiVersion": api_version, "spec": {"topology": topology}, "metadata": {"annotations": {
                    CONVERSION_DATA: spec.to_string(), V1BETA1_DATA: junk.to_string(),
                }}}),
                whole,
            ];
            for object in objects {
                let _ = to_v1beta2(object.clone());
                let _ = to_v1beta1(object, &unknown_version);
            }
        }
    }
}

/// Replaces a value somewhere in the object.
fn damage(value: &mut Value, path: &[String], junk: &Value) {
    let steps = path.split_first().map(|(step, rest)| (step.bytes().map(usize::from).sum::<usize>(), rest));
    match (value, steps) {
        (Value::Object(members), Some((step, rest))) if !members.is_empty() => {
            let index = step % members.len();
            if let Some(member) = members.values_mut().nth(index) {
                damage(member, rest, junk);
            }
        }
        (Value::Array(elements), Some((step, rest))) if !elements.is_empty() => {
            let index = step % elements.len();
            damage(&mut elements[index], rest, junk);
        }
        (value, _) => *value = junk.clone(),
    }
}
