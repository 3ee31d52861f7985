//! The list of `--show-conditions`.

use std::str::FromStr;

/// Which conditions of an object are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The one that sums the object up.
    #[default]
    Summary,
    /// Every one.
    All,
    /// Those that have something to tell.
    NonZero,
}

/// A list of kinds and objects, such as `KubeadmControlPlane,Machine/m1+`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShowConditions(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    whose: Whose,
    shown: Shown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Whose {
    Everybody,
    Kind(String),
    Object(String, String),
}

impl FromStr for ShowConditions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.split(',').any(|it| it.trim() != it) {
            return Err(format!(
                "--show-conditions {text:?} has blanks around a name: write KIND,KIND/NAME without any"
            ));
        }
        Ok(Self(text.split(',').filter(|it| !it.is_empty()).map(entry).collect()))
    }
}

fn entry(text: &str) -> Entry {
    let (text, shown) = match text.strip_suffix('+') {
        Some(text) => (text, Shown::NonZero),
        None => (text, Shown::All),
    };
    let whose = match text.split('/').collect::<Vec<_>>()[..] {
        [all] if all.eq_ignore_ascii_case("all") => Whose::Everybody,
        [kind, name] => Whose::Object(kind.to_owned(), name.to_owned()),
        [kind, ..] => Whose::Kind(kind.to_owned()),
        [] => Whose::Kind(String::new()),
    };
    Entry { whose, shown }
}

impl ShowConditions {
    /// What the first entry says that is about an object.
    pub(crate) fn of(&self, kind: &str, name: &str) -> Shown {
        let same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
        let is_meant = |entry: &&Entry| match &entry.whose {
            Whose::Everybody => true,
            Whose::Kind(wanted) => same(wanted, kind),
            Whose::Object(wanted, wanted_name) => same(wanted, kind) && same(wanted_name, name),
        };
        self.0.iter().find(is_meant).map_or(Shown::Summary, |it| it.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_that_is_about_an_object_counts() {
        for (list, expected) in [
            ("", Shown::Summary),
            (",", Shown::Summary),
            ("all", Shown::All),
            ("ALL+", Shown::NonZero),
            ("machine", Shown::All),
            ("Machine+", Shown::NonZero),
            ("MachineSet", Shown::Summary),
            ("Machine/m1", Shown::All),
            ("machine/M1+", Shown::NonZero),
            ("Machine/m2", Shown::Summary),
            ("Machine/m2,Machine/m1+,all", Shown::NonZero),
            ("Cluster,machine,all+", Shown::All),
        ] {
            let list: ShowConditions = list.parse().unwrap();
            assert_eq!(list.of("Machine", "m1"), expected, "{list:?}");
        }
        for refused in [" all", "all ", "Machine, Cluster", " "] {
            let error = refused.parse::<ShowConditions>().unwrap_err();
            assert!(error.contains(refused), "{error}");
        }
    }
}
