//! Variables through `generate yaml`: every form that an expression can have, and what is listed as variable.

use super::{
    Batch,
    corpus::lines,
    generate::{Dice, expression},
    harness::{Case, Fate},
};

/// How many expressions are made up at random.
const RANDOM: u64 = 300;

/// The environment of all expressions. `U` and `V` are not set.
const VALUES: &[(&str, &str)] = &[
    ("A", "alpha"),
    ("B", "Beta gamma"),
    ("E", ""),
    ("N", "-3"),
    ("P", "2"),
    ("PATHS", "a/b/c.tar.gz"),
    ("M", "MiXeD cAsE"),
    ("STAR", "*"),
    ("DOLLAR", "a$b${A}"),
    ("SHARP", "straße ÄÖ"),
    ("ONE_2", "under_score"),
    ("ZERO", "0"),
    ("LONG", "abcabcabcabc"),
    ("WORDS", "one two  three"),
];

pub(crate) fn cases() -> Vec<Batch> {
    let case = |name: &str, text: &str| {
        // In a literal block, so that the value's own signs mean nothing.
        Case::new("envsubst", name, "generate yaml").envs(VALUES).input(format!("e: |-\n  {text}\n"))
    };
    let together = lines(include_str!("cases/expressions.txt")).map(|text| case(text, text));
    let random = (0..RANDOM).map(|seed| {
        let text = expression(&mut Dice::new(seed));
        case(&format!("random-{seed} {text}"), &text).fate(Fate::Either)
    });
    let mut batches = vec![Batch(together.collect()), Batch(random.collect())];
    batches.extend(
        lines(include_str!("cases/expressions-refused.txt")).map(|text| case(text, text).refused().into()),
    );
    batches.extend(
        ALONE.iter().map(|(name, text)| {
            Case::new("envsubst", name, "generate yaml").envs(VALUES).input(*text).into()
        }),
    );
    batches.extend(LISTED.iter().map(|(name, text)| {
        Case::new("list-variables", name, "generate yaml --list-variables").envs(VALUES).input(*text).into()
    }));
    batches.extend(NOT_LISTED.iter().map(|(name, text)| {
        Case::new("list-variables", name, "generate yaml --list-variables").input(*text).refused().into()
    }));
    batches
}

/// Texts that are more than an expression.
const ALONE: &[(&str, &str)] = &[
    ("pattern-with-brace", "a: ${A/x} .. / ..}\n"),
    ("tabs-in-braces", "a: ${\tA\t}\n"),
    ("name-on-its-own-line", "a: ${\n  A\n  }\n"),
    ("carriage-return-in-braces", "a: ${\r\nA\r\n}\n"),
    ("in-a-comment", "# ${A} and $$\na: 1\n"),
    ("in-a-key", "${A}: 1\n"),
    ("makes-a-number", "a: ${P}\nb: '${P}'\n"),
    ("makes-a-list", "a: ${U:=[1, 2]}\n"),
    ("makes-a-map", "a: ${U:={b: 1}}\n"),
    ("makes-nothing", "a: ${E}\nb: 1\n"),
    ("makes-a-comment", "a: 1 ${U:=# gone}\n"),
    ("makes-lines", "a: 1\n${U:=b: 2\nc: 3}\n"),
    ("makes-documents", "a: 1\n${U:=---}\nb: 2\n"),
    ("makes-a-boolean", "a: ${U:=yes}\nb: \"${U:=yes}\"\n"),
    ("default-over-lines", "a: '${U:=x\n  y}'\n"),
    ("default-then-none", "a: ${U:=x}\nb: '${U}'\n"),
    ("dollars-at-ends", "a: x$\nb: $$\nc: $$$\n"),
    ("nul-byte", "a: 1\n# \0\nb: 2\n"),
    ("crlf", "a: ${A}\r\nb: ${U:=x}\r\n"),
    ("unicode-around", "ä: ö${A}ü\n"),
];

/// What `--list-variables` is asked of.
const LISTED: &[(&str, &str)] = &[
    ("none", "a: 1\n"),
    ("nothing", ""),
    ("one", "a: ${A}\n"),
    ("unset", "a: ${U}\n"),
    ("sorted", "a: ${C} ${A} ${B}\n"),
    ("twice", "a: ${A} ${A}\n"),
    ("nested-only", "a: ${A:=${B}}\n"),
    ("default-then-none", "a: ${Q:=x} ${Q}\n"),
    ("none-then-default", "a: ${A} ${A:=x}\n"),
    ("empty-default", "a: ${A:=}\n"),
    ("length", "a: ${#A}\n"),
    ("part", "a: ${A:0:3}\n"),
    ("replaced", "a: ${A/x/y}\n"),
    ("in-a-comment", "# ${A}\n"),
    ("escaped", "a: $${A}\n"),
    ("blanks", "a: ${ A }\n"),
    ("blanks-escaped", "a: $${ A }\n"),
    ("cases", "a: ${b} ${B} ${a} ${A}\n"),
    ("digits", "a: ${A10} ${A9} ${1}\n"),
    ("underscore", "a: ${_A} ${A_} ${A_B}\n"),
    ("not-yaml", "${A}: - x: [\n"),
    ("several-documents", "a: ${A}\n---\nb: ${B:=x}\n"),
    ("same-as-function", "a: ${A^^} ${A}\n"),
    ("default-in-default", "a: ${A:=${B:=${C}}}\n"),
    ("unicode", "a: ${Ä} ${Z}\n"),
];

/// What cannot be listed.
const NOT_LISTED: &[(&str, &str)] = &[
    ("open", "a: ${A\n"),
    ("no-name", "a: ${}\n"),
    ("bad-form", "a: ${A-x}\n"),
    ("open-default", "a: ${A:=x\n"),
];
