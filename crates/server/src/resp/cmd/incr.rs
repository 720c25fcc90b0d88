//! `INCR source`: one ID; `INCR source:key`: the next number of a counter.

use snowmint_wire::resp::Command;

use super::mint::Mint;
use super::spec::{Flow, Spec};
use super::{ids, reply};
use crate::resp::session::{IdTarget, Session};

pub(super) const SPEC: Spec = Spec {
    name: "incr",
    arity: 2,
    summary: "Mints one ID of a source, or the next number of a counter (source:key).",
    group: "string",
    takes_source: true,
    is_for_all: false,
    run,
};

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let arg = command.arg(1).unwrap_or_default();
    // Path of nearly every request: the source is cached and has an ID immediately.
    let mut admitted = false;
    if let Some((source, key)) = session.cached_target(arg) {
        if let Err(error) = session.spend() {
            reply::error(&error, session, output);
            return Flow::Next;
        }
        admitted = true;
        let is_integer = session.writes_integers(source);
        let id = match key {
            None => source.try_mint(),
            Some(key) => source.try_count(key, 1).map(|(number, _)| number),
        };
        if let Ok(id) = id {
            session.issued();
            if is_integer {
                session.reply(output).id(id);
            } else {
                ids::write_cached(id, session, output);
            }
            return Flow::Next;
        }
    }
    let target = IdTarget::counter(arg, &session.state.settings.default_counter_source);
    let mint = |target| Mint { target, count: None, admitted, is_incr: true };
    Flow::of(target.map(mint), session, output)
}
