//! The offline commands beside upstream's clusterctl: what both print, and whether both refuse.
//!
//! A case names a command line and all that it can see; `intended.rs` lists the cases where we differ on purpose.
//! `CAPSTAN_COMPAT_CASES=words` runs only the cases that have the words in their names.

mod components;
mod configuration;
mod corpus;
mod envsubst;
mod fields;
mod generate;
mod harness;
mod intended;
mod list_images;
mod prefix;
mod releases;
mod repository;
mod surface;
mod templates;
mod verdict;
mod versions;
mod workloads;
mod yaml;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, Write as _},
};

use capstan_testkit::Plane;
use futures::{StreamExt, stream};

use self::{
    harness::{Case, Stage},
    verdict::{Difference, judge},
};
use crate::management::folder;

/// Cases that differ only in their input, which is a stream of documents: they are run as one where all goes well.
pub(crate) struct Batch(Vec<Case>);

impl From<Case> for Batch {
    fn from(case: Case) -> Self {
        Self(vec![case])
    }
}

/// What became of a case.
struct Result {
    name: String,
    difference: Option<Difference>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs upstream's binary and releases: make test-compat"]
async fn the_commands_do_as_clusterctl_does() {
    let upstream = folder("CAPSTAN_UPSTREAM_DIR");
    let plane = Plane::start_bare().await;
    list_images::install_inventory(&plane, &upstream).await;
    let stage = Stage::new(upstream.join("clusterctl"));
    let wanted = std::env::var("CAPSTAN_COMPAT_CASES").unwrap_or_default();
    let batches = [
        // The long ones first, so that no thread is left with them.
        releases::cases(&upstream.join("releases")),
        prefix::cases(&upstream.join("releases")),
        list_images::cases(&upstream, plane.kubeconfig()),
        fields::cases(&upstream),
        yaml::cases(),
        envsubst::cases(),
        configuration::cases(),
        components::cases(),
        workloads::cases(),
        versions::cases(),
        templates::cases(),
        surface::cases(),
    ];
    let batches = batches.into_iter().flatten().filter_map(|batch| select(batch, &wanted)).flat_map(apart);
    let results: Vec<_> =
        stream::iter(batches).map(|cases| run(&stage, cases)).buffer_unordered(2).concat().await;
    assert!(!results.is_empty(), "no case has {wanted} in its name");
    let mut failures = report(&results);
    if wanted.is_empty() {
        failures.push_str(&forgotten(&results));
    }
    assert!(failures.is_empty(), "{failures}");
}

fn select(Batch(mut cases): Batch, wanted: &str) -> Option<Vec<Case>> {
    cases.retain(|case| case.name.contains(wanted));
    (!cases.is_empty()).then_some(cases)
}

/// A case that differs by intent would only make its batch be run in pieces.
fn apart(cases: Vec<Case>) -> Vec<Vec<Case>> {
    let (alone, together): (Vec<_>, Vec<_>) =
        cases.into_iter().partition(|case| intended::of(&case.name).is_some());
    let alone = alone.into_iter().map(|case| vec![case]);
    alone.chain((!together.is_empty()).then_some(together)).collect()
}

/// Runs cases as one; in two halves where upstream refuses them or the two binaries differ.
async fn run(stage: &Stage, cases: Vec<Case>) -> Vec<Result> {
    let mut results = Vec::new();
    let mut pending = vec![cases];
    while let Some(mut cases) = pending.pop() {
        let (upstream, ours) = stage.run(&Case::joined(&cases)).await;
        let same = upstream.succeeded && ours.succeeded && upstream.output == ours.output;
        if let [case] = cases.as_slice() {
            let difference = judge(case, &upstream, &ours);
            results.push(Result {
                name: case.name.clone(),
                difference: intended::weigh(&case.name, difference, &ours),
            });
        } else if same {
            results.extend(cases.into_iter().map(|case| Result { name: case.name, difference: None }));
        } else {
            pending.push(cases.split_off(cases.len() / 2));
            pending.push(cases);
        }
    }
    results
}

/// Intended differences of cases that are no more.
fn forgotten(results: &[Result]) -> String {
    let names = intended::names().filter(|name| results.iter().all(|result| result.name != *name));
    names.fold(String::new(), |text, name| format!("{text}\n{name}: there is no such case any more\n"))
}

/// Prints how many cases there were; gives back what failed.
fn report(results: &[Result]) -> String {
    let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut failures = String::new();
    for result in results {
        let group = result.name.split('/').next().unwrap_or_default();
        let counts = groups.entry(group).or_default();
        counts.0 += 1;
        counts.1 += usize::from(intended::of(&result.name).is_some());
        if let Some(difference) = &result.difference {
            writeln!(failures, "\n{}: {difference}", result.name).unwrap();
        }
    }
    let failed = results.iter().filter(|result| result.difference.is_some()).count();
    let intended: usize = groups.values().map(|counts| counts.1).sum();
    let mut table = "cases beside clusterctl:\n".to_owned();
    for (group, (count, by_intent)) in &groups {
        writeln!(table, "  {group:<16}{count:>5}  ({by_intent} differ by intent)").unwrap();
    }
    writeln!(table, "  {:<16}{:>5}  ({intended} differ by intent, {failed} failed)", "in all", results.len())
        .unwrap();
    // Straight to the terminal: cargo keeps what a passing test prints to itself.
    #[expect(clippy::disallowed_methods, reason = "the printer is for what users see")]
    io::stderr().write_all(table.as_bytes()).unwrap();
    failures
}
