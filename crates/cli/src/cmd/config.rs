//! `snowmint config`: the configuration file, complete.

use clap::Args;

use crate::config::template;
use crate::terminal::exit::Outcome;
use crate::terminal::output::Output;

/// Print the complete configuration file, commented, with defaults.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint config > snowmint.toml
  snowmint config | grep -A3 data_dir")]
pub(crate) struct ConfigCommand {}

impl ConfigCommand {
    #[allow(clippy::unused_self, reason = "the form that every command has")]
    pub(crate) fn run(self) -> Outcome {
        let mut out = Output::new();
        out.text(&template())?;
        out.flush()
    }
}
