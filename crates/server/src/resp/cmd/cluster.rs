//! `CLUSTER ...`: section owners, in the form for clients of a Redis Cluster.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use snowmint_coord::lock;
use snowmint_coord::sources::{SECTIONS, SectionAssignment, Server, hash_slot};
use snowmint_wire::resp::{Command, Encoder};

use super::reply::NOT_AN_INTEGER;
use super::spec::{Flow, Query, Run, Spec};
use super::subcommand::{self, Subcommand};
use crate::advertised_addrs::AdvertisedAddrs;
use crate::error::Error;
use crate::resp::session::Session;

pub(super) const SPEC: Spec = Spec {
    name: "cluster",
    arity: -2,
    summary: "A container for commands on sections of counters and their owners.",
    group: "cluster",
    takes_source: false,
    is_for_all: false,
    run,
};

const HELP: &[&str] = &[
    "CLUSTER <subcommand> [<arg> ...]. Subcommands are:",
    "COUNT-FAILURE-REPORTS <node-id>",
    "    Return 0: servers do not report each other here.",
    "COUNTKEYSINSLOT <slot>",
    "    Return 0: a server does not list keys.",
    "GETKEYSINSLOT <slot> <count>",
    "    Return no keys: a server does not list them.",
    "INFO",
    "    Return the number of sections and of servers.",
    "KEYSLOT <key>",
    "    Return the section of a key.",
    "LINKS",
    "    Return no links: servers meet in the store.",
    "MYID",
    "    Return this server's ID. MYSHARDID does the same.",
    "NODES",
    "    Return all servers and their sections, one a line.",
    "REPLICAS <node-id>",
    "    Return the replicas of a server, which has none. SLAVES does the same.",
    "SHARDS",
    "    Return all servers and their sections.",
    "SLOTS",
    "    Return all ranges of sections and their servers.",
    "HELP",
    "    Print this help.",
];

pub(super) static SUBCOMMANDS: &[Subcommand<Run>] = &[
    ("slots", 0, 0, |_, _, _| show(ClusterView::slots)),
    ("shards", 0, 0, |_, _, _| show(ClusterView::shards)),
    ("nodes", 0, 0, |_, _, _| show(|view, reply| reply.verbatim(&view.nodes()))),
    ("info", 0, 0, |_, _, _| show(|view, reply| reply.verbatim(&view.info()))),
    ("myid", 0, 0, |_, _, _| show(ClusterView::own_id_to)),
    // A server without replicas is a shard of its own.
    ("myshardid", 0, 0, |_, _, _| show(ClusterView::own_id_to)),
    ("links", 0, 0, |session, _, output| {
        session.reply(output).array(0);
        Flow::Next
    }),
    ("keyslot", 1, 1, |session, command, output| {
        let section = hash_slot(command.arg(2).unwrap_or_default());
        session.reply(output).id(section.into());
        Flow::Next
    }),
    ("countkeysinslot", 1, 1, count_keys),
    ("getkeysinslot", 2, 2, list_keys),
    ("replicas", 1, 1, |session, command, output| {
        of_node(session, command, output, |reply| reply.array(0))
    }),
    ("slaves", 1, 1, |session, command, output| {
        of_node(session, command, output, |reply| reply.array(0))
    }),
    ("count-failure-reports", 1, 1, |session, command, output| {
        of_node(session, command, output, |reply| reply.integer(0))
    }),
    ("help", 0, 0, |session, _, output| {
        subcommand::help(HELP, session, output);
        Flow::Next
    }),
];

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    match subcommand::find(SPEC.name, SUBCOMMANDS, command) {
        Ok(run) => run(session, command, output),
        Err(unfit) => {
            unfit.write(SPEC.name, command, session, output);
            Flow::Next
        }
    }
}

fn count_keys(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let mut reply = session.reply(output);
    match number(command, 2) {
        None => reply.error("ERR", NOT_AN_INTEGER),
        Some(slot) if !is_section(slot) => reply.error("ERR", "Invalid slot"),
        Some(_) => reply.integer(0),
    }
    Flow::Next
}

fn list_keys(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let mut reply = session.reply(output);
    match number(command, 2).zip(number(command, 3)) {
        None => reply.error("ERR", NOT_AN_INTEGER),
        Some((slot, most)) if !is_section(slot) || most < 0 => {
            reply.error("ERR", "Invalid slot or number of keys");
        }
        Some(_) => reply.array(0),
    }
    Flow::Next
}

/// Replies with `write` for a known server, and with an error for another one.
fn of_node(
    session: &Session,
    command: &Command<'_>,
    output: &mut Vec<u8>,
    write: fn(&mut Encoder<'_>),
) -> Flow {
    let node = command.arg(2).unwrap_or_default();
    let view = ClusterView::of(session, &session.service.section_assignment());
    let mut reply = session.reply(output);
    if view.nodes.iter().any(|known| known.id.as_bytes().eq_ignore_ascii_case(node)) {
        write(&mut reply);
    } else {
        let node = node.get(..64).unwrap_or(node).escape_ascii();
        reply.error("ERR", &format!("Unknown node {node}"));
    }
    Flow::Next
}

/// Function that writes a part of what this server knows of all servers.
type Show = fn(&ClusterView, &mut Encoder<'_>);

/// Servers to show. A server that has just joined learns of the others first: a client would drop
/// its connections to all servers that a reply does not name.
struct ShowCluster {
    write: Show,
}

fn show(write: Show) -> Flow {
    Flow::Wait(Box::new(ShowCluster { write }))
}

impl Query for ShowCluster {
    type Found = Arc<SectionAssignment>;

    async fn find(&self, session: &Session) -> Result<Self::Found, Error> {
        Ok(session.service.listed_assignment().await)
    }

    fn write(&self, assignment: Self::Found, session: &mut Session, output: &mut Vec<u8>) {
        (self.write)(&ClusterView::of(session, &assignment), &mut session.reply(output));
    }
}

fn number(command: &Command<'_>, index: usize) -> Option<i64> {
    str::from_utf8(command.arg(index)?).ok()?.parse().ok()
}

fn is_section(slot: i64) -> bool {
    (0..i64::from(SECTIONS)).contains(&slot)
}

/// Returns this server's ID in Redis's form.
pub(super) fn own_id(session: &Session) -> String {
    ClusterView::of(session, &session.service.section_assignment()).own_id().to_owned()
}

/// All servers with a RESP address, and this one.
struct ClusterView {
    nodes: Vec<ClusterNode>,
}

/// A server in Redis's form.
struct ClusterNode {
    id: String,
    host: String,
    port: u16,
    is_own: bool,
    /// First and last section of each range.
    ranges: Vec<(u16, u16)>,
}

impl ClusterView {
    fn of(session: &Session, section_assignment: &SectionAssignment) -> Self {
        let mut nodes: BTreeMap<_, ClusterNode> = BTreeMap::new();
        for server in section_assignment.servers() {
            let is_own = Some(server.member) == section_assignment.own();
            if let Some(node) = ClusterNode::of(server, is_own) {
                nodes.insert(server.member, node);
            }
        }
        let own = section_assignment.own().or_else(|| session.service.incarnation());
        let own_member = own.unwrap_or_else(|| snowmint_coord::Incarnation::new(0));
        if !nodes.values().any(|node| node.is_own) {
            nodes.insert(own_member, ClusterNode::own(session, own_member));
        }
        // Before it has joined, a server does not know the owners, and serves no section.
        let ranges = own.map(|own| ranges(section_assignment, own)).unwrap_or_default();
        for (first, last, owner) in ranges {
            if let Some(node) = nodes.get_mut(&owner) {
                node.ranges.push((first, last));
            }
        }
        Self { nodes: nodes.into_values().collect() }
    }

    fn own_id(&self) -> &str {
        self.nodes.iter().find(|node| node.is_own).map_or("", |node| &node.id)
    }

    fn own_id_to(&self, reply: &mut Encoder<'_>) {
        reply.bulk(self.own_id().as_bytes());
    }

    fn slots(&self, reply: &mut Encoder<'_>) {
        let count = self.nodes.iter().map(|node| node.ranges.len()).sum();
        reply.array(count);
        for node in &self.nodes {
            for (first, last) in &node.ranges {
                reply.array(3);
                reply.id((*first).into());
                reply.id((*last).into());
                reply.array(4);
                reply.bulk(node.host.as_bytes());
                reply.id(node.port.into());
                reply.bulk(node.id.as_bytes());
                reply.array(0);
            }
        }
    }

    fn shards(&self, reply: &mut Encoder<'_>) {
        reply.array(self.nodes.len());
        for node in &self.nodes {
            reply.map(2);
            reply.bulk(b"slots");
            reply.array(node.ranges.len() * 2);
            for (first, last) in &node.ranges {
                reply.id((*first).into());
                reply.id((*last).into());
            }
            reply.bulk(b"nodes");
            reply.array(1);
            reply.map(7);
            let port = u64::from(node.port);
            for (name, text) in [("id", &node.id), ("ip", &node.host), ("endpoint", &node.host)] {
                reply.bulk(name.as_bytes());
                reply.bulk(text.as_bytes());
            }
            for (name, number) in [("port", port), ("replication-offset", 0)] {
                reply.bulk(name.as_bytes());
                reply.id(number);
            }
            for (name, text) in [("role", "master"), ("health", "online")] {
                reply.bulk(name.as_bytes());
                reply.bulk(text.as_bytes());
            }
        }
    }

    fn nodes(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            let flags = if node.is_own { "myself,master" } else { "master" };
            let ClusterNode { id, host, port, ranges, .. } = node;
            let _ = write!(text, "{id} {host}:{port}@{port} {flags} - 0 0 1 connected");
            for (first, last) in ranges {
                let _ = if first == last {
                    write!(text, " {first}")
                } else {
                    write!(text, " {first}-{last}")
                };
            }
            text.push('\n');
        }
        text
    }

    fn info(&self) -> String {
        let known = self.nodes.len();
        let with_slots = self.nodes.iter().filter(|node| !node.ranges.is_empty()).count();
        format!(
            "cluster_enabled:1\r\ncluster_state:ok\r\ncluster_slots_assigned:{SECTIONS}\r\n\
             cluster_slots_ok:{SECTIONS}\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:0\r\n\
             cluster_known_nodes:{known}\r\ncluster_size:{with_slots}\r\n\
             cluster_current_epoch:1\r\ncluster_my_epoch:1\r\n"
        )
    }
}

impl ClusterNode {
    /// Returns `None` for a server that does not speak RESP.
    fn of(server: &Server, is_own: bool) -> Option<Self> {
        let (host, port) = host_and_port(AdvertisedAddrs::read(&server.address))?;
        Some(Self { id: id(server.member), host, port, is_own, ranges: Vec::new() })
    }

    /// Returns this server while the list of members has it not: at its announced address, or else
    /// where the client has reached it. A client takes no server without a host.
    fn own(session: &Session, member: snowmint_coord::Incarnation) -> Self {
        let announced = host_and_port(session.service.advertised_addrs());
        let (host, port) = announced.unwrap_or_else(|| {
            let local = lock(&session.guard.connection().label).local;
            let host = local.map(|address| address.ip().to_canonical().to_string());
            (host.unwrap_or_default(), session.state.port)
        });
        Self { id: id(member), host, port, is_own: true, ranges: Vec::new() }
    }
}

/// Returns host and port of RESP.
fn host_and_port(addresses: AdvertisedAddrs) -> Option<(String, u16)> {
    let address = addresses.resp?;
    let (host, port) = address.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Some((host, port.parse().ok()?))
}

/// Returns all sections in ranges; sections without an owner count as ours.
fn ranges(
    section_assignment: &SectionAssignment,
    own: snowmint_coord::Incarnation,
) -> Vec<(u16, u16, snowmint_coord::Incarnation)> {
    let ranges = section_assignment.ranges();
    if ranges.is_empty() {
        return vec![(0, SECTIONS - 1, own)];
    }
    ranges.into_iter().map(|(first, last, server)| (first, last, server.member)).collect()
}

/// Returns an ID in Redis's form: 40 hexadecimal digits.
fn id(member: snowmint_coord::Incarnation) -> String {
    format!("{member}00000000")
}
