//! Canaries: a word that stories put into every Secret, and that must be seen nowhere else.
//!
//! What a story's manager sends to the API server and what the process logs is searched for it, and so is what the binary
//! prints. A manager that is stopped fails its story if the word was seen.

use std::{
    collections::BTreeMap,
    io,
    sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Method, Request};
use http_body_util::BodyExt;
use k8s_openapi::ByteString;
use kube::{Client, client::Body};
use tower::{BoxError, service_fn};
use tracing_subscriber::EnvFilter;

/// The word.
pub const CANARY: &str = "canary-c5d1-in-the-coal-mine";
/// A key that no controller reads.
const UNREAD: &str = "canary";
/// All that `-v 5` shows.
const LOGGED: &str = "debug,hyper=info,tower=info,rustls=info";
/// As much of a place is shown as tells what it is.
const SHOWN: usize = 600;

static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The contents of a Secret with canaries: under a key of their own, and before each private key in PEM, where readers
/// look past it.
pub fn plant(data: &[(&str, &[u8])]) -> BTreeMap<String, ByteString> {
    let planted = data.iter().map(|(key, value)| {
        let is_key = std::str::from_utf8(value).is_ok_and(|text| text.contains("PRIVATE KEY-----"));
        let before = if is_key { format!("{CANARY}\n") } else { String::new() };
        ((*key).to_owned(), ByteString([before.as_bytes(), value].concat()))
    });
    planted.chain([(UNREAD.to_owned(), ByteString(CANARY.into()))]).collect()
}

/// Searches the log of this process from now on.
pub fn search_the_log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let filter = EnvFilter::new(LOGGED);
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(|| Log).init();
    });
}

struct Log;

impl io::Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        search("the log", line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A client whose requests are searched, but for those that write Secrets.
pub fn searched(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let path = parts.uri.path();
            if parts.method == Method::GET || !path.contains("/secrets") {
                search(&format!("{} {path}", parts.method), parts.uri.to_string().as_bytes());
                search(&format!("{} {path}", parts.method), &body);
            }
            let request = Request::from_parts(parts, Body::from(body.to_vec()));
            client.send(request).await.map_err(BoxError::from)
        }
    });
    Client::new(service, namespace)
}

/// Fails if something holds the canary.
pub fn assert_not_in(place: &str, text: &str) {
    assert!(!holds(text.as_bytes()), "{place} shows what only a Secret may hold: {text}");
}

/// Fails if the canary was seen in a request or in the log.
pub fn assert_never_seen() {
    let seen = seen();
    assert!(seen.is_empty(), "what only a Secret may hold was seen elsewhere:\n{}", seen.join("\n"));
}

fn seen() -> MutexGuard<'static, Vec<String>> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn search(place: &str, text: &[u8]) {
    if holds(text) {
        let text: String = String::from_utf8_lossy(text).chars().take(SHOWN).collect();
        seen().push(format!("{place}: {text}"));
    }
}

/// Whether a text holds the canary as it is, in base64, or as libraries print bytes.
fn holds(text: &[u8]) -> bool {
    static FORMS: OnceLock<Vec<String>> = OnceLock::new();
    let forms = FORMS.get_or_init(|| {
        let numbers = CANARY.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>();
        let mut forms = vec![CANARY.to_owned(), numbers.join(", "), numbers.join(",")];
        // The letters of base64 depend on the place within three bytes, and at both ends on what is beside.
        for before in 0..3 {
            let whole = STANDARD.encode([vec![0; before], CANARY.into()].concat());
            forms.push(whole[4..whole.len() - 4].to_owned());
        }
        forms
    });
    forms.iter().any(|form| text.windows(form.len()).any(|it| it == form.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_is_found_in_any_form() {
        for before in ["", "a", "ab", "abc", "abcd"] {
            for after in ["", "a", "ab"] {
                let text = format!("{before}{CANARY}{after}");
                let numbers = format!("{:?}", text.as_bytes());
                for form in [STANDARD.encode(&text), text.clone(), numbers, format!("{text:?}")] {
                    assert!(holds(form.as_bytes()), "{form}");
                }
            }
        }
        assert!(!holds(b"canaries in a coal mine") && !holds(b""));
    }

    #[test]
    fn canaries_are_planted_where_nobody_reads() {
        let planted = plant(&[("tls.key", b"-----BEGIN PRIVATE KEY-----"), ("host", b"127.0.0.1")]);
        assert!(holds(&planted["tls.key"].0) && holds(&planted["canary"].0));
        assert_eq!(planted["host"].0, b"127.0.0.1");
    }

    #[tokio::test]
    async fn requests_and_the_log_are_searched() {
        search_the_log();
        let server =
            service_fn(|_: Request<Body>| async { Ok::<_, BoxError>(http::Response::new(Body::empty())) });
        let client = searched(Client::new(server, "default"));
        let send = async |method: Method, path: &str, body: &str| {
            let request =
                Request::builder().method(method).uri(path).body(Body::from(body.as_bytes().to_vec()));
            client.send(request.unwrap()).await.unwrap();
            std::mem::take(&mut *seen())
        };
        let status = "/apis/g/v1/namespaces/n/foos/a/status";
        assert!(send(Method::PATCH, status, "{}").await.is_empty());
        assert!(send(Method::POST, "/api/v1/namespaces/n/secrets", CANARY).await.is_empty());
        assert_eq!(send(Method::PATCH, status, &format!(r#"{{"message": "{CANARY}"}}"#)).await.len(), 1);
        assert_eq!(send(Method::GET, &format!("/api/v1/namespaces/n/secrets/{CANARY}"), "").await.len(), 1);
        tracing::info!(found = CANARY, "something is logged");
        let logged = std::mem::take(&mut *seen());
        assert!(logged.len() == 1 && logged[0].contains("something is logged"), "{logged:?}");
    }
}
