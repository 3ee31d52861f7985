//! Files that are there as a whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;

use super::room::Stored;

static COUNTER: AtomicU64 = AtomicU64::new(0);

pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// Reads a file and notes that it was used. One that can only be read is as good as any other.
pub(super) fn read_and_note(path: &Path, now: Timestamp) -> io::Result<Vec<u8>> {
    let bytes = fs::read(path)?;
    let _ = OpenOptions::new().write(true).open(path).and_then(|file| file.set_modified(now.into()));
    Ok(bytes)
}

/// All files of a folder; none if there is no folder.
pub(super) fn list(folder: &Path) -> io::Result<Vec<Stored>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        files.extend(look_at(entry?.path())?);
    }
    Ok(files)
}

/// A file, unless it is gone.
fn look_at(path: PathBuf) -> io::Result<Option<Stored>> {
    match fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        metadata => {
            let metadata = metadata?;
            let used = Timestamp::try_from(metadata.modified()?).map_err(io::Error::other)?;
            Ok(Some(Stored { path, size: metadata.len(), used }))
        }
    }
}

/// Removes a file, unless another process has used it since it was looked at.
pub(super) fn remove_unused(file: &Stored) -> io::Result<()> {
    if look_at(file.path.clone())?.as_ref() != Some(file) {
        return Ok(());
    }
    match remove(&file.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

pub(super) fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)
}

/// Makes the folders, readable by their owner only: private releases end up in them.
pub(super) fn make_private_folders(root: &Path, names: &[&str]) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    names.iter().try_for_each(|name| builder.create(root.join(name)))
}

/// Puts `bytes` at `path` in one step, by way of a file in `scratch` on the same disk, and notes when that was.
pub(super) fn replace(scratch: &Path, path: &Path, bytes: &[u8], now: Timestamp) -> io::Result<()> {
    let (temporary, mut file) = create_unique(scratch)?;
    let outcome = file
        .write_all(bytes)
        .and_then(|()| file.set_modified(now.into()))
        .and_then(|()| fs::rename(&temporary, path));
    if outcome.is_err() {
        // The first error is the one to tell; this is only tidying up.
        let _ = fs::remove_file(&temporary);
    }
    outcome
}

/// Two containers on one volume may have the same process id, so that the name is tried, not trusted.
fn create_unique(folder: &Path) -> io::Result<(PathBuf, File)> {
    loop {
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{}-{count}", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            outcome => return outcome.map(|file| (path, file)),
        }
    }
}
