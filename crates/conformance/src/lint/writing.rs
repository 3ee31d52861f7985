//! How variables are written.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Judged, Spot, broken,
    text::{Text, mentions},
    variables::{Use, common, is_alone, placeholder},
};
use crate::rules::{V2, V3, V4, V5};

/// Checks the variables of any file.
pub(super) fn check(text: &Text<'_>) -> Vec<Judged> {
    let mut judged: Vec<_> = text.uses.iter().filter(|it| it.has_spaces).map(spaces).collect();
    judged.extend(first_uses(text).values().filter_map(|it| lower_case(it)));
    judged.extend(in_comments(text));
    judged.extend(defaults(text));
    judged
}

/// The first use of each variable.
pub(super) fn first_uses<'a>(text: &'a Text<'_>) -> BTreeMap<&'a str, &'a Use> {
    let mut first = BTreeMap::new();
    for it in &text.uses {
        first.entry(it.name.as_str()).or_insert(it);
    }
    first
}

fn spaces(it: &Use) -> Judged {
    let name = &it.name;
    broken(
        &V2,
        Spot::Offset(it.at.start),
        format!("there are spaces in the braces of {name}"),
        format!("write ${{{name}}}"),
    )
}

fn lower_case(it: &Use) -> Option<Judged> {
    let name = &it.name;
    let upper = name.to_uppercase();
    (*name != upper).then(|| {
        broken(
            &V3,
            Spot::Offset(it.at.start),
            format!("the variable {name} has letters in lower case"),
            format!("call it {upper}"),
        )
    })
}

/// Variables without default that no object has.
fn in_comments(text: &Text<'_>) -> Vec<Judged> {
    let required: BTreeSet<_> = text.required.iter().map(String::as_str).collect();
    let first = first_uses(text);
    let unseen = first.values().filter(|it| required.contains(it.name.as_str())).filter(|first| {
        // What has a line for itself may have been left out of the objects by us.
        let is_line = |it: &&Use| it.name == first.name && is_alone(&text.given.file.text, &it.at);
        let placeholder = placeholder(&first.name);
        !text.uses.iter().any(|it| is_line(&it))
            && !text.documents.iter().any(|it| mentions(&it.value, &placeholder))
    });
    unseen
        .map(|it| {
            broken(
                &V4,
                Spot::Offset(it.at.start),
                format!("{} has no default and is used in comments only", it.name),
                format!("write $${{{0}}} or {0} in the comment, which is no variable", it.name),
            )
        })
        .collect()
}

/// Variables with a default at one place and none at another.
fn defaults(text: &Text<'_>) -> Vec<Judged> {
    let mut judged = Vec::new();
    for (name, first) in first_uses(text) {
        // These always have a value.
        if common::ALL.contains(&name) {
            continue;
        }
        let mut own = text.uses.iter().filter(|it| it.name == name);
        let Some(other) =
            own.find(|it| it.is_bare && first.default.is_some() || it.default.is_some() && first.is_bare)
        else {
            continue;
        };
        let (seen, at) = if first.is_bare {
            (
                format!("{name} has no default here, but has one later on: it has to be set all the same"),
                first,
            )
        } else {
            (
                format!(
                    "{name} has no default here, although it has one before: it is empty if it is not set"
                ),
                other,
            )
        };
        let default =
            first.default.as_ref().or(other.default.as_ref()).map(String::as_str).unwrap_or_default();
        judged.push(broken(
            &V5,
            Spot::Offset(at.at.start),
            seen,
            format!("write ${{{name}:={default}}} at all places"),
        ));
    }
    judged
}
