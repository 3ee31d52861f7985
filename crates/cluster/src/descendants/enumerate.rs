//! Naming what a Cluster waits for.

use super::{Kind, Member};
use capstan_runtime::cache::Cached;

/// Names objects, one line a group, each with the finalizers that hold it:
/// `* MachineDeployments: a (held by example.com/f), b, c, d, e, ... (2 more)`.
pub(crate) fn enumerate(members: &[&Member]) -> String {
    const MOST_NAMES: usize = 5;
    const GROUPS: [&str; 5] =
        ["Control plane Machines", "MachineDeployments", "MachineSets", "MachinePools", "Worker Machines"];
    let group_of = |member: &Member| match member.kind {
        Kind::Machine if member.object.is_control_plane() => GROUPS[0],
        Kind::MachineDeployment => GROUPS[1],
        Kind::MachineSet => GROUPS[2],
        Kind::MachinePool => GROUPS[3],
        Kind::Machine => GROUPS[4],
    };
    let lines = GROUPS.into_iter().filter_map(|group| {
        let group_members = members.iter().filter(|it| group_of(it) == group);
        let mut names: Vec<_> = group_members.map(|it| with_holders(it)).collect();
        names.sort_unstable();
        let more = match names.len().saturating_sub(MOST_NAMES) {
            0 => String::new(),
            more => format!(", ... ({more} more)"),
        };
        names.truncate(MOST_NAMES);
        (!names.is_empty()).then(|| format!("* {group}: {}{more}", names.join(", ")))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn with_holders(member: &Member) -> String {
    let name = member.object.name();
    match member.object.metadata().finalizers.as_deref().unwrap_or_default() {
        [] => name.to_owned(),
        holders => format!("{name} (held by {})", holders.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capstan_runtime::Observed;
    use serde_json::json;

    use super::*;
    use crate::descendants::Descendant;

    fn member(kind: Kind, name: &str, finalizers: &[&str], control_plane: bool) -> Member {
        let mut metadata = json!({"name": name, "finalizers": finalizers});
        if control_plane {
            metadata["labels"] = json!({"cluster.x-k8s.io/control-plane": ""});
        }
        let metadata = serde_json::from_value(metadata).unwrap();
        Member {
            kind,
            version: "v1beta2",
            object: Arc::new(Descendant::new(kind.name(), Observed { metadata, ..Observed::default() })),
        }
    }

    #[test]
    fn groups_are_named_with_what_holds_them() {
        let members = [
            member(Kind::Machine, "w", &["a", "b"], false),
            member(Kind::Machine, "c", &[], true),
            member(Kind::MachineDeployment, "d", &["f"], false),
        ];
        assert_eq!(
            enumerate(&members.iter().collect::<Vec<_>>()),
            "* Control plane Machines: c\n* MachineDeployments: d (held by f)\n* Worker Machines: w (held by a, b)"
        );
        let many: Vec<_> = (0..7).map(|it| member(Kind::MachineSet, &format!("s{it}"), &[], false)).collect();
        assert_eq!(
            enumerate(&many.iter().collect::<Vec<_>>()),
            "* MachineSets: s0, s1, s2, s3, s4, ... (2 more)"
        );
    }
}
