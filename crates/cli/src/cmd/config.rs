//! `snowmint config`: the configuration file, complete, and its schema.

use clap::{Args, Subcommand};

use crate::config::{schema, template};
use crate::terminal::exit::Outcome;
use crate::terminal::output::Output;

/// Print the complete configuration file, commented, with defaults.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint config > snowmint.toml
  snowmint config | grep -A3 data_dir
  snowmint config schema > snowmint.schema.json")]
pub(crate) struct ConfigCommand {
    #[command(subcommand)]
    part: Option<ConfigPart>,
}

#[derive(Debug, Subcommand)]
enum ConfigPart {
    /// Print the JSON Schema of the file, by which editors complete and check it.
    #[command(after_help = "Example:
  snowmint config schema > snowmint.schema.json
  Editors that use Taplo find it by a first line in snowmint.toml:
  #:schema ./snowmint.schema.json")]
    Schema,
}

impl ConfigCommand {
    pub(crate) fn run(self) -> Outcome {
        let mut out = Output::new();
        match self.part {
            None => out.text(&template())?,
            Some(ConfigPart::Schema) => out.text(&format!("{:#}\n", schema()))?,
        }
        out.flush()
    }
}
