//! What holds for all releases and specs.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::Map;

use super::*;

/// Names that meet each other in manifests and specs.
const FLAGS: &[&str] =
    &["v", "sync-period", "sync_period", "leader-elect", "feature-gates", "namespace", "foo"];
const CONTAINERS: &[&str] = &["manager", "kube-rbac-proxy", "migrate"];

/// Args of a spec.
type Args = Vec<(String, Value)>;

/// A word of a command line, of any form.
fn word() -> impl Strategy<Value = Value> {
    let flag = prop::sample::select(FLAGS);
    prop_oneof![
        (flag.clone(), prop::sample::select(&["-", "--"][..]), value())
            .prop_map(|(name, dashes, value)| json!(format!("{dashes}{name}={value}"))),
        (flag, prop::sample::select(&["-", "--"][..]))
            .prop_map(|(name, dashes)| json!(format!("{dashes}{name}"))),
        value().prop_map(Value::from),
        prop::sample::select(&["-", "--", "---v", "--=", ""][..]).prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![Just("true"), Just("A=true,B=1"), Just("10m"), Just(""), Just("B=false"), Just("-1")]
        .prop_map(str::to_owned)
}

fn words() -> impl Strategy<Value = Value> {
    prop_oneof![prop::collection::vec(word(), 0..7).prop_map(Value::from), Just(Value::Null)]
}

fn env() -> impl Strategy<Value = Value> {
    let entry = (prop::sample::select(&["A", "B", "C"][..]), value())
        .prop_map(|(name, value)| json!({"name": name, "value": value}));
    prop::collection::vec(entry, 0..4).prop_map(Value::from)
}

fn manifest_container(name: &'static str) -> impl Strategy<Value = Value> {
    let images = &[
        "a.io/b/c:v1",
        "a.io/c",
        "c:v1",
        "a.io/c:v1@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    ][..];
    (words(), words(), env(), prop::sample::select(images)).prop_map(move |(command, args, env, image)| {
        json!({"name": name, "command": command, "args": args, "env": env, "image": image,
            "readinessProbe": {"httpGet": {"path": "/readyz"}}})
    })
}

/// A release whose Deployments have all containers that a spec may name.
fn release() -> impl Strategy<Value = Vec<Value>> {
    let containers =
        (manifest_container("kube-rbac-proxy"), manifest_container("manager"), manifest_container("migrate"));
    let names = prop::sample::select(&["capa-controller-manager", "capz-controller-manager", "other"][..]);
    let namespaces = prop::sample::select(&["ns", "capi-webhook-system"][..]);
    let deployment = (names, namespaces, containers).prop_map(|(name, namespace, (proxy, manager, migrate))| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
            "spec": {"replicas": 1, "template": {"spec": {"containers": [proxy, manager],
                "initContainers": [migrate], "tolerations": [{"key": "x"}]}}}})
    });
    prop::collection::vec(deployment, 1..4)
}

/// Args in an order of their own; no two set one flag.
fn spec_args() -> impl Strategy<Value = Args> {
    let key = (prop::sample::select(FLAGS), prop::sample::select(&["", "-", "--"][..]))
        .prop_map(|(name, dashes)| format!("{dashes}{name}"));
    let value = prop_oneof![
        value().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (0..9).prop_map(Value::from)
    ];
    prop::collection::btree_map(key, value, 0..5).prop_map(|args| {
        let by_flag: BTreeMap<String, (String, Value)> =
            args.into_iter().map(|(key, value)| (flag_of(&key), (key, value))).collect();
        by_flag.into_values().collect()
    })
}

/// What is one flag, however it is written.
fn flag_of(key: &str) -> String {
    key.trim_start_matches('-').replace('_', "-")
}

fn image() -> impl Strategy<Value = Value> {
    let part = |texts: &'static [&'static str]| prop::option::of(prop::sample::select(texts));
    let parts = (part(&["a.io/b", "m.io:5000/", "short"]), part(&["c", "d"]), part(&["v1", "v2"]));
    prop_oneof![
        Just(Value::Null),
        Just(json!("x.io/y:v3")),
        parts.prop_map(|(repository, name, tag)| json!({"repository": repository, "name": name, "tag": tag})),
    ]
}

/// Containers of a spec, in an order of their own: name, fields and args.
fn spec_containers() -> impl Strategy<Value = Vec<(&'static str, Value, Args)>> {
    let container = (image(), env(), prop::option::of(Just(json!({"limits": {"cpu": "1"}}))), spec_args())
        .prop_map(|(image, env, resources, args)| {
            (json!({"image": image, "env": env, "resources": resources}), args)
        });
    prop::collection::vec(prop::option::of(container), CONTAINERS.len()).prop_map(|containers| {
        let named = CONTAINERS.iter().zip(containers);
        named.filter_map(|(name, container)| container.map(|(fields, args)| (*name, fields, args))).collect()
    })
}

fn manager() -> impl Strategy<Value = Value> {
    let gates = prop::collection::btree_map(prop::sample::select(&["A", "Z"][..]), any::<bool>(), 0..3);
    let rest =
        (any::<bool>(), prop::option::of(any::<bool>()), prop::option::of(0..9), prop::option::of(1..9));
    (gates, rest, prop::option::of(Just("ready"))).prop_map(
        |(gates, (debug, leader_elect, verbosity, sync_period), endpoint)| {
            json!({"featureGates": gates, "debug": debug, "verbosity": verbosity, "syncPeriod": sync_period,
                "leaderElection": {"leaderElect": leader_elect, "resourceName": "x"},
                "health": {"readinessEndpointName": endpoint}})
        },
    )
}

/// A spec, and the same with its containers and args in another order.
fn specs() -> impl Strategy<Value = (ProviderSpec, ProviderSpec)> {
    let placement = prop_oneof![
        Just(json!({})),
        Just(json!({"replicas": 3, "tolerations": [], "nodeSelector": {"a": "b"}})),
        Just(json!({"tolerations": [{"key": "y"}], "nodeSelector": {}, "affinity": {}})),
    ];
    let shuffled = spec_containers().prop_flat_map(|containers| {
        let other = containers.iter().map(|(name, fields, args)| {
            (Just(*name), Just(fields.clone()), Just(args.clone()).prop_shuffle())
        });
        (Just(containers.clone()), other.collect::<Vec<_>>().prop_shuffle())
    });
    (prop::option::of(manager()), placement, shuffled).prop_map(|(manager, placement, (one, other))| {
        let read = |containers| {
            let text = spec_text(manager.as_ref(), &placement, containers);
            serde_json::from_str(&text).unwrap()
        };
        (read(&one), read(&other))
    })
}

/// A spec as text, which keeps the order of args.
fn spec_text(
    manager: Option<&Value>,
    placement: &Value,
    containers: &[(&'static str, Value, Args)],
) -> String {
    let entries = |value: &Value| -> String {
        let entries = value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        entries.fold(String::new(), |text, (field, value)| format!("{text},{}:{value}", json!(field)))
    };
    let containers: Vec<String> = containers
        .iter()
        .map(|(name, fields, args)| {
            let args: Vec<String> =
                args.iter().map(|(key, value)| format!("{}:{value}", json!(key))).collect();
            format!(r#"{{"name":"{name}","args":{{{}}}{}}}"#, args.join(","), entries(fields))
        })
        .collect();
    let (containers, placement) = (containers.join(","), entries(placement));
    let manager = manager.unwrap_or(&Value::Null);
    format!(r#"{{"manager":{manager},"deployment":{{"containers":[{containers}]{placement}}}}}"#)
}

fn containers(deployment: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    let pod = &deployment["spec"]["template"]["spec"];
    ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| pod[list].as_array().unwrap())
        .map(|container| container.as_object().unwrap())
}

/// The flags that a spec sets in a container, if it names the container.
fn set_flags(spec: &ProviderSpec, container: &Value) -> Option<BTreeSet<String>> {
    let own = spec.deployment.iter().flat_map(|it| &it.containers).find(|it| it.name == *container);
    let manager = spec.manager.as_ref().filter(|_| container == "manager");
    if own.is_none() && manager.is_none() {
        return None;
    }
    let args = own.into_iter().flat_map(|it| it.args.keys()).map(|key| flag_of(key));
    let mut set: BTreeSet<String> = args.filter(|flag| flag != "namespace").collect();
    if let Some(manager) = manager {
        let leader_elect = manager.leader_election.as_ref().and_then(|it| it.leader_elect);
        for (flag, is_set) in [
            ("v", manager.debug || manager.verbosity.is_some()),
            ("profiler-address", manager.debug),
            ("sync-period", manager.sync_period.is_some()),
            ("leader-elect", leader_elect.is_some()),
            ("leader-election-id", leader_elect != Some(false)),
            ("feature-gates", !manager.feature_gates.is_empty()),
        ] {
            set.extend(is_set.then(|| flag.to_owned()));
        }
    }
    Some(set)
}

/// The words of a container's command line that are flags: the first word of a command is not.
fn flag_words(container: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let words = ["command", "args"].into_iter().flat_map(|field| {
        let skipped = usize::from(field == "command");
        container.get(field).and_then(Value::as_array).into_iter().flatten().skip(skipped)
    });
    words.filter_map(Value::as_str).filter(|it| it.starts_with('-') && !it.starts_with("---"))
}

fn name_of(word: &str) -> String {
    flag_of(word.split('=').next().unwrap_or_default())
}

/// The flags of a container that are not among others.
fn other_flags<'a>(container: &'a Map<String, Value>, set: &BTreeSet<String>) -> Vec<&'a str> {
    flag_words(container).filter(|word| !set.contains(&name_of(word))).collect()
}

proptest! {
    #[test]
    fn customizing_again_changes_nothing(release in release(), (spec, _) in specs()) {
        let mut once = release;
        if customize(&mut once, &spec).is_ok() {
            let mut twice = once.clone();
            customize(&mut twice, &spec).unwrap();
            prop_assert_eq!(once, twice);
        }
    }

    #[test]
    fn the_order_of_containers_and_args_means_nothing(release in release(), (one, other) in specs()) {
        let (mut first, mut second) = (release.clone(), release);
        let outcome = customize(&mut first, &one);
        prop_assert_eq!(outcome, customize(&mut second, &other));
        prop_assert_eq!(first, second);
    }

    /// What a spec does not name stays: objects, containers, flags and their order. An error changes nothing at all.
    #[test]
    fn what_is_not_named_stays(release in release(), (spec, _) in specs()) {
        let mut after = release.clone();
        let outcome = customize(&mut after, &spec);
        prop_assert_eq!(release.len(), after.len());
        if outcome.is_err() {
            prop_assert_eq!(&release, &after);
        }
        for (before, after) in release.iter().zip(&after) {
            prop_assert_eq!(&before["metadata"], &after["metadata"]);
            for (before, after) in containers(before).zip(containers(after)) {
                match set_flags(&spec, &before["name"]) {
                    None => prop_assert_eq!(before, after),
                    Some(set) => prop_assert_eq!(other_flags(before, &set), other_flags(after, &set)),
                }
            }
        }
    }

    #[test]
    fn a_flag_that_is_set_appears_once(release in release(), (spec, _) in specs()) {
        let mut only = release[..1].to_vec();
        if customize(&mut only, &spec).is_ok() {
            for container in containers(&only[0]) {
                let set = set_flags(&spec, &container["name"]).unwrap_or_default();
                for flag in set {
                    let count = flag_words(container).filter(|word| name_of(word) == flag).count();
                    prop_assert_eq!(count, 1, "{} {:?}", flag, container);
                }
            }
        }
    }
}
