//! The table of sources.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde_json::Value;
use snowmint_wire::http::{SourceBody, StoreStatusBody};

use super::figures::{Rate, span};
use super::history::{Slots, newest};
use super::metrics::Metrics;
use super::state::{Focus, Order, State};
use super::table::{Align, Cell, Column, Row, Table, Tone};
use crate::terminal::plural::grouped;

const COLUMNS: [Column; 7] = [
    Column::left("SOURCE", 0),
    Column::left("KIND", 4),
    Column::right("IDS/S", 1),
    Column::right("ERR/S", 2),
    Column::right("RUNWAY", 3),
    Column::right("PREFETCHED", 6),
    Column { title: "LAST MINUTES", align: Align::Picture, rank: 5 },
];

/// Sources that a history has at most: those with the most IDs.
const IN_HISTORY_MAX: usize = 16;
/// Runways below which an alert of Prometheus would fire.
const WINDOW_DOUBT_MS: u64 = 10_000;
const PREFETCH_DOUBT_MS: u64 = 1_000;

/// A source, and all that is known of it.
struct Source<'s> {
    name: &'s str,
    definition: Option<&'s SourceBody>,
    ids: Option<Rate>,
    errors: Option<Rate>,
}

/// Makes the table.
pub(super) fn table(state: &State) -> Table {
    let mut sources: Vec<Source<'_>> =
        names(state).into_iter().map(|name| source(state, name)).collect();
    match state.choice(Focus::Sources).order {
        // They are in this order.
        Order::Name => {}
        Order::Rate => sources.sort_by_key(|source| Reverse(source.ids)),
        Order::Errors => sources.sort_by_key(|source| Reverse(source.errors)),
    }
    let definitions = state.sources.error().map(|error| format!("definitions: {error}"));
    let metrics = state.counts.iter().filter_map(|(server, counts)| {
        let error = counts.part.error()?;
        Some(format!("metrics of {server}: {error}"))
    });
    let notices: Vec<String> = definitions.into_iter().chain(metrics).collect();
    Table {
        title: "Sources",
        note: format!("errors, runway and prefetched of {}", state.named()),
        columns: &COLUMNS,
        rows: sources.iter().map(|source| row(state, source)).collect(),
        is_old: false,
        notice: (!notices.is_empty()).then(|| notices.join("; ")),
        empty: "no source is known",
    }
}

/// Returns the sources of the catalog; without it, those that servers have counted.
fn names(state: &State) -> BTreeSet<&str> {
    if let Some(sources) = state.sources.value() {
        return sources.iter().map(|source| source.name.as_str()).collect();
    }
    let counted = state.metrics().flat_map(|metrics| metrics.source_errors.keys());
    let minted = state.current_hours().flat_map(|history| history.sources.keys());
    counted.chain(minted).map(String::as_str).collect()
}

fn source<'s>(state: &'s State, name: &'s str) -> Source<'s> {
    let definitions = state.sources.value();
    let definition =
        definitions.and_then(|all| all.iter().find(|definition| definition.name == name));
    let errors = state.rise(|metrics| metrics.source_errors.get(name).copied());
    Source { name, definition, ids: rate(state, name), errors }
}

/// Returns the rate of a source over all servers.
fn rate(state: &State, name: &str) -> Option<Rate> {
    let mut rates = Vec::new();
    for history in state.current_hours() {
        match history.sources.get(name) {
            Some(counts) => rates.extend(newest(history, [counts])),
            None if history.sources.len() >= IN_HISTORY_MAX => return None,
            None => rates.extend(history.spans_ms.last().map(|_| Rate::default())),
        }
    }
    (!rates.is_empty()).then(|| rates.into_iter().sum())
}

fn row(state: &State, source: &Source<'_>) -> Row {
    let Source { name, definition, ids, errors } = source;
    let is_enabled = definition.and_then(|one| one.keys.get("enabled")) != Some(&false.into());
    let kind = definition.and_then(|one| text(one, "kind"));
    let kind = kind.map(|kind| match is_enabled {
        true => kind.to_owned(),
        false => format!("{kind} (disabled)"),
    });
    let window_ms = least(state, |metrics| metrics.window_ms.get(*name).copied());
    let prefetch_ms = least(state, |metrics| metrics.prefetch_ms.get(*name).copied());
    let prefetched = sum(state, |metrics| metrics.prefetched.get(*name).copied());
    let doubt = |is_doubt: bool| if is_doubt { Tone::Doubt } else { Tone::Plain };
    let mut slots = Slots::default();
    for (history, age_ms) in state.last_hours() {
        if let Some(counts) = history.sources.get(*name) {
            slots.add(history, counts, age_ms);
        }
    }
    let errors_tone = doubt(errors.is_some_and(|rate| !rate.is_zero()));
    let is_short = window_ms.is_some_and(|ms| ms < WINDOW_DOUBT_MS)
        || prefetch_ms.is_some_and(|ms| ms < PREFETCH_DOUBT_MS);
    let runway_ms = window_ms.into_iter().chain(prefetch_ms).min();
    let has_doubt = definition.is_some_and(|one| one.store_status.iter().any(|s| !s.serving));
    Row {
        key: (*name).to_owned(),
        cells: vec![
            Cell::new(*name, doubt(has_doubt)),
            Cell { tone: doubt(!is_enabled), ..Cell::known(kind) },
            Cell::known(*ids),
            Cell { tone: errors_tone, ..Cell::known(*errors) },
            Cell { tone: doubt(is_short), ..Cell::known(runway_ms.map(span)) },
            Cell::known(prefetched.map(grouped)),
            Cell::plain(slots.picture()),
        ],
        detail: definition.map(detail).unwrap_or_default(),
    }
}

/// Returns the least value of the named servers.
fn least(state: &State, of: impl Fn(&Metrics) -> Option<u64>) -> Option<u64> {
    state.metrics().filter_map(of).min()
}

/// Returns a sum over the named servers; `None` where none has the value.
fn sum(state: &State, of: impl Fn(&Metrics) -> Option<u64>) -> Option<u64> {
    let mut values = state.metrics().filter_map(of);
    let first = values.next()?;
    Some(values.fold(first, u64::saturating_add))
}

fn text<'d>(definition: &'d SourceBody, key: &str) -> Option<&'d str> {
    definition.keys.get(key).and_then(Value::as_str)
}

fn detail(definition: &SourceBody) -> String {
    let key = |name: &str| text(definition, name).map(|value| format!("{name} {value}"));
    let next = definition.next.as_ref().map(|next| format!("next number {next}"));
    let facts = [key("layout"), key("on_rollback"), key("order"), key("uuid"), next];
    let failing = definition.store_status.iter().filter(|status| !status.serving);
    let failing = failing.map(|StoreStatusBody { store, error, .. }| {
        let error = error.as_deref().unwrap_or("no reason is known");
        format!("store {store} does not serve: {error}")
    });
    let version = format!("version {}", definition.version);
    let all = failing.chain(facts.into_iter().flatten()).chain([version]);
    all.collect::<Vec<_>>().join(" · ")
}
