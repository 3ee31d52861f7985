//! `capstan version`.

use capstan_manifest::yaml;
use serde_json::json;

use crate::{
    cli::{VersionArgs, VersionFormat},
    error::CommandError,
    printer::Printer,
};

const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// Set by the Makefile.
const COMMIT: Option<&str> = option_env!("CAPSTAN_GIT_COMMIT");

pub(crate) fn run(args: &VersionArgs, printer: Printer) -> Result<(), CommandError> {
    let commit = COMMIT.unwrap_or("unknown");
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    let value = json!({"capstan": {"gitVersion": VERSION, "gitCommit": commit, "platform": platform}});
    printer.data(&match args.output {
        VersionFormat::Text => format!("capstan version: {VERSION} (commit {commit}, {platform})\n"),
        VersionFormat::Short => format!("{VERSION}\n"),
        VersionFormat::Json => format!("{value:#}\n"),
        VersionFormat::Yaml => yaml::to_string(&value),
    })
}
