//! `capstan explain`.

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
    printer::{Output, Printer, Text, bold, dim},
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
    printer.print(&match args.output {
        ExplanationFormat::Text => Output::Text(text(&explanation, now)),
        ExplanationFormat::Json => Output::Data(format!("{:#}\n", json!(explanation))),
    })
}

/// The explanation for people: the answer in full, the rest in a line each.
fn text(explanation: &Explanation, now: Timestamp) -> Text {
    let mut out = bold(&explanation.summary).ended();
    if let Some((first, others)) = explanation.findings.split_first() {
        answer(&mut out, first, now);
        list_others(&mut out, others);
    }
    if !explanation.unreadable.is_empty() {
        out.line("");
        out.line("Not explained, because it could not be read:");
        list(&mut out, explanation.unreadable.iter().cloned());
    }
    out
}

fn answer(out: &mut Text, finding: &Finding, now: Timestamp) {
    out.line("");
    out.line(&finding.sentence);
    out.line("");
    let mut row = |title: &str, text: Text| {
        out.line(Text::from("  ").and(dim(&format!("{title:<11}"))).and(" ").and(text));
    };
    row("object", finding.object.to_string().into());
    if let Some(condition) = &finding.condition {
        row("condition", format!("{}={} ({})", condition.type_, condition.status, condition.reason).into());
    }
    if let Some(since) = finding.since {
        row("since", format!("{} ago, {since}", human_duration(since, now)).into());
    }
    if let Some(controller) =
        finding.controller.as_ref().filter(|it| !finding.sentence.contains(&it.sentence))
    {
        row("controller", (&controller.sentence).into());
    }
    for command in &finding.commands {
        let title = match command.purpose {
            CommandPurpose::Look => "look",
            CommandPurpose::GoOn => "go on",
        };
        row(title, bold(&command.command));
    }
}

fn list_others(out: &mut Text, others: &[Finding]) {
    if others.is_empty() {
        return;
    }
    out.line("");
    out.line("Also found, to look at afterwards:");
    list(out, others.iter().map(|it| it.sentence.lines().collect::<Vec<_>>().join(" ")));
}

fn list(out: &mut Text, items: impl ExactSizeIterator<Item = String>) {
    let more = items.len().saturating_sub(LISTED);
    for it in items.take(LISTED) {
        out.line(format!("  - {it}"));
    }
    if more > 0 {
        out.line(format!("  - and {more} more: -o json lists them all"));
    }
}
