//! `capstan version`.

use capstan_manifest::yaml;
use serde_json::json;

use crate::{
    cli::{Globals, VersionArgs, VersionFormat},
    error::CommandError,
    printer::{Printer, Text},
    program,
    session::Session,
    version_check,
};

pub(crate) const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// Set by the Makefile.
const COMMIT: Option<&str> = option_env!("CAPSTAN_GIT_COMMIT");

pub(crate) async fn run(args: &VersionArgs, globals: &Globals, printer: Printer) -> Result<(), CommandError> {
    let name = program::name();
    if args.check {
        let session = Session::open(globals, printer).await?;
        let answer = match version_check::ask(&session).await? {
            Some(latest) if version_check::is_newer(&latest, VERSION) => {
                format!("{latest} is available, this is {VERSION}")
            }
            Some(_) => format!("{VERSION} is the newest version"),
            None => "there is no release yet".to_owned(),
        };
        return printer.text(&Text::from(answer).ended());
    }
    let commit = COMMIT.unwrap_or("unknown");
    let platform = format!("{}/{}", std::env::consts::OS, go_name(std::env::consts::ARCH));
    // Scripts read these fields, by the name that they call the program.
    let value = json!({name: {
        "major": env!("CARGO_PKG_VERSION_MAJOR"),
        "minor": env!("CARGO_PKG_VERSION_MINOR"),
        "gitVersion": VERSION,
        "gitCommit": commit,
        "platform": platform,
    }});
    printer.data(&match args.output {
        VersionFormat::Text => format!("{name} version: {VERSION} (commit {commit}, {platform})\n"),
        VersionFormat::Short => format!("{VERSION}\n"),
        VersionFormat::Json => format!("{value:#}\n"),
        VersionFormat::Yaml => yaml::to_string(&value),
    })
}

/// Go's name of a processor, which is in the names of images and releases.
fn go_name(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
