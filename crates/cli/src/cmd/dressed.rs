//! The command line as users meet it. The types of the commands describe what is read. This adds
//! examples to each command, and a second spelling to options. Options that are keys of the
//! configuration also show their default and their variable.

use std::path::Path;

use clap::builder::StyledStr;
use clap::{Arg, Command};
use toml::Table;

use crate::config::{ConfigArgs, default_url, defaults};
use crate::terminal::exit::EXIT_CODES;

/// Title of the examples of a command.
const TITLE: &str = "Examples:";
/// Beginning of the last paragraph of the program's help.
pub(super) const EXIT_CODES_TITLE: &str = "Exit codes: ";

/// Returns what follows the options in the help of the program.
pub(super) fn after_help() -> String {
    let codes = EXIT_CODES.map(|(code, meaning)| format!("{code} {meaning}"));
    format!(
        "{TITLE}
  snowmint serve
  snowmint mint orders -n 3
  snowmint decode 175928847299117063
  snowmint explain store_rolled_back

{EXIT_CODES_TITLE}{}.",
        codes.join(", ")
    )
}

/// Adds everything to the program and its commands.
pub(super) fn dressed(root: Command) -> Command {
    let defaults = defaults();
    dress(root, "", "", &defaults)
}

/// Adds everything to a command, whose parent has the name and the examples.
fn dress(command: Command, parent: &str, examples: &str, defaults: &Table) -> Command {
    let path = format!("{parent}{} ", command.get_name());
    let own = command.get_after_help().map(ToString::to_string);
    let of_parent = commands(examples).filter(|example| format!("{example} ").contains(&path));
    let mut of_parent = of_parent.peekable();
    let command = match own {
        None if of_parent.peek().is_some() => {
            command.after_help(format!("{TITLE}\n{}", of_parent.collect::<Vec<_>>().join("\n")))
        }
        _ => command,
    };
    let own = own.unwrap_or_default();
    let has_config = command.get_arguments().any(|option| option.get_id() == "config");
    command
        .mut_args(|option| spelt(if has_config { keyed(option, defaults) } else { option }))
        .mut_subcommands(|below| dress(below, &path, &own, defaults))
}

/// Returns the commands among the lines of an after-help, each with the lines that continue it.
pub(super) fn commands(examples: &str) -> impl Iterator<Item = String> {
    let mut commands: Vec<String> = Vec::new();
    let mut continues = false;
    for line in examples.lines().filter(|line| line.starts_with("  ")) {
        match commands.last_mut() {
            Some(command) if continues => {
                command.push('\n');
                command.push_str(line);
            }
            _ => commands.push(line.to_owned()),
        }
        continues = line.ends_with('\\');
    }
    commands.into_iter()
}

/// Accepts the spelling of configuration files too: `--lead_max` for `--lead-max`.
fn spelt(option: Arg) -> Arg {
    match option.get_long() {
        Some(long) if long.contains('-') => {
            let other = long.replace('-', "_");
            option.alias(other)
        }
        _ => option,
    }
}

/// Shows default and variable of an option that overrides a key.
fn keyed(option: Arg, defaults: &Table) -> Arg {
    let Some(key) = option.get_long().and_then(|long| FlagKey::of(long, defaults)) else {
        return option;
    };
    let default = key.default.map(|default| format!(" [default: {default}]"));
    let shown = format!("{} [env: {}]", default.unwrap_or_default(), key.variable);
    let with = |help: &StyledStr| format!("{help}{shown}");
    let (short, long) = (option.get_help().map(with), option.get_long_help().map(with));
    let option = option.help(short.unwrap_or_default());
    match long {
        Some(long) => option.long_help(long),
        None => option,
    }
}

/// Key of the configuration that a flag overrides.
pub(crate) struct FlagKey {
    /// Environment variable of the key.
    pub(crate) variable: String,
    /// Default as a text, if there is one.
    pub(crate) default: Option<String>,
}

impl FlagKey {
    /// Returns the key of a flag, without its dashes.
    pub(crate) fn of(flag: &str, defaults: &Table) -> Option<Self> {
        let mut keys = ConfigArgs::KEYS.iter().chain(&ConfigArgs::SERVE_KEYS);
        let (key, _) = keys.find(|(_, name)| name.strip_prefix("--") == Some(flag))?;
        let (section, name) = key.split_once('.')?;
        let text = |section: &str, name: &str| defaults.get(section)?.get(name)?.as_str();
        let default = match (*key, text(section, name)) {
            ("store.url", _) => text("server", "data_dir").map(|dir| default_url(Path::new(dir))),
            (_, Some(text)) if !text.is_empty() => Some(text.to_owned()),
            _ => None,
        };
        let variable = format!("SNOWMINT_{}", key.to_uppercase().replace('.', "__"));
        Some(Self { variable, default })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continued_example_is_one_command() {
        let text = "Examples:\n  a b \\\n      c\n  d\n\nA text:\n  e\n";
        assert_eq!(commands(text).collect::<Vec<_>>(), ["  a b \\\n      c", "  d", "  e"]);
    }
}
