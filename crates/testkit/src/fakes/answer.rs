//! Answers, as plain values until they are sent.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use super::registry::digest_of;

/// A request as the players see it.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// Whom it is for: host, and port if it is not the usual one.
    pub host: String,
    /// The scheme that it came by.
    pub scheme: &'static str,
    /// Raw, with its escapes.
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
}

impl Question {
    /// The path's segments, without their escapes.
    pub(super) fn segments(&self) -> Vec<String> {
        self.path.trim_start_matches('/').split('/').map(decode).collect()
    }

    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| decode(&value.replace('+', " ")))
    }

    pub(super) fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(super) fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.host)
    }
}

fn decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

/// What is said to it.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub(super) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: HeaderMap::new(), body: body.into() }
    }

    pub(super) fn json(value: &Value) -> Self {
        Self::new(200, value.to_string()).with("content-type", "application/json").with_etag()
    }

    pub(super) fn file(bytes: &[u8]) -> Self {
        Self::new(200, bytes).with_etag()
    }

    pub(super) fn missing() -> Self {
        Self::new(404, r#"{"message":"Not Found"}"#)
    }

    pub(super) fn redirect(location: &str) -> Self {
        Self::new(302, "").with("location", location)
    }

    pub(super) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.append(name, HeaderValue::from_str(value).unwrap());
        self
    }

    fn with_etag(self) -> Self {
        let etag = format!("\"{}\"", digest_of(&self.body));
        self.with("etag", &etag)
    }

    /// "Not modified" for those who have it already.
    pub(super) fn unless_known(self, question: &Question) -> Self {
        let etag = self.headers.get(header::ETAG);
        if self.status == 200 && etag.is_some() && question.headers.get(header::IF_NONE_MATCH) == etag {
            return Self { status: 304, body: Vec::new(), ..self };
        }
        self
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap();
        *response.headers_mut() = self.headers;
        response
    }
}

/// One page of a list, with a `Link` to the next; `per_page` is the server's own, small one.
pub(super) fn page(question: &Question, items: &[Value], per_page: usize) -> Answer {
    let number: usize = question.parameter("page").map_or(1, |page| page.parse().unwrap());
    let pages: Vec<_> = items.chunks(per_page).collect();
    let shown = pages.get(number - 1).copied().unwrap_or_default();
    let answer = Answer::json(&Value::from(shown.to_vec()));
    if number >= pages.len() {
        return answer;
    }
    let next = format!("{}{}?page={}", question.origin(), question.path, number + 1);
    answer.with("link", &format!("<{next}>; rel=\"next\", <{next}>; rel=\"last\""))
}
