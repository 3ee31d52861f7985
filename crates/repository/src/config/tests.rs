use std::{path::Path, time::Duration};

use super::*;

fn environment(variables: &[(&str, &str)]) -> Environment {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Environment { variables, home: Some("/home/me".into()), ..Environment::default() }
}

fn yaml(text: &str, variables: &[(&str, &str)]) -> Config {
    Config::parse(text, Format::Yaml, "clusterctl.yaml", &environment(variables)).unwrap()
}

/// One provider of the given fields, in flow style.
fn with_provider(fields: &str, variables: &[(&str, &str)]) -> Result<Vec<Provider>, ConfigError> {
    yaml(&format!("providers:\n- {{{fields}}}\n"), variables).providers()
}

const INFRASTRUCTURE: &str = "type: InfrastructureProvider";

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let text = "FILE: file\nBOTH: file\nALL: file\nEMPTY: file\nlower: file\nwith-dash: file\nNULL_: null\nLIST: [1]\n";
    let mut config = yaml(
        text,
        &[
            ("BOTH", "environment"),
            ("ALL", "environment"),
            ("EMPTY", ""),
            ("ONLY", "environment"),
            ("unseen", "environment"),
            ("WITH_DASH2", "environment"),
        ],
    );
    config.set("all", "flag".to_owned());
    for (name, expected) in [
        ("FILE", Some("file")),
        ("file", Some("file")),
        ("BOTH", Some("environment")),
        ("both", Some("environment")),
        ("ALL", Some("flag")),
        ("All", Some("flag")),
        ("EMPTY", Some("")),
        ("ONLY", Some("environment")),
        ("only", Some("environment")),
        ("unseen", None),
        ("UNSEEN", None),
        ("LOWER", Some("file")),
        ("with-dash", Some("file")),
        ("with_dash", None),
        ("with-dash2", Some("environment")),
        ("NULL_", None),
        ("LIST", Some("")),
        ("NOWHERE", None),
    ] {
        assert_eq!(config.variable(name).as_deref(), expected, "{name}");
    }
    assert_eq!(
        config.why_unset("UNSEEN").as_deref(),
        Some("the environment variable unseen is not read, only UNSEEN is")
    );
    assert_eq!(config.why_unset("NOWHERE"), None);
}

#[test]
fn names_have_no_case_on_windows() {
    let mut environment = environment(&[("Some_Name", "x")]);
    environment.os = crate::Os::Windows;
    let config = Config::parse("", Format::Yaml, "f", &environment).unwrap();
    assert_eq!(config.variable("some-name").as_deref(), Some("x"));
    assert_eq!(config.why_unset("some-name"), None);
}

#[test]
fn every_format_gives_the_same_variables() {
    let empty = environment(&[("HOME", "/home/me")]);
    for (format, text, expected) in [
        (Format::Yaml, "V: 1.10", Some("1.1")),
        (Format::Json, "{\"V\": 1.10}", Some("1.1")),
        (Format::Json, "\u{feff}{\"v\": \"1.10\"}", Some("1.10")),
        (Format::Json, "{\"V\": 12345678901234567890}", Some("12345678901234567000")),
        (Format::Json, "{\"V\": 1e21}", Some("1000000000000000000000")),
        (Format::Json, "{\"V\": null}", None),
        (Format::Json, "{\"V\": 7}", Some("7")),
        (Format::Toml, "V = 1.10", Some("1.1")),
        (Format::Toml, "V = 0xff", Some("255")),
        (Format::Toml, "V = inf", Some("+Inf")),
        (Format::Toml, "V = 1979-05-27", Some("1979-05-27")),
        (Format::Toml, "V = 1979-05-27T07:32:00", Some("1979-05-27T07:32:00")),
        (Format::Toml, "V = 07:32:00", Some("07:32:00")),
        (Format::Toml, "V = 1979-05-27T00:32:00.999-07:00", Some("1979-05-27 00:32:00.999 -0700 -0700")),
        (Format::Toml, "V = [1]", Some("")),
        (Format::Dotenv, "V=\"${HOME}/x\"", Some("/home/me/x")),
        (Format::Dotenv, "export V=1.10", Some("1.10")),
    ] {
        let config = Config::parse(text, format, "f", &empty).unwrap();
        assert_eq!(config.variable("V").as_deref(), expected, "{text}");
    }
}

#[test]
fn files_that_cannot_be_read_are_told_with_name_and_place() {
    for (format, text, part) in [
        (Format::Yaml, "a: 1\na: 2\n", "line 2: the key \"a\" occurs twice"),
        (Format::Yaml, "- a\n", "expected a map of variables and settings, found a list"),
        (Format::Yaml, "just words\n", "found text"),
        (Format::Yaml, "a: [\n", "line "),
        (Format::Json, "{\"a\": }", "line 1"),
        (Format::Json, "[]", "found a list"),
        (Format::Toml, "a = \n", "line 1"),
        (Format::Toml, "a = 1\na = 2\n", "line 2: duplicate"),
        (Format::Toml, "a = 1\nb = [\n", "line "),
        (Format::Dotenv, "A=1\nwords\n", "line 2: expected NAME=value"),
    ] {
        let error = Config::parse(text, format, "/c/f", &environment(&[])).unwrap_err().to_string();
        assert!(error.starts_with("the configuration file /c/f is malformed: "), "{error}");
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn values_stay_out_of_what_is_told_of_a_broken_file() {
    for (format, text) in [
        (Format::Toml, "A = 1\nTOKEN = \"s3cret\n"),
        (Format::Toml, "TOKEN = s3cret\n"),
        (Format::Toml, "TOKEN = \"s3cret\" x\n"),
        (Format::Toml, "TOKEN = \"s3cret\"\nTOKEN = \"s3cret\"\n"),
        (Format::Json, "{\"TOKEN\": \"s3cret\" x}"),
        (Format::Json, "{\"TOKEN\": s3cret}"),
        (Format::Yaml, "TOKEN: !!int s3cret\n"),
        (Format::Yaml, "TOKEN: \"s3cret\" x\n"),
        (Format::Yaml, "TOKEN: {s3cret\n"),
        (Format::Dotenv, "TOKEN=\"s3cret\n"),
        (Format::Dotenv, "TOKEN s3cret\n"),
    ] {
        let error = Config::parse(text, format, "f", &environment(&[])).unwrap_err();
        assert!(error.to_string().contains("line "), "{text}: {error}");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{text}: {error}");
    }
}

#[test]
fn the_secrets_of_an_address_stay_out_of_what_is_told_of_it() {
    for url in ["https://u:s3cret@[x/y?s3cret", "https://u:s3cret@h/${A", "https://u:s3cret@h/\\n?s3cret"] {
        let error = with_provider(&format!("name: mine, {INFRASTRUCTURE}, url: \"{url}\""), &[]).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    }
}

#[test]
fn all_built_in_providers_are_there_in_order() {
    let providers = yaml("", &[]).providers().unwrap();
    assert_eq!(providers.len(), 64);
    assert!(providers.is_sorted_by_key(|it| (it.kind, it.name.clone())));
    let count = |kind| providers.iter().filter(|it| it.kind == kind).count();
    assert_eq!(ProviderType::ALL.map(count), [1, 7, 10, 39, 3, 1, 3]);
    let urls = [
        (
            ProviderType::Core,
            "cluster-api",
            "kubernetes-sigs/cluster-api/releases/latest/core-components.yaml",
        ),
        (
            ProviderType::Infrastructure,
            "docker",
            "kubernetes-sigs/cluster-api/releases/latest/infrastructure-components-development.yaml",
        ),
        (
            ProviderType::RuntimeExtension,
            "nutanix",
            "nutanix-cloud-native/cluster-api-runtime-extensions-nutanix/releases/latest/runtime-extensions-components.yaml",
        ),
        (ProviderType::Ipam, "metal3", "metal3-io/ip-address-manager/releases/latest/ipam-components.yaml"),
    ];
    for (kind, name, url) in urls {
        let provider = providers.iter().find(|it| it.kind == kind && it.name == name).unwrap();
        assert_eq!(provider.url, format!("https://github.com/{url}"));
    }
}

#[test]
fn users_replace_and_add_providers() {
    let mine = |it: &str| format!("{{name: {it}, {INFRASTRUCTURE}, url: /r/{it}}}");
    for (text, name, url, total) in [
        (format!("providers: [{}]", mine("aws")), "aws", "/r/aws", 64),
        (format!("providers: [{}]", mine("my.own")), "my.own", "/r/my.own", 65),
        (format!("providers: {}", mine("mine")), "mine", "/r/mine", 65),
        (format!("PROVIDERS: [{}]", mine("mine")), "mine", "/r/mine", 65),
        ("providers: [{NAME: mine, Type: InfrastructureProvider, Url: /x}]".to_owned(), "mine", "/x", 65),
        (format!("providers: [{{name: 123, {INFRASTRUCTURE}, url: /x}}]"), "123", "/x", 65),
        (
            format!("providers: [{}, {{name: mine, {INFRASTRUCTURE}, url: /second}}]", mine("mine")),
            "mine",
            "/second",
            65,
        ),
        (
            format!("providers: [{{name: mine, {INFRASTRUCTURE}, url: '${{BASE}}/x/${{lower}}${{UNSET}}'}}]"),
            "mine",
            "/base/x/l",
            65,
        ),
    ] {
        let config = yaml(&text, &[("BASE", "/base"), ("lower", "l")]);
        assert_eq!(config.provider(ProviderType::Infrastructure, name).unwrap().url, url, "{text}");
        let all = config.providers().unwrap();
        assert_eq!(all.len(), total, "{text}");
        assert!(all.is_sorted_by_key(|it| (it.kind, it.name.clone())), "{text}");
    }
    for text in ["", "providers:\n", "providers: []\n", "providers: {}\n", "providers: ''\n"] {
        assert_eq!(yaml(text, &[]).providers().unwrap().len(), 64, "{text:?}");
    }
}

#[test]
fn providers_that_cannot_be_are_told_what_is_wrong() {
    for (fields, part) in [
        ("type: InfrastructureProvider, url: /x", "its name is missing"),
        ("name: '', type: InfrastructureProvider, url: /x", "its name is missing"),
        (
            "name: Mine, type: InfrastructureProvider, url: /x",
            "providers[0] (InfrastructureProvider Mine) is not a provider: its name must be in lower case",
        ),
        ("name: my_own, type: InfrastructureProvider, url: /x", "letters, digits, dashes and dots only"),
        ("name: -x, type: InfrastructureProvider, url: /x", "must begin and end with"),
        (
            "name: cluster-api, type: InfrastructureProvider, url: /x",
            "the CoreProvider must be named cluster-api",
        ),
        ("name: other, type: CoreProvider, url: /x", "the CoreProvider must be named cluster-api"),
        ("name: mine, url: /x", "its type is missing; it must be one of CoreProvider, "),
        ("name: mine, type: Infrastructure, url: /x", "there is no type Infrastructure; it must be one of"),
        ("name: mine, type: infrastructureprovider, url: /x", "there is no type infrastructureprovider"),
        ("name: mine, type: InfrastructureProvider", "its url is missing"),
        (
            "name: mine, type: InfrastructureProvider, url: '${UNSET}'",
            "empty after its variables were replaced",
        ),
        ("name: mine, type: InfrastructureProvider, url: 'https://[x/y'", "is not an address"),
        ("name: mine, type: InfrastructureProvider, url: \"/x\\ny\"", "control characters"),
        ("name: mine, type: InfrastructureProvider, url: '${A'", "providers[0].url"),
        ("name: [x], type: InfrastructureProvider, url: /x", "providers[0].name must be text, but is a list"),
    ] {
        let error = with_provider(fields, &[]).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("providers[0]"), "{fields}: {error}");
    }
    for (text, part) in [
        ("providers: words\n", "providers must be a list of providers, but is text"),
        ("providers: 1\n", "providers must be a list of providers, but is a number"),
        ("providers: [words]\n", "providers[0] must be a map, but is text"),
        ("providers: [null]\n", "configuration: providers[0] is not a provider: its name is missing"),
    ] {
        let error = yaml(text, &[]).providers().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn unknown_providers_are_told_what_is_near() {
    let config = yaml("", &[]);
    for (kind, name, part) in [
        (
            ProviderType::Infrastructure,
            "vshpere",
            "no InfrastructureProvider named \"vshpere\"; there is vsphere",
        ),
        (
            ProviderType::Infrastructure,
            "kubeadm",
            "kubeadm (BootstrapProvider), kubeadm (ControlPlaneProvider)",
        ),
        (ProviderType::Core, "capi", "there is no CoreProvider named \"capi\""),
    ] {
        let error = config.provider(kind, name).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn settings_with_fields_cannot_come_from_the_environment() {
    for (variable, value, fails) in [
        ("PROVIDERS", "x", [true, false, false]),
        ("PROVIDERS", "", [false, false, false]),
        ("IMAGES", "x", [false, true, false]),
        ("IMAGES", "", [false, true, false]),
        ("CERT_MANAGER", "x", [false, false, true]),
        ("CERT_MANAGER", "", [false, false, true]),
        ("providers", "x", [false, false, false]),
        ("CERT-MANAGER", "x", [false, false, false]),
    ] {
        let provider = format!("providers: [{{name: mine, {INFRASTRUCTURE}, url: /x}}]");
        let text = format!("images: {{all: {{tag: t}}}}\ncert-manager: {{version: v1.0.0}}\n{provider}\n");
        let config = yaml(&text, &[(variable, value)]);
        let errors = [
            config.providers().err().map(|it| it.to_string()),
            config.images().err().map(|it| it.to_string()),
            config.cert_manager().err().map(|it| it.to_string()),
        ];
        assert_eq!(errors.each_ref().map(Option::is_some), fails, "{variable}={value}");
        for error in errors.into_iter().flatten() {
            assert!(error.contains(&format!("the environment variable {variable} hides")), "{error}");
        }
    }
}

#[test]
fn a_variable_that_hides_nothing_is_only_warned_of() {
    for (variable, value, warned) in [
        ("PROVIDERS", "x", true),
        ("IMAGES", "x", true),
        ("CERT_MANAGER", "x", true),
        ("PROVIDERS", "", false),
        ("IMAGES", "", false),
        ("CERT_MANAGER", "", false),
    ] {
        for text in ["", "providers: []\nimages: {}\ncert-manager: null\n"] {
            let config = yaml(text, &[(variable, value)]);
            assert_eq!(config.providers().unwrap().len(), 64);
            assert!(config.images().unwrap() == ImageOverrides::default());
            assert_eq!(config.cert_manager().unwrap().version, "v1.21.1");
            let told = config.warnings().join("\n");
            assert_eq!(told.contains(&format!("variable {variable} is not read")), warned, "{told}");
            assert_eq!(config.warnings().len(), usize::from(warned), "{told}");
        }
    }
}

#[test]
fn an_empty_variable_hides_the_providers_of_the_file() {
    let text = format!("providers: [{{name: mine, {INFRASTRUCTURE}, url: /x}}]");
    let config = yaml(&text, &[("PROVIDERS", "")]);
    assert_eq!(config.providers().unwrap().len(), 64);
    let [warning] = config.warnings() else { panic!("{:?}", config.warnings()) };
    assert!(warning.contains("PROVIDERS is empty"), "{warning}");
}

#[test]
fn what_is_most_likely_a_mistake_is_warned_of() {
    for (text, variables, expected) in [
        ("A: 1\n", &[][..], &[][..]),
        ("A: 1\na: 2\n", &[], &["\"A\" and \"a\" differ only in case"]),
        ("MY_VAR: 1\n", &[("my_var", "2")], &["my_var is not read, only MY_VAR is"]),
        ("MY_VAR: 1\n", &[("my_var", "2"), ("MY_VAR", "3")], &[]),
        ("LIST: [1]\n", &[], &["LIST is a list: as a variable it is empty"]),
        ("MAP: {a: 1}\n", &[], &["MAP is a map"]),
        (
            "providers: [{name: x, type: InfrastructureProvider, url: /x, verison: v1, label: y}]\n",
            &[],
            &["providers[0]: there is no field \"verison\", only name, type, url", "\"label\""],
        ),
        (
            "providers:\n- &x {name: x, type: InfrastructureProvider, url: /x}\n- *x\n",
            &[],
            &["providers[1]: the InfrastructureProvider x occurs twice"],
        ),
        (
            "images: {all: {repo: x}}\n",
            &[],
            &["images.all: there is no field \"repo\", only repository, name, tag"],
        ),
        ("images: {all: {tag: x}, ALL: {tag: y}}\n", &[], &["images.ALL: another key differs only in case"]),
        ("cert-manager: {timeout: soon}\n", &[], &["\"soon\" is not a duration"]),
        ("cert-manager: {versoin: v1}\n", &[], &["cert-manager: there is no field \"versoin\""]),
        ("overridesFolder: ~/x\n", &[], &[]),
    ] {
        let config = yaml(text, variables);
        let warnings = config.warnings();
        assert_eq!(warnings.len(), expected.len(), "{text}: {warnings:?}");
        for part in expected {
            assert!(warnings.iter().any(|it| it.contains(part)), "{text}: {warnings:?}");
        }
    }
}

#[test]
fn image_overrides_are_read_whatever_their_case() {
    let text = "images:\n  ALL: {Repository: r, TAG: 1.10}\n  Infrastructure-AWS/Manager: {name: n, repository: ''}\n  cert-manager:\n";
    let images = yaml(text, &[]).images().unwrap();
    for (component, image, expected) in [
        ("infrastructure-aws", "x.io/y/manager:v1", "r/n:1.1"),
        ("infrastructure-aws", "x.io/y/other:v1", "r/other:1.1"),
        ("cert-manager", "x.io/y/manager:v1", "r/manager:1.1"),
    ] {
        assert_eq!(images.apply(component, image).unwrap(), expected);
    }
    for text in ["", "images:\n", "images: []\n", "images: {}\n"] {
        assert!(yaml(text, &[]).images().unwrap() == ImageOverrides::default(), "{text:?}");
    }
    for (text, part) in [
        ("images: x\n", "images must be a map of overrides, but is text"),
        ("images: [{all: {}}]\n", "images must be a map of overrides, but is a list"),
        ("images: {all: x}\n", "images.all must be a map, but is text"),
        ("images: {all: {tag: [x]}}\n", "images.all.tag must be text, but is a list"),
    ] {
        let error = yaml(text, &[]).images().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn cert_manager_has_defaults_for_all() {
    let default = yaml("", &[]).cert_manager().unwrap();
    assert_eq!(
        default,
        CertManager {
            url: "https://github.com/cert-manager/cert-manager/releases/v1.21.1/cert-manager.yaml".to_owned(),
            version: "v1.21.1".to_owned(),
            timeout: Duration::from_mins(10),
            externally_provisioned: false,
        }
    );
    for (fields, change) in [
        ("", (|_| {}) as fn(&mut CertManager)),
        ("version: v1.0.0", |it| "v1.0.0".clone_into(&mut it.version)),
        ("VERSION: v1.0.0, url: ''", |it| "v1.0.0".clone_into(&mut it.version)),
        ("url: '${BASE}/x'", |it| "/base/x".clone_into(&mut it.url)),
        ("timeout: 90s", |it| it.timeout = Duration::from_secs(90)),
        ("timeout: never", |_| {}),
        ("externallyProvisioned: true", |it| it.externally_provisioned = true),
        ("externallyprovisioned: 1", |it| it.externally_provisioned = true),
        ("externallyProvisioned: F", |_| {}),
    ] {
        let mut expected = default.clone();
        change(&mut expected);
        let config = yaml(&format!("cert-manager: {{{fields}}}\n"), &[("BASE", "/base")]);
        assert_eq!(config.cert_manager().unwrap(), expected, "{fields}");
    }
    for (text, part) in [
        ("cert-manager: x\n", "cert-manager must be a map, but is text"),
        ("cert-manager: {externallyProvisioned: yes}\n", "must be true or false, but is \"yes\""),
        ("cert-manager: {url: '${A'}\n", "cert-manager.url"),
    ] {
        let error = yaml(text, &[]).cert_manager().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn home_is_expanded_in_addresses() {
    for (url, expected) in [
        ("~/r/infrastructure-x/latest/c.yaml", "/home/me/r/infrastructure-x/latest/c.yaml"),
        ("${TILDE}/r", "/home/me/r"),
        ("/r/~/x", "/r/~/x"),
        ("~other/r", "~other/r"),
        ("https://example.com/~/r", "https://example.com/~/r"),
    ] {
        let variables = [("TILDE", "~")];
        let providers = with_provider(&format!("name: x, {INFRASTRUCTURE}, url: '{url}'"), &variables);
        let provider = providers.unwrap().into_iter().find(|it| it.name == "x").unwrap();
        assert_eq!(provider.url, expected);
        let config = yaml(&format!("cert-manager: {{url: '{url}'}}\n"), &variables);
        assert_eq!(config.cert_manager().unwrap().url, expected);
    }
    // What is part of a path must not be read as an escape.
    let environment = Environment { home: Some("/home/100%25".into()), ..Environment::default() };
    let text = "cert-manager: {url: ~/r}\n";
    let config = Config::parse(text, Format::Yaml, "clusterctl.yaml", &environment).unwrap();
    assert_eq!(config.cert_manager().unwrap().url, "/home/100%2525/r");
}

#[test]
fn the_overrides_folder_may_be_named() {
    for (text, variables, expected) in [
        ("", &[][..], None),
        ("overridesFolder: /o\n", &[], Some("/o")),
        ("overridesfolder: '${BASE}/o'\n", &[("BASE", "/base")], Some("/base/o")),
        ("overridesFolder: /o\n", &[("OVERRIDESFOLDER", "/e")], Some("/e")),
        ("overridesFolder: ~/o\n", &[], Some("/home/me/o")),
        ("overridesFolder: ${TILDE}/o\n", &[("TILDE", "~")], Some("/home/me/o")),
        ("overridesFolder: /o\n", &[("OVERRIDESFOLDER", " ")], None),
    ] {
        let folder = yaml(text, variables).overrides_folder().unwrap();
        assert_eq!(folder.as_deref(), expected.map(Path::new), "{text}");
    }
    assert!(yaml("overridesFolder: '${A'\n", &[]).overrides_folder().is_err());
}

#[test]
fn tokens_are_found_under_either_name_and_an_empty_one_is_none() {
    for (text, variables, expected) in [
        ("", &[][..], None),
        ("github-token: f\n", &[], Some("f")),
        ("GITHUB_TOKEN: f\n", &[], Some("f")),
        ("github-token: f\n", &[("GITHUB_TOKEN", "e")], Some("e")),
        ("", &[("GITHUB_TOKEN", "")], None),
    ] {
        assert_eq!(yaml(text, variables).github_token().as_deref(), expected, "{text} {variables:?}");
    }
    assert_eq!(yaml("gitlab-access-token: f\n", &[]).gitlab_token().as_deref(), Some("f"));
}

#[test]
fn values_are_not_shown() {
    let shown = format!("{:?}", yaml("github-token: secret\n", &[("OTHER", "secret")]));
    assert!(shown.contains("clusterctl.yaml") && !shown.contains("secret"), "{shown}");
}
