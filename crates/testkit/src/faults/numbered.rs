//! One fault at one request: every request has a number among its like, so that the same one can be met again.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use http::{Method, Request, Response, StatusCode, Uri};
use kube::{Client, client::Body};
use serde_json::json;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use super::stream::{self, Answer};

/// How late events come when they come late.
pub(super) const LATE: Duration = Duration::from_millis(300);

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// One object.
    Get,
    /// The objects of a kind.
    List,
    /// News of the objects of a kind.
    Watch,
    /// A new object.
    Create,
    /// A change.
    Patch,
    /// A whole new state.
    Update,
    /// An object's end.
    Delete,
    /// What would come of a write.
    DryRun,
}

impl Verb {
    fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch | Self::DryRun)
    }
}

/// A request by what it is and by its number among its like: watches run side by side, so that a number among all
/// requests would name another one in each run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId {
    /// What it asks for.
    pub verb: Verb,
    /// Of what: `clusters.cluster.x-k8s.io/c/status`, without the namespace.
    pub path: String,
    /// The first such request is number 1.
    pub number: usize,
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} #{}", self.verb, self.path, self.number)
    }
}

impl RequestId {
    /// Whether this is a write of an object other than an event.
    pub fn is_write(&self) -> bool {
        self.verb.is_write() && self.path != "events"
    }

    /// The faults that make sense for this request. A watch may break in place of the first, the middle and the last
    /// of the `events` that it brought in an undisturbed run; one that brought none breaks in a quiet moment.
    pub fn faults(&self, events: usize) -> Vec<Fault> {
        let mut faults = vec![
            Fault::CrashBefore,
            Fault::CrashAfter,
            Fault::TooManyRequests { retry_after: false },
            Fault::TooManyRequests { retry_after: true },
            Fault::InternalError,
            Fault::LostRequest,
            Fault::LostReply,
        ];
        if self.verb.is_write() {
            faults.push(Fault::Conflict);
        }
        if self.verb == Verb::Watch {
            faults.push(Fault::Gone);
            let places = BTreeSet::from([events.min(1), events.div_ceil(2), events]);
            faults.extend(places.iter().copied().map(Fault::GoneInPlaceOf));
            faults.extend(places.into_iter().map(Fault::CutInPlaceOf));
            if events > 0 {
                faults.extend([Fault::EventsLate, Fault::EventsDoubled]);
            }
        }
        faults
    }
}

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process ends before the request leaves.
    CrashBefore,
    /// The process ends after the server has answered and before the answer is read.
    CrashAfter,
    /// The server answers 409.
    Conflict,
    /// The server answers 429.
    TooManyRequests {
        /// It says when to come again.
        retry_after: bool,
    },
    /// The server answers 500.
    InternalError,
    /// The connection breaks before the server has seen the request.
    LostRequest,
    /// The connection breaks after the server has done what it was asked.
    LostReply,
    /// The server answers 410 to this watch and to all that begin at the same version, until there is a new list.
    Gone,
    /// The watch ends with an error event of code 410 in place of this event; 0 is a quiet moment.
    GoneInPlaceOf(usize),
    /// The watch ends in the middle of this event; 0 is a quiet moment.
    CutInPlaceOf(usize),
    /// Every event of this watch comes late.
    EventsLate,
    /// Every event of this watch comes twice.
    EventsDoubled,
}

impl Fault {
    fn is_crash(self) -> bool {
        matches!(self, Self::CrashBefore | Self::CrashAfter)
    }
}

/// A fault and the request that it strikes.
#[derive(Clone, Debug)]
pub struct Injection {
    /// The request.
    pub request: RequestId,
    /// The fault.
    pub fault: Fault,
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}", self.fault, self.request)
    }
}

/// The way of a manager's requests to the server: it keeps a book of them, and carries out one fault.
#[derive(Clone)]
pub struct Transport {
    server: Client,
    injection: Option<Injection>,
    book: Arc<Mutex<Book>>,
    fired: Arc<watch::Sender<Option<Instant>>>,
    crashed: CancellationToken,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("injection", &self.injection).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Book {
    counts: HashMap<(Verb, String), usize>,
    requests: Vec<RequestId>,
    events: HashMap<RequestId, usize>,
    /// Kinds whose watches get 410 Gone and list again.
    gone: HashSet<String>,
    last_request: Option<Instant>,
}

impl Transport {
    /// Carries requests to where `server` sends them.
    pub fn new(server: Client, injection: Option<Injection>) -> Self {
        Self {
            server,
            injection,
            book: Arc::default(),
            fired: Arc::new(watch::Sender::new(None)),
            crashed: CancellationToken::new(),
        }
    }

    /// A client that suffers the fault. Once a crash has struck, nothing that it asks for leaves the process.
    pub fn client(&self) -> Client {
        let transport = self.clone();
        let namespace = self.server.default_namespace().to_owned();
        let service = tower::service_fn(move |request: Request<Body>| {
            let transport = transport.clone();
            // Numbered here, in the order in which requests are sent, not when they are first looked after.
            let sent = (!transport.crashed.is_cancelled()).then(|| transport.enter(&request));
            async move {
                match sent {
                    Some(id) => transport.carry(id, request).await,
                    None => std::future::pending().await,
                }
            }
            .boxed()
        });
        Client::new(service, namespace)
    }

    /// A client for the process that comes after a crash: its requests are in the book, and nothing strikes it.
    pub fn client_after_crash(&self) -> Client {
        Self { injection: None, crashed: CancellationToken::new(), ..self.clone() }.client()
    }

    /// Waits for the crash.
    pub async fn crash(&self) {
        self.crashed.cancelled().await;
    }

    /// When the fault struck.
    pub fn fired_at(&self) -> Option<Instant> {
        *self.fired.borrow()
    }

    /// Waits for the fault to strike; says whether it did within the limit.
    pub async fn fired_within(&self, limit: Duration) -> bool {
        let mut fired = self.fired.subscribe();
        tokio::time::timeout(limit, fired.wait_for(Option::is_some)).await.is_ok()
    }

    /// All requests so far, in order.
    pub fn requests(&self) -> Vec<RequestId> {
        self.book().requests.clone()
    }

    /// How many events a watch has brought so far.
    pub fn events(&self, watch: &RequestId) -> usize {
        self.book().events.get(watch).copied().unwrap_or_default()
    }

    /// Waits until there has been no request for a while.
    pub async fn quiet_for(&self, span: Duration) {
        loop {
            let since = self.book().last_request.map_or(Duration::ZERO, |last| last.elapsed());
            match span.checked_sub(since) {
                Some(rest) if !rest.is_zero() => tokio::time::sleep(rest).await,
                _ => return,
            }
        }
    }

    /// Waits for the next request.
    pub async fn next_request(&self) {
        let before = self.book().last_request;
        while self.book().last_request == before {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, request: &Request<Body>) -> RequestId {
        let (verb, path) = name(request.method(), request.uri());
        let mut book = self.book();
        let number = book.counts.entry((verb, path.clone())).or_default();
        *number += 1;
        let id = RequestId { verb, path, number: *number };
        book.requests.push(id.clone());
        book.last_request = Some(Instant::now());
        if verb == Verb::List {
            book.gone.remove(&id.path);
        }
        id
    }

    pub(super) fn count_event(&self, watch: &RequestId) -> usize {
        let mut book = self.book();
        let count = book.events.entry(watch.clone()).or_default();
        *count += 1;
        *count
    }

    pub(super) fn fire(&self, fault: Fault) {
        self.fired.send_if_modified(|fired| {
            let first = fired.is_none();
            fired.get_or_insert_with(Instant::now);
            first
        });
        if fault.is_crash() {
            self.crashed.cancel();
        }
    }

    async fn carry(self, id: RequestId, request: Request<Body>) -> Result<Response<Answer>, BoxError> {
        let strikes = self.injection.as_ref().filter(|injection| injection.request == id);
        let fault = strikes.map(|injection| injection.fault);
        if id.verb == Verb::Watch && self.book().gone.contains(&id.path) {
            return made(StatusCode::GONE, "Expired", None);
        }
        let send = self.server.send(request);
        let Some(fault) = fault else {
            let answer = send.await?;
            return Ok(answer.map(|body| self.pass(&id, body, None)));
        };
        match fault {
            Fault::CrashBefore => {
                self.fire(fault);
                std::future::pending().await
            }
            Fault::CrashAfter => {
                let answer = send.await?;
                if id.verb != Verb::Watch {
                    answer.into_body().collect_bytes().await?;
                }
                self.fire(fault);
                std::future::pending().await
            }
            Fault::Conflict => {
                self.fire(fault);
                made(StatusCode::CONFLICT, "Conflict", None)
            }
            Fault::TooManyRequests { retry_after } => {
                self.fire(fault);
                made(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", retry_after.then_some(1))
            }
            Fault::InternalError => {
                self.fire(fault);
                made(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", None)
            }
            Fault::Gone => {
                self.fire(fault);
                self.book().gone.insert(id.path);
                made(StatusCode::GONE, "Expired", None)
            }
            Fault::LostRequest => {
                self.fire(fault);
                Err(broken("the connection broke before the request was sent"))
            }
            Fault::LostReply => {
                let answer = send.await?;
                if id.verb != Verb::Watch {
                    answer.into_body().collect_bytes().await?;
                }
                self.fire(fault);
                Err(broken("the connection broke before the answer came"))
            }
            Fault::GoneInPlaceOf(_) | Fault::CutInPlaceOf(_) | Fault::EventsLate | Fault::EventsDoubled => {
                let answer = send.await?;
                Ok(answer.map(|body| self.pass(&id, body, Some(fault))))
            }
        }
    }

    /// The server's answer, with what happens to its events if it is a watch.
    fn pass(&self, id: &RequestId, body: Body, fault: Option<Fault>) -> Answer {
        if id.verb == Verb::Watch {
            Answer::Streamed(stream::disturb(self.clone(), id.clone(), body, fault))
        } else {
            Answer::Whole(body)
        }
    }
}

pub(super) fn status(code: StatusCode, reason: &str, retry_after: Option<u32>) -> serde_json::Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": reason, "code": code.as_u16(), "message": format!("injected: {reason}"),
        "details": {"retryAfterSeconds": retry_after},
    })
}

fn made(code: StatusCode, reason: &str, retry_after: Option<u32>) -> Result<Response<Answer>, BoxError> {
    let mut answer = Response::builder().status(code).header("content-type", "application/json");
    if let Some(seconds) = retry_after {
        answer = answer.header("retry-after", seconds);
    }
    let body = serde_json::to_vec(&status(code, reason, retry_after))?;
    Ok(answer.body(Answer::Whole(Body::from(body)))?)
}

fn broken(words: &str) -> BoxError {
    std::io::Error::new(std::io::ErrorKind::ConnectionReset, words).into()
}

/// What a request asks for, and of what. Paths are `/apis/GROUP/VERSION[/namespaces/NAMESPACE]/PLURAL[/NAME[/PART]]`.
fn name(method: &Method, uri: &Uri) -> (Verb, String) {
    let mut parts = uri.path().split('/').filter(|part| !part.is_empty());
    let group = match parts.next() {
        Some("apis") => parts.next().map(|group| format!(".{group}")).unwrap_or_default(),
        _ => String::new(),
    };
    let mut parts: Vec<_> = parts.skip(1).collect();
    if parts.len() > 2 && parts[0] == "namespaces" {
        parts.drain(..2);
    }
    let (plural, rest) = parts.split_first().map_or(("", &[][..]), |(plural, rest)| (*plural, rest));
    let path = [&[format!("{plural}{group}")][..], &rest.iter().map(ToString::to_string).collect::<Vec<_>>()]
        .concat()
        .join("/");
    let has = |parameter: &str| uri.query().is_some_and(|query| query.contains(parameter));
    let is_watch = has("watch=");
    let verb = match *method {
        _ if has("dryRun=All") => Verb::DryRun,
        Method::POST => Verb::Create,
        Method::PATCH => Verb::Patch,
        Method::PUT => Verb::Update,
        Method::DELETE => Verb::Delete,
        _ if is_watch => Verb::Watch,
        _ if rest.is_empty() => Verb::List,
        _ => Verb::Get,
    };
    (verb, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_named_by_what_they_are_about() {
        for (method, uri, verb, path) in [
            (Method::GET, "/apis/g.io/v1/namespaces/n/foos?limit=250", Verb::List, "foos.g.io"),
            (Method::GET, "/apis/g.io/v1/foos?watch=true&x=1", Verb::Watch, "foos.g.io"),
            (Method::GET, "/apis/g.io/v1/namespaces/n/foos/a", Verb::Get, "foos.g.io/a"),
            (Method::PATCH, "/apis/g.io/v1/namespaces/n/foos/a/status?", Verb::Patch, "foos.g.io/a/status"),
            (Method::PATCH, "/apis/g.io/v1/namespaces/n/foos/a?dryRun=All", Verb::DryRun, "foos.g.io/a"),
            (Method::POST, "/api/v1/namespaces/n/events", Verb::Create, "events"),
            (Method::GET, "/api/v1/namespaces/n", Verb::Get, "namespaces/n"),
            (Method::DELETE, "/apis/g.io/v1/namespaces/n/foos/a", Verb::Delete, "foos.g.io/a"),
        ] {
            assert_eq!(name(&method, &uri.parse().unwrap()), (verb, path.to_owned()), "{uri}");
        }
    }

    #[test]
    fn only_faults_that_make_sense_are_counted() {
        let id = |verb| RequestId { verb, path: "foos.g.io".into(), number: 1 };
        assert_eq!(id(Verb::Get).faults(0).len(), 7);
        assert!(!id(Verb::List).faults(0).contains(&Fault::Conflict));
        assert_eq!(id(Verb::Patch).faults(0).len(), 8);
        assert_eq!(id(Verb::Watch).faults(0).len(), 10);
        assert_eq!(id(Verb::Watch).faults(3).len(), 16);
    }
}
