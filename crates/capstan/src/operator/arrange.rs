//! What an upgrade is to do where the operator manages providers: which go by their objects, and what stands in the way.

use capstan_api::{contract::ContractVersion, provider::ProviderType};
use capstan_lifecycle::upgrade::{Move, Selected, UpgradeProblem};
use capstan_management::inventory::{Installed, Inventory};
use capstan_repository::Version;

use super::{
    OperatorProblem, OperatorState, ProviderObject,
    judge::is_same,
    sequence::{Sequence, Target},
    state::PAUSED_FOR_UPGRADE,
};

/// What an upgrade is to do.
#[derive(Debug)]
pub(crate) struct Arranged {
    /// What the operator does.
    pub(crate) sequence: Sequence,
    /// The releases that the operator is to install.
    pub(crate) managed: Vec<Move>,
    /// What is upgraded without the operator.
    pub(crate) unmanaged: Vec<Move>,
    /// What stands in the way of any upgrade.
    pub(crate) problems: Vec<UpgradeProblem>,
    /// What stands in the way of the operator.
    pub(crate) operator_problems: Vec<OperatorProblem>,
}

/// Tells apart what the operator upgrades and what it does not; `without` are the providers without objects.
pub(crate) fn arrange(
    selected: Selected,
    state: &OperatorState,
    without: &Inventory,
    allow_downgrade: bool,
) -> Arranged {
    let Selected { moves, up_to_date, problems, contract, .. } = selected;
    let (problems, mut operator_problems) = downgrades(problems, &moves, state, allow_downgrade);
    let object = |it: &Installed| state.find(it.kind, &it.name);
    let (managed, unmanaged): (Vec<Move>, Vec<Move>) =
        moves.into_iter().partition(|it| object(&it.provider).is_some());
    if !managed.is_empty() && !unmanaged.is_empty() {
        let labels = |moves: &[Move]| moves.iter().map(|it| it.provider.label()).collect();
        let (managed, unmanaged) = (labels(&managed), labels(&unmanaged));
        operator_problems.push(OperatorProblem::Mixed { managed, unmanaged });
    }
    let target =
        |object: &ProviderObject, version: &str| Target { object: object.id(), version: version.to_owned() };
    let mut targets: Vec<Target> =
        managed.iter().filter_map(|it| Some(target(object(&it.provider)?, &it.version))).collect();
    // An edit that the operator could not carry out is taken back.
    let differs = |it: &&ProviderObject| {
        let installed = it.installed_version.as_deref();
        it.version().zip(installed).is_some_and(|(wanted, installed)| !is_same(wanted, installed))
    };
    let reverted = up_to_date.iter().filter_map(|it| object(it).filter(differs).map(|at| (at, it)));
    targets.extend(reverted.map(|(object, installed)| target(object, &installed.version)));

    let before = state.core().and_then(|it| it.contract.clone()).or(contract);
    let core = managed.iter().find(|it| it.provider.kind == ProviderType::Core);
    let changed = core.map(|it| it.contract.as_str()).filter(|it| Some(*it) != before.as_deref());
    let begun = state.providers.iter().find_map(|it| it.annotations.get(PAUSED_FOR_UPGRADE));
    let contract = changed.map(str::to_owned).or_else(|| begun.cloned());
    if let Some(contract) = &contract {
        if changed.is_some() && !without.providers.is_empty() {
            let unmanaged = without.providers.iter().map(Installed::label).collect();
            operator_problems.push(OperatorProblem::NotPausable { unmanaged, contract: contract.clone() });
        }
        operator_problems.extend(stay_behind(contract, &managed, state));
    }
    Arranged { sequence: Sequence { targets, contract }, managed, unmanaged, problems, operator_problems }
}

/// The operator goes back by patch versions only, whatever the flags.
fn downgrades(
    problems: Vec<UpgradeProblem>,
    moves: &[Move],
    state: &OperatorState,
    allow_downgrade: bool,
) -> (Vec<UpgradeProblem>, Vec<OperatorProblem>) {
    let (mut others, mut refused) = (Vec::new(), Vec::new());
    for problem in problems {
        let UpgradeProblem::Downgrade { label, installed, version } = &problem else {
            others.push(problem);
            continue;
        };
        let is_managed = moves.iter().any(|it| {
            it.provider.label() == *label && state.find(it.provider.kind, &it.provider.name).is_some()
        });
        if !allow_downgrade {
            others.push(problem);
        } else if is_managed && !is_within_minor(installed, version) {
            let (label, installed, version) = (label.clone(), installed.clone(), version.clone());
            refused.push(OperatorProblem::Downgrade { label, installed, version });
        }
    }
    (others, refused)
}

fn is_within_minor(one: &str, other: &str) -> bool {
    match (Version::parse(one), Version::parse(other)) {
        (Ok(first), Ok(second)) => (first.major(), first.minor()) == (second.major(), second.minor()),
        _ => false,
    }
}

/// Paused providers of another contract than core's keep all others from being unpaused.
fn stay_behind(contract: &str, managed: &[Move], state: &OperatorState) -> Vec<OperatorProblem> {
    let problem = |object: &ProviderObject| {
        let to =
            managed.iter().find(|it| (it.provider.kind, &it.provider.name) == (object.kind, &object.name));
        let speaks = to.map(|it| ContractVersion::as_str(it.contract)).or(object.contract.as_deref())?;
        (speaks != contract).then(|| OperatorProblem::StaysBehind {
            kind: object.kind,
            object: Box::new(object.id()),
            found: speaks.to_owned(),
            contract: contract.to_owned(),
        })
    };
    state.providers.iter().filter(|it| it.installed_version.is_some()).filter_map(problem).collect()
}

#[cfg(test)]
mod tests {
    use capstan_repository::File;
    use serde_json::json;

    use super::{super::state::tests::object, *};

    use ProviderType::{Core, Infrastructure};

    fn installed(kind: ProviderType, name: &str, version: &str) -> Installed {
        Installed {
            namespace: format!("{name}-system"),
            name: name.to_owned(),
            kind,
            version: version.to_owned(),
            watched_namespace: None,
            upgrading_to: None,
        }
    }

    fn to(kind: ProviderType, name: &str, version: &str, contract: ContractVersion) -> Move {
        let components = File {
            name: "components.yaml".to_owned(),
            text: String::new(),
            origin: "here".to_owned(),
            sha256: String::new(),
            is_override: false,
        };
        Move { provider: installed(kind, name, "v1.0.0"), version: version.to_owned(), contract, components }
    }

    fn managed(kind: ProviderType, name: &str, wanted: &str) -> ProviderObject {
        let status = json!({"installedVersion": "v1.0.0", "contract": "v1beta1"});
        object(kind, name, json!({"version": wanted}), status)
    }

    fn state() -> OperatorState {
        let providers =
            vec![managed(Core, "cluster-api", "v1.0.0"), managed(Infrastructure, "acme", "v1.0.0")];
        OperatorState { operator: None, providers }
    }

    fn selected(moves: Vec<Move>) -> Selected {
        Selected {
            moves,
            up_to_date: Vec::new(),
            warnings: Vec::new(),
            problems: Vec::new(),
            contract: Some("v1beta1".to_owned()),
        }
    }

    fn told(arranged: &Arranged) -> Vec<String> {
        arranged.operator_problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn versions_go_to_objects_and_contracts_need_a_pause() {
        use ContractVersion::{V1Beta1, V1Beta2};
        let nobody = Inventory::default();
        let same =
            vec![to(Core, "cluster-api", "v1.1.0", V1Beta1), to(Infrastructure, "acme", "v1.1.0", V1Beta1)];
        let arranged = arrange(selected(same), &state(), &nobody, false);
        let targets: Vec<_> =
            arranged.sequence.targets.iter().map(|it| format!("{} {}", it.object.name, it.version)).collect();
        assert_eq!(targets, ["cluster-api v1.1.0", "acme v1.1.0"]);
        assert_eq!((arranged.sequence.contract.as_deref(), told(&arranged).len()), (None, 0));

        let other =
            vec![to(Core, "cluster-api", "v1.2.0", V1Beta2), to(Infrastructure, "acme", "v1.2.0", V1Beta2)];
        let arranged = arrange(selected(other.clone()), &state(), &nobody, false);
        assert_eq!((arranged.sequence.contract.as_deref(), told(&arranged).len()), (Some("v1beta2"), 0));

        // One that stays behind would keep all others paused.
        let [core, _] = other.clone().try_into().unwrap();
        let arranged = arrange(selected(vec![core]), &state(), &nobody, false);
        let [problem] = told(&arranged).try_into().unwrap();
        assert!(problem.contains("acme-system/acme would stay on contract v1beta1"), "{problem}");

        let others = [installed(Infrastructure, "own", "v1.0.0")];
        let without = Inventory { providers: others.into(), unreadable: Vec::new() };
        let [problem] = told(&arrange(selected(other), &state(), &without, false)).try_into().unwrap();
        assert!(problem.contains("infrastructure-own cannot be paused by the operator"), "{problem}");
    }

    #[test]
    fn an_upgrade_that_was_begun_is_finished() {
        let mut state = state();
        for object in &mut state.providers {
            object.contract = Some("v1beta2".to_owned());
        }
        state.providers[1].annotations.insert(PAUSED_FOR_UPGRADE.to_owned(), "v1beta2".to_owned());
        let arranged = arrange(selected(Vec::new()), &state, &Inventory::default(), false);
        assert_eq!(arranged.sequence.contract.as_deref(), Some("v1beta2"), "what is paused is unpaused");
        assert!(arranged.sequence.targets.is_empty() && told(&arranged).is_empty());
    }

    #[test]
    fn an_edit_that_failed_can_be_taken_back() {
        let mut state = state();
        state.providers[1] = managed(Infrastructure, "acme", "v9.9.9");
        let back =
            || Selected { up_to_date: vec![installed(Infrastructure, "acme", "v1.0.0")], ..selected(vec![]) };
        let arranged = arrange(back(), &state, &Inventory::default(), false);
        let targets: Vec<_> = arranged.sequence.targets.iter().map(|it| it.version.as_str()).collect();
        assert_eq!(targets, ["v1.0.0"]);
        let arranged = arrange(back(), &self::state(), &Inventory::default(), false);
        assert!(arranged.sequence.targets.is_empty());
    }

    #[test]
    fn what_the_operator_does_not_manage_goes_another_way() {
        let contract = ContractVersion::V1Beta1;
        let own = to(Infrastructure, "own", "v1.1.0", contract);
        let arranged = arrange(selected(vec![own.clone()]), &state(), &Inventory::default(), false);
        assert!(arranged.managed.is_empty() && arranged.unmanaged.len() == 1 && told(&arranged).is_empty());
        let both = vec![to(Infrastructure, "acme", "v1.1.0", contract), own];
        let [problem] =
            told(&arrange(selected(both), &state(), &Inventory::default(), false)).try_into().unwrap();
        assert!(problem.contains("manages infrastructure-acme, but not infrastructure-own"), "{problem}");
    }

    #[test]
    fn the_operator_goes_back_within_a_minor_version() {
        let contract = ContractVersion::V1Beta1;
        for (version, allowed, problems) in [
            ("v0.9.0", false, (1, 0)),
            ("v0.9.0", true, (0, 1)),
            ("v1.0.0-rc.0", false, (1, 0)),
            ("v1.0.0-rc.0", true, (0, 0)),
        ] {
            let downgrade = UpgradeProblem::Downgrade {
                label: "infrastructure-acme".to_owned(),
                installed: "v1.0.0".to_owned(),
                version: version.to_owned(),
            };
            let moves = vec![to(Infrastructure, "acme", version, contract)];
            let selected = Selected { problems: vec![downgrade], ..selected(moves) };
            let arranged = arrange(selected, &state(), &Inventory::default(), allowed);
            assert_eq!((arranged.problems.len(), arranged.operator_problems.len()), problems, "{version}");
        }
    }
}
