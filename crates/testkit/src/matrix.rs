//! A scene under every fault at every request of the controller: each time it must come to the same end.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use capstan_api::cluster::v1beta2::Cluster;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use k8s_openapi::ByteString;
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams},
    config::Kubeconfig,
    core::ApiResource,
};
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    Plane, RunningManager, Story, Which,
    board::Board,
    faults::{Injection, RequestId, Transport},
    wait::LIMIT,
};

/// How often an undisturbed scene is played: its end must be the same each time, and its requests are put together.
const REHEARSALS: usize = 3;
/// How often a run is tried until its fault strikes.
const TRIES: usize = 3;
/// Without requests for so long, an undisturbed controller has come to rest.
const REST: Duration = Duration::from_millis(400);
/// How long a fault may take to strike after the end state is reached: events are written in the background.
const LATE_FAULT: Duration = Duration::from_secs(1);
/// How long a controller may take to come to rest.
const RESTLESS: Duration = Duration::from_secs(10);

/// Something to happen: objects that are made, a provider that does its part, waits for what core answers.
#[derive(Clone, Copy)]
pub struct Scene {
    /// Its name, which is fit for a namespace.
    pub name: &'static str,
    /// Plays it to the end.
    pub play: for<'a> fn(&'a Stage) -> BoxFuture<'a, ()>,
    /// Something that core must answer to, and its undoing: a controller that has stopped to look would come to the
    /// same end, too.
    pub probe: for<'a> fn(&'a Stage) -> BoxFuture<'a, ()>,
}

impl std::fmt::Debug for Scene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scene").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Where a scene is played.
#[derive(Debug)]
pub struct Stage {
    /// Its namespace and client.
    pub story: Story,
    board: Arc<Board>,
    /// When core has answered to what happened.
    reached: Mutex<Vec<Instant>>,
}

impl Stage {
    /// Waits for core's answer: an object satisfies a condition. Wait for it to be there before it is to be gone.
    pub async fn until(
        &self,
        kind: &ApiResource,
        name: &str,
        what: &str,
        condition: impl Fn(Option<&DynamicObject>) -> bool,
    ) {
        let key = (self.story.namespace.as_str(), name);
        if let Err(last) = self.board.until(kind, key, LIMIT, condition).await {
            let last = last.map(|object| normal(&object)).unwrap_or_default();
            panic!("{name} is not {what} within {LIMIT:?}; last seen: {last}");
        }
        self.reached();
    }

    fn reached(&self) {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
    }

    /// The time from a moment to the next answer.
    fn next_after(&self, moment: Instant) -> Option<Duration> {
        let reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        reached.iter().find(|at| **at >= moment).map(|at| *at - moment)
    }
}

/// What became of the runs of one scene.
#[derive(Debug, Default)]
pub struct Tally {
    /// Requests of the undisturbed controller.
    pub requests: usize,
    /// Runs whose fault struck.
    pub ran: usize,
    /// Runs that came to the same end.
    pub survived: usize,
    /// Faults that never struck, though the undisturbed controller sent their requests each time.
    pub missed: Vec<String>,
    /// Faults that never struck at requests which it sends only sometimes: as the server is faster or slower.
    pub rare: usize,
    /// Scene, request, fault, and what was different.
    pub failures: Vec<String>,
    /// From the fault to the next answer of core, and where that took longest.
    pub slowest: (Duration, String),
    /// Writes beyond those of the undisturbed controller, and where there were most.
    pub most_writes: (usize, String),
}

/// A control plane on which scenes are played under faults.
pub struct Matrix {
    plane: Arc<Plane>,
    client: Client,
    kinds: Vec<ApiResource>,
    board: Arc<Board>,
    parallel: usize,
    most_extra_writes: usize,
    start: Start,
}

/// Starts the controller that is put to the test.
type Start = Box<dyn Fn(&Story, Client) -> RunningManager + Send + Sync>;

impl std::fmt::Debug for Matrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Matrix").field("kinds", &self.kinds).finish_non_exhaustive()
    }
}

/// The objects of a namespace, less what differs between any two runs.
type EndState = BTreeMap<String, Value>;

struct Rehearsed {
    end: EndState,
    requests: BTreeMap<RequestId, Sent>,
    writes: usize,
}

/// How a request went in rehearsals.
#[derive(Default)]
struct Sent {
    /// In how many of them it was sent.
    rehearsals: usize,
    /// The most events that it has brought.
    events: usize,
}

struct Run {
    transport: Transport,
    stage: Stage,
    failure: Option<String>,
    /// The end, and the requests on the way with the events that each has brought, before the probe.
    rehearsed: Option<(EndState, Vec<(RequestId, usize)>)>,
}

impl Run {
    fn writes(&self) -> Vec<RequestId> {
        self.transport.requests().into_iter().filter(RequestId::is_write).collect()
    }
}

impl Matrix {
    /// Scenes on this plane end with the objects of these kinds, beside Clusters. So many are played at a time, and
    /// none may cost more than so many writes beyond those of the undisturbed controller.
    pub async fn new(
        plane: Arc<Plane>,
        mut kinds: Vec<ApiResource>,
        parallel: usize,
        most_extra_writes: usize,
    ) -> Self {
        let client = plane.client().await;
        kinds.push(ApiResource::erase::<Cluster>(&()));
        let board = Arc::new(Board::new(&client, &kinds));
        let start: Start = Box::new(|story, client| story.manager_on(client, Which::Core));
        Self { plane, client, kinds, board, parallel, most_extra_writes, start }
    }

    /// The same with another controller than core's.
    #[must_use]
    pub fn of(mut self, start: impl Fn(&Story, Client) -> RunningManager + Send + Sync + 'static) -> Self {
        self.start = Box::new(start);
        self
    }

    /// Plays a scene undisturbed, and then once for each fault at each request.
    pub async fn run(&self, scene: Scene) -> Tally {
        let rehearsed = self.rehearse(scene).await;
        let mut tally = Tally { requests: rehearsed.requests.len(), ..Tally::default() };
        let injections = rehearsed.requests.iter().flat_map(|(request, sent)| {
            let faults = request.faults(sent.events).into_iter();
            let is_regular = sent.rehearsals == REHEARSALS;
            faults.map(move |fault| (is_regular, Injection { request: request.clone(), fault }))
        });
        let mut runs = stream::iter(injections.collect::<Vec<_>>())
            .map(|(is_regular, injection)| {
                let rehearsed = &rehearsed;
                async move {
                    let what = injection.to_string();
                    (is_regular, what, self.run_until_struck(scene, rehearsed, injection).await)
                }
            })
            .buffer_unordered(self.parallel);
        while let Some((is_regular, what, run)) = runs.next().await {
            let Some(run) = run else {
                if is_regular {
                    tally.missed.push(format!("{}: {what}", scene.name));
                } else {
                    tally.rare += 1;
                }
                continue;
            };
            tally.ran += 1;
            let writes = run.writes();
            let extra = writes.len().saturating_sub(rehearsed.writes);
            if extra > tally.most_writes.0 {
                tally.most_writes = (extra, what.clone());
            }
            let struck = run.transport.fired_at();
            let recovery = struck.and_then(|moment| run.stage.next_after(moment)).unwrap_or_default();
            if recovery > tally.slowest.0 {
                tally.slowest = (recovery, what.clone());
            }
            let failure = run.failure.or_else(|| {
                let list = || writes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                (extra > self.most_extra_writes)
                    .then(|| format!("{extra} writes more than undisturbed: {}", list()))
            });
            match failure {
                None => tally.survived += 1,
                Some(failure) => tally.failures.push(format!("{}: {what}: {failure}", scene.name)),
            }
        }
        tally
    }

    async fn rehearse(&self, scene: Scene) -> Rehearsed {
        let mut rehearsed: Option<Rehearsed> = None;
        for _ in 0..REHEARSALS {
            let run = self.play(scene, None, None).await;
            if let Some(failure) = run.failure {
                panic!("{} undisturbed: {failure}", scene.name);
            }
            let writes = run.writes().len();
            let (end, requests) = run.rehearsed.expect("an undisturbed run reports how it went");
            let known = rehearsed.get_or_insert_with(|| Rehearsed {
                end: end.clone(),
                requests: BTreeMap::new(),
                writes: 0,
            });
            assert_eq!(known.end, end, "{} has two ends without any fault", scene.name);
            known.writes = known.writes.max(writes);
            for (request, events) in requests {
                let sent = known.requests.entry(request).or_default();
                sent.rehearsals += 1;
                sent.events = events.max(sent.events);
            }
        }
        rehearsed.expect("rehearsed at least once")
    }

    async fn run_until_struck(
        &self,
        scene: Scene,
        rehearsed: &Rehearsed,
        injection: Injection,
    ) -> Option<Run> {
        for _ in 0..TRIES {
            let run = self.play(scene, Some(injection.clone()), Some(&rehearsed.end)).await;
            // A run that comes to a bad end without its fault is a bad end all the same.
            if run.transport.fired_at().is_some() || run.failure.is_some() {
                return Some(run);
            }
        }
        None
    }

    /// Plays a scene in a namespace of its own, with a controller of its own.
    async fn play(&self, scene: Scene, injection: Option<Injection>, expected: Option<&EndState>) -> Run {
        let story = Story::begin_as(Arc::clone(&self.plane), self.client.clone(), scene.name).await;
        let stage = Stage { story, board: Arc::clone(&self.board), reached: Mutex::default() };
        let transport = Transport::new(self.client.clone(), injection);
        let mut manager = Controller::start(&self.start, &stage.story, &transport);
        let play = async {
            (scene.play)(&stage).await;
            let mut rehearsed = None;
            let end = if let Some(expected) = expected {
                self.until_end(&stage.story, expected).await?;
                stage.reached();
                transport.fired_within(LATE_FAULT).await;
                expected.clone()
            } else {
                until_rest(&transport).await?;
                let end = self.end_state(&stage.story).await;
                let requests = transport.requests().into_iter();
                let with_events = requests.map(|request| (request.clone(), transport.events(&request)));
                rehearsed = Some((end.clone(), with_events.collect()));
                end
            };
            // The manager, or its successor after a crash, must still run. Nothing else shows a late fault.
            until_rest(&transport).await?;
            (scene.probe)(&stage).await;
            self.until_end(&stage.story, &end).await?;
            stage.reached();
            until_rest(&transport).await?;
            match difference(&end, &self.end_state(&stage.story).await) {
                None => Ok(rehearsed),
                Some(difference) => Err(difference),
            }
        };
        let play = AssertUnwindSafe(play).catch_unwind();
        let played = tokio::select! {
            played = play => played,
            () = manager.replace_after_crash(&self.start, &stage.story, &transport) => unreachable!("it goes on for ever"),
        };
        let (rehearsed, mut failure) = match played {
            Ok(Ok(rehearsed)) => (rehearsed, None),
            Ok(Err(failure)) => (None, Some(failure)),
            Err(panic) => (None, Some(panic_text(&*panic))),
        };
        manager.stop().await;
        if let (None, Some(expected)) = (&failure, expected) {
            // What was under way when the end was reached may have changed it.
            failure = difference(expected, &self.end_state(&stage.story).await);
        }
        Run { transport, stage, failure, rehearsed }
    }

    async fn until_end(&self, story: &Story, expected: &EndState) -> Result<(), String> {
        for kind in &self.kinds {
            for (key, wanted) in expected {
                let Some(name) = key.strip_prefix(&format!("{}/", kind.plural)) else { continue };
                let key = (story.namespace.as_str(), name);
                let is_wanted =
                    |object: Option<&DynamicObject>| object.is_some_and(|it| normal(it) == *wanted);
                if self.board.until(kind, key, LIMIT, is_wanted).await.is_err() {
                    let end = self.end_state(story).await;
                    return Err(difference(expected, &end).unwrap_or_else(|| "the end came too late".into()));
                }
            }
        }
        Ok(())
    }

    async fn end_state(&self, story: &Story) -> EndState {
        let mut end = EndState::new();
        for kind in &self.kinds {
            let api = Api::<DynamicObject>::namespaced_with(self.client.clone(), &story.namespace, kind);
            for object in api.list(&ListParams::default()).await.unwrap() {
                end.insert(format!("{}/{}", kind.plural, object.name_any()), normal(&object));
            }
        }
        end
    }
}

async fn until_rest(transport: &Transport) -> Result<(), String> {
    let rest = tokio::time::timeout(RESTLESS, transport.quiet_for(REST)).await;
    rest.map_err(|_| format!("it still sends requests after {RESTLESS:?}"))
}

/// The manager of a run, and its successor after a crash.
struct Controller {
    manager: Option<RunningManager>,
}

impl Controller {
    fn start(start: &Start, story: &Story, transport: &Transport) -> Self {
        Self { manager: Some(start(story, transport.client())) }
    }

    /// Once the manager has crashed, starts another one. Never ends.
    async fn replace_after_crash(&mut self, start: &Start, story: &Story, transport: &Transport) {
        transport.crash().await;
        if let Some(crashed) = self.manager.take() {
            crashed.crash().await;
        }
        self.manager = Some(start(story, transport.client_after_crash()));
        std::future::pending::<()>().await;
    }

    async fn stop(self) {
        if let Some(manager) = self.manager {
            manager.stop().await;
        }
    }
}

/// An object less what differs between any two runs.
fn normal(object: &DynamicObject) -> Value {
    fn strip(value: &mut Value) {
        const VARYING: [&str; 7] = [
            "capstan.dev/infrastructure-id",
            "lastTransitionTime",
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "managedFields",
            "namespace",
        ];
        match value {
            Value::Object(fields) => {
                fields.retain(|name, _| !VARYING.contains(&name.as_str()));
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    // Lists of built-in kinds leave out what every item would repeat.
    let untyped = DynamicObject { types: None, ..object.clone() };
    let mut value = serde_json::to_value(untyped).unwrap();
    strip(&mut value);
    if let Some(kubeconfig) = value.pointer_mut("/data/value") {
        *kubeconfig = trust(kubeconfig);
    }
    value
}

/// What a kubeconfig in a Secret says but for its user, whose key is another one each time.
fn trust(base64: &Value) -> Value {
    let text = serde_json::from_value::<ByteString>(base64.clone()).unwrap().0;
    let mut kubeconfig = Kubeconfig::from_yaml(&String::from_utf8(text).unwrap()).unwrap();
    kubeconfig.auth_infos.clear();
    serde_json::to_value(kubeconfig).unwrap()
}

/// Where two end states differ, a line each.
fn difference(expected: &EndState, end: &EndState) -> Option<String> {
    fn compare(place: &str, expected: &Value, found: &Value, lines: &mut Vec<String>) {
        match (expected, found) {
            (Value::Object(expected), Value::Object(found)) => {
                for name in expected.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
                    let of = |fields: &serde_json::Map<String, Value>| fields.get(name).cloned();
                    let (expected, found) = (of(expected), of(found));
                    let place = format!("{place}.{name}");
                    compare(&place, &expected.unwrap_or_default(), &found.unwrap_or_default(), lines);
                }
            }
            (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
                for (number, (expected, found)) in expected.iter().zip(found).enumerate() {
                    compare(&format!("{place}[{number}]"), expected, found, lines);
                }
            }
            _ if expected == found => {}
            _ => lines.push(format!("{place} is {found}, undisturbed {expected}")),
        }
    }
    let mut lines = Vec::new();
    for key in expected.keys().chain(end.keys()).collect::<BTreeSet<_>>() {
        let of = |state: &EndState| state.get(key).cloned().unwrap_or_default();
        compare(key, &of(expected), &of(end), &mut lines);
    }
    (!lines.is_empty()).then(|| lines.join("; "))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_are_named_by_their_place() {
        let state = |value: Value| EndState::from([("foos/a".to_owned(), value)]);
        let expected = state(json!({"spec": {"x": 1}, "status": {"list": [{"type": "A"}, {"type": "B"}]}}));
        assert_eq!(difference(&expected, &expected), None);
        let other = state(json!({"spec": {"x": 1}, "status": {"list": [{"type": "A"}, {"type": "C"}]}}));
        let words = difference(&expected, &other).unwrap();
        assert_eq!(words, r#"foos/a.status.list[1].type is "C", undisturbed "B""#);
        assert!(difference(&expected, &EndState::new()).unwrap().starts_with("foos/a is null"));
    }
}
