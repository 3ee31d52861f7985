//! The texts under `cases/`.

/// Texts with their names: each begins with a line `=== name`; a line `==== words` is for the reader.
pub(crate) fn named(texts: &'static str) -> impl Iterator<Item = (&'static str, String)> {
    texts.split("\n=== ").map(|section| {
        let (name, text) = section.split_once('\n').unwrap_or((section, ""));
        // The last one is not followed by a name, which would take its newline along.
        let text = text.strip_suffix('\n').unwrap_or(text);
        let lines = text.lines().filter(|line| !line.starts_with("==== ")).chain([""]);
        (name.trim_start_matches("=== "), lines.collect::<Vec<_>>().join("\n"))
    })
}

/// Texts of a line each; a line that begins with `# ` is for the reader.
pub(crate) fn lines(texts: &'static str) -> impl Iterator<Item = &'static str> {
    texts.lines().filter(|line| !line.starts_with("# "))
}
