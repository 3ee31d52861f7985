//! Admission webhooks: an object on its way into the API server comes in, a verdict goes out.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Extension, Router,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
    routing::post,
};
use capstan_api::{
    admission::{Verdict, invalid_message},
    contract::GroupKind,
};
use k8s_openapi::ByteString;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tracing::debug;

use crate::{
    review::{Answer, Desk, Fault, Pieces, Webhook, check_memory, request, short},
    serve::Peer,
};

/// The largest review that is read. It holds the new object and the stored one, and JSON may write a byte of either
/// as six: a stored object of 1 MiB can make a review of 12 MiB, and the API server takes objects of 3 MiB.
const BODY_LIMIT: usize = 40 << 20;
/// No object has a longer name; what has is answered without it.
const LONGEST_NAME: usize = 253;
/// The only form of review that is spoken here.
const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// Judges the new state of an object, given the stored one where there is one.
pub type Judge = Arc<dyn Fn(&Value, Option<&Value>) -> Verdict + Send + Sync>;

#[derive(Clone)]
struct Admitter {
    kind: GroupKind,
    version: String,
    judge: Judge,
}

/// The admission webhooks of a process, by path.
#[derive(Clone, Default)]
pub struct Admitters {
    by_path: BTreeMap<String, Admitter>,
}

impl std::fmt::Debug for Admitters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.by_path.keys()).finish()
    }
}

impl Admitters {
    /// Judges objects of one kind and version at a path. Deletions are let through unseen.
    pub fn add(&mut self, path: &str, kind: GroupKind, version: &str, judge: Judge) {
        let version = format!("{}/{version}", kind.group);
        self.by_path.insert(path.to_owned(), Admitter { kind, version, judge });
    }

    /// Whether there is no webhook at all.
    pub fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    /// Serves all paths.
    pub(crate) fn router(self, desk: &Desk) -> Router {
        let mut router = Router::new();
        for (path, admitter) in self.by_path {
            router = router.route(&path, post(admit).with_state((desk.clone(), Arc::new(admitter))));
        }
        router
    }
}

async fn admit(
    State((desk, admitter)): State<(Desk, Arc<Admitter>)>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    desk.answer(peer.map(|it| it.0), &headers, body, admitter).await
}

impl Webhook for Admitter {
    const LIMIT: usize = BODY_LIMIT;

    fn answer(&self, review: &[u8]) -> Result<Answer, Fault> {
        answer(self, review)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReviewRequest<'a> {
    #[serde(borrow)]
    uid: Option<&'a RawValue>,
    #[serde(borrow)]
    operation: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    old_object: Option<&'a RawValue>,
}

/// The answer to a review, or what is wrong with something that is none.
fn answer(admitter: &Admitter, body: &[u8]) -> Result<Answer, Fault> {
    let request: ReviewRequest<'_> = request(body, API_VERSION, KIND)?;
    let (mut response, fault) = match judge(admitter, &request) {
        Ok(response) => (response, None),
        Err(fault) => (refuse(&fault), Some(fault)),
    };
    response["uid"] = json!(short(request.uid));
    let review = json!({"apiVersion": API_VERSION, "kind": KIND, "response": response});
    let mut pieces = Pieces::default();
    pieces.push_json(&review);
    Ok(Answer { pieces, fault })
}

fn refuse(fault: &Fault) -> Value {
    let (code, reason, message) = match fault {
        Fault::Limit(limit) => (limit.code(), "RequestEntityTooLarge", limit.to_string()),
        Fault::Malformed(words) => (StatusCode::BAD_REQUEST, "BadRequest", words.clone()),
    };
    json!({
        "allowed": false,
        "status": {"status": "Failure", "code": code.as_u16(), "reason": reason, "message": message},
    })
}

fn judge(admitter: &Admitter, request: &ReviewRequest<'_>) -> Result<Value, Fault> {
    let operation = short(request.operation);
    match operation.as_str() {
        "CREATE" => {
            let object = text(&operation, "object", request.object)?;
            check_memory(&[object])?;
            let object = read(admitter, "object", object)?;
            Ok(encode(admitter, &object, (admitter.judge)(&object, None)))
        }
        "UPDATE" => {
            let object = text(&operation, "object", request.object)?;
            let old = text(&operation, "oldObject", request.old_object)?;
            check_memory(&[object, old])?;
            let object = read(admitter, "object", object)?;
            let old = read(admitter, "oldObject", old)?;
            Ok(encode(admitter, &object, (admitter.judge)(&object, Some(&old))))
        }
        "DELETE" => Ok(json!({"allowed": true})),
        _ => Err(Fault::Malformed("the review's operation is not CREATE, UPDATE or DELETE".to_owned())),
    }
}

/// The text of one of a review's objects.
fn text<'a>(operation: &str, field: &str, object: Option<&'a RawValue>) -> Result<&'a str, Fault> {
    let object = object.map(RawValue::get).filter(|it| it.starts_with('{'));
    object.ok_or_else(|| {
        Fault::Malformed(format!("the review's request has no {field}, which {operation} needs"))
    })
}

/// Reads one of a review's objects.
fn read(admitter: &Admitter, field: &str, text: &str) -> Result<Value, Fault> {
    let object: Value = serde_json::from_str(text)
        .map_err(|error| Fault::Malformed(format!("the review's {field} cannot be read: {error}")))?;
    let part = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    if (part("apiVersion"), part("kind")) == (&admitter.version, &admitter.kind.kind) {
        Ok(object)
    } else {
        let (kind, version) = (&admitter.kind.kind, &admitter.version);
        Err(Fault::Malformed(format!(
            "the review's {field} is not a {kind} of {version}, which is all that is judged here"
        )))
    }
}

fn encode(admitter: &Admitter, object: &Value, verdict: Verdict) -> Value {
    let mut response = json!({"allowed": verdict.errors.is_empty()});
    if !verdict.warnings.is_empty() {
        response["warnings"] = json!(verdict.warnings);
    }
    let name =
        object["metadata"]["name"].as_str().filter(|name| name.len() <= LONGEST_NAME).unwrap_or_default();
    if !verdict.errors.is_empty() {
        let kind = &admitter.kind;
        let causes: Vec<_> = verdict
            .errors
            .listed()
            .iter()
            .map(|it| json!({"field": it.path, "reason": it.reason(), "message": it.message()}))
            .collect();
        let message = invalid_message(&format!("{}.{}", kind.kind, kind.group), name, &verdict.errors);
        debug!(%message, "refused");
        response["status"] = json!({
            "status": "Failure", "code": 422, "reason": "Invalid", "message": message,
            "details": {"group": kind.group, "kind": kind.kind, "name": name, "causes": causes},
        });
    } else if !verdict.patch.is_empty() {
        debug!(name, patch = ?verdict.patch, "defaulted");
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(ByteString(Value::from(verdict.patch).to_string().into_bytes()));
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::Request};
    use tower::ServiceExt;

    use super::*;
    use crate::{metrics::Metrics, refusals::Refusals};

    fn router() -> Router {
        let judge = |new: &Value, old: Option<&Value>| {
            let mut verdict = Verdict::default();
            verdict.warnings.extend(old.map(|_| "changed".to_owned()));
            match new["spec"].as_str() {
                Some("bad") => verdict.errors.forbidden("spec", "is bad"),
                Some("bare") => verdict.set("/spec", "dressed"),
                _ => {}
            }
            verdict
        };
        let mut admitters = Admitters::default();
        admitters.add("/judge", GroupKind::new("g.io", "Thing"), "v1", Arc::new(judge));
        admitters.router(&Desk::new(Refusals::new("webhooks", Metrics::default())))
    }

    async fn post(body: impl Into<Body>) -> (u16, Vec<u8>) {
        let body = body.into();
        let length = http_body::Body::size_hint(&body).lower();
        let request = Request::post("/judge").header("content-length", length).body(body).unwrap();
        let response = router().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (code, bytes.to_vec())
    }

    fn thing(spec: &str) -> Value {
        json!({"apiVersion": "g.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec})
    }

    async fn review(request: Value) -> Value {
        let review = json!({"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": request});
        let (code, body) = post(review.to_string()).await;
        assert_eq!(code, 200);
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(answer["apiVersion"], API_VERSION);
        answer["response"].clone()
    }

    #[tokio::test]
    async fn verdicts_are_spoken_as_the_api_server_expects() {
        let request = |operation: &str, spec: &str| json!({"uid": "u", "operation": operation, "object": thing(spec), "oldObject": thing("old")});
        assert_eq!(review(request("CREATE", "good")).await, json!({"uid": "u", "allowed": true}));
        assert_eq!(
            review(request("UPDATE", "good")).await,
            json!({"uid": "u", "allowed": true, "warnings": ["changed"]})
        );
        let patched = review(request("CREATE", "bare")).await;
        assert_eq!(patched["patchType"], "JSONPatch");
        let patch: ByteString = serde_json::from_value(patched["patch"].clone()).unwrap();
        let patch: Value = serde_json::from_slice(&patch.0).unwrap();
        assert_eq!(patch, json!([{"op": "add", "path": "/spec", "value": "dressed"}]));
        let refused = review(request("CREATE", "bad")).await;
        assert_eq!(refused["allowed"], false);
        assert_eq!(refused["status"]["code"], 422);
        assert_eq!(refused["status"]["message"], "Thing.g.io \"t\" is invalid: spec: Forbidden: is bad");
        assert_eq!(refused["status"]["details"]["causes"][0]["reason"], "FieldValueForbidden");
        assert_eq!(review(json!({"uid": "u", "operation": "DELETE"})).await["allowed"], true);
    }

    #[tokio::test]
    async fn half_a_request_is_refused_with_words() {
        let other = json!({"apiVersion": "g.io/v0", "kind": "Thing"});
        for (request, words) in [
            (json!({"uid": "u"}), "operation"),
            (json!({"uid": "u", "operation": ["CREATE"]}), "operation"),
            (json!({"uid": "u", "operation": "CREATE"}), "has no object"),
            (json!({"uid": "u", "operation": "CREATE", "object": "text"}), "has no object"),
            (json!({"uid": "u", "operation": "CREATE", "object": other}), "is not a Thing of g.io/v1"),
            (json!({"uid": "u", "operation": "UPDATE", "object": thing("x")}), "has no oldObject"),
        ] {
            let answer = review(request.clone()).await;
            assert_eq!((&answer["allowed"], &answer["uid"]), (&json!(false), &json!("u")), "{request}");
            assert_eq!(answer["status"]["code"], 400, "{request}");
            assert!(answer["status"]["message"].as_str().unwrap().contains(words), "{request}: {answer}");
        }
    }

    #[tokio::test]
    async fn what_is_no_review_is_turned_away() {
        let deep = format!("{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
        for (body, code, words) in [
            (b"".to_vec(), 400, "not a review"),
            (b"\xff\xfe".to_vec(), 400, "not a review"),
            (b"{}".to_vec(), 400, "kind AdmissionReview in admission.k8s.io/v1"),
            (
                br#"{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}"#.to_vec(),
                400,
                "all that is known",
            ),
            (
                br#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}"#.to_vec(),
                400,
                "no request",
            ),
            (
                br#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": []}"#
                    .to_vec(),
                400,
                "not a review in JSON",
            ),
            (deep.into_bytes(), 400, "nested deeper than the limit of 100 levels"),
            (vec![b' '; BODY_LIMIT + 1], 413, "the body is larger than the limit of 40 MiB"),
        ] {
            let (found, answer) = post(body).await;
            let answer = String::from_utf8(answer).unwrap();
            assert_eq!(found, code, "{answer}");
            assert!(answer.contains(words) && answer.len() < 500, "{answer}");
        }
    }
}
