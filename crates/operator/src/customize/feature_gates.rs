//! The value of the flag `--feature-gates`.

use std::collections::BTreeMap;
use std::fmt;

/// The flag.
pub(super) const FLAG: &str = "feature-gates";

/// Feature gates by name. Values are text, so that what is not overridden stays as it was written.
#[derive(Default)]
pub(super) struct FeatureGates<'a> {
    by_name: BTreeMap<&'a str, Option<&'a str>>,
}

impl<'a> FeatureGates<'a> {
    /// Adds the gates of a flag's value; later ones win, as they do in the programs that read the flag.
    pub(super) fn merge(&mut self, value: &'a str) {
        for gate in value.split(',').map(str::trim).filter(|gate| !gate.is_empty()) {
            let (name, value) = gate.split_once('=').map_or((gate, None), |(name, it)| (name, Some(it)));
            self.by_name.insert(name.trim(), value.map(str::trim));
        }
    }

    /// Sets gates.
    pub(super) fn set(&mut self, gates: &'a BTreeMap<String, bool>) {
        let text = |value: &bool| Some(if *value { "true" } else { "false" });
        self.by_name.extend(gates.iter().map(|(name, value)| (name.as_str(), text(value))));
    }
}

impl fmt::Display for FeatureGates<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.by_name.iter().enumerate() {
            let separator = if at == 0 { "" } else { "," };
            write!(out, "{separator}{name}")?;
            value.iter().try_for_each(|value| write!(out, "={value}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn gates_are_merged_and_sorted() {
        // Values of the flag, gates to set, and what comes of them.
        for (values, set, expected) in [
            (&[][..], json!({}), ""),
            (&[], json!({"TEST": true, "ANOTHER": false}), "ANOTHER=false,TEST=true"),
            (
                &["MachinePool=true"],
                json!({"ClusterTopology": true}),
                "ClusterTopology=true,MachinePool=true",
            ),
            (&["B=true,A=false"], json!({"B": false}), "A=false,B=false"),
            (&["B=true", "B=false,C=1"], json!({}), "B=false,C=1"),
            (&["A=True,B=0,C,D="], json!({"E": true}), "A=True,B=0,C,D=,E=true"),
            (&["C", " A = true , ,"], json!({"C": true}), "A=true,C=true"),
        ] {
            let set = serde_json::from_value(set).unwrap();
            let mut gates = FeatureGates::default();
            for value in values {
                gates.merge(value);
            }
            gates.set(&set);
            assert_eq!(gates.to_string(), expected, "{values:?} {set:?}");
        }
    }
}
