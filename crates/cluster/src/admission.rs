//! Clusters on their way into the API server, as the webhooks judge them.

use std::sync::Arc;

use capstan_api::{
    cluster::admission::{MUTATE_PATH, VALIDATE_PATH, default, validate},
    contract::GroupKind,
    names::CORE_GROUP,
};
use capstan_runtime::admission::Admitters;

/// Adds the webhooks for Clusters. They need nothing but the object, so every replica can serve them.
pub(crate) fn register(admitters: &mut Admitters) {
    let kind = || GroupKind::new(CORE_GROUP, "Cluster");
    admitters.add(MUTATE_PATH, kind(), "v1beta2", Arc::new(default));
    admitters.add(VALIDATE_PATH, kind(), "v1beta2", Arc::new(validate));
}
