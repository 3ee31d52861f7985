//! What is asked of a LocalCluster's infrastructure, and how it is made: the author's side of the SDK.

use std::{io, net::Ipv4Addr, time::Duration};

use capstan_provider_sdk::{
    EndpointSource, Failure, Infrastructure, Progress, Provider, Removal, Request, SecretContents,
    SecretError, Wait,
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
    #[error("key {HOST} of Secret {secret} must hold an IPv4 address of this machine, but {found}")]
    Host {
        /// The Secret.
        secret: ObjectKey,
        /// What it holds instead, without quoting it: more people may read this than the Secret.
        found: &'static str,
    },
    /// The tenant's address cannot be listened on.
    #[error("cannot listen on the address in key {HOST} of Secret {secret}")]
    TenantListen {
        /// The Secret.
        secret: ObjectKey,
        /// Why not.
        source: io::Error,
    },
    /// The endpoint is not at the address of the tenant.
    #[error(
        "tenant {tenant} may not listen on {asked}, which spec.controlPlaneEndpoint asks for: leave it out, or ask for the address in key {HOST} of Secret {tenant}"
    )]
    NotYours {
        /// The tenant's Secret.
        tenant: String,
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
            return Err(LocalError::NotYours { tenant, asked: asked.host.clone() });
        }
        let tenant = spec.identity_ref.as_ref().map(|identity| request.key.beside(&identity.name));
        let host = host.unwrap_or_else(|| Ipv4Addr::LOCALHOST.to_string());
        let reserved: Vec<_> = request.other_endpoints().map(|endpoint| endpoint.port).collect();
        let place = match &request.endpoint {
            Some(endpoint) => Place::At(endpoint),
            None => Place::Anywhere { host: &host, reserved: &reserved },
        };
        let id = request.id.as_str();
        let made = self.balancers.ensure(request.key, id, &place, &spec.backends).await;
        Ok(Progress::Done(Infrastructure {
            endpoint: Some(made.map_err(|error| cannot_listen(error, tenant))?),
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
    let contents = request.secret(&identity.name).await.map_err(LocalError::Identity)?;
    let host = host_in(&contents);
    host.map(Some).map_err(|found| LocalError::Host { secret: request.key.beside(&identity.name), found })
}

/// The address in a tenant's Secret, or what is there in its place.
fn host_in(contents: &SecretContents) -> Result<String, &'static str> {
    let host = contents.get(HOST).ok_or("is missing")?;
    let host = std::str::from_utf8(host).map_err(|_| "holds something else")?.trim();
    if host.is_empty() {
        return Err("is empty");
    }
    host.parse::<Ipv4Addr>().map(|host| host.to_string()).map_err(|_| "holds something else")
}

/// The address in a tenant's Secret is not quoted.
fn cannot_listen(error: ListenError, tenant: Option<ObjectKey>) -> LocalError {
    match (error, tenant) {
        (ListenError::Bind { source, .. }, Some(secret)) => LocalError::TenantListen { secret, source },
        (error, _) => LocalError::Listen(error),
    }
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

#[cfg(test)]
mod tests {
    use capstan_runtime::controller::with_causes;

    use super::*;

    #[test]
    fn a_tenants_secret_is_never_quoted() {
        let contents = |key: &str, value: &[u8]| [(key.to_owned(), value.to_vec())].into_iter().collect();
        for (contents, expected) in [
            (contents(HOST, b"127.77.2.9"), Ok("127.77.2.9")),
            (contents(HOST, b" 127.77.2.9\r\n"), Ok("127.77.2.9")),
            (contents("user", b"canary"), Err("is missing")),
            (contents(HOST, b""), Err("is empty")),
            (contents(HOST, b" \n"), Err("is empty")),
            (contents(HOST, b"canary"), Err("holds something else")),
            (contents(HOST, b"\xffcanary"), Err("holds something else")),
            (contents(HOST, b"127.77.2.9 canary"), Err("holds something else")),
            (contents(HOST, b"127.077.2.9"), Err("holds something else")),
            (contents(HOST, b"::1"), Err("holds something else")),
            (contents(HOST, &vec![b'c'; 1 << 20]), Err("holds something else")),
        ] {
            assert_eq!(host_in(&contents), expected.map(str::to_owned), "{contents:?}");
        }
        let taken = || ListenError::Bind {
            host: "127.77.2.9".to_owned(),
            port: 0,
            source: io::ErrorKind::AddrInUse.into(),
        };
        let secret = || ObjectKey::new("n", "blue");
        let hosts = LocalError::NotYours { tenant: "blue".to_owned(), asked: "127.77.2.8".to_owned() };
        for error in [hosts, cannot_listen(taken(), Some(secret()))] {
            let words = with_causes(&error);
            assert!(words.contains("blue") && !words.contains("127.77.2.9"), "{words}");
        }
        let own = with_causes(&cannot_listen(taken(), None));
        assert!(own.contains("127.77.2.9:0"), "without a tenant, the spec asked for it: {own}");
    }
}
