//! `CLUSTER ...`: this server is not part of a Redis Cluster.

use snowmint_wire::resp::Command;

use super::{Flow, Session, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "cluster",
    arity: -2,
    summary: "A container for cluster commands; there is no cluster.",
    group: "cluster",
    takes_source: false,
    run,
};

fn run(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    // Redis's words when it is alone: cluster clients then talk to it as to a single server.
    session.reply(output).error("ERR", "This instance has cluster support disabled");
    Flow::Next
}
