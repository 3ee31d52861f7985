//! What users mean by an address on GitHub.

use reqwest::Url;

use super::super::cached::is_pinned;
use super::super::https::{decode, invalid, split_promise};
use super::{GitHub, PUBLIC_HOST};
use crate::FetchError;

const LATEST: &str = "latest";

/// Whether the path is that of a repository's releases.
pub(crate) fn is_release_address(url: &Url) -> bool {
    segments(url).get(2).is_some_and(|segment| segment == "releases")
}

pub(super) fn parse_release(text: &str) -> Result<GitHub, FetchError> {
    let (url, promised) = split_promise(text)?;
    let segments = segments(&url);
    let segments: Vec<_> = segments.iter().map(String::as_str).collect();
    let [owner, repo, "releases", rest @ ..] = segments.as_slice() else {
        return Err(invalid(text, "its path must begin with /{owner}/{repo}/releases"));
    };
    let (version, file) = match rest {
        [] | [LATEST] => (LATEST, None),
        ["tag", tag] => (*tag, None),
        ["download", tag, .., file] => (*tag, Some(*file)),
        ["tag" | "download", ..] => {
            return Err(invalid(text, "after /releases/download there must be {tag}/{file}"));
        }
        [version] if is_pinned(version) => (*version, None),
        [version, .., file] => (*version, Some(*file)),
        _ => return Err(invalid(text, "after /releases there must be {latest or a tag}/{file}")),
    };
    if promised.is_some() && file.is_none() {
        return Err(invalid(text, "its sha256 is about no file: the address must name one"));
    }
    let repository = repository(&url, owner, repo, version, file);
    Ok(GitHub { promised, ..repository.ok_or_else(|| invalid(text, "it has no host"))? })
}

/// A file in a repository: `https://github.com/{owner}/{repo}/blob/{ref}/{path}`.
#[derive(Debug)]
pub(crate) struct Blob {
    pub repository: GitHub,
    /// The reference and the path, which only the repository can tell apart: branches may have slashes.
    pub segments: Vec<String>,
}

impl Blob {
    pub(crate) fn parse(url: &Url) -> Option<Self> {
        let segments = segments(url);
        let [owner, repo, blob, rest @ ..] = segments.as_slice() else { return None };
        if blob != "blob" || rest.len() < 2 {
            return None;
        }
        let repository = repository(url, owner, repo, LATEST, None)?;
        Some(Self { repository, segments: rest.to_vec() })
    }

    /// Every way to read it as (reference, path), the likeliest first.
    pub(crate) fn readings(&self) -> impl Iterator<Item = (String, Vec<&str>)> {
        (1..self.segments.len()).map(|at| {
            let (reference, path) = self.segments.split_at(at);
            (reference.join("/"), path.iter().map(String::as_str).collect())
        })
    }
}

fn repository(url: &Url, owner: &str, repo: &str, version: &str, file: Option<&str>) -> Option<GitHub> {
    let host = url.host_str()?;
    let authority = match (host, url.port()) {
        ("github.com" | "www.github.com", None) => PUBLIC_HOST.to_owned(),
        (_, None) => host.to_owned(),
        (_, Some(port)) => format!("{host}:{port}"),
    };
    let web = Url::parse(&format!("https://{authority}/")).ok()?;
    let api =
        if authority == PUBLIC_HOST { "https://api.github.com/".to_owned() } else { format!("{web}api/v3/") };
    Some(GitHub {
        api: Url::parse(&api).ok()?,
        web,
        authority,
        owner: owner.to_owned(),
        repo: repo.to_owned(),
        version: version.to_owned(),
        file: file.map(str::to_owned),
        promised: None,
    })
}

fn segments(url: &Url) -> Vec<String> {
    let mut segments: Vec<_> = url.path_segments().into_iter().flatten().map(decode).collect();
    segments.pop_if(|last| last.is_empty());
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_mean_what_users_mean() {
        for (path, version, file) in [
            ("/releases", LATEST, None),
            ("/releases/", LATEST, None),
            ("/releases/latest", LATEST, None),
            ("/releases/latest/f.yaml", LATEST, Some("f.yaml")),
            ("/releases/latest/download/f.yaml", LATEST, Some("f.yaml")),
            ("/releases/v1.0.0/f.yaml", "v1.0.0", Some("f.yaml")),
            ("/releases/v1.0.0/sub/f.yaml", "v1.0.0", Some("f.yaml")),
            ("/releases/download/v1.0.0/f.yaml", "v1.0.0", Some("f.yaml")),
            ("/releases/download/a%2Fv1.0.0/f.yaml", "a/v1.0.0", Some("f.yaml")),
            ("/releases/tag/v1.0.0", "v1.0.0", None),
            ("/releases/v1.0.0", "v1.0.0", None),
            ("/releases/nightly/f.yaml", "nightly", Some("f.yaml")),
        ] {
            let found = GitHub::parse(&format!("https://github.com/o/r{path}")).unwrap();
            assert_eq!((found.version(), found.file_name()), (version, file), "{path}");
            assert_eq!(found.shown(), "github.com/o/r");
        }
    }

    #[test]
    fn other_addresses_are_refused() {
        for url in [
            "http://github.com/o/r/releases",
            "https://github.com/o/r",
            "https://github.com/o/r/tags/v1.0.0/f",
            "https://github.com/o/r/releases/download/f.yaml",
            "https://github.com/o/r/releases/tag",
            "https://github.com/o/r/releases/nightly",
            "https://github.com/o/r/releases/v1.0.0/f#sha256=12",
            "https://github.com/o/r/releases#sha256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "nonsense",
        ] {
            assert!(matches!(GitHub::parse(url), Err(FetchError::InvalidUrl { .. })), "{url}");
        }
    }

    #[test]
    fn enterprise_servers_have_their_api_on_the_same_host() {
        let public = GitHub::parse("https://www.github.com/o/r/releases").unwrap();
        assert_eq!(
            (public.web.as_str(), public.api.as_str()),
            ("https://github.com/", "https://api.github.com/")
        );
        let own = GitHub::parse("https://git.corp:8443/o/r/releases/v1.0.0/f").unwrap();
        assert_eq!(own.api.as_str(), "https://git.corp:8443/api/v3/");
        assert_eq!(own.module(), "git.corp/o/r");
    }

    #[test]
    fn blobs_are_read_in_every_way() {
        let url = Url::parse("https://github.com/o/r/blob/feature/x/dir/f.yaml").unwrap();
        let blob = Blob::parse(&url).unwrap();
        let readings: Vec<_> = blob.readings().map(|(reference, path)| (reference, path.join("/"))).collect();
        let expected =
            [("feature", "x/dir/f.yaml"), ("feature/x", "dir/f.yaml"), ("feature/x/dir", "f.yaml")];
        assert_eq!(readings, expected.map(|(reference, path)| (reference.to_owned(), path.to_owned())));
        assert!(Blob::parse(&Url::parse("https://github.com/o/r/blob/main").unwrap()).is_none());
        assert!(Blob::parse(&Url::parse("https://gitlab.com/g/p/-/blob/main/f").unwrap()).is_none());
    }
}
