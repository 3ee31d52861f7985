//! Files that replace those of repositories: `<folder>/<label>/<version>/<file>`.

use std::{
    io,
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
    pub(crate) async fn read(
        &self,
        label: &str,
        version: &str,
        name: &str,
    ) -> Result<Option<(PathBuf, Vec<u8>)>, FetchError> {
        let Some(folder) = self.folder().await else { return Ok(None) };
        let path = folder.join(label).join(version).join(name);
        match tokio::fs::read(&path).await {
            Ok(bytes) => Ok(Some((path, bytes))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(source) => Err(FetchError::Local { path, source }),
        }
    }

    async fn folder(&self) -> Option<&Path> {
        for folder in &self.folders {
            if tokio::fs::try_exists(folder).await.unwrap_or(true) {
                return Some(folder);
            }
        }
        None
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
