//! `snowmint man`: manual pages, made from the text of `--help`.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man as Page;

use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::output::Output;

/// Print a manual page, or write all of them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint man | man -l -
  snowmint man source define | man -l -
  snowmint man --dir /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// Command to describe; none: all commands, in short.
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Vec<String>,
    /// Directory to write a page for each command into; created if missing.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    /// Prints or writes pages of a program with this root command.
    pub(crate) fn run(self, root: Command) -> Outcome {
        // Building makes the names of sub-commands in the heads of their pages.
        let mut root = root.disable_help_subcommand(true);
        root.build();
        if let Some(dir) = self.dir {
            let written =
                std::fs::create_dir_all(&dir).and_then(|()| clap_mangen::generate_to(root, &dir));
            return written.map_err(|error| {
                Failure::unavailable(format!("directory {dir:?} cannot be written: {error}"))
            });
        }
        let page = Page::new(find(&root, &self.command)?.clone());
        let mut roff = Vec::new();
        page.render(&mut roff).map_err(Failure::internal)?;
        let mut out = Output::new();
        out.text(std::str::from_utf8(&roff).map_err(Failure::internal)?)?;
        out.flush()
    }
}

/// Returns the command with this name, or this path of names.
fn find<'a>(root: &'a Command, names: &[String]) -> Outcome<&'a Command> {
    names.iter().try_fold(root, |command, name| {
        command.find_subcommand(name).ok_or_else(|| {
            let known: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
            Failure::no(format!(
                "unknown command {} {}; expected one of {}",
                command.get_name(),
                name.escape_debug(),
                known.join(", ")
            ))
        })
    })
}
