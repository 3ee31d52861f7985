//! What can be done about components and templates that cannot be rendered.

use capstan_manifest::{components::ComponentsError, envsubst::RenderError, text::TextError};

use super::Hint;

impl Hint for ComponentsError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoTargetNamespace => Some("name one with --target-namespace".to_owned()),
            _ => None,
        }
    }
}

impl Hint for TextError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::WebPage => Some(
                "the address leads to a login or error page: open it in a browser to see which".to_owned(),
            ),
            Self::Syntax(error) => error.correction(),
            Self::Variables(RenderError::Evaluation(error)) => Some(error.correction().to_owned()),
            Self::Variables(RenderError::Missing(_)) | Self::Yaml(_) | Self::NotAnObject { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use capstan_manifest::{
        components::{self, Options},
        images::Overrides,
        text,
    };

    use super::*;

    #[test]
    fn a_missing_target_namespace_is_named_by_a_flag() {
        let images = Overrides::default();
        let options = Options {
            label: "infrastructure-a",
            target_namespace: None,
            watching_namespace: None,
            rbac_prefix: true,
            images: &images,
        };
        let error = components::render(Vec::new(), &options).unwrap_err();
        assert_eq!(error.hint().unwrap(), "name one with --target-namespace");
    }

    #[test]
    fn a_text_that_cannot_be_rendered_says_what_to_write() {
        let lookup = |name: &str| (name == "LENGTH").then(|| "-1".to_owned());
        for (text, expected) in [
            ("<html>", Some("open it in a browser")),
            ("a: ${ A:=x }", Some("write `${A:=x}`")),
            ("a: ${A:0:${LENGTH}}", Some("not a length")),
            ("a: ${A}", None),
            ("a: [1", None),
            ("text", None),
        ] {
            let hint = text::objects(text, Some(&lookup)).unwrap_err().hint();
            match expected {
                Some(expected) => assert!(hint.as_ref().unwrap().contains(expected), "{text}: {hint:?}"),
                None => assert_eq!(hint, None, "{text}"),
            }
        }
    }
}
