//! Which contracts go together.

use capstan_api::contract::ContractVersion;

/// The contracts that providers may speak beside a core that speaks this one.
pub fn compatible_with(contract: &str) -> Vec<&str> {
    if contract == ContractVersion::V1Beta2.as_str() {
        ContractVersion::PREFERENCE.map(ContractVersion::as_str).to_vec()
    } else {
        vec![contract]
    }
}

/// Whether we speak a contract, so that its releases can be installed.
pub fn is_spoken(contract: &str) -> bool {
    ContractVersion::PREFERENCE.iter().any(|it| it.as_str() == contract)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_contract_bears_the_one_before_it() {
        assert_eq!(compatible_with("v1beta2"), ["v1beta2", "v1beta1"]);
        for alone in ["v1beta1", "v1beta3", "v1alpha4"] {
            assert_eq!(compatible_with(alone), [alone]);
        }
        assert!(is_spoken("v1beta1") && is_spoken("v1beta2") && !is_spoken("v1alpha4"));
    }
}
