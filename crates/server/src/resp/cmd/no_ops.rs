//! Commands that cluster clients and tools send by themselves, and that change nothing here: a
//! server has no replicas, no slots in migration, and no values to watch.

use snowmint_wire::resp::Command;

use super::rejected;
use super::spec::{Flow, Spec};
use crate::resp::session::Session;

/// `READONLY`: permits reads from a replica; there are none.
pub(super) const READONLY: Spec = Spec {
    name: "readonly",
    arity: 1,
    summary: "Returns OK: no server is a replica.",
    group: "cluster",
    takes_source: false,
    is_for_all: false,
    run: ok,
};

/// `READWRITE`: takes `READONLY` back.
pub(super) const READWRITE: Spec = Spec { name: "readwrite", ..READONLY };

/// `ASKING`: precedes a command for a slot in migration; no reply names one (`ASK`).
pub(super) const ASKING: Spec = Spec {
    name: "asking",
    summary: "Returns OK: sections change servers at once, without ASK.",
    ..READONLY
};

/// `UNWATCH`: forgets keys to watch; there are none.
pub(super) const UNWATCH: Spec = Spec {
    name: "unwatch",
    summary: "Returns OK: WATCH is rejected, so no key is watched.",
    group: "transactions",
    ..READONLY
};

fn ok(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    session.reply(output).simple("OK");
    Flow::Next
}

/// `WATCH key...`: rejected. A program that compares and sets would believe that no other caller
/// counted in between, and use a number twice.
pub(super) const WATCH: Spec = Spec {
    name: "watch",
    arity: -2,
    summary: "Rejected: a counter changes with each call, and INCR is atomic by itself.",
    group: "transactions",
    takes_source: true,
    is_for_all: false,
    run: watch,
};

/// Reason why a key is not watched.
const CHANGES: &str = "compares values, and a counter changes with each call; INCR and INCRBY are atomic by \
     themselves, so send them without WATCH";

fn watch(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    if session.transaction.is_some() {
        session.reply(output).error("ERR", "WATCH inside MULTI is not allowed");
    } else {
        rejected::write(WATCH.name, CHANGES, session, output);
    }
    Flow::Next
}

/// `ROLE`: each server is a primary without replicas.
pub(super) const ROLE: Spec = Spec {
    name: "role",
    arity: 1,
    summary: "Returns the role of a primary without replicas.",
    group: "server",
    takes_source: false,
    is_for_all: false,
    run: role,
};

fn role(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let mut reply = session.reply(output);
    reply.array(3);
    reply.bulk(b"master");
    reply.integer(0);
    reply.array(0);
    Flow::Next
}

/// `DBSIZE`.
pub(super) const DBSIZE: Spec = Spec {
    name: "dbsize",
    arity: 1,
    summary: "Returns the number of counter keys that this server knows.",
    group: "server",
    takes_source: false,
    is_for_all: false,
    run: dbsize,
};

fn dbsize(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    session.reply(output).id(session.service.known_counter_keys());
    Flow::Next
}
