//! `snowmint completions`: scripts with which a shell asks this program for completions.

mod bash;

use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use clap_complete::CompleteEnv;
use clap_complete::env::{EnvCompleter, Fish, Powershell, Shells, Zsh};

use self::bash::JoinedBash;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::output::Output;

/// Variable by which a script asks for completions. Variables of the configuration begin with the
/// program's name.
const ASKS: &str = "_SNOWMINT_COMPLETE";
const PROGRAM: &str = "snowmint";
const SHELLS: [&dyn EnvCompleter; 4] = [&JoinedBash, &Zsh, &Fish, &Powershell];
/// Addition for zsh, which loads the script at the first use: that use completes already.
const ZSH_AT_ONCE: &str = r#"
if [ "$funcstack[1]" = "_snowmint" ]; then
    _clap_dynamic_completer_snowmint "$@"
fi
"#;

/// Print the script with which a shell completes.
///
/// Completes commands, options, kinds, layouts, text forms and codes, and the sources of the server
/// of --server. The script calls snowmint, which must be in the PATH.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint completions bash > ~/.local/share/bash-completion/completions/snowmint
  snowmint completions zsh > \"${fpath[1]}/_snowmint\"
  snowmint completions fish > ~/.config/fish/completions/snowmint.fish
  snowmint completions powershell >> $PROFILE")]
pub(crate) struct Completions {
    /// Shell to complete for.
    #[arg(value_parser = PossibleValuesParser::new(SHELLS.map(|shell| shell.name())))]
    shell: String,
}

impl Completions {
    pub(crate) fn run(self) -> Outcome {
        let mut script = Vec::new();
        let completer = Shells(&SHELLS).completer(&self.shell);
        let completer = completer.ok_or_else(|| Failure::internal("no script for this shell"))?;
        let written = completer.write_registration(ASKS, PROGRAM, PROGRAM, PROGRAM, &mut script);
        written.map_err(Failure::internal)?;
        let mut script = String::from_utf8(script).map_err(Failure::internal)?;
        if self.shell == Zsh.name() {
            script.push_str(ZSH_AT_ONCE);
        }
        let mut out = Output::new();
        out.text(&script)?;
        out.flush()
    }
}

/// Completes, and ends the process, if a script asks for it.
pub(super) fn complete(described: fn() -> Command) {
    CompleteEnv::with_factory(described).var(ASKS).shells(Shells(&SHELLS)).complete();
}
