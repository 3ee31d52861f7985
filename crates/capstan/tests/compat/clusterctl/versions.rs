//! Which release is taken: versions, metadata, overrides, and how providers are named on the command line.

use super::{
    Batch,
    harness::Case,
    repository::{CONFIG, METADATA, NAMESPACE, as_upstream, generate, path, with_release},
};

pub(crate) fn cases() -> Vec<Batch> {
    let mut batches = versions();
    batches.extend(metadata());
    batches.extend(overrides());
    batches.extend(names());
    batches.extend(urls());
    batches
}

/// Tells which version was taken.
fn components(version: &str) -> String {
    format!("{NAMESPACE}---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: '{version}'}}}}\n")
}

fn series(entries: &[(u32, u32, &str)]) -> String {
    let header =
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n".to_owned();
    entries.iter().fold(header, |text, (major, minor, contract)| {
        format!("{text}- {{major: {major}, minor: {minor}, contract: {contract}}}\n")
    })
}

/// `generate provider` on a repository with these versions.
fn choose(name: &str, provider: &str, versions: &[&str], metadata: &str) -> Case {
    let case =
        as_upstream(Case::new("versions", name, &format!("generate provider -i {provider}"))).config(CONFIG);
    versions.iter().fold(case, |case, version| {
        case.file(path(version, "infrastructure-components.yaml"), components(version))
            .file(path(version, "metadata.yaml"), metadata)
    })
}

fn versions() -> Vec<Batch> {
    let usual = series(&[(0, 9, "v1beta1"), (1, 0, "v1beta1"), (1, 1, "v1beta2")]);
    let later = series(&[(1, 0, "v1beta1"), (1, 1, "v1beta2"), (1, 2, "v1beta2")]);
    let older = series(&[(1, 0, "v1beta1"), (1, 1, "v1beta1")]);
    let next = series(&[(1, 0, "v1beta2"), (1, 1, "v1beta3")]);
    let strange = series(&[(1, 0, "v1alpha4"), (1, 1, "v1alpha4")]);
    let pick = |name: &str, versions: &[&str]| choose(name, "mine", versions, &usual);
    let cases = [
        pick("one", &["v1.1.0"]),
        pick("newest", &["v1.0.0", "v1.1.0", "v1.0.9"]),
        pick("numbers-not-texts", &["v1.1.9", "v1.1.10", "v1.1.2"]),
        pick("stable-before-candidate", &["v1.1.0", "v1.1.1-rc.0"]),
        pick("only-candidates", &["v1.1.0-rc.1", "v1.1.0-rc.2", "v1.1.0-beta.9"]),
        pick("candidates-by-number", &["v1.1.0-rc.9", "v1.1.0-rc.10"]),
        pick("build", &["v1.1.0+a"]),
        pick("no-semver-beside", &["v1.1.0", "foo", "v1", "v1.2", "v01.9.9", "v1.1.1.1", "latest"]),
        pick("nothing-usable", &["foo", "v1.1"]).refused(),
        pick("without-v", &["1.1.0"]).refused(),
        pick("without-v-beside-older", &["1.1.0", "v1.0.0"]).refused(),
        pick("without-v-beside-newer", &["1.0.0", "v1.1.0"]),
        pick(
            "six-candidates-beside-one-stable",
            &[
                "v1.0.0",
                "v1.1.0-rc.1",
                "v1.1.0-rc.2",
                "v1.1.0-rc.3",
                "v1.1.0-rc.4",
                "v1.1.0-rc.5",
                "v1.1.0-rc.6",
            ],
        ),
        choose("pinned", "mine:v1.0.0", &["v1.0.0", "v1.1.0"], &usual),
        choose("pinned-candidate", "mine:v1.1.1-rc.0", &["v1.1.0", "v1.1.1-rc.0"], &usual),
        choose("pinned-missing", "mine:v1.0.5", &["v1.0.0", "v1.1.0"], &usual).refused(),
        choose("pinned-no-semver", "mine:foo", &["v1.1.0", "foo"], &usual).refused(),
        choose("pinned-latest", "mine:latest", &["v1.1.0"], &usual).refused(),
        choose("pinned-without-v", "mine:1.1.0", &["v1.1.0"], &usual).refused(),
        choose("pinned-folder-without-v", "mine:1.0.0", &["v1.1.0", "1.0.0"], &usual),
        choose("pinned-two-parts", "mine:v1.1", &["v1.1.0"], &usual).refused(),
        choose("pinned-not-in-metadata", "mine:v3.0.0", &["v3.0.0", "v1.1.0"], &usual).refused(),
        choose("pinned-beside-newest-without-metadata", "mine:v1.0.0", &["v1.0.0"], &usual)
            .file(path("v1.1.0", "infrastructure-components.yaml"), components("v1.1.0"))
            .refused(),
        choose("newest-without-metadata", "mine", &["v1.0.0"], &usual)
            .file(path("v1.1.0", "infrastructure-components.yaml"), components("v1.1.0"))
            .refused(),
        choose("newest-without-components", "mine", &["v1.0.0"], &usual)
            .file(path("v1.1.0", "metadata.yaml"), usual.clone())
            .refused(),
        choose("future-series", "mine", &["v1.0.0", "v1.1.0"], &later).refused(),
        choose("future-series-pinned", "mine:v1.1.0", &["v1.0.0", "v1.1.0"], &later).refused(),
        choose("only-older-contract", "mine", &["v1.0.0", "v1.1.0"], &older),
        choose("newer-contract-left-out", "mine", &["v1.0.0", "v1.0.3", "v1.1.0"], &next),
        choose("newer-contract-pinned", "mine:v1.1.0", &["v1.0.0", "v1.1.0"], &next).refused(),
        choose("contract-not-supported", "mine", &["v1.0.0"], &strange).refused(),
        choose("no-such-series", "mine", &["v2.0.0"], &usual).refused(),
        choose("file-beside-folders", "mine", &["v1.1.0"], &usual)
            .file("repo/infrastructure-mine/v1.2.0", "a file"),
        choose("empty-repository", "mine", &[], &usual).refused(),
        choose("unknown-provider", "other", &["v1.1.0"], &usual).refused(),
    ];
    cases.map(Batch::from).into()
}

fn metadata() -> Vec<Batch> {
    let with = |name: &str, text: &str| {
        let case = as_upstream(Case::new("metadata", name, "generate provider -i mine")).config(CONFIG);
        case.file(path("v1.1.0", "infrastructure-components.yaml"), components("v1.1.0"))
            .file(path("v1.1.0", "metadata.yaml"), text)
    };
    let taken = METADATA_TAKEN.iter().map(|(name, text)| with(name, text).into());
    taken.chain(METADATA_REFUSED.iter().map(|(name, text)| with(name, text).refused().into())).collect()
}

const METADATA_TAKEN: &[(&str, &str)] = &[
    ("usual", METADATA),
    (
        "no-kind",
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nreleaseSeries: [{major: 1, minor: 1, contract: v1beta2}]\n",
    ),
    (
        "unknown-fields",
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nmore: 1\nreleaseSeries: [{major: 1, minor: 1, contract: v1beta2, more: x}]\n",
    ),
    (
        "series-twice",
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries: [{major: 1, minor: 1, contract: v1beta2}, {major: 1, minor: 1, contract: v1alpha4}]\n",
    ),
    (
        "json",
        "{\"apiVersion\": \"clusterctl.cluster.x-k8s.io/v1alpha3\", \"kind\": \"Metadata\", \"releaseSeries\": [{\"major\": 1, \"minor\": 1, \"contract\": \"v1beta2\"}]}",
    ),
    (
        "comments",
        "# about\n---\napiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n- major: 1 # one\n  minor: 1\n  contract: v1beta2\n",
    ),
    (
        "metadata-field",
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nmetadata: {name: a}\nreleaseSeries: [{major: 1, minor: 1, contract: v1beta2}]\n",
    ),
];

const METADATA_REFUSED: &[(&str, &str)] = &[
    (
        "other-api-version",
        "apiVersion: clusterctl.cluster.x-k8s.io/v1beta1\nkind: Metadata\nreleaseSeries: [{major: 1, minor: 1, contract: v1beta2}]\n",
    ),
    (
        "other-kind",
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Provider\nreleaseSeries: [{major: 1, minor: 1, contract: v1beta2}]\n",
    ),
    ("no-api-version", "kind: Metadata\nreleaseSeries: [{major: 1, minor: 1, contract: v1beta2}]\n"),
    ("no-series", "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\n"),
    ("empty-series", "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries: []\n"),
    (
        "text-for-number",
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries: [{major: 1, minor: '1', contract: v1beta2}]\n",
    ),
    (
        "fraction",
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries: [{major: 1, minor: 1.5, contract: v1beta2}]\n",
    ),
    (
        "no-contract",
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries: [{major: 1, minor: 1}]\n",
    ),
    ("empty", ""),
    ("not-yaml", "a: [\n"),
    (
        "lax-json",
        "{apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3, kind: Metadata, releaseSeries: [{major: 1, minor: 1, contract: v1beta2}]}",
    ),
];

fn overrides() -> Vec<Batch> {
    let base = |name: &str| {
        let case = as_upstream(Case::new("overrides", name, "generate provider -i mine"));
        with_release(case, "v1.1.0", &components("from-repository"))
    };
    let file = |folder: &str| format!("{folder}/infrastructure-mine/v1.1.0/infrastructure-components.yaml");
    let xdg = "home/.config/cluster-api/overrides";
    let home = "home/.cluster-api/overrides";
    let changed = components("from-override");
    let other = components("from-other-override");
    let describe = |name: &str| {
        let case = Case::new("overrides", name, "generate provider -i mine --describe").config(CONFIG);
        with_release(case, "v1.1.0", &components("from-repository"))
    };
    let cases = [
        base("xdg").config(CONFIG).file(file(xdg), changed.clone()),
        base("home").config(CONFIG).file(file(home), changed.clone()),
        base("xdg-before-home")
            .config(CONFIG)
            .file(file(xdg), changed.clone())
            .file(file(home), other.clone()),
        base("empty-xdg-before-home")
            .config(CONFIG)
            .file(format!("{xdg}/x"), "")
            .file(file(home), other.clone()),
        base("folder")
            .config(format!("{CONFIG}overridesFolder: <DIR>/mine\n"))
            .file(file("mine"), changed.clone()),
        base("folder-over-xdg")
            .config(format!("{CONFIG}overridesFolder: <DIR>/mine\n"))
            .file(file("mine"), changed.clone())
            .file(file(xdg), other.clone()),
        base("folder-without-the-file")
            .config(format!("{CONFIG}overridesFolder: <DIR>/mine\n"))
            .file(file(xdg), other.clone()),
        base("folder-with-variable")
            .config(format!("{CONFIG}overridesFolder: '${{HOME}}/mine'\n"))
            .file(file("home/mine"), changed.clone()),
        base("folder-with-unset-variable")
            .config(format!("{CONFIG}overridesFolder: '<DIR>/mi${{NOPE}}ne'\n"))
            .file(file("mine"), changed.clone()),
        base("folder-from-env")
            .config(CONFIG)
            .env("OVERRIDESFOLDER", "<DIR>/mine")
            .file(file("mine"), changed.clone()),
        base("folder-relative")
            .config(format!("{CONFIG}overridesFolder: mine\n"))
            .file(file("mine"), changed.clone()),
        base("folder-empty")
            .config(format!("{CONFIG}overridesFolder: ''\n"))
            .file(file(xdg), changed.clone()),
        base("other-version").config(CONFIG).file(file(xdg).replace("v1.1.0", "v1.1.1"), changed.clone()),
        base("other-provider").config(CONFIG).file(file(xdg).replace("-mine", "-other"), changed.clone()),
        base("is-a-folder").config(CONFIG).file(format!("{}/x", file(xdg)), "").refused(),
        base("metadata-only")
            .config(CONFIG)
            .file(format!("{xdg}/infrastructure-mine/v1.1.0/metadata.yaml"), series(&[(1, 1, "v1alpha4")]))
            .refused(),
        base("empty-file").config(CONFIG).file(file(xdg), "").refused(),
        describe("described").file(file(xdg), changed),
    ];
    cases.map(Batch::from).into()
}

fn names() -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    for (name, argument) in [("upper-case", "MINE"), ("mixed-case-version", "Mine:v1.1.0")] {
        let case =
            as_upstream(Case::new("names", name, "generate provider -i")).argument(argument).config(CONFIG);
        batches.push(with_release(case, "v1.1.0", NAMESPACE).into());
    }
    let long = "a".repeat(64);
    let refused = [
        "mine:",
        ":v1.1.0",
        ":",
        "mine:v1.1.0:x",
        "mi.ne",
        "mi_ne",
        "-",
        "mine ",
        " mine",
        "-mine",
        "mine-",
        &long,
        "mi/ne",
        "mine@v1.1.0",
        "mine,mine",
        "ä",
        "mine: v1.1.0",
    ];
    for argument in refused {
        let case = Case::new("names", format!("refused '{argument}'"), "generate provider");
        let case = as_upstream(case.argument(format!("--infrastructure={argument}"))).config(CONFIG);
        batches.push(with_release(case, "v1.1.0", NAMESPACE).refused().into());
    }
    // Of every type, with the name of its folder.
    let types = [
        ("--core", "cluster-api", "CoreProvider", "cluster-api"),
        ("-b", "mine", "BootstrapProvider", "bootstrap-mine"),
        ("--bootstrap", "mine", "BootstrapProvider", "bootstrap-mine"),
        ("-c", "mine", "ControlPlaneProvider", "control-plane-mine"),
        ("--control-plane", "mine", "ControlPlaneProvider", "control-plane-mine"),
        ("--ipam", "mine", "IPAMProvider", "ipam-mine"),
        ("--runtime-extension", "mine", "RuntimeExtensionProvider", "runtime-extension-mine"),
        ("--addon", "mine", "AddonProvider", "addon-mine"),
    ];
    for (flag, name, kind, label) in types {
        for (form, more) in [("", ""), ("-described", " --describe")] {
            let case = Case::new(
                "names",
                format!("{label}{flag}{form}"),
                &format!("generate provider {flag} {name}{more}"),
            );
            let case = as_upstream(case)
                .config(format!(
                    "providers: [{{name: {name}, type: {kind}, url: <DIR>/repo/{label}/latest/c.yaml}}]\n"
                ))
                .file(format!("repo/{label}/v1.1.0/c.yaml"), NAMESPACE)
                .file(format!("repo/{label}/v1.1.0/metadata.yaml"), METADATA);
            batches.push(case.into());
        }
    }
    batches.push(generate("names", "two-types", "--addon mine", NAMESPACE).refused().into());
    batches.push(as_upstream(Case::new("names", "no-type", "generate provider")).refused().into());
    batches.push(as_upstream(Case::new("names", "empty-name", "generate provider -i=")).refused().into());
    batches
}

fn urls() -> Vec<Batch> {
    let with = |name: &str, url: &str, arguments: &str| {
        let case = Case::new("urls", name, &format!("generate provider -i mine {arguments}"));
        let config = format!("providers: [{{name: mine, type: InfrastructureProvider, url: '{url}'}}]\n");
        with_release(as_upstream(case).config(config), "v1.1.0", NAMESPACE)
    };
    let root = "<DIR>/repo/infrastructure-mine";
    let cases = [
        with("latest", &format!("{root}/latest/infrastructure-components.yaml"), ""),
        with("version", &format!("{root}/v1.1.0/infrastructure-components.yaml"), ""),
        with("version-described", &format!("{root}/v1.1.0/infrastructure-components.yaml"), "--describe"),
        with("file-scheme", &format!("file://{root}/latest/infrastructure-components.yaml"), ""),
        with(
            "file-scheme-described",
            &format!("file://{root}/latest/infrastructure-components.yaml"),
            "--describe",
        ),
        with(
            "escaped",
            &format!("file://{}/latest/infrastructure-components.yaml", root.replace("mine", "min%65")),
            "",
        ),
        with("other-file", &format!("{root}/latest/nothing.yaml"), "").refused(),
        with("no-semver", &format!("{root}/newest/infrastructure-components.yaml"), "").refused(),
        with("other-label", "<DIR>/repo/addon-mine/latest/infrastructure-components.yaml", "").refused(),
        with("short", "/infrastructure-components.yaml", "").refused(),
        with("relative", "repo/infrastructure-mine/latest/infrastructure-components.yaml", "").refused(),
        with("http", "http://example.invalid/infrastructure-mine/latest/c.yaml", "").refused(),
        with("ftp", "ftp://example.invalid/infrastructure-mine/latest/c.yaml", "").refused(),
        with("https-elsewhere", "https://example.invalid/infrastructure-mine/latest/c.yaml", "").refused(),
        with("missing-folder", "/nowhere/infrastructure-mine/latest/c.yaml", "").refused(),
        with("double-slash", &format!("{root}//latest/infrastructure-components.yaml"), "").refused(),
        with("trailing-slash", &format!("{root}/latest/infrastructure-components.yaml/"), "").refused(),
    ];
    cases.map(Batch::from).into()
}
