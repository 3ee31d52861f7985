//! For programs.

use serde_json::json;

use super::Counts;
use crate::report::Report;

/// The report as JSON, with the counts that its last line has for people.
pub fn render(report: &Report) -> String {
    let counts = Counts::of(report);
    let value = json!({
        "about": report.about,
        "failed": report.is_failed(),
        "counts": {
            "passed": counts.passed,
            "failed": counts.failed,
            "warnings": counts.warnings,
            "notices": counts.notices,
            "notChecked": counts.not_checked,
            "notApplicable": counts.not_applicable,
        },
        "notes": report.notes,
        "findings": report.findings,
    });
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::output::example;

    #[test]
    fn a_finding_has_its_rule_and_what_was_seen() {
        let text = render(&example::report());
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&value["failed"], &value["counts"]["warnings"]), (&true.into(), &1.into()));
        let finding = &value["findings"][2];
        assert_eq!(finding["outcome"], "failed");
        assert_eq!((&finding["rule"]["id"], &finding["rule"]["level"]), (&"IC4".into(), &"MUST".into()));
        assert_eq!(finding["seen"], "\"ready\" <string> & more");
        assert_eq!(finding["repair"], "make it a boolean");
        assert_eq!(value["findings"][3]["why"], "it must run");
        assert_eq!(value["notes"][0], "FooCluster is an InfraCluster");
    }
}
