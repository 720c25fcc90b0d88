//! A source as people and programs see it.

use serde::Serialize;
use serde_json::{Map, Value};
use snowmint_coord::spec::{Plan, SegmentPlan, SourceSpec};
use snowmint_core::UnixMillis;
use snowmint_server::shards;
use snowmint_wire::http::{SourceBody, StoreStatusBody};

use crate::client::segment;
use crate::terminal::exit::Outcome;
use crate::terminal::output::Output;
use crate::terminal::when;

/// Returns the path of a source on a server.
pub(super) fn path(name: &str) -> String {
    format!("/v1/sources/{}", segment(name))
}

/// A source as programs see it.
#[derive(Debug, Serialize)]
struct ShownSource<'s> {
    #[serde(flatten)]
    source: &'s SourceBody,
    /// Spread of IDs over `id % N`, in words. Not `shards`, which is a key of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    shard_spread: Option<String>,
}

/// Prints a source in the form of the configuration file, or as JSON.
pub(super) fn show(source: &SourceBody, json: bool, out: &mut Output) -> Outcome {
    let shard_spread = shards::of_source(&source.keys);
    if json {
        return out.json(&ShownSource { source, shard_spread });
    }
    out.line(format_args!("# version {}{}", source.version, next(source, when::now())))?;
    for StoreStatusBody { store, serving, offset, increment, worker, error } in &source.store_status
    {
        let part = match (offset, increment, worker) {
            (Some(offset), Some(increment), _) => format!("stripe {offset} of {increment}"),
            (.., Some(worker)) => format!("worker {worker}"),
            _ => "stripe or worker number unknown".into(),
        };
        let state = if *serving { "serves" } else { "does not serve" };
        let error = error.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        out.line(format_args!("# store {store}: {part}, {state}{error}"))?;
    }
    if let Some(shard_spread) = shard_spread {
        out.line(format_args!("# shards: {shard_spread}"))?;
    }
    out.line(format_args!("[sources.{}]", toml_key(&source.name)))?;
    let mut lines = Vec::new();
    flatten("", &source.keys, &mut lines);
    lines.into_iter().try_for_each(|line| out.line(line))
}

/// Returns the next number of a segment source, for a serial its text.
fn next(source: &SourceBody, now: UnixMillis) -> String {
    let Some(next) = &source.next else { return String::new() };
    match serial(source, next, now) {
        Some(text) => format!(", next {text}"),
        None => format!(", next number {next}"),
    }
}

/// Returns the serial of the next number, in the period of now if the number's own is over; `None`
/// for a source of another kind.
fn serial(source: &SourceBody, next: &str, now: UnixMillis) -> Option<String> {
    let keys = Value::Object(source.keys.clone()).to_string();
    let plan = SourceSpec::from_json(&keys).and_then(|spec| spec.check()).ok()?;
    let Plan::Segment(SegmentPlan { serial: Some(serial), stripe, .. }) = plan else { return None };
    let number: u64 = next.parse().ok()?;
    let current = serial.at(now).map_or(0, |period| period.first);
    let is_over = number < current;
    serial.text_of(if is_over { stripe.id_of(stripe.number_from(current)) } else { number })
}

/// Returns a name as a TOML key: unquoted dots would make tables.
fn toml_key(name: &str) -> String {
    if name.contains('.') { format!("\"{name}\"") } else { name.into() }
}

fn flatten(prefix: &str, table: &Map<String, Value>, lines: &mut Vec<String>) {
    for (key, value) in table {
        match value {
            Value::Object(inner) => flatten(&format!("{prefix}{key}."), inner, lines),
            // JSON and TOML write strings, numbers and booleans alike.
            value => lines.push(format!("{prefix}{key} = {value}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use snowmint_core::Rfc3339;

    use super::*;

    #[test]
    fn next_number_of_a_serial_is_shown_as_its_text() {
        let Rfc3339(now) = "2026-11-29T23:30:00Z".parse().unwrap();
        let dated = r#""serial":{"prefix":"R-","date":"yyyyMMdd","width":6,"zone":"Asia/Tokyo"}"#;
        for (keys, number, text) in [
            (r#""first":1"#, "17", ", next number 17"),
            (r#""serial":{"prefix":"T-","width":6}"#, "17", ", next T-000017"),
            // An unused source begins in 1970, and mints its first serial today.
            (dated, "1", ", next R-20261130000001"),
            (dated, "20787000042", ", next R-20261130000042"),
            (r#""offset":4,"increment":5,"serial":{"date":"yyyy"}"#, "4", ", next 2026000004"),
        ] {
            let keys = format!(r#"{{"kind":"segment",{keys}}}"#);
            let source = SourceBody {
                next: Some(number.into()),
                keys: serde_json::from_str(&keys).unwrap(),
                ..serde_json::from_str(r#"{"name":"bills","version":3}"#).unwrap()
            };
            assert_eq!(next(&source, now), text, "{keys}");
        }
    }
}
