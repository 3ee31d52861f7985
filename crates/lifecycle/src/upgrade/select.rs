//! Which versions providers are to get, for callers that have the provider operator replace them.

use capstan_api::contract::ContractVersion;
use capstan_repository::File;
use futures::future::{join, join_all};

use super::{
    UpgradeError, UpgradeGoal, UpgradeProblem, UpgradeWarning,
    plan::{Work, check_contracts, contract_before, speaker, targets, unknown_contracts},
    rules,
};
use crate::{
    goal::VersionGoal,
    release::{Fetched, Releases},
};
use capstan_management::{
    ManagementCluster,
    inventory::{Installed, Inventory},
};

/// A provider, and the release that it is to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The provider as it is installed.
    pub provider: Installed,
    /// The version of the release.
    pub version: String,
    /// The contract that the release speaks.
    pub contract: ContractVersion,
    /// Its components.
    pub components: File,
}

/// The versions that providers are to get.
#[derive(Debug)]
pub struct Selected {
    /// The providers that get another version, core first.
    pub moves: Vec<Move>,
    /// Named providers that have their version already.
    pub up_to_date: Vec<Installed>,
    /// What is wrong with releases, but stops nothing.
    pub warnings: Vec<UpgradeWarning>,
    /// What stands in the way.
    pub problems: Vec<UpgradeProblem>,
    /// The contract that core speaks now, if anything says so.
    pub contract: Option<String>,
}

/// Chooses versions and judges them by the rules of an upgrade. The releases are fetched, but neither rendered nor tried
/// by the server.
pub async fn select(
    cluster: &ManagementCluster,
    inventory: &Inventory,
    releases: &Releases<'_>,
    goal: &UpgradeGoal,
) -> Result<Selected, UpgradeError> {
    let providers = &inventory.providers;
    let core = rules::core_of(providers)?;
    let (chosen, contract) =
        join(targets(releases, providers, goal, false), contract_before(cluster, releases, core)).await;
    let ((targets, mut warnings), contract) = (chosen?, contract?);
    let Work { targets, up_to_date, mut problems } = Work::sort(targets, false)?;
    let stay = providers.iter().filter(|it| !targets.iter().any(|target| target.provider == **it));
    let fetched = targets.iter().map(async |it| {
        let version = VersionGoal::Exact(it.version.clone());
        releases.fetch(it.provider.kind, &it.provider.name, &version).await
    });
    let (fetched, others) = join(join_all(fetched), join_all(stay.map(|it| speaker(releases, it)))).await;
    warnings.extend(unknown_contracts(&others, &warnings));
    let mut moves = Vec::new();
    let mut known = Vec::new();
    for (target, fetched) in targets.into_iter().zip(fetched) {
        match fetched {
            Ok(fetched) => {
                let (provider, version) = (target.provider.clone(), target.version.clone());
                let Fetched { contract, file: components, .. } = fetched;
                moves.push(Move { provider, version, contract, components });
                known.push(target);
            }
            Err(source) => {
                let (label, source) = (target.provider.label(), Box::new(source));
                problems.push(UpgradeProblem::Release { label, source });
            }
        }
    }
    let contracts = moves.iter().map(|it| it.contract);
    problems.extend(check_contracts(&known, contracts, &others, core, contract.as_deref()));
    Ok(Selected { moves, up_to_date, warnings, problems, contract })
}
