//! Keys that are durations, checked.

use std::ops::RangeInclusive;

use crate::spec::duration::Span;
use crate::spec::error::{SpecError, value};

/// Returns a duration's milliseconds, within its limit.
pub(super) fn span(
    key: &'static str,
    given: Option<Span>,
    default_ms: u64,
    bounds: &RangeInclusive<u64>,
) -> Result<u64, SpecError> {
    let ms = given.map_or(default_ms, Span::ms);
    if !bounds.contains(&ms) {
        let reason = format!("at most {} is possible", Span::from_ms(*bounds.end()));
        return Err(value(key, Span::from_ms(ms), reason));
    }
    Ok(ms)
}
