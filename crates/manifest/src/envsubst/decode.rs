//! UTF-8 that may be broken, as Go reads it.

/// The first character and its length in bytes. A byte that begins no character counts as U+FFFD.
pub(super) fn first_char(bytes: &[u8]) -> Option<(char, usize)> {
    let whole = (1..=bytes.len().min(4)).find_map(|length| {
        let text = str::from_utf8(bytes.get(..length)?).ok()?;
        Some((text.chars().next()?, length))
    });
    whole.or_else(|| bytes.first().map(|_| (char::REPLACEMENT_CHARACTER, 1)))
}

/// The characters from last to first; broken ones become U+FFFD.
pub(super) fn reverse(mut bytes: &[u8]) -> Vec<u8> {
    let mut reversed = String::with_capacity(bytes.len());
    while let Some((c, length)) = first_char(bytes) {
        reversed.push(c);
        bytes = bytes.get(length..).unwrap_or_default();
    }
    reversed.chars().rev().collect::<String>().into_bytes()
}
