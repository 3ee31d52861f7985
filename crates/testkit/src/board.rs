//! A board that shows every object of some kinds: one watch a kind serves the waits of many scenes.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::StreamExt;
use kube::{
    Api, Client, ResourceExt,
    api::DynamicObject,
    core::ApiResource,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::{sync::watch, task::JoinSet};

type Key = (String, String);

/// What is known of the objects of some kinds, in all namespaces.
pub(crate) struct Board {
    kinds: HashMap<String, Shown>,
    _watches: JoinSet<()>,
}

#[derive(Clone, Default)]
struct Shown {
    objects: Arc<Mutex<HashMap<Key, Arc<DynamicObject>>>>,
    changed: watch::Sender<()>,
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board").field("kinds", &self.kinds.keys()).finish_non_exhaustive()
    }
}

impl Board {
    /// Shows objects of these kinds.
    pub(crate) fn new(client: &Client, kinds: &[ApiResource]) -> Self {
        let mut watches = JoinSet::new();
        let show = |kind: &ApiResource| {
            let shown = Shown::default();
            watches.spawn(follow(Api::all_with(client.clone(), kind), shown.clone()));
            (kind.plural.clone(), shown)
        };
        Self { kinds: kinds.iter().map(show).collect(), _watches: watches }
    }

    /// Waits until an object satisfies a condition; gives back what was seen last if that does not come true in time.
    ///
    /// The board may be a moment late: wait for an object to be there before waiting for it to be gone.
    pub(crate) async fn until(
        &self,
        kind: &ApiResource,
        (namespace, name): (&str, &str),
        limit: Duration,
        condition: impl Fn(Option<&DynamicObject>) -> bool,
    ) -> Result<(), Option<Arc<DynamicObject>>> {
        let shown = &self.kinds[&kind.plural];
        let key = (namespace.to_owned(), name.to_owned());
        let mut changes = shown.changed.subscribe();
        let mut judged: Option<Option<Arc<DynamicObject>>> = None;
        let wait = async {
            loop {
                changes.mark_unchanged();
                let now = shown.lock().get(&key).cloned();
                let same = |before: &Option<Arc<DynamicObject>>| match (before, &now) {
                    (Some(before), Some(now)) => Arc::ptr_eq(before, now),
                    (before, now) => before.is_none() && now.is_none(),
                };
                if !judged.as_ref().is_some_and(same) {
                    if condition(now.as_deref()) {
                        return;
                    }
                    judged = Some(now);
                }
                changes.changed().await.expect("the board outlives its readers");
            }
        };
        tokio::time::timeout(limit, wait).await.map_err(|_| judged.flatten())
    }
}

impl Shown {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<DynamicObject>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn follow(api: Api<DynamicObject>, shown: Shown) {
    let mut events = Box::pin(watcher(api, watcher::Config::default()).default_backoff());
    let mut listed = HashSet::new();
    while let Some(event) = events.next().await {
        let key = |object: &DynamicObject| (object.namespace().unwrap_or_default(), object.name_any());
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => {
                listed.insert(key(&object));
                shown.lock().insert(key(&object), Arc::new(object));
            }
            Ok(Event::InitDone) => shown.lock().retain(|key, _| listed.contains(key)),
            Ok(Event::Apply(object)) => {
                shown.lock().insert(key(&object), Arc::new(object));
            }
            Ok(Event::Delete(object)) => {
                shown.lock().remove(&key(&object));
            }
            // The stream mends itself.
            Err(_) => continue,
        }
        shown.changed.send_replace(());
    }
}
