//! Judgements on the control plane endpoint.

use capstan_api::{
    cluster::v1beta2::ApiEndpoint,
    contract::{ContractVersion, InfraCluster},
};

use super::{failed, not_applicable, not_checked};
use crate::{
    dynamic::history::{History, endpoint},
    report::Outcome,
};

/// How the endpoint and the provisioned field came together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EndpointStory {
    /// It was whole when provisioned was reported.
    InTime(ApiEndpoint),
    /// It became whole later.
    Late,
    /// Only half of it was there, or nonsense.
    Broken(String),
    /// There was none.
    None,
    /// Provisioned was never reported.
    Unknown,
}

/// How the provider handled its endpoint.
pub(crate) fn endpoint_story(history: &History, contract: ContractVersion) -> EndpointStory {
    let Some(first) = history.provisioned_at(contract) else { return EndpointStory::Unknown };
    let object = &history.states[first].object;
    if let Some(endpoint) = endpoint(object, contract) {
        return EndpointStory::InTime(endpoint);
    }
    let later = history.states[first..].iter().any(|state| endpoint(&state.object, contract).is_some());
    match InfraCluster::new(object, contract).control_plane_endpoint() {
        _ if later => EndpointStory::Late,
        Err(error) => EndpointStory::Broken(error.to_string()),
        Ok(half) if !half.host.is_empty() => {
            EndpointStory::Broken(format!("spec.controlPlaneEndpoint has host {:?} but no port", half.host))
        }
        Ok(half) if half.port != 0 => {
            EndpointStory::Broken(format!("spec.controlPlaneEndpoint has port {} but no host", half.port))
        }
        Ok(_) => EndpointStory::None,
    }
}

/// The endpoint is whole when provisioned is reported, and stays the same.
pub(crate) fn endpoint_in_time(history: &History, contract: ContractVersion, waits: bool) -> Outcome {
    let path = InfraCluster::provisioned_path(contract);
    let repair = format!(
        "write host and port of spec.controlPlaneEndpoint in one patch, before {path}, and never change them"
    );
    match endpoint_story(history, contract) {
        EndpointStory::Unknown => not_checked("the InfraCluster was never provisioned"),
        EndpointStory::None => not_applicable("the provider makes no endpoint"),
        EndpointStory::InTime(_) if waits => not_applicable("the provider waits for the Cluster's endpoint"),
        EndpointStory::Late => failed(
            format!("{}: {path} was true before spec.controlPlaneEndpoint was whole", history.name),
            repair,
        ),
        EndpointStory::Broken(what) => {
            failed(format!("{}: {path} is true, but {what}", history.name), repair)
        }
        EndpointStory::InTime(first) => match other_endpoint(history, 0, &first, contract) {
            None => Outcome::Passed,
            Some(other) => failed(
                format!(
                    "{}: spec.controlPlaneEndpoint was {} and became {other}",
                    history.name,
                    text(&first)
                ),
                repair,
            ),
        },
    }
}

/// An endpoint other than the given one, in states from an index on that have provisioned.
pub(super) fn other_endpoint(
    history: &History,
    from: usize,
    expected: &ApiEndpoint,
    contract: ContractVersion,
) -> Option<String> {
    let from = from.max(history.provisioned_at(contract)?);
    history.states.get(from..)?.iter().filter(|state| !state.gone).find_map(|state| {
        match endpoint(&state.object, contract) {
            Some(found) if found == *expected => None,
            Some(found) => Some(text(&found)),
            None => Some("none".to_owned()),
        }
    })
}

pub(super) fn text(endpoint: &ApiEndpoint) -> String {
    format!("{}:{}", endpoint.host, endpoint.port)
}

/// A provider that makes no endpoint waited for the Cluster's.
pub(crate) fn waited_for_endpoint(
    history: &History,
    contract: ContractVersion,
    waits: bool,
    given: bool,
) -> Outcome {
    if waits {
        return Outcome::Passed;
    }
    match endpoint_story(history, contract) {
        EndpointStory::Unknown => not_checked("the InfraCluster was never provisioned"),
        _ if given => not_applicable("the manifest names the endpoint"),
        EndpointStory::None => failed(
            format!(
                "{}: {} became true although neither it nor its Cluster has an endpoint",
                history.name,
                InfraCluster::provisioned_path(contract)
            ),
            "wait until the Cluster has spec.controlPlaneEndpoint, or make an endpoint and write it to the InfraCluster",
        ),
        EndpointStory::InTime(_) | EndpointStory::Late | EndpointStory::Broken(_) => {
            not_applicable("the provider makes the endpoint")
        }
    }
}
