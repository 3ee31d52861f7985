//! Callers without credentials that want to stop all writes of Clusters: by requests that never end, by text that is
//! small until it is read, by idle connections.

use std::{fs, net::SocketAddr, path::PathBuf, process::Stdio, time::Duration};

use capstan_api::cluster::{
    admission::VALIDATE_PATH,
    conversion::{CONVERSION_DATA, V1BETA1_DATA},
};
use capstan_testkit::{
    Story,
    hostile::{Caller, free_port, get, is_let_in, raise_file_limit, review, write_certificate},
    wait::LIMIT,
};
use futures::{StreamExt, stream};
use serde_json::json;
use tokio::{
    io::AsyncReadExt,
    process::{Child, Command},
    time::Instant,
};

/// What a small review may take, whatever others do.
const AT_ONCE: Duration = Duration::from_secs(1);

/// What it may take beside reviews that are hard work, on a busy machine. One of those alone takes longer where its time
/// grows with the square of its length.
const BESIDE_WORK: Duration = Duration::from_secs(10);

/// A core manager in a process of its own, whose memory is not that of the tests.
struct Victim {
    manager: Child,
    log: PathBuf,
    webhooks: Caller,
    health: SocketAddr,
    diagnostics: SocketAddr,
    _story: Story,
}

impl Victim {
    /// Each story has an address of its own.
    async fn start(name: &str, host: &str) -> Self {
        let story = Story::begin(name).await;
        let folder = std::env::temp_dir().join(format!("{}-{}", story.namespace, std::process::id()));
        write_certificate(&folder);
        let port = free_port();
        let (health, diagnostics) = (format!("{host}:19440"), format!("{host}:18080"));
        let log = folder.join("log");
        let manager = Command::new(env!("CARGO_BIN_EXE_capstan"))
            .args(["manager", "core", "--insecure-diagnostics"])
            .arg(format!("--webhook-port={port}"))
            .arg(format!("--health-addr={health}"))
            .arg(format!("--diagnostics-address={diagnostics}"))
            .arg(format!("--namespace={}", story.namespace))
            .arg("--webhook-cert-dir")
            .arg(&folder)
            .arg("--kubeconfig")
            .arg(story.plane.kubeconfig())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let victim = Self {
            manager,
            log,
            webhooks: Caller::new(SocketAddr::from(([127, 0, 0, 1], port))),
            health: health.parse().unwrap(),
            diagnostics: diagnostics.parse().unwrap(),
            _story: story,
        };
        let deadline = Instant::now() + LIMIT;
        while !matches!(get(victim.health, "/readyz", AT_ONCE).await, Ok((200, _))) {
            assert!(Instant::now() < deadline, "never ready: {}", victim.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        victim
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Small reviews are answered at once, and so is the kubelet. On a busy machine one of them may take longer for
    /// other reasons, so it is the median that counts.
    async fn check(&self, when: &str) {
        self.check_within(when, AT_ONCE).await;
    }

    async fn check_within(&self, when: &str, limit: Duration) {
        let (mut reviews, mut probes) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            let began = Instant::now();
            let body = review("u").to_string();
            let answer =
                tokio::time::timeout(LIMIT, self.webhooks.post(VALIDATE_PATH, body.as_bytes())).await;
            reviews.push(began.elapsed());
            let answer = answer.map_err(|_| format!("no answer within {LIMIT:?}"));
            let (code, answer) = answer.and_then(|it| it.map_err(|error| error.to_string())).expect(when);
            assert!(is_let_in("u", code, &answer), "{when}: {code} {}", String::from_utf8_lossy(&answer));
            let began = Instant::now();
            let probe = get(self.health, "/healthz", LIMIT).await;
            probes.push(began.elapsed());
            assert!(matches!(probe, Ok((200, _))), "{when}: /healthz gave {probe:?}");
        }
        for times in [&mut reviews, &mut probes] {
            times.sort();
        }
        assert!(reviews[2] < limit, "{when}: small reviews took {reviews:?}");
        assert!(probes[2] < limit, "{when}: /healthz took {probes:?}");
    }

    /// Waits until the manager has counted a refusal.
    async fn until_refused(&self, server: &str, limit: &str) {
        let expected = format!("capstan_requests_refused_total{{server=\"{server}\",limit=\"{limit}\"}}");
        let deadline = Instant::now() + LIMIT;
        loop {
            let metrics = get(self.diagnostics, "/metrics", LIMIT).await;
            if matches!(&metrics, Ok((200, text)) if text.contains(&expected)) {
                return;
            }
            assert!(Instant::now() < deadline, "{limit} was never counted: {metrics:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Memory of the manager in MB: the most that it ever held, or what it holds.
    fn memory(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.manager.id().unwrap())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024 / 1_000_000
    }

    async fn end(mut self) {
        self.manager.kill().await.unwrap();
        fs::remove_dir_all(self.log.parent().unwrap()).unwrap();
    }
}

/// A review that asks for objects in another version.
fn conversion(version: &str, objects: &str) -> String {
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{{"uid":"u","desiredAPIVersion":"cluster.x-k8s.io/{version}","objects":[{objects}]}}}}"#
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_never_end_delay_no_review() {
    let victim = Victim::start("never-ending", "127.77.3.1").await;
    victim.check("before").await;
    let began = Instant::now();
    let mut open = Vec::new();
    for round in 0..3 {
        for (header, sent) in [
            ("Content-Length: 999999999999", 0),
            ("Content-Length: 41943040", 0),
            ("Content-Length: 41943040", 1 << 20),
            ("Content-Length: 500000", 400_000),
            ("Transfer-Encoding: chunked", 0),
        ] {
            for path in [VALIDATE_PATH, "/convert"] {
                for _ in 0..5 {
                    // A peer that is refused at once may be cut off while it is still sending.
                    open.extend(victim.webhooks.begin(path, header, &vec![b' '; sent]).await);
                }
            }
            victim.check(&format!("round {round}, {header}, {sent} bytes sent")).await;
        }
    }
    for limit in ["body_length", "body_stall"] {
        victim.until_refused("webhooks", limit).await;
    }
    let log = victim.log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("turned a caller away")).collect();
    assert!(lines[0].contains("127.0.0.1") && lines[0].contains("larger than the limit of"), "{log}");
    let minutes = usize::try_from(began.elapsed().as_secs() / 60).unwrap();
    assert!(lines.len() <= minutes + 1, "more than one a minute: {lines:?}");
    victim.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_that_is_small_until_it_is_read_takes_little_memory() {
    let victim = Victim::start("dense", "127.77.3.2").await;
    victim.check("before").await;
    let before = victim.memory("VmRSS:");
    let to_old = |objects: &str| conversion("v1beta1", objects);
    let admission = |list: &str| {
        let mut review = review("u");
        review["request"]["object"]["spec"]["noise"] = "here".into();
        review.to_string().replacen("\"here\"", &format!("[{list}]"), 1)
    };
    let of = |part: &str, length: usize| format!("{}0", part.repeat(length / part.len()));
    let cluster = |part: &str| {
        let noise = of(part, 63 << 20);
        format!(r#"{{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","spec":[{noise}]}}"#)
    };
    let annotated = |annotation: &str, version: &str, text: &str| {
        json!({
            "apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": "Cluster",
            "metadata": {"name": "c", "namespace": "n", "annotations": {annotation: text}}, "spec": {},
        })
        .to_string()
    };
    let hidden = |length| format!("[{}]", of(r#"{"":0},"#, length));
    let deep = "[".repeat(40 << 20);
    // As much as is read: an object, and very many.
    let large = format!(
        r#"{{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{{"name":"c"}},"noise":[{}]}}"#,
        of("0,", 1 << 20)
    );
    let small = r#"{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c"}},"#;
    let many = small.repeat(90_000);
    let too_much = "more than the limit of 64 MiB";
    for (path, body, words) in [
        ("/convert", to_old(&cluster(r#"{"":0},"#)), too_much),
        ("/convert", to_old(&cluster("0,")), too_much),
        ("/convert", to_old(&of(r#"{"":0},"#, 63 << 20)), "is not converted by this webhook"),
        ("/convert", to_old(&annotated(V1BETA1_DATA, "v1beta2", &hidden(40 << 20))), too_much),
        (
            "/convert",
            conversion("v1beta2", &annotated(CONVERSION_DATA, "v1beta1", &hidden(40 << 20))),
            too_much,
        ),
        ("/convert", to_old(&annotated(V1BETA1_DATA, "v1beta2", &hidden(250 << 10))), "Success"),
        (
            "/convert",
            conversion("v1beta2", &annotated(CONVERSION_DATA, "v1beta1", &hidden(250 << 10))),
            "Success",
        ),
        ("/convert", to_old(&large), "Success"),
        ("/convert", to_old(many.trim_end_matches(',')), "Success"),
        (VALIDATE_PATH, admission(&of(r#"{"":0},"#, 39 << 20)), too_much),
        (VALIDATE_PATH, deep, "deeper than the limit of 100 levels"),
    ] {
        let (code, answer) = victim.webhooks.post(path, body.as_bytes()).await.unwrap();
        let answer = String::from_utf8_lossy(&answer);
        // A machine that is busy with other things may be too slow to send it or to look at it; it goes on looking.
        assert!(answer.contains(words) || code == 408, "{path}, {words}: {code} {answer}");
        let mut looked = victim.webhooks.post("/convert", &vec![b' '; 1 << 20]).await.unwrap();
        let deadline = Instant::now() + 5 * LIMIT;
        while looked.0 == 408 {
            assert!(Instant::now() < deadline, "{path}, {words}: the next one never had its turn");
            looked = victim.webhooks.post("/convert", &vec![b' '; 1 << 20]).await.unwrap();
        }
        let peak = victim.memory("VmHWM:");
        assert!(peak < 300, "{path}, {words}: {peak} MB");
    }
    victim.check("after").await;
    // It is given back. What stays is the allocator's.
    let after = victim.memory("VmRSS:");
    eprintln!("{before} MB before, {} MB at most, {after} MB after", victim.memory("VmHWM:"));
    assert!(after < before + 50, "{before} MB before, {after} MB after");
    victim.end().await;
}

/// Parked changes of long lists, in an order that makes each of them hard to find or to make.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reviews_that_are_long_to_answer_delay_no_other() {
    let victim = Victim::start("hard", "127.77.3.4").await;
    victim.check("before").await;
    let count = 8000;
    let names = || (0..count).map(|it| it.to_string());
    let list: Vec<_> = names().map(|it| json!({"name": it})).collect();
    // Seven is no divisor: every name is there, none at its place.
    let order: Vec<_> = (0..count).map(|it| (it * 7 % count).to_string()).collect();
    let set = names().rev().map(|it| json!({"at": ["spec", "x", {"name": it}, "y"], "to": 0}));
    for changes in [json!(vec![json!({"at": ["spec", "x"], "order": order}); 3]), set.take(4000).collect()] {
        let object = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "spec": {"x": list},
            "metadata": {"name": "c", "annotations": {V1BETA1_DATA: changes.to_string()}},
        });
        let body = conversion("v1beta1", &object.to_string());
        let began = Instant::now();
        let attack = stream::iter(0..20).map(|_| victim.webhooks.post("/convert", body.as_bytes()));
        let attack = attack.buffer_unordered(20).collect::<Vec<_>>();
        let (answers, ()) = tokio::join!(attack, victim.check_within("during", BESIDE_WORK));
        for answer in answers {
            let (code, answer) = answer.unwrap();
            let answer = String::from_utf8_lossy(&answer);
            // A busy machine may take too long for all twenty; the others had their answers meanwhile.
            let is_answered = code == 200 && answer.contains("Success");
            assert!(is_answered || code == 408, "{code} {}", &answer[..200.min(answer.len())]);
        }
        eprintln!("20 conversions of {} kB in {:?}", body.len() / 1000, began.elapsed());
    }
    victim.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_nobody_uses_starve_neither_health_nor_reviews() {
    const MANY: usize = 1100;
    raise_file_limit();
    let victim = Victim::start("idle", "127.77.3.3").await;
    victim.check("before").await;
    // Of one peer, and of several.
    for peers in [1, 4] {
        let callers: Vec<_> = (0..MANY)
            .map(|it| victim.webhooks.from([127, 0, 1, u8::try_from(it % peers).unwrap() + 1]))
            .collect();
        let plain: Vec<_> = stream::iter(&callers).map(Caller::connect).buffer_unordered(50).collect().await;
        victim.check(&format!("{MANY} idle connections of {peers} peers")).await;
        let encrypted: Vec<_> =
            stream::iter(&callers).map(Caller::connect_tls).buffer_unordered(50).collect().await;
        victim.check(&format!("{MANY} idle connections of {peers} peers after TLS")).await;
        assert!(plain.iter().all(Result::is_ok), "each was accepted");
        // While the last are made, the first are let go already.
        assert!(encrypted.iter().filter(|it| it.is_ok()).count() > MANY / 2);
    }
    // The remaining connections are asked to close.
    let mut silent = victim.webhooks.connect().await.unwrap();
    let closed = tokio::time::timeout(LIMIT, silent.read_to_end(&mut Vec::new())).await;
    assert!(closed.is_ok(), "still open after {LIMIT:?}");
    let health = Caller::new(victim.health);
    let idle: Vec<_> = stream::iter(0..MANY).map(|_| health.connect()).buffer_unordered(50).collect().await;
    victim.check(&format!("{} idle connections to the health server", idle.len())).await;
    for (server, limit) in [
        ("webhooks", "peer_connections"),
        ("webhooks", "connections"),
        ("webhooks", "first_request"),
        ("health", "peer_connections"),
    ] {
        victim.until_refused(server, limit).await;
    }
    victim.end().await;
}
