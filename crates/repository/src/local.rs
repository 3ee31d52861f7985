//! Repositories in folders: `<base>/<label>/<version>/<file>`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use percent_encoding::percent_decode_str;

use crate::{FetchError, remote::shown_address, version::Version};

/// What stands for the newest version in addresses.
pub const LATEST: &str = "latest";
const FORM: &str = "{base}/{label}/{latest or a version}/{components file}";

/// The folder of one provider in a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    base: PathBuf,
    label: String,
    version: String,
    file: String,
}

impl Local {
    /// Reads an absolute path or `file://` address; other addresses are not ours.
    pub(crate) fn parse(url: &str, label: &str) -> Result<Option<Self>, FetchError> {
        let invalid = |reason: String| FetchError::InvalidUrl { url: shown_address(url), reason };
        let encoded = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("file") => {
                rest.strip_prefix("localhost").filter(|it| it.starts_with('/')).unwrap_or(rest)
            }
            Some(_) => return Ok(None),
            None => url,
        };
        let decoded = percent_decode_str(encoded)
            .decode_utf8()
            .map_err(|_| invalid("its escapes are not UTF-8".to_owned()))?;
        // On Windows an address has one slash more than the path.
        let path = if cfg!(windows) { decoded.trim_start_matches('/') } else { &decoded };
        if !Path::new(path).is_absolute() {
            return Err(invalid("a path must be absolute".to_owned()));
        }
        let mut parts = path.rsplitn(4, ['/', if cfg!(windows) { '\\' } else { '/' }]);
        let (Some(file), Some(version), Some(folder), Some(base)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(invalid(format!("it must have the form {FORM}")));
        };
        if folder != label {
            return Err(invalid(format!(
                "it must have the form {FORM}, with {label} as the label, not {folder:?}"
            )));
        }
        if version != LATEST {
            let checked = Version::parse(version).map_err(|it| invalid(format!("{it}; the form is {FORM}")));
            checked?;
        }
        if file.is_empty() || file == "." || file == ".." {
            return Err(invalid(format!("it must have the form {FORM}")));
        }
        let base = if base.is_empty() { "/" } else { base };
        Ok(Some(Self {
            base: base.into(),
            label: label.to_owned(),
            version: version.to_owned(),
            file: file.to_owned(),
        }))
    }

    /// The version that the address names, or `latest`.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// The components file that the address names.
    pub(crate) fn file_name(&self) -> &str {
        &self.file
    }

    /// The folders that may be versions, in no order.
    pub(crate) fn versions(&self) -> Result<Vec<String>, FetchError> {
        let folder = self.base.join(&self.label);
        match list(&folder, Path::is_dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(FetchError::NotFound {
                what: format!("the folder {}", folder.display()),
                available: list(&self.base, Path::is_dir).unwrap_or_default(),
            }),
            Err(source) => Err(FetchError::Local { path: folder, source }),
            Ok(names) => Ok(names),
        }
    }

    /// The files of a version.
    pub(crate) fn files(&self, version: &str) -> Result<Vec<String>, FetchError> {
        let folder = self.base.join(&self.label).join(version);
        match list(&folder, Path::is_file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(FetchError::NotFound {
                what: format!("the version {version} in {}", self.base.join(&self.label).display()),
                available: self.versions()?,
            }),
            Err(source) => Err(FetchError::Local { path: folder, source }),
            Ok(names) => Ok(names),
        }
    }

    /// The path of a file.
    pub(crate) fn path(&self, version: &str, name: &str) -> PathBuf {
        self.base.join(&self.label).join(version).join(name)
    }

    /// The content of a file.
    pub(crate) fn file(&self, version: &str, name: &str) -> Result<Vec<u8>, FetchError> {
        let path = self.path(version, name);
        match self.resolve(&path) {
            Ok(real) => fs::read(&real).map_err(|source| FetchError::Local { path, source }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let available = self.files(version)?;
                Err(FetchError::NotFound { what: path.display().to_string(), available })
            }
            Err(source) => Err(FetchError::Local { path, source }),
        }
    }

    /// Where a path leads to, which must be within the repository.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let real = fs::canonicalize(path)?;
        if !real.starts_with(fs::canonicalize(&self.base)?) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "a symbolic link leads to {}, which is outside of the repository {}",
                    real.display(),
                    self.base.display()
                ),
            ));
        }
        Ok(real)
    }
}

/// The names in a folder whose paths are of a kind, without hidden ones.
fn list(folder: &Path, wanted: fn(&Path) -> bool) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && wanted(&entry.path()) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_file_addresses_are_taken_apart() {
        let ok = |base: &str, version: &str| Ok(Some((base.to_owned(), version.to_owned())));
        for (url, expected) in [
            ("/r/infrastructure-aws/v1.2.3/x.yaml", ok("/r", "v1.2.3")),
            ("/a/b c/infrastructure-aws/latest/x.yaml", ok("/a/b c", "latest")),
            ("/a/b%20c/infrastructure-aws/latest/x.yaml", ok("/a/b c", "latest")),
            ("file:///r/infrastructure-aws/1.2.3/x.yaml", ok("/r", "1.2.3")),
            ("FILE:///r/infrastructure-aws/latest/x.yaml", ok("/r", "latest")),
            ("file://localhost/r/infrastructure-aws/latest/x.yaml", ok("/r", "latest")),
            ("/infrastructure-aws/latest/x.yaml", ok("/", "latest")),
            ("https://github.com/o/r/releases/latest/x.yaml", Ok(None)),
            ("oci://host/repo:v1.2.3", Ok(None)),
            ("r/infrastructure-aws/latest/x.yaml", Err("must be absolute")),
            ("./infrastructure-aws/latest/x.yaml", Err("must be absolute")),
            ("file://r/infrastructure-aws/latest/x.yaml", Err("must be absolute")),
            ("/r/aws/latest/x.yaml", Err("with infrastructure-aws as the label, not \"aws\"")),
            ("/r/infrastructure-aws/newest/x.yaml", Err("\"newest\" is not a semantic version")),
            ("/r/infrastructure-aws/latest/", Err("must have the form")),
            ("/x.yaml", Err("must have the form")),
            ("/a%ff/infrastructure-aws/latest/x.yaml", Err("not UTF-8")),
            ("", Err("must be absolute")),
        ] {
            let parsed = Local::parse(url, "infrastructure-aws");
            match (parsed, expected) {
                (Ok(local), Ok(expected)) => {
                    let local = local.map(|it| (it.base.display().to_string(), it.version));
                    assert_eq!(local, expected, "{url}");
                }
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (parsed, _) => panic!("{url}: {parsed:?}"),
            }
        }
    }
}
