//! `capstan version`.

use capstan_manifest::yaml;
use serde_json::json;

use crate::{
    cli::{VersionArgs, VersionFormat},
    printer::Printer,
};

const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// Set by the Makefile.
const COMMIT: Option<&str> = option_env!("CAPSTAN_GIT_COMMIT");

pub(crate) fn run(args: &VersionArgs, printer: Printer) {
    let commit = COMMIT.unwrap_or("unknown");
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    let value = json!({"capstan": {"gitVersion": VERSION, "gitCommit": commit, "platform": platform}});
    match args.output {
        VersionFormat::Text => printer.line(&format!(
            "capstan version: {VERSION} (commit {commit}, {platform})"
        )),
        VersionFormat::Short => printer.line(VERSION),
        VersionFormat::Json => printer.line(&format!("{value:#}")),
        VersionFormat::Yaml => printer.data(&yaml::to_string(&value)),
    }
}
