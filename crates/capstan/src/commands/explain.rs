//! `capstan explain`.

use std::fmt::Write;

use capstan_inspect::{
    explain::{self, CommandPurpose, Explanation, Finding},
    human_duration,
};
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use crate::{
    cli::explain::{Explain, ExplainArgs, ExplainClusterArgs, ExplanationFormat},
    error::CommandError,
    management::Management,
    printer::{Printer, bold, dim},
    program,
};

/// How many items of a list are printed.
const LISTED: usize = 12;

pub(crate) async fn run(args: ExplainArgs, printer: Printer) -> Result<(), CommandError> {
    let Explain::Cluster(args) = args.what;
    explain_cluster(&args, printer).await
}

async fn explain_cluster(args: &ExplainClusterArgs, printer: Printer) -> Result<(), CommandError> {
    let management = Management::open(&args.kubeconfig).await?;
    let namespace = management.namespace_or(args.namespace.as_deref());
    let snapshot = explain::read(management.cluster(), namespace, &args.name).await?;
    let now = Timestamp::now();
    let explanation = explain::explain(&snapshot, program::name(), now);
    printer.data(&match args.output {
        ExplanationFormat::Text => text(&explanation, now),
        ExplanationFormat::Json => format!("{:#}\n", json!(explanation)),
    })
}

/// The explanation for people: the answer in full, the rest in a line each.
fn text(explanation: &Explanation, now: Timestamp) -> String {
    let mut out = format!("{}\n", bold(&explanation.summary));
    if let Some((first, others)) = explanation.findings.split_first() {
        answer(&mut out, first, now);
        list_others(&mut out, others);
    }
    if !explanation.unreadable.is_empty() {
        out.push_str("\nNot explained, because it could not be read:\n");
        list(&mut out, explanation.unreadable.iter().cloned());
    }
    out
}

fn answer(out: &mut String, finding: &Finding, now: Timestamp) {
    line(out, format_args!("\n{}\n", finding.sentence));
    let mut row =
        |title: &str, text: &str| line(out, format_args!("  {} {text}", dim(&format!("{title:<11}"))));
    row("object", &finding.object.to_string());
    if let Some(condition) = &finding.condition {
        row("condition", &format!("{}={} ({})", condition.type_, condition.status, condition.reason));
    }
    if let Some(since) = finding.since {
        row("since", &format!("{} ago, {since}", human_duration(since, now)));
    }
    if let Some(controller) =
        finding.controller.as_ref().filter(|it| !finding.sentence.contains(&it.sentence))
    {
        row("controller", &controller.sentence);
    }
    for command in &finding.commands {
        let title = match command.purpose {
            CommandPurpose::Look => "look",
            CommandPurpose::GoOn => "go on",
        };
        row(title, &bold(&command.command));
    }
}

fn list_others(out: &mut String, others: &[Finding]) {
    if others.is_empty() {
        return;
    }
    out.push_str("\nAlso found, to look at afterwards:\n");
    list(out, others.iter().map(|it| it.sentence.lines().collect::<Vec<_>>().join(" ")));
}

fn list(out: &mut String, items: impl ExactSizeIterator<Item = String>) {
    let more = items.len().saturating_sub(LISTED);
    for it in items.take(LISTED) {
        line(out, format_args!("  - {it}"));
    }
    if more > 0 {
        line(out, format_args!("  - and {more} more: -o json lists them all"));
    }
}

fn line(out: &mut String, text: impl std::fmt::Display) {
    // Writing to a text cannot fail.
    let _ = writeln!(out, "{text}");
}
