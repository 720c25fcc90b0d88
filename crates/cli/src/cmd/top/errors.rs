//! The table of errors that callers got.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use snowmint_wire::error::Code;

use super::figures::Rate;
use super::metrics::Metrics;
use super::state::{Focus, Order, State};
use super::table::{Cell, Column, Row, Table, Tone};
use crate::terminal::plural::grouped;

const COLUMNS: [Column; 4] = [
    Column::left("CODE", 0),
    Column::left("PROTOCOL", 2),
    Column::right("ERR/S", 1),
    Column::right("SINCE START", 3),
];

/// Makes the table.
pub(super) fn table(state: &State) -> Table {
    let keys: BTreeSet<&(String, String)> =
        state.metrics().flat_map(|metrics| metrics.request_errors.keys()).collect();
    let count =
        |metrics: &Metrics, key: &(String, String)| metrics.request_errors.get(key).copied();
    let mut errors: Vec<(&(String, String), Option<Rate>, u64)> = keys
        .into_iter()
        .map(|key| {
            let total = state.metrics().filter_map(|metrics| count(metrics, key));
            let total = total.fold(0, u64::saturating_add);
            (key, state.rise(|metrics| count(metrics, key)), total)
        })
        .filter(|(_, _, total)| *total > 0)
        .collect();
    match state.choice(Focus::Errors).order {
        // They are in this order.
        Order::Name => {}
        Order::Rate => errors.sort_by_key(|(_, rate, total)| Reverse((*rate, *total))),
        Order::Errors => errors.sort_by_key(|(_, _, total)| Reverse(*total)),
    }
    let row = |((code, protocol), rate, total): &(&(String, String), Option<Rate>, u64)| {
        let is_rising = rate.is_some_and(|rate| !rate.is_zero());
        let tone = if is_rising { Tone::Doubt } else { Tone::Plain };
        Row {
            key: format!("{code} {protocol}"),
            cells: vec![
                Cell::new(code, tone),
                Cell::plain(protocol),
                Cell { tone, ..Cell::known(*rate) },
                Cell::plain(grouped(*total)),
            ],
            detail: meaning(code),
        }
    };
    Table {
        title: "Errors",
        note: format!("requests to {}", state.named()),
        columns: &COLUMNS,
        rows: errors.iter().map(row).collect(),
        is_old: false,
        notice: None,
        empty: if state.metrics().next().is_none() {
            "metrics are not known"
        } else {
            "no request ended in an error"
        },
    }
}

/// Returns the meaning of a code, as errors.md has it.
fn meaning(code: &str) -> String {
    let lines = Code::from_name(code).map(Code::documentation).unwrap_or_default();
    let paragraph = lines.iter().take_while(|line| !line.trim().is_empty());
    paragraph.map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}
