//! A user of the binary: a home of their own, and nothing in the environment but what they set.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use capstan_testkit::canary::assert_not_in;
use serde_json::{Value, json};

/// The release that most stories are about.
pub(crate) const VERSION: &str = "v1.0.0";

/// Says that all versions of a provider speak the current contract.
pub(crate) const METADATA: &str = "\
apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- major: 1
  minor: 0
  contract: v1beta2
- major: 1
  minor: 1
  contract: v1beta2
";

/// A provider with one variable that must be set, one that need not, and roles that refer to each other.
pub(crate) const COMPONENTS: &str = "\
apiVersion: v1
kind: Namespace
metadata:
  name: acme-system
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: acme-manager
  namespace: acme-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: acme-role
rules:
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles]
  resourceNames: [acme-role]
  verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: acme-binding
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: acme-role
subjects:
- kind: ServiceAccount
  name: acme-manager
  namespace: acme-system
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: acme-manager
  namespace: acme-system
spec:
  selector:
    matchLabels: {app: acme}
  template:
    metadata:
      labels: {app: acme}
    spec:
      containers:
      - name: manager
        image: registry.example.com/acme/controller:v1.0.0
        args: ['--token=${ACME_TOKEN}', '--region=${ACME_REGION:=here}']
";

/// The ClusterClass `quick` with a template of `acme`.
pub(crate) const CLASS: &str = "\
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: quick}
spec: {}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AcmeClusterTemplate
metadata: {name: quick-cluster}
spec: {}
";

/// A user, whose home vanishes with them.
pub(crate) struct User {
    pub(crate) home: PathBuf,
    variables: BTreeMap<String, String>,
}

/// The output of a run of the binary.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl User {
    /// With an empty home, no kubeconfig, and no way to the public network by accident.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let home = std::env::temp_dir().join(format!("capstan-user-{}-{count}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        let user = Self { home: home.canonicalize().unwrap(), variables: BTreeMap::new() };
        user.with("GOPROXY", "off")
    }

    /// With a local repository that has one release of the infrastructure provider `acme`, and its variable set.
    pub(crate) fn of_acme() -> Self {
        let user = Self::new().with("ACME_TOKEN", "t0ken");
        user.release("infrastructure-acme", VERSION, &[("infrastructure-components.yaml", COMPONENTS)]);
        user.configure(&json!({"providers": [user.local_provider("acme", "InfrastructureProvider")]}));
        user
    }

    /// Puts core, the kubeadm providers, `acme` and cert-manager into their local repository, each with one image.
    pub(crate) fn stock_everything(&self) {
        let all = [
            ("cluster-api", "CoreProvider", "cluster-api", "core"),
            ("kubeadm", "BootstrapProvider", "bootstrap-kubeadm", "bootstrap"),
            ("kubeadm", "ControlPlaneProvider", "control-plane-kubeadm", "control-plane"),
            ("acme", "InfrastructureProvider", "infrastructure-acme", "infrastructure"),
        ];
        let manifest =
            |image: &str| COMPONENTS.replace("acme/controller:v1.0.0", &format!("{image}:${{TAG:=v1}}"));
        for (_, _, label, prefix) in all {
            self.release(label, VERSION, &[(&format!("{prefix}-components.yaml"), &manifest(label))]);
        }
        // Variables are replaced in providers' components only.
        let cert_manager = manifest("cert-manager").replace("${TAG:=v1}", "v1");
        let file = self.write("repository/cert-manager/v1.2.3/cert-manager.yaml", &cert_manager);
        let providers: Vec<_> = all.iter().map(|(name, kind, ..)| self.local_provider(name, kind)).collect();
        self.configure(&json!({"providers": providers, "cert-manager": {"url": file, "version": "v1.2.3"}}));
    }

    /// The images that a command lists, without what they have in common.
    pub(crate) fn images(&self, words: &[&str]) -> Vec<String> {
        let text = self.run(words).only_data();
        let own =
            |line: &str| line.strip_prefix("registry.example.com/")?.strip_suffix(":v1").map(str::to_owned);
        text.lines().map(|line| own(line).expect(line)).collect()
    }

    /// Sets an environment variable.
    pub(crate) fn with(mut self, name: &str, value: impl AsRef<Path>) -> Self {
        self.variables.insert(name.to_owned(), value.as_ref().to_str().unwrap().to_owned());
        self
    }

    /// Unsets an environment variable.
    pub(crate) fn without(mut self, name: &str) -> Self {
        assert!(self.variables.remove(name).is_some(), "{name} was set");
        self
    }

    /// Writes a file below their home.
    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A path below their home, as text.
    pub(crate) fn path(&self, path: &str) -> String {
        self.home.join(path).to_str().unwrap().to_owned()
    }

    /// Writes their configuration file.
    pub(crate) fn configure(&self, config: &Value) {
        self.write(".cluster-api/clusterctl.yaml", &config.to_string());
    }

    /// Puts a release into their local repository, with metadata unless it brings its own.
    pub(crate) fn release(&self, label: &str, version: &str, files: &[(&str, &str)]) {
        self.write(&format!("repository/{label}/{version}/metadata.yaml"), METADATA);
        for (name, text) in files {
            self.write(&format!("repository/{label}/{version}/{name}"), text);
        }
    }

    /// The entry of the configuration file for an infrastructure, bootstrap, control plane or core provider in the
    /// local repository.
    pub(crate) fn local_provider(&self, name: &str, kind: &str) -> Value {
        let (label, file) = match kind {
            "CoreProvider" => (name.to_owned(), "core"),
            "BootstrapProvider" => (format!("bootstrap-{name}"), "bootstrap"),
            "ControlPlaneProvider" => (format!("control-plane-{name}"), "control-plane"),
            _ => (format!("infrastructure-{name}"), "infrastructure"),
        };
        let url = self.path(&format!("repository/{label}/latest/{file}-components.yaml"));
        json!({"name": name, "type": kind, "url": url})
    }

    /// The binary with these arguments, under any name.
    pub(crate) fn command(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program.as_ref());
        command.args(arguments).current_dir(&self.home).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", &self.home);
        command.envs(&self.variables);
        command
    }

    /// Runs the binary.
    pub(crate) fn run(&self, arguments: &[&str]) -> Told {
        let told: Told = self.command(env!("CARGO_BIN_EXE_capstan"), arguments).output().unwrap().into();
        assert_not_in(&format!("capstan {}", arguments.join(" ")), &told.err);
        // A kubeconfig that was asked for is a Secret's contents.
        if !arguments.starts_with(&["get", "kubeconfig"]) {
            assert_not_in(&format!("capstan {}", arguments.join(" ")), &told.out);
        }
        told
    }

    /// Runs the binary with something to read.
    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> Told {
        let mut command = self.command(env!("CARGO_BIN_EXE_capstan"), arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.home);
    }
}

impl From<Output> for Told {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Told {
    /// What was printed by a run that must have succeeded.
    pub(crate) fn data(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// The same without a word beside it.
    pub(crate) fn only_data(self) -> String {
        assert_eq!(self.err, "", "{self:?}");
        self.data()
    }

    /// The objects that were printed.
    pub(crate) fn objects(self) -> Vec<Value> {
        objects(&self.data())
    }

    /// Makes sure that the run failed as it should: exit code 1, nothing on stdout, one error with all these words.
    pub(crate) fn fails(self, words: &[&str]) -> String {
        assert_eq!((self.code, self.out.as_str()), (Some(1), ""), "{self:?}");
        let errors = self.err.lines().filter(|line| line.starts_with("error:")).count();
        assert_eq!(errors, 1, "{}", self.err);
        for words in words {
            assert!(self.err.contains(words), "{words:?} is missing in:\n{}", self.err);
        }
        self.err
    }
}

/// The objects of a stream of YAML.
pub(crate) fn objects(text: &str) -> Vec<Value> {
    capstan_manifest::yaml::read(text).unwrap().into_iter().map(|it| it.value).collect()
}

/// The object of a kind among others.
pub(crate) fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let found: Vec<_> = objects.iter().filter(|it| it["kind"] == kind).collect();
    assert_eq!(found.len(), 1, "one {kind} in {objects:?}");
    found[0]
}
