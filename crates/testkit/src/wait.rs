//! Waits: on watches, with a limit, and with the last state in the failure's text.

use std::{fmt::Debug, pin::pin, time::Duration};

use futures::StreamExt;
use kube::{
    Api, Resource,
    runtime::{
        WatchStreamExt,
        watcher::{Config, watch_object, watcher},
    },
};
use serde::{Serialize, de::DeserializeOwned};

/// How long anything may take unless a story says otherwise.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Waits until an object satisfies a condition; gives it back. An absent object is `None`.
pub async fn until<K>(
    api: &Api<K>,
    name: &str,
    what: &str,
    limit: Duration,
    condition: impl Fn(Option<&K>) -> bool,
) -> Option<K>
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static,
{
    match try_until(api, name, limit, condition).await {
        Ok(state) => state,
        Err(last) => {
            let mut value = serde_json::to_value(&last).unwrap();
            if let Some(metadata) = value.get_mut("metadata").and_then(|it| it.as_object_mut()) {
                metadata.remove("managedFields");
            }
            panic!("{name} is not {what} within {limit:?}; last seen: {value:#}");
        }
    }
}

/// The same without a panic: gives back the last state that was seen if the condition does not come true in time.
pub async fn try_until<K>(
    api: &Api<K>,
    name: &str,
    limit: Duration,
    condition: impl Fn(Option<&K>) -> bool,
) -> Result<Option<K>, Option<K>>
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static,
{
    let mut last = None;
    let wait = async {
        let mut states = pin!(watch_object(api.clone(), name));
        loop {
            match states.next().await {
                Some(Ok(state)) => {
                    last.clone_from(&state);
                    if condition(state.as_ref()) {
                        return state;
                    }
                }
                // The stream mends itself; the server may be away for a moment.
                Some(Err(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
                None => panic!("the watch on {name} ended"),
            }
        }
    };
    tokio::time::timeout(limit, wait).await.map_err(|_| last)
}

/// Waits until an object is there and satisfies a condition.
pub async fn until_is<K>(
    api: &Api<K>,
    name: &str,
    what: &str,
    limit: Duration,
    condition: impl Fn(&K) -> bool,
) -> K
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static,
{
    until(api, name, what, limit, |object| object.is_some_and(&condition)).await.unwrap()
}

/// Waits until an object is gone.
pub async fn until_gone<K>(api: &Api<K>, name: &str, limit: Duration)
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static,
{
    until(api, name, "gone", limit, |object| object.is_none()).await;
}

/// Waits until some object of a kind satisfies a condition; gives it back.
pub async fn until_any<K>(api: &Api<K>, what: &str, limit: Duration, condition: impl Fn(&K) -> bool) -> K
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let wait = async {
        let mut objects = pin!(watcher(api.clone(), Config::default()).default_backoff().applied_objects());
        loop {
            match objects.next().await {
                Some(Ok(object)) if condition(&object) => return object,
                // The stream mends itself.
                Some(_) => {}
                None => panic!("the watch ended"),
            }
        }
    };
    tokio::time::timeout(limit, wait).await.unwrap_or_else(|_| panic!("nothing is {what} within {limit:?}"))
}
