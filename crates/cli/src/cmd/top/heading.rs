//! The lines above the tables: where the view looks, and whether the server can mint.

use snowmint_coord::spec::Span;

use super::figures::span;
use super::overall::overall;
use super::state::State;
use super::table::{Cell, Tone};
use crate::terminal::when::Zone;

/// Returns the facts of the first line, the most important first.
pub(super) fn place(state: &State) -> Vec<String> {
    let server = state.server.value();
    let namespace = server.map_or("unknown", |server| &server.namespace);
    let label = server.and_then(|server| server.owner.as_ref().or(server.host.as_ref()));
    // Of several named servers, any responds.
    let joint = if state.named.len() > 1 { "of" } else { "at" };
    let label = label.map_or_else(String::new, |label| format!("{label} {joint} "));
    let time = Zone::default().show(state.now.unix);
    // Without the date and the fraction.
    let time = time.get(11..19).unwrap_or(&time);
    vec![
        "snowmint top".to_owned(),
        format!("namespace {namespace}"),
        format!("{time} UTC"),
        format!("server {label}{}", state.named.join(", ")),
        format!("every {}", Span::from_ms(state.interval_ms)),
    ]
}

/// Returns whether the server can mint, or why not; and the sentence on all servers.
pub(super) fn standing(state: &State) -> Cell {
    if state.is_paused {
        return Cell::new("paused: p continues", Tone::Doubt);
    }
    let called = of_called(state);
    let is_current = state.silent_ms().is_none() && state.ready.value().is_some();
    let Some((words, is_well)) = overall(state).filter(|_| is_current) else { return called };
    let tone = match called.tone {
        Tone::Good if !is_well => Tone::Doubt,
        other => other,
    };
    Cell::new(format!("{}; {words}", called.text), tone)
}

/// Returns whether the called server can mint, or why not.
fn of_called(state: &State) -> Cell {
    let ready = state.ready.value();
    if let Some(silent_ms) = state.silent_ms() {
        let last = match ready {
            Some(_) => format!("last response {} ago, all values are old", span(silent_ms)),
            None => "no response so far".to_owned(),
        };
        let error = state.ready.error().unwrap_or("the call waits");
        return Cell::new(format!("{last}; retrying: {error}"), Tone::Bad);
    }
    let Some(ready) = ready else { return Cell::plain("connecting") };
    let refused = state.server.error().map(|error| format!("; {error}")).unwrap_or_default();
    // Callers without rights get codes only.
    let reasons = if ready.reasons.is_empty() { &ready.codes } else { &ready.reasons };
    match (ready.ready, &ready.without_store_until) {
        (false, _) => Cell::new(format!("not ready: {}{refused}", reasons.join("; ")), Tone::Bad),
        (true, Some(until)) => {
            Cell::new(format!("ready, without the store until {until}{refused}"), Tone::Doubt)
        }
        (true, None) if ready.not_minting.is_empty() => {
            let tone = if refused.is_empty() { Tone::Good } else { Tone::Doubt };
            Cell::new(format!("ready{refused}"), tone)
        }
        (true, None) => {
            let others = ready.not_minting.join("; ");
            Cell::new(format!("ready, but {others}{refused}"), Tone::Doubt)
        }
    }
}
