//! `RESET`: restores the state of a new connection.

use snowmint_wire::resp::Command;

use super::{Flow, Session, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "reset",
    arity: 1,
    summary: "Resets the connection.",
    group: "connection",
    takes_source: false,
    is_for_all: true,
    run,
};

fn run(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    session.reset();
    session.reply(output).simple("RESET");
    Flow::Next
}
