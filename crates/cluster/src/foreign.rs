//! What is kept of a provider's object: metadata, and the few fields that the contract reads.

use capstan_api::contract;
use capstan_runtime::{Observed, cache::Cached};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

/// A provider's object, reduced to what core may know of it.
#[derive(Clone, Debug)]
pub struct Foreign {
    metadata: ObjectMeta,
    /// The essence as JSON text: a tenth of the memory of a tree of values.
    essence: Box<str>,
}

impl Foreign {
    /// Reduces an object.
    pub fn new(object: Observed) -> Self {
        let Observed { mut metadata, spec, status } = object;
        // Of the annotations only their presence is read, and some of them are large.
        for value in metadata.annotations.iter_mut().flat_map(|annotations| annotations.values_mut()) {
            *value = String::new();
        }
        let essence = contract::essence(spec.as_str(), status.as_str()).into_boxed_str();
        Self { metadata, essence }
    }

    /// The fields that the contract reads.
    pub fn essence(&self) -> Value {
        serde_json::from_str(&self.essence).unwrap_or_default()
    }
}

impl Cached for Foreign {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}
