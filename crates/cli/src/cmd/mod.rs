//! The commands: one file each.

mod config;
mod decode;
mod doctor;
mod encode;
mod import;
mod layout;
mod mint;
mod serve;
mod source;
mod verify;
mod worker;

use clap::{Parser, Subcommand};

use crate::exit::Outcome;

/// Unique IDs for distributed systems: mint them, serve them, and read them.
#[derive(Debug, Parser)]
#[command(
    name = "snowmint",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "Exit codes: 0 done, 1 the answer is no, 2 wrong usage or configuration, \
                  3 refused for safety, 4 not available (a retry may help)."
)]
pub(crate) struct Snowmint {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Mint(Box<mint::Mint>),
    Decode(decode::Decode),
    Encode(encode::Encode),
    Layout(layout::Layout),
    Source(Box<source::Source>),
    Worker(worker::Worker),
    Import(Box<import::Import>),
    Config(config::Config),
    Doctor(doctor::Doctor),
    Verify(verify::Verify),
}

impl Snowmint {
    pub(crate) fn run(self) -> Outcome {
        match self.command {
            Command::Serve(command) => command.run(),
            Command::Mint(command) => command.run(),
            Command::Decode(command) => command.run(),
            Command::Encode(command) => command.run(),
            Command::Layout(command) => command.run(),
            Command::Source(command) => command.run(),
            Command::Worker(command) => command.run(),
            Command::Import(command) => command.run(),
            Command::Config(command) => command.run(),
            Command::Doctor(command) => command.run(),
            Command::Verify(command) => command.run(),
        }
    }
}
