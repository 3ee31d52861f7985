//! Objects are stored again in the storage version, before a CRD drops one that some of them
//! may still be stored in. It is done while the old controllers run, which convert them.

use std::time::Duration;

use capstan_api::names::FIELD_MANAGER;
use futures::TryStreamExt;
use kube::{
    ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::TypeMeta,
};
use serde_json::{Value, json};

use super::UpgradeError;
use capstan_management::{
    Kind, ManagementCluster, ObjectRef, ServerError, at_once,
    crd::{Crd, is_crd},
    dry_run::{self, Detail, Outcome, Trial},
    error,
    retry::{Backoff, retry},
};

/// How many objects are read at a time.
const PAGE: u32 = 500;
/// How long to retry transient failures.
const RETRY_LIMIT: Duration = Duration::from_secs(10);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));

/// A kind whose objects have to be stored again.
#[derive(Clone, Debug)]
pub struct Migration {
    /// The name of its CRD.
    pub crd: String,
    /// The version that its objects are stored in.
    pub stored: String,
    /// The versions that some may be stored in, and that are about to go.
    pub dropped: Vec<String>,
    kind: Kind,
}

/// What a new CRD means for objects that are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// Nothing.
    Fine,
    /// They have to be stored again first.
    Migrate { stored: String, dropped: Vec<String> },
    /// No served version could read them afterwards.
    Lost { stored: String },
}

impl Migration {
    /// What has to be done before a CRD takes the place of the one that is there; the version that objects are
    /// stored in where nothing helps.
    fn needed(live: &Value, new: &Value) -> Result<Option<Self>, String> {
        let (stored, dropped) = match judge(live, new) {
            Verdict::Fine => return Ok(None),
            Verdict::Lost { stored } => return Err(stored),
            Verdict::Migrate { stored, dropped } => (stored, dropped),
        };
        let live = Crd::new(live);
        let kind = live.kind_in(&stored);
        Ok(Some(Self { crd: live.name().to_owned(), stored, dropped, kind }))
    }

    /// Whether it is needed for that CRD.
    pub(super) fn is_of(&self, id: &ObjectRef) -> bool {
        is_crd(id) && self.crd == id.name
    }

    /// Stores all objects again, and notes that the other versions are not stored any more. Gives back how many there
    /// are.
    pub(super) async fn carry_out(&self, cluster: &ManagementCluster) -> Result<usize, UpgradeError> {
        let count = self.rewrite(cluster).await.map_err(|error| UpgradeError::NotMigrated {
            kind: self.crd.clone(),
            stored: self.stored.clone(),
            dropped: self.dropped.clone(),
            reason: error,
        })?;
        self.trim(cluster).await?;
        Ok(count)
    }

    async fn rewrite(&self, cluster: &ManagementCluster) -> Result<usize, String> {
        let all = cluster.objects(&self.kind, None);
        let mut params = ListParams::default().limit(PAGE);
        let mut count = 0;
        loop {
            let page = with_retries(|| all.list(&params)).await;
            let page = match page {
                Ok(page) => page,
                // What was listed is too old to go on with: begin again. Writing twice does no harm.
                Err(kube::Error::Api(status)) if status.code == 410 && params.continue_token.is_some() => {
                    params.continue_token = None;
                    count = 0;
                    continue;
                }
                Err(error) => return Err(cluster.failed("list them", error).to_string()),
            };
            count += page.items.len();
            let writes = page.items.into_iter().map(|object| self.write(cluster, object));
            at_once(writes).try_collect::<()>().await?;
            params.continue_token = page.metadata.continue_.filter(|it| !it.is_empty());
            if params.continue_token.is_none() {
                return Ok(count);
            }
        }
    }

    /// Writes an object as it was read. An update is what makes the server store it: a patch without a change is not
    /// looked at any further.
    async fn write(&self, cluster: &ManagementCluster, mut object: DynamicObject) -> Result<(), String> {
        let (namespace, name) = (object.namespace(), object.name_any());
        let api = cluster.objects(&self.kind, namespace.as_deref());
        object.types.get_or_insert_with(|| TypeMeta {
            api_version: self.kind.resource.api_version.clone(),
            kind: self.kind.resource.kind.clone(),
        });
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match with_retries(|| api.replace(&name, &params, &object)).await {
            Ok(_) => Ok(()),
            // It is gone, or it was written in the meantime, and so in the version that counts.
            Err(error) if error::is_not_found(&error) || error::is_conflict(&error) => Ok(()),
            Err(error) => {
                let name = namespace.map_or_else(|| name.clone(), |it| format!("{it}/{name}"));
                Err(cluster.failed(format!("write {} {name}", self.kind.resource.kind), error).to_string())
            }
        }
    }

    /// Notes in the CRD that only one version is stored.
    async fn trim(&self, cluster: &ManagementCluster) -> Result<(), UpgradeError> {
        let api = cluster.objects(&Kind::crd(), None);
        let failed = |error| {
            cluster.failed(format!("note that {} is stored as {} only", self.crd, self.stored), error)
        };
        let live = with_retries(|| api.get_metadata(&self.crd)).await.map_err(failed)?;
        let patch = json!({
            "metadata": {"resourceVersion": live.metadata.resource_version},
            "status": {"storedVersions": [self.stored]},
        });
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        api.patch_status(&self.crd, &params, &Patch::Merge(patch)).await.map_err(failed)?;
        Ok(())
    }
}

/// What has to be done before a server accepts the new CRDs of a release. Those that it refuses only because
/// objects are stored in a version that is to go, are tried again as far as they can be.
pub(super) async fn find(
    cluster: &ManagementCluster,
    label: &str,
    version: &str,
    objects: &[&Value],
    trials: &mut [Trial],
) -> Result<Vec<Migration>, UpgradeError> {
    let mut migrations = Vec::new();
    for (object, trial) in objects.iter().zip(trials) {
        let id = ObjectRef::of(object);
        if !matches!(trial.outcome, Outcome::Refused(_)) || !is_crd(&id) {
            continue;
        }
        let Some(live) = live_crd(cluster, &id).await? else { continue };
        let migration = Migration::needed(&live, object).map_err(|stored| UpgradeError::NoCommonVersion {
            label: label.to_owned(),
            version: version.to_owned(),
            kind: id.name.clone(),
            stored,
        })?;
        if let Some(migration) = migration {
            let again = dry_run::try_all(cluster, &[to_be_tried(&live, object)], Detail::Brief).await?;
            *trial = again.into_iter().next().unwrap_or_else(|| trial.clone());
            migrations.push(migration);
        }
    }
    Ok(migrations)
}

/// A CRD as it is.
async fn live_crd(cluster: &ManagementCluster, id: &ObjectRef) -> Result<Option<Value>, ServerError> {
    let api = cluster.objects(&Kind::crd(), None);
    let found = api.get_opt(&id.name).await;
    let found = found.map_err(|error| cluster.failed(format!("look at {id}"), error))?;
    let found = found.map(serde_json::to_value).transpose();
    found.map_err(|error| cluster.failed(format!("read {id}"), kube::Error::SerdeError(error)))
}

/// What a server can be asked about: a new CRD with the versions that have to go before it can be applied.
fn to_be_tried(live: &Value, new: &Value) -> Value {
    let mut tried = new.clone();
    let kept: Vec<Value> = dropped(live, new)
        .filter_map(|name| Crd::new(live).version(name))
        .map(|version| {
            let mut version = version.content().clone();
            version["served"] = json!(false);
            version["storage"] = json!(false);
            version
        })
        .collect();
    if let Some(versions) = tried.pointer_mut("/spec/versions").and_then(Value::as_array_mut) {
        versions.extend(kept);
    }
    tried
}

fn judge(live: &Value, new: &Value) -> Verdict {
    let dropped: Vec<String> = dropped(live, new).map(str::to_owned).collect();
    match Crd::new(live).storage_version() {
        Some(stored) if Crd::new(new).version(stored).is_none() => {
            Verdict::Lost { stored: stored.to_owned() }
        }
        Some(stored) if !dropped.is_empty() => Verdict::Migrate { stored: stored.to_owned(), dropped },
        _ => Verdict::Fine,
    }
}

/// The versions that objects may be stored in, and that a new CRD does not have.
fn dropped<'a>(live: &'a Value, new: &Value) -> impl Iterator<Item = &'a str> {
    Crd::new(live).stored_versions().into_iter().filter(|it| Crd::new(new).version(it).is_none())
}

/// Sends a request until it succeeds or fails for good. Sending the same again does not resolve a conflict.
async fn with_retries<T, F>(request: impl FnMut() -> F) -> Result<T, kube::Error>
where
    F: Future<Output = Result<T, kube::Error>>,
{
    let is_transient = |error: &kube::Error, elapsed| {
        error::is_transient(error) && !error::is_conflict(error) && elapsed < RETRY_LIMIT
    };
    retry(BACKOFF, request, is_transient, |_| {}).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(versions: &[&str], stored: &[&str]) -> Value {
        let last = versions.len();
        let versions = versions.iter().enumerate().map(
            |(at, it)| json!({"name": it, "served": true, "storage": at + 1 == last, "schema": {"of": it}}),
        );
        json!({"spec": {"versions": versions.collect::<Vec<_>>()}, "status": {"storedVersions": stored}})
    }

    type Texts = &'static [&'static str];

    #[test]
    fn objects_are_written_anew_before_a_version_is_dropped_that_they_may_be_stored_in() {
        let migrate = |stored: &str, dropped: &[&str]| Verdict::Migrate {
            stored: stored.to_owned(),
            dropped: dropped.iter().map(|it| (*it).to_owned()).collect(),
        };
        let lost = |stored: &str| Verdict::Lost { stored: stored.to_owned() };
        let cases: [(Texts, Texts, Texts, Verdict); 6] = [
            (&["v1alpha1", "v1beta1"], &["v1beta1"], &["v1beta1"], Verdict::Fine),
            (
                &["v1alpha1", "v1beta1"],
                &["v1alpha1", "v1beta1"],
                &["v1alpha1", "v1beta1", "v1"],
                Verdict::Fine,
            ),
            (
                &["v1alpha1", "v1beta1"],
                &["v1alpha1", "v1beta1"],
                &["v1beta1", "v1"],
                migrate("v1beta1", &["v1alpha1"]),
            ),
            // A version that is not even there any more may still be noted.
            (&["v1beta1"], &["v1alpha1", "v1beta1"], &["v1beta1", "v1"], migrate("v1beta1", &["v1alpha1"])),
            (&["v1alpha1", "v1beta1"], &["v1beta1"], &["v1"], lost("v1beta1")),
            (&["v1beta1"], &[], &["v1beta1", "v1"], Verdict::Fine),
        ];
        for (versions, stored, new, expected) in cases {
            let found = judge(&crd(versions, stored), &crd(new, &[]));
            assert_eq!(found, expected, "{versions:?} {stored:?} {new:?}");
        }
    }

    #[test]
    fn a_server_is_asked_about_a_crd_that_it_could_accept_now() {
        let live = crd(&["v1alpha1", "v1beta1"], &["v1alpha1", "v1beta1"]);
        let tried = to_be_tried(&live, &crd(&["v1beta1", "v1"], &[]));
        let tried = Crd::new(&tried);
        let names: Vec<_> = tried.versions().map(|it| (it.name(), it.is_stored())).collect();
        assert_eq!(names, [("v1beta1", false), ("v1", true), ("v1alpha1", false)]);
        assert_eq!(tried.version("v1alpha1").unwrap().content()["schema"], json!({"of": "v1alpha1"}));
        let same = crd(&["v1beta1"], &[]);
        assert_eq!(to_be_tried(&crd(&["v1beta1"], &["v1beta1"]), &same), same);
    }
}
