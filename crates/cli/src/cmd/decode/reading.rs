//! Reading of a number with one of the known layouts.

use serde::Serialize;
use snowmint_core::layout::{EPOCH_DEFAULT, Field, ReadableLayout, YEAR_MS};
use snowmint_core::{Parts, UnixMillis};

use super::view::DecodeView;
use crate::terminal::exit::Outcome;
use crate::terminal::output::Output;
use crate::terminal::when::Age;

/// Largest time by which an ID may be ahead of the clock before its reading counts as a misreading.
const AHEAD_MS_MAX: u64 = 24 * 3_600_000;

/// Divisor of a layout's past. Times in the first of this many parts count as misreadings: IDs read
/// with too many bits below the time fall there.
const YOUNG_SHARE: u64 = 100;

/// Age from which it speaks against a reading, in years.
const OLD_YEARS: u64 = 10;

/// Bits of a worker number that do not speak against a reading yet; half of the field's, if these are
/// more.
const WORKER_BITS_MAX: u32 = 6;

/// A layout with which a number is read.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// Text that names it to `--layout`.
    pub(super) name: String,
    pub(super) layout: ReadableLayout,
    /// Time before which no such ID was made.
    pub(super) birth: UnixMillis,
    /// Whether high worker numbers are usual.
    pub(super) any_worker: bool,
}

/// Reading of one layout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Reading {
    /// Name of the layout, with the epoch if it is not that of the name.
    pub(super) layout: String,
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
    /// Reasons against the reading; of an implausible one, that for which it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
    /// Weight of the reasons against the reading: its distance from now in years, plus the bits of its
    /// worker number.
    #[serde(skip)]
    pub(super) cost: u64,
}

impl Reading {
    pub(super) fn of(candidate: Candidate, id: u64, view: &DecodeView<'_>) -> Self {
        let layout = &candidate.layout;
        let Ok(parts) = layout.unpack(id) else {
            let why = Some(format!("more than {} bits", layout.total_bits()));
            return Self { layout: candidate.name, why, ..Self::default() };
        };
        let time = layout.start_of(parts.tick);
        let has = |field| layout.bits(field) > 0;
        let misread =
            misplaced(id, layout, parts).or_else(|| implausible(time, &candidate, view.now));
        let doubt = Doubt::of(parts, time, &candidate, view.now);
        Self {
            time: Some(view.zone.show(time)),
            clock: has(Field::Clock).then_some(parts.clock),
            worker: has(Field::Worker).then_some(parts.worker),
            worker_parts: layout.split_worker(parts.worker).map(|(high, low)| [high, low]),
            sequence: has(Field::Sequence).then_some(parts.sequence),
            plausible: misread.is_none(),
            why: misread.or(doubt.why),
            cost: doubt.cost,
            layout: candidate.name,
        }
    }
}

/// Returns the reason why the layout places no ID in these bits, if there is one.
pub(super) fn misplaced(id: u64, layout: &ReadableLayout, parts: Parts) -> Option<String> {
    (layout.pack(parts) != Ok(id)).then(|| "its time counts past its second".to_owned())
}

/// Returns the reason why an ID of this time cannot have been minted by now, if there is one.
fn implausible(time: UnixMillis, candidate: &Candidate, now: UnixMillis) -> Option<String> {
    let epoch = candidate.layout.epoch();
    if time.since(now) > AHEAD_MS_MAX {
        return Some(Age::at(time, now).to_string());
    }
    if time < candidate.birth {
        return Some("before the first such ID".into());
    }
    let young_ms = now.since(epoch) / YOUNG_SHARE;
    // Systems on the default epoch are unknown, as is the date since which they mint: only the
    // first day is implausible.
    let young_ms = if epoch == EPOCH_DEFAULT { young_ms.min(AHEAD_MS_MAX) } else { young_ms };
    (time.since(epoch) < young_ms).then(|| "hardly after the epoch".into())
}

/// Reasons that make a reading less plausible, and their weight.
struct Doubt {
    why: Option<String>,
    cost: u64,
}

impl Doubt {
    fn of(parts: Parts, time: UnixMillis, candidate: &Candidate, now: UnixMillis) -> Self {
        let years = now.since(time).max(time.since(now)) / YEAR_MS;
        let field_bits = u32::from(candidate.layout.bits(Field::Worker));
        let worker_bits = u64::BITS - parts.worker.leading_zeros();
        let usual_bits = WORKER_BITS_MAX.max(field_bits / 2);
        // A low number supports a reading only where systems assign low numbers.
        let is_weighed = field_bits > 0 && !candidate.any_worker;
        let mut whys = Vec::new();
        if is_weighed && worker_bits > usual_bits {
            whys.push(format!("worker {} is high", parts.worker));
        }
        if years >= OLD_YEARS {
            whys.push(Age::at(time, now).to_string());
        }
        let cost = if is_weighed { worker_bits } else { WORKER_BITS_MAX };
        let why = (!whys.is_empty()).then(|| whys.join("; "));
        Self { why, cost: years + u64::from(cost) }
    }
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
