//! `snowmint completions`: scripts with which a shell completes commands and options.

use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;

use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::output::Output;

/// Print the completions of a shell.
///
/// Covers commands and options, but not the names of sources.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint completions bash > ~/.local/share/bash-completion/completions/snowmint
  snowmint completions zsh > \"${fpath[1]}/_snowmint\"
  snowmint completions fish > ~/.config/fish/completions/snowmint.fish")]
pub(crate) struct Completions {
    /// Shell to complete for.
    #[arg(value_enum)]
    shell: Of,
}

/// Supported shells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Of {
    Bash,
    Zsh,
    Fish,
}

impl From<Of> for Shell {
    fn from(shell: Of) -> Self {
        match shell {
            Of::Bash => Self::Bash,
            Of::Zsh => Self::Zsh,
            Of::Fish => Self::Fish,
        }
    }
}

impl Completions {
    /// Prints the completions of a program with this root command.
    pub(crate) fn run(self, mut root: Command) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(Shell::from(self.shell), &mut root, "snowmint", &mut script);
        let script = String::from_utf8(script).map_err(Failure::internal)?;
        let mut out = Output::new();
        out.text(&script)?;
        out.flush()
    }
}
