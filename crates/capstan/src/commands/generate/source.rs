//! Text from a file, standard input or an address.

use std::{fs, io};

use capstan_repository::remote;
use url::Url;

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
    let scheme = from.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        None => text(from, fs::read_to_string(session.expand_home(from))),
        Some("file") => {
            let path = Url::parse(from).ok().and_then(|it| it.to_file_path().ok());
            let path = path.ok_or_else(|| CommandError::plain(format!("--from {from} names no file")))?;
            text(&path.display().to_string(), fs::read_to_string(&path))
        }
        Some("https") => fetch(from, session).await,
        Some(scheme) => Err(CommandError::plain(format!("--from {from}: {scheme}:// is not supported"))
            .hint("use https://, file:// or the path of a file")),
    }
}

fn text(origin: &str, read: io::Result<String>) -> Result<Text, CommandError> {
    let text = read.map_err(|error| CommandError::new(format!("cannot read {origin}"), error))?;
    Ok(Text { text, origin: origin.to_owned() })
}

async fn fetch(url: &str, session: &Session) -> Result<Text, CommandError> {
    let fetched = remote::fetch_url(&session.http, url).await?;
    let text = String::from_utf8(fetched.bytes)
        .map_err(|error| CommandError::new(format!("{url} is not text"), error.utf8_error()))?;
    Ok(Text { text, origin: fetched.url })
}
