//! Providers from a catalog that is no configuration file: releases in ConfigMaps, variables and customization as values.
//! The operator goes this way.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use capstan_api::provider::ProviderType;
use capstan_lifecycle::{
    catalog::{Catalog, CertManagerPolicy, Source},
    check::Ready,
    goal::{ProviderGoal, VersionGoal},
    install::{self, InstallPlan, InstallPolicy, InstallRequest},
    release::{ReleaseError, ReleaseNotice, Releases},
    upgrade::{self, UpgradeError, UpgradeEvent, UpgradeGoal, UpgradePlan, UpgradePolicy, UpgradeRequest},
};
use capstan_management::{apply::ApplyEvent, inventory::Inventory};
use capstan_manifest::images::Overrides;
use capstan_repository::{ConfigMaps, Provider, Repository, VERSION_LABEL};
use capstan_testkit::wait::LIMIT;
use futures::future::BoxFuture;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    core::{Expression, Selector},
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::estate::{Estate, Release, manifest};

const PROVIDER_LABEL: &str = "example.com/provider";
const NAMESPACE: &str = "default";
const ACME: &str = "infrastructure-acme";
const MANAGER: &str = "acme-controller-manager";

/// Finds releases in ConfigMaps.
struct ConfigMapCatalog {
    client: Client,
    variables: BTreeMap<&'static str, &'static str>,
    /// The node label that Deployments are to select.
    zone: &'static str,
}

impl Catalog for ConfigMapCatalog {
    fn source<'a>(
        &'a self,
        kind: ProviderType,
        name: &str,
    ) -> BoxFuture<'a, Result<Source<'a>, ReleaseError>> {
        let provider = Provider { name: name.to_owned(), kind, url: String::new() };
        Box::pin(async move {
            let selector: Selector = Expression::Equal(PROVIDER_LABEL.to_owned(), provider.label()).into();
            let found = ConfigMaps::list(self.client.clone(), NAMESPACE, &selector).await;
            let found = found.map_err(|error| ReleaseError::Catalog(Box::new(error)))?;
            Ok(Source {
                repository: Repository::in_config_maps(&provider, found),
                provider,
                variables: Box::new(|name| self.variables.get(name).map(|it| (*it).to_owned())),
                images: Overrides::default(),
                alter: Some(Box::new(|objects| select_zone(objects, self.zone))),
            })
        })
    }
}

fn select_zone(objects: &mut [Value], zone: &str) -> Result<(), String> {
    if zone.is_empty() {
        return Err("the zone is empty".to_owned());
    }
    for deployment in objects.iter_mut().filter(|it| it["kind"] == "Deployment") {
        deployment["spec"]["template"]["spec"]["nodeSelector"] = json!({"zone": zone});
    }
    Ok(())
}

/// The components of a release: no cert-manager, and a level that is a variable.
fn components(release: &Release) -> Vec<Value> {
    let mut objects = release.components();
    objects.retain(|it| {
        it["apiVersion"] != "cert-manager.io/v1" && it["kind"] != "ValidatingWebhookConfiguration"
    });
    for deployment in objects.iter_mut().filter(|it| it["kind"] == "Deployment") {
        deployment["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["--v=${LEVEL}"]);
    }
    objects
}

async fn publish(client: &Client, release: &Release, components: &[Value]) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let name = format!("{}-{}", release.label, release.version);
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {PROVIDER_LABEL: release.label, VERSION_LABEL: release.version}},
        "data": {"metadata": release.metadata().to_string(), "components": manifest(components)},
    });
    maps.patch(&name, &PatchParams::apply("author").force(), &Patch::Apply(map)).await.unwrap();
}

fn goal(kind: ProviderType, name: &str, version: VersionGoal) -> ProviderGoal {
    ProviderGoal { kind, name: name.to_owned(), version, namespace: None }
}

fn exact(version: &str) -> VersionGoal {
    VersionGoal::Exact(version.to_owned())
}

/// An operator: everything it hands in is a value.
struct Operator {
    estate: Estate,
    catalog: ConfigMapCatalog,
}

impl Operator {
    async fn plan_install(&self, version: VersionGoal) -> InstallPlan {
        let cluster = self.estate.cluster();
        let inventory = Inventory::read(&cluster).await.unwrap();
        let request = InstallRequest {
            providers: vec![
                goal(ProviderType::Core, "cluster-api", exact("v1.0.0")),
                goal(ProviderType::Infrastructure, "acme", version),
            ],
            watching_namespace: None,
            rbac_prefix: true,
            cert_manager: CertManagerPolicy::LeaveAlone { limit: LIMIT },
        };
        let report = |_: ReleaseNotice<'_>| {};
        let releases = Releases { catalog: &self.catalog, report: &report };
        install::plan(&cluster, &inventory, &releases, &request).await.unwrap()
    }

    async fn upgrade(&self, version: VersionGoal) -> Ready<UpgradePlan> {
        let cluster = self.estate.cluster();
        let inventory = Inventory::read(&cluster).await.unwrap();
        let request = UpgradeRequest {
            goal: UpgradeGoal::Versions(vec![goal(ProviderType::Infrastructure, "acme", version)]),
            reapply: true,
            cert_manager: CertManagerPolicy::LeaveAlone { limit: LIMIT },
        };
        let report = |_: ReleaseNotice<'_>| {};
        let releases = Releases { catalog: &self.catalog, report: &report };
        let plan = upgrade::plan(&cluster, &inventory, &releases, &request).await.unwrap();
        plan.check(&cluster, UpgradePolicy::default()).unwrap()
    }

    /// Applies the installed version again, and returns the objects that were written.
    async fn reapply(&self) -> Vec<String> {
        let written = Mutex::new(Vec::new());
        let report = |event: UpgradeEvent<'_>| match event {
            UpgradeEvent::Applied(ApplyEvent::Applied(object)) => {
                written.lock().unwrap_or_else(PoisonError::into_inner).push(object.to_string());
            }
            UpgradeEvent::Stopping(step) => panic!("{} is stopped", step.label()),
            _ => {}
        };
        self.upgrade(exact("v1.0.0")).await.run(&report).await.unwrap();
        written.into_inner().unwrap()
    }

    async fn deployment(&self) -> Deployment {
        Api::namespaced(self.estate.client.clone(), "acme-system").get(MANAGER).await.unwrap()
    }

    async fn version(&self) -> (String, Option<String>) {
        let inventory = Inventory::read(&self.estate.cluster()).await.unwrap();
        let acme = inventory.providers.into_iter().find(|it| it.label() == ACME).unwrap();
        (acme.version, acme.upgrading_to)
    }
}

fn args(deployment: &Deployment) -> &[String] {
    let pod = deployment.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    pod.containers[0].args.as_ref().unwrap()
}

fn zone(deployment: &Deployment) -> &str {
    let pod = deployment.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    &pod.node_selector.as_ref().unwrap()["zone"]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_of_values_installs_reapplies_alters_and_upgrades() {
    let estate = Estate::bare().await;
    let client = estate.client.clone();
    let [core, .., acme] = Release::all("v1.0.0");
    let extra = json!({"apiVersion": "v1", "kind": "ConfigMap",
                       "metadata": {"name": "extra", "namespace": "acme-system"}});
    publish(&client, &core, &components(&core)).await;
    publish(&client, &acme, &[components(&acme), vec![extra]].concat()).await;
    let variables = BTreeMap::from([("LEVEL", "1")]);
    let catalog = ConfigMapCatalog { client: client.clone(), variables, zone: "a" };
    let mut operator = Operator { estate, catalog };

    installs(&operator).await;
    changed_values_are_applied_again(&mut operator, &acme).await;
    drift_is_healed(&operator).await;

    let next = Release { version: "v1.1.0", ..acme.clone() };
    publish(&client, &next, &components(&next)).await;
    let ready = operator.upgrade(VersionGoal::Latest).await;
    assert!(!ready.plan().steps()[0].is_reapply);
    ready.run(&|_| {}).await.unwrap();
    assert_eq!(operator.version().await, ("v1.1.0".to_owned(), None));

    Box::pin(a_run_that_is_cut_off_starts_the_controllers_again(&operator, &acme)).await;
    what_cannot_be_rendered_is_a_problem(&mut operator).await;
}

async fn installs(operator: &Operator) {
    let plan = operator.plan_install(exact("v1.0.0")).await;
    let ready = plan.check(&operator.estate.cluster(), InstallPolicy::default()).unwrap();
    ready.run(&|_| {}).await.unwrap();
    let deployment = operator.deployment().await;
    assert_eq!((args(&deployment), zone(&deployment)), (&["--v=1".to_owned()][..], "a"));
    assert_eq!(operator.version().await, ("v1.0.0".to_owned(), None));
    let again = operator.plan_install(exact("v1.0.0")).await;
    assert!(again.is_empty() && again.present().len() == 2, "{:?}", again.present());
}

async fn changed_values_are_applied_again(operator: &mut Operator, acme: &Release) {
    assert_eq!(operator.reapply().await, [] as [&str; 0], "nothing changed");
    let before = operator.estate.versions_of_objects().await;

    operator.catalog.variables.insert("LEVEL", "5");
    operator.catalog.zone = "b";
    publish(&operator.estate.client, acme, &components(acme)).await;
    assert_eq!(operator.reapply().await, [format!("Deployment acme-system/{MANAGER}")]);
    let deployment = operator.deployment().await;
    assert_eq!((args(&deployment), zone(&deployment)), (&["--v=5".to_owned()][..], "b"));

    let after = operator.estate.versions_of_objects().await;
    let differs = |(id, version): &(&String, &String)| after.get(*id) != Some(*version);
    let changed: Vec<&String> = before.iter().filter(differs).map(|it| it.0).collect();
    assert_eq!(changed, ["ConfigMap acme-system/extra", &format!("Deployment acme-system/{MANAGER}")]);
    assert!(!after.contains_key("ConfigMap acme-system/extra"), "the release has it no longer");
}

async fn drift_is_healed(operator: &Operator) {
    let deployments: Api<Deployment> = Api::namespaced(operator.estate.client.clone(), "acme-system");
    let by_hand =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "manager", "args": ["--v=9"]}]}}}});
    let hand = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    deployments.patch(MANAGER, &hand, &Patch::Strategic(&by_hand)).await.unwrap();
    assert_eq!(operator.reapply().await, [format!("Deployment acme-system/{MANAGER}")]);
    assert_eq!(args(&operator.deployment().await), ["--v=5"]);
    assert_eq!(operator.reapply().await, [] as [&str; 0]);
}

/// A controller's time limit, or its lost lease, ends a run while its provider is stopped.
async fn a_run_that_is_cut_off_starts_the_controllers_again(operator: &Operator, acme: &Release) {
    let next = Release { version: "v1.2.0", ..acme.clone() };
    publish(&operator.estate.client, &next, &components(&next)).await;
    let ready = operator.upgrade(exact("v1.2.0")).await;
    let stop = Notify::new();
    let report = |event: UpgradeEvent<'_>| {
        if matches!(event, UpgradeEvent::Replacing(_)) {
            stop.notify_one();
        }
    };
    let failed = ready.run_until(stop.notified(), &report).await.unwrap_err();
    assert!(matches!(failed.error, UpgradeError::CutOff), "{failed:?}");
    assert_eq!(failed.waiting.len(), 1, "{failed:?}");
    assert!(failed.waiting[0].not_started.is_none(), "{failed:?}");
    let deployment = operator.deployment().await;
    assert_eq!(deployment.spec.as_ref().unwrap().replicas, Some(1), "{:?}", deployment.annotations());
    assert_eq!(operator.version().await, ("v1.1.0".to_owned(), Some("v1.2.0".to_owned())));

    operator.upgrade(exact("v1.2.0")).await.run(&|_| {}).await.unwrap();
    assert_eq!(operator.version().await, ("v1.2.0".to_owned(), None));
    assert_eq!(operator.deployment().await.spec.unwrap().replicas, Some(1));
}

async fn what_cannot_be_rendered_is_a_problem(operator: &mut Operator) {
    operator.catalog.zone = "";
    let plan = operator.plan_install(exact("v1.0.0")).await;
    let problems = plan.check(&operator.estate.cluster(), InstallPolicy { validate: false }).unwrap_err();
    assert!(problems.to_string().contains("the zone is empty"), "{problems}");

    let namespaces: Api<ConfigMap> = Api::namespaced(operator.estate.client.clone(), NAMESPACE);
    let maps = namespaces.list(&ListParams::default()).await.unwrap();
    for map in maps.items.iter().filter(|it| it.labels().get(PROVIDER_LABEL).is_some_and(|it| it == ACME)) {
        namespaces.delete(&map.name_any(), &DeleteParams::default()).await.unwrap();
    }
    let plan = operator.plan_install(exact("v1.0.0")).await;
    let problems = plan.check(&operator.estate.cluster(), InstallPolicy::default()).unwrap_err();
    assert!(problems.to_string().contains("infrastructure-acme: there are no ConfigMaps"), "{problems}");
}
