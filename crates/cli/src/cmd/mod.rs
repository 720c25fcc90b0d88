//! The commands: one file each.

mod bench;
mod completions;
mod config;
mod decode;
mod doctor;
pub(crate) mod dressed;
mod encode;
pub(crate) mod explain;
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
mod values;
mod verify;
mod worker;

use std::ffi::OsString;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::dressed::{after_help, dressed};
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
    after_help = after_help()
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
    Explain(explain::Explain),
    Completions(completions::Completions),
    Man(man::Man),
}

/// Completes, and ends the process, if a shell asks for it.
pub(crate) fn complete() {
    completions::complete(Snowmint::described);
}

impl Snowmint {
    /// Returns the command line with everything that its help shows.
    pub(crate) fn described() -> clap::Command {
        dressed(Self::command())
    }

    /// Reads the command line.
    pub(crate) fn read(arguments: &[OsString]) -> Result<Self, clap::Error> {
        let matches = Self::described().try_get_matches_from(arguments)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut named_by(&matches)))
    }

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
            Command::Explain(command) => command.run(),
            Command::Completions(command) => command.run(),
            Command::Man(command) => command.run(Self::described()),
        }
    }
}

/// Returns the command that a command line names: usage is shown for it.
fn named_by(mut matches: &ArgMatches) -> clap::Command {
    let mut root = Snowmint::described();
    root.build();
    let mut command = &root;
    while let Some((name, below)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { break };
        (command, matches) = (found, below);
    }
    command.clone()
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind::{InvalidValue, MissingRequiredArgument, ValueValidation};
    use clap::error::{ContextKind, ContextValue};

    use super::*;

    #[test]
    fn usage_after_a_wrong_key_is_that_of_its_command() {
        for (line, usage) in [
            (&["source", "define", "x", "--kind", "bogus"][..], "snowmint source define [OPTIONS]"),
            (&["source", "alter", "x", "--first", "abc"], "snowmint source alter [OPTIONS]"),
        ] {
            let line = [&["snowmint"], line].concat();
            let error = Snowmint::read(&line.into_iter().map(OsString::from).collect::<Vec<_>>());
            let text = error.unwrap_err().to_string();
            assert!(text.contains(&format!("\n\nUsage: {usage}")), "{text}");
            assert!(!text.contains("\n\n\n"), "{text}");
        }
    }

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

    /// Returns every command of the program, parents first.
    fn all(command: &clap::Command) -> Vec<&clap::Command> {
        let below = command.get_subcommands().flat_map(all);
        [command].into_iter().chain(below).collect()
    }

    fn built() -> clap::Command {
        let mut root = Snowmint::described().disable_help_subcommand(true);
        root.build();
        root
    }

    /// Returns the words of each call of the program in a line that a shell reads.
    fn calls(example: &str) -> Vec<Vec<OsString>> {
        let line = example.replace("\\\n", " ");
        let calls = line.split(" | ").filter_map(|part| Some(&part[part.find("snowmint ")?..]));
        let words = |call: &str| {
            let end = call.find(['<', '>']).unwrap_or(call.len());
            let words = shlex::split(&call[..end]).unwrap().into_iter();
            // The URL in such a place is read with the command line.
            let url = |word: String| match word.starts_with("env:") || word.starts_with("file:") {
                true => "mysql://ids@db/ids".into(),
                false => word.into(),
            };
            words.map(url).collect()
        };
        calls.map(words).collect()
    }

    #[test]
    fn every_command_has_examples_that_it_accepts() {
        let root = built();
        for command in all(&root) {
            let name = command.get_bin_name().unwrap_or("snowmint");
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let mut own = 0;
            for example in dressed::commands(&help).filter(|line| line.contains("snowmint ")) {
                own += usize::from(format!("{example} ").contains(&format!("{name} ")));
                for call in calls(&example) {
                    let read = Snowmint::read(&call);
                    assert!(read.is_ok(), "{example}: {}", read.unwrap_err());
                }
            }
            assert!(own > 0, "{name} has no example of its own: {help:?}");
        }
    }

    /// The option of the file is the one that no variable has.
    #[test]
    fn every_option_that_is_a_key_shows_default_and_variable() {
        let root = built();
        let mut seen = 0;
        for command in all(&root) {
            let name = command.get_bin_name().unwrap_or("snowmint");
            if !command.get_arguments().any(|option| option.get_id() == "config") {
                continue;
            }
            for (long, part) in [
                ("data-dir", "[default: ./snowmint-data] [env: SNOWMINT_SERVER__DATA_DIR]"),
                ("store", "snowmint.db] [env: SNOWMINT_STORE__URL]"),
                ("http", "[default: 127.0.0.1:7700] [env: SNOWMINT_SERVER__HTTP]"),
            ] {
                let mut options = command.get_arguments();
                let Some(option) = options.find(|option| option.get_long() == Some(long)) else {
                    continue;
                };
                let helps = [option.get_help(), option.get_long_help()];
                for help in helps.into_iter().flatten() {
                    let help = help.to_string();
                    assert!(help.ends_with(part), "{name} --{long}: {help}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 10, "{seen}");
    }

    #[test]
    fn every_option_is_read_in_both_spellings() {
        let root = built();
        let mut seen = 0;
        for command in all(&root) {
            for option in command.get_arguments() {
                let long = option.get_long().unwrap_or_default();
                assert!(!long.contains('_'), "{long} is not in the spelling of options");
                if long.contains('-') {
                    let other = long.replace('-', "_");
                    let aliases = option.get_all_aliases().unwrap_or_default();
                    assert!(aliases.contains(&other.as_str()), "{long}: {aliases:?}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 50, "{seen}");
        for option in ["--lead-max", "--lead_max", "--on-rollback", "--on_rollback"] {
            let value = if option.starts_with("--lead") { "10s" } else { "wait" };
            let line = ["snowmint", "source", "alter", "orders", option, value];
            assert!(Snowmint::read(&line.map(OsString::from)).is_ok(), "{option}");
        }
    }

    /// Returns the longs of the options that a line lacks.
    fn lacking(line: &[OsString]) -> Vec<String> {
        let Err(error) = Snowmint::read(line) else { return Vec::new() };
        match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::Strings(all)) if error.kind() == MissingRequiredArgument => {
                let longs = all.iter().filter_map(|one| one.strip_prefix("--"));
                longs.map(|long| long.split([' ', '=']).next().unwrap().to_owned()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns a line of a command with these options, each with a value that it accepts.
    fn line(command: &clap::Command, options: &[&clap::Arg]) -> Vec<OsString> {
        const VALUES: [&str; 8] = ["x", "1", "1s", "1=x", "x=1", "dns", "twitter", "+1h"];
        let name = command.get_bin_name().unwrap_or("snowmint");
        let mut line: Vec<OsString> = name.split(' ').map(OsString::from).collect();
        for option in options {
            line.push(format!("--{}", option.get_long().unwrap()).into());
            if option.get_action().takes_values() {
                let is_read = |value: &&&str| {
                    let line: Vec<_> = line.iter().cloned().chain([value.into()]).collect();
                    let read = Snowmint::read(&line).map_err(|error| error.kind());
                    !matches!(read, Err(ValueValidation | InvalidValue))
                };
                let value = VALUES.iter().find(is_read).unwrap_or(&"x");
                line.push(value.into());
            }
        }
        line
    }

    /// An option that another one needs, and that a third one excludes, would not be missed: the
    /// first one would have no effect, without a word.
    #[test]
    fn option_without_the_one_that_it_needs_is_rejected() {
        let (root, mut seen, mut wrong) = (built(), 0, Vec::new());
        for command in all(&root) {
            let options: Vec<_> =
                command.get_arguments().filter(|one| one.get_long().is_some()).collect();
            let always = lacking(&line(command, &[]));
            for option in &options {
                let lacking = lacking(&line(command, &[option]));
                for needed in lacking.iter().filter(|long| !always.contains(long)) {
                    let needed = |one: &&&clap::Arg| one.get_long() == Some(needed);
                    let needed = options.iter().find(needed).unwrap();
                    let own = command.get_arg_conflicts_with(option);
                    for other in command.get_arg_conflicts_with(needed) {
                        seen += 1;
                        let is_rejected = own.iter().any(|one| one.get_id() == other.get_id());
                        let [option, other, needed] =
                            [*option, other, needed].map(|one| one.get_id().as_str());
                        let name = command.get_bin_name().unwrap_or("snowmint");
                        if !is_rejected {
                            wrong.push(format!("{name}: {option} needs {needed}, not {other}"));
                        }
                    }
                }
            }
        }
        assert!(wrong.is_empty() && seen > 10, "{seen}: {wrong:#?}");
    }
}
