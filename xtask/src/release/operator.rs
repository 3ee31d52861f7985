//! The provider operator's files: a manifest for `kubectl apply`, and a Helm chart.

use capstan_components::operator::{NAMESPACE, Options, components};
use capstan_manifest::yaml;
use semver::Version;
use serde_json::Value;

use super::{chart, image};

/// The files with their names.
pub(super) fn files(version: &Version) -> Vec<(String, String)> {
    let manifest = ("operator-components.yaml".to_owned(), yaml::to_multi_document(&objects(version)));
    let chart = chart::files(version).into_iter().map(|(name, text)| (format!("chart/{name}"), text));
    [manifest].into_iter().chain(chart).collect()
}

fn objects(version: &Version) -> Vec<Value> {
    components(&Options {
        image: &image(version),
        version: &format!("v{version}"),
        namespace: NAMESPACE,
        replicas: 1,
    })
}

#[cfg(test)]
mod tests {
    use capstan_components::{
        manager::Names,
        operator::{ACCOUNT, AGGREGATE_LABEL, NAME, NAME_LABEL, WEBHOOK_SERVICE},
    };
    use serde_json::json;

    use super::*;
    use crate::release::checks;

    fn objects() -> Vec<Value> {
        super::objects(&Version::new(0, 1, 0))
    }

    #[test]
    fn the_network_is_kept_out() {
        let names = Names {
            label: (NAME_LABEL, NAME),
            namespace: NAMESPACE,
            account: ACCOUNT,
            service: WEBHOOK_SERVICE,
            prefix: NAME,
            controllers: "operator",
        };
        checks::the_network_is_kept_out(&names, &objects());
    }

    #[test]
    fn everything_that_leads_to_something_finds_it() {
        checks::everything_is_found(&objects());
    }

    /// Nothing substitutes variables in what `kubectl apply` gets.
    #[test]
    fn there_are_no_variables() {
        let text = yaml::to_multi_document(&objects());
        assert!(!text.contains("${"), "{text}");
    }

    #[test]
    fn the_example_of_an_additional_role_is_one() {
        let text = include_str!("../../../config/operator/additional-rights.yaml");
        let role: Value = serde_saphyr::from_str(text).unwrap();
        assert_eq!(role["kind"], "ClusterRole");
        assert_eq!(role["metadata"]["labels"][AGGREGATE_LABEL], "true");
        assert!(!role["rules"].as_array().unwrap().is_empty());
        assert_ne!(role["rules"][0]["resources"], json!(["*"]));
    }
}
