//! Reading of a number with one of the known layouts.

use snowmint_core::layout::{EPOCH_DEFAULT, Field, ReadableLayout, YEAR_MS};
use snowmint_core::{Parts, UnixMillis};

use super::age::Age;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutReading {
    /// Name of the layout, with the epoch if it is not that of the name.
    pub name: String,
    /// The layout itself.
    pub layout: ReadableLayout,
    /// Fields of the ID, if it has no more bits than the layout.
    pub parts: Option<Parts>,
    /// Whether an ID of this layout could have been minted by now.
    pub plausible: bool,
    /// Reasons against the reading; of an implausible one, that for which it is.
    pub why: Option<String>,
    /// Weight of the reasons against the reading: its distance from now in years, plus the bits of its
    /// worker number.
    pub(super) cost: u64,
}

impl LayoutReading {
    pub(super) fn of(candidate: Candidate, id: u64, now: UnixMillis) -> Self {
        let layout = candidate.layout;
        let Ok(parts) = layout.unpack(id) else {
            let why = Some(format!("more than {} bits", layout.total_bits()));
            let name = candidate.name;
            return Self { name, layout, parts: None, plausible: false, why, cost: 0 };
        };
        let time = layout.start_of(parts.tick);
        let misread = misplaced(id, &layout, parts).or_else(|| implausible(time, &candidate, now));
        let doubt = Doubt::of(parts, time, &candidate, now);
        Self {
            parts: Some(parts),
            plausible: misread.is_none(),
            why: misread.or(doubt.why),
            cost: doubt.cost,
            name: candidate.name,
            layout,
        }
    }

    /// Returns the key by which readings are listed: the most plausible one has the lowest. A reading
    /// with a reason against it comes after all without one.
    #[must_use]
    pub const fn rank(&self) -> (bool, bool, u64) {
        (!self.plausible, self.why.is_some(), self.cost)
    }
}

/// Returns the reason why the layout places no ID in these bits, if there is one.
#[must_use]
pub fn misplaced(id: u64, layout: &ReadableLayout, parts: Parts) -> Option<String> {
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
