//! Leader election: one process at a time writes, by a Lease that all agree on.
//!
//! A candidate judges a holder by when it *itself* last saw the Lease change, never by comparing the holder's
//! clock with its own; so clocks that differ cannot make two leaders.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::clock;

/// Whether this process may write.
#[derive(Clone, Debug)]
pub struct Leadership {
    state: watch::Receiver<bool>,
}

impl Leadership {
    /// For a process that is alone by arrangement.
    pub fn always() -> Self {
        let (_sender, state) = watch::channel(true);
        Self { state }
    }

    /// Leadership that follows a channel.
    #[cfg(test)]
    pub(crate) fn following(state: watch::Receiver<bool>) -> Self {
        Self { state }
    }

    /// Whether this process leads now.
    pub fn is_held(&self) -> bool {
        *self.state.borrow()
    }

    /// Waits until this process leads.
    pub async fn acquired(&self) {
        let mut state = self.state.clone();
        if state.wait_for(|held| *held).await.is_err() {
            // The election ended without us: wait for the process to be stopped.
            std::future::pending::<()>().await;
        }
    }
}

/// The Lease and its timing.
#[derive(Clone, Debug)]
pub struct Election {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// This process.
    pub identity: String,
    /// How long candidates leave an unchanged Lease alone.
    pub lease_duration: Duration,
    /// How long a leader keeps leading without renewing the Lease.
    pub renew_deadline: Duration,
    /// How often leader and candidates look.
    pub retry_period: Duration,
}

/// The leader could not renew the Lease in time. Another process may lead now, so this one must end.
#[derive(Debug, thiserror::Error)]
#[error("leadership lost: Lease {namespace}/{name} could not be renewed within {renew_deadline:?}")]
pub struct LeadershipLost {
    namespace: String,
    name: String,
    renew_deadline: Duration,
}

impl Election {
    /// Stands for election until told to stop. The handle says whether this process leads.
    pub fn start(
        self,
        client: Client,
        stop: CancellationToken,
    ) -> (Leadership, impl Future<Output = Result<(), LeadershipLost>>) {
        let (sender, state) = watch::channel(false);
        (Leadership { state }, self.run(client, sender, stop))
    }

    async fn run(
        self,
        client: Client,
        leading: watch::Sender<bool>,
        stop: CancellationToken,
    ) -> Result<(), LeadershipLost> {
        let api: Api<Lease> = Api::namespaced(client, &self.namespace);
        let mut candidate = Candidate { election: &self, api: &api, seen: None };
        info!(lease = %format!("{}/{}", self.namespace, self.name), identity = %self.identity, "waiting to lead");
        loop {
            let won = tokio::select! {
                won = tokio::time::timeout(self.renew_deadline, candidate.try_acquire()) => won.unwrap_or(false),
                () = stop.cancelled() => return Ok(()),
            };
            if won {
                break;
            }
            tokio::select! {
                () = sleep(self.retry_period) => {}
                () = stop.cancelled() => return Ok(()),
            }
        }
        info!("leading");
        leading.send_replace(true);
        let mut renewed = Instant::now();
        loop {
            tokio::select! {
                () = sleep(self.retry_period) => {}
                () = stop.cancelled() => {
                    leading.send_replace(false);
                    candidate.release().await;
                    return Ok(());
                }
            }
            let left = self.renew_deadline.saturating_sub(renewed.elapsed());
            let attempt = tokio::time::timeout(left, candidate.try_acquire()).await;
            if attempt == Ok(true) {
                renewed = Instant::now();
            } else if renewed.elapsed() >= self.renew_deadline {
                leading.send_replace(false);
                return Err(LeadershipLost {
                    namespace: self.namespace.clone(),
                    name: self.name.clone(),
                    renew_deadline: self.renew_deadline,
                });
            }
        }
    }
}

struct Candidate<'a> {
    election: &'a Election,
    api: &'a Api<Lease>,
    /// The Lease as last seen, and when it was first seen so.
    seen: Option<(Lease, Instant)>,
}

impl Candidate<'_> {
    /// Takes or renews the Lease if that is allowed; says whether it is ours now.
    async fn try_acquire(&mut self) -> bool {
        match self.try_acquire_inner().await {
            Ok(won) => won,
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {
                debug!("another candidate took the Lease");
                false
            }
            Err(error) => {
                warn!(%error, lease = %self.election.name, "cannot read or write the Lease");
                false
            }
        }
    }

    async fn try_acquire_inner(&mut self) -> Result<bool, kube::Error> {
        let Some(lease) = self.api.get_opt(&self.election.name).await? else {
            let created = self.api.create(&PostParams::default(), &self.new_lease()).await?;
            self.seen = Some((created, Instant::now()));
            return Ok(true);
        };
        let now = Instant::now();
        let unchanged_since = match &self.seen {
            Some((known, since)) if known.metadata.resource_version == lease.metadata.resource_version => {
                *since
            }
            _ => now,
        };
        self.seen = Some((lease.clone(), unchanged_since));
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        let ours = holder == self.election.identity;
        // The holder's own word on how long its claim is good for.
        let claim = spec
            .lease_duration_seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or(self.election.lease_duration, Duration::from_secs);
        if !ours && !holder.is_empty() && now - unchanged_since < claim {
            return Ok(false);
        }
        let timestamp = MicroTime(clock::now());
        let mut next = lease;
        next.spec = Some(LeaseSpec {
            holder_identity: Some(self.election.identity.clone()),
            lease_duration_seconds: i32::try_from(self.election.lease_duration.as_secs()).ok(),
            acquire_time: if ours { spec.acquire_time } else { Some(timestamp.clone()) },
            renew_time: Some(timestamp),
            lease_transitions: Some(spec.lease_transitions.unwrap_or(0) + i32::from(!ours)),
            ..spec
        });
        // The resourceVersion that was read guards the write.
        let written = self.api.replace(&self.election.name, &PostParams::default(), &next).await?;
        self.seen = Some((written, Instant::now()));
        Ok(true)
    }

    /// Gives the Lease up so that the next leader need not wait.
    async fn release(&mut self) {
        let Some((lease, _)) = self.seen.take() else {
            return;
        };
        let mut next = lease;
        if let Some(spec) = &mut next.spec {
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
            spec.renew_time = Some(MicroTime(clock::now()));
        }
        let params = PostParams::default();
        let write = self.api.replace(&self.election.name, &params, &next);
        match tokio::time::timeout(Duration::from_secs(2), write).await {
            Ok(Ok(_)) => info!("leadership released"),
            Ok(Err(error)) => warn!(%error, "cannot release the Lease; it expires by itself"),
            Err(_) => warn!("releasing the Lease took too long; it expires by itself"),
        }
    }

    fn new_lease(&self) -> Lease {
        let timestamp = MicroTime(clock::now());
        Lease {
            metadata: ObjectMeta { name: Some(self.election.name.clone()), ..ObjectMeta::default() },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.election.identity.clone()),
                lease_duration_seconds: i32::try_from(self.election.lease_duration.as_secs()).ok(),
                acquire_time: Some(timestamp.clone()),
                renew_time: Some(timestamp),
                lease_transitions: Some(0),
                ..LeaseSpec::default()
            }),
        }
    }
}

/// A name for this process that no other has.
pub fn identity(host: &str) -> String {
    let nonce = clock::now().as_nanosecond();
    format!("{host}_{}-{nonce:x}", std::process::id())
}
