//! The same scenes with a fault at a request: the operator is killed, or the request goes wrong, and the end is the same.
//!
//! `make test` plays some of the points of each scene, chosen by a seed; `make test-faults` plays all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    time::Duration,
};

use capstan_management::{Kind, ManagementCluster, sweep};
use capstan_repository::Environment;
use capstan_testkit::{
    faults::{Injection, RequestId, Transport},
    wait,
};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::world::{AWS, CORE, LIMIT, Release, World, replicas, run_operator, selector};

/// The type of the Secrets that keep releases.
const RELEASE: &str = "management.cluster.x-k8s.io/release";
/// How many points of a scene are played unless all are asked for.
const SAMPLE: usize = 2;
/// Without requests for so long, the operator has come to rest.
pub(crate) const REST: Duration = Duration::from_millis(1200);
/// How often the undisturbed end is waited for: a retry may be seconds away.
const LOOKS: usize = 25;

/// Something that the operator does.
struct Scene {
    name: &'static str,
    /// Makes the state that the scene begins in; a healthy operator runs.
    prepare: for<'a> fn(&'a World) -> BoxFuture<'a, ()>,
    /// What happens while no operator runs.
    away: for<'a> fn(&'a World) -> BoxFuture<'a, ()>,
    /// What users do; the disturbed operator runs.
    play: for<'a> fn(&'a World) -> BoxFuture<'a, ()>,
}

/// What a scene ends in.
pub(crate) type EndState = BTreeMap<String, Value>;

/// Creates core and aws, without waiting for anything.
async fn create(world: &World) {
    world.core().create(json!({"version": "v1.10.0", "fetchConfig": selector("core")})).await;
    let spec = json!({"version": "v2.1.0", "secretName": "aws-variables", "fetchConfig": selector("aws")});
    world.aws().create(spec).await;
}

pub(crate) async fn installed(world: &World) {
    create(world).await;
    world.core().until_ready().await;
    world.aws().until_ready().await;
}

async fn paused(world: &World) {
    installed(world).await;
    for provider in [world.core(), world.aws()] {
        provider.set_paused(true).await;
        provider.until_condition("Paused", "True", "Paused").await;
    }
}

/// aws runs as often as a user wants: its release leaves that open.
async fn scaled_by_hand(world: &World) {
    installed(world).await;
    world.aws().set_version("v2.1.1").await;
    world.aws().until_installed("v2.1.1").await;
    let patch = Patch::Merge(json!({"spec": {"replicas": 3}}));
    world.deployment(AWS).patch(AWS_MANAGER, &PatchParams::default(), &patch).await.unwrap();
}

/// A Cluster uses aws.
async fn used(world: &World) {
    installed(world).await;
    let reference =
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AWSCluster", "name": "a"});
    let object = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "a"},
                        "spec": {"infrastructureRef": reference}});
    clusters(world).create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

fn clusters(world: &World) -> Api<DynamicObject> {
    let kind = Kind::namespaced("cluster.x-k8s.io", "v1beta1", "Cluster");
    Api::namespaced_with(world.client.clone(), "default", &kind.resource)
}

fn nothing(_: &World) -> BoxFuture<'_, ()> {
    Box::pin(async {})
}

const AWS_MANAGER: &str = "capa-controller-manager";

const SCENES: [Scene; 8] = [
    Scene { name: "install", prepare: nothing, away: nothing, play: |world| Box::pin(create(world)) },
    Scene {
        name: "upgrade",
        prepare: |world| Box::pin(installed(world)),
        away: nothing,
        play: |world| Box::pin(async { world.aws().set_version("v2.2.0").await }),
    },
    Scene {
        name: "contract-upgrade",
        prepare: |world| Box::pin(paused(world)),
        away: nothing,
        play: |world| {
            Box::pin(async {
                world.core().set_version("v1.11.0").await;
                world.aws().set_version("v2.3.0").await;
                world.core().set_paused(false).await;
                world.aws().set_paused(false).await;
            })
        },
    },
    Scene {
        name: "pause",
        prepare: |world| Box::pin(scaled_by_hand(world)),
        away: nothing,
        play: |world| {
            Box::pin(async {
                world.aws().set_paused(true).await;
                wait::until_is(&world.deployment(AWS), AWS_MANAGER, "down", LIMIT, |it| replicas(it) == 0)
                    .await;
                world.aws().set_paused(false).await;
            })
        },
    },
    Scene {
        name: "change",
        prepare: |world| Box::pin(installed(world)),
        away: nothing,
        play: |world| {
            Box::pin(async {
                let spec = json!({"manager": {"verbosity": 5}, "deployment": {"nodeSelector": {"a": "b"}}});
                world.aws().edit(json!({"spec": spec})).await;
            })
        },
    },
    Scene {
        name: "drift",
        prepare: |world| Box::pin(installed(world)),
        away: nothing,
        play: |world| {
            Box::pin(async {
                let patch = Patch::Merge(json!({"spec": {"replicas": 7}}));
                let deployments = world.deployment(AWS);
                deployments.patch(AWS_MANAGER, &PatchParams::default(), &patch).await.unwrap();
            })
        },
    },
    Scene {
        name: "migration",
        prepare: |world| Box::pin(installed(world)),
        away: |world| Box::pin(world.forget_objects()),
        play: nothing,
    },
    Scene {
        name: "delete",
        prepare: |world| Box::pin(used(world)),
        away: nothing,
        play: |world| {
            Box::pin(async {
                world.core().delete().await;
                world.aws().delete().await;
                world.aws().until_condition("DeletionBlocked", "True", "ProviderInUse").await;
                clusters(world).delete("a", &DeleteParams::default()).await.unwrap();
                world.aws().until_gone().await;
                world.core().until_gone().await;
            })
        },
    },
];

impl World {
    /// Removes provider objects and kept releases, but nothing that is installed: what is left is what commands leave.
    async fn forget_objects(&self) {
        for provider in [self.core(), self.aws()] {
            provider.edit(json!({"metadata": {"finalizers": null}})).await;
            provider.delete().await;
            provider.until_gone().await;
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), provider.namespace);
            let kept = ListParams::default().fields(&format!("type={RELEASE}"));
            for secret in secrets.list(&kept).await.unwrap() {
                secrets.delete(&secret.name_any(), &DeleteParams::default()).await.unwrap();
            }
        }
    }

    /// Removes all that is installed, by an undisturbed operator.
    async fn reset(&self) {
        let operator = self.operator();
        for provider in [self.core(), self.aws()] {
            if provider.api().get_opt(provider.name).await.unwrap().is_none() {
                continue;
            }
            let force =
                json!({"metadata": {"annotations": {"management.cluster.x-k8s.io/force-delete": "true"}}});
            provider.edit(force).await;
            provider.delete().await;
        }
        for provider in [self.core(), self.aws()] {
            provider.until_gone().await;
        }
        operator.stop().await;
        let cluster = ManagementCluster::new(self.client.clone(), "the story's server");
        let found = sweep::sweep(&cluster, "clusterctl.cluster.x-k8s.io").await.unwrap();
        let crds: Api<DynamicObject> = Api::all_with(self.client.clone(), &Kind::crd().resource);
        for crd in found.iter().filter(|it| it.id.kind == "CustomResourceDefinition") {
            crds.delete(&crd.id.name, &DeleteParams::default()).await.unwrap();
            wait::until_gone(&crds, &crd.id.name, LIMIT).await;
        }
        let others: Vec<_> = found
            .iter()
            .filter(|it| !["CustomResourceDefinition", "Namespace"].contains(&it.id.kind.as_str()))
            .map(|it| it.id.to_string())
            .collect();
        assert!(others.is_empty(), "left after deletion: {others:?}");
    }

    /// All that the operator is responsible for, without what differs between any two runs.
    pub(crate) async fn end_state(&self) -> EndState {
        let mut end = self.installed().await;
        for provider in [self.core(), self.aws()] {
            let Some(object) = provider.api().get_opt(provider.name).await.unwrap() else { continue };
            let mut value = json!({"finalizers": object.finalizers(), "spec": object.data["spec"], "status": object.data["status"]});
            strip(&mut value);
            end.insert(format!("{} {}", provider.kind, provider.name), value);
        }
        for namespace in [CORE, AWS] {
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
            for secret in secrets.list(&ListParams::default()).await.unwrap() {
                let content = json!({"labels": secret.labels(), "type": secret.type_, "data": secret.data});
                end.insert(format!("Secret {namespace}/{}", secret.name_any()), content);
            }
        }
        end
    }
}

/// Takes away times and generations, which count the edits.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !["lastTransitionTime", "observedGeneration"].contains(&name.as_str()));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// What came of a run.
struct Run {
    transport: Transport,
    end: Result<EndState, String>,
}

impl Scene {
    /// Plays the scene from its beginning; with a fault until the end is the expected one.
    async fn run(&self, world: &World, injection: Option<Injection>, expected: Option<&EndState>) -> Run {
        world.reset().await;
        let healthy = world.operator();
        (self.prepare)(world).await;
        healthy.stop().await;
        (self.away)(world).await;
        let transport = Transport::new(world.client.clone(), injection);
        let mut operator = Some(run_operator(transport.client(), Environment::default()));
        let play = async {
            (self.play)(world).await;
            let mut end = EndState::new();
            for _ in 0..LOOKS {
                transport.quiet_for(REST).await;
                end = world.end_state().await;
                if expected.is_none_or(|expected| *expected == end) {
                    return Ok(end);
                }
                let _ = tokio::time::timeout(REST, transport.next_request()).await;
            }
            Err(difference(expected.unwrap_or(&end), &end))
        };
        let end = tokio::select! {
            end = play => end,
            () = async {
                transport.crash().await;
                if let Some(crashed) = operator.take() {
                    crashed.crash().await;
                }
                operator = Some(run_operator(transport.client_after_crash(), Environment::default()));
                std::future::pending::<()>().await;
            } => unreachable!("it goes on for ever"),
        };
        if let Some(operator) = operator {
            operator.stop().await;
        }
        Run { transport, end }
    }

    /// Plays the scene with a fault at each of the chosen points.
    #[expect(clippy::print_stdout, reason = "the table of points and survivors is worth reading")]
    async fn play_all(&self, seed: usize, sample: Option<usize>) -> Vec<String> {
        let world = World::new().await;
        for release in [
            Release::core("v1.10.0", "v1beta1"),
            Release::core("v1.11.0", "v1beta2"),
            Release::aws("v2.1.0", "v1beta1"),
            Release { replicas: None, ..Release::aws("v2.1.1", "v1beta1") },
            Release::aws("v2.2.0", "v1beta1"),
            Release::aws("v2.3.0", "v1beta2"),
        ] {
            world.publish(&release).await;
        }
        world.create_secret(AWS, "aws-variables", &[("AWS_REGION", "eu-1")]).await;
        let undisturbed = self.run(&world, None, None).await;
        let expected = undisturbed.end.unwrap_or_else(|error| panic!("{} undisturbed: {error}", self.name));
        let requests: BTreeSet<RequestId> = undisturbed.transport.requests().into_iter().collect();
        let points: Vec<Injection> = requests
            .iter()
            .filter(|it| it.path != "events")
            .flat_map(|request| {
                let events = undisturbed.transport.events(request);
                let faults = request.faults(events).into_iter();
                faults.map(|fault| Injection { request: request.clone(), fault })
            })
            .collect();
        let chosen: Vec<&Injection> = match sample {
            None => points.iter().collect(),
            // Spread over all points, other ones for another seed.
            Some(count) => {
                let step = (points.len() / count).max(1);
                points.iter().skip(seed % step).step_by(step).take(count).collect()
            }
        };
        let (mut struck, mut failures) = (0, Vec::new());
        for injection in &chosen {
            let run = self.run(&world, Some((*injection).clone()), Some(&expected)).await;
            struck += usize::from(run.transport.fired_at().is_some());
            if let Err(difference) = run.end {
                failures.push(format!("{}: {injection}: {difference}", self.name));
            }
        }
        println!(
            "{}: {} requests, {} points, {} played, {struck} struck, {} survived",
            self.name,
            requests.len(),
            points.len(),
            chosen.len(),
            chosen.len() - failures.len()
        );
        // A request of the undisturbed run may not come in another one, but most do.
        if 2 * struck < chosen.len() {
            failures.push(format!("{}: only {struck} of {} faults struck", self.name, chosen.len()));
        }
        failures
    }
}

/// Where two end states differ.
pub(crate) fn difference(expected: &EndState, end: &EndState) -> String {
    let names: BTreeSet<&String> = expected.keys().chain(end.keys()).collect();
    let differs = |it: &&&String| expected.get(**it) != end.get(**it);
    let shown =
        |state: &EndState, name: &String| state.get(name).map_or("nothing".to_owned(), Value::to_string);
    let lines = names
        .iter()
        .filter(differs)
        .map(|it| format!("{it} is {}, undisturbed {}", shown(end, it), shown(expected, it)));
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_scene_comes_to_its_end_whatever_goes_wrong() {
    let number = |name: &str| env::var(name).ok().and_then(|it| it.parse::<usize>().ok());
    let sample = if env::var("CAPSTAN_FAULTS").is_ok_and(|it| it == "all") {
        None
    } else {
        Some(number("CAPSTAN_FAULTS").unwrap_or(SAMPLE))
    };
    let seed = number("CAPSTAN_SEED").unwrap_or(1);
    let only = env::var("CAPSTAN_SCENE").ok();
    let mut failures = Vec::new();
    for scene in SCENES.iter().filter(|it| only.as_deref().is_none_or(|only| only == it.name)) {
        failures.extend(scene.play_all(seed, sample).await);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
