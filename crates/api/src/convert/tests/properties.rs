//! Laws that hold for all objects.

use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value, json};

use super::super::{
    Converted, fields,
    shape::{Field, Fields, Shape, Shown},
    to_v1beta2,
};
use crate::cluster;

const KINDS: [&str; 8] = [
    "Cluster",
    "ClusterClass",
    "Machine",
    "MachineDeployment",
    "MachineDrainRule",
    "MachineHealthCheck",
    "MachinePool",
    "MachineSet",
];

/// How deep schemas within schemas go.
const DEPTH: usize = 6;

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9/.:${}-]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec(("[a-z]{1,6}", inner), 0..3)
                .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

/// Values that fit a field. Those that say nothing are left to `empty`.
fn fitting(shape: Shape, depth: usize, empty: bool) -> BoxedStrategy<Value> {
    let least = usize::from(!empty);
    match shape {
        Shape::Text if empty => "[a-z]{0,3}".prop_map(Value::from).boxed(),
        Shape::Text => "[a-z]{1,3}".prop_map(Value::from).boxed(),
        Shape::Flag if empty => any::<bool>().prop_map(Value::from).boxed(),
        Shape::Flag | Shape::Implied | Shape::Gone => Just(json!(true)).boxed(),
        Shape::Number => (i32::from(!empty)..9).prop_map(Value::from).boxed(),
        Shape::NumberOrText => prop_oneof![(1..9).prop_map(Value::from), Just(json!("5%"))].boxed(),
        Shape::Time => Just(json!("2025-01-31T12:00:00Z")).boxed(),
        Shape::Seconds => (1..9_u8).prop_map(|minutes| json!(format!("{minutes}m0s"))).boxed(),
        Shape::Group => Just(json!("g/v1beta2")).boxed(),
        Shape::Anything => prop_oneof![Just(json!(1)), Just(json!({"a": [null]}))].boxed(),
        Shape::List(element) => vec(fitting(*element, depth, empty), least..3).prop_map(Value::from).boxed(),
        Shape::Objects(fields) => vec(object(fields, depth, empty), least..3).prop_map(Value::from).boxed(),
        Shape::Map(member) => members(fitting(*member, depth, empty), least),
        Shape::NamedList(fields) => members(object(fields, depth, empty), least),
        Shape::Object(fields) | Shape::Spread(fields) => object(fields, depth, empty),
    }
}

fn members(member: BoxedStrategy<Value>, least: usize) -> BoxedStrategy<Value> {
    proptest::collection::btree_map("[a-z]{1,3}", member, least..3)
        .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into())
        .boxed()
}

/// Objects with some of their fields.
fn object(fields: &'static Fields, depth: usize, empty: bool) -> BoxedStrategy<Value> {
    if depth == 0 {
        return Just(json!({})).boxed();
    }
    let chance = if depth > DEPTH - 2 { 0.9 } else { 0.4 };
    let fields: Vec<BoxedStrategy<Option<(String, Value)>>> = fields
        .all()
        .map(|field: &Field| {
            let name = field.old.to_owned();
            let value = fitting(field.shape, depth - 1, empty).prop_map(move |value| (name.clone(), value));
            match field.shown {
                Shown::Always if !empty => value.prop_map(Some).boxed(),
                _ => proptest::option::weighted(chance, value).boxed(),
            }
        })
        .collect();
    fields.prop_map(|members| members.into_iter().flatten().collect::<Map<_, _>>().into()).boxed()
}

fn whole(kind: &'static str, empty: bool) -> BoxedStrategy<Value> {
    object(fields::of(kind).unwrap(), DEPTH, empty)
        .prop_map(move |mut object| {
            object["apiVersion"] = json!("cluster.x-k8s.io/v1beta1");
            object["kind"] = json!(kind);
            object
        })
        .boxed()
}

fn any_kind(empty: bool) -> impl Strategy<Value = Value> {
    proptest::sample::select(&KINDS[..]).prop_flat_map(move |kind| whole(kind, empty))
}

fn changed(object: Value) -> Value {
    match to_v1beta2(object) {
        Ok(Converted::Changed { object, .. }) => object,
        other => panic!("{other:?}"),
    }
}

/// Puts a value somewhere into an object.
fn graft(target: &mut Value, at: usize, value: &Value) {
    let count = target.as_object().map_or(0, Map::len);
    let member = target.as_object_mut().and_then(|members| members.values_mut().nth(at % count.max(1)));
    match member {
        Some(member) if !at.is_multiple_of(7) => graft(member, at / 3, value),
        _ => *target = value.clone(),
    }
}

/// Removes what is false, and what says nothing then.
fn without_false(value: &mut Value) {
    if let Value::Object(members) = value {
        members.values_mut().for_each(without_false);
        members.retain(|_, member| *member != json!(false) && *member != json!({}));
    }
    if let Value::Array(elements) = value {
        elements.iter_mut().for_each(without_false);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn converting_twice_is_converting_once(object in any_kind(true)) {
        let once = changed(object);
        prop_assert_eq!(&once["apiVersion"], "cluster.x-k8s.io/v1beta2");
        prop_assert_eq!(to_v1beta2(once.clone()), Ok(Converted::Unchanged(once)));
    }

    #[test]
    fn an_object_of_v1beta2_is_unchanged(kind in proptest::sample::select(&KINDS[..]), spec in anything(), status in anything()) {
        let object = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": null, "spec": spec, "status": status});
        prop_assert_eq!(to_v1beta2(object.clone()), Ok(Converted::Unchanged(object)));
    }

    #[test]
    fn whatever_is_written_is_converted_or_refused(object in any_kind(true), at in any::<usize>(), value in anything()) {
        let mut object = object;
        graft(&mut object, at, &value);
        if let Err(error) = to_v1beta2(object) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn a_field_that_is_not_known_stays(object in any_kind(true), value in anything()) {
        let mut more = object.clone();
        more["extra"] = value.clone();
        more["spec"]["extra"] = value.clone();
        let mut new = changed(object);
        new["extra"] = value.clone();
        new["spec"]["extra"] = value;
        prop_assert_eq!(changed(more), new);
    }

    /// The conversion for files and the webhook's are written down apart, and say the same.
    #[test]
    fn a_cluster_is_what_the_webhook_makes_of_it(object in whole("Cluster", false)) {
        let mut webhook = cluster::to_v1beta2(object.clone()).unwrap();
        let mut ours = changed(object);
        for part in ["spec", "status"] {
            without_false(&mut ours[part]);
            without_false(&mut webhook[part]);
            prop_assert_eq!(&ours[part], &webhook[part]);
        }
    }
}
