//! Variables through `generate yaml`: every form that an expression can have, and what is listed as variable.

use super::{
    Unit,
    generate::{Dice, expression},
    harness::{Case, Fate},
};

/// How many expressions are made up at random.
const RANDOM: u64 = 200;

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

pub(crate) fn cases() -> Vec<Unit> {
    let case = |name: &str, text: &str| {
        // In a literal block, so that the value's own signs mean nothing.
        Case::new("envsubst", name, "generate yaml").envs(VALUES).input(format!("e: |-\n  {text}\n"))
    };
    let together = EXPRESSIONS.iter().map(|text| case(text, text));
    let random = (0..RANDOM).map(|seed| {
        let text = expression(&mut Dice::new(seed));
        case(&format!("random-{seed} {text}"), &text).fate(Fate::Either)
    });
    let mut units = vec![Unit::Batch(together.collect()), Unit::Batch(random.collect())];
    units.extend(REFUSED.iter().map(|text| case(text, text).refused().into()));
    units.extend(ALONE.iter().map(|(name, text)| {
        Case::new("envsubst", name, "generate yaml").envs(VALUES).input(*text).into()
    }));
    units.extend(LISTED.iter().map(|(name, text)| {
        Case::new("list-variables", name, "generate yaml --list-variables").envs(VALUES).input(*text).into()
    }));
    units.extend(NOT_LISTED.iter().map(|(name, text)| {
        Case::new("list-variables", name, "generate yaml --list-variables").input(*text).refused().into()
    }));
    units
}

/// Expressions that upstream takes; their names are themselves.
const EXPRESSIONS: &[&str] = &[
    // Nothing to replace.
    "plain", "$", "$A", "$(A)", "a$", "$ {A}", "\\$", "100%", "{A}", "{{A}}", "}", "a}b", "$1", "$-", "$/",
    // Escapes.
    "$$", "$$A", "$${A}", "$$$", "$$$${A}", "$$${A}", "$$$$", "a$$b", "x$${A}y${A}", "\\${A}", "$${ A }", "$$(A)",
    // Values.
    "${A}", "${B}", "${E}x", "${DOLLAR}", "${SHARP}", "${ONE_2}", "x${A}y${P}z", "${A}${B}", "${A}$${B}", "${A}$", "${A}}",
    "{${A}}", "${ A }", "${A }", "${ A}", "${\tA\t}", "${  A  }", "$ ${A}",
    // Length.
    "${#A}", "${#B}", "${#E}", "${#SHARP}", "${#DOLLAR}",
    // Case.
    "${A,}", "${A,,}", "${A^}", "${A^^}", "${M,}", "${M,,}", "${M^}", "${M^^}", "${SHARP^^}", "${SHARP,,}", "${SHARP^}",
    "${E^}", "${E,,}", "${A,^}", "${A^,}", "${PATHS^}",
    // Defaults.
    "${U:=x}", "${U=x}", "${U:-x}", "${U:?x}", "${U:+x}", "${A:=x}", "${A=x}", "${A:-x}", "${A:?x}", "${A:+x}",
    "${E:=x}", "${E=x}", "${E:-x}", "${E:?x}", "${E:+x}",
    "${U:=\"\"}", "${U:=''}", "${U:=a b}", "${U:= x }", "${U:=a:b}", "${U:=a=b}", "${U:=a/b}", "${U:=a#b}", "${U:=a%b}",
    "${U:=a,b}", "${U:=a^b}", "${U:=[1, 2]}", "${U:={a}", "${U:=a$b}", "${U:=a$$b}", "${U:=$}", "${U:=$$}", "${U:=a\\b}",
    "${U:=10.0.0.0/8}", "${U:=true}", "${U:='x y'}", "${U:='}'}", "${U:=x}y}", "${U:=x}${V:=y}", "${U:=http://x:1/y}",
    "${U:=ä}", "${U:=-}", "${U:-=}", "${U:=:}", "${U:=?}", "${U:=@}", "${U:=(x)}", "${U:=*}",
    // Defaults in defaults.
    "${U:=${A}}", "${U:=${V}}", "${U:=${V:=x}}", "${U:=a${A}b}", "${U:=${A}${B}}", "${U:=${V:=${A}}}",
    "${U:=${V:=${W:=x}}}", "${U:=a${V:=b${W:=c}d}e}", "${A:=${B}}", "${E:=${A}}", "${U:=a$${A}}", "${U:=${#A}}",
    "${U:=${A^^}}", "${U:=${A:1:2}}", "${U:=${A/l/L}}", "${U:=${A#a}}", "${U:=$A}", "${U:-${V:-${W:-}}}",
    // Parts.
    "${A:0}", "${A:1}", "${A:0:2}", "${A:1:3}", "${A:5}", "${A:9}", "${A:0:9}", "${A:2:0}", "${A:x}", "${A:1:x}",
    "${A:${P}}", "${A:${P}:${P}}", "${A:${N}}", "${A:${N}:2}", "${A: 1}", "${E:0:3}", "${E:1}", "${A:01}", "${A:1 }",
    "${SHARP:0:4}", "${A:${U}}", "${A:${A}}", "${LONG:3:3}", "${A:4:1}", "${A:4:2}",
    // Trimming.
    "${A#a}", "${A#al}", "${A#x}", "${A#*l}", "${A##*l}", "${A%a}", "${A%%a}", "${A%p*}", "${A%%p*}", "${A#*}", "${A##*}",
    "${A%*}", "${A%%*}", "${PATHS##*/}", "${PATHS#*/}", "${PATHS%/*}", "${PATHS%%/*}", "${PATHS%.*}", "${PATHS%%.*}",
    "${PATHS#*.}", "${PATHS##*.}", "${A#?}", "${A#??}", "${A%?}", "${A##?}", "${A#[a-c]}", "${A#[^x]}", "${A#[}", "${A#\\a}",
    "${A#${STAR}}", "${A%${U}}", "${E#a}", "${LONG#abc}", "${LONG##abc}", "${LONG%abc}", "${LONG##*b}", "${LONG%%b*}",
    "${SHARP#str}", "${SHARP%Ö}", "${WORDS% *}", "${WORDS%% *}", "${WORDS#* }", "${A#alpha}", "${A%alpha}", "${A%[a]}",
    // Replacing.
    "${A/l/L}", "${A//a/o}", "${A/a/o}", "${A/a/}", "${A//a/}", "${A/x/y}", "${A/#a/o}", "${A/%a/o}", "${A/#x/y}",
    "${A/%x/y}", "${A/#a/}", "${A/%a/}", "${A/a/b c}", "${A/alpha/}", "${A/a/\\/}", "${PATHS/\\//-}", "${PATHS//\\//-}",
    "${A/*/x}", "${A/?/x}", "${A/a/$}", "${A/a/$$}", "${A/a/${B}}", "${A/${P}/x}", "${A//${E}/x}", "${A/a/${U}}",
    "${LONG//abc/x}", "${LONG//bc/}", "${LONG/abc/abcd}", "${A/a//b}", "${A/a/b/c}", "${A//a//b}", "${SHARP/ß/ss}",
    "${A/a/\\\\}", "${WORDS// /_}", "${WORDS/ /}", "${A/l/:}", "${A/l/=}", "${A/l/#}", "${A/l/%}",
    // Names.
    "${1A:=x}", "${_A:=x}", "${Ä:=x}", "${a:=x}", "${A1:=x}", "${__:=x}", "${9:=x}",
];

/// Expressions that upstream refuses.
const REFUSED: &[&str] = &[
    "${", "${}", "${A", "${A:", "${A:}", "${A::3}", "${A:1:}", "${A#}", "${A##}", "${A%}", "${A%%}", "${U:=x", "${A-w}",
    "${A+w}", "${A?w}", "${#}", "${#A:=x}", "${A^x}", "${A,x}", "${A^^^}", "${A,,,}", "${ A:=x }", "${A.B}", "${A-B}", "${!A}",
    "${A B}", "${@}", "${*}", "${$}", "${A#${B}x}", "${A#x${B}}", "${A/x}", "${A@Q}", "${U}", "${U} ${V}", "${U:=}", "${U:-}",
    "${A}} ${U}", "${U^^}", "${#U}", "${A/x/${B}y}", "${A:1x${B}}", "${a b}", "${A[0]}", "${U} ${U:=x}", "${SHARP:0:5}",
];

/// Texts that are more than an expression.
const ALONE: &[(&str, &str)] = &[
    ("pattern-with-brace", "a: ${A/x} .. / ..}\n"),
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
const NOT_LISTED: &[(&str, &str)] =
    &[("open", "a: ${A\n"), ("no-name", "a: ${}\n"), ("bad-form", "a: ${A-x}\n"), ("open-default", "a: ${A:=x\n")];
