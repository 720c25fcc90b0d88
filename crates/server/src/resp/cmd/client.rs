//! `CLIENT ...`: lists connections and their names.

use snowmint_coord::lock;
use snowmint_wire::resp::{Command, Protocol};

use super::reply::{unknown_subcommand, wrong_arity};
use super::spec::{Flow, Spec};
use crate::access::Right;
use crate::clients::tracker::TrackedConnection;
use crate::resp::session::Session;

pub(super) const SPEC: Spec = Spec {
    name: "client",
    arity: -2,
    summary: "A container for client connection commands.",
    group: "connection",
    takes_source: false,
    is_for_all: false,
    run,
};

/// Longest name or library name, in bytes. Redis has no limit; real names are shorter.
const LABEL_BYTES_MAX: usize = 256;

const HELP: &[&str] = &[
    "CLIENT <subcommand> [<arg> ...]. Subcommands are:",
    "GETNAME",
    "    Return the name of the current connection.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current connection.",
    "LIST",
    "    Return information about all connections.",
    "SETINFO LIB-NAME|LIB-VER <value>",
    "    Set the library name or version of the client.",
    "SETNAME <name>",
    "    Give the current connection a name.",
];

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let subcommand = command.arg(1).unwrap_or_default();
    let is = |name: &str| subcommand.eq_ignore_ascii_case(name.as_bytes());
    let args_left = command.len().saturating_sub(2);
    let mut reply = session.reply(output);
    if is("id") && args_left == 0 {
        reply.id(session.guard.connection().id);
    } else if is("getname") && args_left == 0 {
        match lock(&session.guard.connection().label).name.as_str() {
            "" => reply.null(),
            name => reply.bulk(name.as_bytes()),
        }
    } else if is("setname") && args_left == 1 {
        match read_name(command.arg(2).unwrap_or_default()) {
            Ok(name) => {
                set_name(session, name);
                reply.simple("OK");
            }
            Err((prefix, message)) => reply.error(prefix, &message),
        }
    } else if is("setinfo") && args_left == 2 {
        let option = command.arg(2).unwrap_or_default();
        match read_name(command.arg(3).unwrap_or_default()) {
            Ok(value) if option.eq_ignore_ascii_case(b"lib-name") => {
                lock(&session.guard.connection().label).library = value;
                reply.simple("OK");
            }
            Ok(value) if option.eq_ignore_ascii_case(b"lib-ver") => {
                lock(&session.guard.connection().label).library_version = value;
                reply.simple("OK");
            }
            Ok(_) => reply.error("ERR", "unknown option; use LIB-NAME or LIB-VER"),
            Err((prefix, message)) => reply.error(prefix, &message),
        }
    } else if is("info") && args_left == 0 {
        let text = line(session, session.guard.connection(), session.protocol);
        reply.verbatim(&text);
    } else if is("list") && session.service.caller().may_over_all(Right::Admin).is_err() {
        reply.error("NOPERM", "CLIENT LIST needs the right admin over all sources");
    } else if is("list") {
        // The protocol version of other connections is not shared: Redis's 2 is shown.
        let entries = session.guard.tracker().entries();
        let lines = entries.iter().map(|connection| line(session, connection, Protocol::Resp2));
        reply.verbatim(&lines.collect::<String>());
    } else if is("help") && args_left == 0 {
        reply.array(HELP.len());
        HELP.iter().for_each(|line| reply.simple(line));
    } else if ["id", "getname", "setname", "setinfo", "info", "help"].into_iter().any(is) {
        let subcommand = String::from_utf8_lossy(subcommand).to_ascii_lowercase();
        wrong_arity(&format!("client|{subcommand}"), &mut reply);
    } else {
        unknown_subcommand(SPEC.name, subcommand, &mut reply);
    }
    Flow::Next
}

/// Checks a name that a list of clients can show: printable ASCII without blanks, as in Redis.
pub(super) fn read_name(name: &[u8]) -> Result<String, (&'static str, String)> {
    if name.len() > LABEL_BYTES_MAX {
        return Err(("ERR", format!("Client names have at most {LABEL_BYTES_MAX} bytes")));
    }
    match str::from_utf8(name) {
        Ok(name) if name.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(name.to_owned()),
        _ => Err((
            "ERR",
            "Client names cannot contain spaces, newlines or special characters.".into(),
        )),
    }
}

pub(super) fn set_name(session: &Session, name: String) {
    lock(&session.guard.connection().label).name = name;
}

fn line(session: &Session, connection: &TrackedConnection, protocol: Protocol) -> String {
    let label = lock(&connection.label).clone();
    let now_ms = session.guard.tracker().now_ms();
    let age_s = now_ms.saturating_sub(connection.since_ms) / 1_000;
    let version = if protocol == Protocol::Resp3 { 3 } else { 2 };
    format!(
        "id={} addr={} name={} age={age_s} db=0 resp={version} lib-name={} lib-ver={}\n",
        connection.id, connection.peer, label.name, label.library, label.library_version
    )
}
