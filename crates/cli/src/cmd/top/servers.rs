//! The table of servers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use snowmint_core::Rfc3339;
use snowmint_wire::http::{HistoryBody, MemberBody, ServerReportBody, WorkerBody};

use super::figures::{Rate, offset, span};
use super::history::newest;
use super::state::{Focus, Order, State, key_of};
use super::table::{Cell, Column, Row, Table, Tone};
use crate::terminal::plural::{after, counted, grouped};

const COLUMNS: [Column; 10] = [
    Column::left("SERVER", 0),
    Column::left("ADDRESS", 6),
    Column::left("STATE", 1),
    Column::left("WORKERS", 7),
    Column::right("SECTIONS", 9),
    Column::right("IDS/S", 2),
    Column::right("ERR/S", 4),
    Column::right("RUNWAY", 5),
    Column::right("CLOCK", 3),
    Column::right("SEEN", 8),
];

/// Members that left longer ago are only counted.
const GONE_SHOWN_MS: u64 = 10 * 60_000;
/// Worker numbers of a row that are shown.
const NUMBERS_MAX: usize = 4;
/// Offset of a clock, and end of a window, from which on an alert of Prometheus would fire.
const CLOCK_DOUBT_MS: u64 = 1_000;
const RUNWAY_DOUBT_MS: u64 = 10_000;

/// A member, and all that is known of it.
pub(super) struct Server<'s> {
    pub(super) member: MemberBody,
    /// Whether the report is from before the server stopped responding.
    is_old: bool,
    report: Option<&'s ServerReportBody>,
    history: Option<&'s HistoryBody>,
}

/// Makes the table.
pub(super) fn table(state: &State) -> Table {
    let (mut servers, left) = servers(state);
    servers.sort_by_cached_key(|server| name(&server.member));
    match state.choice(Focus::Servers).order {
        Order::Name => {}
        Order::Rate => servers.sort_by_cached_key(|server| Reverse(server.ids())),
        Order::Errors => servers.sort_by_cached_key(|server| Reverse(server.errors())),
    }
    let mut notices: Vec<String> = Vec::new();
    if let Some(error) = state.members.error() {
        notices.push(format!("other servers: {error}"));
    }
    let members = state.members.value();
    if let Some(error) = members.and_then(|members| members.store_error.as_ref()) {
        notices.push(format!("the store did not list its members: {error}"));
    }
    if left > 0 {
        let left = counted(left, "member");
        notices.push(format!("{left} that left more than 10 minutes ago"));
    }
    Table {
        title: "Servers",
        note: if servers.is_empty() { String::new() } else { summary(&servers) },
        rows: servers.iter().map(|server| row(state, server, &servers)).collect(),
        columns: &COLUMNS,
        is_old: members.is_some() && state.members.error().is_some(),
        notice: (!notices.is_empty()).then(|| notices.join("; ")),
        empty: "no server is known",
    }
}

/// Returns the members, and the number of those that left long ago.
pub(super) fn servers(state: &State) -> (Vec<Server<'_>>, usize) {
    let listed = state.members.value().map(|members| members.servers.clone());
    let mut servers: Vec<MemberBody> = listed.unwrap_or_else(|| own(state).into_iter().collect());
    let all = servers.len();
    servers.retain(|member| {
        let seen_ms = since(state, member.last_renewed.as_deref());
        member.live || member.own || seen_ms.is_none_or(|ms| ms <= GONE_SHOWN_MS)
    });
    let left = all - servers.len();
    let known = |member: MemberBody| {
        let key = key_of(member.member.as_deref());
        let history = state.histories.get(key).and_then(|part| part.value());
        let (is_old, report) = (member.report.is_none(), state.reports.get(key));
        Server { is_old, report, history, member }
    };
    (servers.into_iter().map(known).collect(), left)
}

/// Returns the called server alone, for a caller that may not list the others.
fn own(state: &State) -> Option<MemberBody> {
    let server = state.server.value()?;
    let ready = state.ready.value()?;
    let report = ServerReportBody {
        version: server.version.clone(),
        ready: ready.ready,
        codes: ready.codes.clone(),
        ..ServerReportBody::default()
    };
    // Without a member ID, as the history that such a caller gets.
    Some(MemberBody {
        owner: server.owner.clone(),
        host: server.host.clone(),
        own: true,
        live: true,
        report: Some(report),
        ..MemberBody::default()
    })
}

impl Server<'_> {
    fn ids(&self) -> Option<Rate> {
        self.history.and_then(|history| newest(history, history.ids.values()))
    }

    fn errors(&self) -> Option<Rate> {
        self.history.and_then(|history| newest(history, history.errors.values()))
    }

    /// Returns the state in words.
    pub(super) fn standing(&self) -> (&'static str, Tone) {
        let MemberBody { live, own, http, report, error, .. } = &self.member;
        match report {
            Some(report) if report.ready => ("ready", Tone::Good),
            Some(_) => ("not ready", Tone::Bad),
            None if error.is_some() => ("no response", Tone::Bad),
            None if !live => ("gone", Tone::Bad),
            None if *own || http.is_some() => ("no report", Tone::Bad),
            // A program that mints itself serves no requests.
            None => ("live", Tone::Good),
        }
    }

    pub(super) fn is_server(&self) -> bool {
        self.member.own || self.member.http.is_some()
    }

    pub(super) fn is_ready(&self) -> bool {
        self.member.report.as_ref().is_some_and(|report| report.ready)
    }

    /// Returns the name, with the process where several have one label.
    pub(super) fn label(&self, all: &[Self]) -> String {
        let label = name(&self.member);
        let is_shared = all.iter().filter(|other| name(&other.member) == label).count() > 1;
        let process = self.member.process.filter(|_| is_shared);
        process.map_or(label.clone(), |process| format!("{label} ({process})"))
    }

    /// Returns the milliseconds since the last sign of life in the store.
    pub(super) fn silent_ms(&self, state: &State) -> Option<u64> {
        since(state, self.member.last_renewed.as_deref())
    }

    /// Returns the milliseconds by which the clock is ahead of its time reference, or behind it.
    fn clock_ahead_ms(&self) -> Option<i64> {
        let reported = self.report.and_then(|report| report.clock_ahead_ms);
        // A caller that may not list servers has it from the history alone.
        reported.or_else(|| self.history.and_then(|history| *history.clock_ahead_ms.last()?))
    }

    /// Returns the same from the offset on from which an alert would fire.
    pub(super) fn doubted_clock_ms(&self) -> Option<i64> {
        self.clock_ahead_ms().filter(|ms| ms.unsigned_abs() >= CLOCK_DOUBT_MS)
    }
}

/// Returns the label of a member.
fn name(member: &MemberBody) -> String {
    let id = member.member.as_deref().map(|id| id.get(..8).unwrap_or(id));
    let texts = [member.owner.as_deref(), member.host.as_deref(), member.http.as_deref(), id];
    texts.into_iter().flatten().next().unwrap_or("this server").to_owned()
}

/// Counts the servers that are ready, and sums up their rates.
fn summary(servers: &[Server<'_>]) -> String {
    let all: Vec<&Server<'_>> =
        servers.iter().filter(|server| server.is_server() && server.member.live).collect();
    let ready = all.iter().filter(|server| server.is_ready()).count();
    let current = || all.iter().filter(|server| !server.is_old);
    let ids: Rate = current().filter_map(|server| server.ids()).sum();
    let errors: Rate = current().filter_map(|server| server.errors()).sum();
    // Also those of a planned stop, whose successors are counted by themselves.
    let gone = servers.iter().filter(|server| server.is_server() && !server.member.live).count();
    let gone = if gone > 0 { format!(", {gone} gone") } else { String::new() };
    format!("{ready} of {} ready{gone}, {ids} IDs/s, {errors} errors/s", all.len())
}

fn row(state: &State, server: &Server<'_>, all: &[Server<'_>]) -> Row {
    let Server { member, is_old, report, history } = server;
    let (word, tone) = server.standing();
    let label = server.label(all);
    let runway_ms = history.and_then(|history| history.window_runway_ms.last().copied()?);
    let runway_doubt = runway_ms.is_some_and(|ms| ms < RUNWAY_DOUBT_MS);
    let ahead_ms = server.clock_ahead_ms();
    let clock_doubt = server.doubted_clock_ms().is_some();
    let errors = server.errors();
    let doubt = |is_doubt: bool| if is_doubt { Tone::Doubt } else { Tone::Plain };
    let toned = |cell: Cell, tone: Tone| Cell { tone, ..cell }.old_if(*is_old);
    let seen_ms = match member.report {
        Some(_) => state.silent_ms().or_else(|| {
            state.members.error()?;
            state.members.age_ms(state.now.elapsed)
        }),
        None => server.silent_ms(state),
    };
    let seen = match (&member.report, seen_ms) {
        (_, Some(ms)) => Some(format!("{} ago", span(ms))),
        (Some(_), None) => Some("now".to_owned()),
        (None, None) => None,
    };
    let sections = report.map(|report| report.sections).filter(|sections| *sections > 0);
    Row {
        key: key_of(member.member.as_deref()).to_owned(),
        cells: vec![
            Cell::plain(label),
            Cell::known(member.http.as_deref().map(without_scheme)),
            Cell::new(word, tone),
            Cell::known(workers(state, member)),
            Cell::known(sections.map(grouped)).old_if(*is_old),
            Cell::known(server.ids()).old_if(*is_old),
            toned(Cell::known(errors), doubt(errors.is_some_and(|rate| !rate.is_zero()))),
            toned(Cell::known(runway_ms.map(span)), doubt(runway_doubt)),
            toned(Cell::known(ahead_ms.map(offset)), doubt(clock_doubt)),
            Cell::known(seen),
        ],
        detail: detail(state, server),
    }
}

fn without_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, address)| address)
}

/// Returns the worker numbers that a member holds; those of several pools with their pool.
fn workers(state: &State, member: &MemberBody) -> Option<String> {
    let all = state.workers.value()?;
    let pools: BTreeSet<&str> = all.iter().map(|worker| worker.pool.as_str()).collect();
    let mut held: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    // Rows of workers have no member ID.
    let is_holder = |worker: &&WorkerBody| {
        let WorkerBody { live, owner, host, process, .. } = worker;
        let holder = (owner, host, process);
        *live && holder == (&member.owner, &member.host, &member.process)
    };
    for worker in all.iter().filter(is_holder) {
        held.entry(&worker.pool).or_default().push(worker.number);
    }
    let texts: Vec<String> = held
        .into_iter()
        .map(|(pool, numbers)| {
            let shown: Vec<String> = numbers.iter().take(NUMBERS_MAX).map(u64::to_string).collect();
            let more = numbers.len().saturating_sub(NUMBERS_MAX);
            let more = if more > 0 { format!(" +{more}") } else { String::new() };
            let prefix = if pools.len() > 1 { format!("{pool}:") } else { String::new() };
            format!("{prefix}{}{more}", shown.join(","))
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

/// Returns the milliseconds since a time by the store's clock.
fn since(state: &State, time: Option<&str>) -> Option<u64> {
    let Rfc3339(time) = time?.parse().ok()?;
    Some(state.now.unix.get().saturating_sub(time.get()))
}

fn detail(state: &State, server: &Server<'_>) -> String {
    let Server { member, report, .. } = server;
    let codes = report.filter(|report| !server.is_old && !report.codes.is_empty());
    let resp = member.resp.as_ref().map(|resp| format!("RESP {resp}"));
    let host = member.host.clone();
    let joined = since(state, member.joined.as_deref());
    let facts = [
        member.error.clone(),
        codes.map(|report| report.codes.join(", ")),
        member.own.then(|| "the called server".to_owned()),
        member.http.clone(),
        resp,
        host,
        member.process.map(|process| format!("process {process}")),
        report.map(|report| format!("version {}", report.version)),
        report.map(|report| {
            format!("{} {} issued", grouped(report.issued), after(report.issued, "ID", "IDs"))
        }),
        joined.map(|ms| format!("joined {} ago", span(ms))),
    ];
    facts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
