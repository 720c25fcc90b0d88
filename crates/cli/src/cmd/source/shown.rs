//! A source as people and programs see it.

use serde::Serialize;
use serde_json::{Map, Value};
use snowmint_server::shards;
use snowmint_wire::http::{SourceBody, StoreStatusBody};

use crate::client::segment;
use crate::terminal::exit::Outcome;
use crate::terminal::output::Output;

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
    match &source.next {
        Some(next) => out.line(format_args!("# version {}, next number {next}", source.version))?,
        None => out.line(format_args!("# version {}", source.version))?,
    }
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
