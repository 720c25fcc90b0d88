//! `CLIENT INFO` and `CLIENT LIST`: connections in Redis's form, one a line.

use snowmint_coord::lock;
use snowmint_wire::resp::Command;

use super::super::reply::SYNTAX;
use crate::access::Right;
use crate::clients::share::Client;
use crate::clients::tracker::TrackedConnection;
use crate::resp::session::Session;

/// User of a client without a token, as Redis names it.
const DEFAULT_USER: &str = "default";

pub(super) fn info(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) {
    let text = line(session, session.guard.connection(), "client|info");
    session.reply(output).verbatim(&text);
}

pub(super) fn list(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) {
    let mut reply = session.reply(output);
    if session.service.caller().may_over_all(Right::Admin).is_err() {
        return reply.error("NOPERM", "CLIENT LIST needs the right admin over all sources");
    }
    let filter = match Filter::read(command) {
        Ok(filter) => filter,
        Err(message) => return reply.error("ERR", &message),
    };
    let entries = session.guard.tracker().entries();
    let lines = entries
        .iter()
        .filter(|connection| filter.has(connection))
        .map(|connection| line(session, connection, "client|list"));
    reply.verbatim(&lines.collect::<String>());
}

/// Parses the ID of a connection.
pub(super) fn id(digits: &[u8]) -> Option<u64> {
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Connections to list.
enum Filter {
    All,
    /// None: no connection here has the type.
    None,
    Ids(Vec<u64>),
}

impl Filter {
    fn read(command: &Command<'_>) -> Result<Self, String> {
        let mut args = command.args().skip(2);
        let Some(option) = args.next() else { return Ok(Self::All) };
        if option.eq_ignore_ascii_case(b"id") && args.len() > 0 {
            let ids: Option<Vec<u64>> = args.map(id).collect();
            return ids.map(Self::Ids).ok_or_else(|| "Invalid client ID".into());
        }
        if !option.eq_ignore_ascii_case(b"type") || args.len() != 1 {
            return Err(SYNTAX.into());
        }
        let wanted = args.next().unwrap_or_default();
        let is = |name: &&str| wanted.eq_ignore_ascii_case(name.as_bytes());
        if is(&"normal") {
            Ok(Self::All)
        } else if ["master", "replica", "slave", "pubsub"].iter().any(is) {
            Ok(Self::None)
        } else {
            let wanted = wanted.get(..64).unwrap_or(wanted).escape_ascii();
            Err(format!("Unknown client type '{wanted}'"))
        }
    }

    fn has(&self, connection: &TrackedConnection) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Ids(ids) => ids.contains(&connection.id),
        }
    }
}

/// Returns the line of a connection. What Redis knows and this server does not, such as buffers,
/// has the value of an unused connection. `command` is the last one of the caller's connection;
/// those of other connections are not recorded.
fn line(session: &Session, connection: &TrackedConnection, command: &str) -> String {
    let label = lock(&connection.label).clone();
    let tracker = session.guard.tracker();
    let age_s = tracker.now_ms().saturating_sub(connection.since_ms) / 1_000;
    let is_own = connection.id == session.guard.connection().id;
    let (idle_ms, command) = if is_own {
        (0, command)
    } else {
        (tracker.now_ms().saturating_sub(connection.moved_ms()), "NULL")
    };
    // Of other connections the token that pays is known: the first.
    let client = if is_own { session.service.caller().client() } else { connection.client() };
    let user = match client {
        Client::Token(name) => name,
        _ => DEFAULT_USER.into(),
    };
    let local = label.local.map(|local| local.to_string()).unwrap_or_default();
    let (flags, redirection) = if label.is_tracking { ("t", 0) } else { ("N", -1) };
    let version = if label.is_version_three { 3 } else { 2 };
    format!(
        "id={} addr={} laddr={local} fd=-1 name={} age={age_s} idle={} flags={flags} db={} sub=0 \
         psub=0 ssub=0 multi=-1 qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 \
         omem=0 tot-mem=0 events=r cmd={command} user={user} redir={redirection} resp={version} \
         lib-name={} lib-ver={}\n",
        connection.id,
        connection.peer,
        label.name,
        idle_ms / 1_000,
        label.database,
        label.library,
        label.library_version
    )
}
