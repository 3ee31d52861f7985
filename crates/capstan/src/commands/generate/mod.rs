//! `capstan generate`: manifests from releases, templates and any YAML.

pub(super) mod cluster;
mod cluster_classes;
pub(super) mod provider;
mod source;
mod variables;
mod yaml;

use capstan_api::admission::rules::{is_dns_label, is_dns_subdomain};
use capstan_manifest::{
    envsubst::{MissingVariables, RenderError},
    text::TextError,
};
use capstan_repository::environment_name;

use crate::{
    cli::{
        Globals,
        generate::{Generate, GenerateArgs},
    },
    error::CommandError,
    hints::Hint,
    printer::Printer,
    session::Session,
};

pub(crate) async fn run(args: GenerateArgs, globals: &Globals, printer: Printer) -> Result<(), CommandError> {
    match args.what {
        Generate::Cluster(args) => cluster::run(&args, globals, printer).await,
        Generate::Provider(args) => provider::run(&args, globals, printer).await,
        Generate::Yaml(args) => yaml::run(&args, globals, printer).await,
    }
}

/// What is asked for, as far as it matters for how to set variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Cluster,
    Provider,
    Yaml,
}

/// Says in which file a text could not be rendered.
pub(crate) fn unusable(origin: &str, error: &TextError, asked: Asked, session: &Session) -> CommandError {
    match error {
        TextError::Variables(RenderError::Missing(missing)) => unset(origin, missing, asked, session),
        error => CommandError::plain(format!("cannot use {origin}: {error}")).hint_if(error.hint()),
    }
}

/// Names all variables that have no value, each with its places and what is special about it.
fn unset(origin: &str, missing: &MissingVariables, asked: Asked, session: &Session) -> CommandError {
    let count = match missing.variables.len() {
        1 => "1 variable".to_owned(),
        count => format!("{count} variables"),
    };
    let mut error = CommandError::plain(format!("cannot use {origin}: no value is set for {count}"));
    let names = missing.variables.iter().map(|it| it.name.as_str());
    error.causes = missing
        .to_lines()
        .into_iter()
        .zip(names)
        .map(|(line, name)| {
            let flag = variables::flag_of(name).filter(|_| asked == Asked::Cluster);
            let flag = flag.map(|flag| format!("{flag} sets it"));
            flag.or_else(|| session.config.why_unset(name))
                .map_or(line.clone(), |note| format!("{line}: {note}"))
        })
        .collect();
    let example = missing.variables.first().map_or("NAME", |it| it.name.as_str());
    let list = match asked {
        Asked::Cluster | Asked::Yaml => "--list-variables",
        Asked::Provider => "--describe",
    };
    error.hint(format!(
        "set each in the environment (`export {}=...`) or in the configuration file (`{example}: ...`); {list} lists \
         all of them",
        environment_name(example)
    ))
}

/// The longest name of a Cluster or a namespace: both are values of labels.
const LONGEST_NAME: usize = 63;

/// Refuses a namespace that no API server would take; an empty one is none.
pub(crate) fn check_namespace(flag: &str, namespace: Option<&str>) -> Result<(), CommandError> {
    match namespace.filter(|it| !it.is_empty() && !is_dns_label(it)) {
        None => Ok(()),
        Some(namespace) => Err(refused("namespace", namespace)
            .hint(format!("{flag} takes at most {LONGEST_NAME} lower-case letters, digits and dashes"))),
    }
}

/// Refuses a name that no Cluster can have.
pub(crate) fn check_cluster_name(argument: &str, name: &str) -> Result<(), CommandError> {
    if name.len() <= LONGEST_NAME && is_dns_subdomain(name) {
        return Ok(());
    }
    Err(refused("cluster", name).hint(format!(
        "{argument} takes at most {LONGEST_NAME} lower-case letters, digits, dashes and dots, with a letter or digit at \
         both ends"
    )))
}

/// Says why a name is refused. A long one is not repeated.
fn refused(what: &str, name: &str) -> CommandError {
    let length = name.chars().count();
    CommandError::plain(if length > LONGEST_NAME {
        format!("the name of a {what} has at most {LONGEST_NAME} characters, and this one has {length}")
    } else {
        format!("{name:?} cannot be the name of a {what}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_an_api_server_takes() {
        let long = "x".repeat(64);
        let too_long =
            |what: &str| Some(format!("the name of a {what} has at most 63 characters, and this one has 64"));
        let bad = |what: &str, name: &str| Some(format!("{name:?} cannot be the name of a {what}"));
        for (name, cluster, namespace) in [
            ("a", None, None),
            (&long[1..], None, None),
            (&long, too_long("cluster"), too_long("namespace")),
            ("a.b", None, bad("namespace", "a.b")),
            ("A", bad("cluster", "A"), bad("namespace", "A")),
            ("-a", bad("cluster", "-a"), bad("namespace", "-a")),
            ("a..b", bad("cluster", "a..b"), bad("namespace", "a..b")),
            ("", bad("cluster", ""), None),
        ] {
            let said = |checked: Result<(), CommandError>| checked.err().map(|it| it.message);
            assert_eq!(said(check_cluster_name("NAME", name)), cluster, "{name}");
            assert_eq!(said(check_namespace("--target-namespace", Some(name))), namespace, "{name}");
        }
        let hint = check_cluster_name("--name", &long).unwrap_err().hint.unwrap();
        assert!(hint.starts_with("--name takes at most 63"), "{hint}");
    }
}
