use capstan_lifecycle::diff::{ObjectPreview, ProviderPreview, Summary};
use serde_json::json;
use std::sync::Arc;

use super::*;

fn object(kind: &str) -> ObjectRef {
    let api_version = if kind == "Deployment" { "apps/v1" } else { "v1" };
    ObjectRef::new(api_version, kind, Some("n"), "it")
}

#[test]
fn drift_is_reported_with_fields_and_without_values() {
    let changed = |kind: &str, action: Action, fields: Vec<String>| ObjectPreview {
        object: object(kind),
        action,
        difference: Vec::new(),
        fields,
    };
    let many = (0..14).map(|it| format!("data.k{it}")).collect();
    let preview = Preview {
        providers: vec![ProviderPreview {
            provider: "infrastructure-aws".to_owned(),
            summary: Summary::default(),
            objects: vec![
                changed("Deployment", Action::Changed, vec!["spec.replicas".to_owned()]),
                changed("ConfigMap", Action::Changed, many),
                changed("Secret", Action::Unchanged, Vec::new()),
                changed("Service", Action::Created, Vec::new()),
            ],
        }],
        ..Preview::default()
    };
    let found = differences(&preview, |_| true);
    assert_eq!(found[0], "Deployment n/it (spec.replicas)");
    assert!(found[1].ends_with("data.k11 and 2 more fields)"), "{}", found[1]);
    assert_eq!(found[2..], ["Service n/it is missing"]);
    assert_eq!(differences(&preview, |it| it.kind == "Service").len(), 1);
}

#[test]
fn where_drift_is_only_reported_an_edit_writes_only_what_it_is_about() {
    let snapshot = |reports: bool, verbosity: i64, applied: Option<i64>| {
        let spec = |verbosity: i64| json!({"manager": {"verbosity": verbosity}});
        let annotations =
            if reports { json!({capstan_api::operator::annotation::DRIFT: "report"}) } else { json!({}) };
        let provider = json!({"metadata": {"name": "aws", "namespace": "n", "annotations": annotations},
                              "spec": spec(verbosity)});
        let provider =
            ProviderRecord::new(ProviderType::Infrastructure, serde_json::from_value(provider).unwrap());
        Snapshot {
            provider: Arc::new(provider),
            others: Vec::new(),
            inventory: Vec::new(),
            deployments: Vec::new(),
            expected_deployments: None,
            wanted_contract: None,
            applied: applied.map(|it| Arc::new(serde_json::from_value(spec(it)).unwrap())),
            is_unverified: false,
        }
    };
    for (what, snapshot, cause, deployments, others) in [
        ("drift is healed", snapshot(false, 1, Some(1)), Cause::Drift, true, true),
        ("drift is reported", snapshot(true, 1, Some(1)), Cause::Drift, false, false),
        ("a flag", snapshot(true, 2, Some(1)), Cause::Change, true, false),
        ("after a restart", snapshot(true, 2, None), Cause::Change, true, false),
        ("another field", snapshot(true, 1, Some(1)), Cause::Change, false, false),
        ("a flag where drift is healed", snapshot(false, 2, Some(1)), Cause::Change, true, true),
        ("the end of a pause", snapshot(true, 1, Some(1)), Cause::Unpause, true, false),
    ] {
        let writes = writes(&snapshot, cause);
        assert_eq!(
            (writes(&object("Deployment")), writes(&object("Service"))),
            (deployments, others),
            "{what}"
        );
    }
}
