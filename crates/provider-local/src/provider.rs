//! What is asked of a LocalCluster's infrastructure, and how it is made: the author's side of the SDK.

use std::{net::Ipv4Addr, time::Duration};

use capstan_provider_sdk::{
    EndpointSource, Failure, Infrastructure, Progress, Provider, Removal, Request, SecretError, Wait,
};
use capstan_runtime::{ObjectKey, clock};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{
    api::{
        PROVIDER,
        v1beta2::{LocalCluster, Simulation},
    },
    load_balancer::{ListenError, LoadBalancers, Place},
};

/// The key of a tenant's Secret that holds the address of its load balancers.
const HOST: &str = "host";

/// Load balancers on this machine.
#[derive(Debug, Default)]
pub(crate) struct LocalProvider {
    balancers: LoadBalancers,
}

/// The load balancer is not there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LocalError {
    /// It cannot listen.
    #[error("free the address, or name another in spec.controlPlaneEndpoint")]
    Listen(#[source] ListenError),
    /// The tenant is not known.
    #[error("create the Secret that spec.identityRef names, with key {HOST}")]
    Identity(#[source] SecretError),
    /// The tenant's Secret is invalid.
    #[error("key {HOST} of Secret {secret} must hold an IPv4 address of this machine, but is {found:?}")]
    Host {
        /// The Secret.
        secret: ObjectKey,
        /// What it holds.
        found: String,
    },
    /// The endpoint is not at the address of the tenant.
    #[error("tenant {tenant} may listen on {allowed} only, but spec.controlPlaneEndpoint says {asked}")]
    NotYours {
        /// The tenant's Secret.
        tenant: String,
        /// The tenant's address.
        allowed: String,
        /// The address that was asked for.
        asked: String,
    },
    /// It was asked for.
    #[error("{0}")]
    Simulated(String),
}

impl Provider for LocalProvider {
    type Cluster = LocalCluster;
    type Error = LocalError;
    const NAME: &'static str = PROVIDER;
    const ENDPOINT: EndpointSource = EndpointSource::Provider;

    async fn provision(&self, request: Request<'_, Self>) -> Result<Progress, LocalError> {
        let spec = request.spec;
        if let Some(simulation) = &spec.simulate
            && let Some(progress) = simulate(simulation, request.metadata.creation_timestamp.as_ref())?
        {
            return Ok(progress);
        }
        let host = tenant_host(&request).await?;
        if let (Some(allowed), Some(asked)) = (&host, &request.endpoint)
            && *allowed != asked.host
        {
            let tenant = spec.identity_ref.as_ref().map(|it| it.name.clone()).unwrap_or_default();
            return Err(LocalError::NotYours { tenant, allowed: allowed.clone(), asked: asked.host.clone() });
        }
        let host = host.unwrap_or_else(|| Ipv4Addr::LOCALHOST.to_string());
        let reserved: Vec<_> = request.other_endpoints().map(|endpoint| endpoint.port).collect();
        let place = match &request.endpoint {
            Some(endpoint) => Place::At(endpoint),
            None => Place::Anywhere { host: &host, reserved: &reserved },
        };
        let id = request.id.as_str();
        let made = self.balancers.ensure(request.key, id, &place, &spec.backends).await;
        Ok(Progress::Done(Infrastructure {
            endpoint: Some(made.map_err(LocalError::Listen)?),
            failure_domains: spec.failure_domains.clone(),
            conditions: Vec::new(),
        }))
    }

    async fn deprovision(&self, request: Request<'_, Self>) -> Result<Removal, LocalError> {
        let deleted = request.metadata.deletion_timestamp.as_ref();
        let seconds = request.spec.simulate.as_ref().and_then(|it| it.deletion_seconds);
        if let Some(left) = time_left(deleted, seconds) {
            let wait = Wait::new("Deleting", "The load balancer is slow to go, as spec.simulate asks for");
            return Ok(Removal::Wait(wait.look_again(left)));
        }
        self.balancers.remove(request.key).await;
        Ok(Removal::Gone)
    }

    async fn forget(&self, key: &ObjectKey) {
        self.balancers.remove(key).await;
    }
}

/// The address that the tenant's load balancers listen on, if there is a tenant.
async fn tenant_host(request: &Request<'_, LocalProvider>) -> Result<Option<String>, LocalError> {
    let Some(identity) = &request.spec.identity_ref else {
        return Ok(None);
    };
    let mut contents = request.secret(&identity.name).await.map_err(LocalError::Identity)?;
    let host = contents.remove(HOST).unwrap_or_default();
    let host = String::from_utf8_lossy(&host).trim().to_owned();
    if host.parse::<Ipv4Addr>().is_err() {
        return Err(LocalError::Host { secret: request.key.beside(&identity.name), found: host });
    }
    Ok(Some(host))
}

/// What the spec asks to go wrong; nothing if all is well.
fn simulate(simulation: &Simulation, created: Option<&Time>) -> Result<Option<Progress>, LocalError> {
    if let Some(failure) = &simulation.terminal_failure {
        let (reason, message) = (failure.reason.clone(), failure.message.clone());
        return Ok(Some(Progress::Failed(Failure { reason, message })));
    }
    if let Some(error) = &simulation.error {
        return Err(LocalError::Simulated(error.clone()));
    }
    Ok(time_left(created, simulation.provisioning_seconds).map(|left| {
        let wait = Wait::new("Provisioning", "The load balancer is slow to come, as spec.simulate asks for");
        Progress::Wait(wait.look_again(left))
    }))
}

/// What is left of so many seconds since then.
fn time_left(since: Option<&Time>, seconds: Option<u32>) -> Option<Duration> {
    let end = since?.0 + Duration::from_secs(seconds?.into());
    Duration::try_from(end.duration_since(clock::now())).ok().filter(|left| !left.is_zero())
}
