//! One watch: a kind's objects flow into a cache, and each change is passed to a listener.

use std::{
    collections::HashSet,
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::StreamExt;
use http::Request;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Bytes;
use kube::{
    Api, Client,
    client::Body,
    core::{ApiResource, DynamicResourceScope, Resource},
    runtime::watcher::{self, Event, watcher},
};
use serde::de::DeserializeOwned;
use tokio::{
    sync::Notify,
    time::{Instant, Sleep},
};
use tracing::debug;

use crate::{
    ObjectKey,
    cache::{Arrival, Cache, Cached},
    client::is_watch,
    controller::with_causes,
    observed::{Observed, ObservedMetadata, ObservedSecret},
    outages::{GRACE, Outages, Record},
};

/// Objects a page while listing: small pages keep the peak of memory low.
const PAGE: u32 = 250;
/// Secrets a page: each may have a megabyte, and tenants may create many of them.
const PAGE_OF_SECRETS: u32 = 50;
/// The wait after the first failure; it doubles with each further one.
const FIRST_RETRY: Duration = Duration::from_millis(100);
/// The longest wait before a broken watch is tried again.
const LONGEST_RETRY: Duration = Duration::from_secs(5);
/// A first list that has failed this often is reported.
const FAILURES_TO_REPORT: u32 = 3;
/// A list or watch request that has no answer for so long is reported.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

/// What is watched.
#[derive(Clone, Debug)]
pub struct WatchTarget {
    /// The kind.
    pub resource: ApiResource,
    /// Only this namespace, or all.
    pub namespace: Option<String>,
    /// Only objects with these labels, or all.
    pub label_selector: Option<String>,
    /// Only objects with these fields, or all.
    pub field_selector: Option<String>,
}

/// A change to one object. `before` and `now` are never both absent.
#[derive(Debug)]
pub struct Change<'a, T> {
    /// The object.
    pub key: &'a ObjectKey,
    /// The object as cached before; `None` if it is new.
    pub before: Option<&'a Arc<T>>,
    /// The object as cached now; `None` if it was deleted.
    pub now: Option<&'a Arc<T>>,
}

/// The state of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchState {
    /// The first list is not complete.
    Syncing,
    /// The cache matches the server.
    Synced,
    /// The server does not serve the kind (or does not any more).
    Absent,
    /// The server refuses or fails, with the reason.
    Failing(String),
}

/// The state of one watch, shared between the watch and those who wait for it.
#[derive(Debug)]
pub struct WatchHandle {
    state: std::sync::Mutex<WatchState>,
    was_synced: AtomicBool,
    /// Cuts the wait after a failure short.
    retry_now: Notify,
    record: Record,
}

impl WatchHandle {
    /// The state of a watch that has not begun; its outages are reported with others.
    pub fn new(outages: &Outages) -> Self {
        Self {
            state: std::sync::Mutex::new(WatchState::Syncing),
            was_synced: AtomicBool::new(false),
            retry_now: Notify::new(),
            record: outages.record(),
        }
    }

    /// The current state.
    pub fn state(&self) -> WatchState {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Whether the watch was ever synced.
    pub fn was_synced(&self) -> bool {
        self.was_synced.load(Ordering::Acquire)
    }

    /// Asks a watch that waits after a failure to try at once.
    pub fn retry_now(&self) {
        self.retry_now.notify_one();
    }

    /// Sets the state; says whether it differs from the one before.
    fn set(&self, state: WatchState) -> bool {
        if state == WatchState::Synced {
            self.was_synced.store(true, Ordering::Release);
        }
        let mut current = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // An error's words may differ from try to try; the first ones are good enough.
        if matches!((&*current, &state), (WatchState::Failing(_), WatchState::Failing(_))) {
            return false;
        }
        let changed = *current != state;
        *current = state;
        changed
    }
}

/// Listens to one watch.
pub trait Listener<T>: Send + Sync + 'static {
    /// An object was created, changed or deleted.
    fn changed(&self, change: Change<'_, T>);
    /// The watch became synced, absent or failing.
    fn state_changed(&self, _state: &WatchState) {}
}

impl<T, F: Fn(Change<'_, T>) + Send + Sync + 'static> Listener<T> for F {
    fn changed(&self, change: Change<'_, T>) {
        self(change);
    }
}

/// Watches whole objects, for ever. `project` keeps of an object what its reader needs.
pub async fn watch<T: Cached>(
    client: Client,
    target: WatchTarget,
    project: impl Fn(Observed) -> T + Send + Sync,
    cache: Cache<T>,
    listener: impl Listener<T>,
    handle: Arc<WatchHandle>,
) {
    let project = |object: Observed| Some(project(object));
    watch_as::<Observed, T>(client, target, PAGE, project, cache, listener, handle).await;
}

/// Watches the metadata of objects, for ever.
pub async fn watch_metadata<T: Cached>(
    client: Client,
    target: WatchTarget,
    project: impl Fn(Observed) -> T + Send + Sync,
    cache: Cache<T>,
    listener: impl Listener<T>,
    handle: Arc<WatchHandle>,
) {
    let project = |ObservedMetadata(object): ObservedMetadata| Some(project(object));
    watch_as::<ObservedMetadata, T>(client, target, PAGE, project, cache, listener, handle).await;
}

/// Watches Secrets with their contents, for ever. Those that `project` has no use for are not kept at all.
pub async fn watch_secrets<T: Cached>(
    client: Client,
    target: WatchTarget,
    project: impl Fn(ObservedSecret) -> Option<T> + Send + Sync,
    cache: Cache<T>,
    listener: impl Listener<T>,
    handle: Arc<WatchHandle>,
) {
    watch_as::<ObservedSecret, T>(client, target, PAGE_OF_SECRETS, project, cache, listener, handle).await;
}

async fn watch_as<K, T>(
    client: Client,
    target: WatchTarget,
    page: u32,
    project: impl Fn(K) -> Option<T> + Send + Sync,
    cache: Cache<T>,
    listener: impl Listener<T>,
    handle: Arc<WatchHandle>,
) where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>
        + Clone
        + DeserializeOwned
        + fmt::Debug
        + Send
        + 'static,
    T: Cached,
{
    let resource = describe(&target.resource);
    let client = observed(client, Arc::clone(&handle), resource.clone());
    let api: Api<K> = match &target.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &target.resource),
        None => Api::all_with(client, &target.resource),
    };
    let mut config = watcher::Config::default().page_size(page);
    config.label_selector.clone_from(&target.label_selector);
    config.field_selector.clone_from(&target.field_selector);
    let mut events = Box::pin(watcher(api.clone(), config.clone()));
    let mut listed = HashSet::new();
    let mut failures = 0_u32;
    let enter = |state: WatchState| {
        let changed = handle.set(state.clone());
        if changed {
            listener.state_changed(&state);
        }
        changed
    };
    let report = |key: &ObjectKey, arrival: Arrival<T>| {
        if let Arrival::News { before, now } = arrival {
            listener.changed(Change { key, before: before.as_ref(), now: Some(&now) });
        }
    };
    let forget_all_but = |keys: &HashSet<ObjectKey>| {
        for (key, gone) in cache.keep_only(keys) {
            listener.changed(Change { key: &key, before: Some(&gone), now: None });
        }
    };
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => {
                let key = ObjectKey::of(&object);
                // What is of no use is as good as gone, and forgotten once the list is complete.
                if let Some(object) = project(object) {
                    let arrival = cache.arrive_listed(&key, object);
                    report(&key, arrival);
                    listed.insert(key);
                }
            }
            Ok(Event::InitDone) => {
                forget_all_but(&std::mem::take(&mut listed));
                failures = 0;
                enter(WatchState::Synced);
            }
            Ok(Event::Apply(object)) => {
                failures = 0;
                handle.record.works(&resource);
                let key = ObjectKey::of(&object);
                // Most of what comes is the echo of our own writes: it need not be reduced to be known.
                if cache.knows(&key, object.meta()) {
                    continue;
                }
                if let Some(object) = project(object) {
                    let arrival = cache.arrive(&key, object);
                    report(&key, arrival);
                } else if let Some(useless) = cache.depart(&key) {
                    listener.changed(Change { key: &key, before: Some(&useless), now: None });
                }
            }
            Ok(Event::Delete(object)) => {
                failures = 0;
                handle.record.works(&resource);
                let key = ObjectKey::of(&object);
                // A successor of the same name may be known already.
                let same = cache.get(&key).is_some_and(|known| known.metadata().uid == object.meta().uid);
                if same && let Some(gone) = cache.depart(&key) {
                    listener.changed(Change { key: &key, before: Some(&gone), now: None });
                }
            }
            Err(error) => {
                failures += 1;
                let trouble = classify(&error);
                match &trouble {
                    Trouble::Absent => {
                        forget_all_but(&HashSet::new());
                        enter(WatchState::Absent);
                        handle.record.absent(&resource);
                    }
                    Trouble::Refused(reason) => {
                        enter(WatchState::Failing(reason.clone()));
                        handle.record.failed(&resource, reason, true);
                    }
                    Trouble::Expired => {
                        debug!(%resource, "the server has forgotten the watch's resourceVersion, listing again");
                        handle.record.failed(&resource, &with_causes(&error), false);
                    }
                    Trouble::Passing => {
                        debug!(%resource, %error, "watch broken, retrying");
                        handle.record.failed(&resource, &with_causes(&error), false);
                        // A caller that waits for the first list should know what holds it up.
                        if !handle.was_synced() && failures >= FAILURES_TO_REPORT {
                            enter(WatchState::Failing(with_causes(&error)));
                        }
                    }
                }
                tokio::select! {
                    () = tokio::time::sleep(retry_after(failures)) => {}
                    () = handle.retry_now.notified() => failures = 0,
                }
                // A watch that was turned away would resume where it was, and never say that all is well again; one
                // whose version the server has forgotten would be turned away for ever.
                if !matches!(trouble, Trouble::Passing) {
                    events = Box::pin(watcher(api.clone(), config.clone()));
                }
            }
        }
    }
}

/// A client that reports how the server answers watch requests. The stream of events alone does not show that a watch
/// works again before the next object changes, nor that a request is not answered, nor that a watch ends at once.
fn observed(client: Client, handle: Arc<WatchHandle>, resource: String) -> Client {
    let namespace = client.default_namespace().to_owned();
    let resource: Arc<str> = resource.into();
    let closed_empty = Arc::new(AtomicU32::new(0));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, handle, resource) = (client.clone(), Arc::clone(&handle), Arc::clone(&resource));
        let closed_empty = Arc::clone(&closed_empty);
        let starts_watch = is_watch(request.uri());
        async move {
            // kube opens a watch that has ended again without a pause.
            if starts_watch && let count @ 1.. = closed_empty.load(Ordering::Relaxed) {
                tokio::select! {
                    () = tokio::time::sleep(retry_after(count)) => {}
                    () = handle.retry_now.notified() => {}
                }
            }
            let mut response = Box::pin(client.send(request));
            let response = if let Ok(response) = tokio::time::timeout(ANSWER_LIMIT, &mut response).await {
                response
            } else {
                let reason = format!("the server has not answered for {ANSWER_LIMIT:?}");
                handle.record.failed(&resource, &reason, true);
                response.await
            };
            response.map(|response| {
                let is_stream = starts_watch && response.status().is_success();
                let state = is_stream.then(|| OpenWatch::new(handle, resource, closed_empty));
                response.map(|body| WatchBody { body, state })
            })
        }
    });
    Client::new(service, namespace)
}

/// A body that reports how the watch fares whose events it brings.
struct WatchBody {
    body: Body,
    /// Nothing if it is not a watch's.
    state: Option<OpenWatch>,
}

/// A watch that the server has agreed to, which is not to say that it works.
struct OpenWatch {
    handle: Arc<WatchHandle>,
    resource: Arc<str>,
    opened: Instant,
    /// The number of the last failure, and when the watch has been without one for long enough.
    settling: Option<(u64, Pin<Box<Sleep>>)>,
    /// How many watches in a row were closed early without having sent anything.
    closed_empty: Arc<AtomicU32>,
    is_empty: bool,
}

impl OpenWatch {
    fn new(handle: Arc<WatchHandle>, resource: Arc<str>, closed_empty: Arc<AtomicU32>) -> Self {
        Self { handle, resource, opened: Instant::now(), settling: None, closed_empty, is_empty: true }
    }

    fn closed(&self) {
        if self.opened.elapsed() >= GRACE {
            self.closed_empty.store(0, Ordering::Relaxed);
        } else if self.is_empty {
            self.closed_empty.fetch_add(1, Ordering::Relaxed);
            self.handle.record.failed(&self.resource, "the server ends the watch at once", false);
        }
    }

    fn received(&mut self) {
        self.is_empty = false;
        self.closed_empty.store(0, Ordering::Relaxed);
    }

    /// Takes in that nothing has come; after a while without an error the watch works.
    fn settle(&mut self, cx: &mut Context<'_>) {
        let Some(failure) = self.handle.record.last_failure() else {
            self.settling = None;
            return;
        };
        if self.settling.as_ref().is_none_or(|(known, _)| *known != failure) {
            self.settling = Some((failure, Box::pin(tokio::time::sleep(GRACE))));
        }
        if let Some((_, sleep)) = &mut self.settling
            && sleep.as_mut().poll(cx).is_ready()
        {
            self.settling = None;
            self.handle.record.works(&self.resource);
        }
    }
}

impl HttpBody for WatchBody {
    type Data = Bytes;
    type Error = kube::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, kube::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Some(state) = &mut self.state {
            match &polled {
                Poll::Pending => state.settle(cx),
                Poll::Ready(Some(Ok(_))) => state.received(),
                Poll::Ready(Some(Err(_)) | None) => state.closed(),
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The name of a kind's CRD, or of a built-in resource.
pub(crate) fn describe(resource: &ApiResource) -> String {
    if resource.group.is_empty() {
        resource.plural.clone()
    } else {
        format!("{}.{}", resource.plural, resource.group)
    }
}

enum Trouble {
    Absent,
    Refused(String),
    /// The server does not remember the version that the watch is to begin at.
    Expired,
    Passing,
}

fn classify(error: &watcher::Error) -> Trouble {
    let (watcher::Error::InitialListFailed(cause)
    | watcher::Error::WatchStartFailed(cause)
    | watcher::Error::WatchFailed(cause)) = error
    else {
        return Trouble::Passing;
    };
    match cause {
        // A version that is not served is answered in plain text: only the code says what it is.
        kube::Error::Api(status) if status.code == 404 => Trouble::Absent,
        kube::Error::Api(status) if status.code == 410 => Trouble::Expired,
        kube::Error::Api(status) if status.code == 401 || status.code == 403 => {
            Trouble::Refused(status.message.clone())
        }
        _ => Trouble::Passing,
    }
}

fn retry_after(failures: u32) -> Duration {
    FIRST_RETRY.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST_RETRY)
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, sync::Mutex};

    use http::Response;
    use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
    use kube::core::GroupVersionKind;
    use tower::BoxError;

    use super::*;
    use crate::metrics::Metrics;

    type Answer = (u16, &'static str);

    /// Answers list and watch requests by a script, and keeps the last watch open for ever.
    fn scripted(answers: &[Answer]) -> Client {
        let answers = Arc::new(Mutex::new(VecDeque::from(answers.to_vec())));
        let service = tower::service_fn(move |_request: Request<Body>| {
            let next = answers.lock().unwrap().pop_front();
            async move {
                match next {
                    Some((code, text)) => Response::builder().status(code).body(body(text)),
                    None => std::future::pending().await,
                }
            }
        });
        Client::new(service, "default")
    }

    /// A body that is sent line by line; `pause 3` takes as many seconds, and `open` for ever.
    fn body(text: &'static str) -> UnsyncBoxBody<Bytes, BoxError> {
        let lines = futures::stream::iter(text.split_inclusive('\n'));
        let frames = lines.then(|line| async move {
            let word = line.trim_end();
            if word == OPEN {
                std::future::pending::<()>().await;
            } else if let Some(seconds) = word.strip_prefix("pause ") {
                tokio::time::sleep(Duration::from_secs(seconds.parse()?)).await;
                return Ok(Frame::data(Bytes::new()));
            }
            Ok(Frame::data(Bytes::from_static(line.as_bytes())))
        });
        StreamBody::new(frames).boxed_unsync()
    }

    /// A line of a body that never ends.
    const OPEN: &str = "open";
    const ONE: &str = r#"{"kind":"FooList","apiVersion":"g/v1","metadata":{"resourceVersion":"5"},
        "items":[{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"4"}}]}"#;
    const NONE: &str =
        r#"{"kind":"FooList","apiVersion":"g/v1","metadata":{"resourceVersion":"9"},"items":[]}"#;
    const FORBIDDEN: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
        "message":"foos is forbidden","reason":"Forbidden","code":403}"#;

    /// Every state that a watch goes through, until it has nothing more to say.
    async fn states(answers: &[Answer]) -> (Vec<WatchState>, Cache<Observed>) {
        run(answers, &Outages::default()).await.0
    }

    /// The same; the handle keeps the outage that there is in the end.
    async fn run(
        answers: &[Answer],
        outages: &Outages,
    ) -> ((Vec<WatchState>, Cache<Observed>), Arc<WatchHandle>) {
        struct Listening(Arc<Mutex<Vec<WatchState>>>);
        impl Listener<Observed> for Listening {
            fn changed(&self, _change: Change<'_, Observed>) {}
            fn state_changed(&self, state: &WatchState) {
                self.0.lock().unwrap().push(state.clone());
            }
        }
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (cache, handle) = (Cache::default(), Arc::new(WatchHandle::new(outages)));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("g", "v1", "Foo"));
        let target = WatchTarget { resource, namespace: None, label_selector: None, field_selector: None };
        let run = watch(
            scripted(answers),
            target,
            |object| object,
            cache.clone(),
            Listening(Arc::clone(&seen)),
            Arc::clone(&handle),
        );
        // Paused time jumps ahead whenever nothing can happen but timers.
        let _ = tokio::time::timeout(Duration::from_mins(1), run).await;
        let seen = seen.lock().unwrap().clone();
        ((seen, cache), handle)
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_was_refused_once_recovers_by_a_fresh_list() {
        let script = &[(200, ONE), (403, FORBIDDEN), (200, NONE)];
        let (states, cache) = states(script).await;
        let failing = WatchState::Failing("foos is forbidden".into());
        assert_eq!(states, [WatchState::Synced, failing, WatchState::Synced]);
        assert!(cache.is_empty(), "what went meanwhile is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_begins_too_early_lists_anew() {
        const GONE: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
            "message":"too old resource version","reason":"Expired","code":410}"#;
        let (states, cache) = states(&[(200, ONE), (410, GONE), (200, NONE)]).await;
        assert_eq!(states, [WatchState::Synced], "the cache stays good enough meanwhile");
        assert!(cache.is_empty(), "what went meanwhile is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_is_not_served_is_absent_until_it_is() {
        let script = &[(404, "404 page not found"), (404, "404 page not found"), (200, ONE)];
        let (states, cache) = states(script).await;
        assert_eq!(states, [WatchState::Absent, WatchState::Synced]);
        assert_eq!(cache.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_list_that_keeps_failing_is_told_once() {
        let script = &[(500, "oh"), (500, "dear"), (500, "no"), (500, "again"), (200, ONE)];
        let (states, _) = states(script).await;
        assert_eq!(states.len(), 2, "{states:?}");
        assert!(matches!(states[0], WatchState::Failing(_)));
        assert_eq!(states[1], WatchState::Synced);
    }

    const AWAY: &str = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"etcd is away","code":500}}"#;
    const MODIFIED: &str = r#"{"type":"MODIFIED","object":{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"6"}}}"#;

    /// The lines of a watch's body.
    fn lines(lines: &[&str]) -> &'static str {
        (lines.join("\n") + "\n").leak()
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_reported_until_the_watch_works_again() {
        const OH: Answer = (500, "oh");
        const LIST: Answer = (200, ONE);
        const QUIET: Answer = (200, OPEN);
        const ENDED: Answer = (200, "");
        const ABSENT: Answer = (404, "404 page not found");
        const REFUSED: Answer = (403, FORBIDDEN);
        let error = (200, lines(&[AWAY]));
        let rare_errors = (200, lines(&[AWAY, "pause 20", AWAY, "pause 20", AWAY, OPEN]));
        let errors_and_events =
            (200, lines(&[AWAY, "pause 3", MODIFIED, "pause 1", AWAY, "pause 2", AWAY, OPEN]));
        let errors = (200, lines(&[AWAY, "pause 3"].repeat(30)));
        // Retries are 0.1 s apart, then twice as long each time, up to 5 s. A script is played for a minute.
        for (name, answers, reported, lasting) in [
            ("short", vec![LIST, OH, OH, OH, QUIET], false, None),
            ("long", [&[LIST][..], &[OH; 8], &[QUIET]].concat(), true, None),
            ("endless", vec![OH; 100], true, Some("oh")),
            ("refused", vec![REFUSED, LIST, REFUSED, LIST, QUIET], true, None),
            (
                "refused before the CRD is deleted",
                [&[LIST, REFUSED][..], &[ABSENT; 100]].concat(),
                true,
                None,
            ),
            ("not answered", vec![], true, Some("not answered for 15s")),
            ("watch not answered", vec![LIST], true, Some("not answered for 15s")),
            ("opened and ended now and then", vec![LIST, ENDED, ENDED, QUIET], false, None),
            ("opened and ended for long", [&[LIST][..], &[ENDED; 8], &[QUIET]].concat(), true, None),
            ("opened and ended", [&[LIST][..], &[ENDED; 100]].concat(), true, Some("ends the watch at once")),
            ("opened and broken", [&[LIST][..], &[error; 100]].concat(), true, Some("etcd is away")),
            ("open with errors", vec![LIST, errors], true, Some("etcd is away")),
            ("open with rare errors", vec![LIST, rare_errors], false, None),
            ("open with errors between events", vec![LIST, errors_and_events], false, None),
        ] {
            let metrics = Metrics::default();
            let outages = Outages::new(metrics.clone());
            let (_, handle) = run(&answers, &outages).await;
            let text = metrics.expose();
            let counted = text.contains("capstan_watch_outages_total{resource=\"foos.g\"} 1\n");
            assert_eq!(counted, reported, "{name}: {text}");
            let list = outages.list();
            assert_eq!(list.len(), usize::from(lasting.is_some()), "{name}: {list:?}");
            for (found, reason) in list.iter().zip(lasting) {
                assert!(found.starts_with("foos.g, for ") && found.contains(reason), "{name}: {found}");
            }
            drop(handle);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn secrets_of_no_use_are_not_kept() {
        struct Kept(ObservedSecret);
        impl Cached for Kept {
            fn metadata(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.0.metadata
            }
        }
        const LIST: &str = r#"{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[
            {"metadata":{"name":"good","namespace":"n","uid":"u","resourceVersion":"4"},"data":{"k":"eA=="}},
            {"metadata":{"name":"bad","namespace":"n","uid":"v","resourceVersion":"4"},"data":{"k":"eQ=="}}]}"#;
        const CHANGE: &str = concat!(
            r#"{"type":"MODIFIED","object":{"metadata":{"name":"good","namespace":"n","uid":"u","#,
            r#""resourceVersion":"6"},"data":{"k":"eQ=="}}}"#,
            "\n"
        );
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Secret"));
        let target = WatchTarget { resource, namespace: None, label_selector: None, field_selector: None };
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (cache, told) = (Cache::default(), Arc::clone(&seen));
        let project = |secret: ObservedSecret| (secret.data["k"].0 == b"x").then_some(Kept(secret));
        let listener = move |change: Change<'_, Kept>| {
            told.lock().unwrap().push((change.key.name.to_string(), change.now.is_some()));
        };
        let client = scripted(&[(200, LIST), (200, CHANGE)]);
        let handle = Arc::new(WatchHandle::new(&Outages::default()));
        let run = watch_secrets(client, target, project, cache.clone(), listener, handle);
        let _ = tokio::time::timeout(Duration::from_secs(1), run).await;
        assert_eq!(*seen.lock().unwrap(), [("good".to_owned(), true), ("good".to_owned(), false)]);
        assert!(cache.is_empty());
    }
}
