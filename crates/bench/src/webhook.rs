//! The webhooks under attack: small reviews at a steady rate, while others send requests that never end and hold
//! connections that they never use.

use std::{
    fmt::Write,
    fs,
    net::SocketAddr,
    path::Path,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use capstan_api::{cluster::admission::VALIDATE_PATH, crd::Conversion};
use capstan_testkit::{
    Plane,
    hostile::{Caller, free_port, get, is_let_in, raise_file_limit, review, write_certificate},
};
use tokio::{
    process::Command,
    sync::{Mutex, oneshot},
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

use crate::process;

/// Idle connections, half of them after TLS.
const IDLE: usize = 1100;
/// Requests under way that never end, of each kind.
const STALLED: usize = 50;
/// A line of the table.
const STEP: Duration = Duration::from_secs(5);
/// What each review may take.
const LIMIT: Duration = Duration::from_secs(1);
const READY_LIMIT: Duration = Duration::from_mins(1);
/// After so long a review counts as not answered.
const GIVE_UP: Duration = Duration::from_secs(30);
/// The most memory that the manager may ever hold, in MiB: what `docs/security.md` promises.
const MOST_MIB: f64 = 300.0;

/// Reviews that were answered since the last line.
#[derive(Default)]
struct Step {
    sent: usize,
    times: Vec<Duration>,
    wrong: Vec<String>,
}

/// Runs a manager, reviews and attacks; gives a table.
pub(crate) async fn measure(binary: &Path, attack: Duration, rate: u32) -> Result<String> {
    raise_file_limit();
    eprintln!("starting a control plane");
    let plane = Plane::start_bare().await;
    plane.install(Conversion::Nobody).await;
    let folder = plane.kubeconfig().with_file_name("webhook-certificates");
    write_certificate(&folder);
    let [webhooks, health, diagnostics] = [(); 3].map(|()| SocketAddr::from(([127, 0, 0, 1], free_port())));
    let log = fs::File::create(plane.kubeconfig().with_file_name("manager.log"))?;
    let mut manager = Command::new(binary)
        .args(["manager", "core", "--insecure-diagnostics"])
        .arg(format!("--webhook-port={}", webhooks.port()))
        .arg(format!("--health-addr={health}"))
        .arg(format!("--diagnostics-address={diagnostics}"))
        .arg("--webhook-cert-dir")
        .arg(&folder)
        .arg("--kubeconfig")
        .arg(plane.kubeconfig())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .context("cannot start the manager")?;
    let pid = manager.id().context("the manager has ended")?;
    let started = Instant::now();
    while !matches!(get(health, "/readyz", LIMIT).await, Ok((200, _))) {
        ensure!(started.elapsed() < READY_LIMIT, "the manager was not ready within {READY_LIMIT:?}");
        sleep(Duration::from_millis(20)).await;
    }

    let caller = Caller::new(webhooks);
    let step = Arc::new(Mutex::new(Step::default()));
    let (stop, stopped) = oneshot::channel();
    let reviews = tokio::spawn(review_steadily(caller.clone(), rate, Arc::clone(&step), stopped));
    let connections = Arc::new(AtomicU64::new(0));
    let mut attackers = JoinSet::new();
    let mut text = format!(
        "{rate} reviews a second; from two other addresses {STALLED} each of five requests that never end, and {IDLE} idle connections\n\
         {:>6}  {:>9}  {:>12}  {:>8}  {:>8}  {:>7}  {:>7}  {:>9}  {:>9}\n",
        "second", "phase", "attackers'", "reviews", "answered", "median", "longest", "/healthz", "memory"
    );
    let (quiet, began) = (attack / 6, Instant::now());
    let (mut sent, mut all, mut wrong, mut slowest) = (0, 0, Vec::new(), Duration::ZERO);
    let mut quiet_mib = 0.0_f64;
    let mut steps = interval(STEP);
    steps.tick().await;
    while began.elapsed() < quiet + attack + quiet {
        let attacked = began.elapsed() >= quiet && began.elapsed() < quiet + attack;
        if attacked && attackers.is_empty() {
            attack_with(&mut attackers, &caller, &connections);
        } else if !attacked {
            attackers.shutdown().await;
        }
        steps.tick().await;
        let probed = Instant::now();
        let healthy = matches!(get(health, "/healthz", LIMIT).await, Ok((200, _)));
        let probe = probed.elapsed();
        let mut done = std::mem::take(&mut *step.lock().await);
        done.times.sort();
        let longest = done.times.last().copied().unwrap_or_default();
        let mib = process::usage(pid)?.mib;
        if !attacked && attackers.is_empty() && all == 0 {
            quiet_mib = mib;
        }
        let _ = writeln!(
            text,
            "{:>6}  {:>9}  {:>12}  {:>8}  {:>8}  {:>4} ms  {:>4} ms  {:>9}  {:>5.1} MiB",
            began.elapsed().as_secs(),
            if attacked { "attack" } else { "quiet" },
            connections.swap(0, Ordering::Relaxed),
            done.sent,
            done.times.len(),
            done.times.get(done.times.len() / 2).copied().unwrap_or_default().as_millis(),
            longest.as_millis(),
            if healthy { format!("{} ms", probe.as_millis()) } else { "none".to_owned() },
            mib,
        );
        sent += done.sent;
        all += done.times.len();
        slowest = slowest.max(longest);
        wrong.append(&mut done.wrong);
        if !healthy {
            wrong.push(format!("/healthz was not answered within {LIMIT:?}"));
        }
    }
    // Those that are still open count as well.
    drop(stop);
    timeout(2 * GIVE_UP, reviews).await.context("the reviews did not end")??;
    let mut rest = std::mem::take(&mut *step.lock().await);
    sent += rest.sent;
    all += rest.times.len();
    slowest = slowest.max(rest.times.iter().max().copied().unwrap_or_default());
    wrong.append(&mut rest.wrong);
    let usage = process::usage(pid)?;
    let (_, metrics) = get(diagnostics, "/metrics", LIMIT).await?;
    for line in metrics.lines().filter(|line| line.starts_with("capstan_requests_refused_total")) {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(
        text,
        "{all} of {sent} reviews answered, the slowest in {} ms; memory {quiet_mib:.1} MiB before, {:.1} MiB at most, {:.1} MiB after; CPU {:.1} s",
        slowest.as_millis(),
        usage.peak_mib,
        usage.mib,
        usage.cpu.as_secs_f64(),
    );
    manager.kill().await?;
    wrong.dedup();
    if slowest > LIMIT {
        wrong.push(format!("a review took {slowest:?}"));
    }
    if all != sent {
        wrong.push(format!("{sent} reviews were sent, but {all} were answered"));
    }
    if usage.peak_mib > MOST_MIB {
        wrong.push(format!("the manager held {:.1} MiB of memory", usage.peak_mib));
    }
    ensure!(wrong.is_empty(), "{text}\nnot all went well: {}", wrong.join("; "));
    Ok(text)
}

/// Sends reviews at a rate, each on a connection of its own, whether or not those before are answered. Once the sender
/// of `stopped` is dropped, waits for those that are open.
async fn review_steadily(
    caller: Caller,
    rate: u32,
    step: Arc<Mutex<Step>>,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut ticks = interval(Duration::from_secs(1) / rate.max(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut open = JoinSet::new();
    for number in 0_u64.. {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = &mut stopped => break,
        }
        while open.try_join_next().is_some() {}
        step.lock().await.sent += 1;
        let (caller, step) = (caller.clone(), Arc::clone(&step));
        open.spawn(async move {
            let (uid, began) = (number.to_string(), Instant::now());
            let body = review(&uid).to_string();
            let answer = timeout(GIVE_UP, caller.post(VALIDATE_PATH, body.as_bytes())).await;
            let took = began.elapsed();
            let mut step = step.lock().await;
            match answer {
                Ok(Ok((code, answer))) if is_let_in(&uid, code, &answer) => step.times.push(took),
                Ok(Ok((code, answer))) => {
                    step.wrong.push(format!("answered with {code} {}", String::from_utf8_lossy(&answer)));
                }
                Ok(Err(error)) => step.wrong.push(format!("a review failed: {error}")),
                Err(_) => step.wrong.push(format!("a review had no answer after {took:?}")),
            }
        });
    }
    while open.join_next().await.is_some() {}
}

/// Each attacker opens its connection again as soon as it is closed.
///
/// Attackers are Pods with addresses of their own. What shares an address shares its limit of connections, too.
fn attack_with(attackers: &mut JoinSet<()>, caller: &Caller, connections: &Arc<AtomicU64>) {
    let pods = [1, 2].map(|number| caller.from([127, 0, 1, number]));
    for (header, sent) in [
        ("Content-Length: 999999999999", 0),
        ("Content-Length: 41943040", 0),
        ("Content-Length: 41943040", 1 << 20),
        ("Content-Length: 500000", 400_000),
        ("Transfer-Encoding: chunked", 0),
    ] {
        for number in 0..STALLED {
            let (caller, connections) = (pods[number % pods.len()].clone(), Arc::clone(connections));
            attackers.spawn(async move {
                loop {
                    connections.fetch_add(1, Ordering::Relaxed);
                    if let Ok(stream) = caller.begin(VALIDATE_PATH, header, &vec![b' '; sent]).await {
                        until_closed(stream).await;
                    }
                    sleep(Duration::from_millis(100)).await;
                }
            });
        }
    }
    for number in 0..IDLE {
        let (caller, connections) = (pods[number / 2 % pods.len()].clone(), Arc::clone(connections));
        attackers.spawn(async move {
            loop {
                connections.fetch_add(1, Ordering::Relaxed);
                if number % 2 == 0 {
                    if let Ok(stream) = caller.connect().await {
                        until_closed(stream).await;
                    }
                } else if let Ok(stream) = caller.connect_tls().await {
                    until_closed(stream).await;
                }
                sleep(Duration::from_secs(1)).await;
            }
        });
    }
}

async fn until_closed(mut stream: impl tokio::io::AsyncRead + Unpin) {
    // Whether it is closed or cut off is the same to an attacker.
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
}
