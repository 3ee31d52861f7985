//! Workload clusters for stories: the story's own API server, or something that behaves worse.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use capstan_api::{cluster::v1beta2::Cluster, conditions};
use capstan_testkit::{Story, canary::CANARY, story::reference, wait};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// Longer than anything takes that an event tells, and shorter than upstream's 30 s.
pub(crate) const AT_ONCE: Duration = Duration::from_secs(20);

/// How a stand-in for an API server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// With a status.
    Answers(u16),
    /// Never.
    Silent,
    /// With a byte now and then.
    Slow,
    /// With a body that does not end.
    Endless,
}

/// Listens on loopback in place of an API server, without TLS.
pub(crate) struct StandIn {
    pub(crate) address: SocketAddr,
    manner: watch::Sender<Manner>,
    asked: watch::Receiver<usize>,
}

impl StandIn {
    pub(crate) async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (manner, behaves) = watch::channel(manner);
        let (count, asked) = watch::channel(0);
        let (count, total) = (Arc::new(count), Arc::new(AtomicUsize::new(0)));
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (behaves, count, total) = (behaves.clone(), Arc::clone(&count), Arc::clone(&total));
                tokio::spawn(async move {
                    // Clients go away in the middle of things.
                    let _ = serve(connection, behaves, || {
                        count.send_replace(total.fetch_add(1, Ordering::SeqCst) + 1);
                    })
                    .await;
                });
            }
        });
        Self { address, manner, asked }
    }

    pub(crate) fn behave(&self, manner: Manner) {
        self.manner.send_replace(manner);
    }

    /// How often it was asked so far.
    pub(crate) fn asked(&self) -> usize {
        *self.asked.borrow()
    }

    /// Waits until it was asked so many times more.
    pub(crate) async fn until_asked(&self, more: usize) {
        self.until_asked_in_all(self.asked() + more).await;
    }

    /// Waits until it was asked so many times since it started.
    pub(crate) async fn until_asked_in_all(&self, goal: usize) {
        let mut asked = self.asked.clone();
        let wait = asked.wait_for(|asked| *asked >= goal);
        tokio::time::timeout(AT_ONCE, wait).await.expect("asked in time").unwrap();
    }

    pub(crate) fn kubeconfig(&self) -> Vec<u8> {
        kubeconfig(&json!({"server": format!("http://{}", self.address)}), &json!({}))
    }
}

async fn serve(
    mut connection: TcpStream,
    behaves: watch::Receiver<Manner>,
    asked: impl Fn(),
) -> std::io::Result<()> {
    let mut request = Vec::new();
    loop {
        while !request.ends_with(b"\r\n\r\n") {
            request.push(connection.read_u8().await?);
        }
        request.clear();
        asked();
        let manner = *behaves.borrow();
        match manner {
            Manner::Answers(code) => {
                let answer = format!("HTTP/1.1 {code} X\r\nContent-Length: 2\r\n\r\n{{}}");
                connection.write_all(answer.as_bytes()).await?;
            }
            Manner::Silent => std::future::pending().await,
            Manner::Slow => {
                connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n").await?;
                loop {
                    connection.write_all(b" ").await?;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
            Manner::Endless => {
                connection.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
                loop {
                    connection.write_all(&[b'x'; 4096]).await?;
                }
            }
        }
    }
}

/// A kubeconfig whose user has a canary for a token, unless it is to have another one.
pub(crate) fn kubeconfig(cluster: &Value, user: &Value) -> Vec<u8> {
    let mut user = user.clone();
    user.as_object_mut().unwrap().entry("token").or_insert(json!(CANARY));
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    });
    kubeconfig.to_string().into_bytes()
}

/// The story's own API server as a workload cluster, as upstream's tests do.
pub(crate) fn own_kubeconfig(story: &Story) -> Vec<u8> {
    let text = std::fs::read_to_string(story.plane.kubeconfig()).unwrap();
    format!("# {CANARY}\n{text}").into_bytes()
}

pub(crate) async fn create_kubeconfig(story: &Story, cluster: &str, text: &[u8]) {
    story.create_secret(&format!("{cluster}-kubeconfig"), Some(cluster), &[("value", text)]).await;
}

/// A Cluster that counts as provisioned at once: its control plane brings all.
pub(crate) async fn create_provisioned(story: &Story, name: &str) {
    story.create_cluster_with(name, json!({"controlPlaneRef": reference("NoControlPlane", "cp")})).await;
}

/// Status, reason and message of the condition.
pub(crate) fn probe_condition(cluster: &Cluster) -> Option<(String, String, String)> {
    let status = cluster.status.as_ref()?;
    let found = conditions::get(&status.conditions, "RemoteConnectionProbe")?;
    Some((found.status.as_str().to_owned(), found.reason.clone(), found.message.clone()))
}

/// Waits until the condition is False and its message holds these words.
pub(crate) async fn until_failed(story: &Story, name: &str, words: &str) -> Cluster {
    wait::until_is(&story.clusters(), name, &format!("failed with {words:?}"), AT_ONCE, |cluster| {
        probe_condition(cluster).is_some_and(|(status, reason, message)| {
            status == "False" && reason == "ProbeFailed" && message.contains(words)
        })
    })
    .await
}

pub(crate) async fn until_connected(story: &Story, name: &str) -> Cluster {
    wait::until_is(&story.clusters(), name, "connected", AT_ONCE, |cluster| {
        probe_condition(cluster)
            .is_some_and(|(status, reason, _)| status == "True" && reason == "ProbeSucceeded")
    })
    .await
}
