//! What is to be played with: the kinds that are served, and the user's manifest.

use capstan_api::{
    contract::{ContractVersion, PickedVersion, crd_name, pick_served_version},
    names::CORE_GROUP,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

use super::{Error, Target, stage::failing};

/// The kinds that the play is about.
#[derive(Clone, Debug)]
pub(crate) struct Kinds {
    pub(crate) infra: ApiResource,
    pub(crate) clusters: ApiResource,
    pub(crate) contract: ContractVersion,
    pub(crate) document: Value,
    pub(crate) others: Vec<Value>,
    pub(crate) notes: Vec<String>,
}

impl Kinds {
    /// Finds out what is served, and by which contract core would read it.
    pub(crate) async fn find(client: &Client, target: &Target) -> Result<Self, Error> {
        let (document, others) = split(target)?;
        let group = match &target.group {
            Some(group) => group.clone(),
            None => group_of(&document).to_owned(),
        };
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let name = crd_name(&group, &target.kind);
        let crd = crds.get_opt(&name).await.map_err(failing(format!("read CRD {name}")))?;
        let crd = crd.ok_or_else(|| Error::NoCrd { name: name.clone() })?;
        let labels = crd.metadata.labels.unwrap_or_default();
        let picked = match &target.version {
            None => {
                let served = crd.spec.versions.iter().filter(|it| it.served).map(|it| it.name.as_str());
                pick_served_version(&name, &labels, &served.collect::<Vec<_>>())?
            }
            Some(version) => {
                let names = |contract: &ContractVersion| {
                    let listed = labels.get(&contract.label());
                    listed.is_some_and(|listed| listed.split('_').any(|it| it == version))
                };
                let contract = ContractVersion::PREFERENCE.into_iter().find(names);
                let contract =
                    contract.ok_or_else(|| Error::Version { crd: name.clone(), version: version.clone() })?;
                PickedVersion { contract, version: version.clone() }
            }
        };
        let kind = GroupVersionKind::gvk(&group, &picked.version, &target.kind);
        let infra = ApiResource::from_gvk_with_plural(&kind, &crd.spec.names.plural);
        let notes = vec![format!(
            "core reads {} as {} under contract {}",
            target.kind, infra.api_version, picked.contract
        )];
        let clusters = find_clusters(&crds).await?;
        Ok(Self { infra, clusters, contract: picked.contract, document, others, notes })
    }
}

async fn find_clusters(crds: &Api<CustomResourceDefinition>) -> Result<ApiResource, Error> {
    let name = crd_name(CORE_GROUP, "Cluster");
    let crd = crds.get_opt(&name).await.map_err(failing(format!("read CRD {name}")))?;
    let served: Vec<_> = crd.into_iter().flat_map(|crd| crd.spec.versions).filter(|it| it.served).collect();
    let version = ["v1beta2", "v1beta1"].into_iter().find(|name| served.iter().any(|it| it.name == *name));
    let kind = GroupVersionKind::gvk(CORE_GROUP, version.ok_or(Error::NoClusters)?, "Cluster");
    Ok(ApiResource::from_gvk_with_plural(&kind, "clusters"))
}

/// The document of the kind, and the others.
fn split(target: &Target) -> Result<(Value, Vec<Value>), Error> {
    for (index, document) in target.documents.iter().enumerate() {
        for (pointer, field) in
            [("/apiVersion", "apiVersion"), ("/kind", "kind"), ("/metadata/name", "metadata.name")]
        {
            // The document of the kind is given other names anyway.
            let needless = document["kind"] == json!(target.kind) && field == "metadata.name";
            if !needless && !document.pointer(pointer).is_some_and(Value::is_string) {
                return Err(Error::Document { number: index + 1, field });
            }
        }
    }
    let wanted = |document: &Value| {
        document["kind"] == json!(target.kind)
            && target.group.as_ref().is_none_or(|group| group_of(document) == group)
    };
    let (mut documents, others): (Vec<_>, Vec<_>) = target.documents.iter().cloned().partition(wanted);
    match (documents.pop(), documents.len()) {
        (Some(document), 0) => Ok((document, others)),
        (popped, rest) => {
            let count = rest + usize::from(popped.is_some());
            Err(Error::Documents { kind: target.kind.clone(), count })
        }
    }
}

fn group_of(document: &Value) -> &str {
    let api_version = document["apiVersion"].as_str().unwrap_or_default();
    api_version.split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(documents: &[Value]) -> Target {
        Target { kind: "FooCluster".into(), group: None, version: None, documents: documents.to_vec() }
    }

    #[test]
    fn the_manifest_has_one_document_of_the_kind() {
        let foo = json!({"apiVersion": "g.io/v1", "kind": "FooCluster", "metadata": {}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        let (document, others) = split(&target(&[secret.clone(), foo.clone()])).unwrap();
        assert_eq!((document, others), (foo.clone(), vec![secret.clone()]));
        for (documents, expected) in [
            (vec![secret.clone()], "the manifest has 0 documents of kind FooCluster, but one is needed"),
            (
                vec![foo.clone(), foo.clone()],
                "the manifest has 2 documents of kind FooCluster, but one is needed",
            ),
            (vec![foo, json!({"kind": "Secret"})], "document 2 of the manifest has no apiVersion"),
        ] {
            assert_eq!(split(&target(&documents)).unwrap_err().to_string(), expected);
        }
    }
}
