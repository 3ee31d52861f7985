//! Building the programs from pinned Go modules.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::binaries::{
    API_SERVER, CONTROLLER_MANAGER, ETCD, ETCD_VERSION, KUBERNETES_VERSION, Progress, Sources, executable_in,
};
use crate::error::{Doing as _, Error};
use crate::process::{TAIL_LINES, Watched, describe, poll};

const REPORT_EVERY: Duration = Duration::from_secs(5);

/// For `go` to end once asked: it only has to stop what it started.
const GRACE: Duration = Duration::from_secs(2);

/// A Go module whose `go.mod` and `go.sum` pin all that goes into a program.
struct Module {
    name: &'static str,
    files: [(&'static str, &'static str); 3],
    origin: &'static str,
    version: &'static str,
}

const KUBERNETES: Module = Module {
    name: "kubernetes",
    files: [
        ("go.mod", include_str!("../go/kubernetes/go.mod")),
        ("go.sum", include_str!("../go/kubernetes/go.sum")),
        ("tools.go", include_str!("../go/kubernetes/tools.go")),
    ],
    origin: "k8s.io/kubernetes",
    version: KUBERNETES_VERSION,
};

const ETCD_SERVER: Module = Module {
    name: "etcd",
    files: [
        ("go.mod", include_str!("../go/etcd/go.mod")),
        ("go.sum", include_str!("../go/etcd/go.sum")),
        ("tools.go", include_str!("../go/etcd/tools.go")),
    ],
    origin: "go.etcd.io/etcd/server/v3",
    version: ETCD_VERSION,
};

struct Program {
    name: &'static str,
    module: &'static Module,
    package: &'static str,
}

/// The quickest to build first: a problem with Go or the network shows early.
const PROGRAMS: [Program; 3] = [
    Program { name: ETCD, module: &ETCD_SERVER, package: "go.etcd.io/etcd/server/v3" },
    Program { name: API_SERVER, module: &KUBERNETES, package: "k8s.io/kubernetes/cmd/kube-apiserver" },
    Program {
        name: CONTROLLER_MANAGER,
        module: &KUBERNETES,
        package: "k8s.io/kubernetes/cmd/kube-controller-manager",
    },
];

/// Builds into `dir` what it lacks. Of several processes at this, one builds and the others wait for it.
pub(crate) fn fill(dir: &Path, sources: &Sources, progress: &mut dyn FnMut(Progress)) -> Result<(), Error> {
    let go = sources.find_on_path("go").ok_or_else(|| Error::GoMissing { dir: dir.to_owned() })?;
    fs::create_dir_all(dir).doing("make the directory", dir)?;
    let lock = lock(dir, progress)?;
    let missing: Vec<_> =
        PROGRAMS.iter().filter(|program| executable_in(dir, program.name).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let start = Instant::now();
    progress(Progress::Started {
        programs: missing.iter().map(|program| program.name).collect(),
        go: go.clone(),
        dir: dir.to_owned(),
    });
    let workshop = dir.join("build");
    // `go` does not write over what is half of a program, should a killed build have left that.
    remove(&workshop)?;
    for program in missing {
        Build { program, dir, workshop: &workshop, go: &go, path: sources.path.clone() }
            .run(&lock, progress)?;
    }
    remove(&workshop)?;
    progress(Progress::Finished { dir: dir.to_owned(), elapsed: start.elapsed() });
    Ok(())
}

fn remove(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).doing("remove the directory", dir)
        }
        _ => Ok(()),
    }
}

fn lock(dir: &Path, progress: &mut dyn FnMut(Progress)) -> Result<File, Error> {
    let path = dir.join("lock");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let file = file.doing("open the lock file", &path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress(Progress::Waiting { dir: dir.to_owned() });
            file.lock().doing("lock", &path)?;
        }
        Err(TryLockError::Error(error)) => Err(error).doing("lock", &path)?,
    }
    Ok(file)
}

struct Build<'a> {
    program: &'a Program,
    dir: &'a Path,
    workshop: &'a Path,
    go: &'a Path,
    path: Option<OsString>,
}

impl Build<'_> {
    fn run(self, lock: &File, progress: &mut dyn FnMut(Progress)) -> Result<(), Error> {
        let start = Instant::now();
        let program = self.program.name;
        let module = self.workshop.join(self.program.module.name);
        fs::create_dir_all(&module).doing("make the directory", &module)?;
        for (name, text) in self.program.module.files {
            let path = module.join(name);
            fs::write(&path, text).doing("write", &path)?;
        }
        let unfinished = self.workshop.join(format!("{program}.unfinished"));
        // Held by `go` as well: when this process is killed, the next one waits until `go` has ended too.
        let lock = lock.try_clone().doing("share the lock of", self.dir)?;
        let mut go = Watched::spawn(self.go, &self.arguments(&unfinished), GRACE, lock, |command| {
            command.stderr(Stdio::piped()).current_dir(&module);
            // What the programs are made of is said here, and not by settings for other work.
            command.env("CGO_ENABLED", "0").env("GOWORK", "off");
            command.env_remove("GOFLAGS").env_remove("GOOS").env_remove("GOARCH");
            if let Some(path) = self.path {
                command.env("PATH", path);
            }
        })?;

        let mut output = Output::default();
        let lines = go.take_stderr().map(lines_of);
        let mut reported = Instant::now();
        let status = loop {
            let next = lines.as_ref().map_or(Err(RecvTimeoutError::Disconnected), |lines| {
                lines.recv_timeout(REPORT_EVERY.saturating_sub(reported.elapsed()))
            });
            match next {
                Ok(line) => output.take(line),
                // Silence may last, and need not mean that `go` has ended; the end of its output does, soon.
                Err(silence) => {
                    let limit = match silence {
                        RecvTimeoutError::Timeout => Duration::ZERO,
                        RecvTimeoutError::Disconnected => REPORT_EVERY,
                    };
                    let ended = poll(limit, Duration::from_millis(10), || go.ended());
                    if let Some(status) = ended.doing("wait for the build of", &unfinished)? {
                        break status;
                    }
                }
            }
            if reported.elapsed() >= REPORT_EVERY {
                reported = Instant::now();
                let Output { downloaded, compiled, .. } = output;
                progress(Progress::Building { program, downloaded, compiled, elapsed: start.elapsed() });
            }
        };
        if !status.success() {
            let Module { origin, version, .. } = self.program.module;
            return Err(Error::BuildFailed {
                program,
                module: format!("{origin} {version}"),
                status: describe(status),
                tail: output.tail.make_contiguous().join("\n"),
            });
        }
        let path = self.dir.join(program);
        // On disk before it has its name: what has it is taken for whole for ever after.
        let put_in_place = || {
            File::open(&unfinished)?.sync_all()?;
            fs::rename(&unfinished, &path)
        };
        put_in_place().doing("put in place", &path)?;
        progress(Progress::Built { program, elapsed: start.elapsed() });
        Ok(())
    }

    fn arguments(&self, output: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> =
            ["build", "-v", "-trimpath", "-mod=readonly", "-buildvcs=false", "-ldflags"]
                .map(Into::into)
                .into();
        arguments.push(linker_flags().into());
        arguments.push("-o".into());
        arguments.push(output.into());
        arguments.push(self.program.package.into());
        arguments
    }
}

/// Clients refuse a server that does not name its version, which upstream's own build scripts set this way. A
/// program without that package is not changed by it.
fn linker_flags() -> String {
    let mut numbers = KUBERNETES_VERSION.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let package = "k8s.io/component-base/version";
    format!(
        "-s -w -X {package}.gitVersion={KUBERNETES_VERSION} -X {package}.gitMajor={major} \
         -X {package}.gitMinor={minor}"
    )
}

/// What `go build -v` has said so far.
#[derive(Default)]
struct Output {
    downloaded: usize,
    compiled: usize,
    tail: VecDeque<String>,
}

impl Output {
    fn take(&mut self, line: String) {
        if line.starts_with("go: downloading ") {
            self.downloaded += 1;
        } else if !line.is_empty() && !line.contains(char::is_whitespace) {
            // The name of a package and nothing else.
            self.compiled += 1;
        } else {
            if self.tail.len() == TAIL_LINES {
                self.tail.pop_front();
            }
            self.tail.push_back(line);
        }
    }
}

fn lines_of(output: impl io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    // Ends with the output, or when the receiver is dropped.
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modules_pin_the_versions_that_are_promised() {
        for module in [&KUBERNETES, &ETCD_SERVER] {
            let pinned = format!("require {} {}\n", module.origin, module.version);
            assert!(module.files[0].1.contains(&pinned), "{pinned}");
        }
        let staging = KUBERNETES_VERSION.replacen("v1", "v0", 1);
        let replaced: Vec<_> =
            KUBERNETES.files[0].1.lines().filter_map(|line| line.trim().split_once(" => ")).collect();
        assert!(replaced.len() > 20);
        for (module, replacement) in replaced {
            assert_eq!(replacement, format!("{module} {staging}"));
        }
    }

    #[test]
    fn the_version_is_linked_in() {
        assert_eq!(
            linker_flags(),
            "-s -w -X k8s.io/component-base/version.gitVersion=v1.35.4 \
             -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35"
        );
    }

    #[test]
    fn counts_packages_and_keeps_what_is_not_one() {
        let mut output = Output::default();
        for line in ["go: downloading k8s.io/api v0.35.4", "k8s.io/api/core/v1", "fmt"] {
            output.take(line.to_owned());
        }
        assert_eq!((output.downloaded, output.compiled, output.tail.len()), (1, 2, 0));
        for number in 0..30 {
            output.take(format!("main.go:{number}: wrong"));
        }
        assert_eq!(output.tail.len(), TAIL_LINES);
        assert_eq!(output.tail.back().unwrap(), "main.go:29: wrong");
    }
}
