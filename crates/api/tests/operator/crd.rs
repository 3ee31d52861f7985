//! The CRDs that the API server gets.

use std::collections::BTreeSet;

use capstan_api::{
    operator::{self, condition, crd, crds},
    provider::ProviderType,
};
use serde_json::{Value, json};

fn root(kind: ProviderType) -> Value {
    json!(crd(kind))["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

#[test]
fn each_kind_has_its_names() {
    let names: Vec<_> = crds()
        .into_iter()
        .map(|crd| {
            let names = crd.spec.names;
            (
                crd.metadata.name.unwrap(),
                names.kind,
                names.list_kind.unwrap(),
                names.singular.unwrap(),
                names.short_names.unwrap().join(","),
            )
        })
        .collect();
    let expected = [
        ("coreproviders", "CoreProvider", "cacp"),
        ("bootstrapproviders", "BootstrapProvider", "cabp"),
        ("controlplaneproviders", "ControlPlaneProvider", "cacpp"),
        ("infrastructureproviders", "InfrastructureProvider", "caip"),
        ("ipamproviders", "IPAMProvider", "caipamp"),
        ("runtimeextensionproviders", "RuntimeExtensionProvider", "carep"),
        ("addonproviders", "AddonProvider", "caap"),
    ]
    .map(|(plural, kind, short)| {
        let name = format!("{plural}.management.cluster.x-k8s.io");
        (name, kind.to_owned(), format!("{kind}List"), kind.to_lowercase(), short.to_owned())
    });
    assert_eq!(names, expected);
}

#[test]
fn each_kind_is_namespaced_with_one_version_a_status_and_columns() {
    for kind in ProviderType::ALL {
        let crd = json!(crd(kind));
        assert_eq!(crd["metadata"]["labels"], json!({"clusterctl.cluster.x-k8s.io/core": "capi-operator"}));
        let spec = &crd["spec"];
        assert_eq!((&spec["group"], &spec["scope"]), (&json!(operator::GROUP), &json!("Namespaced")));
        assert_eq!(spec["names"]["categories"], json!(["cluster-api"]));
        assert_eq!(spec["conversion"], json!(null));
        let [version] = &spec["versions"].as_array().unwrap()[..] else { panic!("{crd}") };
        assert_eq!(version["name"], operator::VERSION);
        assert_eq!((&version["served"], &version["storage"]), (&json!(true), &json!(true)));
        assert_eq!(version["subresources"], json!({"status": {}}));
        let columns: Vec<_> = version["additionalPrinterColumns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| {
                assert_eq!(it["priority"], json!(null));
                (it["name"].as_str().unwrap(), it["jsonPath"].as_str().unwrap())
            })
            .collect();
        let condition =
            |type_: &str, field: &str| format!(r#".status.conditions[?(@.type=="{type_}")].{field}"#);
        assert_eq!(
            columns,
            [
                ("Type", ".kind"),
                ("Version", ".spec.version"),
                ("Installed", ".status.installedVersion"),
                ("Contract", ".status.contract"),
                ("Ready", &condition(condition::READY, "status")),
                ("Paused", &condition(condition::PAUSED, "status")),
                ("Message", &condition(condition::READY, "message")),
                ("Age", ".metadata.creationTimestamp"),
            ]
        );
        assert_eq!(version["schema"]["openAPIV3Schema"]["required"], json!(null));
    }
}

#[test]
fn names_fit_into_the_providers_label() {
    for (kind, longest) in [
        (ProviderType::Core, 63),
        (ProviderType::Bootstrap, 53),
        (ProviderType::ControlPlane, 49),
        (ProviderType::Infrastructure, 48),
        (ProviderType::Ipam, 58),
        (ProviderType::RuntimeExtension, 45),
        (ProviderType::Addon, 57),
    ] {
        assert_eq!(root(kind)["properties"]["metadata"]["properties"]["name"]["maxLength"], longest);
        assert_eq!(kind.label(&"n".repeat(longest)).len(), 63);
    }
}

/// All properties of a schema that have a description, or should have one.
fn undescribed(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        if property["description"].as_str().is_none_or(|it| it.contains('\n')) {
            found.insert(path.clone());
        }
        for inner in [property, &property["items"]] {
            undescribed(inner, &path, found);
        }
    }
}

#[test]
fn every_field_is_explained_in_one_line() {
    let mut found = BTreeSet::new();
    undescribed(&root(ProviderType::Core), "", &mut found);
    assert_eq!(found, BTreeSet::from([".metadata".to_owned()]), "Kubernetes explains this one");
}

#[test]
fn the_lock_covers_every_property_of_the_manager() {
    let root = root(ProviderType::Core);
    let rule = root["x-kubernetes-validations"][0]["rule"].as_str().unwrap();
    let manager = root["properties"]["spec"]["properties"]["manager"]["properties"].as_object().unwrap();
    let others: Vec<_> = manager.keys().filter(|it| *it != "debug").collect();
    assert_eq!(others.len(), 12);
    for field in others {
        assert!(rule.contains(&format!("!has(oldSelf.spec.manager.{field})")), "{field}: {rule}");
    }
}
