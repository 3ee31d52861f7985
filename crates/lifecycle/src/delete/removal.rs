//! What goes with a provider, and what outlives it.

use std::collections::BTreeMap;

use capstan_api::names::CLUSTERCTL_GROUP;
use capstan_manifest::components::SHARED_NAMESPACE;
use futures::TryStreamExt;
use serde_json::{Value, json};

use super::{DeleteOptions, DeleteProblem, DeleteTarget, choice::Chosen};
use crate::instance::{self, Owner};
use capstan_management::{
    Kinds, ManagementCluster, ObjectRef, ServerError,
    apply::Wave,
    at_once, crd,
    inventory::{Installed, Inventory},
    sweep::Component,
};

/// Namespaces that every cluster has.
const COMMON_NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// When something goes: whatever a stage leaves behind when a run is cut off, the API server stays usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Webhooks: they do not answer once the workloads are gone.
    Webhooks,
    /// Objects of the provider's own kinds, while their controllers run.
    Resources,
    /// What runs.
    Workloads,
    /// Roles, accounts, configuration, services, certificates.
    Settings,
    /// Kinds.
    Crds,
    /// Namespaces with all that is in them.
    Namespaces,
    /// The provider's entry in the inventory: what has one can be deleted again.
    Inventory,
}

impl Stage {
    /// All of them, in order.
    pub const ALL: [Self; 7] = [
        Self::Webhooks,
        Self::Resources,
        Self::Workloads,
        Self::Settings,
        Self::Crds,
        Self::Namespaces,
        Self::Inventory,
    ];

    /// What to call it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Webhooks => "webhooks",
            Self::Resources => "resources",
            Self::Workloads => "workloads",
            Self::Settings => "settings",
            Self::Crds => "CRDs",
            Self::Namespaces => "namespaces",
            Self::Inventory => "inventory",
        }
    }
}

/// Something that goes.
#[derive(Clone, Debug)]
pub struct Removal {
    /// The object.
    pub component: Component,
    /// The stage in which it is deleted.
    pub stage: Stage,
    /// Whether its namespace takes it along.
    pub goes_with_namespace: bool,
}

/// Something that stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The object.
    pub object: ObjectRef,
    /// The reason.
    pub why: WhyKept,
}

/// Why something stays.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyKept {
    /// It is a CRD, or is shared in another way.
    Shared,
    /// Another instance of the provider needs it.
    OtherInstance(String),
    /// It is a namespace, and namespaces were not asked for.
    Namespace,
    /// It is a namespace with the provider's label that is not the provider's own.
    ForeignNamespace,
    /// Another provider may share it.
    SharedWith(String),
    /// It is a namespace that another provider is in.
    OthersNamespace(String),
    /// It is a namespace that every cluster has.
    CommonNamespace,
    /// It carries the label of this provider, but was not installed for it.
    NotInstalled(String),
}

/// What is known when it is decided what goes.
pub(crate) struct Site<'a> {
    pub(crate) inventory: &'a Inventory,
    pub(crate) chosen: &'a [Chosen],
    pub(crate) kinds: &'a Kinds,
    /// The namespaces that webhook configurations and CRDs send the API server to.
    pub(crate) services: &'a BTreeMap<ObjectRef, Vec<String>>,
    pub(crate) options: DeleteOptions,
}

impl Site<'_> {
    /// Decides what becomes of a provider's components.
    pub(crate) fn judge(&self, chosen: &Chosen, found: &[Component]) -> DeleteTarget {
        let own: Vec<&Component> =
            found.iter().filter(|it| it.provider() == Some(chosen.label.as_str())).collect();
        let crds: Vec<&str> =
            own.iter().filter(|it| crd::is_crd(&it.id)).map(|it| it.id.name.as_str()).collect();
        let (mut removals, mut kept) = (Vec::new(), Vec::new());
        let instances = chosen.instances(own.iter().map(|it| &it.id));
        let owner = |it: &Component| instances.as_ref().map_or(Owner::This, |all| all.owner(&it.id));
        let own: Vec<&Component> = own.into_iter().filter(|it| owner(it) != Owner::Another).collect();
        for component in &own {
            let needed_by = chosen.others.first().filter(|_| owner(component) == Owner::All);
            let needed = needed_by.map(|it| WhyKept::OtherInstance(it.namespace.clone()));
            match needed.or_else(|| self.why_kept(component, chosen)) {
                Some(why) => kept.push(Kept { object: component.id.clone(), why }),
                None => removals.push(self.removal(component, &crds)),
            }
        }
        let namespaces: Vec<String> = removals
            .iter()
            .filter(|it| it.stage == Stage::Namespaces)
            .map(|it| it.component.id.name.clone())
            .collect();
        for it in removals.iter_mut().filter(|it| it.stage == Stage::Settings) {
            let namespace = it.component.id.namespace.as_ref();
            it.goes_with_namespace = namespace.is_some_and(|it| namespaces.contains(it));
        }
        let entries = chosen.entries.iter().filter_map(|it| self.entry(it));
        let is_new = |it: &Removal| !own.iter().any(|own| own.id == it.component.id);
        removals.extend(entries.filter(is_new));
        DeleteTarget { label: chosen.label.clone(), entries: chosen.entries.clone(), removals, kept }
    }

    fn removal(&self, component: &Component, crds: &[&str]) -> Removal {
        let own_kind = |name: &&&str| {
            let kind = self.kinds.defined_by(name).map(|it| (&it.resource.group, &it.resource.kind));
            kind == Some((&component.kind.resource.group, &component.kind.resource.kind))
        };
        let stage = match wave(component) {
            _ if is_entry(component) => Stage::Inventory,
            Wave::Webhooks => Stage::Webhooks,
            Wave::Workloads => Stage::Workloads,
            Wave::Crds => Stage::Crds,
            Wave::Namespaces => Stage::Namespaces,
            Wave::Settings if crds.iter().any(|it| own_kind(&it)) => Stage::Resources,
            Wave::Settings => Stage::Settings,
        };
        Removal { component: component.clone(), stage, goes_with_namespace: false }
    }

    fn why_kept(&self, component: &Component, chosen: &Chosen) -> Option<WhyKept> {
        let is_asked = self.options.include_crd;
        let namespaces: Vec<&str> = chosen.entries.iter().map(|it| it.namespace.as_str()).collect();
        if !component.is_installed(&namespaces) {
            return Some(WhyKept::NotInstalled(chosen.label.clone()));
        }
        match wave(component) {
            Wave::Crds if !is_asked => Some(WhyKept::Shared),
            Wave::Namespaces => self.why_namespace_kept(&component.id.name, chosen),
            // Webhooks go with those who answer, or every request that they are asked about would fail.
            Wave::Webhooks if !is_asked && self.is_answered_by_shared(component) => Some(WhyKept::Shared),
            _ if !is_asked && component.id.namespace.as_deref() == Some(SHARED_NAMESPACE) => {
                Some(WhyKept::Shared)
            }
            _ => None,
        }
    }

    fn is_answered_by_shared(&self, component: &Component) -> bool {
        let services = self.services_of(&component.id);
        !services.is_empty() && services.iter().all(|it| it == SHARED_NAMESPACE)
    }

    fn services_of(&self, object: &ObjectRef) -> &[String] {
        self.services.get(object).map_or(&[], Vec::as_slice)
    }

    /// What another instance needs, but a Service of the deleted instance answers for.
    pub(crate) fn answered(&self, chosen: &Chosen, target: &DeleteTarget) -> Option<DeleteProblem> {
        let (entry, other) = (chosen.entries.first()?, instance::newest(&chosen.others)?);
        let is_answered = |it: &ObjectRef| self.services_of(it).contains(&entry.namespace);
        let needed = target.kept.iter().filter(|it| matches!(it.why, WhyKept::OtherInstance(_)));
        let objects: Vec<ObjectRef> = needed.map(|it| it.object.clone()).filter(is_answered).collect();
        (!objects.is_empty()).then(|| DeleteProblem::Answered {
            objects,
            deleted: Box::new(entry.clone()),
            other: Box::new(other.clone()),
        })
    }

    fn why_namespace_kept(&self, name: &str, chosen: &Chosen) -> Option<WhyKept> {
        let is_chosen = |it: &&Installed| self.chosen.iter().any(|chosen| chosen.entries.contains(it));
        let mut others = self.inventory.providers.iter().filter(|it| !is_chosen(it));
        if name == SHARED_NAMESPACE {
            return match (self.options, others.next()) {
                (DeleteOptions { include_crd: false, .. }, _) => Some(WhyKept::Shared),
                (DeleteOptions { include_namespace: false, .. }, _) => Some(WhyKept::Namespace),
                (_, other) => other.map(|it| WhyKept::SharedWith(it.label())),
            };
        }
        // A label on a namespace that is not the provider's may be a mistake: everything in it would go.
        let is_own = chosen.entries.is_empty() || chosen.entries.iter().any(|it| it.namespace == name);
        if !self.options.include_namespace {
            return Some(WhyKept::Namespace);
        }
        if !is_own {
            return Some(WhyKept::ForeignNamespace);
        }
        if COMMON_NAMESPACES.contains(&name) {
            return Some(WhyKept::CommonNamespace);
        }
        let other = others.find(|it| it.namespace == name);
        other.map(|it| WhyKept::OthersNamespace(it.label()))
    }

    /// A provider's entry in the inventory, which may have lost its labels.
    fn entry(&self, entry: &Installed) -> Option<Removal> {
        let kind = self.kinds.any_version(CLUSTERCTL_GROUP, "Provider")?.clone();
        let id = ObjectRef {
            api_version: kind.resource.api_version.clone(),
            kind: kind.resource.kind.clone(),
            namespace: Some(entry.namespace.clone()),
            name: entry.label(),
        };
        let component = Component { kind, id, metadata: kube::core::ObjectMeta::default(), content: None };
        Some(Removal { component, stage: Stage::Inventory, goes_with_namespace: false })
    }
}

fn is_entry(component: &Component) -> bool {
    component.id.group() == CLUSTERCTL_GROUP && component.id.kind == "Provider"
}

fn wave(component: &Component) -> Wave {
    Wave::of(&json!({"apiVersion": component.id.api_version, "kind": component.id.kind}))
}

/// The namespaces of the Services that webhook configurations name, and CRDs of providers with other instances.
pub(crate) async fn webhook_services(
    cluster: &ManagementCluster,
    chosen: &[Chosen],
    found: &[Component],
) -> Result<BTreeMap<ObjectRef, Vec<String>>, ServerError> {
    let stays = |it: &Component| {
        chosen.iter().any(|chosen| !chosen.others.is_empty() && it.provider() == Some(&chosen.label))
    };
    let callers = found
        .iter()
        .filter(|it| it.id.group() == "admissionregistration.k8s.io" || crd::is_crd(&it.id) && stays(it));
    let looks = callers.map(|it| async move {
        let object = cluster.objects(&it.kind, None).get_opt(&it.id.name).await;
        let object = object.map_err(|error| cluster.failed(format!("read {}", it.id), error))?;
        Ok::<_, ServerError>((
            it.id.clone(),
            object.map(|it| service_namespaces(&it.data)).unwrap_or_default(),
        ))
    });
    at_once(looks).try_collect().await
}

/// One for each webhook; the empty namespace stands for an address outside of the cluster.
fn service_namespaces(caller: &Value) -> Vec<String> {
    let webhooks = caller["webhooks"].as_array().into_iter().flatten();
    let webhooks = webhooks.chain(caller.pointer("/spec/conversion/webhook"));
    let namespace = |it: &Value| it.pointer("/clientConfig/service/namespace")?.as_str().map(str::to_owned);
    webhooks.map(|it| namespace(it).unwrap_or_default()).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use capstan_api::{names::label, provider::ProviderType};
    use kube::core::{GroupVersionKind, ObjectMeta};

    use super::*;
    use capstan_management::Kind;

    pub(crate) fn component(
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
        provider: &str,
    ) -> Component {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = kube::discovery::ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let labels = [(label::PROVIDER.to_owned(), provider.to_owned())];
        Component {
            kind: Kind { resource, is_namespaced: namespace.is_some(), is_managed: true, is_preferred: true },
            id: ObjectRef {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                namespace: namespace.map(str::to_owned),
                name: name.to_owned(),
            },
            metadata: ObjectMeta { labels: Some(labels.into()), ..ObjectMeta::default() },
            content: None,
        }
    }

    const LABEL: &str = "infrastructure-acme";
    const WEBHOOKS: &str = "ValidatingWebhookConfiguration";

    fn installed(name: &str, namespace: &str) -> Installed {
        Installed {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            kind: ProviderType::Infrastructure,
            version: "v1.0.0".to_owned(),
            watched_namespace: None,
            upgrading_to: None,
        }
    }

    fn found() -> Vec<Component> {
        let of = |api_version: &str, kind: &str, namespace: Option<&str>, name: &str| {
            component(api_version, kind, namespace, name, LABEL)
        };
        vec![
            of("v1", "Namespace", None, "acme-system"),
            of("v1", "Namespace", None, SHARED_NAMESPACE),
            of("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "acmes.example.com"),
            of("rbac.authorization.k8s.io/v1", "ClusterRole", None, "any-name"),
            of("v1", "Service", Some("acme-system"), "s"),
            of("v1", "Service", Some(SHARED_NAMESPACE), "s"),
            of("apps/v1", "Deployment", Some("acme-system"), "d"),
            of("admissionregistration.k8s.io/v1", WEBHOOKS, None, "own"),
            of("admissionregistration.k8s.io/v1", WEBHOOKS, None, "shared"),
            of("example.com/v1", "Acme", Some("acme-system"), "a"),
            component("v1", "Service", Some("other-system"), "s", "infrastructure-other"),
        ]
    }

    fn judge(options: DeleteOptions, others: &[Installed]) -> DeleteTarget {
        judge_with(options, others, &[])
    }

    fn judge_with(options: DeleteOptions, others: &[Installed], more: &[Component]) -> DeleteTarget {
        let entry = installed("acme", "acme-system");
        let chosen = [Chosen {
            label: LABEL.to_owned(),
            entries: vec![entry.clone()],
            others: others.iter().filter(|it| it.name == "acme").cloned().collect(),
        }];
        let inventory = Inventory { providers: [&[entry], others].concat(), unreadable: Vec::new() };
        let mut kinds = Kinds::default();
        kinds.learn(&capstan_api::inventory::crd());
        kinds.learn(&json!({"spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Acme", "plural": "acmes"},
            "versions": [{"name": "v1", "served": true, "storage": true}]}}));
        let found = [found().as_slice(), more].concat();
        let webhook = |name: &str, namespace: &str| {
            let id = found.iter().find(|it| it.id.name == name && it.id.kind == WEBHOOKS).unwrap().id.clone();
            (id, vec![namespace.to_owned()])
        };
        let services = [webhook("own", "acme-system"), webhook("shared", SHARED_NAMESPACE)].into();
        let site =
            Site { inventory: &inventory, chosen: &chosen, kinds: &kinds, services: &services, options };
        site.judge(&chosen[0], &found)
    }

    fn names(target: &DeleteTarget) -> Vec<String> {
        let mut removals: Vec<_> = target.removals.iter().collect();
        removals.sort_by(|a, b| (a.stage, &a.component.id).cmp(&(b.stage, &b.component.id)));
        removals
            .iter()
            .map(|it| {
                let along = if it.goes_with_namespace { " along" } else { "" };
                format!("{} {}{along}", it.stage.as_str(), it.component.id)
            })
            .collect()
    }

    const INSTANCE: [&str; 5] = [
        "webhooks ValidatingWebhookConfiguration own",
        "resources Acme acme-system/a",
        "workloads Deployment acme-system/d",
        "settings ClusterRole any-name",
        "settings Service acme-system/s",
    ];
    const ENTRY: &str = "inventory Provider acme-system/infrastructure-acme";

    #[test]
    fn an_instance_goes_and_what_is_shared_stays() {
        let target = judge(DeleteOptions::default(), &[]);
        let mut expected = INSTANCE.to_vec();
        expected.push(ENTRY);
        assert_eq!(names(&target), expected);
        let kept: Vec<_> = target.kept.iter().map(|it| (it.object.to_string(), it.why.clone())).collect();
        assert_eq!(
            kept,
            [
                ("Namespace acme-system".to_owned(), WhyKept::Namespace),
                (format!("Namespace {SHARED_NAMESPACE}"), WhyKept::Shared),
                ("CustomResourceDefinition acmes.example.com".to_owned(), WhyKept::Shared),
                (format!("Service {SHARED_NAMESPACE}/s"), WhyKept::Shared),
                ("ValidatingWebhookConfiguration shared".to_owned(), WhyKept::Shared),
            ]
        );
    }

    #[test]
    fn what_is_asked_for_goes_as_well() {
        let all = DeleteOptions { include_namespace: true, include_crd: true };
        let target = judge(all, &[]);
        assert_eq!(
            names(&target),
            [
                "webhooks ValidatingWebhookConfiguration own",
                "webhooks ValidatingWebhookConfiguration shared",
                "resources Acme acme-system/a",
                "workloads Deployment acme-system/d",
                "settings ClusterRole any-name",
                "settings Service acme-system/s along",
                "settings Service capi-webhook-system/s along",
                "CRDs CustomResourceDefinition acmes.example.com",
                "namespaces Namespace acme-system",
                "namespaces Namespace capi-webhook-system",
                ENTRY,
            ]
        );
        assert_eq!(target.kept, []);
    }

    #[test]
    fn a_namespace_that_others_need_stays() {
        let all = DeleteOptions { include_namespace: true, include_crd: true };
        let shared = || Some(WhyKept::SharedWith("infrastructure-other".to_owned()));
        for (other, own, shared) in [
            ("acme-system", Some(WhyKept::OthersNamespace("infrastructure-other".to_owned())), shared()),
            ("other-system", None, shared()),
        ] {
            let target = judge(all, &[installed("other", other)]);
            let why =
                |name: &str| target.kept.iter().find(|it| it.object.name == name).map(|it| it.why.clone());
            assert_eq!((why("acme-system"), why(SHARED_NAMESPACE)), (own, shared), "{other}");
        }
    }

    #[test]
    fn what_another_instance_needs_stays() {
        let all = DeleteOptions { include_namespace: true, include_crd: true };
        let target = judge(all, &[installed("acme", "other-system")]);
        let expected = [
            "resources Acme acme-system/a",
            "workloads Deployment acme-system/d",
            "settings Service acme-system/s along",
            "namespaces Namespace acme-system",
            ENTRY,
        ];
        assert_eq!(names(&target), expected);
        let is_needed = |it: &Kept| it.why == WhyKept::OtherInstance("other-system".to_owned());
        assert!(target.kept.iter().all(is_needed), "{:?}", target.kept);
        assert!(target.kept.iter().any(|it| it.object.kind == "CustomResourceDefinition"));
    }

    #[test]
    fn an_object_of_a_user_stays_whatever_its_label() {
        let team = |kind: &str, manager: &str| {
            let mut copy = component("v1", kind, Some("team"), "copy", LABEL);
            let fields = json!({"f:metadata": {"f:labels": {format!("f:{}", label::CLUSTERCTL): {}}}});
            let entry = json!([{"manager": manager, "operation": "Update", "fieldsV1": fields}]);
            copy.metadata.namespace = Some("team".to_owned());
            copy.metadata.managed_fields = Some(serde_json::from_value(entry).unwrap());
            copy
        };
        let copied = [team("ConfigMap", "kubectl-client-side-apply"), team("Role", "capstan")];
        let target = judge_with(DeleteOptions::default(), &[], &copied);
        let kept = Kept { object: copied[0].id.clone(), why: WhyKept::NotInstalled(LABEL.to_owned()) };
        assert!(target.kept.contains(&kept), "{:?}", target.kept);
        assert!(names(&target).contains(&"settings Role team/copy".to_owned()));
        assert!(!names(&target).iter().any(|it| it.contains("ConfigMap")));
    }

    #[test]
    fn webhooks_are_known_by_who_answers() {
        let configuration = json!({"webhooks": [
            {"clientConfig": {"service": {"namespace": "a", "name": "s"}}},
            {"clientConfig": {"url": "https://example.com"}},
        ]});
        assert_eq!(service_namespaces(&configuration), ["a", ""]);
        let service = json!({"clientConfig": {"service": {"namespace": "a", "name": "s"}}});
        let crd = json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": service}}});
        assert_eq!(service_namespaces(&crd), ["a"]);
        assert_eq!(service_namespaces(&json!({"spec": {"conversion": {"strategy": "None"}}})), [""; 0]);
    }
}
