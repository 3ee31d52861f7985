//! The configuration: where variables come from, which files are read, and which providers there are.

use super::{Batch, harness::Case};

pub(crate) fn cases() -> Vec<Batch> {
    let mut batches = variables();
    batches.extend(files());
    batches.extend(providers());
    batches
}

/// Shows what became of a variable.
const TEMPLATE: &str = "v: |-\n  [${FOO}]\nw: |-\n  [${FOO:=default}]\n";

fn variables() -> Vec<Batch> {
    let case = |name: &str| Case::new("variables", name, "generate yaml").input(TEMPLATE);
    let from_config = CONFIG_VALUES
        .iter()
        .map(|(name, value)| case(&format!("config-{name}")).config(format!("FOO: {value}\n")));
    // Of these the variable is not set, and only a default helps.
    let unset = UNSET_VALUES
        .iter()
        .map(|(name, value)| case(&format!("config-{name}")).config(format!("FOO: {value}\n")).refused());
    let sources = [
        case("env").env("FOO", "env"),
        case("both").env("FOO", "env").config("FOO: config\n"),
        case("env-empty").env("FOO", ""),
        case("env-empty-and-config").env("FOO", "").config("FOO: config\n"),
        case("env-lower-case").env("foo", "env").refused(),
        case("env-lower-case-and-config").env("foo", "env").config("FOO: config\n"),
        case("config-lower-case").config("foo: config\n"),
        case("config-mixed-case").config("fOo: config\n"),
        case("env-several-lines").env("FOO", "a\n  b"),
        case("env-with-dollar").env("FOO", "${BAR} $$ $X"),
        case("env-with-signs").env("FOO", "'\"#: {}[]"),
        case("neither").refused(),
        Case::new("variables", "lower-case-in-template", "generate yaml").input("a: ${foo}\n").env("FOO", "env"),
        Case::new("variables", "lower-case-in-both", "generate yaml").input("a: ${foo}\n").env("foo", "env").refused(),
        Case::new("variables", "lower-case-by-config", "generate yaml").input("a: ${foo}\n").config("foo: x\n"),
        Case::new("variables", "underscore", "generate yaml").input("a: ${FOO_BAR}\n").config("foo_bar: x\n"),
        Case::new("variables", "dash-in-config", "generate yaml").input("a: ${FOO_BAR:=no}\n").config("foo-bar: x\n"),
        Case::new("variables", "dot-in-config", "generate yaml").input("a: ${FOO:=no}\n").config("foo.bar: x\n"),
        Case::new("variables", "map-in-config", "generate yaml").input("a: '[${FOO:=no}]'\n").config("foo: {bar: x}\n"),
        Case::new("variables", "lines-in-config", "generate yaml").input("a: ${FOO}\nb: 1\n").config("FOO: |\n  x\n  y: 2\n"),
        Case::new("variables", "quiet", "generate yaml -v 0").input("a: ${FOO}\n").env("FOO", "x"),
        Case::new("variables", "loud", "generate yaml -v 5").input("a: ${FOO}\n").env("FOO", "x"),
        Case::new("variables", "level-from-env", "generate yaml").input("a: 1\n").env("CLUSTERCTL_LOG_LEVEL", "3"),
        Case::new("variables", "level-from-config", "generate yaml").input("a: 1\n").config("CLUSTERCTL_LOG_LEVEL: 3\n"),
        Case::new("variables", "level-no-number", "generate yaml").input("a: 1\n").env("CLUSTERCTL_LOG_LEVEL", "x").refused(),
        Case::new("variables", "url-of-a-provider", "config repositories").env("BASE", "/base").config(
            "providers: [{name: x, type: InfrastructureProvider, url: \"${BASE}/infrastructure-x/v1.0.0/c.yaml\"}]\n",
        ),
        Case::new("variables", "url-with-lower-case", "config repositories").env("base", "/base").config(
            "providers: [{name: x, type: InfrastructureProvider, url: \"${base}/infrastructure-x/v1.0.0/c.yaml\"}]\n",
        ),
        Case::new("variables", "url-with-unset", "config repositories").config(
            "providers: [{name: x, type: InfrastructureProvider, url: \"/a${NOPE}/infrastructure-x/v1.0.0/c.yaml\"}]\n",
        ),
        Case::new("variables", "url-with-default", "config repositories").config(
            "providers: [{name: x, type: InfrastructureProvider, url: \"${B:=/b}/infrastructure-x/v1.0.0/c.yaml\"}]\n",
        ),
        Case::new("variables", "url-not-from-config", "config repositories").config(
            "BASE: /c\nproviders: [{name: x, type: InfrastructureProvider, url: \"/a${BASE}/infrastructure-x/v1.0.0/c.yaml\"}]\n",
        ),
    ];
    from_config.chain(unset).chain(sources).map(Batch::from).collect()
}

const CONFIG_VALUES: &[(&str, &str)] = &[
    ("string", "text"),
    ("quoted", "'a b'"),
    ("true", "true"),
    ("false", "false"),
    ("yes", "yes"),
    ("on", "on"),
    ("y", "y"),
    ("no", "no"),
    ("one", "1"),
    ("float", "1.5"),
    ("version", "1.10"),
    ("version-quoted", "'1.10'"),
    ("octal", "010"),
    ("octal-new", "0o17"),
    ("hexadecimal", "0x1F"),
    ("exponent", "1e3"),
    ("large", "12345678901234567890"),
    ("larger", "123456789012345678901234567890"),
    ("large-float", "1e21"),
    ("small-float", "0.0000001"),
    ("million", "1000000.0"),
    ("negative", "-5"),
    ("underscores", "1_000"),
    ("base-60", "1:30"),
    ("date", "2021-01-01"),
    ("date-and-time", "2021-01-01T10:00:00Z"),
    ("date-and-zone", "2021-01-01T10:00:00+02:00"),
    ("date-quoted", "'2021-01-01'"),
    ("list", "[a, b]"),
    ("empty-list", "[]"),
    ("map", "{a: b}"),
    ("empty-map", "{}"),
    ("empty-string", "''"),
    ("lines", "|-\n  a\n    b"),
    ("folded", ">-\n  a\n  b"),
    ("dollar", "'${BAR}'"),
    ("infinity", ".inf"),
    ("not-a-number", ".nan"),
    ("unicode", "ä😀"),
    ("anchor", "&x y"),
    ("tag-string", "!!str 1"),
    ("tag-int", "!!int '1'"),
    ("binary", "!!binary aGVsbG8="),
];

const UNSET_VALUES: &[(&str, &str)] = &[("null", "null"), ("tilde", "~"), ("nothing", "")];

fn files() -> Vec<Batch> {
    let case = |name: &str| Case::new("config-files", name, "generate yaml").input("a: '${FOO:=none}'\n");
    let at = |name: &str, path: &str, content: &str| case(name).file(path, content);
    let xdg = "home/.config/cluster-api/clusterctl";
    let home = "home/.cluster-api/clusterctl";
    let flag = |name: &str, path: &str| {
        Case::new("config-files", name, "generate yaml --config").argument(path).input("a: '${FOO:=none}'\n")
    };
    let cases = [
        at("yaml", &format!("{xdg}.yaml"), "FOO: x\n"),
        at("yml", &format!("{xdg}.yml"), "FOO: x\n"),
        at("json", &format!("{xdg}.json"), "{\"FOO\": \"x\"}"),
        at("toml", &format!("{xdg}.toml"), "FOO = \"x\"\n"),
        at("toml-number", &format!("{xdg}.toml"), "FOO = 1.10\n"),
        at("toml-date", &format!("{xdg}.toml"), "FOO = 2021-01-01\n"),
        at("env", &format!("{xdg}.env"), "FOO=x\n"),
        at("env-quoted", &format!("{xdg}.env"), "FOO=\"x y\"\n# comment\nexport BAR='z'\n"),
        at("dotenv", &format!("{xdg}.dotenv"), "FOO=x\n"),
        at("home-yaml", &format!("{home}.yaml"), "FOO: x\n"),
        at("home-json", &format!("{home}.json"), "{\"foo\": 1}"),
        at("xdg-before-home", &format!("{xdg}.yaml"), "FOO: xdg\n")
            .file(format!("{home}.yaml"), "FOO: home\n"),
        at("json-before-yaml", &format!("{xdg}.json"), "{\"foo\": \"json\"}")
            .file(format!("{xdg}.yaml"), "FOO: yaml\n"),
        at("yaml-before-yml", &format!("{xdg}.yaml"), "FOO: yaml\n").file(format!("{xdg}.yml"), "FOO: yml\n"),
        at("toml-before-yaml", &format!("{xdg}.toml"), "FOO = \"toml\"\n")
            .file(format!("{xdg}.yaml"), "FOO: yaml\n"),
        at("ini", &format!("{xdg}.ini"), "FOO=x\n").refused(),
        at("properties", &format!("{xdg}.properties"), "FOO=x\n").refused(),
        at("empty", &format!("{xdg}.yaml"), ""),
        at("only-comment", &format!("{xdg}.yaml"), "# nothing\n"),
        at("two-documents", &format!("{xdg}.yaml"), "FOO: one\n---\nFOO: two\n"),
        at("key-twice", &format!("{xdg}.yaml"), "FOO: one\nFOO: two\n").refused(),
        at("keys-that-differ-in-case", &format!("{xdg}.yaml"), "FOO: one\nBAR: two\n"),
        at("not-yaml", &format!("{xdg}.yaml"), "FOO: [\n").refused(),
        at("list", &format!("{xdg}.yaml"), "- FOO\n").refused(),
        at("text", &format!("{xdg}.yaml"), "FOO\n").refused(),
        at("merge", &format!("{xdg}.yaml"), "base: &b {FOO: x}\n<<: *b\n"),
        at("bad-json", &format!("{xdg}.json"), "{\"FOO\": }").refused(),
        at("bad-toml", &format!("{xdg}.toml"), "FOO = \n").refused(),
        at("crlf", &format!("{xdg}.yaml"), "FOO: x\r\nBAR: y\r\n"),
        at("byte-order-mark", &format!("{xdg}.yaml"), "\u{feff}FOO: x\n"),
        at("number-as-key", &format!("{xdg}.yaml"), "1: x\nFOO: y\n"),
        flag("flag-yaml", "<DIR>/mine.yaml").file("mine.yaml", "FOO: x\n"),
        flag("flag-relative", "mine.yaml").file("mine.yaml", "FOO: x\n"),
        flag("flag-json", "<DIR>/mine.json").file("mine.json", "{\"FOO\": \"x\"}"),
        flag("flag-toml", "<DIR>/mine.toml").file("mine.toml", "FOO = \"x\"\n"),
        flag("flag-env", "<DIR>/mine.env").file("mine.env", "FOO=x\n"),
        flag("flag-over-home", "<DIR>/mine.yaml").file("mine.yaml", "BAR: x\n").config("FOO: home\n"),
        flag("flag-missing", "<DIR>/nowhere.yaml").refused(),
        flag("flag-folder", "<DIR>/home").refused(),
        flag("flag-without-extension", "<DIR>/mine").file("mine", "FOO: x\n").refused(),
        flag("flag-other-extension", "<DIR>/mine.txt").file("mine.txt", "FOO: x\n").refused(),
        flag("flag-dotfile", "<DIR>/.mine.yaml").file(".mine.yaml", "FOO: x\n"),
        flag("flag-upper-case-extension", "<DIR>/mine.YAML").file("mine.YAML", "FOO: x\n").refused(),
        Case::new("config-files", "flag-empty", "generate yaml --config=")
            .input("a: '${FOO:=none}'\n")
            .config("FOO: x\n"),
    ];
    cases.map(Batch::from).into()
}

fn providers() -> Vec<Batch> {
    let case = |name: &str| Case::new("repositories", name, "config repositories");
    let mut batches: Vec<Batch> = vec![
        case("built-in").into(),
        Case::new("repositories", "built-in-text", "config repositories -o text").into(),
        Case::new("repositories", "built-in-yaml", "config repositories -o yaml").into(),
        Case::new("repositories", "built-in-output", "config repositories --output=yaml").into(),
        Case::new("repositories", "output-json", "config repositories -o json").refused().into(),
        Case::new("repositories", "empty-output", "config repositories -o=").refused().into(),
        case("env-providers").env("PROVIDERS", "x").refused().into(),
        case("env-providers-empty").env("PROVIDERS", "").into(),
        case("env-providers-empty-and-config")
            .env("PROVIDERS", "")
            .config("providers: [{name: x, type: AddonProvider, url: /r/addon-x/v1.0.0/c.yaml}]\n")
            .into(),
        case("env-images").env("IMAGES", "x").into(),
        case("env-cert-manager").env("CERT_MANAGER", "x").into(),
    ];
    for (name, providers) in PROVIDERS {
        let config = format!("providers:\n{providers}");
        batches.push(case(name).config(config.clone()).into());
        let yaml = Case::new("repositories", format!("{name}-yaml"), "config repositories -o yaml");
        batches.push(yaml.config(config).into());
    }
    batches.extend(
        BAD_PROVIDERS
            .iter()
            .map(|(name, providers)| case(name).config(format!("providers:{providers}\n")).refused().into()),
    );
    batches
}

const PROVIDERS: &[(&str, &str)] = &[
    ("one-more", "- {name: mine, type: InfrastructureProvider, url: /r/infrastructure-mine/v1.0.0/c.yaml}\n"),
    ("replaced", "- {name: aws, type: InfrastructureProvider, url: /r/infrastructure-aws/latest/c.yaml}\n"),
    ("core-replaced", "- {name: cluster-api, type: CoreProvider, url: /r/cluster-api/latest/core.yaml}\n"),
    ("same-name-other-type", "- {name: aws, type: AddonProvider, url: /r/addon-aws/v1.0.0/c.yaml}\n"),
    ("dotted", "- {name: a.b, type: IPAMProvider, url: /r/ipam-a.b/v1.0.0/c.yaml}\n"),
    (
        "file-url",
        "- {name: mine, type: RuntimeExtensionProvider, url: 'file:///r/runtime-extension-mine/v1.0.0/c.yaml'}\n",
    ),
    ("unknown-field", "- {name: mine, type: AddonProvider, url: /r/addon-mine/v1.0.0/c.yaml, more: 1}\n"),
    ("fields-in-other-case", "- {Name: mine, TYPE: AddonProvider, Url: /r/addon-mine/v1.0.0/c.yaml}\n"),
    ("single-map", "  {name: mine, type: AddonProvider, url: /r/addon-mine/v1.0.0/c.yaml}\n"),
    ("empty-list", "  []\n"),
    ("null", "  null\n"),
    ("github", "- {name: mine, type: AddonProvider, url: 'https://github.com/o/r/releases/v1.2.3/c.yaml'}\n"),
    (
        "gitlab",
        "- {name: mine, type: AddonProvider, url: 'https://gitlab.example.com/api/v4/projects/o%2Fr/packages/generic/p/v1.0.0/c.yaml'}\n",
    ),
    ("other-scheme", "- {name: mine, type: AddonProvider, url: 'oci://ghcr.io/o/r'}\n"),
    ("no-slash", "- {name: mine, type: AddonProvider, url: 'c.yaml'}\n"),
    ("query", "- {name: mine, type: AddonProvider, url: 'https://example.com/a/b?c=/d#e'}\n"),
    ("name-number", "- {name: 7, type: AddonProvider, url: '/r/addon-7/v1.0.0/c.yaml'}\n"),
    (
        "twice",
        "- {name: mine, type: AddonProvider, url: /a/b}\n- {name: mine, type: AddonProvider, url: /c/d}\n",
    ),
    ("unicode-url", "- {name: mine, type: AddonProvider, url: /ä/b c.yaml}\n"),
    (
        "long-name",
        "- {name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, type: AddonProvider, url: /a/b}\n",
    ),
];

const BAD_PROVIDERS: &[(&str, &str)] = &[
    ("upper-case-name", " [{name: Mine, type: AddonProvider, url: /a/b}]"),
    ("no-name", " [{type: AddonProvider, url: /a/b}]"),
    ("empty-name", " [{name: '', type: AddonProvider, url: /a/b}]"),
    ("underscore", " [{name: a_b, type: AddonProvider, url: /a/b}]"),
    ("no-url", " [{name: mine, type: AddonProvider}]"),
    ("no-type", " [{name: mine, url: /a/b}]"),
    ("bad-type", " [{name: mine, type: Provider, url: /a/b}]"),
    ("type-in-lower-case", " [{name: mine, type: addonprovider, url: /a/b}]"),
    ("core-with-other-name", " [{name: mine, type: CoreProvider, url: /a/b}]"),
    ("cluster-api-of-other-type", " [{name: cluster-api, type: AddonProvider, url: /a/b}]"),
    ("text", " foo"),
    ("list-of-texts", " [foo]"),
    ("bad-url", " [{name: mine, type: AddonProvider, url: 'http://[::1'}]"),
    ("control-in-url", " [{name: mine, type: AddonProvider, url: \"/a\\x01/b\"}]"),
    ("url-with-open-variable", " [{name: mine, type: AddonProvider, url: '${A'}]"),
    ("dash-first", " [{name: -a, type: AddonProvider, url: /a/b}]"),
];
