//! `QUIT`.

use snowmint_wire::resp::Command;

use super::{Flow, Session, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "quit",
    arity: -1,
    summary: "Closes the connection.",
    group: "connection",
    takes_source: false,
    is_for_all: true,
    run,
};

fn run(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    session.reply(output).simple("OK");
    Flow::Close
}
