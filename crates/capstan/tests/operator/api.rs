//! The operator's kinds as an API server serves them: the specification's examples, and what is refused.

use std::{fs, path::Path, sync::Arc};

use capstan_api::{
    admission::Address,
    contract::GroupKind,
    operator::{
        self, GROUP, VERSION,
        admission::{judge, validate_path, webhook_configuration},
    },
    provider::ProviderType,
};
use capstan_runtime::{
    install::install_crds, manager::Manager, metrics::Metrics, options::ManagerOptions, tls::OwnCertificate,
};
use capstan_testkit::{Story, wait};
use http::Request;
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration,
    core::v1::{ConfigMap, Namespace},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    client::Body,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::OnceCell};
use tokio_util::sync::CancellationToken;

/// A story on a control plane that serves the operator's kinds.
async fn begin(name: &str) -> Story {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let story = Story::begin(name).await;
    let install = async || install_crds(&story.client, &operator::crds(), "story").await.unwrap();
    INSTALLED.get_or_init(install).await;
    story
}

fn providers(client: &Client, kind: ProviderType, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &operator::resource(kind))
}

fn strictly() -> PatchParams {
    PatchParams::apply("story").validation_strict()
}

/// All documents of all examples, in the order of their files.
fn examples() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/tests/operator/examples");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let documents = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        objects.into_iter().filter(|it| !it.is_null()).map(move |it| (name.clone(), it)).collect::<Vec<_>>()
    };
    files.iter().flat_map(|path| documents(path)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_apply_as_they_are() {
    let story = begin("examples").await;
    let namespaces: Api<Namespace> = Api::all(story.client.clone());
    let mut applied = 0;
    for (file, object) in examples() {
        let text = |field: &str| object["metadata"][field].as_str().unwrap();
        let (name, namespace) = (text("name"), text("namespace"));
        let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        namespaces.patch(namespace, &strictly(), &Patch::Apply(own)).await.unwrap();
        let kind = object["kind"].as_str().unwrap();
        if let Some(kind) = ProviderType::from_name(kind) {
            let api = providers(&story.client, kind, namespace);
            let stored = api.patch(name, &strictly(), &Patch::Apply(&object)).await;
            let stored = stored.unwrap_or_else(|error| panic!("{file}: {error}"));
            assert_eq!(stored.data["spec"], object["spec"], "{file}: nothing is pruned or filled in");
            applied += 1;
        } else if kind == "ConfigMap" {
            let api: Api<ConfigMap> = Api::namespaced(story.client.clone(), namespace);
            api.patch(name, &strictly(), &Patch::Apply(&object)).await.unwrap();
        } else {
            // The values of the Secret are dots, which stand for what is really there.
            assert_eq!((kind, name), ("Secret", "aws-variables"), "{file}");
        }
    }
    assert_eq!(applied, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_refused_with_words_that_help() {
    let story = begin("mistakes").await;
    let api = providers(&story.client, ProviderType::Infrastructure, &story.namespace);
    let fetch = |value: Value| json!({ "fetchConfig": value });
    let manager = |value: Value| json!({ "manager": value });
    let requirement = |value: Value| fetch(json!({"selector": {"matchExpressions": [value]}}));
    let container = |value: Value| json!({"deployment": {"containers": [value]}});
    for (spec, words) in [
        (
            fetch(json!({"url": "https://example.com", "selector": {"matchLabels": {"a": "b"}}})),
            &["spec.fetchConfig", "must have exactly one of url and selector"][..],
        ),
        (fetch(json!({})), &["spec.fetchConfig", "must have exactly one of url and selector"]),
        (
            fetch(json!({"url": "github.com/o/r"})),
            &["spec.fetchConfig.url", "must begin with https://, http://"],
        ),
        (fetch(json!({"url": "https:///o/r"})), &["spec.fetchConfig.url", "followed by a host"]),
        (fetch(json!({"url": ""})), &["spec.fetchConfig.url", "at least 1 chars long"]),
        (fetch(json!({"selector": {}})), &["spec.fetchConfig.selector", "would select every ConfigMap"]),
        (
            requirement(json!({"key": "a", "operator": "Is"})),
            &["spec.fetchConfig.selector.matchExpressions[0].operator", "Unsupported value"],
        ),
        (
            requirement(json!({"key": "a", "operator": "In"})),
            &["spec.fetchConfig.selector.matchExpressions[0]", "must have values for In and NotIn"],
        ),
        (
            json!({"deployment": {"replicas": -1}}),
            &["spec.deployment.replicas", "greater than or equal to 0"],
        ),
        (json!({"deployment": {"replicas": 2_147_483_648_i64}}), &["spec.deployment.replicas"]),
        (
            manager(json!({"maxConcurrentReconciles": 0})),
            &["spec.manager.maxConcurrentReconciles", "greater than or equal to 1"],
        ),
        (manager(json!({"verbosity": -1})), &["spec.manager.verbosity", "greater than or equal to 0"]),
        (manager(json!({"webhook": {"port": 65536}})), &["spec.manager.webhook.port", "65535"]),
        (
            manager(json!({"syncPeriod": "soon"})),
            &["spec.manager.syncPeriod", "must be seconds as a number, or text such as 10m30s"],
        ),
        (
            manager(json!({"leaderElection": {"retryPeriod": "-5s"}})),
            &[
                "spec.manager.leaderElection.retryPeriod",
                "must be seconds as a number, or text such as 10m30s",
            ],
        ),
        (manager(json!({"syncPeriod": -5})), &["spec.manager.syncPeriod", "greater than or equal to 0"]),
        (manager(json!({"syncPeriod": true})), &["spec.manager.syncPeriod"]),
        (manager(json!({"featureGates": {"A": "true"}})), &["spec.manager.featureGates.A", "boolean"]),
        (manager(json!({"bogus": 1})), &["spec.manager.bogus", "field not declared in schema"]),
        (json!({"secretName": "Bad_Name"}), &["spec.secretName", "should match"]),
        (container(json!({"image": "a"})), &["name"]),
        (container(json!({"name": "A"})), &["spec.deployment.containers[0].name", "should match"]),
        (container(json!({"name": "a", "image": ""})), &["spec.deployment.containers[0].image"]),
        (container(json!({"name": "a", "image": {"tag": 1}})), &["image.tag: expected string"]),
        (container(json!({"name": "a", "args": ["--b"]})), &["args"]),
        (container(json!({"name": "a", "env": [{"value": "b"}]})), &["env"]),
        (container(json!({"name": "a", "env": [{"name": "b", "value": 1}]})), &["value: expected string"]),
        (json!({"deployment": {"containers": [{"name": "a"}, {"name": "a"}]}}), &["containers", "duplicate"]),
        (json!({"deployment": {"tolerations": ["a"]}}), &["tolerations"]),
    ] {
        let object = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "InfrastructureProvider",
            "metadata": {"name": "aws"}, "spec": spec,
        });
        let refused = api.patch("aws", &strictly(), &Patch::Apply(&object)).await;
        let refused = refused.expect_err(&object.to_string()).to_string();
        for words in words {
            assert!(refused.contains(words), "{spec}: {words:?} is not in {refused}");
        }
    }

    let long = "n".repeat(49);
    let refused =
        api.create(&PostParams::default(), &provider(&long, &json!({}))).await.unwrap_err().to_string();
    assert!(refused.contains("metadata.name") && refused.contains("48"), "{refused}");
    // The controller says what is wrong with a version, and nothing is wrong with an object that has only a name.
    for spec in [json!({"version": "one"}), json!({"version": ""}), json!({}), json!(null)] {
        let stored = api.create(&PostParams::default(), &provider("aws", &spec)).await.unwrap();
        api.delete(&stored.name_any(), &DeleteParams::default()).await.unwrap();
    }
}

fn provider(name: &str, spec: &Value) -> DynamicObject {
    let object = DynamicObject::new(name, &operator::resource(ProviderType::Infrastructure));
    if spec.is_null() { object.data(json!({})) } else { object.data(json!({ "spec": spec })) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_under_debug_is_locked_by_the_schema() {
    let story = begin("debug").await;
    let api = providers(&story.client, ProviderType::Infrastructure, &story.namespace);
    let patch = async |name: &str, spec: Value| {
        let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(json!({ "spec": spec }))).await;
        patched.map_err(|error| error.to_string())
    };
    let manager = json!({
        "debug": true, "syncPeriod": 660, "verbosity": 2, "featureGates": {"A": true},
        "leaderElection": {"leaseDuration": "15s"},
    });
    api.create(&PostParams::default(), &provider("aws", &json!({ "manager": manager }))).await.unwrap();
    for spec in [
        json!({"manager": {"verbosity": 3}}),
        json!({"manager": {"verbosity": null}}),
        json!({"manager": {"syncPeriod": "660s"}}),
        json!({"manager": {"featureGates": {"A": false}}}),
        json!({"manager": {"leaderElection": {"retryPeriod": 5}}}),
        json!({"manager": {"metricsAddress": ":8080"}}),
        json!({"manager": null}),
        json!(null),
    ] {
        let refused = patch("aws", spec.clone()).await.unwrap_err();
        let words = "spec.manager: Forbidden: manager.debug is true and locks the other properties of the manager; \
                     set debug to false, then change them";
        assert!(refused.contains(words), "{spec}: {refused}");
    }
    // Everything else may change, and so may the manager once debugging is over.
    patch("aws", json!({"version": "v1.0.0", "manager": {"syncPeriod": 660}})).await.unwrap();
    let status = json!({"status": {"installedVersion": "v1.0.0"}});
    api.patch_status("aws", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    patch("aws", json!({"manager": {"debug": false, "verbosity": 3}})).await.unwrap();
    patch("aws", json!({"manager": {"debug": true}})).await.unwrap();
    patch("aws", json!({"manager": {"debug": null}})).await.unwrap();
    patch("aws", json!({"manager": null})).await.unwrap();
    // A manager that was there for debugging alone may be removed.
    patch("aws", json!({"manager": {"debug": true}})).await.unwrap();
    patch("aws", json!({"manager": null})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_show_what_matters() {
    let story = begin("columns").await;
    let api = providers(&story.client, ProviderType::Infrastructure, &story.namespace);
    let spec = json!({"version": "v1.1.0", "paused": true});
    api.create(&PostParams::default(), &provider("aws", &spec)).await.unwrap();
    let condition = |type_: &str, status: &str, message: &str| {
        json!({
            "type": type_, "status": status, "reason": "Reason", "message": message, "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let status = json!({
        "installedVersion": "v1.0.0", "contract": "v1beta2", "observedGeneration": 1,
        "conditions": [condition("Ready", "False", "it waits"), condition("Paused", "True", "")],
    });
    let object = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "InfrastructureProvider",
        "metadata": {"name": "aws"}, "status": status,
    });
    let stored = api.patch_status("aws", &strictly(), &Patch::Apply(&object)).await.unwrap();
    assert_eq!(stored.data["status"], status, "nothing is pruned");

    let path = format!("/apis/{GROUP}/{VERSION}/namespaces/{}/infrastructureproviders", story.namespace);
    let request = Request::get(path).header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let table: Value = story.client.request(request.body(Vec::new()).unwrap()).await.unwrap();
    let columns: Vec<_> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        columns,
        ["Name", "Type", "Version", "Installed", "Contract", "Ready", "Paused", "Message", "Age"]
    );
    let mut cells = table["rows"][0]["cells"].as_array().unwrap().clone();
    cells.pop();
    let expected =
        ["aws", "InfrastructureProvider", "v1.1.0", "v1.0.0", "v1beta2", "False", "True", "it waits"];
    assert_eq!(json!(cells), json!(expected));
}

/// Asks the API server what it would say to a provider; gives its warnings, or its message.
async fn try_create(story: &Story, kind: ProviderType, spec: Value) -> Result<Vec<String>, String> {
    let object = DynamicObject::new("it", &operator::resource(kind)).data(json!({ "spec": spec }));
    let path = format!(
        "/apis/{GROUP}/{VERSION}/namespaces/{}/{}?dryRun=All&fieldValidation=Strict",
        story.namespace,
        operator::plural(kind)
    );
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(Body::from(json!(object).to_string().into_bytes())).unwrap();
    let (parts, body) = story.client.send(request).await.unwrap().into_parts();
    let body: Value = serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap();
    if !parts.status.is_success() {
        return Err(body["message"].as_str().unwrap().to_owned());
    }
    Ok(parts.headers.get_all("warning").iter().map(|it| it.to_str().unwrap().to_owned()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_webhook_refuses_and_warns_of_what_a_schema_cannot_describe() {
    let story = begin("webhook").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("https://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let certificate = OwnCertificate::make(&["127.0.0.1"]).unwrap();
    let ca_pem = certificate.ca_pem.clone();
    let stop = CancellationToken::new();
    let (options, client) = (ManagerOptions::embedded(), story.client.clone());
    let mut manager = Manager::new(options, client, Metrics::default(), "story", "story", stop.clone());
    manager.serve_webhooks_on(listener, certificate);
    for kind in ProviderType::ALL {
        let group_kind = GroupKind::new(GROUP, kind.as_str());
        let judge = Arc::new(move |new: &Value, old: Option<&Value>| judge(kind, new, old));
        manager.admitters().add(&validate_path(kind), group_kind, VERSION, judge);
    }
    let manager = tokio::spawn(manager.run());

    let address = Address::Url { base: &base, ca_bundle_pem: ca_pem.as_bytes() };
    let mut configuration = webhook_configuration(address);
    // Other stories share the control plane.
    let namespace = json!({"matchLabels": {"kubernetes.io/metadata.name": story.namespace}});
    for webhook in configuration.webhooks.iter_mut().flatten() {
        webhook.namespace_selector = serde_json::from_value(namespace.clone()).unwrap();
    }
    let api: Api<ValidatingWebhookConfiguration> = Api::all(story.client.clone());
    api.create(&PostParams::default(), &configuration).await.unwrap();

    let create = async |kind: ProviderType, spec: Value| try_create(&story, kind, spec).await;
    // The API server hears of its webhooks by a watch.
    let deadline = tokio::time::Instant::now() + wait::LIMIT;
    let image = |image: Value| json!({"deployment": {"containers": [{"name": "manager", "image": image}]}});
    for kind in ProviderType::ALL {
        let refused = loop {
            match create(kind, image(json!({"repo": "x"}))).await {
                Err(refused) => break refused,
                Ok(_) => assert!(tokio::time::Instant::now() < deadline, "{kind} is never judged"),
            }
        };
        let words =
            "spec: Invalid value: an object: cannot be read: a container's image has an unknown field `repo`";
        assert!(refused.contains(words), "{refused}");
    }
    let kind = ProviderType::Infrastructure;
    for (spec, words) in [
        (image(json!(1)), "a container's image must be text, or an object with repository, name or tag"),
        (
            json!({"deployment": {"containers": [{"name": "manager", "args": {"a": {"b": "c"}}}]}}),
            "spec.deployment.containers[manager].args[a]: Invalid value: an object: is not the value of a flag",
        ),
        (
            json!({"fetchConfig": {"selector": {"matchLabels": {"a": "b c"}}}}),
            r#"spec.fetchConfig.selector.matchLabels[a]: Invalid value: "b c": must consist of letters"#,
        ),
    ] {
        let refused = create(kind, spec).await.unwrap_err();
        assert!(refused.contains(words), "{refused}");
    }
    let warnings =
        create(kind, json!({"version": "1.2.3", "manager": {"cacheNamespace": "a"}})).await.unwrap();
    for words in ["has no leading v; write v1.2.3", "spec.manager.cacheNamespace is ignored"] {
        assert!(warnings.iter().any(|it| it.contains(words)), "{words:?} is not in {warnings:?}");
    }

    stop.cancel();
    manager.await.unwrap().unwrap();
    // The webhook does not answer any more, and is not needed.
    assert_eq!(create(kind, image(json!({"repo": "x"}))).await, Ok(Vec::new()));
    api.delete(&configuration.name_any(), &DeleteParams::default()).await.unwrap();
}
