//! Where the three programs are: given, installed, or built once and kept.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Doing as _, Error};
use crate::go_build;

/// The version of kube-apiserver and kube-controller-manager that is built where none is installed.
pub const KUBERNETES_VERSION: &str = "v1.35.4";
/// The version of etcd that is built where none is installed.
pub const ETCD_VERSION: &str = "v3.6.5";

pub(crate) const ETCD: &str = "etcd";
pub(crate) const API_SERVER: &str = "kube-apiserver";
pub(crate) const CONTROLLER_MANAGER: &str = "kube-controller-manager";
const PROGRAMS: [&str; 3] = [ETCD, API_SERVER, CONTROLLER_MANAGER];

/// The programs a control plane consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    /// The path of etcd.
    pub etcd: PathBuf,
    /// The path of kube-apiserver.
    pub kube_apiserver: PathBuf,
    /// The path of kube-controller-manager.
    pub kube_controller_manager: PathBuf,
}

/// Where to look for the programs, in this order.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A directory with all three.
    pub kubebuilder_assets: Option<PathBuf>,
    /// Directories with all three among them, and with `go` in case they have to be built.
    pub path: Option<OsString>,
    /// The directory under which they are built when they are nowhere else.
    pub cache_dir: Option<PathBuf>,
}

/// What is going on while the programs are looked for; as text, a sentence for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// A source has only some of the programs and is not used.
    Incomplete {
        /// The source, as its user knows it.
        source: String,
        /// What it lacks.
        missing: Vec<&'static str>,
    },
    /// Another process is building the same programs; this one waits for it.
    Waiting {
        /// Where they are being built.
        dir: PathBuf,
    },
    /// The build begins.
    Started {
        /// What is missing, and so is built.
        programs: Vec<&'static str>,
        /// The `go` it is built with.
        go: PathBuf,
        /// The folder of the programs.
        dir: PathBuf,
    },
    /// The build of one program continues. Sent every few seconds.
    Building {
        /// The program.
        program: &'static str,
        /// Go modules downloaded so far.
        downloaded: usize,
        /// Go packages compiled so far.
        compiled: usize,
        /// Since the build of this program began.
        elapsed: Duration,
    },
    /// One program is built.
    Built {
        /// The program.
        program: &'static str,
        /// How long it took.
        elapsed: Duration,
    },
    /// All programs are built.
    Finished {
        /// The folder of the programs.
        dir: PathBuf,
        /// How long it took.
        elapsed: Duration,
    },
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete { source, missing } => {
                write!(f, "{source} has no {}; looking further", missing.join(" and no "))
            }
            Self::Waiting { dir } => {
                write!(
                    f,
                    "another process is building the control plane into {}; waiting for it",
                    dir.display()
                )
            }
            Self::Started { programs, go, dir } => write!(
                f,
                "building {} (Kubernetes {KUBERNETES_VERSION}, etcd {ETCD_VERSION}) with {} into {}; \
                 this takes some minutes, and is done once",
                programs.join(", "),
                go.display(),
                dir.display()
            ),
            Self::Building { program, downloaded, compiled, elapsed } => {
                let downloaded = if *downloaded == 0 {
                    String::new()
                } else {
                    format!("{downloaded} modules downloaded, ")
                };
                write!(f, "{program}: {downloaded}{compiled} packages compiled, {} s", elapsed.as_secs())
            }
            Self::Built { program, elapsed } => write!(f, "{program}: built in {} s", elapsed.as_secs()),
            Self::Finished { dir, elapsed } => {
                write!(f, "built the control plane into {} in {} s", dir.display(), elapsed.as_secs())
            }
        }
    }
}

impl Sources {
    /// Takes `KUBEBUILDER_ASSETS`, `PATH`, and for the cache the first of `CAPSTAN_CACHE_DIR`,
    /// `XDG_CACHE_HOME` and `HOME` from an environment.
    pub fn from_env(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let directory = |name: &str| variable(name).map(PathBuf::from);
        // The XDG specification has relative paths ignored.
        let xdg = || directory("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        Self {
            kubebuilder_assets: directory("KUBEBUILDER_ASSETS"),
            path: variable("PATH"),
            cache_dir: directory("CAPSTAN_CACHE_DIR")
                .or_else(|| xdg().map(|cache| cache.join("capstan")))
                .or_else(|| directory("HOME").map(|home| home.join(".cache/capstan"))),
        }
    }

    pub(crate) fn find_on_path(&self, program: &str) -> Option<PathBuf> {
        let directories = std::env::split_paths(self.path.as_deref()?);
        let mut absolute = directories.filter(|directory| directory.is_absolute());
        absolute.find_map(|directory| executable_in(&directory, program))
    }
}

impl Binaries {
    /// The programs of the first source that has all three. Where none has, they are built into the cache
    /// directory, which takes some minutes, once.
    pub fn locate(sources: &Sources, progress: &mut dyn FnMut(Progress)) -> Result<Self, Error> {
        if let Some(assets) = &sources.kubebuilder_assets {
            let assets = std::path::absolute(assets).doing("find", assets)?;
            match Self::find(|program| executable_in(&assets, program)) {
                Ok(binaries) => return Ok(binaries),
                // Named on purpose, so also worth a word when it has none of them.
                Err(missing) => {
                    let source = format!("KUBEBUILDER_ASSETS ({})", assets.display());
                    progress(Progress::Incomplete { source, missing });
                }
            }
        }
        match Self::find(|program| sources.find_on_path(program)) {
            Ok(binaries) => return Ok(binaries),
            Err(missing) if missing.len() < PROGRAMS.len() => {
                progress(Progress::Incomplete { source: "PATH".to_owned(), missing });
            }
            Err(_) => {}
        }
        let cache = sources.cache_dir.as_ref().ok_or(Error::NoCacheDir)?;
        let cache = std::path::absolute(cache).doing("find", cache)?;
        let dir = cache.join("control-plane").join(format!("{KUBERNETES_VERSION}-{ETCD_VERSION}"));
        if let Ok(binaries) = Self::find(|program| executable_in(&dir, program)) {
            return Ok(binaries);
        }
        go_build::fill(&dir, sources, progress)?;
        Ok(Self {
            etcd: dir.join(ETCD),
            kube_apiserver: dir.join(API_SERVER),
            kube_controller_manager: dir.join(CONTROLLER_MANAGER),
        })
    }

    /// All three, or the names of those that are missing.
    fn find(find: impl Fn(&str) -> Option<PathBuf>) -> Result<Self, Vec<&'static str>> {
        match PROGRAMS.map(&find) {
            [Some(etcd), Some(kube_apiserver), Some(kube_controller_manager)] => {
                Ok(Self { etcd, kube_apiserver, kube_controller_manager })
            }
            _ => Err(PROGRAMS.into_iter().filter(|program| find(program).is_none()).collect()),
        }
    }
}

pub(crate) fn executable_in(directory: &Path, program: &str) -> Option<PathBuf> {
    let path = directory.join(program);
    let metadata = fs::metadata(&path).ok()?;
    (metadata.is_file() && metadata.permissions().mode() & 0o111 != 0).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn install(directory: &Path, programs: &[&str]) {
        fs::create_dir_all(directory).unwrap();
        for program in programs {
            let path = directory.join(program);
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn locate(sources: &Sources) -> (Result<Binaries, Error>, Vec<String>) {
        let mut said = Vec::new();
        let found = Binaries::locate(sources, &mut |progress| said.push(progress.to_string()));
        (found, said)
    }

    fn sources(root: &Path) -> Sources {
        Sources {
            kubebuilder_assets: Some(root.join("assets")),
            path: Some(std::env::join_paths([root.join("bin"), root.join("more-bin")]).unwrap()),
            cache_dir: Some(root.join("cache")),
        }
    }

    #[test]
    fn assets_come_before_path_and_path_before_the_cache() {
        let scratch = Scratch::new();
        let root = scratch.path();
        let cached = root.join(format!("cache/control-plane/{KUBERNETES_VERSION}-{ETCD_VERSION}"));
        install(&cached, &PROGRAMS);
        let sources = sources(root);
        let (found, said) = locate(&sources);
        assert_eq!(found.unwrap().etcd, cached.join("etcd"));
        let assets = root.join("assets");
        let none = "has no etcd and no kube-apiserver and no kube-controller-manager; looking further";
        assert_eq!(said, [format!("KUBEBUILDER_ASSETS ({}) {none}", assets.display())]);

        install(&root.join("bin"), &["etcd"]);
        install(&root.join("more-bin"), &PROGRAMS);
        let (found, _) = locate(&sources);
        let found = found.unwrap();
        assert_eq!(found.etcd, root.join("bin/etcd"));
        assert_eq!(found.kube_apiserver, root.join("more-bin/kube-apiserver"));

        install(&assets, &PROGRAMS);
        let (found, said) = locate(&sources);
        assert_eq!(found.unwrap().kube_controller_manager, assets.join("kube-controller-manager"));
        assert_eq!(said, Vec::<String>::new());
    }

    #[test]
    fn a_source_that_lacks_one_is_named_and_none_of_it_is_taken() {
        let scratch = Scratch::new();
        let root = scratch.path();
        install(&root.join("assets"), &["etcd", "kube-apiserver"]);
        install(&root.join("bin"), &PROGRAMS);
        let (found, said) = locate(&sources(root));
        assert_eq!(found.unwrap().etcd, root.join("bin/etcd"));
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("has no kube-controller-manager; looking further"), "{said:?}");
    }

    #[test]
    fn what_cannot_be_executed_is_not_there() {
        let scratch = Scratch::new();
        let root = scratch.path();
        install(&root.join("bin"), &PROGRAMS);
        fs::set_permissions(root.join("bin/etcd"), fs::Permissions::from_mode(0o644)).unwrap();
        let (found, said) = locate(&sources(root));
        assert!(matches!(found, Err(Error::GoMissing { .. })), "{found:?}");
        assert_eq!(said[1], "PATH has no etcd; looking further");
    }

    #[test]
    fn without_go_the_error_says_what_to_do() {
        let scratch = Scratch::new();
        let (found, _) = locate(&sources(scratch.path()));
        let error = found.unwrap_err().to_string();
        for part in ["Go 1.25", "KUBEBUILDER_ASSETS", "cache/control-plane/v1.35.4-v3.6.5"] {
            assert!(error.contains(part), "{part} not in: {error}");
        }
        let error = locate(&Sources::default()).0.unwrap_err().to_string();
        assert!(error.contains("CAPSTAN_CACHE_DIR"), "{error}");
    }

    #[test]
    fn the_cache_directory_comes_from_the_first_variable_that_names_one() {
        let cache = |variables: &[(&str, &str)]| {
            let variable =
                |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            Sources::from_env(variable).cache_dir
        };
        let all = [("HOME", "/home"), ("XDG_CACHE_HOME", "/xdg"), ("CAPSTAN_CACHE_DIR", "/own")];
        assert_eq!(cache(&all), Some("/own".into()));
        assert_eq!(cache(&all[..2]), Some("/xdg/capstan".into()));
        assert_eq!(cache(&all[..1]), Some("/home/.cache/capstan".into()));
        assert_eq!(
            cache(&[("HOME", "/home"), ("XDG_CACHE_HOME", "relative")]),
            Some("/home/.cache/capstan".into())
        );
        assert_eq!(cache(&[("HOME", "")]), None);
    }
}
