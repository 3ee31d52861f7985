//! Kubernetes Events, written in the background and never at the cost of the work itself.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{Api, Client, api::PostParams};
use tokio::{sync::mpsc, time::Instant};
use tracing::debug;

use crate::{clock, leadership::Leadership, metrics::Metrics, throttle::Throttle};

/// Events that wait to be written; beyond that they are dropped and counted.
const WAITING: usize = 4096;
/// Events a second, so that a crowd of objects does not slow down the work that they are about.
const RATE: f64 = 20.0;
/// Events at once beyond that rate.
const BURST: u32 = 50;
/// How long an event waits while events arrive faster than they are written.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// An event that takes longer than this is given up.
const WRITE_LIMIT: Duration = Duration::from_secs(5);

/// Records what happened to objects.
#[derive(Clone, Debug)]
pub struct Recorder {
    sender: mpsc::Sender<Box<Note>>,
    metrics: Metrics,
}

/// How serious an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// An expected event.
    Normal,
    /// A problem that needs attention.
    Warning,
}

impl Recorder {
    /// A recorder and the task that writes what it records.
    pub fn new(
        client: Client,
        leadership: Leadership,
        metrics: Metrics,
        component: &'static str,
    ) -> (Self, impl Future<Output = ()>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self { sender, metrics }, write_all(client, leadership, component, receiver))
    }

    /// Records an event. It is written soon, unless too many wait already.
    pub fn record(&self, object: &ObjectReference, severity: Severity, reason: &str, message: String) {
        let note = Note {
            object: object.clone(),
            severity,
            reason: reason.into(),
            message: message.into(),
            at: clock::now(),
        };
        if self.sender.try_send(Box::new(note)).is_err() {
            self.metrics.event_dropped();
        }
    }
}

/// A queued event: a third of an Event's size, because thousands may wait.
#[derive(Debug)]
struct Note {
    object: ObjectReference,
    severity: Severity,
    reason: Box<str>,
    message: Box<str>,
    at: Timestamp,
}

impl Note {
    fn into_event(self, component: &str) -> Event {
        let namespace = self.object.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let name = self.object.name.as_deref().unwrap_or_default();
        let kind = match self.severity {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        };
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:x}", self.at.as_nanosecond())),
                namespace: Some(namespace),
                ..ObjectMeta::default()
            },
            involved_object: self.object,
            reason: Some(self.reason.into()),
            message: Some(self.message.into()),
            type_: Some(kind.to_owned()),
            source: Some(EventSource { component: Some(component.to_owned()), host: None }),
            reporting_component: Some(component.to_owned()),
            first_timestamp: Some(Time(self.at)),
            last_timestamp: Some(Time(self.at)),
            count: Some(1),
            ..Event::default()
        }
    }
}

/// Waits until an event may be written. While more and more of them wait, a crowd of objects is at work, and that comes
/// first.
async fn take_turn(throttle: &Throttle, waiting: impl Fn() -> usize) {
    let deadline = Instant::now() + LONGEST_WAIT;
    loop {
        let before = waiting();
        throttle.pass().await;
        if waiting() <= before || Instant::now() >= deadline {
            return;
        }
    }
}

async fn write_all(
    client: Client,
    leadership: Leadership,
    component: &'static str,
    mut notes: mpsc::Receiver<Box<Note>>,
) {
    let throttle = Throttle::new(RATE, BURST);
    while let Some(note) = notes.recv().await {
        take_turn(&throttle, || notes.len()).await;
        if !leadership.is_held() {
            continue;
        }
        let event = note.into_event(component);
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let api: Api<Event> = Api::namespaced(client.clone(), &namespace);
        // An event is worth one try: the condition it comes from says the same for good.
        let params = PostParams::default();
        match tokio::time::timeout(WRITE_LIMIT, api.create(&params, &event)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => debug!(%error, reason = event.reason, "event not written"),
            Err(_) => debug!(reason = event.reason, "event took too long"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn events_wait_for_a_crowd_to_pass_but_not_for_long() {
        tokio::time::advance(Duration::from_hours(1)).await;
        let throttle = Throttle::new(RATE, 1);
        throttle.pass().await;
        // How often the crowd grows; what an event waits then.
        for (growths, wait) in [(0, 50), (1, 100), (4, 250), (1000, 1000)] {
            let asked = AtomicUsize::new(0);
            let waiting = || {
                // Asked twice a turn: before it and after it.
                let turn = asked.fetch_add(1, Ordering::Relaxed).div_ceil(2);
                turn.min(growths)
            };
            let started = Instant::now();
            take_turn(&throttle, waiting).await;
            assert_eq!(started.elapsed().as_millis(), wait, "{growths}");
        }
    }
}
