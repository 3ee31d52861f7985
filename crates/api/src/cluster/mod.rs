//! The `Cluster` kind of `cluster.x-k8s.io`: its two versions, their CRD, and conversion between them.

pub mod admission;
mod common;
pub mod conversion;
mod crd;
pub mod v1beta1;
pub mod v1beta2;

pub use conversion::{ConversionError, ReferenceVersions, to_v1beta1, to_v1beta2};
pub use crd::{WEBHOOK_SERVICE, crd};
