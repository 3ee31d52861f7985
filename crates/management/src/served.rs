//! Waits until the kinds of new CRDs are served.
//!
//! It reads the discovery of a group and version, which is much smaller than the CRDs.

use std::{collections::BTreeMap, time::Duration};

use futures::future::try_join_all;
use serde_json::Value;

use crate::{
    Kind, Kinds, ManagementCluster, ObjectRef, ServerError,
    apply::ApplyError,
    crd::Crd,
    error,
    retry::{Backoff, Wait},
};

/// How long a CustomResourceDefinition may take to be served.
pub const LIMIT: Duration = Duration::from_mins(1);
/// How long to wait before reading the CRD's conditions.
const DOUBT: Duration = Duration::from_secs(2);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(100));

/// Plural names by group and version.
type Awaited<'a> = BTreeMap<String, Vec<(&'a str, &'a Value)>>;

/// Waits until all versions of CRDs are served, but for those that were served at discovery.
pub async fn wait(cluster: &ManagementCluster, crds: Vec<&Value>) -> Result<(), ApplyError> {
    let mut awaited = versions(&crds, &*cluster.kinds().await?);
    let mut wait = Wait::new(BACKOFF, LIMIT);
    loop {
        let looks = awaited.iter().map(async |(group_version, plurals)| {
            let listed = listed(cluster, group_version).await?;
            let missing: Vec<_> =
                plurals.iter().filter(|it| !listed.iter().any(|name| name == it.0)).copied().collect();
            Ok::<_, ServerError>((group_version.clone(), missing))
        });
        let looks: Vec<_> = try_join_all(looks).await?;
        awaited = looks.into_iter().filter(|it| !it.1.is_empty()).collect();
        let Some((_, crd)) = awaited.values().flatten().next() else { return Ok(()) };
        if wait.elapsed() > DOUBT {
            doubt(cluster, crd, wait.is_over()).await?;
        }
        wait.pause().await;
    }
}

/// The served versions of CRDs that are not among the known kinds.
fn versions<'a>(crds: &[&'a Value], known: &Kinds) -> Awaited<'a> {
    let mut awaited = Awaited::new();
    for object in crds {
        let crd = Crd::new(object);
        for version in crd.served_versions() {
            let group_version = format!("{}/{version}", crd.group());
            if known.find(&group_version, crd.kind()).is_none() {
                awaited.entry(group_version).or_default().push((crd.plural(), object));
            }
        }
    }
    awaited
}

/// The plural names that a server lists; none if the group is unknown or the failure is transient.
async fn listed(cluster: &ManagementCluster, group_version: &str) -> Result<Vec<String>, ServerError> {
    match cluster.client().list_api_group_resources(group_version).await {
        Ok(list) => Ok(list.resources.into_iter().map(|it| it.name).collect()),
        Err(error) if error::is_not_found(&error) || error::is_transient(&error) => Ok(Vec::new()),
        Err(error) => Err(cluster.failed(format!("discover {group_version}"), error)),
    }
}

/// Fails if a CRD can never be served, or was not in time.
async fn doubt(cluster: &ManagementCluster, crd: &Value, is_over: bool) -> Result<(), ApplyError> {
    let id = ObjectRef::of(crd);
    let found = cluster.objects(&Kind::crd(), None).get_opt(&id.name).await;
    let found = match found {
        Ok(found) => found,
        Err(error) if error::is_transient(&error) && !is_over => return Ok(()),
        Err(error) => return Err(cluster.failed(format!("read {id}"), error).into()),
    };
    let reason = match &found {
        None => Some("it was deleted".to_owned()),
        Some(found) => refusal(Crd::new(&found.data)),
    };
    match reason {
        Some(reason) => Err(ApplyError::NotEstablished { object: Box::new(id), reason }),
        None if is_over => {
            let reason = "its conditions do not say why".to_owned();
            Err(ApplyError::NotEstablished { object: Box::new(id), reason })
        }
        None => Ok(()),
    }
}

/// Why a CRD will never be served.
fn refusal(crd: Crd<'_>) -> Option<String> {
    let has = |kind: &str, status: &str| crd.condition(kind).filter(|it| it.status == status);
    let refused = has("NamesAccepted", "False").or_else(|| has("NonStructuralSchema", "True"))?;
    let message = Some(refused.message).filter(|it| !it.is_empty());
    Some(message.unwrap_or("its names are not accepted").to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_version_that_is_to_be_served_and_is_not_known_is_waited_for() {
        let crd = json!({"spec": {
            "group": "g.io",
            "names": {"kind": "Box", "plural": "boxes"},
            "versions": [{"name": "v1", "served": true}, {"name": "v2", "served": true},
                         {"name": "v0", "served": false}],
        }});
        let awaited = versions(&[&crd], &Kinds::default());
        assert_eq!(awaited.keys().collect::<Vec<_>>(), ["g.io/v1", "g.io/v2"]);
        assert!(awaited.values().flatten().all(|it| it.0 == "boxes"));
        let mut known = Kinds::default();
        known.learn(&json!({"spec": {
            "group": "g.io",
            "names": {"kind": "Box", "plural": "boxes"},
            "versions": [{"name": "v1", "served": true}],
        }}));
        assert_eq!(versions(&[&crd], &known).into_keys().collect::<Vec<_>>(), ["g.io/v2"]);
    }

    #[test]
    fn a_crd_that_is_refused_says_why() {
        let with = |conditions: Value| refusal(Crd::new(&json!({"status": {"conditions": conditions}})));
        let taken = json!({"type": "NamesAccepted", "status": "False", "message": "boxes is taken"});
        assert_eq!(with(json!([taken])).as_deref(), Some("boxes is taken"));
        assert_eq!(with(json!([{"type": "Established", "status": "False", "message": "wait"}])), None);
        assert_eq!(with(json!([])), None);
    }
}
