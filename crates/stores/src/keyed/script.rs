//! Requests to the script with which a server counts, and its replies.

use snowmint_coord::Reserve;
use snowmint_coord::segment::SegmentRow;
use snowmint_core::UnixMillis;

use super::batch::Entry;

/// A request to the server's script, which counts only if all conditions hold.
#[derive(Debug)]
pub struct ScriptRequest<'a> {
    /// The key `store`.
    pub store: &'a Entry,
    /// The server, or its present run, where that matters.
    pub server: Option<&'a str>,
    /// Lowest write count that the server must have.
    pub writes_at_least: u64,
    /// Text before the mark in the definition's value.
    pub before_mark: String,
    /// The reservation.
    pub reserve: &'a Reserve,
}

/// The script's reply after it read the rows.
#[derive(Debug)]
pub struct Counted {
    /// The row before the step.
    pub row: SegmentRow,
    /// The server's clock.
    pub clock: Option<UnixMillis>,
    /// The value of the key `namespace`.
    pub namespace: String,
    /// Numbers taken, if any.
    pub range: Option<CountedRange>,
}

/// Outcome of a request.
#[derive(Debug)]
pub enum ScriptOutcome {
    /// The script read the rows.
    Counted(Counted),
    /// A condition of the request does not hold.
    Differs,
    /// A writer that changes more than numbers needs the server idle for a moment.
    Backoff,
}

/// Numbers that the server took.
#[derive(Clone, Copy, Debug)]
pub struct CountedRange {
    /// The server's write count afterwards.
    pub writes: u64,
    /// The first number.
    pub first: u64,
    /// The number after the last.
    pub end: u64,
}
