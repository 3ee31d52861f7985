//! What can go wrong, in words that say what to do next.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a control plane could not be found, built, started, asked or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The programs have to be built, and no variable names a place for them.
    #[error(
        "no directory to build etcd, kube-apiserver and kube-controller-manager into: set CAPSTAN_CACHE_DIR \
         or HOME, or set KUBEBUILDER_ASSETS to a directory that holds the three programs"
    )]
    NoCacheDir,

    /// The programs have to be built, and there is no Go to build them with.
    #[error(
        "etcd, kube-apiserver and kube-controller-manager have to be built into {}, and there is no `go` on \
         PATH: install Go 1.25 or later (https://go.dev/dl), or set KUBEBUILDER_ASSETS to a directory that \
         holds the three programs",
        .dir.display()
    )]
    GoMissing {
        /// The folder for the programs.
        dir: PathBuf,
    },

    /// `go build` ended badly.
    #[error(
        "building {program} from the Go module {module} failed ({status}): it needs Go 1.25 or later and, the \
         first time, a way to the Go module proxy; or set KUBEBUILDER_ASSETS to a directory that holds etcd, \
         kube-apiserver and kube-controller-manager. The last it said:\n{tail}"
    )]
    BuildFailed {
        /// The program being built.
        program: &'static str,
        /// The module it is in, with its version.
        module: String,
        /// How `go build` ended.
        status: String,
        /// The last lines of its standard error.
        tail: String,
    },

    /// A file operation failed.
    #[error(
        "could not {doing} {}: {source}; check that this user may, and that the disk is not full",
        .path.display()
    )]
    File {
        /// The operation, as in "could not …".
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// A key or certificate could not be generated.
    #[error("could not generate the {what}: {source}")]
    Certificate {
        /// The key or certificate.
        what: String,
        /// The generator's error.
        source: rcgen::Error,
    },

    /// Credentials that cannot be used for TLS.
    #[error("cannot connect to {address} by TLS with the given certificates: {reason}")]
    Credentials {
        /// The server they are for.
        address: String,
        /// What is wrong with them.
        reason: String,
    },

    /// Another process runs a control plane in the same directory.
    #[error(
        "{} is in use by another control plane: stop that one first, or give this one a directory of its own",
        .dir.display()
    )]
    StateDirInUse {
        /// The directory.
        dir: PathBuf,
    },

    /// There is no free port on 127.0.0.1.
    #[error("could not find a free port on 127.0.0.1: {source}")]
    NoFreePort {
        /// The system's error.
        source: io::Error,
    },

    /// A program could not be started.
    #[error(
        "could not start {program}: {source}; check that /bin/sh exists and that the process limit is not \
         reached"
    )]
    Spawn {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },

    /// A process of the control plane ended on its own.
    #[error("{program} ended ({status}); its log is {}, and ends with:\n{tail}", .log.display())]
    Exited {
        /// The program.
        program: &'static str,
        /// How it ended.
        status: String,
        /// Its log.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },

    /// A process of the control plane runs, but did not become ready in time.
    #[error(
        "{program} was not ready within {} s ({last}); its log is {}, and ends with:\n{tail}",
        .limit.as_secs(),
        .log.display()
    )]
    NotReady {
        /// The program.
        program: &'static str,
        /// The time limit.
        limit: Duration,
        /// The answer to the last probe.
        last: String,
        /// Its log.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },

    /// A process would not end, not even when killed.
    #[error(
        "{program} did not end, not even when killed; check what keeps process group {pid} alive: {source}"
    )]
    NotStopped {
        /// The program.
        program: &'static str,
        /// Its process group.
        pid: u32,
        /// The system's error.
        source: io::Error,
    },

    /// An HTTPS request was not answered.
    #[error("{method} {url} was not answered: {source}")]
    Request {
        /// The method.
        method: String,
        /// The address.
        url: String,
        /// The error.
        source: io::Error,
    },
}

impl Error {
    /// Whether another attempt with other ports may go well.
    pub(crate) fn is_address_in_use(&self) -> bool {
        matches!(self, Self::Exited { tail, .. } if tail.contains("address already in use"))
    }
}

/// Says what was being done to which file when it failed.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::File { doing, path: path.to_owned(), source })
    }
}
