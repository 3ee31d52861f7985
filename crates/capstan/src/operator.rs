//! The provider operator in a management cluster: its components, and the provider objects that it acts on.
//!
//! The commands only write provider objects and read what the operator says about them. Decisions are functions over
//! [`state::OperatorState`]; the commands carry them out.

pub(crate) mod arrange;
pub(crate) mod catalog;
pub(crate) mod components;
pub(crate) mod config_maps;
pub(crate) mod draft;
pub(crate) mod edit;
pub(crate) mod intent;
pub(crate) mod judge;
pub(crate) mod problem;
pub(crate) mod sequence;
pub(crate) mod setup;
pub(crate) mod state;

pub(crate) use components::components;
pub(crate) use problem::OperatorProblem;
pub(crate) use state::{InstalledOperator, OperatorState, ProviderObject};

pub(crate) use capstan_components::operator::{
    DEPLOYMENT, NAME as COMPONENT, NAME_LABEL, NAMESPACE, VERSION_LABEL,
};

use capstan_api::names;
use capstan_components::manager::IMAGE;
use capstan_manifest::images::Overrides;

use crate::{commands::version::VERSION, error::CommandError};

/// The value of clusterctl's core label on all its objects. Upstream's operator has the same.
pub(crate) const CORE_LABEL: &str = names::OPERATOR;

/// The image that the operator runs with: the one that a flag names, else this version's with the configured overrides.
pub(crate) fn image(flag: Option<&str>, overrides: &Overrides) -> Result<String, CommandError> {
    if let Some(image) = flag.filter(|it| !it.is_empty()) {
        return Ok(image.to_owned());
    }
    let own = format!("{IMAGE}:{VERSION}");
    overrides.apply(COMPONENT, &own).map_err(|error| {
        CommandError::new(format!("the operator's image {own} cannot be replaced"), error)
            .hint(format!("correct images.{COMPONENT} and images.all in the configuration file"))
    })
}

#[cfg(test)]
mod tests {
    use capstan_manifest::images::Override;

    use super::*;

    #[test]
    fn a_flag_wins_over_the_configuration() {
        let mirror = Override { repository: "mirror.example.com/x".to_owned(), ..Override::default() };
        let overrides: Overrides = [(COMPONENT.to_owned(), mirror)].into_iter().collect();
        let none = Overrides::default();
        assert_eq!(image(None, &none).unwrap(), format!("{IMAGE}:{VERSION}"));
        assert_eq!(image(Some(""), &overrides).unwrap(), format!("mirror.example.com/x/capstan:{VERSION}"));
        assert_eq!(image(Some("r.example.com/own:v9"), &overrides).unwrap(), "r.example.com/own:v9");
    }
}
