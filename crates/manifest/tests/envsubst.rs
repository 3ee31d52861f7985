//! Variables are substituted as Go substitutes them, and errors name their places.

use std::collections::BTreeMap;

use capstan_manifest::Place;
use capstan_manifest::envsubst::{
    EvaluationProblem, ExpandError, MAX_RENDERED_SIZE, RenderError, SyntaxError, SyntaxProblem, Template,
    Variable, expand,
};
use serde_json::Value;

/// One JSON object a line: a text and values of our making, the variables that Go finds in it, and what it
/// makes of it, once as a manifest and once as a URL.
const SUBSTITUTED_BY_GO: &str = include_str!("fixtures/substituted-by-go.jsonl");

#[test]
fn substitutes_as_go_does() {
    for line in SUBSTITUTED_BY_GO.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let lookup = |name: &str| case["values"][name].as_str().map(str::to_owned);
        let text = case["text"].as_str().unwrap();
        let parsed = Template::parse(text);
        let rendered = parsed.as_ref().map_err(Failure::from).and_then(|template| {
            assert_eq!(defaults(template), case["variables"], "the variables of {line}");
            template.render(&lookup).map_err(|error| Failure::from(&error))
        });
        match case["error"].as_str() {
            None => assert_eq!(rendered.unwrap(), case["result"].as_str().unwrap(), "{line}"),
            Some(error) => assert_eq!(rendered.unwrap_err().name(), error, "{line}"),
        }
        assert_eq!(expand(text, &lookup).ok().as_deref(), case["expanded"].as_str(), "expanding {line}");
    }
}

fn defaults(template: &Template) -> Value {
    template.variables().iter().map(|(name, variable)| (name.clone(), variable.default.clone())).collect()
}

/// The failures that the fixture distinguishes.
#[derive(Debug)]
enum Failure {
    Syntax,
    Missing,
    Crash,
    BrokenCharacter,
    LongPattern,
    TooLarge,
}

impl Failure {
    fn name(&self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Missing => "missing",
            Self::Crash => "crash",
            Self::BrokenCharacter => "broken character",
            Self::LongPattern => "long pattern",
            Self::TooLarge => "too large",
        }
    }
}

impl From<&SyntaxError> for Failure {
    fn from(error: &SyntaxError) -> Self {
        match error.problem {
            SyntaxProblem::NegativeLength => Self::Crash,
            _ => Self::Syntax,
        }
    }
}

impl From<&RenderError> for Failure {
    fn from(error: &RenderError) -> Self {
        match error {
            RenderError::Missing(_) => Self::Missing,
            RenderError::Evaluation(error) => match error.problem {
                EvaluationProblem::NegativeLength { .. } => Self::Crash,
                EvaluationProblem::BrokenCharacter => Self::BrokenCharacter,
                EvaluationProblem::LongPattern { .. } => Self::LongPattern,
                EvaluationProblem::TooLarge { .. } => Self::TooLarge,
            },
        }
    }
}

#[test]
fn tells_what_is_wrong_where_and_what_to_write_instead() {
    let dollars = "for a dollar sign that begins no variable, write `$$`";
    let characters = format!("a name is made of letters, digits and `_`; {dollars}");
    let spaces = "spaces can stand only around a bare name, and nowhere in URLs and paths";
    let mixed =
        "only the word of a default, like `${A:-x${B}y}`, can be put together from text and variables";
    let unclosed = format!("close it with `}}`; {dollars}");
    let case_forms = "only `,` `,,` `^` and `^^` change the case, and of the whole value or its first letter";
    let positions = "behind `:` stands a position in bytes, like `${A:2}`; a default is written `${A:-word}`";
    for (text, message, hint) in [
        ("${}", "line 1, column 1: `${}`: there is no variable name behind the brace", dollars),
        ("a\n  é ${-}", "line 2, column 5: `${-}`: there is no variable name behind the brace", dollars),
        ("${#}", "line 1, column 1: `${#}`: there is no variable name behind the brace", dollars),
        (
            "${ A:=x }",
            "line 1, column 1: `${ A:=x }`: there is no variable name behind the brace",
            &format!("{spaces}: write `${{A:=x}}`"),
        ),
        ("${A := x}", "line 1, column 1: `${A := x}`: ' ' cannot follow the name A", spaces),
        (
            "${ B } ${A }\n${ C }${VAR$FOO}",
            "line 2, column 7: `${VAR$FOO}`: '$' cannot follow the name VAR",
            "a name cannot contain `$`; two variables side by side are written `${VAR}${FOO}`",
        ),
        (
            "${ VAR$ }",
            "line 1, column 1: `${ VAR$ }`: '$' cannot follow the name VAR",
            "a name cannot contain `$`; two variables side by side are written `${VAR}${OTHER}`",
        ),
        (
            "${A-w}",
            "line 1, column 1: `${A-w}`: '-' cannot follow the name A",
            "a default is written with a colon: `${A:-w}`",
        ),
        (
            "${A?no value}",
            "line 1, column 1: `${A?no value}`: '?' cannot follow the name A",
            "a default is written with a colon: `${A:-no value}`",
        ),
        ("${A[0]}", "line 1, column 1: `${A[0]}`: '[' cannot follow the name A", &characters),
        ("${#A[@]}", "line 1, column 1: `${#A[@]}`: '[' cannot follow the name A", &characters),
        ("${A^x}", "line 1, column 1: `${A^x}`: 'x' cannot follow `^`", case_forms),
        ("${A,,,}", "line 1, column 1: `${A,,,}`: ',' cannot follow `,,`", case_forms),
        ("${A:é}", "line 1, column 1: `${A:é}`: 'é' cannot follow `:`", positions),
        ("x ${A", "line 1, column 3: `${A`: the closing brace is missing", &unclosed),
        ("${A:=b\nc", "line 1, column 1: `${A:=b…`: the closing brace is missing", &unclosed),
        (
            "${A:}",
            "line 1, column 1: `${A:}`: an argument of `:` is empty",
            "write a position in bytes, like `${A:2}`, or also a length, like `${A:2:5}`",
        ),
        (
            "${A##}",
            "line 1, column 1: `${A##}`: an argument of `##` is empty",
            "write `${A##pattern}`, where the pattern may have `*` and `?`",
        ),
        ("${A///x}", "line 1, column 1: `${A///x}`: an argument of `//` is empty", "write `${A//old/new}`"),
        (
            "${A#${B}x}",
            "line 1, column 1: `${A#${B}x}`: an argument of `#` is either text or one variable, not both",
            mixed,
        ),
        (
            "${A/x${B}/y}",
            "line 1, column 1: `${A/x${B}/y}`: an argument of `/` is either text or one variable, not both",
            mixed,
        ),
        (
            "${A/x}",
            "line 1, column 1: `${A/x}`: the `/` before the new text is missing",
            "write `${A/old/new}`, or `${A/old/}` to remove the old text",
        ),
        (
            "${A:0:-1}",
            "line 1, column 1: `${A:0:-1}`: the length is negative",
            "only a position can be counted from the end, not a length",
        ),
        (
            "${A:=${B:=this default is far too long for a message ${C-}}}",
            "line 1, column 54: `${C-}`: '-' cannot follow the name C",
            "a default is written with a colon: `${C:-}`",
        ),
        (
            "${A this goes on and on until nobody wants to read it}",
            "line 1, column 1: `${A this goes on and on until nobody wan…`: ' ' cannot follow the name A",
            spaces,
        ),
    ] {
        let error = Template::parse(text).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(error.correction().as_deref(), Some(hint), "{text}");
    }
}

#[test]
fn refuses_what_is_too_deep() {
    let nested = |depth: usize| "${A:=".repeat(depth) + &"}".repeat(depth);
    assert_eq!(Template::parse(&nested(100)).unwrap().render(&|_| Some("a".to_owned())), Ok("a".to_owned()));
    let error = Template::parse(&nested(101)).unwrap_err();
    assert_eq!(error.problem, SyntaxProblem::TooDeep);
    assert_eq!(error.place, Place { line: 1, column: 501 });
    assert!(Template::parse(&nested(100_000)).is_err());
}

#[test]
fn finds_every_use() {
    let template =
        Template::parse("# ${A} é ${ B }\n${C:=x${A}${D:-y${E}}} ${C} $${A}\r\n${ A}\t${D/x/y}").unwrap();
    let places = |variables: &BTreeMap<String, _>| -> Vec<(String, Vec<(usize, usize)>)> {
        let variable = |variable: &Variable| {
            (variable.name.clone(), variable.places.iter().map(|at| (at.line, at.column)).collect())
        };
        variables.values().map(variable).collect()
    };
    assert_eq!(
        places(template.variables()),
        [
            ("A".to_owned(), vec![(1, 3), (2, 7), (3, 1)]),
            ("B".to_owned(), vec![(1, 10)]),
            ("C".to_owned(), vec![(2, 1), (2, 24)]),
            ("D".to_owned(), vec![(2, 11), (3, 7)]),
        ]
    );
    assert_eq!(places(template.nested_variables()), [("E".to_owned(), vec![(2, 17)])]);
    let required: Vec<bool> = template.variables().values().map(Variable::is_required).collect();
    assert_eq!(required, [true, true, false, false]);
}

#[test]
fn names_all_that_is_missing_at_once() {
    let missing = |text| Template::parse(text).unwrap().render(&|_| None).unwrap_err().to_string();
    assert_eq!(missing("${A}"), "no value is set for the variable A (line 1, column 1)");
    assert_eq!(
        missing("${B}${A}${B:=x}\n${A^}${C:=c}${A} ${D:-${A}}"),
        "no value is set for the variables A (line 1, column 5; line 2, column 1; line 2, column 13; and 1 \
         more), B (line 1, column 1; line 1, column 9)"
    );
}

#[test]
fn tells_which_value_a_function_cannot_take() {
    let lookup = |name: &str| match name {
        "LENGTH" => Some("-2".to_owned()),
        "WORD" => Some("é".to_owned()),
        "LONG" => Some("x".repeat(4097)),
        _ => None,
    };
    for (text, message) in [
        ("\n ${WORD:0:${LENGTH}}", "line 2, column 2: variable WORD: the length -2 is negative"),
        ("${X:=${WORD:0:${LENGTH}}}", "line 1, column 6: variable WORD: the length -2 is negative"),
        (
            "${WORD} ${WORD:1} ${WORD}",
            "line 1, column 9: variable WORD: the value is cut in the middle of a character",
        ),
        ("${WORD%%${LONG}}", "line 1, column 1: variable WORD: the pattern is longer than 4096 bytes"),
        ("${WORD#?}", "line 1, column 1: variable WORD: the value is cut in the middle of a character"),
    ] {
        let RenderError::Evaluation(error) = Template::parse(text).unwrap().render(&lookup).unwrap_err()
        else {
            panic!("{text} misses nothing");
        };
        assert_eq!(error.to_string(), message);
        assert!(!error.correction().is_empty());
        assert_eq!(expand(text, &lookup), Err(ExpandError::Evaluation(error)));
    }
}

/// Each replacement inside of another multiplies the text.
fn nested(depth: usize, innermost: &str) -> String {
    (0..depth).fold(innermost.to_owned(), |text, _| format!("${{A//a/{text}}}"))
}

#[test]
fn refuses_a_text_that_its_variables_blow_up() {
    let lookup = |name: &str| match name {
        "A" => Some("a".repeat(10)),
        "HALF" => Some("h".repeat(MAX_RENDERED_SIZE / 2)),
        _ => None,
    };
    let limit = MAX_RENDERED_SIZE;
    for (text, place) in [
        (nested(40, "b"), "line 1, column 225: variable A"),
        (nested(40, "b").replace("//a/", "//${E}/"), "line 1, column 321: variable A"),
        (format!("\n{}", nested(70, "${HALF:0:4}")), "line 2, column 435: variable A"),
        ("${HALF} ${HALF}".to_owned(), "line 1, column 9: variable HALF"),
        ("${HALF}${HALF}${HALF}".to_owned(), "line 1, column 15: variable HALF"),
        ("${X:=${HALF}${HALF}}".to_owned(), "line 1, column 1: variable X"),
    ] {
        assert!(text.len() < 700);
        let error = Template::parse(&text).unwrap().render(&lookup).unwrap_err();
        assert_eq!(error.to_string(), format!("{place}: the rendered text is larger than {limit} bytes"));
    }
    for (text, size) in [
        (nested(6, "b"), 1_000_000),
        ("${HALF}${HALF}".to_owned(), limit),
        // The text itself is in memory already.
        ("b".repeat(limit + 1), limit + 1),
    ] {
        assert_eq!(Template::parse(&text).unwrap().render(&lookup).unwrap().len(), size);
    }
}

#[test]
fn expands_urls() {
    let lookup = |name: &str| (name == "home").then(|| "/home/me".to_owned());
    assert_eq!(expand("${home}/${UNSET}x", &lookup), Ok("/home/me/x".to_owned()));
    assert_eq!(expand("file://${home:=a}/${UNSET:=b}", &lookup), Ok("file:///home/me/b".to_owned()));
    assert_eq!(
        expand("https://x/${ home }", &lookup).unwrap_err().to_string(),
        "line 1, column 11: `${ home }`: there is no variable name behind the brace"
    );
}

#[test]
fn values_are_put_in_as_they_are() {
    let template = Template::parse("a: ${A}").unwrap();
    assert_eq!(template.render(&|_| Some("${A} $$ # b".to_owned())), Ok("a: ${A} $$ # b".to_owned()));
}
