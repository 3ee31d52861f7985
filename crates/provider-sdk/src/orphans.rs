//! Infrastructure that this process began for a new object and that is not recorded in the object yet: if the object
//! vanishes, only this process can delete it.
//!
//! An API server that has begun to delete an object without finalizers ignores one that is added meanwhile. Such an
//! object is last seen with our finalizer. One that was moved or handed over is not: the mover removed the finalizer
//! first, and now owns the infrastructure.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use capstan_runtime::ObjectKey;

use crate::{identity::InfrastructureId, record::Record};

/// Objects for which something may have been made that is not on record.
pub(crate) struct Unrecorded<S> {
    finalizer: String,
    begun: Mutex<Begun<S>>,
}

type Begun<S> = HashMap<InfrastructureId, (ObjectKey, Arc<Record<S>>)>;

impl<S> Unrecorded<S> {
    pub(crate) fn new(finalizer: String) -> Self {
        Self { finalizer, begun: Mutex::default() }
    }

    /// Something may be made from now on.
    pub(crate) fn begin(&self, id: &InfrastructureId, key: &ObjectKey, object: &Arc<Record<S>>) {
        self.lock().insert(id.clone(), (key.clone(), Arc::clone(object)));
    }

    /// All is recorded, deleted, or externally managed.
    pub(crate) fn end(&self, id: &InfrastructureId) {
        self.lock().remove(id);
    }

    /// A state of an object was seen that says that its infrastructure is not ours any more.
    pub(crate) fn observe(&self, key: &ObjectKey, object: &Record<S>) {
        let handed_over = !object.has_finalizer(&self.finalizer) || object.is_externally_managed();
        if handed_over && let Some(id) = InfrastructureId::of(key, &object.metadata) {
            self.end(&id);
        }
    }

    /// What was begun under a name for another object than the one that is there now.
    pub(crate) fn orphans(
        &self,
        key: &ObjectKey,
        there: Option<&InfrastructureId>,
    ) -> Vec<(InfrastructureId, Arc<Record<S>>)> {
        let begun = self.lock();
        let orphans = begun.iter().filter(|(id, (of, _))| of == key && Some(*id) != there);
        orphans.map(|(id, (_, object))| (id.clone(), Arc::clone(object))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Begun<S>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;
    use crate::identity::ID_ANNOTATION;

    fn object(uid: &str, finalizer: bool) -> Arc<Record<()>> {
        Arc::new(Record {
            metadata: ObjectMeta {
                annotations: Some([(ID_ANNOTATION.to_owned(), format!("n/a/{uid}"))].into()),
                finalizers: finalizer.then(|| vec!["f".to_owned()]),
                ..ObjectMeta::default()
            },
            ..Record::default()
        })
    }

    #[test]
    fn only_what_vanished_with_our_finalizer_is_an_orphan() {
        let key = ObjectKey::new("n", "a");
        let unrecorded = Unrecorded::new("f".to_owned());
        let id = |object: &Record<()>| InfrastructureId::of(&key, &object.metadata).unwrap();
        let (first, second) = (object("1", true), object("2", true));
        unrecorded.begin(&id(&first), &key, &first);
        unrecorded.begin(&id(&second), &key, &second);
        unrecorded.observe(&key, &first);
        let found = |there: Option<&InfrastructureId>| {
            unrecorded.orphans(&key, there).into_iter().map(|(id, _)| id).collect::<Vec<_>>()
        };
        assert_eq!(found(Some(&id(&second))), [id(&first)], "a successor's is none");
        assert_eq!(found(None).len(), 2);
        assert!(unrecorded.orphans(&ObjectKey::new("n", "b"), None).is_empty());
        // A move takes the finalizer off.
        unrecorded.observe(&key, &object("1", false));
        assert_eq!(found(None), [id(&second)]);
        unrecorded.end(&id(&second));
        assert!(found(None).is_empty());
    }
}
