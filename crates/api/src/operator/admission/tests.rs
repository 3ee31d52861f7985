#![expect(clippy::needless_pass_by_value, reason = "tables read best with values in place")]

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::admission::Address;

fn provider(spec: Value) -> Value {
    json!({
        "apiVersion": "management.cluster.x-k8s.io/v1alpha1", "kind": "InfrastructureProvider",
        "metadata": {"name": "aws", "namespace": "capa-system"}, "spec": spec,
    })
}

fn judged(new: &Value, old: Option<&Value>) -> (Vec<String>, Vec<String>) {
    let verdict = judge(ProviderType::Infrastructure, new, old);
    assert_eq!(verdict.patch, Vec::<Value>::new());
    (verdict.errors.iter().map(ToString::to_string).collect(), verdict.warnings)
}

#[test]
fn what_never_works_is_refused() {
    let long = json!({"metadata": {"name": "n".repeat(49)}});
    for (object, expected) in [
        (provider(json!({"version": "v1.2.3"})), &[][..]),
        (json!({}), &[]),
        (
            provider(json!({"fetchConfig": {}})),
            &["spec.fetchConfig: Required value: has neither url nor selector; set one of them"],
        ),
        (
            provider(json!({"fetchConfig": {"url": "https://h", "selector": {}}})),
            &["spec.fetchConfig: Forbidden: has both url and selector; remove one of them"],
        ),
        (
            provider(json!({"fetchConfig": {"url": "ftp://h"}})),
            &[
                r#"spec.fetchConfig.url: Invalid value: "ftp://h": is not an address of releases; begin with https://"#,
            ],
        ),
        (
            provider(json!({"fetchConfig": {"selector": {}}})),
            &["spec.fetchConfig.selector: Required value: is empty and would select every ConfigMap"],
        ),
        (
            provider(json!({"fetchConfig": {"selector": {"matchLabels": {"a": "b c"}}}})),
            &[r#"spec.fetchConfig.selector.matchLabels[a]: Invalid value: "b c": must consist of"#],
        ),
        (
            provider(json!({"manager": {"syncPeriod": -1}})),
            &["spec.manager.syncPeriod: Invalid value: -1: is negative; write 0 or more"],
        ),
        (
            provider(
                json!({"deployment": {"containers": [{"name": "a", "args": {"b": []}}, {"name": "a"}]}}),
            ),
            &[
                "spec.deployment.containers[a].args[b]: Invalid value: a list: is not the value of a flag; write text",
                r#"spec.deployment.containers: Duplicate value: "a": is the name of several entries"#,
            ],
        ),
        (
            provider(json!({"deployment": {"containers": [{"name": "a", "image": {"repo": "b"}}]}})),
            &[
                "spec: Invalid value: an object: cannot be read: a container's image has an unknown field `repo`",
            ],
        ),
        (long, &["metadata.name: Too long: makes a label that is too long"]),
    ] {
        let (errors, warnings) = judged(&object, None);
        assert_eq!(errors.len(), expected.len(), "{object}: {errors:#?}");
        for (error, expected) in errors.iter().zip(expected) {
            assert!(error.starts_with(expected), "{object}: {error}");
        }
        assert_eq!(warnings, Vec::<String>::new(), "{object}");
    }
}

#[test]
fn what_may_be_mended_or_does_nothing_is_warned_of() {
    let object = provider(json!({
        "version": "1.2.3",
        "manager": {"cacheNamespace": "a"},
        "deployment": {"containers": [{"name": "manager", "args": {"namespace": "a"}}]},
    }));
    let (errors, warnings) = judged(&object, None);
    assert_eq!(errors, Vec::<String>::new());
    let expected = [
        r#"the provider is not installed or upgraded while spec.version: "1.2.3": has no leading v; write v1.2.3"#,
        "spec.deployment.containers[manager].args[namespace] is ignored: every provider watches all namespaces",
        "spec.manager.cacheNamespace is ignored: every provider watches all namespaces",
    ];
    assert_eq!(warnings, expected);
    // Warnings are for those who write a spec.
    let mut labelled = object.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(judged(&labelled, Some(&object)), (Vec::new(), Vec::new()));
}

#[test]
fn what_was_stored_before_may_stay() {
    let old = provider(json!({"fetchConfig": {"url": "ftp://h"}}));
    let mut new = old.clone();
    new["spec"]["paused"] = json!(true);
    let (errors, warnings) = judged(&new, Some(&old));
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    assert!(warnings[0].starts_with("left as it was, but not valid: spec.fetchConfig.url: Invalid value"));
    new["spec"]["fetchConfig"]["url"] = json!("ftp://other");
    assert_eq!(judged(&new, Some(&old)).0.len(), 1);
    // Nothing keeps a finalizer from being removed.
    new["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(judged(&new, Some(&old)), (Vec::new(), Vec::new()));
}

#[test]
fn a_manager_under_debug_is_locked() {
    let old = provider(json!({"manager": {"debug": true}}));
    let new = provider(json!({"manager": {"debug": true, "syncPeriod": 5}}));
    let (errors, _) = judged(&new, Some(&old));
    assert_eq!(
        errors,
        [
            "spec.manager: Forbidden: manager.debug is true and locks the other properties of the manager; set debug \
          to false, then change them (changed: syncPeriod)"
        ]
    );
    assert_eq!(judged(&new, None).0, Vec::<String>::new());
}

#[test]
fn each_kind_has_a_webhook_that_may_be_absent() {
    let address = Address::Service { namespace: "capi-operator-system", name: "webhook" };
    let configuration = json!(webhook_configuration(address));
    assert_eq!(
        configuration["metadata"],
        json!({
            "name": "capi-operator-validating-webhook-configuration",
            "labels": {"clusterctl.cluster.x-k8s.io/core": "capi-operator"},
        })
    );
    let webhooks = configuration["webhooks"].as_array().unwrap();
    assert_eq!(webhooks.len(), ProviderType::ALL.len());
    assert_eq!(
        webhooks[4],
        json!({
            "name": "validation.ipamprovider.management.cluster.x-k8s.io",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {
                "namespace": "capi-operator-system", "name": "webhook",
                "path": "/validate-management-cluster-x-k8s-io-v1alpha1-ipamprovider",
            }},
            "failurePolicy": "Ignore", "matchPolicy": "Equivalent", "sideEffects": "None", "timeoutSeconds": 5,
            "rules": [{"apiGroups": ["management.cluster.x-k8s.io"], "apiVersions": ["v1alpha1"],
                "operations": ["CREATE", "UPDATE"], "resources": ["ipamproviders"]}],
        })
    );
}

/// Any JSON, with the names that the rules look at among its keys.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let names = "name|args|image|url|selector|matchLabels|matchExpressions|syncPeriod|debug|[a-z]{1,3}";
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names, inner, 0..4)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn anything_is_judged(
        metadata in anything(), manager in anything(), containers in anything(), fetch in anything(), old in anything(),
    ) {
        let spec = json!({"manager": manager, "deployment": {"containers": containers}, "fetchConfig": fetch});
        let mut new = provider(spec);
        new["metadata"] = metadata;
        for kind in ProviderType::ALL {
            judge(kind, &new, None);
            judge(kind, &new, Some(&provider(old.clone())));
            judge(kind, &old, Some(&new));
        }
    }
}
