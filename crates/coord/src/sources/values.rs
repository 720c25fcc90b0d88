//! Values that sources report: totals, blocks of numbers, and states for monitors.

use snowmint_core::UnixMillis;

use super::prefill::PrefillStats;

/// State of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceStats {
    /// Whether it can mint now.
    pub ready: bool,
    /// End of everything taken, of a snowflake source.
    pub taken_until: Option<UnixMillis>,
    /// Milliseconds by which the last tick taken leads the clock, of a snowflake source.
    pub lead_ms: Option<u64>,
    /// Runway of a snowflake source: milliseconds from the clock, or from the end of everything
    /// taken if that is later, to the end of the store's grant. Absent for a disabled or a
    /// global-order source.
    pub window_ms: Option<u64>,
    /// Backward and forward clock steps that its generator met.
    pub clock_steps: (u64, u64),
    /// Totals of a segment source.
    pub numbers: Option<NumberStats>,
    /// Keys known here, and the bytes that they take, of a counter source.
    pub keys: Option<(u64, u64)>,
    /// Queue of a prefilled source.
    pub prefill: Option<PrefillStats>,
    /// State of each store, of a multi-store source.
    pub stores: Vec<StoreStatus>,
}

/// State of one store of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreStatus {
    /// The store's name.
    pub store: String,
    /// Whether it hands out numbers, prefetched ones included.
    pub serving: bool,
    /// Offset and increment of its stripe, if known.
    pub stripe: Option<(u64, u64)>,
    /// Worker number in its IDs, where the stores mint and if it is known.
    pub worker: Option<u64>,
    /// Present error, for example while it is unreachable and its prefetched numbers last.
    pub error: Option<String>,
    /// Detail of the error for operators, such as the store's address:
    /// [`Error::detail`](crate::error::Error::detail).
    pub error_detail: Option<String>,
}

/// Totals of the numbers that a segment source took from the store, except for ranges too long to
/// come from prefetched numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumberStats {
    /// Prefetched numbers.
    pub prefetched: u64,
    /// Numbers taken from the store, including those of lost results, without those given back.
    pub fetched: u64,
    /// Numbers never issued: those of lost results, of ranges with a gap, and those prefetched at
    /// the end that could not be given back.
    pub lost: u64,
    /// Milliseconds until the prefetched numbers run out at the present rate; `None` while idle.
    pub lasts_ms: Option<u64>,
}

/// Numbers reserved for one lane, from one store.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberBlock {
    /// Next ID; equal to `end` when there is none. With both facts in one word, each number costs a
    /// single write.
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) increment: u64,
}

impl NumberBlock {
    pub(super) const EMPTY: Self = Self { next: 0, end: 0, increment: 1 };
}
