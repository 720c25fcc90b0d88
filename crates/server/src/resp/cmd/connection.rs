//! Commands on the connection alone.

use snowmint_wire::resp::Command;

use super::reply::{NOT_AN_INTEGER, wrong_arity};
use super::spec::{Flow, Spec};
use crate::resp::session::{Database, Session};

/// `PING [message]`.
pub(super) const PING: Spec = Spec {
    name: "ping",
    arity: -1,
    summary: "Returns the server's liveliness response.",
    group: "connection",
    takes_source: false,
    is_for_all: false,
    run: ping,
};

fn ping(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let mut reply = session.reply(output);
    match (command.arg(1), command.len()) {
        (None, _) => reply.simple("PONG"),
        (Some(message), 2) => reply.bulk(message),
        _ => wrong_arity(PING.name, &mut reply),
    }
    Flow::Next
}

/// `ECHO message`.
pub(super) const ECHO: Spec = Spec {
    name: "echo",
    arity: 2,
    summary: "Returns the given string.",
    group: "connection",
    takes_source: false,
    is_for_all: false,
    run: echo,
};

fn echo(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    session.reply(output).bulk(command.arg(1).unwrap_or_default());
    Flow::Next
}

/// `SELECT 0`, and `SELECT 1` for IDs as strings. Both have the same sources: the configuration
/// chooses the namespace when the server starts.
pub(super) const SELECT: Spec = Spec {
    name: "select",
    arity: 2,
    summary: "Changes the selected database; 1 has the same sources, and replies with strings.",
    group: "connection",
    takes_source: false,
    is_for_all: false,
    run: select,
};

fn select(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let database = match command.arg(1) {
        Some(b"0") => Some(Database::Plain),
        Some(b"1") => Some(Database::Strings),
        _ => None,
    };
    if let Some(database) = database {
        session.select(database);
        session.reply(output).simple("OK");
        return Flow::Next;
    }
    let mut reply = session.reply(output);
    match command.arg(1) {
        Some(index) if !index.is_empty() && index.iter().all(u8::is_ascii_digit) => {
            reply.error("ERR", "DB index is out of range");
        }
        _ => reply.error("ERR", NOT_AN_INTEGER),
    }
    Flow::Next
}

/// `RESET`: restores the state of a new connection.
pub(super) const RESET: Spec = Spec {
    name: "reset",
    arity: 1,
    summary: "Resets the connection.",
    group: "connection",
    takes_source: false,
    is_for_all: true,
    run: reset,
};

fn reset(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    session.reset();
    session.reply(output).simple("RESET");
    Flow::Next
}

/// `QUIT`.
pub(super) const QUIT: Spec = Spec {
    name: "quit",
    arity: -1,
    summary: "Closes the connection.",
    group: "connection",
    takes_source: false,
    is_for_all: true,
    run: quit,
};

fn quit(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    session.reply(output).simple("OK");
    Flow::Close
}
