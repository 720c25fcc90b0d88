//! `ECHO message`.

use snowmint_wire::resp::Command;

use super::{Flow, Session, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "echo",
    arity: 2,
    summary: "Returns the given string.",
    group: "connection",
    takes_source: false,
    is_for_all: false,
    run,
};

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    session.reply(output).bulk(command.arg(1).unwrap_or_default());
    Flow::Next
}
