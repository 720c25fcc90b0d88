//! `AUTH [user] password`: there is no password yet to compare with.

use snowmint_wire::resp::Command;

use super::{Flow, Session, Spec, wrong_arity};

pub(super) const SPEC: Spec = Spec {
    name: "auth",
    arity: -2,
    summary: "Authenticates the connection.",
    group: "connection",
    takes_source: false,
    run,
};

/// What Redis says when nobody set a password.
pub(super) const NOT_CONFIGURED: &str = "AUTH <password> called without any password configured for \
     the default user. Are you sure your configuration is correct?";

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let mut reply = session.reply(output);
    if command.len() > 3 {
        wrong_arity(SPEC.name, &mut reply);
    } else {
        reply.error("ERR", NOT_CONFIGURED);
    }
    Flow::Next
}
