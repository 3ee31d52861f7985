//! Flags of `completion`.

use clap::{Args, ValueEnum};

#[derive(Args, Debug)]
pub(crate) struct CompletionArgs {
    /// Shell that the script is for
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// source <(capstan completion bash), or put it into /etc/bash_completion.d
    Bash,
    /// source <(capstan completion zsh), or put it into a folder of $fpath as _capstan
    Zsh,
    /// capstan completion fish | source, or put it into ~/.config/fish/completions/capstan.fish
    Fish,
}

impl Shell {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        }
    }
}
