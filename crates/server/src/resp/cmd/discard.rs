//! `DISCARD`: forgets the commands since `MULTI`.

use snowmint_wire::resp::Command;

use super::{Flow, Session, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "discard",
    arity: 1,
    summary: "Forgets the commands since MULTI.",
    group: "transactions",
    takes_source: false,
    is_for_all: false,
    run,
};

fn run(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let transaction = session.transaction.take();
    let mut reply = session.reply(output);
    match transaction {
        None => reply.error("ERR", "DISCARD without MULTI"),
        Some(_) => reply.simple("OK"),
    }
    Flow::Next
}
