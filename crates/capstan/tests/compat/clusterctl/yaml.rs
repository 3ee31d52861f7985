//! Documents through `generate yaml`: what is read of them, and how it is written again.

use super::{
    Batch,
    corpus::named,
    generate::{Dice, document},
    harness::Case,
};

/// How many documents are made up at random.
const RANDOM: u64 = 1000;

pub(crate) fn cases() -> Vec<Batch> {
    let case = |name: &str, text: &str| Case::new("yaml", name, "generate yaml").input(text);
    let documents = named(include_str!("cases/documents.txt")).map(|(name, text)| case(name, &text));
    let odd = ODD.iter().map(|(name, text)| case(name, text));
    let random = (0..RANDOM).map(|seed| {
        let text = document(&mut Dice::new(seed));
        case(&format!("random-{seed}"), &text)
    });
    let streams = STREAMS.iter().map(|(name, text)| case(name, text));
    let refused =
        named(include_str!("cases/documents-refused.txt")).map(|(name, text)| case(name, &text).refused());
    let odd_refused = ODD_REFUSED.iter().map(|(name, text)| case(name, text).refused());
    let together = [Batch(documents.chain(odd).collect()), Batch(random.collect())];
    together.into_iter().chain(streams.chain(refused).chain(odd_refused).map(Batch::from)).collect()
}

/// Documents that a file of text would not keep.
const ODD: &[(&str, &str)] = &[
    ("tabs", "a: \"x\\ty\"\nb: 'x\ty'\nc: x\ty\nd: \"\\t\"\n"),
    ("blank-lines", "\n\na: 1\n\n\nb: 2\n\n"),
    ("trailing-blanks", "a: 1   \nb: x   \nc:   \n"),
    ("no-final-newline", "a: 1\nb: x"),
];

/// Streams, which say something by their ends.
const STREAMS: &[(&str, &str)] = &[
    ("nothing", ""),
    ("newline", "\n"),
    ("only-comments", "# a\n# b\n"),
    ("only-separators", "---\n---\n"),
    ("two-documents", "a: 1\n---\nb: 2\n"),
    ("leading-separator", "---\na: 1\n"),
    ("trailing-separator", "a: 1\n---\n"),
    ("empty-documents", "---\n\n---\n# only this\n---\na: 1\n---\n---\n"),
    ("null-document", "a: 1\n---\nnull\n---\nb: 1\n"),
    ("tilde-document", "~\n"),
    ("separator-with-comment", "a: 1\n--- # here\nb: 2\n"),
    ("separator-with-blanks", "a: 1\n---   \nb: 2\n"),
    ("separator-with-tab", "a: 1\n---\t\nb: 2\n"),
    ("separator-indented", "a: |\n  x\n  ---\n  y\n"),
    ("crlf", "a: 1\r\nb: |\r\n  x\r\n  y\r\n---\r\nc: 2\r\n"),
    ("byte-order-mark", "\u{feff}a: 1\n"),
    ("byte-order-mark-and-separator", "\u{feff}---\na: 1\n"),
    ("document-end", "a: 1\n...\n"),
    ("after-document-end", "a: 1\n...\nb: 2\n"),
    ("json", "{\"a\": 1, \"b\": [1, 2]}"),
    ("json-documents", "{\"a\": 1}\n---\n{\"b\": 2}\n"),
    ("json-with-tabs", "{\n\t\"a\": 1,\n\t\"b\": \"x\"\n}\n"),
    ("json-then-yaml", "{\"a\": 1}\n---\nb: 2\n"),
    ("no-newline-before-separator", "a: 1\n---\nb: 2"),
    ("cr-only", "a: 1\rb: 2\r"),
    ("form-feed-in-value", "a: \"x\\fy\"\n"),
];

/// What upstream cannot read, and a file of text would not keep.
const ODD_REFUSED: &[(&str, &str)] =
    &[("tab-indent", "a:\n\tb: 1\n"), ("nul", "a: \u{1}x\n"), ("unclosed-json", "{\"a\": 1")];
