//! `capstan get`.

use capstan_inspect::{
    clusters::{self, ClusterSummary, Replicas},
    human_duration, kubeconfig,
};
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use crate::{
    cli::get::{ClustersArgs, Get, GetArgs, KubeconfigOfArgs},
    error::CommandError,
    hints::Hint,
    management::Management,
    output,
    printer::{Printer, Text},
};

const HEADERS: [&str; 8] =
    ["NAMESPACE", "NAME", "PHASE", "AVAILABLE", "CONTROL PLANE", "WORKERS", "VERSION", "AGE"];

pub(crate) async fn run(args: GetArgs, printer: Printer) -> Result<(), CommandError> {
    match args.what {
        Get::Kubeconfig(args) => print_kubeconfig(&args, printer).await,
        Get::Clusters(args) => list_clusters(&args, printer).await,
    }
}

async fn print_kubeconfig(args: &KubeconfigOfArgs, printer: Printer) -> Result<(), CommandError> {
    let management = Management::open(&args.kubeconfig).await?;
    let namespace = management.namespace_or(args.namespace.as_deref());
    let read = kubeconfig::read(management.cluster(), namespace, &args.name).await;
    let text = read.map_err(|error| CommandError::plain(error.to_string()).hint_if(error.hint()))?;
    printer.data(&format!("{text}\n"))
}

async fn list_clusters(args: &ClustersArgs, printer: Printer) -> Result<(), CommandError> {
    let management = Management::open(&args.kubeconfig).await?;
    let namespace = (!args.all_namespaces).then(|| management.namespace_or(args.namespace.as_deref()));
    let found = clusters::list(management.cluster(), namespace, &args.selector).await?;
    if found.is_empty() {
        let place = namespace.map_or_else(|| "any namespace".to_owned(), |it| format!("namespace {it}"));
        printer.step(&format!("no Clusters found in {place}"));
    }
    let now = Timestamp::now();
    printer.print(&output::list(args.output, &json!(found), || table(&found, now)))
}

/// Nothing at all where there is nothing to list.
fn table(clusters: &[ClusterSummary], now: Timestamp) -> Text {
    if clusters.is_empty() {
        return Text::default();
    }
    let mut rows = vec![HEADERS.map(str::to_owned).to_vec()];
    rows.extend(clusters.iter().map(|it| row(it, now)));
    output::columns(&rows, 0, 3)
}

fn row(it: &ClusterSummary, now: Timestamp) -> Vec<String> {
    let known = |text: Option<&String>| text.cloned().unwrap_or_else(|| "-".to_owned());
    vec![
        it.namespace.clone(),
        it.name.clone(),
        known(it.phase.as_ref()),
        known(it.available.as_ref()),
        fraction(it.control_plane),
        fraction(it.workers),
        known(it.version.as_ref()),
        it.created.map_or_else(|| "-".to_owned(), |created| human_duration(created, now)),
    ]
}

fn fraction(replicas: Replicas) -> String {
    let number = |it: Option<i64>| it.map_or_else(|| "?".to_owned(), |it| it.to_string());
    match (replicas.ready, replicas.desired) {
        (None, None) => "-".to_owned(),
        (ready, desired) => format!("{}/{}", number(ready), number(desired)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_made_up() {
        let created = "2026-01-02T03:04:05Z".parse().unwrap();
        let full = ClusterSummary {
            namespace: "default".to_owned(),
            name: "c".to_owned(),
            phase: Some("Provisioned".to_owned()),
            available: Some("True".to_owned()),
            control_plane: Replicas { ready: Some(3), desired: Some(3) },
            workers: Replicas { ready: None, desired: Some(5) },
            version: Some("v1.34.0".to_owned()),
            created: Some(created),
        };
        let empty = ClusterSummary {
            name: "d".to_owned(),
            phase: None,
            available: None,
            control_plane: Replicas::default(),
            workers: Replicas::default(),
            version: None,
            created: None,
            ..full.clone()
        };
        let now = "2026-01-02T04:04:05Z".parse().unwrap();
        assert_eq!(
            table(&[full, empty], now).plain(),
            "NAMESPACE   NAME   PHASE         AVAILABLE   CONTROL PLANE   WORKERS   VERSION   AGE\n\
             default     c      Provisioned   True        3/3             ?/5       v1.34.0   60m\n\
             default     d      -             -           -               -         -         -\n"
        );
        assert_eq!(table(&[], now), Text::default());
    }
}
