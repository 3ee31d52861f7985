//! A gate before an API server: requests pass it one by one, are written down, and can be stopped at a number. For
//! programs that are tested from outside, where [`crate::faults`] cannot reach.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    response::Response,
};
use http::{HeaderMap, Method, header};
use kube::Client;
use serde_json::json;
use tokio::{net::TcpListener, sync::Notify, task::JoinHandle};

/// More than any request of ours.
const BODY_LIMIT: usize = 64 << 20;

/// The gate. It closes when it is dropped.
#[derive(Debug)]
pub struct Gate {
    url: String,
    log: Arc<Log>,
    server: JoinHandle<()>,
}

/// A request that came by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// What was to be done.
    pub method: Method,
    /// To what, with its parameters.
    pub target: String,
}

impl Passed {
    /// Whether it was meant to change something.
    pub fn is_write(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD) && !self.target.contains("dryRun=")
    }
}

#[derive(Debug, Default)]
struct Log {
    state: Mutex<Journal>,
    stopped: Notify,
}

#[derive(Debug, Default)]
struct Journal {
    passed: Vec<Passed>,
    last: Option<usize>,
}

impl Gate {
    /// Opens a gate before the server that a client speaks to; who passes it has that client's rights.
    pub async fn open(client: Client) -> Self {
        let log = Arc::new(Log::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = axum::Router::new().fallback(pass).with_state((client, Arc::clone(&log)));
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, log, server }
    }

    /// A kubeconfig that leads to it.
    pub fn kubeconfig(&self) -> String {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "gate", "cluster": {"server": self.url}}],
            "users": [{"name": "gate", "user": {}}],
            "contexts": [{"name": "gate", "context": {"cluster": "gate", "user": "gate"}}],
            "current-context": "gate",
        })
        .to_string()
    }

    /// Restarts the count. The write of that number, from 1, is the last request that is carried out; it is not
    /// answered, and neither is any after it. Reads are not counted: stopping at one leaves what the write before it
    /// left.
    pub fn count_from_now(&self, last: Option<usize>) {
        *self.log.journal() = Journal { passed: Vec::new(), last };
    }

    /// The requests that came by since.
    pub fn passed(&self) -> Vec<Passed> {
        self.log.journal().passed.clone()
    }

    /// Comes back when the last request has been carried out.
    pub async fn stopped(&self) {
        self.log.stopped.notified().await;
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Log {
    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request may pass, and whether it is the last one.
    fn admit(&self, method: &Method, target: &str) -> (bool, bool) {
        let mut journal = self.journal();
        let passed = Passed { method: method.clone(), target: target.to_owned() };
        let is_write = passed.is_write();
        let before = journal.passed.iter().filter(|it| it.is_write()).count();
        journal.passed.push(passed);
        let may_pass = journal.last.is_none_or(|last| before < last);
        (may_pass, is_write && journal.last == Some(before + 1))
    }
}

async fn pass(State((client, log)): State<(Client, Arc<Log>)>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let target = parts.uri.path_and_query().map_or("/", |it| it.as_str());
    let (may_pass, is_last) = log.admit(&parts.method, target);
    if !may_pass {
        std::future::pending::<()>().await;
    }
    let body = to_bytes(body, BODY_LIMIT).await.unwrap();
    let mut forwarded = http::Request::builder().method(parts.method).uri(target);
    copy(&parts.headers, &[header::ACCEPT, header::CONTENT_TYPE, header::USER_AGENT], &mut forwarded);
    let answer = client.send(forwarded.body(kube::client::Body::from(body.to_vec())).unwrap()).await.unwrap();
    if is_last {
        log.stopped.notify_one();
        std::future::pending::<()>().await;
    }
    let (parts, body) = answer.into_parts();
    let mut answer = Response::new(Body::new(body));
    *answer.status_mut() = parts.status;
    for (name, value) in parts.headers.iter().filter(|(name, _)| *name != header::TRANSFER_ENCODING) {
        answer.headers_mut().append(name, value.clone());
    }
    answer
}

fn copy(from: &HeaderMap, names: &[header::HeaderName], to: &mut http::request::Builder) {
    if let Some(headers) = to.headers_mut() {
        for name in names {
            headers.extend(from.get_all(name).iter().map(|value| (name.clone(), value.clone())));
        }
    }
}
