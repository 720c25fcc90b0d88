//! State of the view: the last responses, and the user's choices.

use std::collections::BTreeMap;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use snowmint_coord::{BootTimer, Timer as _};
use snowmint_core::{ElapsedMillis, UnixMillis};
use snowmint_wire::http::{
    HistoryBody, ReadyBody, ServerBody, ServerReportBody, ServersBody, SourceBody, WorkerBody,
};

use super::figures::Rate;
use super::metrics::Metrics;
use crate::terminal::when;

/// Key of the called server's history while it has no member ID.
pub(super) const OWN: &str = "own";
/// Time in which a server responds, besides the time between two calls.
const SILENT_MS: u64 = 3_000;

/// One moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) unix: UnixMillis,
    pub(super) elapsed: ElapsedMillis,
}

impl Moment {
    pub(super) fn now() -> Self {
        Self { unix: when::now(), elapsed: BootTimer.elapsed() }
    }
}

/// The last value of a call, and the error of its last repetition.
pub(super) struct Part<T> {
    last: Option<(ElapsedMillis, T)>,
    error: Option<String>,
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        Self { last: None, error: None }
    }
}

impl<T> Part<T> {
    /// Takes a result; returns the value before a new one.
    fn update(&mut self, at: ElapsedMillis, result: Fetched<T>) -> Option<(ElapsedMillis, T)> {
        match result {
            Ok(value) => {
                self.error = None;
                self.last.replace((at, value))
            }
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }

    pub(super) fn value(&self) -> Option<&T> {
        self.last.as_ref().map(|(_, value)| value)
    }

    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Returns the milliseconds since the last value.
    pub(super) fn age_ms(&self, now: ElapsedMillis) -> Option<u64> {
        self.last.as_ref().map(|(at, _)| now.since(*at))
    }
}

/// Result of a call, with its error as a sentence.
pub(super) type Fetched<T> = Result<T, String>;

/// Result of one call.
pub(super) enum Update {
    Ready(Fetched<ReadyBody>),
    Server(Box<Fetched<ServerBody>>),
    Members(Fetched<ServersBody>),
    Workers(Fetched<Vec<WorkerBody>>),
    Sources(Fetched<Vec<SourceBody>>),
    /// The last hour of the server with this member ID.
    History(String, Box<Fetched<HistoryBody>>),
    /// The metrics of the server with this name.
    Metrics(String, Box<Fetched<Metrics>>),
}

/// Counts of one server, now and at the call before.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) part: Part<Metrics>,
    before: Option<(ElapsedMillis, Metrics)>,
}

impl Counts {
    /// Returns how fast a count rises; `None` before the second call, and after a restart of the
    /// server.
    pub(super) fn rise(&self, count: impl Fn(&Metrics) -> Option<u64>) -> Option<Rate> {
        let ((then, before), (at, now)) = (self.before.as_ref()?, self.part.last.as_ref()?);
        // A count may be absent until its first event.
        let rise = count(now)?.checked_sub(count(before).unwrap_or_default())?;
        Rate::of(rise, at.since(*then))
    }
}

/// One of the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Focus {
    #[default]
    Servers,
    Sources,
    Errors,
}

impl Focus {
    pub(super) const ALL: [Self; 3] = [Self::Servers, Self::Sources, Self::Errors];
}

/// Order of a table's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Name,
    Rate,
    Errors,
}

impl Order {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Rate => "rate",
            Self::Errors => "errors",
        }
    }
}

/// The user's choices for one table.
#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    pub(super) order: Order,
    /// Key of the selected row.
    pub(super) selected: Option<String>,
}

/// All that the view shows.
pub(super) struct State {
    pub(super) now: Moment,
    /// The named servers, as on the command line.
    pub(super) named: Vec<String>,
    pub(super) interval_ms: u64,
    begun: ElapsedMillis,
    pub(super) ready: Part<ReadyBody>,
    pub(super) server: Part<ServerBody>,
    pub(super) members: Part<ServersBody>,
    pub(super) workers: Part<Vec<WorkerBody>>,
    pub(super) sources: Part<Vec<SourceBody>>,
    /// Last hours of servers, by member ID.
    pub(super) histories: BTreeMap<String, Part<HistoryBody>>,
    /// The last report of each member.
    pub(super) reports: BTreeMap<String, ServerReportBody>,
    /// Counts by named server.
    pub(super) counts: BTreeMap<String, Counts>,
    pub(super) focus: Focus,
    /// The choices for each table, in the order of [`Focus::ALL`].
    choices: [Choice; Focus::ALL.len()],
    pub(super) is_paused: bool,
    pub(super) is_help: bool,
}

impl State {
    pub(super) fn new(named: Vec<String>, interval_ms: u64, now: Moment) -> Self {
        let by_rate = || Choice { order: Order::Rate, ..Choice::default() };
        Self {
            now,
            named,
            interval_ms,
            begun: now.elapsed,
            ready: Part::default(),
            server: Part::default(),
            members: Part::default(),
            workers: Part::default(),
            sources: Part::default(),
            histories: BTreeMap::new(),
            reports: BTreeMap::new(),
            counts: BTreeMap::new(),
            focus: Focus::default(),
            choices: [Choice::default(), by_rate(), by_rate()],
            is_paused: false,
            is_help: false,
        }
    }

    /// Moves the time; a paused view stands still.
    pub(super) fn tick(&mut self, now: Moment) {
        if !self.is_paused {
            self.now = now;
        }
    }

    /// Takes the result of a call; a paused view drops it.
    pub(super) fn apply(&mut self, update: Update) {
        if self.is_paused {
            return;
        }
        let at = self.now.elapsed;
        match update {
            Update::Ready(result) => drop(self.ready.update(at, result)),
            Update::Server(result) => drop(self.server.update(at, *result)),
            Update::Workers(result) => drop(self.workers.update(at, result)),
            Update::Sources(result) => drop(self.sources.update(at, result)),
            Update::Members(result) => {
                self.members.update(at, result);
                self.keep_listed();
            }
            Update::History(member, result) => {
                self.histories.entry(member).or_default().update(at, *result);
                self.keep_listed();
            }
            Update::Metrics(server, result) => {
                let counts = self.counts.entry(server).or_default();
                if let Some(before) = counts.part.update(at, *result) {
                    counts.before = Some(before);
                }
            }
        }
    }

    /// Keeps the reports of listed members, and forgets members that the store has forgotten.
    fn keep_listed(&mut self) {
        let Some(ServersBody { servers, .. }) = self.members.value() else { return };
        let mut reports = BTreeMap::new();
        for server in servers {
            let key = key_of(server.member.as_deref());
            let known = server.report.clone().or_else(|| self.reports.get(key).cloned());
            reports.extend(known.map(|report| (key.to_owned(), report)));
        }
        let is_listed =
            |id: &String| servers.iter().any(|server| key_of(server.member.as_deref()) == id);
        self.histories.retain(|id, _| is_listed(id));
        self.reports = reports;
    }

    /// Returns the milliseconds without a response of the called server, if it does not respond.
    pub(super) fn silent_ms(&self) -> Option<u64> {
        let last = self.ready.age_ms(self.now.elapsed);
        let silent_ms = last.unwrap_or_else(|| self.now.elapsed.since(self.begun));
        let bound_ms = SILENT_MS.saturating_add(self.interval_ms);
        (self.ready.error().is_some() || silent_ms > bound_ms).then_some(silent_ms)
    }

    /// Returns whether a member responded at the last call.
    pub(super) fn responds(&self, member: &str) -> bool {
        let Some(ServersBody { servers, .. }) = self.members.value() else { return true };
        let listed = servers.iter().find(|server| key_of(server.member.as_deref()) == member);
        listed.is_some_and(|server| server.report.is_some())
    }

    /// Returns the last hours, and the milliseconds since each ended: 0 while its server responds.
    pub(super) fn last_hours(&self) -> impl Iterator<Item = (&HistoryBody, u64)> {
        self.histories.iter().filter_map(|(member, part)| {
            let is_current = self.responds(member);
            let age_ms = if is_current { 0 } else { part.age_ms(self.now.elapsed)? };
            Some((part.value()?, age_ms))
        })
    }

    /// Returns the last hours of servers that respond.
    pub(super) fn current_hours(&self) -> impl Iterator<Item = &HistoryBody> {
        let current = self.histories.iter().filter(|(member, _)| self.responds(member));
        current.filter_map(|(_, part)| part.value())
    }

    /// Returns the metrics of the named servers.
    pub(super) fn metrics(&self) -> impl Iterator<Item = &Metrics> {
        self.counts.values().filter_map(|counts| counts.part.value())
    }

    /// Returns how fast a count of the named servers rises.
    pub(super) fn rise(&self, count: impl Fn(&Metrics) -> Option<u64>) -> Option<Rate> {
        let rises: Vec<Rate> =
            self.counts.values().filter_map(|counts| counts.rise(&count)).collect();
        (!rises.is_empty()).then(|| rises.into_iter().sum())
    }

    /// Names the servers whose metrics are shown.
    pub(super) fn named(&self) -> String {
        match &self.named[..] {
            [only] => only.clone(),
            several => format!("{} named servers", several.len()),
        }
    }

    pub(super) const fn choice(&self, of: Focus) -> &Choice {
        &self.choices[of as usize]
    }

    /// Acts on a key, which may have no meaning, and returns whether it ends the view. `keys` are
    /// those of the rows in the table that has the focus.
    pub(super) fn act(&mut self, key: KeyEvent, keys: &[String]) -> bool {
        let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if key.code == KeyCode::Char(if has_control { 'c' } else { 'q' }) {
            return true;
        }
        // Any key closes the help.
        if std::mem::take(&mut self.is_help) || has_control {
            return false;
        }
        match key.code {
            KeyCode::Char('j') | KeyCode::Down => self.step(keys, |at| at.saturating_add(1)),
            KeyCode::Char('k') | KeyCode::Up => self.step(keys, |at| at.saturating_sub(1)),
            KeyCode::Tab => self.focus = next(self.focus, 1),
            KeyCode::BackTab => self.focus = next(self.focus, Focus::ALL.len() - 1),
            KeyCode::Char('s') => {
                let choice = &mut self.choices[self.focus as usize];
                choice.order = match choice.order {
                    Order::Name => Order::Rate,
                    Order::Rate => Order::Errors,
                    Order::Errors => Order::Name,
                };
            }
            KeyCode::Char('p') => self.is_paused = !self.is_paused,
            KeyCode::Char('?') => self.is_help = true,
            _ => {}
        }
        false
    }

    /// Moves the selection. Without one, the first row is selected.
    fn step(&mut self, keys: &[String], to: impl Fn(usize) -> usize) {
        let choice = &mut self.choices[self.focus as usize];
        let at = keys.iter().position(|key| choice.selected.as_ref() == Some(key));
        let at = at.map_or(0, to).min(keys.len().saturating_sub(1));
        choice.selected = keys.get(at).cloned();
    }
}

fn next(focus: Focus, by: usize) -> Focus {
    Focus::ALL[(focus as usize + by) % Focus::ALL.len()]
}

/// Returns the key of a member's reports and history.
pub(super) fn key_of(member: Option<&str>) -> &str {
    member.unwrap_or(OWN)
}
