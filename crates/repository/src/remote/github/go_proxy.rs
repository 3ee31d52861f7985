//! Versions from a Go module proxy.

use reqwest::Url;

use super::super::cache::Key;
use super::super::cached::is_pinned;
use super::super::get::Get;
use super::super::http::Http;
use super::super::shown::shown;
use super::extend;
use crate::FetchError;

const PUBLIC_PROXY: &str = "https://proxy.golang.org";

/// No module has had more majors, and a proxy that answers anything must not keep us forever.
const MOST_MAJORS: u32 = 100;

/// A proxy that lists versions.
#[derive(PartialEq, Eq)]
pub(super) struct GoProxy {
    base: Url,
}

impl GoProxy {
    /// From the value of `GOPROXY`: its first element counts; `off` and `direct` mean that there is none.
    pub(super) fn from_variable(value: Option<&str>) -> Option<Self> {
        let first =
            value.unwrap_or(PUBLIC_PROXY).split([',', '|']).map(str::trim).find(|part| !part.is_empty());
        let text = match first {
            None => PUBLIC_PROXY.to_owned(),
            Some("off" | "direct") => return None,
            Some(address) if address.contains("://") => address.to_owned(),
            Some(host) => format!("https://{host}"),
        };
        let base = Url::parse(&text).ok().filter(|url| url.scheme() == "https")?;
        Some(Self { base })
    }

    /// All versions of a module, as tags. Every major from 2 on is a module of its own.
    ///
    /// They are kept as a whole: which major is the last one is known only while the proxy answers.
    pub(super) async fn versions(&self, http: &Http, module: &str) -> Result<Vec<String>, FetchError> {
        if http.options.offline {
            let offline = || FetchError::Offline { what: self.key(module).shown() };
            return self.remembered(http, module).await.ok_or_else(offline);
        }
        let mut versions = Vec::new();
        for major in 1..=MOST_MAJORS {
            let get = Get::new(self.list_url(module, major), format!("the Go module {module}")).once();
            match http.page(get).await {
                Ok(page) => versions.extend(read_versions(&String::from_utf8_lossy(&page.bytes))),
                Err(error) if error.is_not_found() => break,
                // A later major that cannot be read would make the list silently short.
                Err(error) => return Err(error),
            }
        }
        if !versions.is_empty() {
            http.keep_listing(&self.key(module), versions.join("\n").into_bytes()).await;
        }
        Ok(versions)
    }

    /// All versions as they were when the proxy last answered.
    pub(super) async fn remembered(&self, http: &Http, module: &str) -> Option<Vec<String>> {
        let list = http.kept_listing(&self.key(module)).await?;
        Some(read_versions(&String::from_utf8_lossy(&list)).collect())
    }

    fn key(&self, module: &str) -> Key {
        Key::new(format!("the versions of {module} on {}", shown(&self.base)), "", "")
    }

    fn list_url(&self, module: &str, major: u32) -> Url {
        let escaped = escape_module(module);
        let mut segments: Vec<_> = escaped.split('/').collect();
        let suffix = format!("v{major}");
        if major > 1 {
            segments.push(&suffix);
        }
        extend(&self.base, &[segments.as_slice(), &["@v", "list"]].concat())
    }
}

/// Capital letters are `!` and the small letter, for file systems that cannot tell them apart.
fn escape_module(module: &str) -> String {
    module.chars().fold(String::new(), |mut escaped, letter| {
        if letter.is_ascii_uppercase() {
            escaped.push('!');
        }
        escaped.push(letter.to_ascii_lowercase());
        escaped
    })
}

fn read_versions(list: &str) -> impl Iterator<Item = String> {
    list.lines()
        .map(str::trim)
        // Go's mark for majors without a module of their own; the tag does not have it.
        .map(|line| line.strip_suffix("+incompatible").unwrap_or(line))
        .filter(|line| is_pinned(line))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_read_as_go_does() {
        for (value, expected) in [
            (None, Some("https://proxy.golang.org/")),
            (Some(",,"), Some("https://proxy.golang.org/")),
            (Some("off"), None),
            (Some("direct"), None),
            (Some("https://a.corp,direct"), Some("https://a.corp/")),
            (Some(" |b.corp|off"), Some("https://b.corp/")),
            (Some("https://a.corp/api/go/x"), Some("https://a.corp/api/go/x")),
            (Some("off,https://a.corp"), None),
            (Some("http://a.corp"), None),
            (Some("file:///x"), None),
        ] {
            let found = GoProxy::from_variable(value);
            assert_eq!(found.as_ref().map(|proxy| proxy.base.as_str()), expected, "{value:?}");
        }
    }

    #[test]
    fn lists_are_asked_for_by_major_and_below_a_path() {
        let proxy = GoProxy::from_variable(Some("https://a.corp/go/")).unwrap();
        for (major, expected) in [
            (1, "https://a.corp/go/github.com/!azure/capz/@v/list"),
            (3, "https://a.corp/go/github.com/!azure/capz/v3/@v/list"),
        ] {
            assert_eq!(proxy.list_url("github.com/Azure/capz", major).as_str(), expected);
        }
    }

    #[test]
    fn only_versions_are_read() {
        let list = "v1.0.0\nv2.0.0+incompatible\n\nv1.1.0-rc.0\nnonsense\nv1\n";
        assert_eq!(read_versions(list).collect::<Vec<_>>(), ["v1.0.0", "v2.0.0", "v1.1.0-rc.0"]);
    }
}
