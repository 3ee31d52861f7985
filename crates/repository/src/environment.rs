//! The surroundings of the process, captured by the binary so that nothing here looks at them by itself.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

/// The operating systems that keep configuration in different places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Os {
    /// Linux and whatever else follows its customs.
    #[default]
    Linux,
    /// macOS.
    MacOs,
    /// Windows, where the case of a variable's name means nothing.
    Windows,
}

impl Os {
    /// The system that this was built for.
    pub const fn built_for() -> Self {
        if cfg!(target_os = "macos") {
            Self::MacOs
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Linux
        }
    }
}

/// Environment variables, home folder and operating system.
#[derive(Clone, Default)]
pub struct Environment {
    /// The environment variables.
    pub variables: BTreeMap<String, String>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// The operating system.
    pub os: Os,
}

/// Values may be secrets and must not reach a log.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("home", &self.home)
            .field("os", &self.os)
            .finish()
    }
}

impl Environment {
    /// The value of an environment variable; one that is set to nothing is set.
    pub fn get(&self, name: &str) -> Option<&str> {
        let exact = self.variables.get(name).map(String::as_str);
        if self.os != Os::Windows || exact.is_some() {
            return exact;
        }
        self.differing_in_case(name).map(|(_, value)| value)
    }

    /// A variable whose name is the same but for its case.
    pub(crate) fn differing_in_case(&self, name: &str) -> Option<(&str, &str)> {
        let found = self.variables.iter().find(|(it, _)| *it != name && it.eq_ignore_ascii_case(name));
        found.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The folders in which configuration is looked for, the first one first.
    pub(crate) fn config_folders(&self) -> Vec<PathBuf> {
        let current = self.config_home().map(|it| it.join("cluster-api"));
        let legacy = self.home.as_ref().map(|it| it.join(".cluster-api"));
        current.into_iter().chain(legacy).collect()
    }

    /// The folder of what is kept between runs and can be fetched again.
    pub fn cache_folder(&self) -> Option<PathBuf> {
        let named = self.get("CAPSTAN_CACHE_DIR").filter(|it| !it.is_empty()).map(PathBuf::from);
        named.or_else(|| {
            let xdg = self.get("XDG_CACHE_HOME").map(Path::new).filter(|it| it.is_absolute());
            let base = xdg.map(Path::to_path_buf).or_else(|| Some(self.home.as_ref()?.join(".cache")))?;
            Some(base.join("capstan"))
        })
    }

    /// A path in which a leading `~/` is the home folder. Shells expand it in `--flag ~/file`, but not in
    /// `--flag=~/file`, and no shell reads a configuration file.
    pub fn expand_home(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(path),
        }
    }

    fn config_home(&self) -> Option<PathBuf> {
        let absolute =
            |name| self.get(name).map(Path::new).filter(|it| it.is_absolute()).map(Path::to_path_buf);
        let under_home = |folder: &str| self.home.as_ref().map(|it| it.join(folder));
        absolute("XDG_CONFIG_HOME").or_else(|| match self.os {
            Os::Linux => under_home(".config"),
            Os::MacOs => under_home("Library/Application Support"),
            Os::Windows => absolute("LOCALAPPDATA").or_else(|| under_home("AppData/Local")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_shown() {
        let variables = [("TOKEN".to_owned(), "secret".to_owned())].into();
        let shown = format!("{:?}", Environment { variables, ..Environment::default() });
        assert!(shown.contains("TOKEN") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn configuration_is_kept_where_the_system_keeps_it() {
        for (os, variables, folders) in [
            (Os::Linux, &[][..], ["/h/.config/cluster-api", "/h/.cluster-api"]),
            (Os::Linux, &[("XDG_CONFIG_HOME", "/x")], ["/x/cluster-api", "/h/.cluster-api"]),
            (Os::Linux, &[("XDG_CONFIG_HOME", "relative")], ["/h/.config/cluster-api", "/h/.cluster-api"]),
            (Os::Linux, &[("XDG_CONFIG_HOME", "")], ["/h/.config/cluster-api", "/h/.cluster-api"]),
            (Os::MacOs, &[], ["/h/Library/Application Support/cluster-api", "/h/.cluster-api"]),
            (Os::Windows, &[], ["/h/AppData/Local/cluster-api", "/h/.cluster-api"]),
            (Os::Windows, &[("LocalAppData", "/l")], ["/l/cluster-api", "/h/.cluster-api"]),
        ] {
            let variables = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            let environment = Environment { variables, home: Some("/h".into()), os };
            assert_eq!(environment.config_folders(), folders.map(PathBuf::from), "{os:?}");
        }
        assert!(Environment::default().config_folders().is_empty());
    }

    #[test]
    fn the_cache_is_where_the_environment_says() {
        for (variables, folder) in [
            (&[][..], "/h/.cache/capstan"),
            (&[("XDG_CACHE_HOME", "/x")], "/x/capstan"),
            (&[("XDG_CACHE_HOME", "relative")], "/h/.cache/capstan"),
            (&[("CAPSTAN_CACHE_DIR", "")], "/h/.cache/capstan"),
            (&[("CAPSTAN_CACHE_DIR", "/c"), ("XDG_CACHE_HOME", "/x")], "/c"),
        ] {
            let variables = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            let environment = Environment { variables, home: Some("/h".into()), os: Os::Linux };
            assert_eq!(environment.cache_folder(), Some(folder.into()));
        }
        assert_eq!(Environment::default().cache_folder(), None);
    }

    #[test]
    fn home_is_expanded_at_the_beginning_only() {
        let environment = Environment { home: Some("/h".into()), ..Environment::default() };
        for (path, expected) in
            [("~/a/b", "/h/a/b"), ("~", "~"), ("~other/a", "~other/a"), ("/a/~/b", "/a/~/b"), ("a", "a")]
        {
            assert_eq!(environment.expand_home(path), PathBuf::from(expected), "{path}");
        }
        assert_eq!(Environment::default().expand_home("~/a"), PathBuf::from("~/a"));
    }
}
