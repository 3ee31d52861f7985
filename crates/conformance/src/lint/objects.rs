//! What each object of any file must be.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Judged, Spot, broken,
    object::{Object, escape},
    text::Text,
};
use crate::rules::{R1, R2, R3, R4};

/// Checks all documents of a file.
pub(super) fn check(text: &Text<'_>) -> Vec<Judged> {
    let mut judged = Vec::new();
    if text.documents.is_empty() {
        judged.push(broken(&R1, Spot::File, "there is no object in the file", "give it its objects"));
    }
    for (document, it) in text.documents.iter().enumerate() {
        if !it.value.is_object() {
            let spot = Spot::Object { document, pointer: String::new() };
            judged.push(broken(
                &R1,
                spot,
                "the document is no object",
                "write an object with apiVersion and kind",
            ));
        }
    }
    for object in text.objects() {
        if object.kind() == "List" {
            judged.push(list(object));
        } else {
            judged.extend(identity(object));
            judged.extend(strings(object));
        }
    }
    judged.extend(twice(text));
    judged
}

fn list(object: Object<'_>) -> Judged {
    let items = object.entries("/items").len();
    broken(
        &R2,
        Spot::Object { document: object.document, pointer: "/kind".to_owned() },
        format!("a List of {items} objects"),
        "make each of its items a document",
    )
}

fn identity(object: Object<'_>) -> Option<Judged> {
    let is_missing = |it: &&str| object.text(it).is_none_or(str::is_empty);
    let pointer = ["/apiVersion", "/kind", "/metadata/name"].into_iter().find(is_missing)?;
    let field = pointer.trim_start_matches('/').replace('/', ".");
    let what = if object.value.pointer(pointer).is_some() { "is no text" } else { "is missing" };
    Some(broken(
        &R1,
        Spot::Object { document: object.document, pointer: pointer.to_owned() },
        format!("{field} {what}"),
        format!("give the object its {field}"),
    ))
}

fn strings(object: Object<'_>) -> Vec<Judged> {
    let mut judged = Vec::new();
    for field in ["labels", "annotations"] {
        let map = object.value.pointer(&format!("/metadata/{field}")).and_then(Value::as_object);
        for (name, value) in map.into_iter().flatten().filter(|(_, it)| !it.is_string()) {
            judged.push(broken(
                &R4,
                Spot::Object {
                    document: object.document,
                    pointer: format!("/metadata/{field}/{}", escape(name)),
                },
                format!("{}: metadata.{field} has {name}: {value}, which is no string", object.title()),
                "put the value in quotes",
            ));
        }
    }
    judged
}

fn twice(text: &Text<'_>) -> Vec<Judged> {
    let mut seen: BTreeMap<_, Object<'_>> = BTreeMap::new();
    let mut judged = Vec::new();
    for object in text.objects().into_iter().filter(|it| !it.name().is_empty()) {
        let id = (object.group(), object.kind(), object.namespace(), object.name());
        let Some(first) = seen.insert(id, object) else { continue };
        judged.push(broken(
            &R3,
            Spot::Object { document: object.document, pointer: "/metadata/name".to_owned() },
            format!("{} is here again; document {} has it before", object.title(), first.document + 1),
            "keep one of them",
        ));
    }
    judged
}
