//! Names of images, as clusterctl takes them.

/// Why an image's name is not canonical, i.e. not the name that it comes to when it is pulled.
pub(super) fn flaw(image: &str) -> Option<String> {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    // A colon before the last slash belongs to a port.
    let tag_at = name.rfind(':').filter(|at| !name[*at..].contains('/'));
    let (name, tag) = tag_at.map_or((name, None), |at| (&name[..at], Some(&name[at + 1..])));
    let Some((registry, path)) = name.split_once('/').filter(|(first, _)| is_registry(first)) else {
        return Some("has no registry".to_owned());
    };
    if registry == "index.docker.io" || (registry == "docker.io" && !path.contains('/')) {
        return Some(format!("is short for docker.io/{}", long_path(path)));
    }
    if name.len() > 255 {
        return Some("is longer than 255 letters".to_owned());
    }
    if let Some(part) = path.split('/').find(|it| !is_path_part(it)) {
        return Some(format!("has {part:?} in its path, which is no part of a name"));
    }
    if let Some(tag) = tag.filter(|it| !is_tag(it)) {
        return Some(format!("has the tag {tag:?}, which is none"));
    }
    digest.filter(|it| !is_digest(it)).map(|it| format!("has the digest {it:?}, which is none"))
}

fn long_path(path: &str) -> String {
    if path.contains('/') { path.to_owned() } else { format!("library/{path}") }
}

fn is_registry(text: &str) -> bool {
    let has_sign = text.contains(['.', ':']) || text == "localhost" || text.chars().any(char::is_uppercase);
    let host = text.rsplit_once(':').map_or(text, |(host, port)| {
        if !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit()) { host } else { text }
    });
    let is_address = host.starts_with('[') && host.ends_with(']');
    let is_part = |it: &str| {
        let ends = |it: Option<char>| it.is_some_and(|it| it.is_ascii_alphanumeric());
        ends(it.chars().next())
            && ends(it.chars().next_back())
            && it.chars().all(|it| it == '-' || it.is_ascii_alphanumeric())
    };
    // An underscore is in no name of a host, but clusterctl does not mind.
    has_sign && (is_address || host.split('.').all(is_part) || is_path_part(text))
}

/// Letters in lower case and digits, with separators between them: a dot, one or two underscores, or dashes.
fn is_path_part(text: &str) -> bool {
    let is_word = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit();
    let mut rest = text;
    loop {
        let after = rest.trim_start_matches(is_word);
        if after.len() == rest.len() {
            return false;
        }
        if after.is_empty() {
            return true;
        }
        rest = after.trim_start_matches(|it: char| !is_word(it));
        let separator = &after[..after.len() - rest.len()];
        let is_dashes = separator.chars().all(|it| it == '-');
        if !(is_dashes || matches!(separator, "." | "_" | "__")) {
            return false;
        }
    }
}

fn is_tag(text: &str) -> bool {
    let is_word = |it: char| it == '_' || it.is_ascii_alphanumeric();
    text.len() <= 128
        && text.starts_with(is_word)
        && text.chars().all(|it| is_word(it) || matches!(it, '.' | '-'))
}

fn is_digest(text: &str) -> bool {
    let is_hash = |hash: &str| hash.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
    let lengths = [("sha256:", 64), ("sha384:", 96), ("sha512:", 128)];
    lengths.into_iter().any(|(algorithm, length)| {
        text.strip_prefix(algorithm).is_some_and(|hash| hash.len() == length && is_hash(hash))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_as_clusterctl_does() {
        let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
        for image in [
            "gcr.io/k8s-staging-cluster-api/cluster-api-controller:v1.10.0",
            "registry.k8s.io/cluster-api/a_b__c--d.e:v1",
            "docker.io/library/nginx",
            "docker.io/foo/bar:v1",
            "localhost/foo:dev",
            "Foo/bar",
            "x_y.io/foo",
            "localhost:5000/foo",
            "[::1]:5000/foo/bar",
            &format!("ghcr.io/foo/bar:v1@{digest}"),
            &format!("ghcr.io/foo/bar@{digest}"),
        ] {
            assert_eq!(flaw(image), None, "{image}");
        }
        for (image, expected) in [
            ("nginx:1.0", "has no registry"),
            ("foo/bar:v1", "has no registry"),
            ("docker.io/nginx", "is short for docker.io/library/nginx"),
            ("index.docker.io/foo/bar", "is short for docker.io/foo/bar"),
            ("gcr.io/Foo/bar", "has \"Foo\" in its path"),
            ("gcr.io/foo//bar", "has \"\" in its path"),
            ("gcr.io/foo/bar_", "has \"bar_\" in its path"),
            ("gcr.io/foo/bar:", "has the tag \"\""),
            ("gcr.io/foo/bar:a+b", "has the tag \"a+b\""),
            ("gcr.io/foo/bar@sha256:12", "has the digest \"sha256:12\""),
            (&format!("gcr.io/foo/bar@{}", digest.to_uppercase()), "has the digest"),
            (&format!("gcr.io/foo/bar@{}", digest.replace("sha256", "md5")), "has the digest"),
            ("gcr.io/foo/a___b", "has \"a___b\" in its path"),
            ("gcr.io/foo/a..b", "has \"a..b\" in its path"),
            ("gcr.io/", "has \"\" in its path"),
            ("-x.io/foo", "has no registry"),
            ("x.io:/foo", "has no registry"),
            ("x.io:80a/foo", "has no registry"),
            (&format!("gcr.io/{}", "a".repeat(260)), "is longer than 255 letters"),
            ("", "has no registry"),
        ] {
            assert!(flaw(image).is_some_and(|it| it.starts_with(expected)), "{image}: {:?}", flaw(image));
        }
    }
}
