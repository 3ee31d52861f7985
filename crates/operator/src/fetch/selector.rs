//! Selectors of ConfigMaps.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::core::{Expression, Selector};

/// Reads a selector, or says what is wrong with it.
pub(super) fn read(selector: &LabelSelector) -> Result<Selector, String> {
    let labels = selector.match_labels.iter().flatten();
    let equal = labels.map(|(key, value)| Ok(Expression::Equal(key.clone(), value.clone())));
    let others = selector.match_expressions.iter().flatten().map(expression);
    equal.chain(others).collect()
}

fn expression(requirement: &LabelSelectorRequirement) -> Result<Expression, String> {
    let LabelSelectorRequirement { key, operator, values } = requirement;
    let values: Vec<_> = values.iter().flatten().cloned().collect();
    match (operator.as_str(), values.is_empty()) {
        ("In", false) => Ok(Expression::In(key.clone(), values.into_iter().collect())),
        ("NotIn", false) => Ok(Expression::NotIn(key.clone(), values.into_iter().collect())),
        ("Exists", true) => Ok(Expression::Exists(key.clone())),
        ("DoesNotExist", true) => Ok(Expression::DoesNotExist(key.clone())),
        ("In" | "NotIn", true) => Err(format!("the operator {operator} for {key} needs values")),
        ("Exists" | "DoesNotExist", false) => {
            Err(format!("the operator {operator} for {key} takes no values"))
        }
        _ => {
            Err(format!("the operator {operator:?} for {key} is none of In, NotIn, Exists and DoesNotExist"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn described(selector: Value) -> Result<String, String> {
        read(&serde_json::from_value(selector).unwrap()).map(|it| it.to_string())
    }

    #[test]
    fn selectors_are_read_or_told_what_is_wrong() {
        let one = |it: Value| json!({"matchLabels": {"a": "b"}, "matchExpressions": [it]});
        for (selector, expected) in [
            (json!({}), Ok("")),
            (json!({"matchLabels": {"provider-components": "azure"}}), Ok("provider-components=azure")),
            (one(json!({"key": "c", "operator": "In", "values": ["e", "d"]})), Ok("a=b,c in (d,e)")),
            (one(json!({"key": "c", "operator": "NotIn", "values": ["d"]})), Ok("a=b,c notin (d)")),
            (one(json!({"key": "c", "operator": "Exists"})), Ok("a=b,c")),
            (one(json!({"key": "c", "operator": "DoesNotExist", "values": []})), Ok("a=b,!c")),
            (one(json!({"key": "c", "operator": "In"})), Err("the operator In for c needs values")),
            (
                one(json!({"key": "c", "operator": "Exists", "values": ["d"]})),
                Err("the operator Exists for c takes no values"),
            ),
            (
                one(json!({"key": "c", "operator": "=", "values": ["d"]})),
                Err("the operator \"=\" for c is none of In, NotIn, Exists and DoesNotExist"),
            ),
        ] {
            assert_eq!(described(selector), expected.map(str::to_owned).map_err(str::to_owned));
        }
    }
}
