//! Readings of a number with the known layouts, as a table.

use snowmint_wire::http::ReadingBody;

use crate::terminal::exit::Outcome;
use crate::terminal::output::Output;

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
    let width = readings.iter().map(|reading| reading.layout.len()).max().unwrap_or_default() + 2;
    out.line("  No layout was named (--layout). These would read, the most plausible first:")?;
    out.line(format_args!("  {:<width$}{:<31}{:<19}{}", "LAYOUT", "TIME", "WORKER", "SEQUENCE"))?;
    for reading in readings {
        let time = reading.time.as_deref().unwrap_or("-");
        let worker = worker_text(reading.worker, reading.worker_parts);
        let worker = worker.unwrap_or_else(|| "-".to_owned());
        let sequence =
            reading.sequence.map_or_else(|| "-".to_owned(), |sequence| sequence.to_string());
        let name = &reading.layout;
        let against = match (&reading.why, reading.plausible) {
            (None, _) => String::new(),
            (Some(why), true) => format!(" doubtful: {why}"),
            (Some(why), false) => format!(" implausible: {why}"),
        };
        let line = format!("  {name:<width$}{time:<31}{worker:<19}{sequence:<10}{against}");
        out.line(line.trim_end())?;
    }
    Ok(())
}
