//! Servers that releases come from: GitHub, GitLab, any https server, a Go module proxy, an OCI registry.
//!
//! One [`FakeServer`] plays them all, with real TLS on loopback and an authority of its own.
//! - A library is led to it by [`FakeServer::resolve`], so that `github.com` and its like mean the fake.
//! - A binary is led to it by addresses whose host is [`FakeServer::host`]: by their shape they are those of a
//!   GitHub Enterprise server, a GitLab, a registry (`oci://`) or a plain server; `GOPROXY` may be
//!   [`FakeServer::url`], and `SSL_CERT_FILE` a file with [`FakeServer::ca_pem`].
//!
//! What happens to a request can be spoilt by [`FakeServer::inject`]. A [`FakeProxy`] leads to any server.

mod answer;
mod authority;
mod fault;
mod github;
mod gitlab;
mod proxy;
mod registry;
mod server;

pub use fault::Fault;
pub use github::FakeRepository;
pub use proxy::{FakeProxy, ProxyKind};
pub use registry::{FakeArtifact, RegistryAuth, digest_of};
pub use server::{FakeServer, Recorded};
