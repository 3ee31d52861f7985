//! Files of `NAME=value` lines, as `subosito/gotenv` reads them.

use std::collections::BTreeMap;

use super::value::{Map, Value};

/// Reads the lines. `$NAME` and `${NAME}` outside of single quotes stand for what the environment, or else an
/// earlier line, has under that name.
pub(super) fn read(text: &str, environment: &BTreeMap<String, String>) -> Result<Map, String> {
    let mut entries = Map::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let mut line = line.trim().to_owned();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fail = |problem: &str| format!("line {}: {problem}", number + 1);
        let malformed = || fail("expected NAME=value");
        let start = split(&line).ok_or_else(malformed)?.1.chars().next();
        if let Some(quote) = start.filter(|it| matches!(it, '"' | '\'')) {
            while split(&line).and_then(|(_, value)| quoted(value, quote)).is_none() {
                let Some((_, next)) = lines.next() else {
                    return Err(fail(&format!("the quote {quote} is not closed")));
                };
                line.push('\n');
                line.push_str(next);
            }
        }
        let (name, value) = split(&line).ok_or_else(malformed)?;
        let value = meaning(value, &|name| lookup(name, environment, &entries));
        match entries.iter_mut().find(|(it, _)| it == name) {
            Some(entry) => entry.1 = Value::Text(value),
            None => entries.push((name.to_owned(), Value::Text(value))),
        }
    }
    Ok(entries)
}

/// Name and value of a line, which are parted by `=` or by a colon and a space.
fn split(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let line = match line.strip_prefix("export") {
        Some(rest) if rest.starts_with(char::is_whitespace) => rest.trim_start(),
        _ => line,
    };
    let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '.';
    let (name, rest) = line.split_at_checked(line.find(|it| !is_part(it))?)?;
    let value = match rest.trim_start().strip_prefix('=') {
        Some(value) => value,
        None => rest.strip_prefix(':').filter(|it| it.starts_with(char::is_whitespace))?,
    };
    (!name.is_empty()).then_some((name, value.trim_start()))
}

/// What is between a quote and the last one of its kind that only a comment follows.
fn quoted(value: &str, quote: char) -> Option<&str> {
    let inner = value.strip_prefix(quote)?;
    inner.rmatch_indices(quote).find_map(|(at, _)| {
        let (content, rest) = inner.split_at_checked(at)?;
        let rest = rest.strip_prefix(quote)?.trim();
        let escaped = quote == '"' && content.ends_with('\\');
        (!escaped && (rest.is_empty() || rest.starts_with('#'))).then_some(content)
    })
}

fn meaning(value: &str, lookup: &dyn Fn(&str) -> String) -> String {
    if let Some(literal) = quoted(value, '\'') {
        return literal.to_owned();
    }
    match quoted(value, '"') {
        Some(content) => {
            let content = content.replace("\\n", "\n").replace("\\r", "\r");
            expand(&unescape(&content), lookup)
        }
        None => expand(value.split('#').next().unwrap_or_default().trim(), lookup),
    }
}

/// Takes away the backslash before anything but `$`.
fn unescape(text: &str) -> String {
    let mut result = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('\\', Some('$')) | (_, None) => result.push(character),
            ('\\', Some(_)) => result.extend(characters.next()),
            _ => result.push(character),
        }
    }
    result
}

fn expand(text: &str, lookup: &dyn Fn(&str) -> String) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, dollar) = rest.split_at(at);
        let after = dollar.trim_start_matches('$');
        if let Some(before) = before.strip_suffix('\\') {
            result.push_str(before);
            result.push('$');
            rest = dollar.strip_prefix('$').unwrap_or_default();
            continue;
        }
        result.push_str(before);
        let open = after.strip_prefix('{').unwrap_or(after);
        let is_part = |it: char| it.is_ascii_uppercase() || it.is_ascii_digit() || it == '_';
        let length = open.find(|it| !is_part(it)).unwrap_or(open.len());
        let (name, others) = open.split_at(length);
        result.extend(std::iter::repeat_n('$', dollar.len() - after.len() - 1));
        if name.is_empty() {
            result.push('$');
            rest = after;
        } else {
            result.push_str(&lookup(name));
            rest = others.strip_prefix('}').unwrap_or(others);
        }
    }
    result + rest
}

fn lookup(name: &str, environment: &BTreeMap<String, String>, entries: &Map) -> String {
    let earlier = || entries.iter().find(|(it, _)| it == name).and_then(|(_, value)| value.text());
    environment.get(name).cloned().or_else(earlier).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_gotenv_reads_them() {
        let environment = BTreeMap::from([("HOME".to_owned(), "/home/me".to_owned())]);
        for (line, expected) in [
            ("V=1", Some("1")),
            ("  export V = x y ", Some("x y")),
            ("V=\"x y\"", Some("x y")),
            ("V='$A'", Some("$A")),
            ("V=\"$A-${HOME}\"", Some("1-/home/me")),
            ("V=$A # why", Some("1")),
            ("V=\\$A", Some("$A")),
            ("V=$NONE.", Some(".")),
            ("V=$lower", Some("$lower")),
            ("V=$", Some("$")),
            ("V: yaml style", Some("yaml style")),
            ("V=", Some("")),
            ("V=\"a\\nb\"", Some("a\nb")),
            ("V=\"say \\\"hi\\\"\"", Some("say \"hi\"")),
            ("V='a # b' # c", Some("a # b")),
            ("V=\"a\nb\" # c", Some("a\nb")),
            ("V=1\nV=2", Some("2")),
            ("V", None),
            ("export V", None),
            ("=1", None),
            ("V-W=1", None),
            ("V:1", None),
            ("V=\"open", None),
        ] {
            let read = read(&format!("# first\nA=1\n\n{line}\n"), &environment);
            let value = read.as_ref().ok().and_then(|it| it.last()?.1.text());
            assert_eq!(value.as_deref(), expected, "{line}: {read:?}");
            if expected.is_none() {
                assert!(read.unwrap_err().starts_with("line 4: "));
            }
        }
    }
}
