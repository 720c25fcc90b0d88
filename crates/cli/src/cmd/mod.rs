//! The commands: one file each.

mod bench;
mod completions;
mod config;
mod decode;
mod doctor;
mod encode;
mod health;
#[cfg(feature = "import")]
mod import;
mod layout;
mod man;
mod mint;
mod serve;
mod source;
mod token;
mod top;
mod verify;
mod worker;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::terminal::exit::Outcome;

/// Unique IDs for distributed systems: mint them, serve them, and read them.
#[derive(Debug, Parser)]
#[command(
    name = "snowmint",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "Exit codes: 0 done, 1 negative result, 2 wrong usage or configuration, \
                  3 rejected for safety, 4 not available (a retry may help)."
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
    Token(token::Token),
    #[cfg(feature = "import")]
    Import(Box<import::Import>),
    Config(config::ConfigCommand),
    Bench(Box<bench::Bench>),
    Doctor(doctor::Doctor),
    Health(health::Health),
    Top(top::Top),
    Verify(verify::Verify),
    Completions(completions::Completions),
    Man(man::Man),
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
            Command::Token(command) => command.run(),
            #[cfg(feature = "import")]
            Command::Import(command) => command.run(),
            Command::Config(command) => command.run(),
            Command::Bench(command) => command.run(),
            Command::Doctor(command) => command.run(),
            Command::Health(command) => command.run(),
            Command::Top(command) => command.run(),
            Command::Verify(command) => command.run(),
            Command::Completions(command) => command.run(Self::command()),
            Command::Man(command) => command.run(Self::command()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands that print files, only a first line, or a screen.
    const WITHOUT_JSON: [&str; 5] = ["serve", "config schema", "top", "completions", "man"];

    fn check(command: &clap::Command, path: &str) {
        let mut below = command.get_subcommands().peekable();
        if below.peek().is_some() {
            return below.for_each(|one| check(one, &format!("{path} {}", one.get_name())));
        }
        let has = command.get_arguments().any(|argument| argument.get_long() == Some("json"));
        let wanted = !WITHOUT_JSON.contains(&path.trim());
        assert_eq!(has, wanted, "--json:{path}");
    }

    #[test]
    fn every_command_speaks_to_machines() {
        check(&Snowmint::command(), "");
    }
}
