//! Our release, installed by upstream's clusterctl, and a manager that may do no more than its ServiceAccount.

use capstan_api::{cluster::v1beta2::Cluster, conditions};
use capstan_runtime::install::install_crds;
use capstan_testkit::{
    Story, generic,
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
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
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

/// An authority as kubeadm makes it.
const OTHER_AUTHORITY: (&str, &str) = (
    include_str!("../../../cluster/src/kubeconfig/testdata/rsa.crt"),
    include_str!("../../../cluster/src/kubeconfig/testdata/rsa-pkcs1.key"),
);

/// Cluster `c` gets a kubeconfig from its authority, and another one from another authority.
async fn check_kubeconfig(story: &Story) {
    let secrets: Api<Secret> = Api::namespaced(story.client.clone(), &story.namespace);
    let authority =
        |(certificate, key): (&str, &str)| json!({"stringData": {"tls.crt": certificate, "tls.key": key}});
    let (certificate, key) = story.plane.authority();
    let mut secret = authority((&certificate, &key));
    secret["metadata"] = json!({"name": "c-ca", "labels": {"cluster.x-k8s.io/cluster-name": "c"}});
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    let first = wait::until_is(&secrets, "c-kubeconfig", "made", LIMIT, |_| true).await;
    let other = Patch::Merge(authority(OTHER_AUTHORITY));
    secrets.patch("c-ca", &PatchParams::default(), &other).await.unwrap();
    wait::until_is(&secrets, "c-kubeconfig", "made anew", LIMIT, |it| {
        it.uid() == first.uid() && it.data != first.data
    })
    .await;
}

/// Installs a kind of upstream's core group that takes anything.
async fn install_core_kind(story: &Story, kind: &str, plural: &str) -> (Api<DynamicObject>, ApiResource) {
    const GROUP: &str = "cluster.x-k8s.io";
    let mut crd = generic::crd(kind, &[]);
    crd.metadata.name = Some(format!("{plural}.{GROUP}"));
    GROUP.clone_into(&mut crd.spec.group);
    plural.clone_into(&mut crd.spec.names.plural);
    install_crds(&story.client, &[crd], "story").await.unwrap();
    let kind = GroupVersionKind::gvk(GROUP, generic::VERSION, kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    (Api::namespaced_with(story.client.clone(), &story.namespace, &resource), resource)
}

/// A Cluster hears what its class asks for.
async fn check_class(story: &Story) {
    let (classes, resource) = install_core_kind(story, "ClusterClass", "clusterclasses").await;
    let class = json!({"spec": {"availabilityGates": [{"conditionType": "example.com/Gate"}]}});
    let class = DynamicObject::new("class", &resource).data(class);
    classes.create(&PostParams::default(), &class).await.unwrap();
    let spec = json!({"topology": {"classRef": {"name": "class"}, "version": "v1.35.4"}});
    create_when_served(&story.clusters(), &cluster("t", &spec)).await;
    wait::until_is(&story.clusters(), "t", "waiting for its class's gate", LIMIT, |cluster| {
        let conditions = cluster.status.clone().unwrap_or_default().conditions;
        conditions::get(&conditions, "Available").is_some_and(|it| it.message.contains("example.com/Gate"))
    })
    .await;
    story.clusters().delete("t", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&story.clusters(), "t", LIMIT).await;
}

/// One of each kind that makes Machines, and a Machine, all of them Cluster `c`'s.
async fn create_machines(story: &Story, cluster: &Cluster) -> Vec<Api<DynamicObject>> {
    let mut apis = Vec::new();
    for kind in ["MachineDeployment", "MachineSet", "MachinePool", "Machine"] {
        let (api, resource) = install_core_kind(story, kind, &format!("{}s", kind.to_lowercase())).await;
        let mut object = DynamicObject::new("m", &resource);
        object.labels_mut().insert("cluster.x-k8s.io/cluster-name".to_owned(), "c".to_owned());
        object.owner_references_mut().push(cluster.owner_ref(&()).unwrap());
        api.create(&PostParams::default(), &object).await.unwrap();
        apis.push(api);
    }
    wait::until_is(&story.clusters(), "c", "with a worker", LIMIT, |cluster| {
        let conditions = cluster.status.clone().unwrap_or_default().conditions;
        conditions::get(&conditions, "WorkerMachinesReady").is_some_and(|it| it.message.contains("Machine m"))
    })
    .await;
    apis
}

pub(crate) fn forbidden<T>(answer: Result<T, kube::Error>) -> bool {
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
    let provisioned = story.until_phase("c", "Provisioned", LIMIT).await;
    check_kubeconfig(&story).await;
    check_class(&story).await;
    let machines = create_machines(&story, &provisioned).await;
    story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&story.clusters(), "c", LIMIT).await;
    wait::until_gone(&story.generics(kind), "c", LIMIT).await;
    for api in machines {
        assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty(), "{}", api.resource_url());
    }

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
