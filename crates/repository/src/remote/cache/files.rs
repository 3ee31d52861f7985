//! Files that are there as a whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

static COUNTER: AtomicU64 = AtomicU64::new(0);

pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
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

/// Puts `bytes` at `path` in one step, by way of a file in `scratch` on the same disk.
pub(super) fn replace(scratch: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (temporary, mut file) = create_unique(scratch)?;
    let outcome = file.write_all(bytes).and_then(|()| fs::rename(&temporary, path));
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
