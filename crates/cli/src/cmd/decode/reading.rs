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
    out.table(&table(readings))
}

fn table(readings: &[ReadingBody]) -> Table {
    // A text that is no decimal number has the readings of several forms.
    let by_form = readings.iter().any(|reading| reading.format.is_some());
    let form = by_form.then_some(Column::Whole("FORM"));
    let rest = ["TIME", "WORKER", "SEQUENCE"].map(Column::Whole);
    let columns = [Column::Text("LAYOUT")].into_iter().chain(form).chain(rest);
    let mut table = Table::new(columns.chain([Column::Text("")])).indented(2).keeping("");
    for reading in readings {
        let dash = || "-".to_owned();
        let worker = worker_text(reading.worker, reading.worker_parts);
        let against = match (&reading.why, reading.plausible) {
            (None, _) => String::new(),
            (Some(why), true) => format!("doubtful: {why}"),
            (Some(why), false) => format!("implausible: {why}"),
        };
        let form = by_form.then(|| reading.format.clone().unwrap_or_else(dash));
        let rest = [
            reading.time.clone().unwrap_or_else(dash),
            worker.unwrap_or_else(dash),
            reading.sequence.map_or_else(dash, |sequence| sequence.to_string()),
            against,
        ];
        table.row([reading.layout.clone()].into_iter().chain(form).chain(rest));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of a worker number would be another worker.
    #[test]
    fn narrow_terminal_cuts_no_number() {
        let reading = ReadingBody {
            layout: "twitter,epoch=2016-11-26T13:21:05.631Z".into(),
            time: Some("2019-05-25T12:10:20.748Z".into()),
            worker: Some(1_000_000_007),
            worker_parts: Some([1_000_000_000, 7]),
            why: Some("worker 1000000007 is among the highest".into()),
            plausible: true,
            ..ReadingBody::default()
        };
        for width in 20..120 {
            let (head, rows) = table(std::slice::from_ref(&reading)).lines(Some(width));
            for (title, cell) in [("WORKER", "1000000007 (1000000000 and 7)"), ("TIME", "20.748Z ")]
            {
                assert_eq!(head.contains(title), rows[0].contains(cell), "{width}: {rows:?}");
            }
        }
    }
}
