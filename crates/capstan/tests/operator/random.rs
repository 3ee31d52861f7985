//! Random edits of a provider object, one after the other, while the operator is at work: where they end depends on the
//! last spec alone.
//!
//! `CAPSTAN_RANDOM` says how many sequences are played, `CAPSTAN_SEED` which ones.

use std::env;

use capstan_repository::Environment;
use capstan_testkit::faults::{RequestId, Transport};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    faults::{EndState, REST, difference, installed},
    world::{AWS, Release, World, run_operator, selector},
};

/// How many sequences are played unless another number is asked for.
const SEQUENCES: u64 = 2;
/// How many edits a sequence has.
const EDITS: usize = 10;
/// How often an end that is not the expected one yet is looked at again.
const LOOKS: usize = 20;

/// Numbers that look random and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        let sides = u64::try_from(of.len()).unwrap();
        of[usize::try_from(self.roll(sides)).unwrap()]
    }
}

/// An edit by a user.
#[derive(Debug)]
enum Edit {
    Spec(Value),
    Region(&'static str),
    Replicas(u64),
    Recreate(Value),
}

impl Edit {
    fn any(dice: &mut Dice) -> Self {
        let version = |dice: &mut Dice| dice.one(&["v2.1.0", "v2.1.1", "v2.1.2"]).to_owned();
        match dice.roll(10) {
            0 | 1 => Self::Spec(json!({"version": version(dice)})),
            // There is no such version.
            2 => Self::Spec(json!({"version": "v2.1.99"})),
            3 => Self::Spec(json!({"paused": dice.roll(2) == 0})),
            4 => Self::Spec(json!({"paused": dice.roll(2) == 0, "version": version(dice)})),
            5 => Self::Spec(json!({"manager": {"verbosity": dice.roll(6)}})),
            6 => Self::Spec(json!({"fetchConfig": selector(dice.one(&["aws", "nothing"]))})),
            7 => Self::Region(dice.one(&["eu-1", "us-2"])),
            8 => Self::Replicas(dice.roll(4)),
            _ => {
                let mut spec = good(&version(dice));
                spec["paused"] = json!(dice.roll(2) == 0);
                Self::Recreate(spec)
            }
        }
    }

    async fn play(&self, world: &World) {
        let aws = world.aws();
        match self {
            Self::Spec(spec) => aws.edit(json!({"spec": spec})).await,
            Self::Region(region) => set_region(world, region).await,
            Self::Replicas(replicas) => {
                let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
                // It may not be installed.
                let name = "capa-controller-manager";
                let _ = world.deployment(AWS).patch(name, &PatchParams::default(), &patch).await;
            }
            Self::Recreate(spec) => {
                aws.delete().await;
                aws.until_gone().await;
                aws.create(spec.clone()).await;
            }
        }
    }
}

async fn set_region(world: &World, region: &str) {
    world.create_secret(AWS, "aws-variables", &[("AWS_REGION", region)]).await;
}

/// A spec with which everything works.
fn good(version: &str) -> Value {
    json!({"version": version, "secretName": "aws-variables", "fetchConfig": selector("aws"), "paused": false,
           "manager": {"verbosity": 3}})
}

/// Makes the input good again, whatever it is, and then asks for a version that was never there: what a release is
/// rendered with counts from the next upgrade on.
async fn end(world: &World) {
    set_region(world, "eu-1").await;
    world.aws().edit(json!({"spec": good("v2.1.0")})).await;
    world.aws().until("well again", |it| it.data["status"]["installedVersion"] == "v2.1.0").await;
    world.aws().until_ready().await;
    world.aws().set_version("v2.1.9").await;
    world.aws().until_installed("v2.1.9").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn random_edits_end_where_the_last_spec_says() {
    let number = |name: &str| env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let (sequences, seed) =
        (number("CAPSTAN_RANDOM").unwrap_or(SEQUENCES), number("CAPSTAN_SEED").unwrap_or(1));
    let world = World::new().await;
    world.publish(&Release::core("v1.10.0", "v1beta1")).await;
    for version in ["v2.1.0", "v2.1.1", "v2.1.2", "v2.1.9"] {
        world.publish(&Release::aws(version, "v1beta1")).await;
    }
    set_region(&world, "eu-1").await;
    let transport = Transport::new(world.client.clone(), None);
    let operator = run_operator(transport.client(), Environment::default());
    installed(&world).await;
    end(&world).await;
    transport.quiet_for(REST).await;
    let expected = world.end_state().await;

    for sequence in 0..sequences {
        let mut dice = Dice(seed.wrapping_mul(1000).wrapping_add(sequence));
        let edits: Vec<Edit> = (0..EDITS).map(|_| Edit::any(&mut dice)).collect();
        for edit in &edits {
            edit.play(&world).await;
            // Some edits come while the one before is being carried out.
            if dice.roll(2) == 0 {
                let is_seen = |it: &kube::api::DynamicObject| {
                    it.data["status"]["observedGeneration"] == json!(it.metadata.generation)
                };
                world.aws().until("looked at", is_seen).await;
            }
        }
        end(&world).await;
        let mut found = EndState::new();
        for _ in 0..LOOKS {
            transport.quiet_for(REST).await;
            found = world.end_state().await;
            if found == expected {
                break;
            }
            let _ = tokio::time::timeout(REST, transport.next_request()).await;
        }
        assert!(found == expected, "seed {seed}, {edits:?}: {}", difference(&expected, &found));
    }
    operator.stop().await;

    // At rest it writes nothing, not even after a restart.
    let transport = Transport::new(world.client.clone(), None);
    let operator = run_operator(transport.client(), Environment::default());
    transport.quiet_for(REST).await;
    let writes: Vec<_> = transport.requests().into_iter().filter(RequestId::is_write).collect();
    assert!(writes.is_empty(), "{writes:?}");
    operator.stop().await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), AWS);
    let names: Vec<String> = secrets
        .list(&kube::api::ListParams::default())
        .await
        .unwrap()
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    assert_eq!(names.len(), 2, "one release is kept beside the variables: {names:?}");
}
