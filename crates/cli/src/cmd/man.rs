//! `snowmint man`: manual pages, made from the text of `--help`.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, bold, roman};
use snowmint_wire::error::Code;

use super::dressed::EXIT_CODES_TITLE;
use crate::terminal::exit::{EXIT_CODES, Failure, Outcome};
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
            let written = std::fs::create_dir_all(&dir).and_then(|()| write_all(&root, &dir));
            return written.map_err(|error| {
                Failure::unavailable(format!("directory {dir:?} cannot be written: {error}"))
            });
        }
        let mut roff = Vec::new();
        render(find(&root, &self.command)?, &mut roff).map_err(Failure::internal)?;
        let mut out = Output::new();
        out.text(std::str::from_utf8(&roff).map_err(Failure::internal)?)?;
        out.flush()
    }
}

/// Writes a page for the command, and for each command below it.
fn write_all(command: &Command, dir: &Path) -> io::Result<()> {
    let mut page = Vec::new();
    render(command, &mut page)?;
    std::fs::write(dir.join(Page::new(command.clone()).get_filename()), page)?;
    let mut below = command.get_subcommands().filter(|below| !below.is_hide_set());
    below.try_for_each(|below| write_all(below, dir))
}

/// Writes the page of a command. The library knows no examples and no exit status.
fn render(command: &Command, out: &mut Vec<u8>) -> io::Result<()> {
    let page = Page::new(command.clone());
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    if command.has_subcommands() {
        page.render_subcommands_section(out)?;
    }
    let mut roff = Roff::new();
    if let Some(help) = command.get_after_help() {
        examples(&help.to_string(), &mut roff);
    }
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in EXIT_CODES {
        roff.control("TP", []);
        roff.text([bold(code.to_string())]);
        roff.text([roman(meaning)]);
    }
    roff.control("SH", ["VERSION"]);
    roff.text([roman(concat!("v", env!("CARGO_PKG_VERSION")))]);
    roff.to_writer(out)
}

/// Writes the examples: indented lines are code, and others prose.
fn examples(help: &str, roff: &mut Roff) {
    let help = help.split(EXIT_CODES_TITLE).next().unwrap_or_default();
    roff.control("SH", ["EXAMPLES"]);
    let lines = help.lines().filter(|line| !line.is_empty() && !line.starts_with("Example"));
    let mut is_code = false;
    for line in lines {
        if line.starts_with("  ") != is_code {
            is_code = !is_code;
            roff.control(if is_code { "nf" } else { "fi" }, []);
            if !is_code {
                roff.control("PP", []);
            }
        }
        roff.text([roman(line)]);
    }
    if is_code {
        roff.control("fi", []);
    }
}

/// Returns the command with this name, or this path of names.
fn find<'a>(root: &'a Command, names: &[String]) -> Outcome<&'a Command> {
    names.iter().try_fold(root, |command, name| {
        command.find_subcommand(name).ok_or_else(|| {
            let known: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
            Failure::no(
                Code::NotFound,
                format!(
                    "unknown command {} {}; expected one of {}",
                    command.get_name(),
                    name.escape_debug(),
                    known.join(", ")
                ),
            )
        })
    })
}
