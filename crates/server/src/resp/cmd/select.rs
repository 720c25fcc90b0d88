//! `SELECT 0`: accepts the one database; the configuration chooses the namespace when the server
//! starts.

use snowmint_wire::resp::Command;

use super::{Flow, Session, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "select",
    arity: 2,
    summary: "Changes the selected database; there is only 0.",
    group: "connection",
    takes_source: false,
    is_for_all: false,
    run,
};

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let mut reply = session.reply(output);
    match command.arg(1) {
        Some(b"0") => reply.simple("OK"),
        Some(index) if !index.is_empty() && index.iter().all(u8::is_ascii_digit) => {
            reply.error("ERR", "DB index is out of range");
        }
        _ => reply.error("ERR", "value is not an integer or out of range"),
    }
    Flow::Next
}
