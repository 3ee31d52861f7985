//! The operator's components, as this program installs them.

use capstan_components::operator::{Options, components as of};
use serde_json::Value;

use super::NAMESPACE;
use crate::commands::version::VERSION;

/// All objects of this version of the operator.
pub(crate) fn components(image: &str) -> Vec<Value> {
    of(&Options { image, version: VERSION, namespace: NAMESPACE, replicas: 1 })
}
