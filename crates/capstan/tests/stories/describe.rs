//! `describe cluster` on a real server: what is read of it is what is there.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use capstan_inspect::describe::{build, to_value};
use capstan_runtime::install::install_crds;
use capstan_testkit::{Plane, Story, gate::Gate, generic, terminal::Terminal};
use futures::{StreamExt, stream};
use k8s_openapi::{
    api::rbac::v1::{Role, RoleBinding},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::Kubeconfig,
};
use serde_json::{Value, json};

use self::described::{
    api, create,
    objects::CLUSTER,
    server::{options, snapshot},
    states::{self, State},
};
use crate::user::User;

#[path = "../described/mod.rs"]
mod described;

/// What a command may take that runs on.
const LIMIT: Duration = Duration::from_secs(30);
const AT_ONCE: usize = 4;
/// Requests for a whole cluster, however many Machines it has: discovery, the Cluster and its lists, the CRDs of
/// what it refers to, and a list or an object of each of them.
const REQUESTS: usize = 16;

/// Every kind that a state has objects of, by group.
const KINDS: [(&str, &[&str]); 5] = [
    (
        "cluster.x-k8s.io",
        &["Cluster", "Machine", "MachineSet", "MachineDeployment", "MachinePool", "MachineHealthCheck"],
    ),
    ("addons.cluster.x-k8s.io", &["ClusterResourceSetBinding"]),
    (
        "infrastructure.cluster.x-k8s.io",
        &["GenericCluster", "GenericMachine", "GenericMachineTemplate", "GenericMachinePool"],
    ),
    ("bootstrap.cluster.x-k8s.io", &["KubeadmConfig", "KubeadmConfigTemplate"]),
    ("controlplane.cluster.x-k8s.io", &["KubeadmControlPlane"]),
];

/// Kinds that take anything, in these versions, of which the last one is stored.
async fn install(client: &Client, versions: &[&str]) {
    let crd = |group: &str, kind: &str| {
        let labels: Vec<(&str, &str)> = versions.iter().map(|it| (*it, *it)).collect();
        let mut crd: CustomResourceDefinition = generic::crd(kind, &labels);
        crd.metadata.name = Some(format!("{}.{group}", crd.spec.names.plural));
        group.clone_into(&mut crd.spec.group);
        let version = crd.spec.versions.remove(0);
        for (index, name) in versions.iter().enumerate() {
            let mut version = version.clone();
            (*name).clone_into(&mut version.name);
            version.storage = index + 1 == versions.len();
            crd.spec.versions.push(version);
        }
        crd
    };
    let kinds = || KINDS.iter().flat_map(|(group, kinds)| kinds.iter().map(move |kind| (*group, *kind)));
    let crds: Vec<_> = kinds().map(|(group, kind)| crd(group, kind)).collect();
    install_crds(client, &crds, "story").await.unwrap();
    // A version that is added is served a little later.
    for (group, kind) in kinds() {
        for version in versions {
            let objects =
                api(client, "default", &json!({"apiVersion": format!("{group}/{version}"), "kind": kind}));
            let deadline = Instant::now() + LIMIT;
            while let Err(error) = objects.list(&ListParams::default()).await {
                assert!(Instant::now() < deadline, "{kind} in {version}: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// The state's objects in another namespace.
fn moved(state: &State, namespace: &str) -> State {
    let mut state = state.clone();
    for object in &mut state.objects {
        object["metadata"]["namespace"] = json!(namespace);
    }
    state
}

/// A user who may look at everything in a namespace but at some kinds.
async fn guest(story: &Story, forbidden: &[&str]) -> User {
    let rule = |(group, kinds): &(&str, &[&str])| {
        let allowed = kinds.iter().filter(|it| !forbidden.contains(it));
        let resources: Vec<_> = allowed.map(|it| format!("{}s", it.to_lowercase())).collect();
        json!({"apiGroups": [group], "resources": resources, "verbs": ["get", "list"]})
    };
    let rules: Vec<Value> = KINDS
        .iter()
        .map(rule)
        .filter(|it| it["resources"].as_array().is_some_and(|it| !it.is_empty()))
        .collect();
    let role: Role = serde_json::from_value(json!({"metadata": {"name": "guest"}, "rules": rules})).unwrap();
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "guest"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "guest"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "guest"}],
    }))
    .unwrap();
    let params = PostParams::default();
    Api::namespaced(story.client.clone(), &story.namespace).create(&params, &role).await.unwrap();
    Api::namespaced(story.client.clone(), &story.namespace).create(&params, &binding).await.unwrap();
    let mut kubeconfig = Kubeconfig::read_from(story.plane.kubeconfig()).unwrap();
    kubeconfig.auth_infos[0].auth_info.as_mut().unwrap().impersonate = Some("guest".to_owned());
    let user = User::new();
    let file = user.write("kubeconfig", &serde_json::to_string(&kubeconfig).unwrap());
    user.with("KUBECONFIG", file)
}

fn admin(plane: &Plane) -> User {
    User::new().with("KUBECONFIG", plane.kubeconfig())
}

/// Takes out the words of the server, which name the user and the verb.
fn without_words_of_refusal(tree: &mut Value) {
    if tree["unreadable"]["reason"] == "Forbidden" {
        let told = tree["unreadable"]["message"].take();
        assert!(told.as_str().is_some_and(|it| it.contains("is forbidden: User \"guest\" cannot")), "{told}");
    }
    for child in tree.get_mut("children").and_then(Value::as_array_mut).into_iter().flatten() {
        without_words_of_refusal(child);
    }
}

/// What the command reads of a state is what was put there: the same tree as from its objects alone.
async fn check(plane: &Arc<Plane>, client: &Client, state: &State) {
    let story = Story::begin_as(Arc::clone(plane), client.clone(), state.name).await;
    create(client, &story.namespace, state).await;
    let user = if state.forbidden.is_empty() { admin(plane) } else { guest(&story, state.forbidden).await };
    let flags = state.flags.split_whitespace();
    let words = ["describe", "cluster", CLUSTER, "-o", "json", "-n"].into_iter();
    let words: Vec<String> =
        words.chain([story.namespace.as_str()]).chain(flags).map(str::to_owned).collect();
    let run = move || user.run(&words.iter().map(String::as_str).collect::<Vec<_>>()).only_data();
    let text = tokio::task::spawn_blocking(run).await.unwrap();
    let mut found: Value = serde_json::from_str(&text).unwrap();
    let state = moved(state, &story.namespace);
    let mut expected = to_value(&build(&snapshot(&state), &options(&state)));
    for tree in [&mut found, &mut expected] {
        without_words_of_refusal(tree);
    }
    assert_eq!(found, expected, "{}: found {found:#}\nexpected {expected:#}", state.name);
}

async fn check_all(plane: &Arc<Plane>, client: &Client, states: &[State]) {
    stream::iter(states).for_each_concurrent(AT_ONCE, |state| check(plane, client, state)).await;
}

fn named(name: &str) -> State {
    states::all().into_iter().find(|it| it.name == name).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_state_is_read_as_it_is() {
    let plane = Plane::start_bare().await;
    let client = plane.client().await;
    admin(&plane).run(&["describe", "cluster", "prod"]).fails(&[
        "knows no kind Cluster",
        "hint:",
        "--kubeconfig",
        "by init",
    ]);

    // A management cluster that does not know v1beta2 yet, and then does.
    install(&client, &["v1beta1"]).await;
    let (old, current): (Vec<_>, Vec<_>) =
        states::all().into_iter().partition(|it| it.name.starts_with("v1beta1"));
    assert!(old.len() >= 2 && current.len() >= 30);
    check_all(&plane, &client, &old).await;
    install(&client, &["v1beta1", "v1beta2"]).await;
    refuse(&plane, &client).await;
    check_all(&plane, &client, &current).await;
    count_requests(&plane, &client).await;
    follow_changes(&plane, &client).await;
    draw_over(&plane, &client).await;
    interrupt_a_read(&plane, &client).await;
}

async fn refuse(plane: &Arc<Plane>, client: &Client) {
    let story = Story::begin_as(Arc::clone(plane), client.clone(), "refusals").await;
    create(client, &story.namespace, &named("cluster-alone")).await;
    let user = admin(plane);
    let namespace = story.namespace.as_str();
    let missing = |name: &str| format!("there is no Cluster {namespace}/{name} in https://");
    let describe = |words: &[&str]| user.run(&[&["describe", "cluster"], words].concat());
    describe(&["prud", "-n", namespace]).fails(&[&missing("prud"), "of a similar name: prod"]);
    describe(&["else", "-n", namespace])
        .fails(&[&missing("else"), &format!("namespace {namespace} has these: prod")]);
    describe(&[CLUSTER, "-n", "kube-public"]).fails(&["in another namespace: ", &format!("-n {namespace}")]);
    describe(&["prod", "--show-conditions", "a, b"]).fails(&["--show-conditions", "blanks"]);
    describe(&["prod", "-n", namespace, "--kubeconfig-context", "nowhere"]).fails(&["nowhere"]);
    User::new()
        .run(&["describe", "cluster", "prod"])
        .fails(&["no management cluster is named", "--kubeconfig"]);
    // A user who may not read Clusters gets that error, not that there is none.
    let guest = guest(&story, &["Cluster"]).await;
    guest.run(&["describe", "cluster", "prod", "-n", namespace]).fails(&[
        "cannot read Cluster",
        "is forbidden",
        "hint:",
    ]);
    // Usage is printed for an invalid command line, with the exit code of clusterctl.
    assert_eq!(user.run(&["describe", "cluster"]).code, Some(1));
    assert_eq!(user.run(&["describe", "cluster", "a", "b"]).code, Some(1));
}

/// However many Machines there are, the requests are the same few, and none of them writes.
async fn count_requests(plane: &Arc<Plane>, client: &Client) {
    let gate = Gate::open(client.clone()).await;
    let user = User::new();
    let file = user.write("kubeconfig", &gate.kubeconfig());
    let user = Arc::new(user.with("KUBECONFIG", file));
    // One has 2 Machines, the other 14. An explanation also reads the providers, and the CRDs of what makes Machines.
    for (name, to_explain) in [("workers-orphan", 24), ("workers-of-two-deployments", 26)] {
        let story = Story::begin_as(Arc::clone(plane), client.clone(), name).await;
        create(client, &story.namespace, &named(name)).await;
        for (command, requests) in [("describe", REQUESTS), ("explain", to_explain)] {
            gate.count_from_now(None);
            let (user, namespace) = (Arc::clone(&user), story.namespace.clone());
            let run = move || user.run(&[command, "cluster", CLUSTER, "-n", &namespace]).only_data();
            tokio::task::spawn_blocking(run).await.unwrap();
            let passed = gate.passed();
            assert!(passed.iter().all(|it| !it.is_write()), "{passed:?}");
            assert_eq!(passed.len(), requests, "{command} {name}: {passed:#?}");
        }
    }
}

/// The command with a pipe for its words, line by line.
struct Following {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Following {
    fn start(user: &User, namespace: &str) -> Self {
        let words = ["describe", "cluster", CLUSTER, "-n", namespace, "--watch"];
        let mut command = user.command(env!("CARGO_BIN_EXE_capstan"), &words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines }
    }

    fn until(&self, words: &str) {
        let deadline = Instant::now() + LIMIT;
        let mut seen = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            assert!(line.is_ok(), "{words:?} was not told:\n{}", seen.join("\n"));
            seen.extend(line);
            if seen.last().is_some_and(|line| line.contains(words)) {
                return;
            }
        }
    }

    fn interrupt(&self) {
        let sent = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end, which must be a good one; returns its other output.
    fn ended(mut self) -> String {
        let deadline = Instant::now() + LIMIT;
        while self.child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                self.child.kill().unwrap();
            }
            thread::sleep(Duration::from_millis(20));
        }
        let mut told = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {told}");
        told
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Changes of any object are shown until the Cluster is deleted or the user ends the command.
async fn follow_changes(plane: &Arc<Plane>, client: &Client) {
    let story = Story::begin_as(Arc::clone(plane), client.clone(), "watch").await;
    let state = named("control-plane-mixed");
    create(client, &story.namespace, &state).await;
    let user = admin(plane);
    let [one, other] = [(); 2].map(|()| Following::start(&user, &story.namespace));
    for following in [&one, &other] {
        following.until("└─3 Machines...");
    }
    let find = |kind: &str| state.objects.iter().find(|it| it["kind"] == kind).unwrap();
    let change = async |kind: &str, reason: &str| {
        let objects = api(client, &story.namespace, find(kind));
        let now = json!([{"type": "Ready", "status": "False", "reason": reason}]);
        let patch = Patch::Merge(json!({"status": {"conditions": now}}));
        objects.patch_status(CLUSTER, &PatchParams::default(), &patch).await.unwrap();
    };
    change("GenericCluster", "NetworkLost").await;
    one.until("NetworkLost");
    change("KubeadmControlPlane", "CertificatesExpired").await;
    one.until("CertificatesExpired");
    other.until("CertificatesExpired");
    other.interrupt();
    assert_eq!(other.ended(), "");
    let clusters = api(client, &story.namespace, find("Cluster"));
    clusters.delete(CLUSTER, &DeleteParams::default()).await.unwrap();
    assert!(one.ended().contains(&format!("Cluster {}/prod was deleted", story.namespace)));
}

/// An interrupt ends the command while the server does not answer, at the first look or at a later one.
async fn interrupt_a_read(plane: &Arc<Plane>, client: &Client) {
    let story = Story::begin_as(Arc::clone(plane), client.clone(), "interrupt").await;
    let state = named("control-plane-mixed");
    create(client, &story.namespace, &state).await;
    let infrastructure = state.objects.iter().find(|it| it["kind"] == "GenericCluster").unwrap();
    let objects = api(client, &story.namespace, infrastructure);
    let change = async |reason: &str| {
        let now = json!([{"type": "Ready", "status": "False", "reason": reason}]);
        let patch = Patch::Merge(json!({"status": {"conditions": now}}));
        objects.patch_status(CLUSTER, &PatchParams::default(), &patch).await.unwrap();
    };
    let gate = Gate::open(client.clone()).await;
    let user = User::new();
    let file = user.write("kubeconfig", &gate.kubeconfig());
    let user = user.with("KUBECONFIG", file);
    for has_tree in [false, true] {
        gate.count_from_now((!has_tree).then_some(0));
        let following = Following::start(&user, &story.namespace);
        if has_tree {
            following.until("└─3 Machines...");
            change("NetworkLost").await;
            following.until("NetworkLost");
            gate.count_from_now(Some(0));
            change("NetworkFound").await;
        }
        // Watches ask with selectors, a look begins without.
        let deadline = Instant::now() + LIMIT;
        while gate.passed().iter().all(|it| it.target.contains("Selector")) {
            assert!(Instant::now() < deadline, "no look began");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let started = Instant::now();
        following.interrupt();
        assert_eq!(following.ended(), "");
        assert!(started.elapsed() < LIMIT / 2, "ended by itself after {:?}", started.elapsed());
    }
}

/// On a terminal the tree stays in its place, however little room there is.
async fn draw_over(plane: &Arc<Plane>, client: &Client) {
    let story = Story::begin_as(Arc::clone(plane), client.clone(), "terminal").await;
    let state = named("control-plane-mixed");
    create(client, &story.namespace, &state).await;
    let infrastructure = state.objects.iter().find(|it| it["kind"] == "GenericCluster").unwrap();
    let objects = api(client, &story.namespace, infrastructure);
    let user = admin(plane);
    let words = ["describe", "cluster", CLUSTER, "-n", &story.namespace, "--watch"];
    let shows = |lines: &[String], words: &str| lines.iter().filter(|it| it.contains(words)).count();
    for (rows, drawn, cut) in [(20, 6, 0), (6, 5, 1)] {
        let command = user.command(env!("CARGO_BIN_EXE_capstan"), &words);
        let mut terminal = Terminal::start(command, 110, rows);
        let is_in_place = |lines: &[String]| {
            lines.len() == drawn && shows(lines, "NAME") == 1 && shows(lines, "more lines") == cut
        };
        terminal.until("the tree", is_in_place);
        for reason in ["NetworkLost", "NetworkFound"] {
            let now = json!([{"type": "Ready", "status": "False", "reason": reason}]);
            let patch = Patch::Merge(json!({"status": {"conditions": now}}));
            objects.patch_status(CLUSTER, &PatchParams::default(), &patch).await.unwrap();
            terminal.until(reason, |lines| shows(lines, reason) == 1 && is_in_place(lines));
        }
        assert_eq!(shows(&terminal.lines(), "NetworkLost"), 0);
        terminal.interrupt();
        assert!(terminal.ended().success());
        assert!(is_in_place(&terminal.lines()), "{}", terminal.lines().join("\n"));
    }
}
