//! Releases are found where the configuration says, and what is wrong with them is told.

mod addresses;
mod config_file;
mod config_maps;
mod files;
mod folder;
mod versions;
