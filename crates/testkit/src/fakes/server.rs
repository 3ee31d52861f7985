//! The server itself: connections, the record of requests, faults, and who answers what.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Response, header};
use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::answer::{Answer, Question};
use super::authority::{self, NAMES};
use super::fault::Fault;
use super::github::{FakeRepository, GitHubState};
use super::gitlab::GitLabState;
use super::registry::{FakeArtifact, RegistryAuth, RegistryState};

/// A request that came.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// `https` or `http`.
    pub scheme: &'static str,
    /// Whom it was for: host, and port if it is not the usual one.
    pub host: String,
    /// With escapes and query.
    pub path: String,
    /// All of them.
    pub headers: HeaderMap,
}

impl Recorded {
    /// The credentials that were shown.
    pub fn authorization(&self) -> Option<&str> {
        self.headers.get(header::AUTHORIZATION)?.to_str().ok()
    }
}

struct Injected {
    part: String,
    left: usize,
    fault: Fault,
}

impl Injected {
    fn is_for(&self, path: &str) -> bool {
        match self.part.strip_suffix('$') {
            Some(end) => path.ends_with(end),
            None => path.contains(&self.part),
        }
    }
}

#[derive(Default)]
struct State {
    github: GitHubState,
    gitlab: GitLabState,
    registry: RegistryState,
    files: BTreeMap<String, Vec<u8>>,
    faults: Vec<Injected>,
    requests: Vec<Recorded>,
}

/// Plays every kind of server that releases come from. Gone when dropped.
pub struct FakeServer {
    address: SocketAddr,
    plain_address: SocketAddr,
    ca_pem: String,
    state: Arc<Mutex<State>>,
    tasks: [JoinHandle<()>; 2],
}

impl FakeServer {
    /// Begins to listen on loopback, with TLS on one port and without on another.
    pub async fn start() -> Self {
        let (ca_pem, acceptor) = authority::make();
        let state = Arc::new(Mutex::new(State::default()));
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, plain_address) = (tcp.local_addr().unwrap(), plain.local_addr().unwrap());
        let encrypted = router(state.clone(), "https");
        let unencrypted = router(state.clone(), "http");
        let tasks = [
            tokio::spawn(async move { axum::serve(TlsListener { tcp, acceptor }, encrypted).await.unwrap() }),
            tokio::spawn(async move { axum::serve(plain, unencrypted).await.unwrap() }),
        ];
        Self { address, plain_address, ca_pem, state, tasks }
    }

    /// The authority that a client must trust.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Where it listens with TLS: `127.0.0.1:port`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Where it listens without TLS.
    pub fn plain_host(&self) -> String {
        self.plain_address.to_string()
    }

    /// An address on it, by number.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// All names that it plays, and where it is.
    pub fn resolve(&self) -> Vec<(String, SocketAddr)> {
        NAMES.iter().map(|name| ((*name).to_owned(), self.address)).collect()
    }

    /// A repository on GitHub, `owner/repo`; made when it is first named.
    pub fn github(&self, name: &str, change: impl FnOnce(&mut FakeRepository)) {
        change(self.lock().github.repositories.entry(name.to_owned()).or_default());
    }

    /// The versions of a Go module, by its path.
    pub fn go_module(&self, path: &str, versions: &[&str]) {
        self.lock().github.modules.insert(path.to_owned(), versions.join("\n"));
    }

    /// A file of a generic package on GitLab.
    pub fn gitlab_file(&self, project: &str, package: &str, version: &str, file: &str, content: &str) {
        self.lock().gitlab.add(project, package, version, file, content);
    }

    /// Hides GitLab from all but this token.
    pub fn gitlab_token(&self, token: &str) {
        self.lock().gitlab.token = Some(token.to_owned());
    }

    /// A plain file at a path, on whatever host.
    pub fn file(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.lock().files.insert(path.to_owned(), content.into());
    }

    /// An artifact in the registry.
    pub fn artifact(&self, repository: &str, tag: &str, artifact: FakeArtifact) {
        self.lock().registry.add(repository, tag, artifact);
    }

    /// Whom the registry lets in.
    pub fn registry_auth(&self, auth: RegistryAuth) {
        self.lock().registry.auth = auth;
    }

    /// Forgets all tokens that the registry has given out.
    pub fn expire_registry_tokens(&self) {
        self.lock().registry.expire_tokens();
    }

    /// Spoils the next `times` answers to requests whose path (with its query) has `part` in it, or ends with it
    /// if `part` ends with `$`.
    pub fn inject(&self, part: &str, times: usize, fault: Fault) {
        self.lock().faults.push(Injected { part: part.to_owned(), left: times, fault });
    }

    /// Everything that was asked, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.lock().requests.clone()
    }

    /// How many requests had `part` in their path.
    pub fn count(&self, part: &str) -> usize {
        self.lock().requests.iter().filter(|request| request.path.contains(part)).count()
    }

    /// Forgets what was asked.
    pub fn forget_requests(&self) {
        self.lock().requests.clear();
    }

    /// Stops listening; connections end.
    pub fn stop(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn router(state: Arc<Mutex<State>>, scheme: &'static str) -> Router {
    Router::new().fallback(move |request: Request| {
        let outcome = state.lock().unwrap().respond(scheme, &request);
        async move {
            match outcome {
                Some(response) => response,
                None => std::future::pending().await,
            }
        }
    })
}

impl State {
    fn respond(&mut self, scheme: &'static str, request: &Request) -> Option<Response<Body>> {
        let host = request.headers().get(header::HOST).map(|host| host.to_str().unwrap().to_owned());
        let question = Question {
            host: host.unwrap_or_default(),
            scheme,
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            headers: request.headers().clone(),
        };
        let full = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        self.requests.push(Recorded {
            scheme,
            host: question.host.clone(),
            path: full.clone(),
            headers: question.headers.clone(),
        });
        let answer = self.answer(&question).unless_known(&question);
        match self.next_fault(&full) {
            Some(fault) => fault.spoil(&question, answer),
            None => Some(answer.into_response()),
        }
    }

    fn answer(&mut self, question: &Question) -> Answer {
        if let Some(content) = self.files.get(&question.path) {
            return Answer::file(content);
        }
        let answer = self.registry.answer(question).or_else(|| self.gitlab.answer(question));
        answer.or_else(|| self.github.answer(question)).unwrap_or_else(Answer::missing)
    }

    fn next_fault(&mut self, path: &str) -> Option<Fault> {
        let due = self.faults.iter_mut().find(|fault| fault.left > 0 && fault.is_for(path))?;
        due.left -= 1;
        Some(due.fault.clone())
    }
}

struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = self.tcp.accept().await.unwrap();
            // A client that gives up its handshake is one of the stories.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}
