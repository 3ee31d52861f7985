//! `capstan completion`.

use clap_complete::env::Shells;

use crate::{
    cli::completion::{CompletionArgs, Shell},
    complete,
    error::CommandError,
    printer::Printer,
    program,
};

pub(crate) fn run(args: &CompletionArgs, printer: Printer) -> Result<(), CommandError> {
    let shell = args.shell.as_str();
    let shells = Shells::builtins();
    let Some(completer) = shells.completer(shell) else {
        return Err(CommandError::plain(format!("there is no completion for {shell}")));
    };
    let name = program::name();
    let mut script = Vec::new();
    completer
        .write_registration(complete::VARIABLE, name, name, name, &mut script)
        .map_err(|error| CommandError::new("cannot write the script", error))?;
    if args.shell == Shell::Bash {
        script.extend_from_slice(BASH_WORDS.replace("NAME", name).as_bytes());
    }
    printer.data(&String::from_utf8_lossy(&script))
}

/// Bash breaks words at `:` and `=`, which stand within `name:version` and `--flag=value`. They are put together before
/// the completion is asked, and what bash takes for earlier words is taken off its answers.
const BASH_WORDS: &str = r#"
_NAME() {
    local line=${COMP_LINE:0:COMP_POINT} words=() word gap
    for word in "${COMP_WORDS[@]:0:COMP_CWORD}" ""; do
        gap=${line%%[![:space:]]*}
        line=${line#"$gap"}
        if [[ -n $gap || ${#words[@]} -eq 0 ]]; then
            words+=("")
        fi
        words[${#words[@]}-1]+=$word
        line=${line#"$word"}
    done
    local COMP_CWORD=$((${#words[@]} - 1))
    local current=${words[COMP_CWORD]}$line
    words[COMP_CWORD]=$current
    local COMP_WORDS=("${words[@]}")
    _clap_complete_NAME "$1" "$current" "$3"
    COMPREPLY=("${COMPREPLY[@]#"${current%"$2"}"}")
}
complete -o nospace -o bashdefault -o nosort -F _NAME NAME 2> /dev/null ||
    complete -o nospace -o bashdefault -F _NAME NAME
"#;
