//! `COMMAND ...`: the table of commands, in the forms that clients request when they connect.

use snowmint_wire::resp::{Command, Encoder};

use super::reply::SYNTAX;
use super::spec::{Flow, Run, Spec};
use super::subcommand::{self, Subcommand, Unfit};
use crate::resp::session::Session;

pub(super) const NAME: &str = "command";

/// Returns the row of the table, which `run` describes.
pub(super) const fn spec(run: Run) -> Spec {
    Spec {
        name: NAME,
        arity: -1,
        summary: "Returns detailed information about all commands.",
        group: "server",
        takes_source: false,
        is_for_all: false,
        run,
    }
}

const HELP: &[&str] = &[
    "COMMAND <subcommand> [<arg> ...]. Subcommands are:",
    "(no subcommand)",
    "    Return details about all commands.",
    "COUNT",
    "    Return the number of commands.",
    "LIST",
    "    Return the names of all commands.",
    "INFO [<command-name> ...]",
    "    Return details about some commands, or all.",
    "DOCS [<command-name> ...]",
    "    Return descriptions of some commands, or all.",
    "GETKEYS <full-command>",
    "    Return the keys of a command.",
    "GETKEYSANDFLAGS <full-command>",
    "    Return the keys of a command, with what it does to them.",
    "HELP",
    "    Print this help.",
];

pub(super) static SUBCOMMANDS: &[Subcommand<Describe>] = &[
    ("count", 0, 0, |commands, _, reply| {
        reply.id(u64::try_from(commands.len()).unwrap_or(u64::MAX));
    }),
    ("list", 0, usize::MAX, list),
    ("info", 0, usize::MAX, describe),
    ("docs", 0, usize::MAX, describe_in_words),
    ("getkeys", 2, usize::MAX, |commands, command, reply| {
        keys(commands, command, reply, |key, _, reply| reply.bulk(key));
    }),
    ("getkeysandflags", 2, usize::MAX, |commands, command, reply| {
        keys(commands, command, reply, key_and_flags);
    }),
    ("help", 0, 0, |_, _, reply| {
        reply.array(HELP.len());
        HELP.iter().for_each(|line| reply.simple(line));
    }),
];

/// Function that describes commands of the table.
pub(super) type Describe = fn(&[Spec], &Command<'_>, &mut Encoder<'_>);

/// Describes the commands of the table.
pub(super) fn run(
    commands: &[Spec],
    session: &mut Session,
    command: &Command<'_>,
    output: &mut Vec<u8>,
) -> Flow {
    match find(command) {
        Ok(run) => run(commands, command, &mut session.reply(output)),
        Err(unfit) => unfit.write(NAME, command, session, output),
    }
    Flow::Next
}

/// Finds the function of a sub-command; without one, `COMMAND` describes all commands.
pub(super) fn find(command: &Command<'_>) -> Result<Describe, Unfit> {
    match command.len() {
        1 => Ok(describe),
        _ => subcommand::find(NAME, SUBCOMMANDS, command),
    }
}

fn find_spec<'a>(commands: &'a [Spec], name: &[u8]) -> Option<&'a Spec> {
    commands.iter().find(|spec| spec.has_name(name))
}

fn list(commands: &[Spec], command: &Command<'_>, reply: &mut Encoder<'_>) {
    // FILTERBY is for tools with a few hundred commands to show.
    if command.len() > 2 {
        return reply.error("ERR", SYNTAX);
    }
    reply.array(commands.len());
    commands.iter().for_each(|spec| reply.bulk(spec.name.as_bytes()));
}

fn describe(commands: &[Spec], command: &Command<'_>, reply: &mut Encoder<'_>) {
    let names = command.args().skip(2);
    if names.len() == 0 {
        reply.array(commands.len());
        return commands.iter().for_each(|spec| info(spec, reply));
    }
    reply.array(names.len());
    for name in names {
        match find_spec(commands, name) {
            Some(spec) => info(spec, reply),
            None => reply.null(),
        }
    }
}

fn describe_in_words(commands: &[Spec], command: &Command<'_>, reply: &mut Encoder<'_>) {
    let names = command.args().skip(2);
    let specs: Vec<_> = match names.len() {
        0 => commands.iter().collect(),
        _ => names.filter_map(|name| find_spec(commands, name)).collect(),
    };
    reply.map(specs.len());
    specs.into_iter().for_each(|spec| docs(spec, reply));
}

/// Writes the keys of a whole command, which begins at the second argument: `write` writes each.
fn keys(
    commands: &[Spec],
    command: &Command<'_>,
    reply: &mut Encoder<'_>,
    write: fn(&[u8], &Spec, &mut Encoder<'_>),
) {
    let whole = command.args().skip(2);
    let Some(spec) = command.arg(2).and_then(|name| find_spec(commands, name)) else {
        return reply.error("ERR", "Invalid command specified");
    };
    if !spec.takes_source {
        return reply.error("ERR", "The command has no key arguments");
    }
    if !spec.accepts(whole.len()) {
        return reply.error("ERR", "Invalid number of arguments specified for command");
    }
    let count = if spec.last_key() < 0 { whole.len().saturating_sub(1) } else { 1 };
    reply.array(count);
    whole.skip(1).take(count).for_each(|key| write(key, spec, reply));
}

fn key_and_flags(key: &[u8], spec: &Spec, reply: &mut Encoder<'_>) {
    let flags: &[&str] =
        if spec.is_read() { &["RO", "access"] } else { &["RW", "access", "update"] };
    reply.array(2);
    reply.bulk(key);
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
}

/// Writes an entry in the form of Redis 7: name, arity, flags, first key, last key, step, access
/// categories, tips, key specifications, sub-commands.
fn info(spec: &Spec, reply: &mut Encoder<'_>) {
    reply.array(10);
    reply.bulk(spec.name.as_bytes());
    reply.integer(i64::from(spec.arity));
    if spec.takes_source {
        reply.set(2);
        reply.simple(if spec.is_read() { "readonly" } else { "write" });
        reply.simple("fast");
        reply.integer(1);
        reply.integer(spec.last_key());
        reply.integer(1);
    } else {
        reply.set(1);
        reply.simple("fast");
        (0..3).for_each(|_| reply.integer(0));
    }
    reply.set(0);
    (0..3).for_each(|_| reply.array(0));
}

fn docs(spec: &Spec, reply: &mut Encoder<'_>) {
    reply.bulk(spec.name.as_bytes());
    reply.map(3);
    reply.bulk(b"summary");
    reply.bulk(spec.summary.as_bytes());
    reply.bulk(b"since");
    reply.bulk(b"0.1.0");
    reply.bulk(b"group");
    reply.bulk(spec.group.as_bytes());
}
