//! Programs on the `PATH`.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// A program of that name in an absolute folder of a `PATH`.
///
/// What a relative entry means, as an empty one does, depends on the current folder: anyone who can write there could
/// have a program of theirs run.
pub fn find_program(path: Option<&OsStr>, name: &str) -> Option<PathBuf> {
    // A name with a separator would lead out of the PATH.
    if Path::new(name).file_name() != Some(OsStr::new(name)) {
        return None;
    }
    let folders = path.into_iter().flat_map(env::split_paths).filter(|it| it.is_absolute());
    folders.map(|folder| folder.join(name)).find(|path| is_executable(path))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn only_programs_in_absolute_folders_are_found() {
        let folder = env::temp_dir().join(format!("capstan-programs-{}", std::process::id()));
        fs::create_dir_all(folder.join("sub")).unwrap();
        for (name, mode) in [("tool", 0o755), ("sub/tool", 0o755), ("text", 0o644)] {
            fs::write(folder.join(name), "").unwrap();
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        // The same folder, as seen from the current one.
        let depth = env::current_dir().unwrap().components().count() - 1;
        let relative = format!("{}{}", "../".repeat(depth), folder.strip_prefix("/").unwrap().display());
        assert!(Path::new(&relative).join("tool").is_file(), "{relative}");
        let absolute = folder.to_str().unwrap();
        let there = folder.join("tool");
        for (path, name, expected) in [
            (absolute.to_owned(), "tool", Some(&there)),
            (format!("/nonexistent:{absolute}:{absolute}/sub"), "tool", Some(&there)),
            (format!("{relative}::.:{absolute}"), "tool", Some(&there)),
            (relative, "tool", None),
            (absolute.to_owned(), "text", None),
            (absolute.to_owned(), "sub", None),
            (absolute.to_owned(), "sub/tool", None),
            (format!("{absolute}/sub"), "../tool", None),
            (absolute.to_owned(), "", None),
        ] {
            let found = find_program(Some(OsStr::new(&path)), name);
            assert_eq!(found.as_ref(), expected, "{path} {name}");
        }
        assert_eq!(find_program(None, "tool"), None);
        fs::remove_dir_all(folder).unwrap();
    }
}
