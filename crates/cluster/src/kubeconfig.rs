//! The kubeconfig of a workload cluster without a control plane provider.
//!
//! It is signed by the cluster's certificate authority, and renewed when the authority or the endpoint changes,
//! and at half of its lifetime. A kubeconfig from elsewhere is never changed.

mod authority;
mod made;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use capstan_api::names::{CORE_GROUP, label, secret};
use capstan_runtime::{
    ObjectKey, ObservedSecret,
    cache::{Cache, Cached},
    clock,
    controller::{Next, Reconciler},
    events::{Recorder, Severity},
    queue::Queue,
    watch::WatchHandle,
    writer::{Part, WriteError, Writer},
};
use k8s_openapi::{
    ByteString,
    api::core::v1::{ObjectReference as EventTarget, Secret},
};
use kube::core::ApiResource;
use serde_json::json;
use tracing::info;

use self::{
    authority::Authority,
    made::{Made, Renewal, Why},
};
use crate::{
    connection::{
        read_kubeconfig,
        secrets::{Content, Mark, SecretRecord, secret_of},
    },
    known::KnownCluster,
    snapshot::ClusterRecord,
};

/// How often an authority without the label is requested, since no watch shows it.
const LOOK_PERIOD: Duration = Duration::from_secs(30);
/// How long to wait after a kubeconfig could not be renewed.
const RENEWAL_RETRY: Duration = Duration::from_mins(10);
/// How long the watch may take to show that a Secret has changed.
const NEWS_LIMIT: Duration = Duration::from_secs(1);
/// A certificate that expires with its authority is not renewed more often than this.
const SHORTEST_RENEWAL: Duration = Duration::from_hours(1);

/// The period for so many who look: all of them together ask ten times a second at most.
fn look_period(who_look: usize) -> Duration {
    first_look(who_look).max(LOOK_PERIOD)
}

/// When the last of so many who look does so for the first time.
fn first_look(who_look: usize) -> Duration {
    Duration::from_millis(100).saturating_mul(u32::try_from(who_look).unwrap_or(u32::MAX))
}

/// What a Cluster wants its kubeconfig to be.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wish {
    uid: String,
    server: String,
}

impl Wish {
    /// A control plane provider makes its own, and a topology brings one.
    fn of(cluster: &ClusterRecord) -> Option<Self> {
        let is_ours = cluster.spec.control_plane_ref.is_none() && !cluster.has_topology();
        let is_active = !cluster.is_deleting() && !cluster.is_paused() && cluster.malformed.is_none();
        let endpoint = cluster.spec.control_plane_endpoint.as_ref().filter(|endpoint| endpoint.is_valid())?;
        (is_ours && is_active)
            .then(|| Self { uid: cluster.uid().to_owned(), server: made::server_url(endpoint) })
    }
}

/// The Clusters whose kubeconfigs are made here.
#[derive(Debug)]
pub(crate) struct Kubeconfigs {
    pub(crate) queue: Arc<Queue<ObjectKey>>,
    /// Clusters that have something else to say.
    readers: Arc<Queue<ObjectKey>>,
    kept: Mutex<HashMap<ObjectKey, Keeping>>,
    /// Those that look from time to time whether their authority has come.
    looking: Mutex<HashSet<ObjectKey>>,
}

#[derive(Debug)]
struct Keeping {
    wish: Wish,
    /// Why there is no kubeconfig.
    trouble: Option<String>,
    /// The workload cluster does not answer: its authority may have been replaced.
    is_connection_troubled: bool,
    /// What the kubeconfig with this mark says; nothing if the user made it.
    seen: Option<(Mark, Option<Made>)>,
}

impl Kubeconfigs {
    pub(crate) fn new(readers: Arc<Queue<ObjectKey>>) -> Self {
        Self { queue: Arc::default(), readers, kept: Mutex::default(), looking: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<ObjectKey, Keeping>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a Cluster and whether its connection fails: no event arrived while it was paused.
    pub(crate) fn observe(
        &self,
        key: &ObjectKey,
        cluster: Option<&ClusterRecord>,
        is_connection_troubled: impl FnOnce() -> bool,
    ) {
        let wish = cluster.and_then(Wish::of);
        let mut kept = self.kept();
        match (wish, kept.get_mut(key)) {
            (None, None) => return,
            (None, Some(_)) => {
                kept.remove(key);
                self.stops_looking(key);
                return;
            }
            (Some(wish), Some(keeping)) if keeping.wish == wish => return,
            (Some(wish), Some(keeping)) => keeping.wish = wish,
            (Some(wish), None) => {
                let is_connection_troubled = is_connection_troubled();
                let keeping = Keeping { wish, trouble: None, is_connection_troubled, seen: None };
                kept.insert(key.clone(), keeping);
            }
        }
        drop(kept);
        self.queue.add(key.clone());
    }

    /// A Secret of the Cluster came, changed or went.
    pub(crate) fn secret_changed(&self, key: &ObjectKey) {
        if self.kept().contains_key(key) {
            self.queue.add(key.clone());
        }
    }

    /// The connection came, went, or has another trouble.
    pub(crate) fn connection_changed(&self, key: &ObjectKey, is_troubled: bool) {
        if let Some(keeping) = self.kept().get_mut(key) {
            keeping.is_connection_troubled = is_troubled;
            if is_troubled {
                self.queue.add(key.clone());
            }
        }
    }

    /// It became known which Secrets there are.
    pub(crate) fn look_at_all(&self) {
        for key in self.kept().keys() {
            self.queue.add(key.clone());
        }
    }

    /// Why a Cluster has no kubeconfig.
    pub(crate) fn trouble(&self, key: &ObjectKey) -> Option<String> {
        self.kept().get(key)?.trouble.clone()
    }

    /// Keeps in mind what is wrong; says whether that is news.
    fn say(&self, key: &ObjectKey, trouble: Option<&str>) -> bool {
        let mut kept = self.kept();
        let Some(keeping) = kept.get_mut(key).filter(|keeping| keeping.trouble.as_deref() != trouble) else {
            return false;
        };
        keeping.trouble = trouble.map(str::to_owned);
        drop(kept);
        self.readers.add(key.clone());
        trouble.is_some()
    }

    /// Notes that a Cluster looks for its authority; says when it should do so if it has not looked yet.
    fn begins_to_look(&self, key: &ObjectKey) -> Option<Duration> {
        let (is_new, who_look) = self.notes_look(key);
        is_new.then(|| first_look(who_look))
    }

    /// Notes that a Cluster looks for its authority, and says how often it should.
    fn looks(&self, key: &ObjectKey) -> Duration {
        look_period(self.notes_look(key).1)
    }

    /// Whether that is news, and how many look. Deleted Clusters are not noted: nothing would strike them
    /// off.
    fn notes_look(&self, key: &ObjectKey) -> (bool, usize) {
        let kept = self.kept();
        let mut looking = self.looking();
        let is_new = !kept.contains_key(key) || looking.insert(key.clone());
        (is_new, looking.len())
    }

    fn stops_looking(&self, key: &ObjectKey) {
        self.looking().remove(key);
    }

    /// To be locked after `kept` where both are.
    fn looking(&self) -> MutexGuard<'_, HashSet<ObjectKey>> {
        self.looking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose a kubeconfig is.
enum Recognized {
    /// It has the shape of those that are made here.
    Ours(Made),
    Foreign,
    /// It is another one than the watch has shown.
    Replaced,
}

/// Makes kubeconfigs.
pub(crate) struct Keeper {
    pub(crate) clusters: Cache<KnownCluster>,
    pub(crate) secrets: Cache<SecretRecord>,
    pub(crate) secrets_watch: Arc<WatchHandle>,
    pub(crate) kubeconfigs: Arc<Kubeconfigs>,
    pub(crate) writer: Writer,
    pub(crate) recorder: Recorder,
}

impl Reconciler for Keeper {
    type Error = WriteError;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, WriteError> {
        let Some(known) = self.clusters.get(key) else {
            return Ok(Next::Settled);
        };
        let cluster = known.bare();
        let Some(wish) = Wish::of(cluster).filter(|_| self.secrets_watch.was_synced()) else {
            return Ok(Next::Settled);
        };
        let result = match self.secrets.get(&secret_of(key, secret::KUBECONFIG)) {
            Some(record) => {
                self.kubeconfigs.stops_looking(key);
                self.keep(key, cluster, &wish, &record).await
            }
            None => self.provide(key, cluster, &wish).await,
        };
        // A quota, a policy or a missing right does not pass by itself: it is reported.
        if let Err(error) = &result
            && error.lasting_refusal().is_some()
        {
            self.complain(key, cluster, &format!("no kubeconfig can be made: {error}"));
        }
        result
    }

    fn is_noteworthy(&self, error: &WriteError) -> bool {
        !error.is_ordinary()
    }
}

impl Keeper {
    /// Makes the kubeconfig if there is none.
    async fn provide(
        &self,
        key: &ObjectKey,
        cluster: &ClusterRecord,
        wish: &Wish,
    ) -> Result<Next, WriteError> {
        let (name, ca) = (secret_of(key, secret::KUBECONFIG), secret_of(key, secret::CA));
        // Most Clusters have no authority without the label: a crowd of them must not ask all at once.
        if self.secrets.get(&ca).is_none()
            && let Some(wait) = self.kubeconfigs.begins_to_look(key)
        {
            return Ok(Next::Again(wait));
        }
        let Some(found) = self.writer.read_secret(&ca).await? else {
            // It is optional: this is no error.
            self.kubeconfigs.say(key, None);
            return Ok(Next::Again(self.kubeconfigs.looks(key)));
        };
        let when_it_changes = if has_label(&found) {
            self.kubeconfigs.stops_looking(key);
            Next::Settled
        } else {
            Next::Again(self.kubeconfigs.looks(key))
        };
        let text = match make(key, &found, wish) {
            Ok(fresh) => fresh.text,
            Err(words) => {
                self.complain(key, cluster, &words);
                return Ok(when_it_changes);
            }
        };
        if let Some(there) = self.writer.read_secret(&name).await? {
            if has_label(&there) {
                return Ok(Next::Settled);
            }
            let words = format!(
                "Secret {} is not used because it has no label {}: add the label, with the Cluster's name as value",
                name.name,
                label::CLUSTER_NAME
            );
            self.complain(key, cluster, &words);
            return Ok(Next::Again(self.kubeconfigs.looks(key)));
        }
        let resource = ApiResource::erase::<Secret>(&());
        self.writer.create(&resource, &name, &made::secret(cluster, &text)).await?;
        info!(secret = %name, "kubeconfig made");
        self.kubeconfigs.say(key, None);
        Ok(Next::Settled)
    }

    /// Renews the kubeconfig if it is ours and renewal is due.
    async fn keep(
        &self,
        key: &ObjectKey,
        cluster: &ClusterRecord,
        wish: &Wish,
        record: &SecretRecord,
    ) -> Result<Next, WriteError> {
        let made = match &record.content {
            Content::Kubeconfig(Ok(mark)) if record.is_owned_by(cluster.uid()) => {
                match self.recognize(key, *mark).await? {
                    Recognized::Ours(made) => Some(made),
                    Recognized::Foreign => None,
                    // The watch will show the other one.
                    Recognized::Replaced => return Ok(Next::Settled),
                }
            }
            _ => None,
        };
        let Some(made) = made else {
            self.kubeconfigs.say(key, None);
            return Ok(Next::Settled);
        };
        let (ca, now) = (secret_of(key, secret::CA), clock::now());
        let known = self.secrets.get(&ca).map(|record| record.content.clone());
        let mut found = None;
        let mark = match known {
            Some(Content::Authority(mark)) => mark,
            // Without the label no watch shows a new authority, but then the old one's clients get into trouble.
            _ if self.is_connection_troubled(key) => {
                found = self.writer.read_secret(&ca).await?;
                let certificate = found.as_ref().and_then(|found| found.data.get(secret::CERTIFICATE_KEY));
                certificate.and_then(|pem| Mark::of_pem(&pem.0))
            }
            _ => None,
        };
        let why = match made.renewal(&wish.server, mark, now) {
            Renewal::In(left) => {
                self.kubeconfigs.say(key, None);
                return Ok(Next::Again(left));
            }
            Renewal::Due(why) => why,
        };
        if found.is_none() {
            found = self.writer.read_secret(&ca).await?;
        }
        let Some(found) = found else {
            // For a while the old one goes on to work, unless it leads to the wrong place.
            if why != Why::Age {
                let words = format!(
                    "Secret {} does not fit the Cluster any more, and cannot be recreated without Secret {}: create it, with the keys {} and {}",
                    secret_of(key, secret::KUBECONFIG).name,
                    ca.name,
                    secret::CERTIFICATE_KEY,
                    secret::PRIVATE_KEY_KEY,
                );
                self.complain(key, cluster, &words);
            }
            return Ok(Next::Again(RENEWAL_RETRY));
        };
        let fresh = match make(key, &found, wish) {
            Ok(fresh) => fresh,
            Err(words) => {
                self.complain(key, cluster, &words);
                return Ok(Next::Again(RENEWAL_RETRY));
            }
        };
        if why == Why::Age && fresh.not_after <= made.not_after {
            let left = Duration::try_from(made.not_after.duration_since(now)).unwrap_or_default();
            return Ok(Next::Again((left / 2).max(SHORTEST_RENEWAL)));
        }
        let patch = json!({
            "metadata": {"resourceVersion": record.metadata().resource_version},
            "data": {secret::VALUE_KEY: ByteString(fresh.text.into_bytes())},
        });
        let (resource, name) = (ApiResource::erase::<Secret>(&()), secret_of(key, secret::KUBECONFIG));
        match self.writer.patch(&resource, &name, Part::Main, &patch).await {
            // What it was decided on is outdated, perhaps by ourselves: until the news has come, each try would be refused.
            Err(error) if error.is_conflict() => return Ok(Next::Again(NEWS_LIMIT)),
            result => result?,
        };
        info!(secret = %name, ?why, "recreated kubeconfig");
        self.kubeconfigs.say(key, None);
        Ok(Next::Settled)
    }

    /// Looks at the kubeconfig with this mark. Each is read once.
    async fn recognize(&self, key: &ObjectKey, mark: Mark) -> Result<Recognized, WriteError> {
        let seen = self.kubeconfigs.kept().get(key).and_then(|keeping| keeping.seen.clone());
        let made = match seen {
            Some((of, made)) if of == mark => made,
            _ => {
                let Some(text) = read_kubeconfig(&self.writer, key, mark).await? else {
                    return Ok(Recognized::Replaced);
                };
                let made = Made::recognize(&key.name, &text);
                if let Some(keeping) = self.kubeconfigs.kept().get_mut(key) {
                    keeping.seen = Some((mark, made.clone()));
                }
                made
            }
        };
        Ok(made.map_or(Recognized::Foreign, Recognized::Ours))
    }

    fn is_connection_troubled(&self, key: &ObjectKey) -> bool {
        self.kubeconfigs.kept().get(key).is_some_and(|keeping| keeping.is_connection_troubled)
    }

    fn complain(&self, key: &ObjectKey, cluster: &ClusterRecord, words: &str) {
        if self.kubeconfigs.say(key, Some(words)) {
            let target = EventTarget {
                api_version: Some(format!("{CORE_GROUP}/v1beta2")),
                kind: Some("Cluster".to_owned()),
                namespace: cluster.metadata.namespace.clone(),
                name: cluster.metadata.name.clone(),
                uid: cluster.metadata.uid.clone(),
                ..EventTarget::default()
            };
            self.recorder.record(&target, Severity::Warning, "KubeconfigNotMade", words.to_owned());
        }
    }
}

fn make(key: &ObjectKey, found: &ObservedSecret, wish: &Wish) -> Result<made::Fresh, String> {
    let made = Authority::read(&found.data)
        .and_then(|authority| made::make(&key.name, &wish.server, authority, clock::now()));
    made.map_err(|words| {
        format!("no kubeconfig can be made from Secret {}: {words}", secret_of(key, secret::CA).name)
    })
}

fn has_label(secret: &ObservedSecret) -> bool {
    secret.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(label::CLUSTER_NAME))
}

#[cfg(test)]
mod tests;
