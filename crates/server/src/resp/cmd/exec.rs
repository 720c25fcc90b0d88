//! `EXEC`: runs the commands since `MULTI`.

use snowmint_wire::resp::Command;

use super::{Flow, Session, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "exec",
    arity: 1,
    summary: "Runs the commands since MULTI, and returns their replies as an array.",
    group: "transactions",
    takes_source: false,
    is_for_all: false,
    run,
};

fn run(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let transaction = session.transaction.take();
    let mut reply = session.reply(output);
    match transaction {
        None => reply.error("ERR", "EXEC without MULTI"),
        Some(transaction) if transaction.is_aborted() => {
            reply.error("EXECABORT", "Transaction discarded because of previous errors.");
        }
        Some(transaction) => {
            reply.array(transaction.count());
            return Flow::Exec(transaction);
        }
    }
    Flow::Next
}
