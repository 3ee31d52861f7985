//! Messages in lines that fit beside the tree.

/// How many bytes a line of a message may have.
const WIDTH: usize = 100;

/// A message in lines: its own line breaks are kept, longer lines are broken between words and go on with their
/// indentation, which is two more behind a bullet.
pub(super) fn lines(text: &str) -> Vec<String> {
    text.split('\n').flat_map(wrap).collect()
}

fn wrap(line: &str) -> Vec<String> {
    let blanks = " ".repeat(line.len() - line.trim_start_matches(' ').len());
    let is_bullet = line.trim().starts_with("* ");
    let indent = if is_bullet { format!("{blanks}  ") } else { blanks.clone() };
    let mut lines = Vec::new();
    let mut current = blanks;
    for word in words(line) {
        if current.len() + word.len() < WIDTH {
            if !current.trim().is_empty() {
                current.push(' ');
            }
            current.push_str(word);
        } else {
            lines.push(std::mem::replace(&mut current, format!("{indent}{word}")));
        }
    }
    lines.push(current);
    lines
}

/// What is between runs of blanks, also before the first and behind the last one.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_blank = |it: char| matches!(it, ' ' | '\t' | '\r' | '\u{c}');
    let parts: Vec<&str> = line.split(is_blank).collect();
    let last = parts.len() - 1;
    // A run of blanks has empty parts in it, of which none is a word.
    let is_word = move |(index, part): &(usize, &str)| !part.is_empty() || *index == 0 || *index == last;
    parts.into_iter().enumerate().filter(is_word).map(|(_, part)| part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        let long = "x".repeat(60);
        for (text, expected) in [
            (String::new(), vec![String::new()]),
            ("one  two\tthree".to_owned(), vec!["one two three".to_owned()]),
            ("a\n\n  b \n".to_owned(), vec!["a".to_owned(), String::new(), "  b ".to_owned(), String::new()]),
            (format!("{long} {long}"), vec![long.clone(), long.clone()]),
            (format!("* {long} {long}"), vec![format!("* {long}"), format!("  {long}")]),
            (format!("  * {long} {long}"), vec![format!("  * {long}"), format!("    {long}")]),
            (format!("  {long} {long}"), vec![format!("  {long}"), format!("  {long}")]),
            (format!("{long}{long}"), vec![String::new(), format!("{long}{long}")]),
        ] {
            assert_eq!(lines(&text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_word_is_lost(text in "[a-z *\\n]{0,400}") {
            let lines = lines(&text);
            let joined = lines.join(" ");
            let words: Vec<&str> = joined.split_whitespace().collect();
            prop_assert_eq!(words, text.split_whitespace().collect::<Vec<_>>());
            for line in lines {
                prop_assert!(line.len() <= WIDTH || line.split_whitespace().count() <= 1, "{:?}", line);
            }
        }
    }
}
