//! `CONFIG GET pattern...`: the few settings of Redis that tools read. `CONFIG SET` does not exist:
//! a server's settings are in its configuration file.

use snowmint_wire::error::Code;
use snowmint_wire::resp::{BULK_BYTES_MAX, Command};

use super::spec::{Flow, Spec};
use super::subcommand::{self, Subcommand, Unfit};
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

/// Function that runs a sub-command.
pub(super) type Run = fn(&mut Session, &Command<'_>, &mut Vec<u8>);

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    match find(command) {
        Ok(run) => run(session, command, output),
        Err(unfit) => unfit.write(SPEC.name, command, session, output),
    }
    Flow::Next
}

/// Finds the function of a sub-command.
pub(super) fn find(command: &Command<'_>) -> Result<Run, Unfit> {
    subcommand::find(SPEC.name, SUBCOMMANDS, command)
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
    let wanted = |name: &str| command.args().skip(2).any(|pattern| matches(pattern, name));
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

/// Returns whether a name fits a pattern: `*` matches any bytes, `?` one; letters in either case.
///
/// Backtracks to the last star only, so the work is bounded by the product of the lengths.
fn matches(pattern: &[u8], name: &str) -> bool {
    let name = name.as_bytes();
    let (mut at_pattern, mut at_name) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = name.get(at_name) {
        match pattern.get(at_pattern) {
            Some(b'*') => {
                star = Some((at_pattern + 1, at_name));
                at_pattern += 1;
            }
            Some(b'?') => {
                at_pattern += 1;
                at_name += 1;
            }
            Some(wanted) if wanted.eq_ignore_ascii_case(byte) => {
                at_pattern += 1;
                at_name += 1;
            }
            _ => {
                let Some((after_star, from)) = star else { return false };
                star = Some((after_star, from + 1));
                at_pattern = after_star;
                at_name = from + 1;
            }
        }
    }
    pattern.get(at_pattern..).unwrap_or_default().iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (pattern, name) in [
            ("save", "save"),
            ("SAVE", "save"),
            ("*", "save"),
            ("s*e", "save"),
            ("*a*", "save"),
            ("s??e", "save"),
            ("save*", "save"),
            ("**e", "save"),
        ] {
            assert!(matches(pattern.as_bytes(), name), "{pattern}");
        }
        for (pattern, name) in [
            ("", "save"),
            ("sav", "save"),
            ("saves", "save"),
            ("s?e", "save"),
            ("*x*", "save"),
            ("?", ""),
        ] {
            assert!(!matches(pattern.as_bytes(), name), "{pattern}");
        }
    }
}
