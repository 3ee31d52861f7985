//! Files that replace those of repositories: `<folder>/<label>/<version>/<file>`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::FetchError;

/// Where replacing files are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    folders: Vec<PathBuf>,
}

impl Overrides {
    /// In this folder, whether or not it exists.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folders: vec![folder] }
    }

    /// In the first of these folders that exists.
    pub fn in_first_of(folders: Vec<PathBuf>) -> Self {
        Self { folders }
    }

    /// The file that replaces one of a repository, if there is one.
    pub(crate) fn read(
        &self,
        label: &str,
        version: &str,
        name: &str,
    ) -> Result<Option<(PathBuf, Vec<u8>)>, FetchError> {
        let Some(folder) = self.folder() else { return Ok(None) };
        let path = folder.join(label).join(version).join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some((path, bytes))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(source) => Err(FetchError::Local { path, source }),
        }
    }

    fn folder(&self) -> Option<&Path> {
        self.folders.iter().find(|it| fs::exists(it).unwrap_or(true)).map(PathBuf::as_path)
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
