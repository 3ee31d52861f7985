//! Our release, installed by upstream's clusterctl, and a manager that may do no more than its ServiceAccount.

use capstan_runtime::install::install_crds;
use capstan_testkit::{
    generic,
    story::reference,
    wait::{self, LIMIT},
};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Namespace, Pod, Secret, Service, ServiceAccount},
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::management::{
    DEFINITION, NAMESPACE, Others, Released, VERSION, begin, cluster, create_when_served,
};

async fn labelled<K>(api: Api<K>, name: &str)
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let object = api.get(name).await.unwrap();
    assert_eq!(
        object.labels().get("cluster.x-k8s.io/provider").map(String::as_str),
        Some("cluster-api"),
        "{name}"
    );
    assert!(object.labels().contains_key("clusterctl.cluster.x-k8s.io"), "{name}");
}

async fn check_installed(client: &Client) {
    fn namespaced<K>(client: &Client) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(client.clone(), NAMESPACE)
    }
    labelled(Api::<Namespace>::all(client.clone()), NAMESPACE).await;
    labelled(Api::<CustomResourceDefinition>::all(client.clone()), DEFINITION).await;
    labelled(Api::<ClusterRole>::all(client.clone()), "capi-manager-role").await;
    labelled(Api::<ClusterRole>::all(client.clone()), "capi-aggregated-manager-role").await;
    labelled(Api::<ClusterRoleBinding>::all(client.clone()), "capi-manager-rolebinding").await;
    labelled(namespaced::<Role>(client), "capi-leader-election-role").await;
    labelled(namespaced::<RoleBinding>(client), "capi-leader-election-rolebinding").await;
    labelled(namespaced::<ServiceAccount>(client), "capi-manager").await;
    labelled(namespaced::<Service>(client), "capi-webhook-service").await;
    labelled(namespaced::<Deployment>(client), "capi-controller-manager").await;
    let deployment = namespaced::<Deployment>(client).get("capi-controller-manager").await.unwrap();
    let pod = deployment.spec.unwrap().template.spec.unwrap();
    let args = pod.containers[0].args.clone().unwrap();
    assert!(args.contains(&"--diagnostics-address=:8443".to_owned()), "variables are filled in: {args:?}");
    let providers = ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("clusterctl.cluster.x-k8s.io", "v1alpha3", "Provider"),
        "providers",
    );
    let providers: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &providers);
    assert_eq!(providers.get("cluster-api").await.unwrap().data["version"], VERSION);
}

fn forbidden<T>(answer: Result<T, kube::Error>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 403)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs upstream's clusterctl: make test-compat"]
async fn clusterctl_installs_a_release_whose_rules_are_enough_and_no_more() {
    let story = begin("release", Others::None).await;
    check_installed(&story.client).await;
    let manager = Released::start(&story).await;
    let secrets: Api<Secret> = Api::namespaced(story.client.clone(), NAMESPACE);
    let secret = &manager.identity.secret;
    assert!(secrets.get(secret).await.unwrap().data.unwrap().contains_key("ca.crt"));

    // A Cluster comes and goes.
    let kind = "GenericCluster";
    install_crds(&story.client, &[generic::crd(kind, &[("v1beta2", "v1beta2")])], "story").await.unwrap();
    story
        .create_generic(kind, "c", json!({"controlPlaneEndpoint": {"host": "example.com", "port": 6443}}))
        .await;
    let spec = json!({"infrastructureRef": reference(kind, "c")});
    create_when_served(&story.clusters(), &cluster("c", &spec)).await;
    story.set_generic_status(kind, "c", json!({"initialization": {"provisioned": true}})).await;
    story.until_phase("c", "Provisioned", LIMIT).await;
    story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&story.clusters(), "c", LIMIT).await;
    wait::until_gone(&story.generics(kind), "c", LIMIT).await;

    // What is not needed is not allowed.
    let account = &manager.account;
    assert!(forbidden(Api::<Pod>::all(account.clone()).list(&ListParams::default()).await));
    let secrets: Api<Secret> = Api::namespaced(account.clone(), NAMESPACE);
    assert!(forbidden(secrets.delete(secret, &DeleteParams::default()).await));
    let crds: Api<CustomResourceDefinition> = Api::all(account.clone());
    let touch = Patch::Merge(json!({"metadata": {"annotations": {"touched": "true"}}}));
    assert!(forbidden(crds.patch("certificates.cert-manager.io", &PatchParams::default(), &touch).await));
    assert!(forbidden(crds.delete(DEFINITION, &DeleteParams::default()).await));
    assert!(forbidden(Api::<Namespace>::all(account.clone()).list(&ListParams::default()).await));
    manager.stop().await;
}
