//! Where the releases of providers come from.
//!
//! Nothing here looks at the terminal, the environment or the clock by itself: callers hand them in.
//!
//! [`Config`] knows the providers, [`Repository`] the releases of one of them.

pub mod config;
mod config_maps;
mod environment;
mod error;
mod latest;
mod local;
mod metadata;
mod overrides;
mod programs;
mod provider;
pub mod remote;
mod repository;
mod source;
mod version;

pub use config::{
    CertManager, Config, ConfigError, NotImageOverrides, environment_name, read_image_overrides,
};
pub use config_maps::{COMPRESSED_ANNOTATION, ConfigMaps, ConfigMapsError, PartsProblem, VERSION_LABEL};
pub use environment::{Environment, Os};
pub use error::{FetchError, Withheld};
pub use latest::{Chosen, Skipped};
pub use local::LATEST;
pub use metadata::{METADATA_FILE, Metadata, MetadataError, Series};
pub use overrides::Overrides;
pub use programs::find_program;
pub use provider::Provider;
pub use remote::shown_address;
pub use repository::{File, Repository, RepositoryError};
pub use source::ReleaseFiles;
pub use version::{NotAVersion, Version};
