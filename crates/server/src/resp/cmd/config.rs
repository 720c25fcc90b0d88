//! `CONFIG GET pattern...`: the few settings of Redis that tools read. `CONFIG SET` does not exist:
//! a server's settings are in its configuration file.

use snowmint_wire::error::Code;
use snowmint_wire::resp::{BULK_BYTES_MAX, Command};

use super::spec::{Flow, Spec};
use super::subcommand::{self, Run, Subcommand};
use crate::access::fits;
use crate::resp::session::Session;

pub(super) const SPEC: Spec = Spec {
    name: "config",
    arity: -2,
    summary: "A container for server configuration commands.",
    group: "server",
    takes_source: false,
    is_for_all: false,
    run,
};

const HELP: &[&str] = &[
    "CONFIG <subcommand> [<arg> ...]. Subcommands are:",
    "GET <pattern> [<pattern> ...]",
    "    Return the settings of Redis that match the patterns, as far as this server has them.",
    "SET, REWRITE",
    "    Rejected: edit the configuration file.",
    "HELP",
    "    Print this help.",
];

pub(super) static SUBCOMMANDS: &[Subcommand<Run>] = &[
    ("get", 1, usize::MAX, get),
    ("set", 0, usize::MAX, set),
    ("rewrite", 0, usize::MAX, set),
    ("help", 0, 0, |session, _, output| subcommand::help(HELP, session, output)),
];

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    subcommand::run(SPEC.name, SUBCOMMANDS, session, command, output)
}

fn get(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) {
    let settings = &session.state.settings;
    let values = [
        // Redis's values for a server that loses nothing it has acknowledged.
        ("save", String::new()),
        ("appendonly", "yes".to_owned()),
        ("databases", "2".to_owned()),
        ("maxclients", settings.connections_max.to_string()),
        ("timeout", (settings.idle_max.ms() / 1_000).to_string()),
        ("port", session.state.port.to_string()),
        ("proto-max-bulk-len", BULK_BYTES_MAX.to_string()),
        ("cluster-enabled", "yes".to_owned()),
    ];
    let patterns: Vec<_> = command.args().skip(2).map(<[u8]>::to_ascii_lowercase).collect();
    let wanted = |name: &str| patterns.iter().any(|pattern| fits(pattern, name.as_bytes()));
    let found: Vec<_> = values.iter().filter(|(name, _)| wanted(name)).collect();
    let mut reply = session.reply(output);
    reply.map(found.len());
    for (name, value) in found {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
}

fn set(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) {
    session.refused(Code::BadRequest, None);
    let message = "settings cannot change over RESP; edit the configuration file";
    session.reply(output).error("ERR", message);
}
