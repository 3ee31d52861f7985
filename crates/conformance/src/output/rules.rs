//! The contract itself.

use std::fmt::Write;

use crate::{
    rule::Contracts,
    rules::{Listed, SeenIn, all},
};

/// All rules as a table for people.
pub fn table() -> String {
    let mut out = format!(
        "{:<5} {:<6} {:<8} {:<8} {}\n",
        "RULE", "LEVEL", "CONTRACT", "SEEN IN", "A PROVIDER KEEPS IT IF"
    );
    for Listed { rule, seen_in } in all() {
        // Writing to a String cannot fail.
        _ = writeln!(
            out,
            "{:<5} {:<6} {:<8} {:<8} {}",
            rule.id,
            rule.level,
            contracts(rule.contracts),
            match seen_in {
                SeenIn::Files => "files",
                SeenIn::RunningProvider => "running",
            },
            rule.statement
        );
    }
    out
}

/// All rules as JSON, with how they are checked and what core does otherwise.
pub fn json() -> Result<String, serde_json::Error> {
    Ok(format!("{}\n", serde_json::to_string_pretty(&all())?))
}

fn contracts(contracts: Contracts) -> &'static str {
    match contracts {
        Contracts::All => "all",
        Contracts::V1Beta1 => "v1beta1",
        Contracts::V1Beta2 => "v1beta2",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_line() {
        let text = table();
        assert_eq!(text.lines().count(), all().len() + 1);
        assert!(
            text.contains("\nIC4   MUST   all      files    an InfraCluster reports completion"),
            "{text}"
        );
        assert!(text.contains("\nG20   MAY    v1beta1  running  "), "{text}");
        let value: serde_json::Value = serde_json::from_str(&json().unwrap()).unwrap();
        assert_eq!(value.as_array().unwrap().len(), all().len());
    }
}
