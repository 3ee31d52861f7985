//! Child processes that end with this one, even when this one is killed.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Doing as _, Error};

/// Runs a command until it ends, or until standard input does: then it is asked to end, and killed when it
/// does not do so in time. Standard input is a pipe that only the parent holds the other end of, so that the
/// death of the parent, whatever its cause, ends the command.
///
/// Standard output is a lock, not for writing: it is passed on as descriptor 4 so that it is held for as long
/// as the command runs.
///
/// The guard that waits for the end of standard input is ended by a signal when the command ends first. Once
/// it is at work it ignores that signal and ends on its own, so that its `sleep` is not left for another to
/// reap. Its count bounds the loop even where no process reaps the dead.
const WATCHDOG: &str = r#"
exec 3<&0 4>&1 1>&2
rounds=$1
shift
"$@" </dev/null 3<&- &
child=$!
{
    read -r line <&3
    trap '' USR1
    kill -TERM "$child"
    while kill -0 "$child"; do
        if [ "$rounds" -eq 0 ]; then
            kill -KILL "$child"
            break
        fi
        sleep 0.05 4>&-
        rounds=$((rounds - 1))
    done
} 2>/dev/null &
guard=$!
wait "$child"
status=$?
{
    kill -USR1 "$guard"
    wait "$guard"
} 2>/dev/null
exit "$status"
"#;

/// How much longer than its grace a watchdog may take before its whole process group is killed.
const WATCHDOG_LIMIT: Duration = Duration::from_secs(3);

/// How many lines of a log go into an error.
pub(crate) const TAIL_LINES: usize = 20;

/// A command under a watchdog.
#[derive(Debug)]
pub(crate) struct Watched {
    watchdog: Child,
    leash: Option<ChildStdin>,
    grace: Duration,
}

impl Watched {
    /// Starts `program`. The caller sets its standard error and environment.
    pub(crate) fn spawn(
        program: &Path,
        args: &[OsString],
        grace: Duration,
        lock: File,
        configure: impl FnOnce(&mut Command),
    ) -> Result<Self, Error> {
        let mut command = Command::new("/bin/sh");
        let rounds = grace.as_millis() / 50;
        command.args(["-c", WATCHDOG, "sh", &rounds.to_string()]).arg(program).args(args);
        // A group of its own: an interrupt typed at the terminal is for the parent to act on.
        command.stdin(Stdio::piped()).stdout(lock).process_group(0);
        configure(&mut command);
        let mut watchdog = command
            .spawn()
            .map_err(|source| Error::Spawn { program: program.display().to_string(), source })?;
        let leash = watchdog.stdin.take();
        Ok(Self { watchdog, leash, grace })
    }

    /// The command's standard error, where the caller asked for a pipe.
    pub(crate) fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.watchdog.stderr.take()
    }

    pub(crate) fn id(&self) -> u32 {
        self.watchdog.id()
    }

    /// How the command ended, if it has.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.watchdog.try_wait()
    }

    /// Ends the command and waits for its exit.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        drop(self.leash.take());
        if self.wait(self.grace + WATCHDOG_LIMIT)? {
            return Ok(());
        }
        // The watchdog itself is in trouble. Its process id is not reused, as no one has waited for it.
        let group = format!("-{}", self.id());
        Command::new("/bin/sh").args(["-c", r#"kill -KILL -- "$1""#, "sh", &group]).status()?;
        if self.wait(WATCHDOG_LIMIT)? { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
    }

    fn wait(&mut self, limit: Duration) -> io::Result<bool> {
        let ended = poll(limit, Duration::from_millis(10), || self.ended())?;
        Ok(ended.is_some())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // There is no caller to report to; closing the pipe has done what can be done.
        let _ = self.stop();
    }
}

/// A process of the control plane, with its log.
#[derive(Debug)]
pub(crate) struct Service {
    name: &'static str,
    log: PathBuf,
    watched: Watched,
}

impl Service {
    /// Starts a program whose output goes to `<name>.log`; the log before it is kept as
    /// `<name>.previous.log`.
    pub(crate) fn start(
        name: &'static str,
        program: &Path,
        args: &[OsString],
        grace: Duration,
        lock: File,
        logs: &Path,
    ) -> Result<Self, Error> {
        let log = logs.join(format!("{name}.log"));
        match fs::rename(&log, logs.join(format!("{name}.previous.log"))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).doing("put aside the log", &log)?;
            }
            _ => {}
        }
        let output = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&log)
            .doing("open the log", &log)?;
        let watched = Watched::spawn(program, args, grace, lock, |command| {
            // Each of them can be configured by variables, and none shall be.
            command.stderr(output).env_clear().env("PATH", PATH_OF_SLEEP);
        })?;
        Ok(Self { name, log, watched })
    }

    /// An error if the process has ended.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        match self.watched.ended().doing("wait for the process that writes", &self.log)? {
            None => Ok(()),
            Some(status) => Err(Error::Exited {
                program: self.name,
                status: describe(status),
                log: self.log.clone(),
                tail: tail_of(&self.log),
            }),
        }
    }

    pub(crate) fn stop(mut self) -> Result<(), Error> {
        let (program, pid) = (self.name, self.watched.id());
        self.watched.stop().map_err(|source| Error::NotStopped { program, pid, source })
    }

    pub(crate) fn not_ready(&self, limit: Duration, last: String) -> Error {
        let (program, log, tail) = (self.name, self.log.clone(), tail_of(&self.log));
        Error::NotReady { program, limit, last, log, tail }
    }
}

/// The watchdog needs `sleep`, and the programs nothing.
const PATH_OF_SLEEP: &str = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin";

/// Says how a command ended that a shell waited for: the shell reports a signal as a number above 128.
pub(crate) fn describe(status: ExitStatus) -> String {
    match status.code() {
        Some(code) if code > 128 => format!("killed by signal {}", code - 128),
        Some(code) => format!("exit code {code}"),
        None => status.to_string(),
    }
}

/// Asks until there is an answer, or until the limit has passed: then `None`.
pub(crate) fn poll<T, E>(
    limit: Duration,
    pause: Duration,
    mut ask: impl FnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask()? {
            return Ok(Some(answer));
        }
        if start.elapsed() >= limit {
            return Ok(None);
        }
        thread::sleep(pause);
    }
}

fn tail_of(log: &Path) -> String {
    const ENOUGH: u64 = 16 * 1024;
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(ENOUGH)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let lines: Vec<_> = text.lines().collect();
            lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
        }
        Err(error) => format!("(unreadable: {error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn shell(script: &str, grace: Duration, dir: &Path) -> Service {
        let lock = File::create(dir.join("lock")).unwrap();
        lock.lock().unwrap();
        let args = ["-c".into(), script.into()];
        Service::start("service", Path::new("/bin/sh"), &args, grace, lock, dir).unwrap()
    }

    fn wait_for_log(dir: &Path, text: &str) {
        let log = dir.join("service.log");
        let found = poll(Duration::from_secs(10), Duration::from_millis(5), || {
            let read = fs::read_to_string(&log)?;
            Ok::<_, io::Error>(read.contains(text).then_some(()))
        });
        found.unwrap().expect("the log has the text in time");
    }

    fn lock_is_free(dir: &Path) -> bool {
        let lock = File::open(dir.join("lock")).unwrap();
        let free = poll(Duration::from_secs(5), Duration::from_millis(5), || {
            Ok::<_, io::Error>(lock.try_lock().is_ok().then_some(()))
        });
        free.unwrap().is_some()
    }

    #[test]
    fn a_command_that_fails_is_told_of_with_its_last_words() {
        let scratch = Scratch::new();
        let dir = scratch.path();
        let mut service = shell("seq 1 100; echo last words >&2; exit 3", Duration::from_secs(5), dir);
        let error = poll(Duration::from_secs(10), Duration::from_millis(5), || {
            Ok::<_, io::Error>(service.check().err())
        });
        let error = error.unwrap().unwrap().to_string();
        assert!(error.starts_with("service ended (exit code 3); its log is "), "{error}");
        assert!(error.ends_with("\n99\n100\nlast words"), "{error}");
        assert!(!error.contains("\n81\n"), "{error}");
        assert!(lock_is_free(dir));
    }

    #[test]
    fn a_program_that_is_not_there_is_told_of() {
        let scratch = Scratch::new();
        let dir = scratch.path();
        let lock = File::create(dir.join("lock")).unwrap();
        let start = Service::start("absent", Path::new("/no/such/program"), &[], Duration::ZERO, lock, dir);
        let mut service = start.unwrap();
        let error = poll(Duration::from_secs(10), Duration::from_millis(5), || {
            Ok::<_, io::Error>(service.check().err())
        });
        let error = error.unwrap().unwrap().to_string();
        assert!(error.contains("exit code 127") && error.contains("/no/such/program"), "{error}");
    }

    #[test]
    fn an_obedient_command_is_asked_and_the_lock_is_held_until_it_is_gone() {
        let scratch = Scratch::new();
        let dir = scratch.path();
        let script = "trap 'echo asked; exit 0' TERM; echo started; while :; do sleep 0.02; done";
        let service = shell(script, Duration::from_secs(30), dir);
        wait_for_log(dir, "started");
        assert!(File::open(dir.join("lock")).unwrap().try_lock().is_err());
        let start = Instant::now();
        service.stop().unwrap();
        assert!(start.elapsed() < Duration::from_secs(10));
        assert!(lock_is_free(dir));
        wait_for_log(dir, "asked");
    }

    #[test]
    fn a_stubborn_command_is_killed_after_the_grace() {
        let scratch = Scratch::new();
        let dir = scratch.path();
        let script = "trap '' TERM; echo started; while :; do sleep 0.02; done";
        let service = shell(script, Duration::from_millis(300), dir);
        wait_for_log(dir, "started");
        service.stop().unwrap();
        assert!(lock_is_free(dir));
    }

    #[test]
    fn the_log_before_is_kept() {
        let scratch = Scratch::new();
        let dir = scratch.path();
        for run in ["first", "second"] {
            let service = shell(&format!("echo {run}; exec sleep 60"), Duration::from_secs(5), dir);
            wait_for_log(dir, run);
            service.stop().unwrap();
            assert!(lock_is_free(dir));
        }
        let before = fs::read_to_string(dir.join("service.previous.log")).unwrap();
        assert!(before.starts_with("first\n"), "{before}");
    }

    #[test]
    fn polling_ends_at_its_limit() {
        let mut asked = 0;
        let answer: Result<Option<()>, ()> =
            poll(Duration::from_millis(200), Duration::from_millis(1), || {
                asked += 1;
                Ok(None)
            });
        assert_eq!(answer, Ok(None));
        assert!(asked > 1);
    }
}
