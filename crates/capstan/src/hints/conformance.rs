//! What can be done about files that cannot be checked.

use capstan_conformance::input::InputError;

use super::Hint;
use crate::program;

impl Hint for InputError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Yaml { variables: true, .. } => format!(
                "the file has variables such as ${{VARIABLE}}, which are no YAML here: substitute them first, e.g. with \
                 `{} generate yaml --from FILE`",
                program::name()
            ),
            Self::Yaml { .. } => {
                "give the YAML that is released: Helm charts and text templates are not rendered here"
                    .to_owned()
            }
            Self::NotAnObject { .. } => {
                "give components files, files of CRDs and metadata.yaml; leave out values and configuration"
                    .to_owned()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use capstan_conformance::input::read;

    use super::*;

    #[test]
    fn a_file_with_variables_is_to_be_rendered_first() {
        for (text, expected) in [
            ("apiVersion: v1\nkind: B\nspec: ${SPEC}: {\n", "substitute them first"),
            ("a: [1\n", "give the YAML that is released"),
            ("a: 1\n", "leave out values and configuration"),
        ] {
            let hint = read("f.yaml", text).unwrap_err().hint().unwrap();
            assert!(hint.contains(expected), "{text}: {hint}");
        }
    }
}
