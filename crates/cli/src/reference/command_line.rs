//! The page of the command line, made from the options of the commands.

use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory as _};

use super::markdown::{coded, filled, linked};
use crate::cmd::Snowmint;
use crate::cmd::dressed::FlagKey;
use crate::config::defaults;
use crate::terminal::exit::EXIT_CODES;

const HEAD: &str = "\
# Command line: every command and option

<!-- Made from the options of the commands: CONTRIBUTING.md says how. -->

Results go to standard output, and everything else to standard error. A closed pipe is not an error, and progress bars
appear on a terminal only. Every command has `--help`, with the text of this page; `snowmint man COMMAND | man -l -`
shows it as a manual page, and `snowmint completions bash` makes a shell complete it. An error ends with its
[code](errors.md), which `snowmint explain` explains. Options are also read as keys are spelt: `--lead_max` is
`--lead-max`. Tables fit the terminal, and are whole in a pipe. `NO_COLOR=1` switches colour off.
[commands.md](commands.md) has signals, keys of `--json` and other rules; [names.md](names.md) has the forms of layouts,
URLs and formats.
";

const EXAMPLES_OF_CODES: &str = "
Examples of 1: a duplicate (`verify`, `bench`), an unknown or disabled source, a fault that `doctor` found. Of 2: an ID
that cannot be read. Of 3: a locked data directory, a copied journal, another store, a store rollback, a missing
journal.
";

const VARIABLES: &str = "
## Environment variables

Every key of the [configuration](configuration.md) is a variable: `SNOWMINT_SECTION__KEY`. A flag overrides it; the
column *variable* above names it for the flags that are keys.

Commands that call a server, and servers that use others as their store, read these variables. None of them has a flag,
because other users can read command lines.

| variable | meaning |
|---|---|
| `SNOWMINT_TOKEN` | Token that is sent. |
| `SNOWMINT_TOKEN_FILE` | File with the token in its first line; not together with `SNOWMINT_TOKEN`. |
| `SNOWMINT_CA_FILE` | File (PEM) of the authorities that sign the certificates of servers. Without it, those of the system. |
| `SNOWMINT_CERT_FILE` | File (PEM) with a certificate and its key, for servers that ask for one. |
| `SNOWMINT_TEST_CLOCK_OFFSET_MS` | For tests only: moves the wall clock of `serve`, and of `mint` from a store. |
";

/// Returns the page.
pub(super) fn page() -> String {
    let mut root = Snowmint::command().disable_help_subcommand(true);
    root.build();
    let mut page = HEAD.to_owned();
    page.push_str("\n| exit code | meaning |\n|---|---|\n");
    for (number, meaning) in EXIT_CODES {
        let _ = writeln!(page, "| {number} | {meaning} |");
    }
    page.push_str(EXAMPLES_OF_CODES);
    root.get_subcommands().for_each(|below| command(&mut page, below, "##"));
    page.push_str(VARIABLES);
    page
}

/// Writes a command, and those below it.
fn command(page: &mut String, of: &Command, heading: &str) {
    let name = of.get_bin_name().unwrap_or_else(|| of.get_name());
    let about = of.get_long_about().or(of.get_about()).map(StyledStr::to_string);
    let mut about = about.unwrap_or_default().replace('<', "\\<");
    if !about.ends_with('.') {
        about.push('.');
    }
    let _ = write!(page, "\n{heading} {name}\n\n{}", filled(&linked(&about)));
    let below: Vec<&Command> = of.get_subcommands().collect();
    if below.is_empty() {
        let usage = of.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").replace("\n       ", "\n");
        page.push('\n');
        usage.lines().for_each(|line| page.push_str(&format!("    {line}\n")));
        options(page, of);
    }
    if let Some(examples) = of.get_after_help().or(of.get_after_long_help()) {
        // Indented lines are code, and others prose.
        let mut was_code = true;
        for line in examples.to_string().lines().filter(|line| !line.trim().is_empty()) {
            let is_code = line.starts_with("  ");
            let space = if is_code == was_code && is_code { "" } else { "\n" };
            let indent = if is_code { "  " } else { "" };
            let _ = writeln!(page, "{space}{indent}{line}");
            was_code = is_code;
        }
    }
    for below in below {
        command(page, below, &format!("{heading}#"));
    }
}

/// Writes the options of a command. Those that are keys of a source have a page of their own.
fn options(page: &mut String, of: &Command) {
    let is_key = |option: &Arg| option.get_help_heading() == Some("Keys");
    let is_shown = |option: &&Arg| {
        !option.is_hide_set() && !["help", "version"].contains(&option.get_id().as_str())
    };
    let (keys, own): (Vec<&Arg>, Vec<&Arg>) =
        of.get_arguments().filter(is_shown).partition(|option| is_key(option));
    if !own.is_empty() {
        page.push_str("\n| option | default | variable | meaning |\n|---|---|---|---|\n");
    }
    let (config, has_config) = (defaults(), of.get_arguments().any(|it| it.get_id() == "config"));
    for option in own {
        let takes_value = option.get_action().takes_values();
        let defaults = option.get_default_values().iter().filter(|_| takes_value);
        let mut defaults = coded(defaults.map(|value| value.to_str().unwrap()));
        let key = option.get_long().filter(|_| has_config);
        let key = key.and_then(|long| FlagKey::of(long, &config));
        if let Some(default) = key.as_ref().and_then(|key| key.default.as_deref()) {
            defaults = coded([default]);
        }
        let key = key.map(|key| key.variable);
        let help = option.get_long_help().or(option.get_help()).map(StyledStr::to_string);
        let mut help = help.unwrap_or_default().replace('\n', " ").replace('<', "\\<");
        let words = option.get_possible_values();
        let words: Vec<&str> = words.iter().map(clap::builder::PossibleValue::get_name).collect();
        if takes_value && !words.is_empty() {
            let _ = write!(help, ": {}", coded(words));
        }
        let (written, variable) = (written(option), coded(key.as_deref()));
        let _ = writeln!(page, "| {written} | {defaults} | {variable} | {} |", linked(&help));
    }
    if !keys.is_empty() {
        page.push_str("\nEach [key of a source](sources.md) is an option: `--KEY VALUE`, such as `--lead-max 10s`.\n");
    }
}

/// Returns an option as users write it.
fn written(option: &Arg) -> String {
    let values = option.get_value_names().unwrap_or_default();
    let mut value = values.iter().map(|name| format!(" {name}")).collect::<String>();
    if option.get_num_args().is_some_and(|count| count.max_values() > 1) {
        value.push_str("...");
    }
    let names = [
        option.get_short().map(|short| format!("-{short}")),
        option.get_long().map(|long| format!("--{long}")),
    ];
    let names: Vec<String> = names.into_iter().flatten().collect();
    let Some((last, before)) = names.split_last() else {
        return coded([value.trim_start()]);
    };
    let value = if option.get_action().takes_values() { value } else { String::new() };
    let last = format!("{last}{value}");
    coded(before.iter().map(String::as_str).chain([last.as_str()]))
}

/// An option that the page lacked would have no reference at all.
#[test]
fn page_has_every_command_and_every_option() {
    fn check(page: &str, command: &Command) {
        let name = command.get_bin_name().unwrap();
        let of_command = format!("# {name}\n");
        let (_, section) = page.split_once(&of_command).unwrap_or_else(|| panic!("{name}"));
        let section = section.split("\n##").next().unwrap();
        let is_part = name.split(' ').count() > 2;
        assert!(is_part || section.contains("\nExample"), "{name} has no example");
        if command.has_subcommands() {
            return command.get_subcommands().for_each(|below| check(page, below));
        }
        assert!(section.contains(&format!("    {name}")), "{name} has no usage");
        for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
            let Some(long) = option.get_long() else { continue };
            let is_key = option.get_help_heading() == Some("Keys");
            let is_common = ["help", "version"].contains(&long);
            let written = [format!("`--{long}` |"), format!("`--{long} ")];
            let is_there = written.iter().any(|option| section.contains(option));
            assert!(is_there || is_key || is_common, "{name} --{long} is missing");
        }
    }
    let page = page();
    let mut root = Snowmint::command().disable_help_subcommand(true);
    root.build();
    root.get_subcommands().for_each(|command| check(&page, command));
}
