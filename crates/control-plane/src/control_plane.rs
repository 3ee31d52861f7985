//! Starting and stopping the processes, in order.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::binaries::{API_SERVER, Binaries, CONTROLLER_MANAGER, ETCD};
use crate::certificates::Credentials;
use crate::error::Error;
use crate::flags;
use crate::http::Client;
use crate::kubeconfig;
use crate::ports::Ports;
use crate::process::{Service, poll};
use crate::state_dir::{StateDir, write_private};

/// For a process to end once asked. It takes about a second, and kube-apiserver longer only when etcd is gone
/// already; none keeps anything in memory that is worth waiting for.
const GRACE: Duration = Duration::from_secs(5);

/// How often to ask a process whether it is ready.
const PAUSE: Duration = Duration::from_millis(50);

/// How often to try other ports, when another process is quicker to take one.
const PORT_ATTEMPTS: usize = 5;

/// Made by the controller manager at the first start, and so a sign that it works; Pods need it.
const DEFAULT_ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/default";

/// How a control plane is to be run. Made by [`Options::temporary`] or [`Options::persistent`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The programs.
    pub binaries: Binaries,
    /// Where it lives.
    pub state: State,
    /// Whether kube-controller-manager runs: without it, nothing is collected as garbage, and namespaces are
    /// never fully deleted. Its garbage collector takes up to 30 s to notice a new kind. On by default.
    pub controller_manager: bool,
    /// Flags for kube-apiserver, after the ones it has anyway; of a repeated flag the last counts.
    pub api_server_flags: Vec<String>,
    /// Whether etcd leaves it to the system when data reaches the disk: much quicker, and lost when the
    /// machine (not just the process) fails. On by default for temporary control planes only.
    pub unsafe_no_fsync: bool,
    /// How long each process is given to become ready. A minute by default.
    pub ready_limit: Duration,
}

/// Where a control plane keeps its data, keys and logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// This directory, which is made if need be, for this user only. The next start in it finds the same data
    /// and the same authority, on the same ports where these are free.
    Persistent(PathBuf),
    /// A new directory under this one, removed when the control plane stops. It is kept when the start fails,
    /// for its logs: then, as when the process is killed, the next temporary one under the same directory
    /// removes it.
    Temporary(PathBuf),
}

impl Options {
    /// A control plane that leaves nothing behind, in a new directory under the given one.
    pub fn temporary(binaries: Binaries, under: impl Into<PathBuf>) -> Self {
        Self::new(binaries, State::Temporary(under.into()), true)
    }

    /// A control plane that can be stopped and started again in the given directory.
    pub fn persistent(binaries: Binaries, dir: impl Into<PathBuf>) -> Self {
        Self::new(binaries, State::Persistent(dir.into()), false)
    }

    fn new(binaries: Binaries, state: State, unsafe_no_fsync: bool) -> Self {
        Self {
            binaries,
            state,
            controller_manager: true,
            api_server_flags: Vec::new(),
            unsafe_no_fsync,
            ready_limit: Duration::from_mins(1),
        }
    }
}

/// A running control plane. It stops when the value is dropped, or its process ends in whatever way.
pub struct ControlPlane {
    options: Options,
    credentials: Credentials,
    ports: Ports,
    client: Client,
    kubeconfig: PathBuf,
    kubeconfig_text: String,
    controller_manager_kubeconfig: PathBuf,
    data: PathBuf,
    logs: PathBuf,
    etcd: Option<Service>,
    api_server: Option<Service>,
    controller_manager: Option<Service>,
    // Not before the start has succeeded: the error of one that has not names a log in the directory.
    remove_when_stopped: bool,
    // Last, as it gives up its lock when it is dropped.
    state: StateDir,
}

impl fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlPlane")
            .field("state_dir", &self.state_dir())
            .field("url", &self.url())
            .finish_non_exhaustive()
    }
}

impl ControlPlane {
    /// Starts the processes and returns when all of them are ready.
    pub fn start(options: Options) -> Result<Self, Error> {
        let state = match &options.state {
            State::Persistent(dir) => StateDir::persistent(dir)?,
            State::Temporary(under) => StateDir::temporary(under)?,
        };
        let credentials = Credentials::prepare(&state.directory("pki")?)?;
        let ports = match Ports::remembered(&state.path().join("ports")) {
            Some(ports) => ports,
            None => Ports::fresh()?,
        };
        let mut plane = Self {
            client: admin_client(&credentials, ports)?,
            kubeconfig: state.path().join("kubeconfig"),
            kubeconfig_text: String::new(),
            controller_manager_kubeconfig: state.path().join("controller-manager.kubeconfig"),
            data: state.path().join("etcd"),
            logs: state.directory("logs")?,
            etcd: None,
            api_server: None,
            controller_manager: None,
            remove_when_stopped: false,
            options,
            credentials,
            ports,
            state,
        };
        let mut attempt = 1;
        loop {
            match plane.start_all() {
                Ok(()) => {
                    plane.remove_when_stopped = matches!(plane.options.state, State::Temporary(_));
                    return Ok(plane);
                }
                Err(error) if error.is_address_in_use() && attempt < PORT_ATTEMPTS => {
                    plane.stop_processes()?;
                    plane.ports = Ports::fresh()?;
                    plane.client = admin_client(&plane.credentials, plane.ports)?;
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The kubeconfig of an administrator, with all that is needed in the one file.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// What is in [`Self::kubeconfig`].
    pub fn kubeconfig_text(&self) -> &str {
        &self.kubeconfig_text
    }

    /// Where the API server is.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.api_server)
    }

    /// Where data, keys and logs are.
    pub fn state_dir(&self) -> &Path {
        self.state.path()
    }

    /// Where logs are: a directory of the control plane's user only, which has room for those of others.
    pub fn logs(&self) -> &Path {
        &self.logs
    }

    /// A client of the API server that acts as the administrator.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// An error if a process that should be running is not.
    pub fn check(&mut self) -> Result<(), Error> {
        let services = [&mut self.etcd, &mut self.api_server, &mut self.controller_manager];
        services.into_iter().flatten().try_for_each(Service::check)
    }

    /// Stops kube-apiserver only. Nothing happens if it is not running.
    pub fn stop_api_server(&mut self) -> Result<(), Error> {
        self.api_server.take().map_or(Ok(()), Service::stop)
    }

    /// Starts kube-apiserver again, on the same port, and returns when it is ready. Nothing happens if it was
    /// not stopped.
    pub fn start_api_server(&mut self) -> Result<(), Error> {
        if self.api_server.is_some() {
            return Ok(());
        }
        let start = Instant::now();
        loop {
            let Err(error) = self.try_start_api_server() else {
                return Ok(());
            };
            self.stop_api_server()?;
            // A client that keeps trying may hold the port for a moment, as the near end of its connection.
            if !error.is_address_in_use() || start.elapsed() >= self.options.ready_limit {
                return Err(error);
            }
        }
    }

    /// Stops kube-apiserver, starts it again, and returns when it is ready.
    pub fn restart_api_server(&mut self) -> Result<(), Error> {
        self.stop_api_server()?;
        self.start_api_server()
    }

    /// Stops all processes and returns when they are gone; removes the directory if it is a temporary one.
    pub fn stop(mut self) -> Result<(), Error> {
        self.shut_down()
    }

    fn start_all(&mut self) -> Result<(), Error> {
        self.write_kubeconfigs()?;
        self.start_etcd()?;
        self.try_start_api_server()?;
        if self.options.controller_manager {
            self.start_controller_manager()?;
        }
        self.ports.remember(&self.state.path().join("ports"))
    }

    fn write_kubeconfigs(&mut self) -> Result<(), Error> {
        let (url, authority) = (self.url(), &self.credentials.cluster_ca_pem);
        self.kubeconfig_text = kubeconfig::text(&url, authority, "kubernetes-admin", &self.credentials.admin);
        write_private(&self.kubeconfig, &self.kubeconfig_text)?;
        let manager = &self.credentials.controller_manager;
        let manager = kubeconfig::text(&url, authority, "system:kube-controller-manager", manager);
        write_private(&self.controller_manager_kubeconfig, &manager)
    }

    fn start_etcd(&mut self) -> Result<(), Error> {
        let flags =
            flags::etcd(&self.data, &self.credentials.files, self.ports, self.options.unsafe_no_fsync);
        let program = &self.options.binaries.etcd;
        self.etcd = Some(Service::start(ETCD, program, &flags, GRACE, self.state.in_use()?, &self.logs)?);
        let identity = &self.credentials.etcd_client;
        let authority = &self.credentials.etcd_ca_pem;
        let client = Client::new(self.ports.etcd, authority, &identity.certificate_pem, &identity.key_pem)?;
        wait_until_ready(&mut [&mut self.etcd], &client, "/health", self.options.ready_limit)
    }

    fn try_start_api_server(&mut self) -> Result<(), Error> {
        let Options { binaries, api_server_flags, controller_manager, .. } = &self.options;
        let flags =
            flags::api_server(&self.credentials.files, self.ports, *controller_manager, api_server_flags);
        let program = &binaries.kube_apiserver;
        let service = Service::start(API_SERVER, program, &flags, GRACE, self.state.in_use()?, &self.logs)?;
        self.api_server = Some(service);
        let services = &mut [&mut self.api_server, &mut self.etcd];
        wait_until_ready(services, &self.client, "/readyz", self.options.ready_limit)
    }

    fn start_controller_manager(&mut self) -> Result<(), Error> {
        let flags = flags::controller_manager(&self.credentials.files, &self.controller_manager_kubeconfig);
        let program = &self.options.binaries.kube_controller_manager;
        let service =
            Service::start(CONTROLLER_MANAGER, program, &flags, GRACE, self.state.in_use()?, &self.logs)?;
        self.controller_manager = Some(service);
        let services = &mut [&mut self.controller_manager, &mut self.api_server, &mut self.etcd];
        wait_until_ready(services, &self.client, DEFAULT_ACCOUNT, self.options.ready_limit)
    }

    /// The callers of a process go before it does, so that none of them waits for what is gone.
    fn stop_processes(&mut self) -> Result<(), Error> {
        let services = [self.controller_manager.take(), self.api_server.take(), self.etcd.take()];
        let stopped = services.map(|service| service.map_or(Ok(()), Service::stop));
        stopped.into_iter().collect()
    }

    fn shut_down(&mut self) -> Result<(), Error> {
        self.stop_processes()?;
        if self.remove_when_stopped { self.state.remove() } else { Ok(()) }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // There is no caller to report to. What could not be stopped ends with this process.
        let _ = self.shut_down();
    }
}

fn admin_client(credentials: &Credentials, ports: Ports) -> Result<Client, Error> {
    let Credentials { cluster_ca_pem, admin, .. } = credentials;
    Client::new(ports.api_server, cluster_ca_pem, &admin.certificate_pem, &admin.key_pem)
}

/// Waits for the first of the services, as long as it and those it needs are running.
fn wait_until_ready(
    services: &mut [&mut Option<Service>],
    client: &Client,
    path: &str,
    limit: Duration,
) -> Result<(), Error> {
    let mut last = String::new();
    let ready = poll(limit, PAUSE, || {
        services.iter_mut().filter_map(|service| service.as_mut()).try_for_each(Service::check)?;
        last = match client.get(path) {
            Ok(response) if response.status == 200 => return Ok(Some(())),
            Ok(response) => format!("GET {path} answers {}", response.status),
            Err(error) => error.to_string(),
        };
        Ok(None)
    })?;
    match (ready, services) {
        (None, [Some(service), ..]) => Err(service.not_ready(limit, last)),
        _ => Ok(()),
    }
}
