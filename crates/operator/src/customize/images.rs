//! A container's image: as a whole, or in parts.

use capstan_api::operator::{ContainerImage, ImageParts};
use capstan_manifest::images::{Reference, ReferenceError};

use super::CustomizeError;

/// What replaces an image, or parts of it.
pub(super) enum ImageChange<'a> {
    /// The new image.
    Whole(&'a str),
    /// The new parts; those that are `None` stay.
    Parts { repository: Option<&'a str>, name: Option<&'a str>, tag: Option<&'a str> },
}

impl<'a> ImageChange<'a> {
    /// Reads a spec's image; empty texts change nothing.
    pub(super) fn read(
        image: &'a ContainerImage,
        container: &str,
        problems: &mut Vec<CustomizeError>,
    ) -> Option<Self> {
        match image {
            ContainerImage::Whole(text) => {
                let text = given(Some(text))?;
                if let Err(reason) = parse(text) {
                    let (container, text) = (container.to_owned(), text.to_owned());
                    problems.push(CustomizeError::Image { container, field: "image", text, reason });
                }
                Some(Self::Whole(text))
            }
            ContainerImage::Parts(parts) => Self::read_parts(parts, container, problems),
        }
    }

    fn read_parts(
        parts: &'a ImageParts,
        container: &str,
        problems: &mut Vec<CustomizeError>,
    ) -> Option<Self> {
        let repository = given(parts.repository.as_ref()).map(|it| it.strip_suffix('/').unwrap_or(it));
        let (name, tag) = (given(parts.name.as_ref()), given(parts.tag.as_ref()));
        // Each part is read in an image whose other parts are known to be right.
        let trials = [
            ("image.repository", repository, repository.map(|it| format!("{it}/image"))),
            ("image.name", name, name.map(|it| format!("example.com/{it}"))),
            ("image.tag", tag, tag.map(|it| format!("example.com/image:{it}"))),
        ];
        for (field, part, trial) in trials {
            let (Some(part), Some(trial)) = (part, trial) else { continue };
            let (container, text) = (container.to_owned(), part.to_owned());
            let is_only = |it: &Reference| {
                it.digest.is_none()
                    && if field == "image.tag" { it.tag.as_deref() == Some(part) } else { it.tag.is_none() }
                    && (field != "image.name" || it.name == part)
            };
            match parse(&trial) {
                Ok(reference) if is_only(&reference) => {}
                Ok(_) => problems.push(CustomizeError::ImagePart { container, field, text }),
                Err(reason) => problems.push(CustomizeError::Image { container, field, text, reason }),
            }
        }
        (repository.is_some() || name.is_some() || tag.is_some()).then_some(Self::Parts {
            repository,
            name,
            tag,
        })
    }

    /// The image that replaces another one.
    pub(super) fn apply(&self, image: &str) -> Result<String, ReferenceError> {
        let (repository, name, tag) = match *self {
            Self::Whole(text) => return Ok(text.to_owned()),
            Self::Parts { repository, name, tag } => (repository, name, tag),
        };
        let old = parse(image)?;
        let new = Reference {
            repository: repository.unwrap_or(&old.repository).to_owned(),
            name: name.unwrap_or(&old.name).to_owned(),
            tag: tag.map(str::to_owned).or_else(|| old.tag.clone()),
            digest: None,
        };
        // A mirror serves the same image under its digest; another name or tag is another image.
        let is_same = new.name == old.name && new.tag == old.tag;
        let new = Reference { digest: old.digest.clone().filter(|_| is_same), ..new };
        Ok(if new == old { image.to_owned() } else { new.to_string() })
    }
}

fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

/// Reads an image; a container runtime understands short names as well.
fn parse(image: &str) -> Result<Reference, ReferenceError> {
    match Reference::parse(image) {
        Err(ReferenceError::NotCanonical { canonical }) => Reference::parse(&canonical),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn parts(repository: &str, name: &str, tag: &str) -> ContainerImage {
        let part = |text: &str| Some(text.to_owned());
        ContainerImage::Parts(ImageParts { repository: part(repository), name: part(name), tag: part(tag) })
    }

    fn change(old: &str, wanted: &ContainerImage) -> String {
        let mut problems = Vec::new();
        let change = ImageChange::read(wanted, "manager", &mut problems);
        assert_eq!(problems, []);
        change.map_or(Ok(old.to_owned()), |it| it.apply(old)).unwrap()
    }

    #[test]
    fn only_what_is_given_is_replaced() {
        let old = "registry.k8s.io/cluster-api-aws/manager:v2.9.1";
        let pinned = format!("{old}@{DIGEST}");
        for (old, wanted, expected) in [
            (old, ContainerImage::Whole("gcr.io/my/capa:v0.6.0-foo".to_owned()), "gcr.io/my/capa:v0.6.0-foo"),
            (old, ContainerImage::Whole("capa:dev".to_owned()), "capa:dev"),
            (&pinned, ContainerImage::Whole("gcr.io/my/capa".to_owned()), "gcr.io/my/capa"),
            (old, ContainerImage::Whole(String::new()), old),
            (old, parts("", "", ""), old),
            (
                old,
                parts("mirror.example.com:5000/capa", "", ""),
                "mirror.example.com:5000/capa/manager:v2.9.1",
            ),
            (old, parts("mirror.example.com/", "", ""), "mirror.example.com/manager:v2.9.1"),
            (old, parts("", "capa", ""), "registry.k8s.io/cluster-api-aws/capa:v2.9.1"),
            (old, parts("", "", "v2.9.2"), "registry.k8s.io/cluster-api-aws/manager:v2.9.2"),
            (old, parts("a.io/b", "c", "d"), "a.io/b/c:d"),
            // A digest stays as long as the image is the same one.
            (&pinned, parts("a.io/b", "manager", "v2.9.1"), &format!("a.io/b/manager:v2.9.1@{DIGEST}")),
            (&pinned, parts("a.io/b", "", "v2"), "a.io/b/manager:v2"),
            (&pinned, parts("", "capa", ""), "registry.k8s.io/cluster-api-aws/capa:v2.9.1"),
            (&format!("a.io/b@{DIGEST}"), parts("", "", "v2"), "a.io/b:v2"),
            (&format!("a.io/b@{DIGEST}"), parts("c.io", "", ""), &format!("c.io/b@{DIGEST}")),
            // Short names.
            ("nginx:1.0", parts("", "", "1.1"), "docker.io/library/nginx:1.1"),
            ("nginx:1.0", parts("", "", "1.0"), "nginx:1.0"),
            ("a.io/b:v1", parts("capa", "", ""), "capa/b:v1"),
        ] {
            let new = change(old, &wanted);
            assert_eq!(new, expected, "{old} {wanted:?}");
            assert_eq!(change(&new, &wanted), new, "again: {old} {wanted:?}");
        }
    }

    #[test]
    fn what_is_no_image_is_refused() {
        for (wanted, expected) in [
            (
                ContainerImage::Whole("gcr.io/Capa:v1".to_owned()),
                r#"containers[manager].image: "gcr.io/Capa:v1" cannot be used: the name "Capa" must be lower case"#,
            ),
            (ContainerImage::Whole(" a.io/b:v1".to_owned()), "cannot be used"),
            (parts("a.io/b:v1", "", ""), r#".image.repository: "a.io/b:v1" cannot be used"#),
            (
                parts("", "b/c", ""),
                r#".image.name: "b/c" is more than that part of an image: write a part in"#,
            ),
            (parts("", "b:v1", ""), r#".image.name: "b:v1" is more than"#),
            (parts("", "B", ""), r#".image.name: "B" cannot be used: the name "B" must be lower case"#),
            (parts("", "", "v1/2"), r#".image.tag: "v1/2" cannot be used: "v1/2" is no tag"#),
            (parts("", "", &format!("v1@{DIGEST}")), "is more than that part"),
        ] {
            let mut problems = Vec::new();
            ImageChange::read(&wanted, "manager", &mut problems);
            let [problem] = problems.as_slice() else { panic!("{wanted:?}: {problems:?}") };
            assert!(problem.to_string().contains(expected), "{problem}");
        }
        let mut problems = Vec::new();
        ImageChange::read(&parts("A b", "C d", "e f"), "manager", &mut problems);
        assert_eq!(problems.len(), 3, "{problems:?}");
    }
}
