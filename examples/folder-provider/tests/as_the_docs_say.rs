//! Does what docs/writing-a-provider.md says, block by block.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use capstan_api::{cluster::v1beta2::Cluster, crd::Conversion};
use capstan_testkit::{Plane, Story, Which, wait::LIMIT};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
    discovery,
};
use serde_json::Value;

const TEXT: &str = include_str!("../../../docs/writing-a-provider.md");
const PROVIDER: &str = "cargo run --quiet -p folder-provider -- ";

/// The blocks of one language, in order.
fn blocks(language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    let parts = TEXT.split(&opening).skip(1);
    parts.map(|part| part.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_code_on_the_page_is_the_code_in_the_example() {
    let code = include_str!("../src/main.rs").split("\n#[cfg(test)]").next().unwrap();
    assert_eq!(blocks("rust"), [code]);
    let manifest = include_str!("../Cargo.toml");
    let dependencies = manifest.split("[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
    assert_eq!(blocks("toml"), [dependencies.trim_end().to_owned() + "\n"]);
}

/// The commands of the page, each with what it prints, but for those that need another terminal or a later chapter.
fn commands() -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in blocks("console").iter().flat_map(|block| block.lines()) {
        match line.strip_prefix("$ ") {
            Some(command) => commands.push((command.to_owned(), String::new())),
            None => commands.last_mut().unwrap().1.extend([line, "\n"]),
        }
    }
    commands
}

struct Walk {
    client: Client,
    folder: std::path::PathBuf,
    kubeconfig: std::path::PathBuf,
    provider: Option<Child>,
}

impl Walk {
    /// Does one line of the page; gives what it prints. kubectl's part is done by a client, so that the test needs
    /// nothing that the page's reader has and a machine with Rust and Go has not.
    async fn follow(&mut self, command: &str) -> String {
        let words: Vec<_> = command.split(' ').collect();
        match words[..] {
            ["export", ..] | ["capstan", "conformance", ..] => String::new(),
            ["cargo", ..] => self.run_provider(command.strip_prefix(PROVIDER).unwrap()),
            ["kubectl", "apply", .., file] => {
                self.apply(&fs::read_to_string(self.folder.join(file)).unwrap()).await;
                String::new()
            }
            ["kubectl", "wait", "cluster", name, condition] => {
                let phase = condition.strip_prefix("--for=jsonpath={.status.phase}=").unwrap();
                let clusters: Api<Cluster> = Api::namespaced(self.client.clone(), "default");
                capstan_testkit::wait::until_is(&clusters, name, phase, LIMIT, |cluster| {
                    cluster.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(phase)
                })
                .await;
                String::new()
            }
            ["kubectl", "delete", "cluster", name] => {
                let clusters: Api<Cluster> = Api::namespaced(self.client.clone(), "default");
                clusters.delete(name, &DeleteParams::default()).await.unwrap();
                capstan_testkit::wait::until_gone(&clusters, name, LIMIT).await;
                String::new()
            }
            ["cat" | "ls", ..] => {
                let output =
                    Command::new("bash").args(["-c", command]).current_dir(&self.folder).output().unwrap();
                assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
                String::from_utf8(output.stdout).unwrap()
            }
            _ => panic!("the page has a command that this test does not know: {command}"),
        }
    }

    /// What `cargo run` would run. With `>` it ends by itself, otherwise it goes on beside the other terminal.
    fn run_provider(&mut self, flags: &str) -> String {
        let (flags, file) =
            flags.split_once(" > ").map_or((flags, None), |(flags, file)| (flags, Some(file)));
        let mut command = Command::new(env!("CARGO_BIN_EXE_folder-provider"));
        command.args(flags.split(' ')).current_dir(&self.folder).env("KUBECONFIG", &self.kubeconfig);
        if let Some(file) = file {
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            fs::write(self.folder.join(file), output.stdout).unwrap();
        } else {
            self.provider = Some(command.stderr(Stdio::null()).spawn().unwrap());
        }
        String::new()
    }

    async fn apply(&self, text: &str) {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
        let objects = documents.into_iter().flat_map(|document| match document["kind"].as_str() {
            Some("List") => document["items"].as_array().unwrap().clone(),
            _ => vec![document],
        });
        for object in objects {
            let object: DynamicObject = serde_json::from_value(object).unwrap();
            let kind = object.types.as_ref().unwrap().try_into().unwrap();
            let name = object.metadata.name.clone().unwrap();
            let params = PatchParams::apply("reader").force();
            // A kind that has just been installed takes a moment to be served.
            let deadline = tokio::time::Instant::now() + LIMIT;
            loop {
                let applied = async {
                    let (resource, _) = discovery::pinned_kind(&self.client, &kind).await?;
                    let api: Api<DynamicObject> = match &object.metadata.namespace {
                        Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
                        None => Api::all_with(self.client.clone(), &resource),
                    };
                    api.patch(&name, &params, &Patch::Apply(&object)).await
                };
                match applied.await {
                    Ok(_) => break,
                    Err(error) => assert!(tokio::time::Instant::now() < deadline, "{name}: {error}"),
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        if let Some(provider) = &mut self.provider {
            let _ = provider.kill();
            let _ = provider.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_leads_to_a_running_provider() {
    let plane = Plane::start_bare().await;
    plane.install(Conversion::Nobody).await;
    let mut story = Story::begin_on(plane.clone(), "page").await;
    story.namespace = "default".to_owned();
    // What `make run` would give.
    let core = story.manager(Which::Core);
    let folder = std::env::temp_dir().join(format!("writing-a-provider-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("cluster.yaml"), &blocks("yaml")[0]).unwrap();
    let mut walk = Walk {
        client: story.client.clone(),
        kubeconfig: Path::new(plane.kubeconfig()).to_owned(),
        folder,
        provider: None,
    };
    let commands = commands();
    assert!(commands.len() > 8, "{commands:?}");
    for (command, expected) in commands {
        let printed = walk.follow(&command).await;
        assert_eq!(printed.trim_end(), expected.trim_end(), "{command}");
    }
    drop(walk);
    core.stop().await;
}
