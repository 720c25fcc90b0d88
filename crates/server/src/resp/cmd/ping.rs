//! `PING [message]`.

use snowmint_wire::resp::Command;

use super::{Flow, Session, Spec, wrong_arity};

pub(super) const SPEC: Spec = Spec {
    name: "ping",
    arity: -1,
    summary: "Returns the server's liveliness response.",
    group: "connection",
    takes_source: false,
    is_for_all: false,
    run,
};

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let mut reply = session.reply(output);
    match (command.arg(1), command.len()) {
        (None, _) => reply.simple("PONG"),
        (Some(message), 2) => reply.bulk(message),
        _ => wrong_arity(SPEC.name, &mut reply),
    }
    Flow::Next
}
