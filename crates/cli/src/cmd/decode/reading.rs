//! Reading of a number with one layout.

use serde::Serialize;

use crate::terminal::exit::Outcome;
use crate::terminal::output::Output;

/// Reading of one layout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Reading {
    /// Name of the layout.
    pub(super) layout: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) clock: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) worker: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) worker_parts: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sequence: Option<u64>,
    /// Whether an ID of this layout could have been minted by now.
    pub(super) plausible: bool,
    /// Reason why it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
}

/// Returns a worker number, with its two parts if its layout shows them.
pub(super) fn worker_text(worker: Option<u64>, parts: Option<[u64; 2]>) -> Option<String> {
    let worker = worker?;
    Some(match parts {
        Some([high, low]) => format!("{worker} ({high} and {low})"),
        None => worker.to_string(),
    })
}

/// Writes the readings as a table, if there are any.
pub(super) fn write_readings(readings: &[Reading], out: &mut Output) -> Outcome {
    if readings.is_empty() {
        return Ok(());
    }
    out.line("  No layout was named (--layout). These would read:")?;
    out.line(format_args!("  {:<15}{:<31}{:<19}{}", "LAYOUT", "TIME", "WORKER", "SEQUENCE"))?;
    for reading in readings {
        let time = reading.time.as_deref().unwrap_or("-");
        let worker = worker_text(reading.worker, reading.worker_parts);
        let worker = worker.unwrap_or_else(|| "-".to_owned());
        let sequence =
            reading.sequence.map_or_else(|| "-".to_owned(), |sequence| sequence.to_string());
        let name = reading.layout;
        match &reading.why {
            None => out.line(format_args!("  {name:<15}{time:<31}{worker:<19}{sequence}"))?,
            Some(why) => out.line(format_args!(
                "  {name:<15}{time:<31}{worker:<19}{sequence:<9} implausible: {why}"
            ))?,
        }
    }
    Ok(())
}
