//! Conversion webhooks: objects in one API version in, the same objects in another out.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Extension, Router, body::Body, extract::State, http::HeaderMap, response::Response, routing::post,
};
use capstan_api::contract::GroupKind;
use kube::core::Status;
use serde::{
    Deserialize, Deserializer as _,
    de::{SeqAccess, Visitor},
};
use serde_json::{Value, json, value::RawValue};
use tracing::debug;

use crate::{
    refusals::Limit,
    review::{Answer, Desk, Fault, Pieces, Webhook, check_memory, request, short, takes_at_most},
    serve::Peer,
};

/// The largest review that is read: a page of 500 large objects fits.
const BODY_LIMIT: usize = 64 << 20;
/// What the converted objects of a review may take. Each carries what its version cannot say in an annotation.
const ANSWER: usize = 96 << 20;
/// Objects in a review: a list of all Clusters that fit into one.
const OBJECTS: usize = 100_000;
/// Characters of a message, which may quote what was sent.
const LONGEST_MESSAGE: usize = 1000;
/// The only form of review that is spoken here.
const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

/// Converts the objects of one kind to the given `apiVersion`.
pub type Converter = Arc<dyn Fn(Value, &str) -> Result<Value, String> + Send + Sync>;

/// The converters of a process, by kind.
#[derive(Clone, Default)]
pub struct Converters {
    by_kind: HashMap<GroupKind, Converter>,
}

impl std::fmt::Debug for Converters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.by_kind.keys()).finish()
    }
}

impl Converters {
    /// Adds a kind.
    pub fn add(&mut self, kind: GroupKind, converter: Converter) {
        self.by_kind.insert(kind, converter);
    }

    /// Whether there is no converter at all.
    pub fn is_empty(&self) -> bool {
        self.by_kind.is_empty()
    }

    /// The kinds that are converted.
    pub fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        self.by_kind.keys()
    }

    /// Serves `/convert`.
    pub(crate) fn router(self, desk: &Desk) -> Router {
        Router::new().route("/convert", post(convert)).with_state((desk.clone(), Arc::new(self)))
    }

    fn convert(&self, object: Value, desired: &str) -> Result<Value, String> {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, _version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let kind = GroupKind::new(group, kind);
        let converter =
            self.by_kind.get(&kind).ok_or_else(|| format!("{kind} is not converted by this webhook"))?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        converter(object, desired).map_err(|error| {
            format!("cannot convert {kind} {name:?} from {api_version} to {desired}: {error}")
        })
    }
}

async fn convert(
    State((desk, converters)): State<(Desk, Arc<Converters>)>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    desk.answer(peer.map(|it| it.0), &headers, body, converters).await
}

impl Webhook for Converters {
    const LIMIT: usize = BODY_LIMIT;

    /// Objects are read one after another.
    fn takes_at_most(review: &[u8], memory: usize) -> bool {
        let Ok(request) = request::<ReviewRequest<'_>>(review, API_VERSION, KIND) else { return true };
        let objects = request.objects.and_then(|it| serde_json::from_str::<Vec<&RawValue>>(it.get()).ok());
        objects.into_iter().flatten().all(|it| takes_at_most(it.get().as_bytes(), memory))
    }

    fn answer(&self, review: &[u8]) -> Result<Answer, Fault> {
        answer(self, review)
    }
}

#[derive(Deserialize)]
struct ReviewRequest<'a> {
    #[serde(borrow)]
    uid: Option<&'a RawValue>,
    #[serde(borrow, rename = "desiredAPIVersion")]
    desired: Option<&'a RawValue>,
    #[serde(borrow)]
    objects: Option<&'a RawValue>,
}

/// The answer to a review, or what is wrong with something that is none.
fn answer(converters: &Converters, body: &[u8]) -> Result<Answer, Fault> {
    let request: ReviewRequest<'_> = request(body, API_VERSION, KIND)?;
    let objects = request.objects.filter(|it| it.get().starts_with('['));
    let objects = objects.ok_or_else(|| Fault::Malformed("the review has no objects".to_owned()))?;
    let (uid, desired) = (short(request.uid), short(request.desired));
    let mut run = Run { converters, desired: &desired, converted: Pieces::default(), count: 0, fault: None };
    let fault = run.all(objects).err();
    debug!(objects = run.count, to = %desired, "converted");
    let (status, converted) = match &fault {
        None => (Status::success(), run.converted),
        Some(Fault::Malformed(message)) => (Status::failure(message, "Invalid"), Pieces::default()),
        Some(Fault::Limit(limit)) => {
            let status = Status::failure(&limit.to_string(), "RequestEntityTooLarge");
            (status.with_code(limit.code().as_u16()), Pieces::default())
        }
    };
    let (uid, result) = (Value::from(uid), json!(status));
    let mut pieces = Pieces::default();
    pieces.push(&format!(
        r#"{{"apiVersion":"{API_VERSION}","kind":"{KIND}","response":{{"uid":{uid},"result":{result},"convertedObjects":["#
    ));
    pieces.append(converted);
    pieces.push("]}}");
    Ok(Answer { pieces, fault })
}

/// The objects of a review, converted one after another: only one of them is more than text at a time.
struct Run<'a> {
    converters: &'a Converters,
    desired: &'a str,
    converted: Pieces,
    count: usize,
    /// What ended it early.
    fault: Option<Fault>,
}

impl Run<'_> {
    fn all(&mut self, objects: &RawValue) -> Result<(), Fault> {
        let read = serde_json::Deserializer::from_str(objects.get()).deserialize_seq(&mut *self);
        match (self.fault.take(), read) {
            (Some(fault), _) => Err(fault),
            (None, Err(error)) => {
                Err(Fault::Malformed(format!("the review's objects cannot be read: {error}")))
            }
            (None, Ok(())) => Ok(()),
        }
    }

    fn one(&mut self, object: &RawValue) -> Result<(), Fault> {
        if self.count == OBJECTS {
            return Err(Limit::Objects(OBJECTS).into());
        }
        check_memory(&[object.get()])?;
        let object = serde_json::from_str(object.get())
            .map_err(|error| Fault::Malformed(format!("object {} cannot be read: {error}", self.count)))?;
        let converted = self.converters.convert(object, self.desired);
        let converted = converted.map_err(|message| Fault::Malformed(clip(message)))?;
        if self.count > 0 {
            self.converted.push(",");
        }
        self.converted.push_json(&converted);
        self.count += 1;
        if self.converted.len() > ANSWER { Err(Limit::AnswerLength(ANSWER).into()) } else { Ok(()) }
    }
}

impl<'de> Visitor<'de> for &mut Run<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut objects: A) -> Result<(), A::Error> {
        while let Some(object) = objects.next_element::<&RawValue>()? {
            if let Err(fault) = self.one(object) {
                self.fault = Some(fault);
                return Err(serde::de::Error::custom("ended early"));
            }
        }
        Ok(())
    }
}

/// The start of a message, which may quote what was sent.
fn clip(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(LONGEST_MESSAGE) {
        message.truncate(end);
        message.push('…');
    }
    message
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use tower::ServiceExt;

    use super::*;
    use crate::{metrics::Metrics, refusals::Refusals};

    async fn post(body: impl Into<Body>) -> (u16, String) {
        let converter = |mut object: Value, desired: &str| {
            if object["spec"] == "bad" {
                return Err(format!("spec {} is bad", object["noise"]));
            }
            object["apiVersion"] = json!(desired);
            Ok(object)
        };
        let mut converters = Converters::default();
        converters.add(GroupKind::new("g.io", "Thing"), Arc::new(converter));
        let router = converters.router(&Desk::new(Refusals::new("webhooks", Metrics::default())));
        let body = body.into();
        let request =
            Request::post("/convert").header("content-length", http_body::Body::size_hint(&body).lower());
        let response = router.oneshot(request.body(body).unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (code, String::from_utf8(bytes.to_vec()).unwrap())
    }

    fn review(objects: &str) -> String {
        format!(
            r#"{{"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
                "request": {{"objects": {objects}, "desiredAPIVersion": "g.io/v2", "uid": "u\"1"}}}}"#
        )
    }

    async fn answer_to(objects: &str) -> Value {
        let (code, answer) = post(review(objects)).await;
        assert_eq!(code, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(
            (&answer["apiVersion"], &answer["kind"]),
            (&json!(API_VERSION), &json!("ConversionReview"))
        );
        assert_eq!(answer["response"]["uid"], "u\"1");
        answer["response"].clone()
    }

    #[tokio::test]
    async fn objects_come_back_converted_and_in_order() {
        assert_eq!(answer_to("[]").await["convertedObjects"], json!([]));
        // Some of them, and more than fit into one piece of the answer.
        for count in [1, 3, 20_000] {
            let objects: Vec<_> = (0..count)
                .map(|it| json!({"apiVersion": "g.io/v1", "kind": "Thing", "metadata": {"name": format!("t{it}")}}))
                .collect();
            let response = answer_to(&json!(objects).to_string()).await;
            assert_eq!(response["result"]["status"], "Success");
            let converted = response["convertedObjects"].as_array().unwrap();
            assert_eq!(converted.len(), count);
            for (it, object) in converted.iter().enumerate() {
                assert_eq!(
                    (&object["apiVersion"], &object["metadata"]["name"]),
                    (&json!("g.io/v2"), &json!(format!("t{it}")))
                );
            }
        }
    }

    #[tokio::test]
    async fn one_bad_object_spoils_the_review_with_words() {
        let good = json!({"apiVersion": "g.io/v1", "kind": "Thing"}).to_string();
        let bad = |more: Value| {
            let mut object =
                json!({"apiVersion": "g.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": "bad"});
            object["noise"] = more;
            object.to_string()
        };
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for (object, words) in [
            (bad(json!(7)), r#"cannot convert Thing.g.io "t" from g.io/v1 to g.io/v2: spec 7 is bad"#),
            (bad(json!("x".repeat(100_000))), "is bad"),
            (json!({"apiVersion": "g.io/v1", "kind": "Other"}).to_string(), "Other.g.io is not converted"),
            (json!({"kind": "x".repeat(100_000)}).to_string(), "xxxx"),
            ("7".to_owned(), "is not converted"),
            (format!("[{}0]", r#"{"":0},"#.repeat(100_000)), "more than the limit of 64 MiB"),
        ] {
            let response = answer_to(&format!("[{good},{object}]")).await;
            assert_eq!(
                (&response["result"]["status"], &response["convertedObjects"]),
                (&json!("Failure"), &json!([]))
            );
            let message = response["result"]["message"].as_str().unwrap();
            assert!(message.len() < 3000, "{} bytes", message.len());
            assert!(message.contains(words) || words == "is bad", "{message}");
        }
        let many = format!("[{}{good}]", format!("{good},").repeat(OBJECTS));
        let response = answer_to(&many).await;
        assert_eq!(response["result"]["message"], "the review has more objects than the limit of 100000");
        let (code, words) = post(review(&deep(200))).await;
        assert_eq!(
            (code, words.as_str()),
            (400, "the review is nested deeper than the limit of 100 levels\n")
        );
    }

    #[tokio::test]
    async fn what_is_no_review_is_turned_away() {
        let outline =
            |more: &str| format!(r#"{{"kind": "ConversionReview", "apiVersion": "{API_VERSION}"{more}}}"#);
        for (body, code, words) in [
            (String::new(), 400, "not a review in JSON"),
            ("[1,".repeat(1000), 400, "deeper than"),
            (
                r#"{"kind": "ConversionReview"}"#.to_owned(),
                400,
                "kind ConversionReview in apiextensions.k8s.io/v1",
            ),
            (outline(""), 400, "has no request"),
            (outline(r#", "request": {"objects": {}}"#), 400, "has no objects"),
            (outline(r#", "request": {"objects": [}"#), 400, "not a review in JSON"),
            (" ".repeat(BODY_LIMIT + 1), 413, "the body is larger than the limit of 64 MiB"),
        ] {
            let (found, answer) = post(body).await;
            assert_eq!(found, code, "{answer}");
            assert!(answer.contains(words) && answer.len() < 500, "{answer}");
        }
    }
}
