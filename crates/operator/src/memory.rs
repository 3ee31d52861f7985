//! What this process knows of providers beyond their objects.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use capstan_api::{
    operator::{FetchConfiguration, ProviderSpec},
    provider::ProviderType,
};
use capstan_runtime::ObjectKey;
use tokio::time::Instant;

/// How long changes of a provider's objects are collected before they are looked at: a rollout changes many.
const QUIET: Duration = Duration::from_millis(700);

/// How long the contract of a version that was fetched is used before it is fetched again.
const CONTRACT_MAX_AGE: Duration = crate::fetch::LISTINGS_MAX_AGE;

/// A provider object.
pub type ProviderKey = (ProviderType, ObjectKey);

#[derive(Clone, Debug, Default)]
struct Known {
    /// The uid of the object that the rest is about.
    uid: String,
    /// Whether what is installed was compared with the release.
    is_verified: bool,
    /// When an installed object changed last.
    changed: Option<Instant>,
    /// The Deployments of the release.
    deployments: Option<Vec<String>>,
    /// Whether this process scaled its Deployments to 0: the watch may be late.
    is_scaled_down: bool,
    /// The contract of a version that was fetched.
    contract: Option<KnownContract>,
    /// The spec that was carried out last.
    applied: Option<Arc<ProviderSpec>>,
}

/// The contract of a version, and what it was fetched with.
#[derive(Clone, Debug)]
struct KnownContract {
    /// The spec's version, and where it said that releases are.
    request: (Option<String>, Option<FetchConfiguration>),
    contract: String,
    at: Instant,
}

/// What this process knows of providers.
#[derive(Debug, Default)]
pub struct Memory(Mutex<HashMap<ProviderKey, Known>>);

/// Whether installed objects have to be compared with the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// They are as they should be.
    None,
    /// After this time, unless more changes.
    After(Duration),
    /// Now.
    Now,
}

impl Memory {
    /// Whether a provider's objects have to be compared with its release.
    pub fn doubt(&self, key: &ProviderKey, uid: &str) -> Doubt {
        let known = self.lock();
        let Some(known) = known.get(key).filter(|it| it.uid == uid && it.is_verified) else {
            return Doubt::Now;
        };
        match known.changed.map(|it| it.elapsed()) {
            None => Doubt::None,
            Some(quiet) if quiet < QUIET => Doubt::After(QUIET.saturating_sub(quiet)),
            Some(_) => Doubt::Now,
        }
    }

    /// A provider's objects are about to be compared: what changes from now on counts again.
    pub fn begin(&self, key: &ProviderKey, uid: &str) {
        self.entry(key, uid, |known| known.changed = None);
    }

    /// A provider's objects are as its release has them.
    pub fn verified(&self, key: &ProviderKey, uid: &str, deployments: Option<Vec<String>>) {
        self.entry(key, uid, |known| {
            known.is_verified = true;
            if deployments.is_some() {
                known.deployments = deployments;
            }
        });
    }

    /// An installed object of a provider changed.
    pub fn changed(&self, key: &ProviderKey) {
        if let Some(known) = self.lock().get_mut(key) {
            known.changed = Some(Instant::now());
        }
    }

    /// The Deployments of a provider's release, if it was rendered.
    pub fn deployments(&self, key: &ProviderKey, uid: &str) -> Option<Vec<String>> {
        self.lock().get(key).filter(|it| it.uid == uid)?.deployments.clone()
    }

    /// Whether this process scaled a provider's Deployments to 0: the watch may be late.
    pub fn is_scaled_down(&self, key: &ProviderKey, uid: &str) -> bool {
        self.lock().get(key).is_some_and(|it| it.uid == uid && it.is_scaled_down)
    }

    /// A provider's Deployments are about to be scaled to 0, or were scaled up again.
    pub fn scaled_down(&self, key: &ProviderKey, uid: &str, is_scaled_down: bool) {
        self.entry(key, uid, |known| known.is_scaled_down = is_scaled_down);
    }

    /// A comparison failed: it is still due.
    pub fn unverified(&self, key: &ProviderKey, uid: &str) {
        self.entry(key, uid, |known| known.is_verified = false);
    }

    /// The contract of the version that a spec asks for, if it was fetched lately.
    pub fn contract(&self, key: &ProviderKey, uid: &str, spec: &ProviderSpec) -> Option<String> {
        let known = self.lock();
        let contract = known.get(key).filter(|it| it.uid == uid)?.contract.as_ref()?;
        let is_known = contract.at.elapsed() < CONTRACT_MAX_AGE && contract.request == request(spec);
        is_known.then(|| contract.contract.clone())
    }

    /// The version that a spec asks for was fetched.
    pub fn learn_contract(&self, key: &ProviderKey, uid: &str, spec: &ProviderSpec, contract: &str) {
        let contract =
            KnownContract { request: request(spec), contract: contract.to_owned(), at: Instant::now() };
        self.entry(key, uid, |known| known.contract = Some(contract));
    }

    /// What a release is fetched from changed.
    pub fn forget_contract(&self, key: &ProviderKey) {
        if let Some(known) = self.lock().get_mut(key) {
            known.contract = None;
        }
    }

    /// The spec that was carried out last, if this process did it.
    pub fn applied(&self, key: &ProviderKey, uid: &str) -> Option<Arc<ProviderSpec>> {
        self.lock().get(key).filter(|it| it.uid == uid)?.applied.clone()
    }

    /// A spec was carried out.
    pub fn apply(&self, key: &ProviderKey, uid: &str, spec: &ProviderSpec) {
        self.entry(key, uid, |known| known.applied = Some(Arc::new(spec.clone())));
    }

    /// Forgets a provider.
    pub fn forget(&self, key: &ProviderKey) {
        self.lock().remove(key);
    }

    fn entry(&self, key: &ProviderKey, uid: &str, change: impl FnOnce(&mut Known)) {
        let mut all = self.lock();
        let known = all.entry(key.clone()).or_default();
        if known.uid != uid {
            *known = Known { uid: uid.to_owned(), ..Known::default() };
        }
        change(known);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProviderKey, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn request(spec: &ProviderSpec) -> (Option<String>, Option<FetchConfiguration>) {
    (spec.version.clone(), spec.fetch_config.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_contract_is_known_for_a_while_and_for_what_it_was_fetched_from() {
        let (memory, key) = (Memory::default(), (ProviderType::Core, ObjectKey::new("n", "a")));
        let spec =
            |version: &str| ProviderSpec { version: Some(version.to_owned()), ..ProviderSpec::default() };
        let known = |uid: &str, version: &str| memory.contract(&key, uid, &spec(version));
        memory.learn_contract(&key, "1", &spec("v1.0.0"), "v1beta2");
        assert_eq!(known("1", "v1.0.0").as_deref(), Some("v1beta2"));
        assert_eq!((known("1", "v1.1.0"), known("2", "v1.0.0")), (None, None));
        memory.forget_contract(&key);
        assert_eq!(known("1", "v1.0.0"), None, "a ConfigMap changed");
        memory.learn_contract(&key, "1", &spec("v1.0.0"), "v1beta2");
        tokio::time::advance(CONTRACT_MAX_AGE).await;
        assert_eq!(known("1", "v1.0.0"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn changes_are_collected_before_they_are_looked_at() {
        let (memory, key) = (Memory::default(), (ProviderType::Core, ObjectKey::new("n", "a")));
        assert_eq!(memory.doubt(&key, "1"), Doubt::Now, "nothing is known after a start");
        memory.begin(&key, "1");
        memory.verified(&key, "1", Some(vec!["d".to_owned()]));
        assert_eq!(memory.doubt(&key, "1"), Doubt::None);
        assert_eq!(memory.deployments(&key, "1").unwrap(), ["d"]);
        memory.changed(&key);
        assert_eq!(memory.doubt(&key, "1"), Doubt::After(QUIET));
        tokio::time::advance(QUIET / 2).await;
        memory.changed(&key);
        tokio::time::advance(QUIET / 2).await;
        assert_eq!(memory.doubt(&key, "1"), Doubt::After(QUIET / 2));
        tokio::time::advance(QUIET).await;
        assert_eq!(memory.doubt(&key, "1"), Doubt::Now);
        memory.begin(&key, "1");
        memory.verified(&key, "1", None);
        assert_eq!(memory.doubt(&key, "1"), Doubt::None);
        memory.unverified(&key, "1");
        assert_eq!(memory.doubt(&key, "1"), Doubt::Now, "a comparison failed");
        memory.verified(&key, "1", None);
        assert_eq!(memory.doubt(&key, "2"), Doubt::Now, "another object of the same name");
        assert_eq!(memory.deployments(&key, "2"), None);
    }
}
