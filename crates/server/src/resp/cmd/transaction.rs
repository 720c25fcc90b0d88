//! Commands of transactions.

use snowmint_wire::resp::Command;

use super::spec::{Flow, Run, Spec};
use super::{queueing, reply};
use crate::resp::session::Session;

/// `MULTI`: queues the commands that follow until `EXEC`.
pub(super) const MULTI: Spec = Spec {
    name: "multi",
    arity: 1,
    summary: "Keeps the commands that follow, for EXEC to run one after the other.",
    group: "transactions",
    takes_source: false,
    is_for_all: false,
    run: multi,
};

fn multi(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    if session.transaction.is_some() {
        session.reply(output).error("ERR", "MULTI calls can not be nested");
    } else {
        session.transaction = Some(Box::default());
        session.reply(output).simple("OK");
    }
    Flow::Next
}

/// Returns the row of `EXEC`, which runs the commands since `MULTI`.
pub(super) const fn exec_spec(run: Run) -> Spec {
    Spec {
        name: "exec",
        arity: 1,
        summary: "Runs the commands since MULTI, and returns their replies as an array.",
        group: "transactions",
        takes_source: false,
        is_for_all: false,
        run,
    }
}

/// Runs `EXEC`; `known` finds the row of a queued command.
pub(super) fn exec(
    known: impl Fn(&Command<'_>) -> Option<&'static Spec>,
    session: &mut Session,
    output: &mut Vec<u8>,
) -> Flow {
    match session.transaction.take() {
        None => session.reply(output).error("ERR", "EXEC without MULTI"),
        Some(transaction) if transaction.is_aborted() => {
            let message = "Transaction discarded because of previous errors.";
            session.reply(output).error("EXECABORT", message);
        }
        Some(transaction) => match queueing::moved(&transaction, known, session) {
            Some(error) => reply::error(&error, session, output),
            None => {
                session.reply(output).array(transaction.count());
                return Flow::Exec(transaction);
            }
        },
    }
    Flow::Next
}

/// `DISCARD`: forgets the commands since `MULTI`.
pub(super) const DISCARD: Spec = Spec {
    name: "discard",
    arity: 1,
    summary: "Forgets the commands since MULTI.",
    group: "transactions",
    takes_source: false,
    is_for_all: false,
    run: discard,
};

fn discard(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let transaction = session.transaction.take();
    let mut reply = session.reply(output);
    match transaction {
        None => reply.error("ERR", "DISCARD without MULTI"),
        Some(_) => reply.simple("OK"),
    }
    Flow::Next
}
