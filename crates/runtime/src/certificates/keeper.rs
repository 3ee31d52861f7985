//! Keeps the Secret, this replica's serving certificate and the CA bundles up to date.
//!
//! At rest it only watches. When something differs from what is wanted, it first reads the Secret past all watches. So no
//! replica writes an old bundle over a newer one: its write is guarded by the version of the target that it saw, and
//! the Secret that it read afterwards is at least as new as the one that any bundle seen there came from. For the same
//! reason a replaced authority never signs again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::Future,
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, future::join_all};
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::{ObjectReference, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::ApiResource,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};
use tracing::{debug, info, warn};

use super::{
    FIELD_MANAGER, WebhookIdentity,
    contention::Contention,
    plan::{Spread, Step, Stored, apply, decide},
    targets::{Target, TargetKind},
};
use crate::{
    clock,
    controller::with_causes,
    events::{Recorder, Severity},
    readiness::Gate,
    tls::{CertificateError, ServingCertificate},
};

/// How long API servers have to load a new bundle, which they learn of by a watch.
const SETTLE: Duration = Duration::from_secs(5);
/// The time limit of a request.
const REQUEST_LIMIT: Duration = Duration::from_secs(15);
/// The wait after the first failure; it doubles with each further one.
const FIRST_RETRY: Duration = Duration::from_millis(500);
/// The longest wait after a failure, and the wait after a refusal: permissions may be given at any time.
const LONGEST_RETRY: Duration = Duration::from_mins(1);
/// What an API server says that is not up yet.
const NOT_YET: &str = "not yet ready to handle request";
/// How many conflicts in a row end an attempt.
const CONFLICT_TRIES: u32 = 5;
/// The longest timer: a machine may sleep, and its clock may be set.
const LONGEST_NAP: Duration = Duration::from_hours(1);

/// Why certificates or bundles could not be updated.
#[derive(Debug, thiserror::Error)]
enum KeeperError {
    #[error("cannot {verb} {kind} {name}: {reason}")]
    Request { verb: &'static str, kind: &'static str, name: String, reason: String },
    #[error("Secret {0} is changed by other writers all the time")]
    Contended(String),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// How a request ended.
enum Outcome<T> {
    Done(T),
    /// The object was changed or deleted meanwhile: the watch reports it.
    Overtaken,
    /// The server rejects the request, and would reject it again.
    Refused(String),
    Failed(String),
}

/// Creates, shares and renews the certificates of one Service's webhooks.
pub(crate) struct Keeper {
    client: Client,
    us: WebhookIdentity,
    crds: Vec<String>,
    serving: Arc<ServingCertificate>,
    gate: Arc<Gate>,
    recorder: Recorder,
    state: State,
}

#[derive(Default)]
struct State {
    secret: Seen,
    /// The last valid contents, from which a deleted Secret is restored.
    held: Option<Stored>,
    /// The authority that signed the serving certificate, and when to renew that certificate.
    leaf: Option<(String, Timestamp)>,
    targets: BTreeMap<TargetKey, Target>,
    /// Targets that we were not allowed to write.
    refused: BTreeMap<TargetKey, Refusal>,
    /// Our recent writes.
    contentions: BTreeMap<TargetKey, Contention>,
    listed: BTreeSet<Source>,
    carried: Option<Carried>,
}

type TargetKey = (TargetKind, String);

/// A write that the API server rejected, and when to retry it if neither target nor bundle changes before.
struct Refusal {
    target: Target,
    bundle: String,
    until: Instant,
}

impl Refusal {
    fn stands(&self, target: Option<&Target>, bundle: &str, now: Instant) -> bool {
        now < self.until && self.bundle == bundle && Some(&self.target) == target
    }
}

/// A bundle that all writable targets carry, since when, and the targets that lack it.
struct Carried {
    bundle: String,
    lacking: Vec<TargetKey>,
    since: Instant,
}

/// The Secret as last seen on the watch, which may be late.
#[derive(Default)]
enum Seen {
    #[default]
    NotYet,
    Absent,
    Present(Box<Secret>),
}

/// A watch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Secret,
    Crd(String),
    Mutating,
    Validating,
}

enum News {
    Secret(Option<Box<Secret>>),
    Target(TargetKind, String, Option<Target>),
    /// The initial list is complete: only objects with these names exist.
    Listed(Source, BTreeSet<String>),
    Trouble(Source, String),
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").field("us", &self.us).finish_non_exhaustive()
    }
}

impl Keeper {
    /// A keeper for the webhooks behind a Service and the CRDs that may name them.
    pub(crate) fn new(
        client: Client,
        us: WebhookIdentity,
        crds: Vec<String>,
        serving: Arc<ServingCertificate>,
        gate: Arc<Gate>,
        recorder: Recorder,
    ) -> Self {
        gate.hold("there is no certificate yet");
        Self { client, us, crds, serving, gate, recorder, state: State::default() }
    }

    /// Watches and updates; never returns.
    pub(crate) async fn run(mut self) {
        let (sender, mut news) = mpsc::channel(64);
        let watches = self.watches(&sender);
        drop(sender);
        let work = async move {
            let mut retry = FIRST_RETRY;
            let mut wake = None;
            loop {
                let nap = async {
                    match wake {
                        Some(moment) => tokio::time::sleep_until(moment).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    told = news.recv() => match told {
                        Some(told) => self.hear(told),
                        None => return,
                    },
                    () = nap => {}
                }
                // What arrived meanwhile is handled in the same pass.
                while let Ok(told) = news.try_recv() {
                    self.hear(told);
                }
                wake = match self.look().await {
                    Ok(next) => {
                        retry = FIRST_RETRY;
                        next
                    }
                    Err(error) => {
                        warn!(%error, "cannot update the webhooks' certificates, retrying");
                        self.gate.hold(&error.to_string());
                        let again = Instant::now() + retry;
                        retry = (retry * 2).min(LONGEST_RETRY);
                        Some(again)
                    }
                };
            }
        };
        tokio::join!(work, join_all(watches));
    }

    fn watches(&self, sender: &mpsc::Sender<News>) -> Vec<futures::future::BoxFuture<'static, ()>> {
        let us = Arc::new(self.us.clone());
        let named = |name: &str| watcher::Config::default().fields(&format!("metadata.name={name}"));
        let mut watches: Vec<futures::future::BoxFuture<'static, ()>> = Vec::new();
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &us.namespace);
        let report = |secret: Option<Secret>, _: String| News::Secret(secret.map(Box::new));
        watches.push(Box::pin(observe(secrets, named(&us.secret), Source::Secret, sender.clone(), report)));
        for name in &self.crds {
            let resource = ApiResource::erase::<CustomResourceDefinition>(&());
            let crds: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            let us = Arc::clone(&us);
            let report = move |object: Option<DynamicObject>, name: String| {
                let target = object.and_then(|object| Target::of_crd(&object, &us));
                News::Target(TargetKind::Crd, name, target)
            };
            let source = Source::Crd(name.clone());
            watches.push(Box::pin(observe(crds, named(name), source, sender.clone(), report)));
        }
        let config = watcher::Config::default();
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let ours = Arc::clone(&us);
        let report = move |object: Option<MutatingWebhookConfiguration>, name: String| {
            let target = object.and_then(|object| Target::of_mutating(&object, &ours));
            News::Target(TargetKind::Mutating, name, target)
        };
        watches.push(Box::pin(observe(mutating, config.clone(), Source::Mutating, sender.clone(), report)));
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        let report = move |object: Option<ValidatingWebhookConfiguration>, name: String| {
            let target = object.and_then(|object| Target::of_validating(&object, &us));
            News::Target(TargetKind::Validating, name, target)
        };
        watches.push(Box::pin(observe(validating, config, Source::Validating, sender.clone(), report)));
        watches
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Secret(secret) => self.state.secret = secret.map_or(Seen::Absent, Seen::Present),
            News::Target(kind, name, target) => {
                let key = (kind, name);
                match target {
                    Some(target) => self.state.targets.insert(key, target),
                    None => self.state.targets.remove(&key),
                };
            }
            News::Listed(source, names) => {
                let kind = match &source {
                    Source::Secret => None,
                    Source::Crd(_) => Some(TargetKind::Crd),
                    Source::Mutating => Some(TargetKind::Mutating),
                    Source::Validating => Some(TargetKind::Validating),
                };
                match &source {
                    // The only object that this watch selects does not exist.
                    Source::Secret if names.is_empty() => self.state.secret = Seen::Absent,
                    Source::Crd(name) if names.is_empty() => {
                        self.state.targets.remove(&(TargetKind::Crd, name.clone()));
                    }
                    Source::Secret | Source::Crd(_) => {}
                    Source::Mutating | Source::Validating => {
                        self.state.targets.retain(|key, _| Some(key.0) != kind || names.contains(&key.1));
                    }
                }
                self.state.listed.insert(source);
            }
            News::Trouble(source, words) => {
                if !self.state.listed.contains(&source) {
                    self.gate.hold(&format!("cannot watch {source:?}: {words}"));
                }
            }
        }
    }

    fn all_listed(&self) -> bool {
        self.state.listed.len() == self.crds.len() + 3
    }

    /// Updates whatever is out of date; returns when to look again even without an event.
    async fn look(&mut self) -> Result<Option<Instant>, KeeperError> {
        let now = clock::now();
        let State { targets, refused, contentions, .. } = &mut self.state;
        refused.retain(|key, _| targets.contains_key(key));
        contentions.retain(|key, _| targets.contains_key(key));
        // The watch may be late: it is trusted only to find that there is nothing to do.
        let believed = match &self.state.secret {
            Seen::NotYet => return Ok(None),
            Seen::Absent => None,
            Seen::Present(secret) => read(secret).ok(),
        };
        let idle = believed.as_ref().is_some_and(|stored| {
            let waits = matches!(decide(stored, now, self.spread(stored)), Step::Wait(_));
            waits && self.has_leaf_of(stored, now) && self.strays(&stored.bundle()).is_empty()
        });
        let stored = match believed {
            Some(stored) if idle => stored,
            _ => self.work(now).await?,
        };
        let bundle = stored.bundle();
        self.note_carried(&bundle);
        let spread = self.spread(&stored);
        let step = decide(&stored, now, spread);
        self.state.held = Some(stored.clone());
        if self.all_listed() && self.strays(&bundle).is_empty() {
            self.gate.open();
        } else if self.all_listed() {
            let names = self.strays(&bundle);
            let names: Vec<_> = names.iter().map(|(kind, name)| format!("{} {name}", kind.name())).collect();
            self.gate.hold(&format!("not trusted yet by {}", names.join(", ")));
        }
        Ok(Some(self.next_look(now, &stored, step, spread)))
    }

    fn next_look(&self, now: Timestamp, stored: &Stored, step: Step, spread: Spread) -> Instant {
        let after = |moment: Timestamp| Duration::try_from(now.duration_until(moment)).unwrap_or_default();
        let mut nap = LONGEST_NAP;
        // A step that has become possible meanwhile is taken at once.
        nap = nap.min(if let Step::Wait(until) = step { after(until) } else { Duration::ZERO });
        if let Some((_, renew_at)) = &self.state.leaf {
            nap = nap.min(after(*renew_at));
        }
        if stored.next.is_some()
            && spread == Spread::Growing
            && let Some(carried) = &self.state.carried
        {
            nap = nap.min((carried.since + SETTLE).saturating_duration_since(Instant::now()));
        }
        let bundle = stored.bundle();
        for key in self.lacking(&bundle) {
            if let Some(until) = self.left_until(&key, &bundle) {
                nap = nap.min(until.saturating_duration_since(Instant::now()));
            }
        }
        Instant::now() + nap
    }

    /// Takes all steps that are due, from the Secret as the server has it now.
    async fn work(&mut self, now: Timestamp) -> Result<Stored, KeeperError> {
        let mut stored = None;
        for _ in 0..CONFLICT_TRIES {
            let Some(found) = self.settle_secret(now).await? else { continue };
            stored = Some(found);
            break;
        }
        let stored = stored.ok_or_else(|| KeeperError::Contended(self.secret_name()))?;
        if !self.has_leaf_of(&stored, now) {
            let leaf = stored.active.issue(&self.us.dns_names(), now)?;
            self.serving.replace("the certificate just made", leaf.chain.as_bytes(), leaf.key.as_bytes())?;
            info!(renew_at = %leaf.renew_at, "serving webhooks with a new certificate");
            self.state.leaf = Some((stored.active.certificate.clone(), leaf.renew_at));
        }
        self.inject(&stored.bundle()).await?;
        Ok(stored)
    }

    /// Takes the steps that are due; `None` after a conflict.
    async fn settle_secret(&mut self, now: Timestamp) -> Result<Option<Stored>, KeeperError> {
        let Some(secret) = self.read_secret().await? else {
            let stored = match &self.state.held {
                Some(held) => held.clone(),
                None => Stored::begin(now)?,
            };
            info!(secret = %self.secret_name(), "storing the authority for the webhooks' certificates");
            return Ok(self.create_secret(&stored).await?.then_some(stored));
        };
        let mut stored = match read(&secret) {
            Ok(stored) => stored,
            Err(why) => {
                // Only a new authority helps. An event reports it, and the process keeps running.
                let words = format!(
                    "Secret {} held no usable authority for the webhooks' certificates and was given one: {why}",
                    self.secret_name()
                );
                warn!("{words}");
                let fresh = match &self.state.held {
                    Some(held) => held.clone(),
                    None => Stored::begin(now)?,
                };
                if !self.write_secret(&secret, &fresh).await? {
                    return Ok(None);
                }
                self.record_replaced(&secret, words);
                return Ok(Some(fresh));
            }
        };
        self.note_carried(&stored.bundle());
        let step = decide(&stored, now, self.spread(&stored));
        if !matches!(step, Step::Wait(_)) {
            info!(?step, secret = %self.secret_name(), "changing the authority for the webhooks' certificates");
            stored = apply(step, stored, now)?;
            if !self.write_secret(&secret, &stored).await? {
                return Ok(None);
            }
        }
        Ok(Some(stored))
    }

    /// Writes the bundle to the targets that lack it.
    async fn inject(&mut self, bundle: &str) -> Result<(), KeeperError> {
        let mut failure = None;
        for key in self.strays(bundle) {
            let Some(target) = self.state.targets.get(&key) else { continue };
            let (kind, name) = (key.0, key.1.clone());
            let patch = target.patch(kind, bundle);
            let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
            let outcome = match kind {
                TargetKind::Crd => {
                    let resource = ApiResource::erase::<CustomResourceDefinition>(&());
                    let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
                    let patch = Patch::Merge(&patch);
                    limited(async { api.patch(&name, &params, &patch).await.map(|it| it.resource_version()) })
                        .await
                }
                TargetKind::Mutating => {
                    let api: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
                    let patch = Patch::Strategic(&patch);
                    limited(async { api.patch(&name, &params, &patch).await.map(|it| it.resource_version()) })
                        .await
                }
                TargetKind::Validating => {
                    let api: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
                    let patch = Patch::Strategic(&patch);
                    limited(async { api.patch(&name, &params, &patch).await.map(|it| it.resource_version()) })
                        .await
                }
            };
            let error = |reason| KeeperError::Request {
                verb: "patch",
                kind: kind.name(),
                name: name.clone(),
                reason,
            };
            match outcome {
                Outcome::Done(version) => {
                    info!(kind = kind.name(), name, "wrote the CA bundle");
                    self.state.refused.remove(&key);
                    if self.state.contentions.entry(key.clone()).or_default().wrote(bundle, Instant::now()) {
                        let words = format!(
                            "{} keeps overwriting caBundle of the webhooks behind Service {}/{}, which this manager sets: let only one of the two do so; this manager waits longer each time from now on",
                            target.rival(),
                            self.us.namespace,
                            self.us.service
                        );
                        warn!(kind = kind.name(), name, "{words}");
                        let reference = target.reference(kind, &name);
                        self.recorder.record(&reference, Severity::Warning, "WebhookBundleContested", words);
                    }
                    if let Some(target) = self.state.targets.get_mut(&key) {
                        target.resource_version = version;
                        target.set(bundle);
                    }
                }
                Outcome::Overtaken => debug!(kind = kind.name(), name, "another writer was faster"),
                Outcome::Refused(reason) => {
                    warn!(error = %error(reason), "the API server does not trust this webhook");
                    let until = Instant::now() + LONGEST_RETRY;
                    let refusal = Refusal { target: target.clone(), bundle: bundle.to_owned(), until };
                    self.state.refused.insert(key.clone(), refusal);
                }
                Outcome::Failed(reason) => failure = Some(error(reason)),
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Targets that have another bundle.
    fn lacking(&self, bundle: &str) -> Vec<TargetKey> {
        let targets = self.state.targets.iter();
        targets.filter(|(_, target)| !target.carries(bundle)).map(|(key, _)| key.clone()).collect()
    }

    /// Targets that have another bundle and can be written now.
    fn strays(&self, bundle: &str) -> Vec<TargetKey> {
        let lacking = self.lacking(bundle).into_iter();
        lacking.filter(|key| self.left_until(key, bundle).is_none()).collect()
    }

    /// Until when a target is not written, because the server rejects it or because another writer contests it.
    fn left_until(&self, key: &TargetKey, bundle: &str) -> Option<Instant> {
        let now = Instant::now();
        let target = self.state.targets.get(key);
        let refused = self.state.refused.get(key).filter(|it| it.stands(target, bundle, now));
        let paused = self.state.contentions.get(key).and_then(|it| it.paused_until(bundle, now));
        refused.map(|it| it.until).max(paused)
    }

    fn note_carried(&mut self, bundle: &str) {
        if !self.all_listed() || !self.strays(bundle).is_empty() {
            self.state.carried = None;
            return;
        }
        let lacking = self.lacking(bundle);
        let known = self.state.carried.as_ref();
        if known.is_none_or(|known| known.bundle != bundle || known.lacking != lacking) {
            let (bundle, since) = (bundle.to_owned(), Instant::now());
            self.state.carried = Some(Carried { bundle, lacking, since });
        }
    }

    fn spread(&self, stored: &Stored) -> Spread {
        let bundle = stored.bundle();
        match &self.state.carried {
            Some(carried)
                if carried.bundle == bundle
                    && carried.since.elapsed() >= SETTLE
                    && carried.lacking == self.lacking(&bundle)
                    && self.strays(&bundle).is_empty() =>
            {
                if carried.lacking.is_empty() {
                    Spread::Everywhere
                } else {
                    Spread::Possible
                }
            }
            _ => Spread::Growing,
        }
    }

    fn has_leaf_of(&self, stored: &Stored, now: Timestamp) -> bool {
        let leaf = self.state.leaf.as_ref();
        leaf.is_some_and(|(signer, renew_at)| *signer == stored.active.certificate && now < *renew_at)
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.us.namespace)
    }

    fn secret_name(&self) -> String {
        format!("{}/{}", self.us.namespace, self.us.secret)
    }

    fn failed<T>(&self, verb: &'static str, reason: String) -> Result<T, KeeperError> {
        Err(KeeperError::Request { verb, kind: "Secret", name: self.secret_name(), reason })
    }

    async fn read_secret(&self) -> Result<Option<Secret>, KeeperError> {
        let api = self.secrets();
        match limited(api.get_opt(&self.us.secret)).await {
            Outcome::Done(secret) => Ok(secret),
            Outcome::Overtaken => Ok(None),
            Outcome::Refused(reason) | Outcome::Failed(reason) => self.failed("read", reason),
        }
    }

    /// Creates the Secret; false if it exists already.
    async fn create_secret(&mut self, stored: &Stored) -> Result<bool, KeeperError> {
        let mut data = stored.data();
        if let Value::Object(fields) = &mut data {
            fields.retain(|_, value| !value.is_null());
        }
        let data = serde_json::from_value(data).unwrap_or_default();
        let secret = Secret {
            metadata: kube::api::ObjectMeta {
                name: Some(self.us.secret.clone()),
                ..kube::api::ObjectMeta::default()
            },
            data: Some(data),
            ..Secret::default()
        };
        let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
        let api = self.secrets();
        match limited(api.create(&params, &secret)).await {
            Outcome::Done(created) => {
                self.state.secret = Seen::Present(Box::new(created));
                Ok(true)
            }
            Outcome::Overtaken => Ok(false),
            Outcome::Refused(reason) | Outcome::Failed(reason) => self.failed("create", reason),
        }
    }

    /// Patches the Secret; false if it has changed since it was read.
    async fn write_secret(&mut self, secret: &Secret, stored: &Stored) -> Result<bool, KeeperError> {
        let patch = json!({
            "metadata": {"resourceVersion": secret.metadata.resource_version},
            "data": stored.data(),
        });
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        let api = self.secrets();
        let patch = Patch::Merge(&patch);
        match limited(api.patch(&self.us.secret, &params, &patch)).await {
            Outcome::Done(written) => {
                self.state.secret = Seen::Present(Box::new(written));
                Ok(true)
            }
            Outcome::Overtaken => Ok(false),
            Outcome::Refused(reason) | Outcome::Failed(reason) => self.failed("patch", reason),
        }
    }

    fn record_replaced(&self, secret: &Secret, words: String) {
        let target = ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Secret".into()),
            namespace: Some(self.us.namespace.clone()),
            name: Some(self.us.secret.clone()),
            uid: secret.metadata.uid.clone(),
            ..ObjectReference::default()
        };
        self.recorder.record(&target, Severity::Warning, "WebhookAuthorityReplaced", words);
    }
}

fn read(secret: &Secret) -> Result<Stored, String> {
    Stored::read(secret.data.as_ref().unwrap_or(&BTreeMap::new()))
}

async fn limited<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Outcome<T> {
    match tokio::time::timeout(REQUEST_LIMIT, request).await {
        Ok(Ok(done)) => Outcome::Done(done),
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => Outcome::Overtaken,
        // An API server that has just started has not loaded RBAC yet.
        Ok(Err(kube::Error::Api(status))) if status.code == 403 && status.message.contains(NOT_YET) => {
            Outcome::Failed(status.message.clone())
        }
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 400 | 403 | 422) => {
            Outcome::Refused(status.message.clone())
        }
        Ok(Err(error)) => Outcome::Failed(with_causes(&error)),
        Err(_) => Outcome::Failed(format!("no answer within {REQUEST_LIMIT:?}")),
    }
}

/// Sends on what a watch sees; never returns while the receiver lives.
async fn observe<K>(
    api: Api<K>,
    config: watcher::Config,
    source: Source,
    sender: mpsc::Sender<News>,
    report: impl Fn(Option<K>, String) -> News,
) where
    K: Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
{
    let mut listed = BTreeSet::new();
    let mut events = std::pin::pin!(watcher(api, config).default_backoff());
    while let Some(event) = events.next().await {
        let news = match event {
            Ok(Event::Init) => {
                listed.clear();
                continue;
            }
            Ok(Event::InitApply(object)) => {
                let name = object.name_any();
                listed.insert(name.clone());
                report(Some(object), name)
            }
            Ok(Event::Apply(object)) => {
                let name = object.name_any();
                report(Some(object), name)
            }
            Ok(Event::Delete(object)) => {
                let name = object.name_any();
                report(None, name)
            }
            Ok(Event::InitDone) => News::Listed(source.clone(), std::mem::take(&mut listed)),
            Err(error) => {
                debug!(?source, %error, "watch broken, retrying");
                News::Trouble(source.clone(), with_causes(&error))
            }
        };
        if sender.send(news).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn what_was_refused_is_tried_again_after_a_while_or_a_change() {
        let us = WebhookIdentity { namespace: "n".into(), service: "s".into(), secret: "x".into() };
        let target = |version: &str| {
            let config = json!({"service": {"namespace": "n", "name": "s"}});
            let crd = json!({
                "metadata": {"name": "c", "resourceVersion": version},
                "spec": {"conversion": {"webhook": {"clientConfig": config}}},
            });
            Target::of_crd(&serde_json::from_value(crd).unwrap(), &us).unwrap()
        };
        let (now, seen) = (Instant::now(), target("1"));
        let refusal = Refusal { target: seen.clone(), bundle: "a".into(), until: now + LONGEST_RETRY };
        assert!(refusal.stands(Some(&seen), "a", now));
        assert!(!refusal.stands(Some(&seen), "a", now + LONGEST_RETRY));
        assert!(!refusal.stands(Some(&seen), "b", now));
        assert!(!refusal.stands(Some(&target("2")), "a", now));
        assert!(!refusal.stands(None, "a", now));
    }

    #[tokio::test]
    async fn an_api_server_that_is_not_up_yet_refuses_nothing() {
        for (code, message, expected) in [
            (403, "forbidden: User \"u\" cannot patch resource", "refused"),
            (403, "Forbidden: not yet ready to handle request", "failed"),
            (422, "is invalid", "refused"),
            (409, "conflict", "overtaken"),
            (500, "etcdserver: no leader", "failed"),
        ] {
            let status = Status { code, ..Status::failure(message, "Reason") };
            let found = match limited::<()>(async { Err(kube::Error::Api(status.boxed())) }).await {
                Outcome::Done(()) => "done",
                Outcome::Overtaken => "overtaken",
                Outcome::Refused(_) => "refused",
                Outcome::Failed(_) => "failed",
            };
            assert_eq!(found, expected, "{message}");
        }
    }
}
