//! `HINCRBY source key n`, `HGET source key`: counters for applications that count in a hash. A
//! field is the key of a counter. A client of a cluster computes the owner from `source` alone, so
//! any server calls the owner of the key itself, and never replies `MOVED`.

use snowmint_wire::resp::Command;

use super::get::Get;
use super::incrby::InARow;
use super::mint::read_count;
use super::spec::{Flow, Spec};
use crate::resp::session::{IdTarget, Session};

pub(super) const HINCRBY: Spec = Spec {
    name: "hincrby",
    arity: 4,
    summary: "Takes numbers in a row of a counter, the field of a source; returns the last.",
    group: "hash",
    takes_source: true,
    is_for_all: false,
    run: hincrby,
};

fn hincrby(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let arg = |index| command.arg(index).unwrap_or_default();
    let work = IdTarget::field(arg(1), arg(2))
        .and_then(|target| Ok(InARow { target, length: read_count(arg(3))?, is_field: true }));
    Flow::of(work, session, output)
}

pub(super) const HGET: Spec = Spec {
    name: "hget",
    arity: 3,
    summary: "Returns the highest number that a counter, the field of a source, may have returned.",
    group: "hash",
    takes_source: true,
    is_for_all: false,
    run: hget,
};

fn hget(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let arg = |index| command.arg(index).unwrap_or_default();
    let target = IdTarget::field(arg(1), arg(2));
    Flow::of(target.map(|target| Get { target, is_field: true }), session, output)
}
