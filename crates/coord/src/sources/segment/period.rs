//! Periods of serials: the numbers that may be minted now.
//!
//! This node's clock names the current period; the newest period seen anywhere rules out all
//! earlier ones. So a clock that is set back stays in the newest period, and yesterday's prefetched
//! numbers are dropped when today begins. A node with a clock known to be wrong begins no period:
//! all other nodes would have to follow it.
//!
//! Periods are ranges of IDs. A store with a stripe of them counts differently, and is called with
//! its own numbers.

use std::sync::atomic::Ordering;

use super::SegmentSource;
use crate::error::{Error, ErrorKind, Result};
use crate::model::segment::Bounds;
use crate::model::ticks::NumberInterval;
use crate::spec::{Period, SerialPlan};

impl SegmentSource {
    /// Returns the lowest number that may be minted now.
    pub(super) fn lowest(&self) -> Result<u64> {
        Ok(self.period()?.map_or(0, |(period, _)| self.stripe.number_from(period.first)))
    }

    /// Returns the numbers of a period.
    pub(super) fn within(&self, period: Option<Period>) -> Option<Bounds> {
        let Period { first, end } = period?;
        let number = |id| self.stripe.number_from(id);
        Some(Bounds::Range(NumberInterval { first: number(first), end: number(end) }))
    }

    /// Returns the same range, cut where the source must end: so its mark never covers more than
    /// was handed out.
    pub(super) fn below_end(&self, within: Option<Bounds>) -> Option<Bounds> {
        let stripe = self.plan.load().stripe;
        if stripe.until().is_none() {
            return within;
        }
        let end = stripe.number_max().saturating_add(1);
        let range = match within {
            Some(Bounds::Range(range)) => NumberInterval { end: range.end.min(end), ..range },
            _ => NumberInterval { first: stripe.number_min(), end },
        };
        Some(Bounds::Range(range))
    }

    /// Returns the period in which numbers of a source of serials may be reserved now.
    pub(super) async fn reservable(&self) -> Result<Option<Period>> {
        let Some((period, is_new)) = self.period()? else { return Ok(None) };
        if is_new {
            self.ctx.checked_time().await?;
        }
        Ok(Some(period))
    }

    /// Returns the period to mint in now, and whether it is new: no server was seen minting in it.
    fn period(&self) -> Result<Option<(Period, bool)>> {
        let plan = self.plan.load();
        let Some(serial) = &plan.serial else { return Ok(None) };
        let now = serial.at(self.ctx.clock.unix_ms()).map_err(|error| {
            Error::invalid(format!(
                "source {:?} has no period at this clock's time: {error}; check the clock",
                self.name
            ))
        })?;
        let other_newest = self.newest_in_other_store.load(Ordering::Relaxed);
        let newest = serial.of(self.refill().newest_id.max(other_newest));
        let is_new = now.first > newest.first;
        Ok(Some((if is_new { now } else { newest }, is_new)))
    }

    /// Records that another store's part made this serial: no number of an earlier period is minted
    /// here any more.
    pub(in crate::sources) fn record_other_serial(&self, id: u64) {
        self.newest_in_other_store.fetch_max(id, Ordering::Relaxed);
    }

    /// Returns whether the store's error shows that its numbers have reached a later period;
    /// records the period.
    pub(super) fn has_newer_period(&self, error: &Error) -> bool {
        match error.kind() {
            ErrorKind::MarkMoved { expected, found } if found > expected => {
                // The mark at the very end of a period belongs to it.
                self.record_mark(found.get());
                true
            }
            _ => false,
        }
    }

    /// Records the store's mark.
    pub(super) fn record_mark(&self, mark: u64) {
        if let Some(last) = self.stripe.last(mark) {
            let mut refill = self.refill();
            refill.newest_id = refill.newest_id.max(last);
        }
    }

    /// Returns the error of a period without numbers, in its own words.
    pub(super) fn spent_period(&self, error: Error, period: Option<Period>) -> Error {
        let plan = self.plan.load();
        match (error.kind(), &plan.serial, period) {
            (ErrorKind::MarkMoved { .. }, Some(serial), Some(period)) => {
                self.used_up(serial, period)
            }
            _ => error,
        }
    }

    fn used_up(&self, serial: &SerialPlan, period: Period) -> Error {
        let (name, number_max) = (&self.name, serial.number_max());
        Error::exhausted(match serial.parts_of(period.first).period {
            Some(date) => format!(
                "source {name:?} has used up period {date}, maximum {number_max} (serial.width); \
                 wait for the next period or define a wider source"
            ),
            None => format!(
                "source {name:?} has used up its numbers, maximum {number_max} (serial.width); \
                 define a wider source"
            ),
        })
    }
}
