//! A case is one command line in a folder of its own, given to upstream's binary and to ours.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::{io::AsyncWriteExt, process::Command};

/// Stands for the case's folder in files, variables and arguments.
pub(crate) const DIR: &str = "<DIR>";
/// Longer than any command takes that sends no request.
const LIMIT: Duration = Duration::from_mins(2);

/// What upstream's binary does with a case. A case that it takes otherwise than its author thought shows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It succeeds.
    Succeeds,
    /// It exits with an error.
    Refuses,
    /// The case is made by a generator, which does not know.
    Either,
}

/// One command line and all that it can see.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Group and name, as in `envsubst/length`.
    pub(crate) name: String,
    /// What upstream does.
    pub(crate) fate: Fate,
    files: Vec<(String, String)>,
    environment: Vec<(String, String)>,
    arguments: Vec<String>,
    ours: Vec<String>,
    pub(crate) input: String,
    input_file: Option<(String, &'static str)>,
    written: Option<String>,
    expected: Option<fn(&str) -> String>,
}

impl Case {
    /// One with arguments that are separated by blanks.
    pub(crate) fn new(group: &str, name: impl AsRef<str>, arguments: &str) -> Self {
        Self {
            name: format!("{group}/{}", name.as_ref()),
            fate: Fate::Succeeds,
            files: Vec::new(),
            environment: Vec::new(),
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            ours: Vec::new(),
            input: String::new(),
            input_file: None,
            written: None,
            expected: None,
        }
    }

    /// Upstream refuses it.
    pub(crate) fn refused(self) -> Self {
        self.fate(Fate::Refuses)
    }

    /// What upstream does with it.
    pub(crate) fn fate(mut self, fate: Fate) -> Self {
        self.fate = fate;
        self
    }

    /// One more argument, which may have blanks or be empty.
    pub(crate) fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// An argument that only our binary knows.
    pub(crate) fn only_ours(mut self, argument: &str) -> Self {
        self.ours.push(argument.to_owned());
        self
    }

    /// A file in the case's folder.
    pub(crate) fn file(mut self, path: impl Into<String>, content: impl Into<String>) -> Self {
        self.files.push((path.into(), content.into()));
        self
    }

    /// The configuration, where both look for it.
    pub(crate) fn config(self, content: impl Into<String>) -> Self {
        self.file("home/.config/cluster-api/clusterctl.yaml", content)
    }

    /// A variable of the environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Variables of the environment.
    pub(crate) fn envs(self, variables: &[(&str, &str)]) -> Self {
        variables.iter().fold(self, |case, (name, value)| case.env(name, value))
    }

    /// What is on standard input.
    pub(crate) fn input(mut self, input: impl Into<String>) -> Self {
        self.input = input.into();
        self
    }

    /// The input is in a file, after a document that every batch begins with.
    pub(crate) fn input_in(mut self, path: impl Into<String>, first: &'static str) -> Self {
        self.input_file = Some((path.into(), first));
        self
    }

    /// A file that the command writes, compared instead of what it prints.
    pub(crate) fn writes(mut self, path: &str) -> Self {
        self.written = Some(path.to_owned());
        self
    }

    /// What is expected of ours, made from what upstream prints.
    pub(crate) fn expecting(mut self, expected: fn(&str) -> String) -> Self {
        self.expected = Some(expected);
        self
    }

    /// Cases of one command line as one: their inputs are documents of one stream.
    pub(crate) fn joined(cases: &[Self]) -> Self {
        let inputs: Vec<_> = cases.iter().map(|case| case.input.as_str()).collect();
        let first = cases.first().expect("a batch has cases").clone();
        Self { input: inputs.join("\n---\n"), ..first }
    }
}

/// What a binary made of a case.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Whether its exit code was 0.
    pub(crate) succeeded: bool,
    /// Standard output, or the file that was to be written.
    pub(crate) output: String,
    /// Standard error.
    pub(crate) words: String,
    /// The exit code, where there is one.
    pub(crate) code: Option<i32>,
}

impl Outcome {
    fn endless() -> Self {
        let words = format!("it does not end within {} s", LIMIT.as_secs());
        Self { succeeded: false, output: String::new(), words, code: None }
    }
}

/// The two binaries and a folder for all cases.
pub(crate) struct Stage {
    upstream: PathBuf,
    ours: PathBuf,
    folder: PathBuf,
    laid_out: AtomicUsize,
}

impl Stage {
    /// One with upstream's binary.
    pub(crate) fn new(upstream: PathBuf) -> Self {
        let folder = std::env::temp_dir().join(format!("capstan-differential-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        // Where it is a link, an absolute path would be printed in two ways.
        let folder = folder.canonicalize().unwrap();
        let ours = env!("CARGO_BIN_EXE_capstan").into();
        Self { upstream, ours, folder, laid_out: AtomicUsize::new(0) }
    }

    /// Runs both binaries, one after the other, in one folder: its name may be in what they print.
    pub(crate) async fn run(&self, case: &Case) -> (Outcome, Outcome) {
        let folder = self.folder.join(self.laid_out.fetch_add(1, Ordering::Relaxed).to_string());
        let home = folder.join("home");
        fs::create_dir_all(home.join(".config")).unwrap();
        let input = case.input_file.as_ref();
        let input = input.map(|(path, first)| (path.clone(), format!("{first}---\n{}", case.input)));
        for (path, content) in case.files.iter().chain(&input) {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, within(&folder, content)).unwrap();
        }
        let mut upstream = self.run_one(&self.upstream, case, &[], &folder).await;
        if let Some(expected) = case.expected.filter(|_| upstream.succeeded) {
            upstream.output = expected(&upstream.output);
        }
        let ours = self.run_one(&self.ours, case, &case.ours, &folder).await;
        fs::remove_dir_all(&folder).unwrap();
        (upstream, ours)
    }

    async fn run_one(&self, binary: &Path, case: &Case, more: &[String], folder: &Path) -> Outcome {
        let home = folder.join("home");
        let mut child = Command::new(binary)
            .args(case.arguments.iter().chain(more).map(|argument| within(folder, argument)))
            .current_dir(folder)
            .env_clear()
            .env("PATH", "/nowhere")
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", home.join(".config"))
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
            .env("NO_COLOR", "1")
            .env("GOPROXY", "off")
            .envs(case.environment.iter().map(|(name, value)| (name, within(folder, value))))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let text = within(folder, &case.input).into_bytes();
        // Who does not read it closes it, which is no error here.
        let writing = tokio::spawn(async move { drop(input.write_all(&text).await) });
        let run = tokio::time::timeout(LIMIT, child.wait_with_output()).await;
        let Ok(run) = run else {
            return Outcome::endless();
        };
        let run = run.unwrap();
        writing.await.unwrap();
        let mut output = String::from_utf8_lossy(&run.stdout).into_owned();
        if let Some(path) = case.written.as_ref().map(|path| folder.join(path)).filter(|path| path.exists()) {
            output.push_str("\nwritten:\n");
            output.push_str(&fs::read_to_string(&path).unwrap());
            fs::remove_file(path).unwrap();
        }
        let words = String::from_utf8_lossy(&run.stderr).into_owned();
        Outcome { succeeded: run.status.success(), output, words, code: run.status.code() }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What is left in a temporary folder is no reason for a test to fail.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn within(folder: &Path, text: &str) -> String {
    text.replace(DIR, &folder.display().to_string())
}
