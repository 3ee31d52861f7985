//! From a reference to the object behind it, without a request.

use std::sync::Arc;

use capstan_api::{
    cluster::v1beta2::ObjectReference,
    contract::{GroupKind, PickedVersion, crd_name, pick_version},
};
use capstan_runtime::{ObjectKey, cache::Cached, hub::Hub, watch::WatchState};
use kube::core::ApiResource;

use crate::{
    crds::{CrdReader, Crds, Details, Lookup},
    foreign::Foreign,
    index::group_kind,
    snapshot::{FoundObject, Referenced},
};

/// Finds the objects that Clusters refer to.
#[derive(Debug)]
pub(crate) struct Resolver {
    pub(crate) crds: Arc<Crds>,
    pub(crate) reader: Arc<CrdReader>,
    pub(crate) hub: Arc<Hub<Foreign>>,
}

impl Resolver {
    /// Looks a reference up; its kind is watched from then on.
    ///
    /// Nothing is known while the first list of CRDs, or of the kind, is under way.
    pub(crate) fn resolve(
        &self,
        cluster: &ObjectKey,
        reference: Option<&ObjectReference>,
        field: &str,
    ) -> Option<Referenced> {
        let Some(reference) = reference.cloned() else {
            return Some(Referenced::Nothing);
        };
        let unresolved = |reason: String, kind_missing: bool| Referenced::Unresolved {
            reference: reference.clone(),
            reason,
            kind_missing,
        };
        let name = crd_name(&reference.api_group, &reference.kind);
        if reference.api_group.is_empty() {
            return Some(unresolved(missing_group(field), true));
        }
        let crd = match self.crds.find(&ObjectKey::new("", &name)) {
            Lookup::Found(crd) => crd,
            Lookup::Loading => return None,
            Lookup::Unreadable(reason) => return Some(unresolved(reason, false)),
            Lookup::Missing => {
                let reason = format!(
                    "CustomResourceDefinition {name} does not exist: install the provider that serves kind {} of {}, or correct {field}",
                    reference.kind, reference.api_group
                );
                return Some(unresolved(reason, true));
            }
        };
        let details = match self.reader.read(&name) {
            Details::Known(details) => details,
            Details::Unreadable(reason) => return Some(unresolved(reason, false)),
            Details::Loading => {
                // Most labels name one version, and it is served: its objects can be loaded meanwhile.
                let labels = crd.metadata().labels.as_ref();
                if let Some(Ok(guess)) = labels.map(|labels| pick_version(&name, labels)) {
                    self.hub.ensure(&group_kind(&reference), &api_resource(&reference, &name, &guess));
                }
                return None;
            }
        };
        if details.is_cluster_scoped() {
            return Some(Referenced::ClusterScoped { reference, crd: name });
        }
        let picked = match details.pick() {
            Ok(picked) => picked,
            Err(error) => return Some(unresolved(error.to_string(), false)),
        };
        let resource = api_resource(&reference, &name, &picked);
        let watched = self.hub.ensure(&group_kind(&reference), &resource);
        match watched.state {
            WatchState::Syncing => None,
            WatchState::Absent => {
                let reason = format!(
                    "{} {} is not served yet: CustomResourceDefinition {name} must be established",
                    resource.api_version, resource.kind
                );
                Some(unresolved(reason, false))
            }
            WatchState::Failing(error) => {
                let grant = ". A provider with a group of its own must grant core access by a ClusterRole with label cluster.x-k8s.io/aggregate-to-manager: \"true\"";
                let hint = if error.contains("forbidden") { grant } else { "" };
                let reason =
                    format!("cannot watch {} {}: {error}{hint}", resource.api_version, resource.kind);
                Some(unresolved(reason, false))
            }
            WatchState::Synced => Some(match watched.cache.get(&cluster.beside(&reference.name)) {
                Some(object) => {
                    let contract = picked.contract;
                    Referenced::Found(FoundObject { reference, contract, resource, object })
                }
                None => Referenced::Missing { reference, resource },
            }),
        }
    }

    /// The kind behind a reference, in the version that core speaks, if that is known.
    pub(crate) fn resource_of(&self, reference: &ObjectReference) -> Option<ApiResource> {
        let name = crd_name(&reference.api_group, &reference.kind);
        self.crds.records.get(&ObjectKey::new("", &name))?;
        let Details::Known(details) = self.reader.read(&name) else { return None };
        if details.is_cluster_scoped() {
            return None;
        }
        Some(api_resource(reference, &name, &details.pick().ok()?))
    }

    /// Takes in the answer to our own write.
    pub(crate) fn remember(&self, resource: &ApiResource, key: &ObjectKey, object: Foreign) {
        let kind = GroupKind::new(&resource.group, &resource.kind);
        self.hub.remember(&kind, resource, key, object);
    }
}

fn missing_group(field: &str) -> String {
    format!(
        "{field} has no apiGroup: set {field}.apiGroup to the group of its kind, such as \
         infrastructure.cluster.x-k8s.io (in v1beta1: set {field}.apiVersion to group and version)"
    )
}

fn api_resource(reference: &ObjectReference, crd: &str, picked: &PickedVersion) -> ApiResource {
    ApiResource {
        api_version: format!("{}/{}", reference.api_group, picked.version),
        group: reference.api_group.clone(),
        version: picked.version.clone(),
        kind: reference.kind.clone(),
        plural: crd.split_once('.').map_or("", |(plural, _)| plural).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use capstan_runtime::{hub::HubListener, outages::Outages, watch::Change};
    use kube::{Client, Config};

    use super::*;

    struct NoListener;

    impl HubListener<Foreign> for NoListener {
        fn changed(&self, _: &GroupKind, _: Change<'_, Foreign>) {}
        fn state_changed(&self, _: &GroupKind, _: &WatchState) {}
    }

    #[tokio::test]
    async fn a_reference_without_group_is_reported_before_anything_is_looked_up() {
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let project = |_: &GroupKind, object| Foreign::new(object);
        let resolver = Resolver {
            crds: Arc::default(),
            reader: Arc::new(CrdReader::new(client.clone(), Outages::default(), Arc::new(|_: &str| {}))),
            hub: Arc::new(Hub::new(client, None, project, Arc::new(NoListener), Outages::default())),
        };
        let reference =
            ObjectReference { api_group: String::new(), kind: "FooCluster".into(), name: "ic".into() };
        let resolved =
            resolver.resolve(&ObjectKey::new("n", "c"), Some(&reference), "spec.infrastructureRef");
        let Some(Referenced::Unresolved { reason, kind_missing: true, .. }) = resolved else {
            panic!("{resolved:?}");
        };
        assert_eq!(
            reason,
            "spec.infrastructureRef has no apiGroup: set spec.infrastructureRef.apiGroup to the group of its kind, such \
             as infrastructure.cluster.x-k8s.io (in v1beta1: set spec.infrastructureRef.apiVersion to group and version)"
        );
    }
}
