//! Ports on 127.0.0.1, and remembering them from one start to the next.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use crate::error::Error;
use crate::state_dir::write_private;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) api_server: u16,
}

impl Ports {
    /// Three ports free at this moment. Another process may still be quicker to take one.
    pub(crate) fn fresh() -> Result<Self, Error> {
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        // All are held until all are known, so that no two are the same.
        let take = || -> std::io::Result<Self> {
            let (etcd, etcd_peer, api_server) = (listen()?, listen()?, listen()?);
            Ok(Self {
                etcd: etcd.local_addr()?.port(),
                etcd_peer: etcd_peer.local_addr()?.port(),
                api_server: api_server.local_addr()?.port(),
            })
        };
        take().map_err(|source| Error::NoFreePort { source })
    }

    /// The ports of the last start in this directory, if they are free now.
    pub(crate) fn remembered(file: &Path) -> Option<Self> {
        let ports = Self::parse(&fs::read_to_string(file).ok()?)?;
        let free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        (free(ports.etcd) && free(ports.etcd_peer) && free(ports.api_server)).then_some(ports)
    }

    pub(crate) fn remember(self, file: &Path) -> Result<(), Error> {
        let text =
            format!("etcd {}\netcd-peer {}\napi-server {}\n", self.etcd, self.etcd_peer, self.api_server);
        write_private(file, &text)
    }

    fn parse(text: &str) -> Option<Self> {
        let port = |name| {
            let mut of_name = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            of_name.next()?.parse().ok()
        };
        Some(Self { etcd: port("etcd")?, etcd_peer: port("etcd-peer")?, api_server: port("api-server")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn reads_what_it_writes() {
        let ports = Ports { etcd: 1, etcd_peer: 2, api_server: 65535 };
        let scratch = Scratch::new();
        let file = scratch.path().join("ports");
        ports.remember(&file).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(Ports::parse(&text), Some(ports));
    }

    #[test]
    fn a_damaged_file_is_no_memory() {
        assert_eq!(Ports::parse(""), None);
        assert_eq!(Ports::parse("etcd 1\netcd-peer 2\n"), None);
        assert_eq!(Ports::parse("etcd 1\netcd-peer 2\napi-server 70000\n"), None);
    }

    #[test]
    fn fresh_ports_differ() {
        let ports = Ports::fresh().unwrap();
        assert!(
            ports.etcd != ports.etcd_peer
                && ports.etcd_peer != ports.api_server
                && ports.etcd != ports.api_server
        );
    }
}
