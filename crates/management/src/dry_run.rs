//! Server-side dry run of a set of objects.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use capstan_api::names::FIELD_MANAGER;
use futures::TryStreamExt;
use http::header::{ACCEPT, HeaderValue};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams, Request},
    core::ObjectMeta,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    Kind, Kinds, ManagementCluster, ObjectRef, ServerError,
    apply::{self, Wave},
    at_once,
    crd::Crd,
    error,
    retry::{Backoff, retry},
};

/// How long to retry transient failures.
const RETRY_LIMIT: Duration = Duration::from_secs(15);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));
/// The namespace in which to try objects whose own does not exist yet. Every cluster has it.
const STAND_IN: &str = "default";
/// The media type of an object's metadata alone.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The dry run of one object.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The object.
    pub object: ObjectRef,
    /// Its outcome.
    pub outcome: Outcome,
    /// The part that the server could not check, and why.
    pub note: Option<String>,
}

/// The outcome of a dry run.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The server would store this.
    Stored(Box<Value>),
    /// The object seems valid, but the server cannot compute what it would store.
    Unknown,
    /// The server would refuse the object.
    Refused(Refusal),
}

/// An object that the server would refuse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{object}: {reason}")]
pub struct Refusal {
    /// The object.
    pub object: ObjectRef,
    /// The reason, as the server put it.
    pub reason: String,
}

/// How much of the stored object to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// All of it.
    Whole,
    /// Metadata only for CRDs, which are by far the largest objects. Their generation shows whether they would
    /// change.
    Brief,
}

impl Detail {
    /// Whether the metadata of an object is enough.
    fn is_metadata_enough(self, object: &Value) -> bool {
        self == Self::Brief && Wave::of(object) == Wave::Crds
    }
}

/// The metadata of existing CRDs, by name.
pub type Crds = HashMap<String, ObjectMeta>;

/// What is known to exist.
#[derive(Debug, Default)]
pub struct Known {
    /// Existing CRDs.
    pub crds: Crds,
    /// Existing namespaces.
    pub namespaces: HashSet<String>,
}

/// Dry-runs objects that are to be applied together. The trials are in the order of the objects.
///
/// Objects may need namespaces and CRDs that are among them and do not exist yet. Objects in such a namespace are tried in
/// another one. For objects of such a kind only the kind is checked.
pub async fn try_all(
    cluster: &ManagementCluster,
    objects: &[Value],
    detail: Detail,
) -> Result<Vec<Trial>, ServerError> {
    try_on(&Ground::survey(cluster, objects, &Known::default(), detail).await?, objects).await
}

/// The same in brief, and faster where existing objects are known. The outcome for a CRD that would change lacks the
/// fields of other managers.
pub async fn try_over(
    cluster: &ManagementCluster,
    objects: &[Value],
    known: &Known,
) -> Result<Vec<Trial>, ServerError> {
    try_on(&Ground::survey(cluster, objects, known, Detail::Brief).await?, objects).await
}

async fn try_on(ground: &Ground<'_>, objects: &[Value]) -> Result<Vec<Trial>, ServerError> {
    // Large objects do not delay those behind them.
    let tried = objects
        .iter()
        .enumerate()
        .map(|(index, object)| async move { Ok::<_, ServerError>((index, ground.try_one(object).await?)) });
    let mut trials: Vec<_> = at_once(tried).try_collect().await?;
    trials.sort_by_key(|it| it.0);
    Ok(trials.into_iter().map(|it| it.1).collect())
}

/// The state of the server, and what the objects add to it.
struct Ground<'a> {
    cluster: &'a ManagementCluster,
    /// CRDs that are known to exist.
    crds: &'a Crds,
    detail: Detail,
    /// The kinds that the server serves.
    kinds: Arc<Kinds>,
    /// These, and those that the objects define.
    coming: Kinds,
    /// Groups and names of the kinds that the objects define.
    defined: HashSet<(&'a str, &'a str)>,
    /// Namespaces that are missing.
    missing: HashSet<&'a str>,
    /// Namespaces that are among the objects.
    wanted: HashSet<&'a str>,
    /// Kinds and names of the roles that are among the objects.
    roles: HashSet<(&'a str, &'a str)>,
}

impl<'a> Ground<'a> {
    async fn survey(
        cluster: &'a ManagementCluster,
        objects: &'a [Value],
        known: &'a Known,
        detail: Detail,
    ) -> Result<Self, ServerError> {
        let Known { crds, namespaces: present } = known;
        let kinds = cluster.kinds().await?;
        let (mut coming, mut defined) = (Kinds::clone(&kinds), HashSet::new());
        coming.learn_all(objects);
        defined.extend(objects.iter().filter_map(Crd::of).map(|it| (it.group(), it.kind())));
        let is_unknown = |it: &&str| !present.contains(*it);
        let namespaces: BTreeSet<&str> = objects.iter().filter_map(namespace_of).filter(is_unknown).collect();
        let looks = namespaces.into_iter().map(|name| async move {
            let found = Api::<Namespace>::all(cluster.client().clone()).get_metadata_opt(name).await;
            let found = found.map_err(|error| cluster.failed(format!("look for Namespace {name}"), error))?;
            Ok::<_, ServerError>(found.is_none().then_some(name))
        });
        let looks: Vec<Option<&str>> = at_once(looks).try_collect().await?;
        let missing = looks.into_iter().flatten().collect();
        let is_namespace = |it: &&Value| Wave::of(it) == Wave::Namespaces;
        let wanted = objects.iter().filter(is_namespace).map(|it| text(it, "/metadata/name")).collect();
        let roles = objects.iter().filter_map(role).collect();
        Ok(Self { cluster, crds, detail, kinds, coming, defined, missing, wanted, roles })
    }

    async fn try_one(&self, object: &Value) -> Result<Trial, ServerError> {
        let id = ObjectRef::of(object);
        let refused = |id: &ObjectRef, reason: String| Trial {
            object: id.clone(),
            outcome: Outcome::Refused(Refusal { object: id.clone(), reason }),
            note: None,
        };
        let unknown = |id: &ObjectRef, note: Option<String>| Trial {
            object: id.clone(),
            outcome: Outcome::Unknown,
            note,
        };
        let Some(kind) = self.kinds.of(object) else {
            return Ok(match self.coming.of(object) {
                Some(_) => unknown(&id, None),
                None => {
                    refused(&id, format!("the server does not serve kind {} in {}", id.kind, id.api_version))
                }
            });
        };
        let homeless = namespace_of(object).filter(|it| kind.is_namespaced && self.missing.contains(it));
        if let Some(namespace) = homeless.filter(|it| !self.wanted.contains(it)) {
            let reason = format!("namespace {namespace} is neither on the server nor among the objects");
            return Ok(refused(&id, reason));
        }
        if let Some(stored) = self.replace(kind, &id, object).await {
            return Ok(Trial { object: id, outcome: Outcome::Stored(Box::new(stored)), note: None });
        }
        let mut answer = match homeless {
            Some(_) => self.ask(&id, || self.create(kind, &id, object, Some(STAND_IN))).await?,
            None if self.is_new_crd(object) => self.ask(&id, || self.create(kind, &id, object, None)).await?,
            None => self.ask(&id, || self.apply(kind, &id, object)).await?,
        };
        if answer == Answer::Fine && homeless.is_none() {
            answer = self.ask(&id, || self.apply(kind, &id, object)).await?;
        }
        Ok(match answer {
            Answer::Stored(stored) => Trial { object: id, outcome: Outcome::Stored(stored), note: None },
            Answer::Fine => unknown(&id, None),
            Answer::Unasked(reason) => unknown(&id, Some(format!("{id} could not be tried: {reason}"))),
            Answer::Refused(reason) if self.defined.contains(&(id.group(), id.kind.as_str())) => {
                let note = format!("{id} is not accepted by the CRD that is there now: {reason}");
                unknown(&id, Some(note))
            }
            Answer::Refused(reason) if self.awaits_role(object, &reason) => unknown(&id, None),
            Answer::Refused(reason) => refused(&id, reason),
        })
    }

    /// Whether a binding is refused only because its role, which is among the objects, does not exist yet. The server looks
    /// the role up for a client that may not bind every role, to see whether it holds the rules.
    fn awaits_role(&self, object: &Value, reason: &str) -> bool {
        let is_binding = matches!(text(object, "/kind"), "ClusterRoleBinding" | "RoleBinding");
        let role = (text(object, "/roleRef/kind"), text(object, "/roleRef/name"));
        is_binding && self.roles.contains(&role) && reason.ends_with(&format!("\"{}\" not found", role.1))
    }

    async fn apply(&self, kind: &Kind, id: &ObjectRef, object: &Value) -> Result<Value, kube::Error> {
        let params = PatchParams { dry_run: true, ..apply::params() };
        let url = self.cluster.objects(kind, id.namespace.as_deref()).resource_url().to_owned();
        let request = Request::new(url).patch(&id.name, &params, &Patch::Apply(object));
        self.send(object, request.map_err(kube::Error::BuildRequest)?).await
    }

    /// Dry-runs a CRD as an update of an existing one, which takes a server two thirds of the time of an apply. None if
    /// the update is refused or would change nothing: only an apply gives the exact answer then.
    async fn replace(&self, kind: &Kind, id: &ObjectRef, object: &Value) -> Option<Value> {
        let live = self.crds.get(&id.name).filter(|_| Wave::of(object) == Wave::Crds)?;
        let mut whole = object.clone();
        let metadata = whole.get_mut("metadata")?.as_object_mut()?;
        metadata.insert("resourceVersion".to_owned(), live.resource_version.clone()?.into());
        // Saves the server the computation of managedFields.
        metadata.insert("managedFields".to_owned(), json!([{}]));
        let params = PostParams { dry_run: true, field_manager: Some(FIELD_MANAGER.to_owned()) };
        let url = self.cluster.objects(kind, None).resource_url().to_owned();
        let request = Request::new(url).replace(&id.name, &params, serde_json::to_vec(&whole).ok()?).ok()?;
        let stored = self.send(object, strictly(request)).await.ok()?;
        let generation = stored.pointer("/metadata/generation").and_then(Value::as_i64)?;
        (live.generation? != generation || marks_anew(object, live)).then_some(stored)
    }

    /// Whether an object is a CRD whose kind is not served yet. A server creates a CRD in half the time of an apply.
    fn is_new_crd(&self, object: &Value) -> bool {
        Crd::of(object).is_some_and(|it| self.kinds.any_version(it.group(), it.kind()).is_none())
    }

    /// Dry-runs a create, in another namespace if the object's own does not exist. A conflict with an object of the same
    /// name does no harm: the server validates first.
    async fn create(
        &self,
        kind: &Kind,
        id: &ObjectRef,
        object: &Value,
        elsewhere: Option<&str>,
    ) -> Result<Value, kube::Error> {
        let params = PostParams { dry_run: true, field_manager: Some(FIELD_MANAGER.to_owned()) };
        let url = self.cluster.objects(kind, elsewhere).resource_url().to_owned();
        let data = match elsewhere {
            None => serde_json::to_vec(object),
            Some(namespace) => {
                let mut moved = object.clone();
                moved["metadata"]["namespace"] = namespace.into();
                serde_json::to_vec(&moved)
            }
        };
        let data = data.map_err(kube::Error::SerdeError)?;
        let request = Request::new(url).create(&params, data).map_err(kube::Error::BuildRequest)?;
        let mut stored = self.send(object, strictly(request)).await?;
        if let (Some(metadata), Some(namespace)) =
            (stored.get_mut("metadata").and_then(Value::as_object_mut), &id.namespace)
        {
            metadata.insert("namespace".to_owned(), namespace.clone().into());
        }
        Ok(stored)
    }

    /// Sends a dry-run request, and returns as much of the stored object as asked for.
    async fn send(&self, object: &Value, mut request: http::Request<Vec<u8>>) -> Result<Value, kube::Error> {
        if self.detail.is_metadata_enough(object) {
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static(METADATA));
        }
        self.cluster.client().request(request).await
    }

    /// Sends a request, and retries transient failures.
    async fn ask<F: Future<Output = Result<Value, kube::Error>>>(
        &self,
        id: &ObjectRef,
        request: impl Fn() -> F,
    ) -> Result<Answer, ServerError> {
        let is_transient = |error: &kube::Error, elapsed| {
            judge(error).is_none() && error::is_transient(error) && elapsed <= RETRY_LIMIT
        };
        match retry(BACKOFF, request, is_transient, |_| {}).await {
            Ok(stored) => Ok(Answer::Stored(Box::new(stored))),
            Err(error) => match judge(&error) {
                Some(answer) => Ok(answer),
                None => Err(self.cluster.failed(format!("try {id}"), error)),
            },
        }
    }
}

/// Whether an object has labels or annotations that the existing one lacks.
fn marks_anew(object: &Value, live: &ObjectMeta) -> bool {
    let differ = |field: &str, there: &Option<BTreeMap<String, String>>| {
        let wanted = object["metadata"][field].as_object().into_iter().flatten();
        let there = |name: &String| there.as_ref().and_then(|it| it.get(name)).map(String::as_str);
        wanted.into_iter().any(|(name, value)| there(name) != value.as_str())
    };
    differ("labels", &live.labels) || differ("annotations", &live.annotations)
}

/// Refuses unknown fields, as apply does.
fn strictly(mut request: http::Request<Vec<u8>>) -> http::Request<Vec<u8>> {
    if let Ok(uri) = format!("{}&fieldValidation=Strict", request.uri()).parse() {
        *request.uri_mut() = uri;
    }
    request
}

/// The answer of a server.
#[derive(Debug, PartialEq)]
enum Answer {
    Stored(Box<Value>),
    Fine,
    Unasked(String),
    Refused(String),
}

/// What an error says about the object; none if it is about the server or the connection.
fn judge(error: &kube::Error) -> Option<Answer> {
    let kube::Error::Api(status) = error else {
        return None;
    };
    let message = status.message.clone();
    let is_about_webhook = message.contains("failed calling webhook")
        || message.contains("admission webhook") && message.contains("does not support dry run");
    match status.code {
        _ if is_about_webhook => Some(Answer::Unasked(message)),
        409 if status.reason == "AlreadyExists" => Some(Answer::Fine),
        400 | 403 | 404 | 405 | 406 | 413 | 415 | 422 => Some(Answer::Refused(message)),
        _ if error::is_about_schema(error) => Some(Answer::Refused(message)),
        _ => None,
    }
}

/// Kind and name of a role.
fn role(object: &Value) -> Option<(&str, &str)> {
    let kind = text(object, "/kind");
    matches!(kind, "ClusterRole" | "Role").then(|| (kind, text(object, "/metadata/name")))
}

fn namespace_of(object: &Value) -> Option<&str> {
    object.pointer("/metadata/namespace").and_then(Value::as_str).filter(|it| !it.is_empty())
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn labels_and_annotations_of_others_are_no_news() {
        let live = json!({"labels": {"ours": "1", "theirs": "2"}, "annotations": {"note": "old"}});
        let live: ObjectMeta = serde_json::from_value(live).unwrap();
        for (metadata, is_news) in [
            (json!({}), false),
            (json!({"labels": {"ours": "1"}, "annotations": {"note": "old"}}), false),
            (json!({"labels": {"ours": "2"}}), true),
            (json!({"labels": {"new": ""}}), true),
            (json!({"annotations": {"note": "new"}}), true),
        ] {
            assert_eq!(marks_anew(&json!({"metadata": metadata}), &live), is_news, "{metadata}");
        }
    }

    #[test]
    fn only_what_is_wrong_with_the_object_is_held_against_it() {
        let refused = |message: &str| Some(Answer::Refused(message.to_owned()));
        let unasked = |message: &str| Some(Answer::Unasked(message.to_owned()));
        for (code, reason, message, expected) in [
            (422, "Invalid", "spec.selector: Required value", refused("spec.selector: Required value")),
            (403, "Forbidden", "not for you", refused("not for you")),
            (400, "BadRequest", "unknown field", refused("unknown field")),
            // Servers say this with code 500, though it will not pass.
            (
                500,
                "",
                "failed to create typed patch object (a/b; v1, Kind=C): .d: field not declared in schema",
                refused(
                    "failed to create typed patch object (a/b; v1, Kind=C): .d: field not declared in schema",
                ),
            ),
            (409, "AlreadyExists", "configmaps \"x\" already exists", Some(Answer::Fine)),
            (409, "Conflict", "try again", None),
            (500, "InternalError", "etcd is away", None),
            (401, "Unauthorized", "who are you", None),
            (
                500,
                "InternalError",
                "Internal error occurred: failed calling webhook \"w\": no route",
                unasked("Internal error occurred: failed calling webhook \"w\": no route"),
            ),
            (
                400,
                "BadRequest",
                "admission webhook \"w\" does not support dry run",
                unasked("admission webhook \"w\" does not support dry run"),
            ),
            (
                403,
                "Forbidden",
                "admission webhook \"w\" denied the request: no",
                refused("admission webhook \"w\" denied the request: no"),
            ),
        ] {
            let status = Status { code, ..Status::failure(message, reason) };
            assert_eq!(judge(&kube::Error::Api(status.boxed())), expected, "{code} {message}");
        }
    }
}
