//! Text from a file, standard input or an address.

use std::{fs, io, path::Path};

use capstan_repository::remote;

use crate::{error::CommandError, session::Session};

/// A text, and what to call the place it came from.
pub(super) struct Text {
    pub(super) text: String,
    pub(super) origin: String,
}

/// Reads what `--from` names: `-`, a file, `file://` or `https://`.
pub(super) async fn read(from: &str, session: &Session) -> Result<Text, CommandError> {
    if from.is_empty() {
        return Err(CommandError::plain("--from is empty")
            .hint("name a file or an https:// address, or - for standard input"));
    }
    if from == "-" {
        return text("standard input", io::read_to_string(io::stdin()));
    }
    if let Some(path) = from.strip_prefix("file://") {
        return text(path, fs::read_to_string(path));
    }
    match from.split_once("://") {
        None => text(from, fs::read_to_string(expand_home(from, session))),
        Some(("https", _)) => fetch(from, session).await,
        Some((scheme, _)) => Err(CommandError::plain(format!("--from {from}: {scheme}:// is not supported"))
            .hint("use https://, file:// or the path of a file")),
    }
}

fn text(origin: &str, read: io::Result<String>) -> Result<Text, CommandError> {
    let text = read.map_err(|error| CommandError::new(format!("cannot read {origin}"), error))?;
    Ok(Text { text, origin: origin.to_owned() })
}

/// Shells expand `~` in `--from ~/file`, but not in `--from=~/file`.
fn expand_home(path: &str, session: &Session) -> std::path::PathBuf {
    match (path.strip_prefix("~/"), &session.environment.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => Path::new(path).to_owned(),
    }
}

async fn fetch(url: &str, session: &Session) -> Result<Text, CommandError> {
    let fetched = remote::fetch_url(&session.http, url).await?;
    let text = String::from_utf8(fetched.bytes)
        .map_err(|error| CommandError::new(format!("{url} is not text"), error.utf8_error()))?;
    Ok(Text { text, origin: url.to_owned() })
}
