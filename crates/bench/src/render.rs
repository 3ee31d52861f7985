//! Commands that start, do one thing and end: how long they take and how much memory they need.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use nix::sys::resource::{UsageWho, getrusage};

/// Runs of each command; the median is reported.
const RUNS: usize = 31;
const TEMPLATE: &str = "\
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata:
  name: ${CLUSTER_NAME}
  namespace: ${NAMESPACE:=default}
spec:
  clusterNetwork:
    pods:
      cidrBlocks: [\"${POD_CIDR:=192.168.0.0/16}\"]
";

/// What is compared: the same arguments for both programs.
struct Case {
    title: &'static str,
    arguments: Vec<String>,
    /// Flags that only ours has: it is to do what upstream's does.
    ours_only: &'static [&'static str],
}

/// How one program did.
#[derive(Clone, Copy)]
struct Measured {
    median: Duration,
    best: Duration,
    peak_kib: i64,
}

/// Measures both programs, a run of one after a run of the other, and gives a table.
pub(crate) fn measure(ours: &Path, upstream: Option<&Path>, releases: &Path) -> anyhow::Result<String> {
    let folder = std::env::temp_dir().join(format!("capstan-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let table = cases(&folder, releases).and_then(|cases| compare(&cases, ours, upstream, &folder));
    fs::remove_dir_all(&folder)?;
    table
}

fn cases(folder: &Path, releases: &Path) -> anyhow::Result<Vec<Case>> {
    let releases =
        fs::canonicalize(releases).with_context(|| format!("no releases in {}", releases.display()))?;
    let components = releases.join("cluster-api");
    let mut versions: Vec<_> =
        fs::read_dir(&components)?.filter_map(|it| it.ok()?.file_name().into_string().ok()).collect();
    let numbers = |it: &String| it.split(['v', '.']).map(|it| it.parse().unwrap_or(0)).collect::<Vec<u32>>();
    versions.sort_by_key(numbers);
    let version = versions.last().with_context(|| format!("{} is empty", components.display()))?;
    let config = folder.join("clusterctl.yaml");
    let url = components.join("latest").join("core-components.yaml");
    let provider =
        format!("providers:\n- {{name: cluster-api, type: CoreProvider, url: \"{}\"}}\n", url.display());
    fs::write(&config, provider)?;
    let template = folder.join("template.yaml");
    fs::write(&template, TEMPLATE)?;
    let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let (config, template) = (config.display().to_string(), template.display().to_string());
    Ok(vec![
        Case {
            title: "generate provider",
            arguments: words(&[
                "generate",
                "provider",
                "--core",
                &format!("cluster-api:{version}"),
                "--config",
                &config,
            ]),
            ours_only: &["--rbac-prefix=false"],
        },
        Case {
            title: "generate yaml",
            arguments: words(&["generate", "yaml", "--from", &template, "--config", &config]),
            ours_only: &[],
        },
    ])
}

fn compare(cases: &[Case], ours: &Path, upstream: Option<&Path>, folder: &Path) -> anyhow::Result<String> {
    let mut table = String::new();
    for case in cases {
        let mut programs = vec![("capstan", ours, case.ours_only)];
        programs.extend(upstream.map(|it| ("clusterctl", it, &[] as &[&str])));
        let mut runs: BTreeMap<&str, Vec<(Duration, i64)>> = BTreeMap::new();
        for _ in 0..RUNS {
            for (name, program, extra) in &programs {
                runs.entry(name).or_default().push(run_apart(program, &case.arguments, extra, folder)?);
            }
        }
        let measured = |name: &str| runs.get(name).and_then(|runs| sum_up(runs));
        let Some(own) = measured("capstan") else { continue };
        writeln!(table, "{}", case.title)?;
        writeln!(table, "  {:<12}{}", "capstan", line(own))?;
        if let Some(theirs) = measured("clusterctl") {
            let times = theirs.median.as_secs_f64() / own.median.as_secs_f64();
            #[expect(clippy::cast_precision_loss, reason = "a ratio of kilobytes")]
            let less = theirs.peak_kib as f64 / own.peak_kib as f64;
            writeln!(table, "  {:<12}{}", "clusterctl", line(theirs))?;
            writeln!(table, "  {times:.1} times as fast, {less:.1} times less memory")?;
        }
    }
    Ok(table)
}

fn line(it: Measured) -> String {
    format!(
        "median {:>7.2} ms   best {:>7.2} ms   peak {:>6.1} MiB",
        it.median.as_secs_f64() * 1e3,
        it.best.as_secs_f64() * 1e3,
        f64::from(i32::try_from(it.peak_kib).unwrap_or(i32::MAX)) / 1024.0
    )
}

fn sum_up(runs: &[(Duration, i64)]) -> Option<Measured> {
    let mut times: Vec<_> = runs.iter().map(|(time, _)| *time).collect();
    times.sort();
    Some(Measured {
        median: *times.get(times.len() / 2)?,
        best: *times.first()?,
        peak_kib: runs.iter().map(|(_, peak)| *peak).max()?,
    })
}

/// One run in a process of its own: the system reports the peak memory only of all children together.
fn run_apart(
    program: &Path,
    arguments: &[String],
    extra: &[&str],
    home: &Path,
) -> anyhow::Result<(Duration, i64)> {
    let output = Command::new(std::env::current_exe()?)
        .arg("once")
        .arg(program)
        .arg("--")
        .args(arguments)
        .args(extra)
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
        .env("CLUSTER_NAME", "bench")
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} {} failed: {said}", program.display(), arguments.join(" "));
    let answer = String::from_utf8(output.stdout)?;
    let (nanoseconds, peak) = answer.trim().split_once(' ').context("no answer from a run")?;
    Ok((Duration::from_nanos(nanoseconds.parse()?), peak.parse()?))
}

/// Runs a program once, and prints its nanoseconds and peak kilobytes.
pub(crate) fn once(program: &PathBuf, arguments: &[String]) -> anyhow::Result<String> {
    let began = Instant::now();
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).status()?;
    let took = began.elapsed();
    ensure!(status.success(), "{status}");
    Ok(format!("{} {}", took.as_nanos(), getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss()))
}
