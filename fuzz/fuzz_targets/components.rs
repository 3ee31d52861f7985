//! Nothing panics on the way of components, and what comes out can be written and read.

#![no_main]

use capstan_manifest::components::{Options, render};
use capstan_manifest::images::Overrides;
use capstan_manifest::yaml::{read, to_multi_document};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let Ok(documents) = read(text) else { return };
    let documents: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
    let images = Overrides::default();
    let asked = Options {
        label: "infrastructure-fuzz",
        target_namespace: Some("fuzz-system"),
        watching_namespace: Some("watched"),
        rbac_prefix: true,
        images: &images,
    };
    let plain = Options { target_namespace: None, watching_namespace: None, rbac_prefix: false, ..asked };
    for options in [asked, plain] {
        let Ok(components) = render(documents.clone(), &options) else { continue };
        let written = to_multi_document(components.objects());
        assert!(read(&written).is_ok(), "{written}");
    }
});
