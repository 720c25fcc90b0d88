//! Readings of a number with the known layouts, as a table.

use snowmint_wire::http::ReadingBody;

use crate::terminal::exit::Outcome;
use crate::terminal::output::Output;
use crate::terminal::table::{Column, Table};

/// Returns a worker number, with its two parts if its layout shows them.
pub(super) fn worker_text(worker: Option<u64>, parts: Option<[u64; 2]>) -> Option<String> {
    let worker = worker?;
    Some(match parts {
        Some([high, low]) => format!("{worker} ({high} and {low})"),
        None => worker.to_string(),
    })
}

/// Writes the readings as a table, if there are any.
pub(super) fn write_readings(readings: &[ReadingBody], out: &mut Output) -> Outcome {
    if readings.is_empty() {
        return Ok(());
    }
    out.line("  No layout was named (--layout). These would read, the most plausible first:")?;
    let titles = ["LAYOUT", "TIME", "WORKER", "SEQUENCE", ""];
    let mut table = Table::new(titles.map(Column::Text)).indented(2);
    for reading in readings {
        let dash = || "-".to_owned();
        let worker = worker_text(reading.worker, reading.worker_parts);
        let against = match (&reading.why, reading.plausible) {
            (None, _) => String::new(),
            (Some(why), true) => format!("doubtful: {why}"),
            (Some(why), false) => format!("implausible: {why}"),
        };
        table.row([
            reading.layout.clone(),
            reading.time.clone().unwrap_or_else(dash),
            worker.unwrap_or_else(dash),
            reading.sequence.map_or_else(dash, |sequence| sequence.to_string()),
            against,
        ]);
    }
    out.table(&table)
}
