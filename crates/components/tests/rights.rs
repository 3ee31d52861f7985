//! The operator's rules cover what well-known providers ask for: those of a list, and those of real releases where they
//! are at hand (`make upstream`, or `$CAPSTAN_UPSTREAM_DIR`).
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is how a test fails")]

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use capstan_components::operator::rules;
use serde_json::{Value, json};

/// The rules that the list has.
fn known() -> Vec<Value> {
    let all = "create,delete,get,list,patch,update,watch";
    let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let lines = include_str!("known-rules.txt").lines().filter(|it| !it.starts_with('#'));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let [group, resources, verbs, names @ ..] = &fields[..] else { panic!("{line}") };
            let group = if *group == "core" { "" } else { group };
            let verbs = if *verbs == "all" { all } else { verbs };
            let mut rule = json!({"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)});
            if let [names] = names {
                rule["resourceNames"] = json!(list(names));
            }
            rule
        })
        .collect()
}

fn texts(rule: &Value, field: &str) -> Vec<String> {
    let items = rule[field].as_array().into_iter().flatten();
    items.map(|it| it.as_str().unwrap().to_owned()).collect()
}

/// Whether a rule of ours allows one verb on one resource, as the API server judges it.
fn allows(ours: &Value, group: &str, resource: &str, verb: &str, name: Option<&str>) -> bool {
    let has = |field: &str, value: &str| texts(ours, field).iter().any(|it| it == "*" || it == value);
    let names = texts(ours, "resourceNames");
    let is_named = names.is_empty() || name.is_some_and(|it| names.iter().any(|own| own == it));
    is_named && has("apiGroups", group) && has("resources", resource) && has("verbs", verb)
}

/// What of some rules ours do not cover.
fn missing(rules_of_others: &[Value]) -> Vec<String> {
    let ours = rules();
    let mut missing = Vec::new();
    for rule in rules_of_others {
        assert_eq!(rule.get("nonResourceURLs"), None, "{rule}");
        let names = texts(rule, "resourceNames");
        let names: Vec<Option<&str>> =
            if names.is_empty() { vec![None] } else { names.iter().map(|it| Some(it.as_str())).collect() };
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                for verb in texts(rule, "verbs") {
                    for name in &names {
                        let is_held = ours
                            .as_array()
                            .unwrap()
                            .iter()
                            .any(|it| allows(it, &group, &resource, &verb, *name));
                        if !is_held {
                            missing.push(format!("{verb} {resource} of {group:?} {name:?}"));
                        }
                    }
                }
            }
        }
    }
    missing
}

#[test]
fn the_rules_of_well_known_providers_are_covered() {
    let known = known();
    assert!(known.len() > 50, "{}", known.len());
    assert_eq!(missing(&known), Vec::<String>::new());
    let beyond = json!({"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["create"]});
    assert_eq!(missing(&[beyond]), ["create daemonsets of \"apps\" None"], "and others are not");
    let all = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    assert_eq!(missing(&[all]).len(), 1);
}

#[test]
fn the_rules_of_real_releases_are_covered() {
    let Some(releases) = releases() else {
        println!("not checked: no real releases are at hand");
        return;
    };
    let mut count = 0;
    for file in components(&releases) {
        for document in documents(&file) {
            let kind = document["kind"].as_str().unwrap_or_default();
            if !["ClusterRole", "Role"].contains(&kind) {
                continue;
            }
            count += 1;
            let rules = document["rules"].as_array().cloned().unwrap_or_default();
            assert_eq!(missing(&rules), Vec::<String>::new(), "{kind} in {}", file.display());
            if document["aggregationRule"].is_object() {
                gathers_by_leave(&document, &file);
            }
        }
    }
    println!("{count} roles of releases in {}", releases.display());
    assert!(count > 0);
}

/// A role that gathers the rules of others can be written by `escalate` on its name only, prefixed or not.
fn gathers_by_leave(role: &Value, file: &Path) {
    let name = role["metadata"]["name"].as_str().unwrap();
    let namespace = documents(file).into_iter().find(|it| it["kind"] == "Namespace").expect("a namespace");
    let prefixed = format!("{}-{name}", namespace["metadata"]["name"].as_str().unwrap());
    let ours = rules();
    for name in [name, prefixed.as_str()] {
        for verb in ["bind", "escalate"] {
            let group = "rbac.authorization.k8s.io";
            let is_held = |it: &Value| allows(it, group, "clusterroles", verb, Some(name));
            assert!(ours.as_array().unwrap().iter().any(is_held), "{verb} {name}");
        }
    }
}

fn releases() -> Option<PathBuf> {
    let cache = || {
        let xdg = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let base = xdg.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")))?;
        Some(base.join("capstan/upstream"))
    };
    let upstream = env::var_os("CAPSTAN_UPSTREAM_DIR").map(PathBuf::from).or_else(cache)?;
    Some(upstream.join("releases")).filter(|it| it.is_dir())
}

/// The components of all releases below a folder.
fn components(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(components(&path));
        } else if path.to_string_lossy().ends_with("-components.yaml") {
            found.push(path);
        }
    }
    found
}

fn documents(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    // Only what is read: a schema has values that are no JSON.
    let wanted = |it: &&str| {
        ["\nkind: ClusterRole\n", "\nkind: Role\n", "\nkind: Namespace\n"]
            .iter()
            .any(|kind| it.contains(kind))
    };
    text.split("\n---\n").filter(wanted).map(|it| serde_saphyr::from_str(it).unwrap()).collect()
}
