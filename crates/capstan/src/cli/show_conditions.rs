//! The list of `--show-conditions`.

use std::str::FromStr;

/// Which conditions of an object are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The one that sums the object up.
    Summary,
    /// Every one.
    All,
    /// Those that have something to tell.
    NonZero,
}

/// A list of kinds and objects, such as `KubeadmControlPlane,Machine/m1+`: each in lower case, and what is shown of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShowConditions(Vec<(String, Shown)>);

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

fn entry(text: &str) -> (String, Shown) {
    let (text, shown) = match text.strip_suffix('+') {
        Some(text) => (text, Shown::NonZero),
        None => (text, Shown::All),
    };
    let whose = match text.split('/').collect::<Vec<_>>()[..] {
        // What has more parts than a kind and a name counts as its kind.
        [kind, _, _, ..] => kind,
        _ => text,
    };
    (whose.to_lowercase(), shown)
}

impl ShowConditions {
    /// What the first entry says that is about an object.
    pub(crate) fn of(&self, kind: &str, name: &str) -> Shown {
        let kind = kind.to_lowercase();
        let object = format!("{kind}/{}", name.to_lowercase());
        let is_meant = |whose: &str| ["all", &kind, &object].contains(&whose);
        self.0.iter().find(|it| is_meant(&it.0)).map_or(Shown::Summary, |it| it.1)
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
