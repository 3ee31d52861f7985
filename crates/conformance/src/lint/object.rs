//! An object of a file, as far as lint looks at it.

use capstan_api::names::CORE_GROUP;
use capstan_manifest::scope::is_cluster_scoped;
use serde_json::Value;

/// An object and the document that it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object<'a> {
    /// Which document of the file, from 0.
    pub(super) document: usize,
    pub(super) value: &'a Value,
}

impl<'a> Object<'a> {
    pub(super) fn text(&self, pointer: &str) -> Option<&'a str> {
        self.value.pointer(pointer)?.as_str()
    }

    pub(super) fn kind(&self) -> &'a str {
        self.text("/kind").unwrap_or_default()
    }

    pub(super) fn group(&self) -> &'a str {
        self.text("/apiVersion").and_then(|it| it.split_once('/')).map(|it| it.0).unwrap_or_default()
    }

    pub(super) fn name(&self) -> &'a str {
        self.text("/metadata/name").unwrap_or_default()
    }

    pub(super) fn namespace(&self) -> Option<&'a str> {
        self.text("/metadata/namespace").filter(|it| !it.is_empty())
    }

    /// What a person calls it.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.kind(), self.name())
    }

    pub(super) fn is_cluster_wide(&self) -> bool {
        is_cluster_scoped(self.group(), self.kind())
    }

    /// Whether it is one of core's kinds.
    pub(super) fn is_core(&self, kind: &str) -> bool {
        self.kind() == kind && self.group() == CORE_GROUP
    }

    /// The entries of a list, each with its pointer.
    pub(super) fn entries(&self, pointer: &str) -> Vec<(String, &'a Value)> {
        let list = self.value.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        list.enumerate().map(|(index, it)| (format!("{pointer}/{index}"), it)).collect()
    }

    /// References to services of webhooks, each with its pointer.
    pub(super) fn webhook_services(&self) -> Vec<(String, &'a Value)> {
        let mut pointers = Vec::new();
        match self.kind() {
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
                let webhooks = self.entries("/webhooks").into_iter();
                pointers.extend(webhooks.map(|(at, _)| format!("{at}/clientConfig/service")));
            }
            "CustomResourceDefinition" => pointers.extend([
                "/spec/conversion/webhook/clientConfig/service".to_owned(),
                "/spec/conversion/webhookClientConfig/service".to_owned(),
            ]),
            _ => {}
        }
        pointers.into_iter().filter_map(|at| Some((at.clone(), self.value.pointer(&at)?))).collect()
    }
}

/// A name as a part of a JSON pointer.
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
