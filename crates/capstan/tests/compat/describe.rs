//! `describe cluster` beside upstream's: clusters in many states on a real control plane, described by both.
//!
//! Nothing runs here that would change the objects: what they report is written by the test.

use std::{fs, path::PathBuf, sync::Arc};

use capstan_runtime::install::install_crds;
use capstan_testkit::{Plane, Story, generic};
use futures::{StreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use tokio::process::Command;

use self::described::{
    create,
    objects::CLUSTER,
    states::{self, State, Upstream},
};
use crate::management::{Clusterctl, KUBEADM, folder, kubeadm_components};

#[path = "../described/mod.rs"]
mod described;

const GENERIC: [&str; 4] =
    ["GenericCluster", "GenericMachine", "GenericMachineTemplate", "GenericMachinePool"];
const AT_ONCE: usize = 4;

/// Upstream's CRDs without their webhooks, which are not served.
fn crds() -> Vec<CustomResourceDefinition> {
    let core = folder("CAPSTAN_UPSTREAM_DIR").join("releases/cluster-api").join(KUBEADM);
    let files: [PathBuf; 3] = [
        core.join("core-components.yaml"),
        kubeadm_components("bootstrap"),
        kubeadm_components("control-plane"),
    ];
    let texts = files.map(|file| fs::read_to_string(file).unwrap());
    let documents = texts.iter().flat_map(|text| text.split("\n---\n"));
    let documents = documents.filter(|text| text.contains("kind: CustomResourceDefinition\n"));
    let upstream = documents.map(|text| {
        let mut crd: CustomResourceDefinition = serde_saphyr::from_str(&text.replace("$$", "$")).unwrap();
        crd.spec.conversion = None;
        crd
    });
    upstream.chain(GENERIC.map(|kind| generic::crd(kind, &[("v1beta2", "v1beta2")]))).collect()
}

/// What both say to the same words.
struct Both {
    clusterctl: Clusterctl,
    plane: Arc<Plane>,
}

impl Both {
    async fn describe(&self, namespace: &str, more: &[&str], variables: &[(&str, &str)]) -> (String, String) {
        let words = [&["describe", "cluster", CLUSTER, "-n", namespace], more].concat();
        let (upstream, _) = self.clusterctl.run(&words, variables).await;
        let run = Command::new(env!("CARGO_BIN_EXE_capstan"))
            .args(&words)
            .arg("--kubeconfig")
            .arg(self.plane.kubeconfig())
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied())
            .output()
            .await
            .unwrap();
        assert!(run.status.success(), "{words:?}: {}", String::from_utf8_lossy(&run.stderr));
        (upstream, String::from_utf8(run.stdout).unwrap())
    }

    /// Whether colours could be compared, and why the two are not the same, if they are not.
    async fn compare(&self, state: &State, namespace: &str) -> (bool, Option<String>) {
        let words: Vec<&str> = state.flags.split_whitespace().collect();
        let (upstream, ours) = self.describe(namespace, &words, &[("NO_COLOR", "1")]).await;
        let is_same = match state.upstream {
            Upstream::Same => upstream == ours,
            Upstream::SameNames => first_column(&upstream) == first_column(&ours),
            Upstream::Different => upstream != ours,
        };
        let words = [words.as_slice(), &["-c"]].concat();
        let (upstream_coloured, ours_coloured) = self.describe(namespace, &words, &[]).await;
        // With several groups under one parent, upstream's order changes with colours.
        let is_comparable = state.upstream == Upstream::Same && letters(&upstream_coloured) == upstream;
        let looks_same = !is_comparable
            || without_bold_white(&looks(&upstream_coloured)) == without_bold_white(&looks(&ours_coloured));
        let wrong = match (is_same, looks_same) {
            (true, true) => None,
            (true, false) => {
                let shown = |text: &str| text.replace('\u{1b}', "^");
                let (upstream, ours) = (shown(&upstream_coloured), shown(&ours_coloured));
                Some(format!("{} (colours): upstream\n{upstream}\nours\n{ours}", state.name))
            }
            (false, _) => {
                Some(format!("{} ({:?}): upstream\n{upstream}\nours\n{ours}", state.name, state.upstream))
            }
        };
        (is_comparable, wrong)
    }
}

/// The names of a table, without the columns behind them.
fn first_column(text: &str) -> Vec<String> {
    let width = text.find("REPLICAS").unwrap();
    text.lines().map(|line| line.chars().take(width).collect::<String>().trim_end().to_owned()).collect()
}

/// Every letter and how it looks: whether it is bold, and its colour. Blanks look like nothing.
fn looks(text: &str) -> Vec<(char, bool, u32)> {
    let (mut bold, mut colour) = (false, 0);
    let mut found = Vec::new();
    for (index, piece) in text.split("\u{1b}[").enumerate() {
        let letters = if index == 0 {
            piece
        } else {
            let (codes, letters) = piece.split_once('m').unwrap();
            for code in codes.split(';').map(|it| it.parse::<u32>().unwrap()) {
                match code {
                    0 => (bold, colour) = (false, 0),
                    1 => bold = true,
                    22 => bold = false,
                    code => colour = code,
                }
            }
            letters
        };
        found.extend(
            letters.chars().map(|letter| {
                if letter.is_whitespace() { (letter, false, 0) } else { (letter, bold, colour) }
            }),
        );
    }
    found
}

fn letters(text: &str) -> String {
    looks(text).iter().map(|it| it.0).collect()
}

/// Upstream makes its white bold with the first group that it draws, and draws all other white text in that.
fn without_bold_white(looks: &[(char, bool, u32)]) -> Vec<(char, bool, u32)> {
    looks.iter().map(|(letter, bold, colour)| (*letter, *bold && *colour != 37, *colour)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs upstream's clusterctl and releases: run it by `make test-compat`"]
async fn both_draw_the_same_tree() {
    let plane = Plane::start_bare().await;
    let client = plane.client().await;
    install_crds(&client, &crds(), "compat").await.unwrap();
    let both = Both { clusterctl: Clusterctl::new(&plane, "describe"), plane: Arc::clone(&plane) };
    // What upstream does not get to see cannot be made on its server.
    let is_possible = |it: &State| !it.name.starts_with("v1beta1") && it.forbidden.is_empty();
    let states: Vec<State> = states::all().into_iter().filter(is_possible).collect();
    let count = |upstream: Upstream| states.iter().filter(|it| it.upstream == upstream).count();
    let (same, names) = (count(Upstream::Same), count(Upstream::SameNames));
    let results: Vec<(bool, Option<String>)> = stream::iter(&states)
        .map(|state| async {
            let story = Story::begin_as(Arc::clone(&plane), client.clone(), state.name).await;
            create(&story.client, &story.namespace, state).await;
            both.compare(state, &story.namespace).await
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let coloured = results.iter().filter(|it| it.0).count();
    let wrong: Vec<String> = results.into_iter().filter_map(|it| it.1).collect();
    println!(
        "{} states described by both: {same} must be the same letter by letter, {coloured} of them in colours too, {names} \
         in their names, {} differ on purpose; {} are not as they must be",
        states.len(),
        count(Upstream::Different),
        wrong.len()
    );
    assert!(same >= 20 && coloured >= 20, "{same}, {coloured}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
