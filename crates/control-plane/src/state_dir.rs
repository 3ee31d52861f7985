//! The directory a control plane lives in: made, locked, and removed when it is a temporary one.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::{Doing as _, Error};
use crate::process::poll;

const TEMPORARY_PREFIX: &str = "capstan-control-plane-";

/// How long the processes of a killed owner are given to end. Longer than any of them takes.
const LEFTOVER_LIMIT: Duration = Duration::from_secs(15);

/// A directory that belongs to this control plane for as long as the value lives.
///
/// Two locks guard it. The owner's is held by this process alone and answers at once whether the directory is
/// taken. The other is held by every child as well, and so is free only when nothing works in the directory
/// any more: the children of an owner that was killed need a moment to follow it.
#[derive(Debug)]
pub(crate) struct StateDir {
    path: PathBuf,
    in_use: File,
    _owner: File,
}

impl StateDir {
    pub(crate) fn persistent(path: &Path) -> Result<Self, Error> {
        let path = std::path::absolute(path).doing("find", path)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&path).doing("make the directory", &path)?;
        Self::lock(path)
    }

    pub(crate) fn temporary(under: &Path) -> Result<Self, Error> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let under = std::path::absolute(under).doing("find", under)?;
        remove_abandoned(&under);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = under.join(format!("{TEMPORARY_PREFIX}{}-{count}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error).doing("make the directory", &path),
            }
            match Self::lock(path) {
                // Another process took it for an abandoned one between its making and its locking.
                Err(Error::StateDirInUse { .. }) => {}
                Err(Error::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                locked => return locked,
            }
        }
    }

    fn lock(path: PathBuf) -> Result<Self, Error> {
        let owner = open_lock(&path.join("owner.lock"), true)?;
        let in_use = open_lock(&path.join("in-use.lock"), true)?;
        if !try_lock(&owner, &path)? {
            return Err(Error::StateDirInUse { dir: path });
        }
        let free = poll(LEFTOVER_LIMIT, Duration::from_millis(50), || {
            Ok::<_, Error>(try_lock(&in_use, &path)?.then_some(()))
        })?;
        if free.is_none() {
            return Err(Error::StateDirInUse { dir: path });
        }
        // A lock on a file that has been removed meanwhile protects nothing.
        fs::metadata(path.join("owner.lock")).doing("find", &path.join("owner.lock"))?;
        Ok(Self { path, in_use, _owner: owner })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A handle for a child to hold: the directory stays in use until the last one is closed.
    pub(crate) fn in_use(&self) -> Result<File, Error> {
        self.in_use.try_clone().doing("share the lock of", &self.path)
    }

    /// Makes a directory in this one, for this user only. One that is there becomes so.
    pub(crate) fn directory(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        DirBuilder::new().recursive(true).mode(0o700).create(&path).doing("make the directory", &path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o700)).doing("protect the directory", &path)?;
        Ok(path)
    }

    pub(crate) fn remove(&self) -> Result<(), Error> {
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).doing("remove the temporary directory", &self.path)
            }
            _ => Ok(()),
        }
    }
}

/// Removes temporary directories whose owners were killed before they could. Those still in use, or of other
/// users, stay.
fn remove_abandoned(under: &Path) {
    let entries = fs::read_dir(under).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(TEMPORARY_PREFIX)) {
        let path = entry.path();
        let is_free = |name: &str| {
            let file = open_lock(&path.join(name), false).ok()?;
            file.try_lock().ok()?;
            Some(file)
        };
        if let Some(_owner) = is_free("owner.lock")
            && let Some(_in_use) = is_free("in-use.lock")
        {
            // What cannot be removed now is tried again at the next start.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn open_lock(path: &Path, create: bool) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(create).mode(0o600);
    options.open(path).doing("open the lock file", path)
}

fn try_lock(file: &File, dir: &Path) -> Result<bool, Error> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error).doing("lock", dir),
    }
}

/// Writes a file that only its owner may read, whole or not at all.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    let write = || {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    };
    write().doing("write", path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_directory_has_one_owner_at_a_time() {
        let scratch = Scratch::new();
        let root = scratch.path();
        let path = root.join("state");
        let first = StateDir::persistent(&path).unwrap();
        let refused = StateDir::persistent(&path).unwrap_err();
        assert!(refused.to_string().contains(&*path.to_string_lossy()), "{refused}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        drop(first);
        StateDir::persistent(&path).unwrap();
    }

    #[test]
    fn abandoned_temporary_directories_go_and_others_stay() {
        let scratch = Scratch::new();
        let root = scratch.path();
        let abandoned = StateDir::temporary(root).unwrap().path().to_owned();
        assert!(abandoned.exists());
        fs::create_dir(root.join("capstan-control-plane-not-ours")).unwrap();
        let held = StateDir::temporary(root).unwrap();
        let with_child = StateDir::temporary(root).unwrap();
        let (child_dir, child_handle) = (with_child.path().to_owned(), with_child.in_use().unwrap());
        drop(with_child);

        let fresh = StateDir::temporary(root).unwrap();
        assert!(!abandoned.exists());
        assert!(held.path().exists());
        assert!(child_dir.exists());
        assert!(root.join("capstan-control-plane-not-ours").exists());
        drop(child_handle);

        fresh.remove().unwrap();
        assert!(!fresh.path().exists());
        fresh.remove().unwrap();
    }

    #[test]
    fn directories_within_are_private_also_where_they_were_not() {
        let scratch = Scratch::new();
        let state = StateDir::temporary(scratch.path()).unwrap();
        let logs = state.directory("logs").unwrap();
        let mode = || fs::metadata(&logs).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o700);
        fs::set_permissions(&logs, Permissions::from_mode(0o755)).unwrap();
        state.directory("logs").unwrap();
        assert_eq!(mode(), 0o700);
    }

    #[test]
    fn private_files_are_private() {
        let scratch = Scratch::new();
        let root = scratch.path();
        let file = root.join("key");
        write_private(&file, "one").unwrap();
        write_private(&file, "two").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(root).unwrap().count(), 1);
    }
}
