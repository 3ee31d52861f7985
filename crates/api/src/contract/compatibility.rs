//! Contracts that go together. An installed provider may speak one that Capstan does not know: contracts are text here.

use super::ContractVersion;

/// The contracts that providers may speak beside a core that speaks this one.
pub fn compatible_with(core: &str) -> Vec<&str> {
    if core == ContractVersion::V1Beta2.as_str() {
        ContractVersion::PREFERENCE.map(ContractVersion::as_str).to_vec()
    } else {
        vec![core]
    }
}

/// Whether a provider that speaks one contract works with a core that speaks another.
pub fn is_compatible(core: &str, provider: &str) -> bool {
    compatible_with(core).contains(&provider)
}

/// Whether releases of a contract can be installed.
pub fn is_supported(contract: &str) -> bool {
    ContractVersion::PREFERENCE.iter().any(|it| it.as_str() == contract)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_goes_with_its_own_contract_and_the_one_before_it() {
        for (core, provider, expected) in [
            ("v1beta2", "v1beta2", true),
            ("v1beta2", "v1beta1", true),
            ("v1beta2", "v1alpha4", false),
            ("v1beta1", "v1beta1", true),
            ("v1beta1", "v1beta2", false),
            ("v1beta3", "v1beta3", true),
            ("v1beta3", "v1beta2", false),
        ] {
            assert_eq!(is_compatible(core, provider), expected, "{core} {provider}");
        }
        assert_eq!(compatible_with("v1beta2"), ["v1beta2", "v1beta1"]);
        assert_eq!(compatible_with("v1alpha4"), ["v1alpha4"]);
        for (contract, expected) in
            [("v1beta1", true), ("v1beta2", true), ("v1alpha4", false), ("v1beta3", false)]
        {
            assert_eq!(is_supported(contract), expected, "{contract}");
        }
    }
}
