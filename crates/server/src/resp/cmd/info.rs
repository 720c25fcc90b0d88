//! `INFO [section...]`: numbers on the server.

use std::fmt::Write as _;

use snowmint_wire::resp::Command;

use super::spec::{Flow, Spec};
use crate::resp::session::Session;

pub(super) const SPEC: Spec = Spec {
    name: "info",
    arity: -1,
    summary: "Returns information and statistics about the server.",
    group: "server",
    takes_source: false,
    is_for_all: false,
    run,
};

/// Version of Redis with these replies; clients that choose their commands by version read it.
const REDIS_VERSION: &str = "7.0.0";

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let wanted = |section: &str| {
        command.len() == 1
            || command.args().skip(1).any(|arg| {
                let is = |name: &str| arg.eq_ignore_ascii_case(name.as_bytes());
                is(section) || is("default") || is("all") || is("everything")
            })
    };
    let text = sections(session, wanted);
    session.reply(output).verbatim(&text);
    Flow::Next
}

fn sections(session: &Session, wanted: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    let mut section = |title: &str, lines: &[(&str, String)]| {
        if wanted(title) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            let _ = write!(text, "# {title}\r\n");
            for (name, value) in lines {
                let _ = write!(text, "{name}:{value}\r\n");
            }
        }
    };
    let state = &session.state;
    let counts = session.guard.tracker().counts();
    let readiness = state.service.readiness();
    let up_s = state.timer.elapsed().get().saturating_sub(state.started_ms) / 1_000;
    section(
        "Server",
        &[
            ("redis_version", REDIS_VERSION.to_owned()),
            ("redis_mode", "standalone".to_owned()),
            ("server_name", "snowmint".to_owned()),
            ("snowmint_version", env!("CARGO_PKG_VERSION").to_owned()),
            ("os", std::env::consts::OS.to_owned()),
            ("process_id", std::process::id().to_string()),
            ("tcp_port", state.port.to_string()),
            ("uptime_in_seconds", up_s.to_string()),
        ],
    );
    section(
        "Clients",
        &[
            ("connected_clients", counts.connected.to_string()),
            ("maxclients", counts.connections_max.to_string()),
        ],
    );
    section("Persistence", &[("loading", "0".to_owned())]);
    section(
        "Stats",
        &[
            (
                "total_connections_received",
                counts.accepted.saturating_add(counts.refused).to_string(),
            ),
            ("rejected_connections", counts.refused.to_string()),
            ("total_commands_processed", counts.requests.to_string()),
        ],
    );
    section("Replication", &[("role", "master".to_owned()), ("connected_slaves", "0".to_owned())]);
    section("Cluster", &[("cluster_enabled", "1".to_owned())]);
    section("Keyspace", &[]);
    section(
        "Snowmint",
        &[
            ("ready", u8::from(readiness.ready).to_string()),
            ("not_ready_because", session.service.reasons_for_caller(&readiness).join("; ")),
        ],
    );
    text
}
