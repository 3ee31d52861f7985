//! The infrastructure itself: TCP load balancers on this machine.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use capstan_api::cluster::v1beta2::ApiEndpoint;
use capstan_runtime::ObjectKey;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream, lookup_host},
    sync::watch,
    task::JoinHandle,
};
use tracing::{debug, info};

/// A backend that does not answer within this time is skipped.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// All load balancers of this process, by the LocalCluster that they belong to.
#[derive(Clone, Debug, Default)]
pub struct LoadBalancers {
    running: Arc<Mutex<HashMap<ObjectKey, LoadBalancer>>>,
}

#[derive(Debug)]
struct LoadBalancer {
    id: String,
    endpoint: ApiEndpoint,
    backends: watch::Sender<Arc<[String]>>,
    task: JoinHandle<()>,
}

impl Drop for LoadBalancer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Where a load balancer is wanted.
#[derive(Debug)]
pub enum Place<'a> {
    /// Here.
    At(&'a ApiEndpoint),
    /// On any port of this host that is not reserved.
    Anywhere {
        /// The host.
        host: &'a str,
        /// Ports that are reserved.
        reserved: &'a [i32],
    },
}

/// The load balancer cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The port is out of range.
    #[error("port {0} is not between 1 and 65535")]
    Port(i32),
    /// The address cannot be listened on.
    #[error("cannot listen on {host}:{port}: {source}")]
    Bind {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// The system's error.
        source: io::Error,
    },
}

impl LoadBalancers {
    /// Makes sure that a LocalCluster's load balancer listens where it is wanted, and forwards to these backends. Says
    /// where it listens.
    pub async fn ensure(
        &self,
        key: &ObjectKey,
        id: &str,
        place: &Place<'_>,
        backends: &[String],
    ) -> Result<ApiEndpoint, ListenError> {
        let wanted = match place {
            Place::At(endpoint) => Some(*endpoint),
            Place::Anywhere { .. } => None,
        };
        if let Some(running) = self.lock().get(key)
            && running.id == id
            && wanted.is_none_or(|wanted| *wanted == running.endpoint)
            && !running.task.is_finished()
        {
            running.backends.send_if_modified(|known| {
                let differs = **known != *backends;
                if differs {
                    *known = backends.into();
                }
                differs
            });
            return Ok(running.endpoint.clone());
        }
        // What listens at the same endpoint must let go first; otherwise the old one stays until the new one works.
        let same = self.lock().get(key).is_some_and(|running| Some(&running.endpoint) == wanted);
        if same {
            self.remove(key).await;
        }
        let (listener, endpoint) = match place {
            Place::At(endpoint) => listen(endpoint).await?,
            Place::Anywhere { host, reserved } => listen_anywhere(host, reserved).await?,
        };
        self.remove(key).await;
        info!(object = %key, host = %endpoint.host, port = endpoint.port, "load balancer listening");
        let (sender, receiver) = watch::channel(backends.into());
        let task = tokio::spawn(accept_all(listener, receiver));
        let balancer = LoadBalancer { id: id.to_owned(), endpoint: endpoint.clone(), backends: sender, task };
        self.lock().insert(key.clone(), balancer);
        Ok(endpoint)
    }

    /// Ends a LocalCluster's load balancer, if there is one; its port is free afterwards.
    pub async fn remove(&self, key: &ObjectKey) {
        let removed = self.lock().remove(key);
        if let Some(mut balancer) = removed {
            balancer.task.abort();
            // Being cancelled is how it ends.
            let _ = (&mut balancer.task).await;
            info!(object = %key, port = balancer.endpoint.port, "load balancer stopped");
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, LoadBalancer>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn listen(wanted: &ApiEndpoint) -> Result<(TcpListener, ApiEndpoint), ListenError> {
    let ApiEndpoint { host, port } = wanted.clone();
    let number = u16::try_from(port).map_err(|_| ListenError::Port(port))?;
    let bound = async {
        let listener = TcpListener::bind((host.as_str(), number)).await?;
        let port = i32::from(listener.local_addr()?.port());
        Ok((listener, port))
    };
    let (listener, port) =
        bound.await.map_err(|source| ListenError::Bind { host: host.clone(), port: number, source })?;
    Ok((listener, ApiEndpoint { host, port }))
}

/// Picks a free port that is not reserved.
async fn listen_anywhere(host: &str, reserved: &[i32]) -> Result<(TcpListener, ApiEndpoint), ListenError> {
    let anywhere = ApiEndpoint { host: host.to_owned(), port: 0 };
    // Those that are passed over are held meanwhile, so that each try gives another port.
    let mut passed_over = Vec::new();
    loop {
        let (listener, endpoint) = listen(&anywhere).await?;
        if !reserved.contains(&endpoint.port) {
            return Ok((listener, endpoint));
        }
        passed_over.push(listener);
    }
}

async fn accept_all(listener: TcpListener, backends: watch::Receiver<Arc<[String]>>) {
    // Connections end with the load balancer.
    let mut connections = tokio::task::JoinSet::new();
    let mut turn = 0_usize;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, peer)) => {
                    let list = Arc::clone(&backends.borrow());
                    connections.spawn(forward(client, peer, list, turn));
                    turn = turn.wrapping_add(1);
                }
                Err(error) => {
                    // Out of file descriptors, say: let the others finish first.
                    debug!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Forwards to the backend whose turn it is, or to the next one that answers. Without any, it closes the connection.
async fn forward(mut client: TcpStream, peer: SocketAddr, backends: Arc<[String]>, turn: usize) {
    for offset in 0..backends.len() {
        let backend = &backends[turn.wrapping_add(offset) % backends.len()];
        match tokio::time::timeout(CONNECT_LIMIT, connect(backend)).await {
            Ok(Ok(mut server)) => {
                if let Err(error) = copy_bidirectional(&mut client, &mut server).await {
                    debug!(%peer, %backend, %error, "connection broken");
                }
                return;
            }
            Ok(Err(error)) => debug!(%backend, %error, "backend does not answer"),
            Err(_) => debug!(%backend, "backend is too slow to answer"),
        }
    }
}

async fn connect(backend: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no address");
    for address in lookup_host(backend).await? {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// A server that answers every connection with its name.
    async fn server(name: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                stream.write_all(name.as_bytes()).await.unwrap();
            }
        });
        address
    }

    const ANYWHERE: Place<'static> = Place::Anywhere { host: "127.0.0.1", reserved: &[] };

    async fn ask(endpoint: &ApiEndpoint) -> String {
        let port = u16::try_from(endpoint.port).unwrap();
        let mut stream = TcpStream::connect((endpoint.host.as_str(), port)).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn connections_go_to_the_backends_in_turn_and_past_dead_ones() {
        let balancers = LoadBalancers::default();
        let key = ObjectKey::new("n", "a");
        let dead = {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            listener.local_addr().unwrap().to_string()
        };
        let backends = [server("one").await, dead, server("two").await];
        let endpoint = balancers.ensure(&key, "u", &ANYWHERE, &backends).await.unwrap();
        let mut answers = Vec::new();
        for _ in 0..6 {
            answers.push(ask(&endpoint).await);
        }
        assert_eq!(answers, ["one", "two", "two", "one", "two", "two"]);

        let here = Place::At(&endpoint);
        let again = balancers.ensure(&key, "u", &here, &[server("three").await]).await.unwrap();
        assert_eq!(again, endpoint, "new backends need no new port");
        assert_eq!(ask(&endpoint).await, "three");

        balancers.ensure(&key, "u", &here, &[]).await.unwrap();
        assert_eq!(ask(&endpoint).await, "", "without backends a client is let go");
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_named() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = taken.local_addr().unwrap().port();
        let wanted = ApiEndpoint { host: "127.0.0.1".into(), port: port.into() };
        let balancers = LoadBalancers::default();
        let key = ObjectKey::new("n", "a");
        let error = balancers.ensure(&key, "u", &Place::At(&wanted), &[]).await.unwrap_err();
        assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
    }

    #[tokio::test]
    async fn removal_frees_the_port() {
        let balancers = LoadBalancers::default();
        let key = ObjectKey::new("n", "a");
        let endpoint = balancers.ensure(&key, "u", &ANYWHERE, &[]).await.unwrap();
        balancers.remove(&key).await;
        balancers.remove(&key).await;
        let other = ObjectKey::new("n", "b");
        let other = balancers.ensure(&other, "u", &Place::At(&endpoint), &[]).await;
        assert_eq!(other.unwrap(), endpoint);
    }
}
