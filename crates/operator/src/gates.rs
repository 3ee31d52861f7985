//! The rules between providers: what must hold of the others before one is installed, upgraded or unpaused.

use capstan_api::{operator::reason, provider::ProviderType};
use capstan_repository::Version;

use crate::{record::ProviderRecord, snapshot::Snapshot};

/// Why a provider has to wait, as reason and message of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The condition's reason.
    pub reason: &'static str,
    /// The condition's message.
    pub message: String,
}

impl Refusal {
    fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// Another object that asks for the same provider and comes first: what is installed, then the oldest. There is one core
/// provider, whatever its name.
pub fn duplicate(snapshot: &Snapshot) -> Option<Refusal> {
    let provider = &snapshot.provider;
    let is_same = |it: &ProviderRecord| {
        it.kind == provider.kind && (it.kind == ProviderType::Core || it.key.name == provider.key.name)
    };
    let rank = |it: &ProviderRecord| {
        let is_installed = snapshot.installed_for(it).is_some();
        (!is_installed, it.metadata.creation_timestamp.clone(), it.key.clone())
    };
    let first = snapshot.others.iter().filter(|it| is_same(it)).min_by_key(|it| rank(it))?;
    if rank(first) > rank(provider) {
        return None;
    }
    let message = format!(
        "{} {} exists already in namespace {}: delete one of the two",
        first.kind, first.key.name, first.key.namespace
    );
    Some(Refusal::new(reason::MORE_THAN_ONE_EXISTS, message))
}

/// An instance of the provider that is installed elsewhere without an object of its own.
pub fn installed_elsewhere(snapshot: &Snapshot) -> Option<Refusal> {
    let provider = &snapshot.provider;
    let other = snapshot.inventory.iter().find(|it| {
        it.kind == provider.kind
            && (it.kind == ProviderType::Core || *it.name == *provider.key.name)
            && (*it.namespace != *provider.key.namespace || *it.name != *provider.key.name)
    })?;
    let message = format!(
        "{} {} {} is installed in namespace {}: move this object there, or delete that instance",
        other.kind, other.name, other.version, other.namespace
    );
    Some(Refusal::new(reason::MORE_THAN_ONE_EXISTS, message))
}

/// Whether a provider may be installed before core serves.
pub fn waits_for_core(snapshot: &Snapshot) -> Option<Refusal> {
    if snapshot.provider.kind == ProviderType::Core {
        return None;
    }
    let cores: Vec<_> = snapshot.others.iter().filter(|it| it.kind == ProviderType::Core).collect();
    if cores.iter().any(|it| snapshot.serves(it)) {
        return None;
    }
    let message = match cores.first() {
        None => "Waiting for a CoreProvider: none exists".to_owned(),
        Some(core) => format!("Waiting for {} to be ready", core.full_name()),
    };
    Some(Refusal::new(reason::WAITING_FOR_CORE, message))
}

/// Whether a provider may go from the installed version to another. Patch versions may go back.
pub fn downgrade(provider: &ProviderRecord, installed: &str, wanted: &str) -> Option<Refusal> {
    let (from, to) = (Version::parse(installed).ok()?, Version::parse(wanted).ok()?);
    ((to.major(), to.minor()) < (from.major(), from.minor())).then(|| {
        let message = format!(
            "{} {installed} is installed, and cannot be downgraded to {wanted}: set spec.version to {installed} or later",
            provider.label()
        );
        Refusal::new(reason::UNSUPPORTED_DOWNGRADE, message)
    })
}

/// Whether a provider may be upgraded to a version with this contract.
///
/// Core changes its contract first, while nothing of any provider runs; the others follow.
pub fn contract_upgrade(snapshot: &Snapshot, wanted: &str) -> Option<Refusal> {
    let provider = &snapshot.provider;
    let current = snapshot.contract_of(provider);
    if current == Some(wanted) {
        return None;
    }
    if provider.kind != ProviderType::Core
        && let Some(core) = snapshot.core().and_then(|it| it.status.contract.as_deref())
        && core != wanted
    {
        let message = format!(
            "The version implements contract {wanted}, but core implements {core}: upgrade core to contract {wanted} first"
        );
        return Some(Refusal::new(reason::CONTRACT_MISMATCH, message));
    }
    let running = || {
        let installed = [provider].into_iter().chain(&snapshot.others);
        installed.filter(|it| snapshot.installed_for(it).is_some() && !snapshot.is_stopped(it))
    };
    let names = |wants_pause: bool| -> Vec<String> {
        running().filter(|it| it.spec.paused == wants_pause).map(|it| it.full_name()).collect()
    };
    let without_object =
        snapshot.without_object().map(|it| format!("{} {}/{}", it.kind, it.namespace, it.name));
    let to_do: Vec<String> = [
        ("set spec.paused of", names(false)),
        ("wait until nothing runs any more of", names(true)),
        ("create the missing provider objects, paused, of", without_object.collect()),
    ]
    .into_iter()
    .filter(|(_, names)| !names.is_empty())
    .map(|(what, names)| format!("{what} {}", names.join(", ")))
    .collect();
    (!to_do.is_empty()).then(|| {
        let message = format!(
            "The version changes the contract from {} to {wanted}, for which all providers must be paused: {}",
            current.unwrap_or("an unknown one"),
            to_do.join("; ")
        );
        Refusal::new(reason::WAITING_FOR_PAUSE, message)
    })
}

/// Whether a paused provider may run again: not while a paused one implements another contract than core.
pub fn unpause(snapshot: &Snapshot) -> Option<Refusal> {
    let core = snapshot.core()?;
    let contract = core.status.contract.as_deref()?;
    let is_behind = |it: &ProviderRecord| {
        let is_paused = it.is_paused() && !it.is_deleting() && snapshot.installed_for(it).is_some();
        is_paused && snapshot.contract_of(it) != Some(contract)
    };
    let unsettled = |it: &ProviderRecord| it.is_paused() && !snapshot.is_settled(it);
    let all = || [&snapshot.provider].into_iter().chain(&snapshot.others);
    if !snapshot.is_settled(core) || all().any(|it| unsettled(it)) {
        let names: Vec<String> =
            all().filter(|it| !snapshot.is_settled(it)).map(|it| it.full_name()).collect();
        let message = format!("Upgrades have to end first: {}; this provider stays paused", names.join(", "));
        return Some(Refusal::new(reason::WAITING_FOR_CONTRACT, message));
    }
    let behind: Vec<String> = all()
        .filter(|it| is_behind(it))
        .map(|it| format!("{} (contract {})", it.full_name(), snapshot.contract_of(it).unwrap_or("unknown")))
        .collect();
    (!behind.is_empty()).then(|| {
        let message = format!(
            "Core implements contract {contract}, and paused providers do not: upgrade {} first; this provider stays paused",
            behind.join(", ")
        );
        Refusal::new(reason::WAITING_FOR_CONTRACT, message)
    })
}

/// The providers that need core, which is deleted last.
pub fn needs_core(snapshot: &Snapshot) -> Option<Refusal> {
    if snapshot.provider.kind != ProviderType::Core {
        return None;
    }
    let cores = snapshot.others.iter().filter(|it| it.kind == ProviderType::Core);
    if cores.into_iter().any(|it| snapshot.installed_for(it).is_some()) {
        // Another core provider is the one that others need.
        return None;
    }
    let objects = snapshot.others.iter().filter(|it| it.kind != ProviderType::Core).map(|it| it.full_name());
    let entries = snapshot.without_object().filter(|it| it.kind != ProviderType::Core);
    let entries = entries.map(|it| format!("{} {}/{}", it.kind, it.namespace, it.name));
    let others: Vec<String> = objects.chain(entries).collect();
    (!others.is_empty()).then(|| {
        Refusal::new(reason::IN_USE, format!("Other providers need core: delete {} first", others.join(", ")))
    })
}
