//! Releases that are asked for by name, read while the cluster is still being looked at.

use std::{collections::HashMap, sync::Mutex};

use capstan_api::provider::ProviderType;
use futures::future::join_all;
use tokio::sync::oneshot::{self, Receiver};

use super::Goal;
use crate::release::{Fetched, ReleaseError, Releases};
use capstan_management::inventory::Installed;

/// The part that a provider plays, its name, and its version.
type Key = (ProviderType, String, String);
type Reading = Receiver<Result<Fetched, ReleaseError>>;

/// Releases that are being read.
pub(super) struct Prefetch(Mutex<HashMap<Key, Reading>>);

impl Prefetch {
    /// Those that can be told from what is wanted alone, and the work of reading them.
    pub(super) fn begin(releases: &Releases<'_>, goal: Goal<'_>) -> (Self, impl Future<Output = ()>) {
        let asked = match goal {
            Goal::Versions(asked) => asked,
            Goal::Contract(_) => &[],
        };
        let (mut readings, mut work) = (HashMap::new(), Vec::new());
        for asked in asked {
            let Some(version) = &asked.version else { continue };
            let (done, reading) = oneshot::channel();
            readings.insert((asked.kind, asked.name.clone(), version.clone()), reading);
            work.push(async move {
                // Nobody may want it any more.
                let _ = done.send(releases.fetch(asked.kind, &asked.name, Some(version)).await);
            });
        }
        (Self(Mutex::new(readings)), async { drop(join_all(work).await) })
    }

    /// A release: the one that was read, or else it is fetched now.
    pub(super) async fn fetch(
        &self,
        releases: &Releases<'_>,
        provider: &Installed,
        version: &str,
    ) -> Result<Fetched, ReleaseError> {
        let key = (provider.kind, provider.name.clone(), version.to_owned());
        let reading = self.0.lock().ok().and_then(|mut it| it.remove(&key));
        if let Some(reading) = reading
            && let Ok(fetched) = reading.await
        {
            return fetched;
        }
        releases.fetch(provider.kind, &provider.name, Some(version)).await
    }
}
