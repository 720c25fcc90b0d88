//! Counting of a source's numbers inside the server.

use snowmint_coord::error::chain;
use snowmint_coord::segment::{NumberInterval, SegmentRow};
use snowmint_coord::verbs::Failure;
use snowmint_coord::{Bounds, Mark, Ticks};

use super::{KeysResult, Redis, time};
use crate::keyed::{Counted, CountedRange, ScriptOutcome, ScriptRequest, name};

impl Redis {
    /// Runs one script in one round trip. If the server has lost its scripts, this one is loaded
    /// again.
    pub(super) async fn count(&self, request: &ScriptRequest<'_>) -> KeysResult<ScriptOutcome> {
        let store = request.store;
        let mut invocation = self.reserve.key(&self.root);
        invocation.key(self.hash(name::SOURCES));
        invocation.arg(format!("{} {}", store.version, store.value));
        invocation.arg(request.server.unwrap_or_default()).arg(request.writes_at_least);
        invocation.arg(&request.reserve.source).arg(&request.before_mark);
        invocation.arg(request.reserve.length);
        match request.reserve.within {
            None => {}
            Some(Bounds::Range(NumberInterval { first, end })) => {
                invocation.arg("range").arg(first).arg(end);
            }
            Some(Bounds::Now(ticks)) => {
                let Ticks { epoch, unit_ms, sequence_bits, tick_max, lag, lead, now: _ } = ticks;
                // The verb over rows rejects values that no layout has.
                let Some(size) = 1_u64.checked_shl(sequence_bits.into()) else {
                    return Ok(ScriptOutcome::Differs);
                };
                if size == 1 || unit_ms == 0 {
                    return Ok(ScriptOutcome::Differs);
                }
                invocation.arg("now").arg(epoch.get()).arg(unit_ms).arg(size);
                invocation.arg(tick_max).arg(lag).arg(lead);
            }
        }
        let reply: Option<Vec<String>> =
            invocation.invoke_async(&mut self.link()?).await.map_err(Failure::Backend)?;
        match reply {
            None => Ok(ScriptOutcome::Differs),
            Some(words) if words.is_empty() => Ok(ScriptOutcome::Backoff),
            Some(words) => counted(&words).map(ScriptOutcome::Counted),
        }
    }

    /// Makes the counting script return nothing for a moment, so that a change of a definition,
    /// which takes more than one round trip, can finish.
    pub(super) async fn yield_to_writers(&self) {
        let Ok(mut link) = self.link() else { return };
        let invocation = self.yield_to_writers.key(&self.root).invoke_async::<()>(&mut link).await;
        if let Err(error) = invocation {
            tracing::debug!(error = %chain(&error), "failed to ask writers to wait");
        }
    }
}

/// Parses the script's reply.
fn counted(words: &[String]) -> KeysResult<Counted> {
    let odd = || Failure::Damaged(format!("script returned {words:?}"));
    let number = |index: usize| words.get(index)?.parse::<u64>().ok();
    let read = || {
        let row = SegmentRow {
            mark: Mark::new(number(0)?),
            floor: Mark::new(number(1)?),
            version: number(2)?,
        };
        let clock = Some(time(number(3)?, number(4)?));
        let namespace = words.get(5)?.split_once(' ')?.1.to_owned();
        let range = match words.len() {
            6 => None,
            _ => Some(CountedRange { writes: number(6)?, first: number(7)?, end: number(8)? }),
        };
        Some(Counted { row, clock, namespace, range })
    };
    read().ok_or_else(odd)
}
