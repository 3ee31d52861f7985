//! Releases that the goal names, read while the cluster is still being looked at.

use std::{collections::HashMap, sync::Mutex};

use capstan_api::provider::ProviderType;
use futures::future::join_all;
use tokio::sync::oneshot::{self, Receiver};

use super::UpgradeGoal;
use crate::{
    goal::VersionGoal,
    release::{Parsed, ReleaseError, Releases},
};
use capstan_management::inventory::Installed;

/// A provider's type, name and version.
type Key = (ProviderType, String, String);
type Reading<'a> = Receiver<Result<Parsed<'a>, ReleaseError>>;

/// Releases that are being read.
pub(super) struct Prefetch<'a>(Mutex<HashMap<Key, Reading<'a>>>);

impl<'a> Prefetch<'a> {
    /// The releases that the goal alone names, and the work of reading them.
    pub(super) fn begin(releases: Releases<'a>, goal: &'a UpgradeGoal) -> (Self, impl Future<Output = ()>) {
        let goals = match goal {
            UpgradeGoal::Versions(goals) => goals.as_slice(),
            UpgradeGoal::Contract(_) => &[],
        };
        let (mut readings, mut work) = (HashMap::new(), Vec::new());
        for goal in goals {
            let Some(version) = goal.version.exact() else { continue };
            let (done, reading) = oneshot::channel();
            readings.insert((goal.kind, goal.name.clone(), version.to_owned()), reading);
            work.push(async move {
                // The plan may have ended without it.
                let _ = done.send(releases.parse(goal.kind, &goal.name, &goal.version).await);
            });
        }
        (Self(Mutex::new(readings)), async { drop(join_all(work).await) })
    }

    /// A release: the one that was read, or else it is fetched now.
    pub(super) async fn take(
        &self,
        releases: Releases<'a>,
        provider: &Installed,
        version: &str,
    ) -> Result<Parsed<'a>, ReleaseError> {
        let key = (provider.kind, provider.name.clone(), version.to_owned());
        let reading = self.0.lock().ok().and_then(|mut it| it.remove(&key));
        if let Some(reading) = reading
            && let Ok(parsed) = reading.await
        {
            return parsed;
        }
        let version = VersionGoal::Exact(version.to_owned());
        releases.parse(provider.kind, &provider.name, &version).await
    }
}
