//! A cache of the objects of one kind.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::ObjectKey;

/// A cached object, or what was kept of one.
pub trait Cached: Send + Sync + 'static {
    /// The metadata of the object it was made from.
    fn metadata(&self) -> &ObjectMeta;
}

/// The cached objects of one kind. Clones share their contents.
#[derive(Debug)]
pub struct Cache<T> {
    objects: Arc<RwLock<HashMap<ObjectKey, Arc<T>>>>,
}

impl<T> Clone for Cache<T> {
    fn clone(&self) -> Self {
        Self { objects: Arc::clone(&self.objects) }
    }
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self { objects: Arc::default() }
    }
}

/// What an object on the watch changed in the cache.
#[derive(Debug)]
pub enum Arrival<T> {
    /// Nothing: the cache had this version or a later one.
    Known,
    /// The object is new or newer than the cached one.
    News {
        /// The object as cached before.
        before: Option<Arc<T>>,
        /// The object as cached now.
        now: Arc<T>,
    },
}

impl<T: Cached> Cache<T> {
    /// The object of that name.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.read().get(key).cloned()
    }

    /// All names.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.read().keys().cloned().collect()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    /// Whether an object is known in this state or a later one.
    pub fn knows(&self, key: &ObjectKey, metadata: &ObjectMeta) -> bool {
        self.read().get(key).is_some_and(|known| !is_newer(metadata, known.metadata()))
    }

    /// Takes in what a watch says.
    pub fn arrive(&self, key: &ObjectKey, object: T) -> Arrival<T> {
        let mut objects = self.write();
        if let Some(known) = objects.get(key)
            && !is_newer(object.metadata(), known.metadata())
        {
            return Arrival::Known;
        }
        Self::insert(&mut objects, key, object)
    }

    /// Caches an object of a fresh list, even if its version is older (a restored etcd goes back to earlier versions).
    pub fn arrive_listed(&self, key: &ObjectKey, object: T) -> Arrival<T> {
        let mut objects = self.write();
        if let Some(known) = objects.get(key)
            && known.metadata().resource_version == object.metadata().resource_version
        {
            return Arrival::Known;
        }
        Self::insert(&mut objects, key, object)
    }

    /// Takes in the answer to our own write, so that the next look sees it even if the watch is late.
    ///
    /// An object that was deleted from the cache is not added again: the answer may be older than the deletion.
    pub fn remember(&self, key: &ObjectKey, object: T) {
        let mut objects = self.write();
        if let Some(known) = objects.get_mut(key)
            && known.metadata().uid == object.metadata().uid
            && is_newer(object.metadata(), known.metadata())
        {
            *known = Arc::new(object);
        }
    }

    /// Removes an object.
    pub fn depart(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.write().remove(key)
    }

    /// Removes all objects but these; returns the removed ones.
    pub fn keep_only(&self, keys: &HashSet<ObjectKey>) -> Vec<(ObjectKey, Arc<T>)> {
        self.write().extract_if(|key, _| !keys.contains(key)).collect()
    }

    fn insert(objects: &mut HashMap<ObjectKey, Arc<T>>, key: &ObjectKey, object: T) -> Arrival<T> {
        let now = Arc::new(object);
        let before = objects.insert(key.clone(), Arc::clone(&now));
        Arrival::News { before, now }
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<ObjectKey, Arc<T>>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<ObjectKey, Arc<T>>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether one state of an object came after another. Versions that are not numbers count as newer when they differ.
fn is_newer(candidate: &ObjectMeta, known: &ObjectMeta) -> bool {
    let number = |metadata: &ObjectMeta| metadata.resource_version.as_deref()?.parse::<u128>().ok();
    match (number(candidate), number(known)) {
        (Some(candidate), Some(known)) => candidate > known,
        _ => candidate.resource_version != known.resource_version,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Observed;

    fn object(version: &str) -> Observed {
        Observed {
            metadata: ObjectMeta {
                uid: Some("u".into()),
                resource_version: Some(version.into()),
                ..ObjectMeta::default()
            },
            ..Observed::default()
        }
    }

    fn version(cache: &Cache<Observed>, key: &ObjectKey) -> Option<String> {
        cache.get(key)?.metadata.resource_version.clone()
    }

    #[test]
    fn late_news_is_no_news() {
        let (cache, key) = (Cache::default(), ObjectKey::new("n", "a"));
        assert!(matches!(cache.arrive(&key, object("9")), Arrival::News { before: None, .. }));
        assert!(matches!(cache.arrive(&key, object("9")), Arrival::Known));
        assert!(matches!(cache.arrive(&key, object("8")), Arrival::Known));
        assert!(matches!(cache.arrive(&key, object("10")), Arrival::News { before: Some(_), .. }));
        assert_eq!(version(&cache, &key).as_deref(), Some("10"));
    }

    #[test]
    fn our_own_write_is_seen_at_once_but_raises_no_dead() {
        let (cache, key) = (Cache::default(), ObjectKey::new("n", "a"));
        cache.arrive(&key, object("1"));
        cache.remember(&key, object("2"));
        assert_eq!(version(&cache, &key).as_deref(), Some("2"));
        assert!(matches!(cache.arrive(&key, object("2")), Arrival::Known), "the echo of our write");
        cache.depart(&key);
        cache.remember(&key, object("3"));
        assert_eq!(version(&cache, &key), None);
    }

    #[test]
    fn a_fresh_list_is_believed_even_where_it_counts_anew() {
        let (cache, key) = (Cache::default(), ObjectKey::new("n", "a"));
        cache.arrive(&key, object("900"));
        assert!(matches!(cache.arrive_listed(&key, object("3")), Arrival::News { .. }));
        assert_eq!(version(&cache, &key).as_deref(), Some("3"));
        let gone = cache.keep_only(&HashSet::new());
        assert_eq!(gone.len(), 1);
        assert!(cache.is_empty());
    }
}
