//! The next page of a listing.

use reqwest::Url;

/// The target of `rel="next"` in a `Link` header.
pub(crate) fn next_in_link(header: &str) -> Option<&str> {
    split_links(header).find_map(|link| {
        let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        parameters.split(';').any(is_next).then_some(target)
    })
}

/// Splits at commas, but not at those within an address.
fn split_links(header: &str) -> impl Iterator<Item = &str> {
    let mut within = false;
    header.split(move |c| {
        within = c == '<' || (within && c != '>');
        c == ',' && !within
    })
}

fn is_next(parameter: &str) -> bool {
    parameter.trim().split_once('=').is_some_and(|(name, value)| {
        name.trim().eq_ignore_ascii_case("rel") && value.trim().trim_matches('"').eq_ignore_ascii_case("next")
    })
}

/// The address of the next page, if it is on the same server: tokens go with it.
pub(crate) fn next_page(from: &Url, target: &str) -> Option<Url> {
    from.join(target).ok().filter(|url| url.origin() == from.origin())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found() {
        for (header, expected) in [
            (
                r#"<https://h/?page=2>; rel="next", <https://h/?page=9>; rel="last""#,
                Some("https://h/?page=2"),
            ),
            (r#"<https://h/?page=1>; rel="prev", <https://h/?a=1,2>; rel=next"#, Some("https://h/?a=1,2")),
            (r#"</v2/r/tags/list?last=b&n=2>; rel="next""#, Some("/v2/r/tags/list?last=b&n=2")),
            (r#"<https://h/?page=1>; rel="last""#, None),
            ("rubbish", None),
            ("", None),
        ] {
            assert_eq!(next_in_link(header), expected, "{header}");
        }
    }

    #[test]
    fn another_server_has_no_next_page_of_ours() {
        let from = Url::parse("https://h/list").unwrap();
        assert_eq!(next_page(&from, "/list?page=2").unwrap().as_str(), "https://h/list?page=2");
        assert_eq!(next_page(&from, "https://evil.example/list"), None);
        assert_eq!(next_page(&from, "http://h/list"), None);
    }
}
