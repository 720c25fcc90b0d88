//! `MULTI`: queues the commands that follow until `EXEC`.

use snowmint_wire::resp::Command;

use super::{Flow, Session, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "multi",
    arity: 1,
    summary: "Keeps the commands that follow, for EXEC to run one after the other.",
    group: "transactions",
    takes_source: false,
    is_for_all: false,
    run,
};

fn run(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    if session.transaction.is_some() {
        session.reply(output).error("ERR", "MULTI calls can not be nested");
    } else {
        session.transaction = Some(Box::default());
        session.reply(output).simple("OK");
    }
    Flow::Next
}
