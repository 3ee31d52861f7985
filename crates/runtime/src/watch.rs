//! One watch: a kind's objects flow into a cache, and each change is passed to a listener.

use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::StreamExt;
use http::Request;
use kube::{
    Api, Client,
    client::Body,
    core::{ApiResource, DynamicResourceScope, Resource},
    runtime::watcher::{self, Event, watcher},
};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tracing::debug;

use crate::{
    ObjectKey,
    cache::{Arrival, Cache, Cached},
    client::is_watch,
    controller::with_causes,
    observed::{Observed, ObservedMetadata, ObservedSecret},
    outages::{Outages, Record},
};

/// Objects a page while listing: small pages keep the peak of memory low.
const PAGE: u32 = 250;
/// Secrets a page: each may have a megabyte, and anybody may create many of them.
const PAGE_OF_SECRETS: u32 = 50;
/// The wait after the first broken watch; it doubles with each further one.
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
    /// What was known.
    pub before: Option<&'a Arc<T>>,
    /// What is known now; nothing if the object is gone.
    pub now: Option<&'a Arc<T>>,
}

/// How far a watch is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchState {
    /// The first list is not complete.
    Syncing,
    /// The cache is a true copy.
    Synced,
    /// The server does not serve the kind (or does not any more).
    Absent,
    /// The server refuses or fails; the text says how.
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

impl Default for WatchHandle {
    fn default() -> Self {
        Self {
            state: std::sync::Mutex::new(WatchState::Syncing),
            was_synced: AtomicBool::new(false),
            retry_now: Notify::new(),
            record: Record::default(),
        }
    }
}

impl WatchHandle {
    /// The state of a watch whose outages are reported with others.
    pub fn reporting_to(outages: &Outages) -> Self {
        Self { record: outages.record(), ..Self::default() }
    }

    /// How far the watch is now.
    pub fn state(&self) -> WatchState {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Whether the watch has ever known the whole truth.
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
    /// An object came, changed or went.
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
    let tell = |key: &ObjectKey, arrival: Arrival<T>| {
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
                    tell(&key, arrival);
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
                let key = ObjectKey::of(&object);
                // Most of what comes is the echo of our own writes: it need not be reduced to be known.
                if cache.knows(&key, object.meta()) {
                    continue;
                }
                if let Some(object) = project(object) {
                    let arrival = cache.arrive(&key, object);
                    tell(&key, arrival);
                } else if let Some(useless) = cache.depart(&key) {
                    listener.changed(Change { key: &key, before: Some(&useless), now: None });
                }
            }
            Ok(Event::Delete(object)) => {
                failures = 0;
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
                    }
                    Trouble::Refused(reason) => {
                        enter(WatchState::Failing(reason.clone()));
                        handle.record.failed(&resource, reason, true);
                    }
                    Trouble::Expired => {
                        debug!(%resource, "the server has forgotten the watch's resourceVersion, listing again");
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
/// works again before the next object changes, nor that a request is not answered.
fn observed(client: Client, handle: Arc<WatchHandle>, resource: String) -> Client {
    let namespace = client.default_namespace().to_owned();
    let resource: Arc<str> = resource.into();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, handle, resource) = (client.clone(), Arc::clone(&handle), Arc::clone(&resource));
        let starts_watch = is_watch(request.uri());
        async move {
            let mut response = Box::pin(client.send(request));
            let response = if let Ok(response) = tokio::time::timeout(ANSWER_LIMIT, &mut response).await {
                response
            } else {
                let reason = format!("the server has not answered for {ANSWER_LIMIT:?}");
                handle.record.failed(&resource, &reason, true);
                response.await
            };
            if starts_watch && response.as_ref().is_ok_and(|it| it.status().is_success()) {
                handle.record.works(&resource);
            }
            response
        }
    });
    Client::new(service, namespace)
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
    use std::sync::Mutex;

    use http::Response;
    use http_body_util::{BodyExt, Full, StreamBody};
    use hyper::body::Bytes;
    use kube::core::GroupVersionKind;
    use tower::BoxError;

    use super::*;
    use crate::metrics::Metrics;

    /// Answers list and watch requests by a script, and keeps the last watch open for ever.
    fn scripted(answers: &'static [(u16, &'static str)]) -> Client {
        let turn = Arc::new(Mutex::new(0));
        let service = tower::service_fn(move |_request: Request<Body>| {
            let turn = Arc::clone(&turn);
            async move {
                let next = {
                    let mut turn = turn.lock().unwrap();
                    *turn += 1;
                    answers.get(*turn - 1)
                };
                match next {
                    Some((code, body)) => {
                        let body = if *body == OPEN {
                            StreamBody::new(futures::stream::pending::<Result<_, BoxError>>()).boxed_unsync()
                        } else {
                            Full::new(Bytes::from_static(body.as_bytes())).map_err(Into::into).boxed_unsync()
                        };
                        Response::builder().status(*code).body(body)
                    }
                    None => std::future::pending().await,
                }
            }
        });
        Client::new(service, "default")
    }

    /// A body that never ends.
    const OPEN: &str = "open";
    const ONE: &str = r#"{"kind":"FooList","apiVersion":"g/v1","metadata":{"resourceVersion":"5"},
        "items":[{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"4"}}]}"#;
    const NONE: &str =
        r#"{"kind":"FooList","apiVersion":"g/v1","metadata":{"resourceVersion":"9"},"items":[]}"#;
    const FORBIDDEN: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
        "message":"foos is forbidden","reason":"Forbidden","code":403}"#;

    /// Every state that a watch goes through, until it has nothing more to say.
    async fn states(answers: &'static [(u16, &'static str)]) -> (Vec<WatchState>, Cache<Observed>) {
        run(answers, Arc::default()).await
    }

    async fn run(
        answers: &'static [(u16, &'static str)],
        handle: Arc<WatchHandle>,
    ) -> (Vec<WatchState>, Cache<Observed>) {
        struct Listening(Arc<Mutex<Vec<WatchState>>>);
        impl Listener<Observed> for Listening {
            fn changed(&self, _change: Change<'_, Observed>) {}
            fn state_changed(&self, state: &WatchState) {
                self.0.lock().unwrap().push(state.clone());
            }
        }
        let seen = Arc::new(Mutex::new(Vec::new()));
        let cache = Cache::default();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("g", "v1", "Foo"));
        let target = WatchTarget { resource, namespace: None, label_selector: None, field_selector: None };
        let run = watch(
            scripted(answers),
            target,
            |object| object,
            cache.clone(),
            Listening(Arc::clone(&seen)),
            handle,
        );
        // Paused time jumps ahead whenever nothing can happen but timers.
        let _ = tokio::time::timeout(Duration::from_mins(1), run).await;
        let seen = seen.lock().unwrap().clone();
        (seen, cache)
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

    #[tokio::test(start_paused = true)]
    async fn an_outage_after_the_first_list_is_reported_until_the_watch_works_again() {
        const OH: (u16, &str) = (500, "oh");
        const LIST: (u16, &str) = (200, ONE);
        // Retries are 0.1 s apart, then twice as long each time, up to 5 s.
        const SHORT: &[(u16, &str)] = &[LIST, OH, OH, OH, (200, OPEN)];
        const LONG: &[(u16, &str)] = &[LIST, OH, OH, OH, OH, OH, OH, OH, OH, (200, OPEN)];
        const ENDLESS: &[(u16, &str)] = &[OH; 100];
        const REFUSED: &[(u16, &str)] =
            &[(403, FORBIDDEN), (200, ONE), (403, FORBIDDEN), (200, ONE), (200, OPEN)];
        for (name, answers, reported, lasting) in [
            ("short", SHORT, 0, 0),
            ("long", LONG, 1, 0),
            ("endless", ENDLESS, 1, 1),
            ("refused", REFUSED, 1, 0),
            ("not answered", &[][..], 1, 1),
            ("watch not answered", &[LIST][..], 1, 1),
        ] {
            let metrics = Metrics::default();
            let outages = Outages::new(metrics.clone());
            let handle = Arc::new(WatchHandle::reporting_to(&outages));
            run(answers, Arc::clone(&handle)).await;
            let counted = format!("capstan_watch_outages_total{{resource=\"foos.g\"}} {reported}\n");
            let text = metrics.expose();
            assert_eq!(text.contains(&counted), reported > 0, "{name}: {text}");
            assert_eq!(outages.list().len(), lasting, "{name}: {:?}", outages.list());
            assert!(outages.list().iter().all(|it| it.starts_with("foos.g, for ")), "{:?}", outages.list());
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
        let run = watch_secrets(client, target, project, cache.clone(), listener, Arc::default());
        let _ = tokio::time::timeout(Duration::from_secs(1), run).await;
        assert_eq!(*seen.lock().unwrap(), [("good".to_owned(), true), ("good".to_owned(), false)]);
        assert!(cache.is_empty());
    }
}
