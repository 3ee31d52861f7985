//! One request, described, and its answer.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use capstan_manifest::text::is_web_page;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{StatusCode, Url};
use serde::de::DeserializeOwned;

use super::Credentials;
use super::https::decode;
use super::shown::shown;
use crate::FetchError;

/// A GET that has not been sent.
#[derive(Clone)]
pub(crate) struct Get {
    pub url: Url,
    /// What is looked for, in words, for those who read errors.
    pub what: String,
    pub accept: Option<&'static str>,
    /// For the origin of `url` only.
    pub authorization: Option<HeaderValue>,
    /// The variable that the token came from, or could come from.
    pub variable: Option<&'static str>,
    /// The variable that would have to list the host, if there is a token that it may not see.
    pub withheld: Option<&'static str>,
    pub validators: Validators,
    pub limit: Option<u64>,
    /// Whether an unencrypted connection is what the user asked for.
    pub plain_http: bool,
    /// Whether a failure costs so little that it is not worth another attempt.
    pub once: bool,
}

impl Get {
    pub(crate) fn new(url: Url, what: impl Into<String>) -> Self {
        Self {
            url,
            what: what.into(),
            accept: None,
            authorization: None,
            variable: None,
            withheld: None,
            validators: Validators::default(),
            limit: None,
            plain_http: false,
            once: false,
        }
    }

    pub(crate) fn accept(self, accept: &'static str) -> Self {
        Self { accept: Some(accept), ..self }
    }

    pub(crate) fn authorization(self, authorization: Option<HeaderValue>) -> Self {
        Self { authorization, ..self }
    }

    pub(crate) fn variable(self, variable: &'static str) -> Self {
        Self { variable: Some(variable), ..self }
    }

    pub(crate) fn withheld(self, withheld: Option<&'static str>) -> Self {
        Self { withheld, ..self }
    }

    pub(crate) fn validators(self, validators: Validators) -> Self {
        Self { validators, ..self }
    }

    pub(crate) fn limit(self, limit: u64) -> Self {
        Self { limit: Some(limit), ..self }
    }

    pub(crate) fn plain_http(self, plain_http: bool) -> Self {
        Self { plain_http, ..self }
    }

    pub(crate) fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// The secrets that are sent to the server and must not be shown anywhere else.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let sent = self.authorization.as_ref().and_then(|value| value.to_str().ok()?.split_once(' '));
        let token = sent.map(|(_, token)| token.to_owned());
        let pair =
            token.as_ref().and_then(|token| String::from_utf8(BASE64_STANDARD.decode(token).ok()?).ok());
        let password = pair.as_ref().and_then(|pair| Some(pair.split_once(':')?.1.to_owned()));
        let in_address = self.url.password().map(decode);
        [token, password, in_address].into_iter().flatten().filter(|secret| !secret.is_empty()).collect()
    }

    /// The address as it may be shown.
    pub(crate) fn shown(&self) -> String {
        shown(&self.url)
    }
}

/// `Authorization: Bearer`; nothing for a token that no header can hold.
pub(crate) fn bearer(token: &str) -> Option<HeaderValue> {
    sensitive(&format!("Bearer {token}"))
}

/// `Authorization: Basic`.
pub(crate) fn basic(credentials: &Credentials) -> Option<HeaderValue> {
    let pair = format!("{}:{}", credentials.username, credentials.password);
    sensitive(&format!("Basic {}", BASE64_STANDARD.encode(pair)))
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// What a server recognises its earlier answer by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Validators {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
}

// Addresses may hold passwords and signatures.
impl fmt::Debug for Get {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").field("url", &self.shown()).field("what", &self.what).finish_non_exhaustive()
    }
}

/// What came.
pub(crate) struct Reply {
    /// Who answered: the last of all redirects.
    pub url: Url,
    /// Whether every redirect on the way stayed at the origin that was asked. What others say about credentials does
    /// not count.
    pub direct: bool,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn is_unchanged(&self) -> bool {
        self.status == StatusCode::NOT_MODIFIED
    }

    pub(crate) fn validators(&self) -> Validators {
        Validators {
            etag: self.header(reqwest::header::ETAG).map(str::to_owned),
            last_modified: self.header(reqwest::header::LAST_MODIFIED).map(str::to_owned),
        }
    }
}

// The answer of a token service is a secret.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("url", &shown(&self.url))
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// Reads JSON from an answer.
pub(crate) fn read_json<T: DeserializeOwned>(url: &Url, body: &[u8]) -> Result<T, FetchError> {
    if looks_like_web_page(body) {
        return Err(FetchError::WebPage { url: shown(url) });
    }
    serde_json::from_slice(body)
        .map_err(|error| FetchError::Malformed { url: shown(url), reason: describe_json(&error) })
}

/// What is wrong with JSON that may hold secrets. An error about a value of a wrong type quotes the value.
pub(crate) fn describe_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if !error.is_data() || text.starts_with("missing field") {
        return text;
    }
    format!("a value of a wrong type at line {} column {}", error.line(), error.column())
}

/// Whether this is for a browser. Servers mislabel files, so that only the content counts.
pub(crate) fn looks_like_web_page(body: &[u8]) -> bool {
    body.utf8_chunks().next().is_some_and(|start| is_web_page(start.valid()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web_pages_are_told_from_files() {
        for (body, page) in [
            (&b"<!DOCTYPE html><html>"[..], true),
            (b"\xef\xbb\xbf\n\x0c  <HTML lang=en>", true),
            (b"<head><title>Log in</title></head>", true),
            (b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", true),
            (b"<html>Acc\xe8s refus\xe9", true),
            (b"<htm", false),
            (b"", false),
            (b"\x1f\x8b\x08", false),
            (b"apiVersion: v1 # <html>", false),
        ] {
            assert_eq!(looks_like_web_page(body), page, "{}", body.escape_ascii());
        }
    }

    #[test]
    fn errors_about_json_do_not_quote_it() {
        #[derive(Debug, serde::Deserialize)]
        struct Answer {
            #[expect(dead_code, reason = "only whether it can be read counts")]
            token: String,
        }
        let url = Url::parse("https://user:canary@h/token?canary").unwrap();
        for (text, expected) in [
            (r#""canary""#, "a value of a wrong type at line 1 column 8"),
            ("{\n\"token\": [\"canary\"]}", "a value of a wrong type at line 2 column 9"),
            (r#"{"canary": 1}"#, "missing field `token` at line 1 column 13"),
            (r#"{"token": canary}"#, "expected value at line 1 column 11"),
        ] {
            let error = read_json::<Answer>(&url, text.as_bytes()).unwrap_err();
            let expected = format!("the answer of https://h/token cannot be understood: {expected}");
            assert_eq!(error.to_string(), expected, "{text}");
            assert!(!format!("{error:?}").contains("canary"), "{error:?}");
        }
    }

    #[test]
    fn requests_and_answers_do_not_show_secrets() {
        let url = Url::parse("https://me:canary@h/f?canary").unwrap();
        let get = Get::new(url.clone(), "f").authorization(bearer("canary"));
        let headers = [("set-cookie".parse().unwrap(), "canary".parse().unwrap())].into_iter().collect();
        let reply = Reply { url, direct: true, status: StatusCode::OK, headers, body: b"canary".into() };
        assert_eq!(
            format!("{get:?} {reply:?}"),
            r#"Get { url: "https://h/f", what: "f", .. } Reply { url: "https://h/f", status: 200, .. }"#
        );
    }

    #[test]
    fn a_token_that_no_header_can_hold_is_not_sent() {
        assert_eq!(bearer("a\nb"), None);
        assert!(bearer("ab").unwrap().is_sensitive());
    }
}
