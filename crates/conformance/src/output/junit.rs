//! For build servers: JUnit's XML, as most of them read it.

use std::fmt::Write;

use super::Counts;
use crate::report::{Finding, Outcome, Report};

/// The report as one test suite for each subject.
pub fn render(report: &Report) -> String {
    let counts = Counts::of(report);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let mut put = |line: String| {
        out.push_str(&line);
        out.push('\n');
    };
    put(format!(
        "<testsuites name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">",
        escape(&report.about),
        report.findings.len(),
        counts.failed,
        counts.not_checked + counts.not_applicable,
    ));
    for group in report.findings.chunk_by(|a, b| a.subject == b.subject) {
        let subject = group.first().map(|it| it.subject.as_str()).unwrap_or_default();
        let failures = group.iter().filter(|it| it.is_fatal()).count();
        let skipped = group.iter().filter(|it| is_skipped(it)).count();
        put(format!(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\">",
            escape(subject),
            group.len(),
        ));
        for finding in group {
            put(case(finding));
        }
        put("  </testsuite>".to_owned());
    }
    put("</testsuites>".to_owned());
    out
}

fn is_skipped(finding: &Finding) -> bool {
    matches!(finding.outcome, Outcome::NotChecked { .. } | Outcome::NotApplicable { .. })
}

fn case(finding: &Finding) -> String {
    let rule = finding.rule;
    let mut out = format!(
        "    <testcase classname=\"{}\" name=\"{}\"",
        escape(&finding.subject),
        escape(&format!("{} {}{}", rule.id, rule.statement, at(finding)))
    );
    if let Some(place) = &finding.place {
        _ = write!(out, " file=\"{}\" line=\"{}\"", escape(&place.file), place.line);
    }
    let body = match &finding.outcome {
        Outcome::Passed => None,
        Outcome::Failed { seen, repair } => {
            let place = finding.place.as_ref().map(|it| format!("{it}: ")).unwrap_or_default();
            let text = format!(
                "{place}{seen}\nrepair: {repair}\notherwise {} {}\n{}",
                rule.reader, rule.otherwise, rule.link
            );
            Some(if finding.is_fatal() {
                let message = escape(seen);
                format!("<failure type=\"{}\" message=\"{message}\">{}</failure>", rule.level, escape(&text))
            } else {
                let word = if finding.is_warning() { "warning" } else { "notice" };
                format!("<system-out>{}</system-out>", escape(&format!("{word}: {text}")))
            })
        }
        Outcome::NotChecked { why } => {
            Some(format!("<skipped message=\"{}\"/>", escape(&format!("not checked: {why}"))))
        }
        Outcome::NotApplicable { why } => {
            Some(format!("<skipped message=\"{}\"/>", escape(&format!("not applicable: {why}"))))
        }
    };
    match body {
        None => out.push_str("/>"),
        // Writing to a String cannot fail.
        Some(body) => _ = write!(out, ">\n      {body}\n    </testcase>"),
    }
    out
}

/// A rule can be broken at many places, and a test case must have a name of its own.
fn at(finding: &Finding) -> String {
    finding.place.as_ref().map(|it| format!(" ({}:{})", it.line, it.column)).unwrap_or_default()
}

/// Text for elements and attributes. XML has no way to write most control characters.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            // A reader makes a space of these in attributes, unless they are written so.
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\r' => out.push_str("&#13;"),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::example;

    #[test]
    fn only_what_must_be_kept_fails() {
        let text = render(&example::report());
        assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"foo.yaml\" tests=\"7\" failures=\"1\" errors=\"0\" skipped=\"4\">\n"), "{text}");
        assert_eq!(text.matches("<failure ").count(), 1, "{text}");
        assert!(text.contains("message=\"&quot;ready&quot; &lt;string&gt; &amp; more\""), "{text}");
        assert_eq!(text.matches("<system-out>warning: no category").count(), 1, "{text}");
        assert_eq!(text.matches("<skipped message=\"not checked: ").count(), 3, "{text}");
        assert_eq!(text.matches("<skipped message=\"not applicable: ").count(), 1, "{text}");
        assert_eq!(text.matches("<testsuite ").count(), 2, "{text}");
        assert_eq!(text.matches("<testcase ").count(), 7, "{text}");
        // What is opened is closed: only the rule that is kept has nothing to say.
        assert_eq!(text.matches("</testcase>").count(), 6, "{text}");
        let alone = text.lines().filter(|it| it.contains("<testcase ") && it.ends_with("/>")).count();
        assert_eq!(alone, 1, "{text}");
    }

    #[test]
    fn a_rule_that_is_broken_twice_is_two_cases_with_their_lines() {
        let text = render(&example::places());
        assert!(text.contains("(2:3)\" file=\"a.yaml\" line=\"2\">"), "{text}");
        assert!(text.contains("(7:3)\" file=\"a.yaml\" line=\"7\">"), "{text}");
        assert!(text.contains("<system-out>warning: a.yaml:7:3: another&#10;repair: repair it"), "{text}");
        assert!(text.contains("<system-out>notice: a.yaml:9:3: a link"), "{text}");
        assert!(text.contains("otherwise clusterctl finds"), "{text}");
        assert_eq!(render(&example::places().strict()).matches("<failure ").count(), 2, "{text}");
    }

    #[test]
    fn nothing_in_a_text_can_break_the_file() {
        assert_eq!(escape("a<b>\"c\" & 'd'"), "a&lt;b&gt;&quot;c&quot; &amp; &apos;d&apos;");
        assert_eq!(escape("a\nb\tc\u{0}\u{1b}[31m"), "a&#10;b&#9;c\u{fffd}\u{fffd}[31m");
        assert_eq!(escape("größer → ]]>"), "größer → ]]&gt;");
    }
}
