//! Counting of a source's numbers inside the server.

use snowmint_coord::error::chain;
use snowmint_coord::segment::{SegmentRow, Within};
use snowmint_coord::verbs::Failure;
use snowmint_coord::{Bounds, Mark, Ticks};

use super::{Answer, Redis, time};
use crate::keyed::{Counted, Looked, Question, Taken, name};

impl Redis {
    /// Runs one script in one round trip. If the server has lost its scripts, this one is loaded
    /// again.
    pub(super) async fn count(&self, question: &Question<'_>) -> Answer<Looked> {
        let store = question.store;
        let mut asked = self.reserve.key(&self.root);
        asked.key(self.hash(name::SOURCES));
        asked.arg(format!("{} {}", store.version, store.value));
        asked.arg(question.server.unwrap_or_default()).arg(question.writes_at_least);
        asked.arg(&question.reserve.source).arg(&question.before_mark);
        asked.arg(question.reserve.length);
        match question.reserve.within {
            None => {}
            Some(Bounds::Range(Within { first, end })) => {
                asked.arg("range").arg(first).arg(end);
            }
            Some(Bounds::Now(ticks)) => {
                let Ticks { epoch, unit_ms, sequence_bits, tick_max, lag, lead, now: _ } = ticks;
                // The verb over rows rejects values that no layout has.
                let Some(size) = 1_u64.checked_shl(sequence_bits.into()) else {
                    return Ok(Looked::Differs);
                };
                if size == 1 || unit_ms == 0 {
                    return Ok(Looked::Differs);
                }
                asked.arg("now").arg(epoch.get()).arg(unit_ms).arg(size);
                asked.arg(tick_max).arg(lag).arg(lead);
            }
        }
        let answer: Option<Vec<String>> =
            asked.invoke_async(&mut self.link()?).await.map_err(Failure::Backend)?;
        match answer {
            None => Ok(Looked::Differs),
            Some(words) if words.is_empty() => Ok(Looked::StandBack),
            Some(words) => counted(&words).map(Looked::Counted),
        }
    }

    /// Makes the counting script return nothing for a moment, so that a change of a definition,
    /// which takes more than one round trip, can finish.
    pub(super) async fn make_way(&self) {
        let Ok(mut link) = self.link() else { return };
        let asked = self.make_way.key(&self.root).invoke_async::<()>(&mut link).await;
        if let Err(error) = asked {
            tracing::debug!(error = %chain(&error), "nobody makes way");
        }
    }
}

/// Parses the script's reply.
fn counted(words: &[String]) -> Answer<Counted> {
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
        let taken = match words.len() {
            6 => None,
            _ => Some(Taken { writes: number(6)?, first: number(7)?, end: number(8)? }),
        };
        Some(Counted { row, clock, namespace, taken })
    };
    read().ok_or_else(odd)
}
