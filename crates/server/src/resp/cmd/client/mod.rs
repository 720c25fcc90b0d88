//! `CLIENT ...`: connections, their names, and what a client wants from its own.

mod list;
mod tracking;

pub(super) use self::tracking::rejects_cached;

use snowmint_coord::lock;
use snowmint_wire::resp::Command;

use super::reply::{NOT_AN_INTEGER, SYNTAX};
use super::spec::{Flow, Spec};
use super::subcommand::{self, Run, Subcommand};
use crate::resp::reply_mode::ReplyMode;
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
    "CACHING (YES|NO)",
    "    Rejected: the values here change with each call.",
    "GETNAME",
    "    Return the name of the current connection.",
    "GETREDIR",
    "    Return 0 with tracking, and -1 without.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current connection.",
    "LIST [TYPE type | ID id [<id> ...]]",
    "    Return information about connections.",
    "NO-EVICT (ON|OFF)",
    "    Return OK.",
    "NO-TOUCH (ON|OFF)",
    "    Return OK.",
    "REPLY (ON|OFF|SKIP)",
    "    Control the replies sent to the current connection.",
    "SETINFO LIB-NAME|LIB-VER <value>",
    "    Set the library name or version of the client.",
    "SETNAME <name>",
    "    Give the current connection a name.",
    "TRACKING (ON OPTIN [NOLOOP]|OFF)",
    "    Turn tracking on or off; nothing is tracked.",
    "TRACKINGINFO",
    "    Return what TRACKING is.",
    "UNBLOCK <id> [TIMEOUT|ERROR]",
    "    Return 0: no client is blocked.",
    "HELP",
    "    Print this help.",
];

pub(super) static SUBCOMMANDS: &[Subcommand<Run>] = &[
    ("id", 0, 0, |session, _, output| session.reply(output).id(session.guard.connection().id)),
    ("getname", 0, 0, get_name),
    ("setname", 1, 1, set_name),
    ("setinfo", 2, 2, set_info),
    ("info", 0, 0, list::info),
    ("list", 0, usize::MAX, list::list),
    ("reply", 1, 1, set_reply_mode),
    ("no-evict", 1, 1, on_or_off),
    ("no-touch", 1, 1, on_or_off),
    ("tracking", 1, usize::MAX, tracking::tracking),
    ("trackinginfo", 0, 0, tracking::info),
    ("caching", 1, 1, tracking::caching),
    ("getredir", 0, 0, tracking::redirection),
    ("unblock", 1, 2, unblock),
    ("help", 0, 0, |session, _, output| subcommand::help(HELP, session, output)),
];

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    subcommand::run(SPEC.name, SUBCOMMANDS, session, command, output)
}

fn get_name(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) {
    let mut reply = session.reply(output);
    match lock(&session.guard.connection().label).name.as_str() {
        "" => reply.null(),
        name => reply.bulk(name.as_bytes()),
    }
}

fn set_name(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) {
    let mut reply = session.reply(output);
    match read_name(command.arg(2).unwrap_or_default()) {
        Ok(name) => {
            name_connection(session, name);
            reply.simple("OK");
        }
        Err((prefix, message)) => reply.error(prefix, &message),
    }
}

fn set_info(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) {
    let mut reply = session.reply(output);
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
}

/// Sets which commands get a reply. `OFF` and `SKIP` get none themselves.
fn set_reply_mode(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) {
    let wanted = command.arg(2).unwrap_or_default();
    let is = |name: &[u8]| wanted.eq_ignore_ascii_case(name);
    if is(b"on") {
        session.reply_mode = ReplyMode::On;
        session.reply(output).simple("OK");
    } else if (is(b"off") || is(b"skip")) && session.is_executing {
        let message = "CLIENT REPLY OFF and SKIP do not work after MULTI, since EXEC returns a \
                       reply for each command; send them before MULTI";
        session.reply(output).error("ERR", message);
    } else if is(b"off") {
        session.reply_mode = ReplyMode::Off;
    } else if is(b"skip") {
        session.reply_mode.skip_next();
    } else {
        session.reply(output).error("ERR", SYNTAX);
    }
}

/// Accepts what has no effect: the server keeps no values that it could evict.
fn on_or_off(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) {
    let wanted = command.arg(2).unwrap_or_default();
    let mut reply = session.reply(output);
    if [b"on".as_slice(), b"off"].iter().any(|value| wanted.eq_ignore_ascii_case(value)) {
        reply.simple("OK");
    } else {
        reply.error("ERR", SYNTAX);
    }
}

fn unblock(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) {
    let mut reply = session.reply(output);
    let how = command.arg(3).unwrap_or(b"timeout");
    if ![b"timeout".as_slice(), b"error"].iter().any(|value| how.eq_ignore_ascii_case(value)) {
        reply.error("ERR", "CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    } else if list::id(command.arg(2).unwrap_or_default()).is_none() {
        reply.error("ERR", NOT_AN_INTEGER);
    } else {
        reply.integer(0);
    }
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

/// Gives the connection a name.
pub(super) fn name_connection(session: &Session, name: String) {
    lock(&session.guard.connection().label).name = name;
}
