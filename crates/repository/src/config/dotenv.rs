//! Files of `NAME=value` lines, as `subosito/gotenv` reads them.

use std::collections::{BTreeMap, HashMap};

use super::value::{Map, Value};

/// The variables of a file may not stand for more text than this, in bytes: a line can double the one before it.
const MOST_COPIED_TEXT: usize = 16 << 20;

/// Reads the lines. `$NAME` and `${NAME}` outside of single quotes stand for what the environment, or else an
/// earlier line, has under that name.
pub(super) fn read(text: &str, environment: &BTreeMap<String, String>) -> Result<Map, String> {
    let mut entries = Entries::default();
    let mut room = MOST_COPIED_TEXT;
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
            let mut is_closed = split(&line).is_some_and(|(_, value)| quoted(value, quote).is_some());
            // Lines before could not close it, and what follows them does not change that.
            while !is_closed {
                let Some((_, next)) = lines.next() else {
                    return Err(fail(&format!("the quote {quote} is not closed")));
                };
                line.push('\n');
                line.push_str(next);
                is_closed = closing(next, quote).is_some();
            }
        }
        let (name, value) = split(&line).ok_or_else(malformed)?;
        let mut lookup = |name: &str| {
            let text =
                environment.get(name).map(String::as_str).or_else(|| entries.get(name)).unwrap_or_default();
            room = room.checked_sub(text.len())?;
            Some(text.to_owned())
        };
        let value = meaning(value, &mut lookup).ok_or_else(|| {
            fail(&format!("the variables so far stand for more than {} MiB of text", MOST_COPIED_TEXT >> 20))
        })?;
        entries.set(name, value);
    }
    Ok(entries.in_order.into_iter().map(|(name, value)| (name, Value::Text(value))).collect())
}

/// What was read so far, and where each name is among it.
#[derive(Default)]
struct Entries {
    in_order: Vec<(String, String)>,
    places: HashMap<String, usize>,
}

impl Entries {
    fn get(&self, name: &str) -> Option<&str> {
        self.in_order.get(*self.places.get(name)?).map(|(_, value)| value.as_str())
    }

    fn set(&mut self, name: &str, value: String) {
        let place = *self.places.entry(name.to_owned()).or_insert(self.in_order.len());
        match self.in_order.get_mut(place) {
            Some(entry) => entry.1 = value,
            None => self.in_order.push((name.to_owned(), value)),
        }
    }
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
    inner.get(..closing(inner, quote)?)
}

/// Where the last quote is that ends a value.
fn closing(text: &str, quote: char) -> Option<usize> {
    let text = text.trim_end();
    text.rmatch_indices(quote).map(|(at, _)| at).find(|at| {
        let (content, rest) = text.split_at_checked(*at).unwrap_or_default();
        let rest = rest.strip_prefix(quote).unwrap_or_default().trim_start();
        let escaped = quote == '"' && content.ends_with('\\');
        !escaped && (rest.is_empty() || rest.starts_with('#'))
    })
}

type Lookup<'a> = dyn FnMut(&str) -> Option<String> + 'a;

/// Nothing if the lookup has no room left.
fn meaning(value: &str, lookup: &mut Lookup<'_>) -> Option<String> {
    if let Some(literal) = quoted(value, '\'') {
        return Some(literal.to_owned());
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

fn expand(text: &str, lookup: &mut Lookup<'_>) -> Option<String> {
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
            result.push_str(&lookup(name)?);
            rest = others.strip_prefix('}').unwrap_or(others);
        }
    }
    Some(result + rest)
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

    #[test]
    fn lines_cannot_double_each_other_without_end() {
        let doubled = |lines: usize| {
            let line = |at: usize| format!("V{at}=$V{before}$V{before}\n", before = at - 1);
            read(&format!("V0=x\n{}", (1..=lines).map(line).collect::<String>()), &BTreeMap::new())
        };
        let last = doubled(20).unwrap().pop().and_then(|(_, value)| value.text());
        assert_eq!(last.map(|it| it.len()), Some(1 << 20));
        let error = doubled(64).unwrap_err();
        assert_eq!(error, "line 25: the variables so far stand for more than 16 MiB of text");
    }

    /// Looking through all lines for each one would take minutes here.
    #[test]
    fn many_lines_are_read() {
        let lines: Vec<String> = (0..200_000).map(|at| format!("SOME_LONG_COMMON_PREFIX_{at}=1\n")).collect();
        let variables = lines.concat();
        let text = format!("{variables}Q=\"{}\"\n", "line\n".repeat(200_000));
        let entries = read(&text, &BTreeMap::new()).unwrap();
        assert_eq!(entries.len(), 200_001);
        assert_eq!(entries.last().and_then(|(_, value)| value.text()).map(|it| it.len()), Some(1_000_000));
    }
}
