//! `capstan convert`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {
    /// File of YAML or JSON, with one or many documents; - for standard input [default: standard input]
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<PathBuf>,

    /// File to write, whole or not at all; it may be the source [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<String>,

    /// Version to convert to
    #[arg(long, value_name = "VERSION", default_value = "v1beta2", value_parser = ["v1beta2"])]
    pub(crate) to_version: String,
}
