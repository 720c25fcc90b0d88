//! `INFO [section...]`: numbers on the server.

use std::fmt::Write as _;

use snowmint_wire::resp::Command;

use super::cluster;
use super::spec::{Flow, Spec};
use crate::clients::tracker::ListenerCounts;
use crate::observe::meter::process::{self, Process};
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

/// Seconds of a day.
const DAY_S: u64 = 24 * 60 * 60;

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
    let up_ms = state.timer.elapsed().get().saturating_sub(state.started_ms);
    let ops = state.ops.per_second(counts.requests, up_ms);
    let own_id = cluster::own_id(session);
    let process = process::look();
    let seconds = |of: fn(&Process) -> f64| format!("{:.6}", process.as_ref().map_or(0.0, of));
    let keyspace = match session.service.known_counter_keys() {
        0 => Vec::new(),
        keys => vec![("db0", format!("keys={keys},expires=0,avg_ttl=0"))],
    };
    section("Server", &server(state.port, &own_id, up_ms / 1_000));
    section(
        "Clients",
        &[
            ("connected_clients", counts.connected.to_string()),
            ("cluster_connections", none()),
            ("maxclients", counts.connections_max.to_string()),
            ("blocked_clients", none()),
        ],
    );
    section("Memory", &memory(process));
    section("Persistence", &persistence());
    section("Stats", &stats(&counts, ops));
    section(
        "Replication",
        &[
            ("role", "master".to_owned()),
            ("connected_slaves", none()),
            ("master_failover_state", "no-failover".to_owned()),
            ("master_replid", own_id),
            ("master_repl_offset", none()),
        ],
    );
    section(
        "CPU",
        &[
            ("used_cpu_sys", seconds(|process| process.system_seconds)),
            ("used_cpu_user", seconds(|process| process.user_seconds)),
            ("used_cpu_sys_children", seconds(|_| 0.0)),
            ("used_cpu_user_children", seconds(|_| 0.0)),
        ],
    );
    section("Modules", &[]);
    section("Cluster", &[("cluster_enabled", "1".to_owned())]);
    section("Keyspace", &keyspace);
    section(
        "Snowmint",
        &[
            ("ready", u8::from(readiness.ready).to_string()),
            ("not_ready_because", session.service.reasons_for_caller(&readiness).join("; ")),
        ],
    );
    text
}

/// Returns the number of what this server never has.
fn none() -> String {
    "0".to_owned()
}

fn server(port: u16, own_id: &str, up_s: u64) -> [(&'static str, String); 11] {
    [
        ("redis_version", REDIS_VERSION.to_owned()),
        // As CLUSTER INFO says.
        ("redis_mode", "cluster".to_owned()),
        ("server_name", "snowmint".to_owned()),
        ("snowmint_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("os", std::env::consts::OS.to_owned()),
        ("arch_bits", usize::BITS.to_string()),
        ("process_id", std::process::id().to_string()),
        ("run_id", own_id.to_owned()),
        ("tcp_port", port.to_string()),
        ("uptime_in_seconds", up_s.to_string()),
        ("uptime_in_days", (up_s / DAY_S).to_string()),
    ]
}

fn persistence() -> [(&'static str, String); 9] {
    [
        ("loading", none()),
        ("async_loading", none()),
        ("rdb_changes_since_last_save", none()),
        ("rdb_bgsave_in_progress", none()),
        ("rdb_last_bgsave_status", "ok".to_owned()),
        // As CONFIG GET says: each number is in the store before it is returned.
        ("aof_enabled", "1".to_owned()),
        ("aof_rewrite_in_progress", none()),
        ("aof_last_bgrewrite_status", "ok".to_owned()),
        ("aof_last_write_status", "ok".to_owned()),
    ]
}

fn stats(counts: &ListenerCounts, ops: u64) -> [(&'static str, String); 11] {
    [
        ("total_connections_received", counts.accepted.saturating_add(counts.refused).to_string()),
        ("total_commands_processed", counts.requests.to_string()),
        ("instantaneous_ops_per_sec", ops.to_string()),
        ("rejected_connections", counts.refused.to_string()),
        ("expired_keys", none()),
        ("evicted_keys", none()),
        ("keyspace_hits", none()),
        ("keyspace_misses", none()),
        ("pubsub_channels", none()),
        ("pubsub_patterns", none()),
        ("latest_fork_usec", none()),
    ]
}

/// Returns what tools read of the memory, in all of which the process counts as used memory.
fn memory(process: Option<Process>) -> [(&'static str, String); 11] {
    let (used, peak) =
        process.map_or((0, 0), |process| (process.memory_bytes, process.memory_peak_bytes));
    [
        ("used_memory", used.to_string()),
        ("used_memory_human", for_people(used)),
        ("used_memory_rss", used.to_string()),
        ("used_memory_rss_human", for_people(used)),
        ("used_memory_peak", peak.to_string()),
        ("used_memory_peak_human", for_people(peak)),
        ("used_memory_lua", "0".to_owned()),
        ("maxmemory", "0".to_owned()),
        ("maxmemory_human", for_people(0)),
        ("maxmemory_policy", "noeviction".to_owned()),
        ("mem_fragmentation_ratio", "1.00".to_owned()),
    ]
}

/// Returns a number of bytes as Redis writes it for people: `512B`, `1.50K`, `2.00G`.
fn for_people(bytes: u64) -> String {
    if bytes < 1_024 {
        return format!("{bytes}B");
    }
    let mut value = bytes as f64 / 1_024.0;
    let mut units = ["K", "M", "G"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    while value >= 1_024.0
        && let Some(larger) = units.next()
    {
        (value, unit) = (value / 1_024.0, larger);
    }
    format!("{value:.2}{unit}")
}

#[cfg(test)]
mod tests {
    use super::for_people;

    #[test]
    fn bytes_are_written_as_redis_writes_them() {
        for (bytes, expected) in [
            (0, "0B"),
            (1_023, "1023B"),
            (1_024, "1.00K"),
            (1_091_576, "1.04M"),
            (25_276_059_648, "23.54G"),
        ] {
            assert_eq!(for_people(bytes), expected);
        }
    }
}
