//! Periods of serials: which numbers may be minted now.
//!
//! This node's clock says which period it is; the newest that was seen anywhere says which it cannot be
//! any more. So a clock that goes back stays in the newest period, and a stock of yesterday's numbers is
//! thrown away when today begins. And nobody begins a period whose clock is known to be wrong: all others would
//! have to follow.
//!
//! Periods are ranges of IDs. A store that has a stripe of them counts otherwise, and is asked in its own
//! numbers.

use std::sync::atomic::Ordering;

use super::SegmentSource;
use crate::error::{Error, ErrorKind, Result};
use crate::segment::{Bounds, Within};
use crate::spec::{Period, SerialPlan};

impl SegmentSource {
    /// The lowest number that may be minted now.
    pub(super) fn lowest(&self) -> Result<u64> {
        Ok(self.period()?.map_or(0, |(period, _)| self.stripe.number_from(period.first)))
    }

    /// The numbers of a period.
    pub(super) fn within(&self, period: Option<Period>) -> Option<Bounds> {
        let Period { first, end } = period?;
        let number = |id| self.stripe.number_from(id);
        Some(Bounds::Range(Within { first: number(first), end: number(end) }))
    }

    /// The same, below where the source is told to end: so its mark never says that more was handed out.
    pub(super) fn below_end(&self, within: Option<Bounds>) -> Option<Bounds> {
        let stripe = self.plan.load().stripe;
        if stripe.until().is_none() {
            return within;
        }
        let end = stripe.number_max().saturating_add(1);
        let range = match within {
            Some(Bounds::Range(range)) => Within { end: range.end.min(end), ..range },
            _ => Within { first: stripe.number_min(), end },
        };
        Some(Bounds::Range(range))
    }

    /// The period that numbers may be reserved in now, of a source of serials.
    pub(super) async fn reservable(&self) -> Result<Option<Period>> {
        let Some((period, is_new)) = self.period()? else { return Ok(None) };
        if is_new {
            self.around.checked_time().await?;
        }
        Ok(Some(period))
    }

    /// The period that numbers are minted in now, and whether nobody was seen to mint in it yet.
    fn period(&self) -> Result<Option<(Period, bool)>> {
        let plan = self.plan.load();
        let Some(serial) = &plan.serial else { return Ok(None) };
        let now = serial.at(self.around.clock.unix_ms()).map_err(|why| {
            Error::invalid("mint", format!("source {}, by this clock: {why}", self.name))
        })?;
        let elsewhere = self.newest_elsewhere.load(Ordering::Relaxed);
        let newest = serial.of(self.refill().newest_id.max(elsewhere));
        let is_new = now.first > newest.first;
        Ok(Some((if is_new { now } else { newest }, is_new)))
    }

    /// Others have made this serial of the source: nothing of an earlier period is made here any more.
    pub(in crate::sources) fn was_seen(&self, id: u64) {
        self.newest_elsewhere.fetch_max(id, Ordering::Relaxed);
    }

    /// Whether the store said that its numbers have come to a later period; that is remembered.
    pub(super) fn has_newer_period(&self, error: &Error) -> bool {
        match error.kind() {
            ErrorKind::MarkMoved { expected, found, .. } if found > expected => {
                // The mark at the very end of a period belongs to it.
                self.came_to(found.get());
                true
            }
            _ => false,
        }
    }

    /// The store's mark was seen here.
    pub(super) fn came_to(&self, mark: u64) {
        if let Some(last) = self.stripe.last(mark) {
            let mut refill = self.refill();
            refill.newest_id = refill.newest_id.max(last);
        }
    }

    /// The error of a period without numbers, in words that say so.
    pub(super) fn spent_period(&self, error: Error, period: Option<Period>) -> Error {
        let plan = self.plan.load();
        match (error.kind(), &plan.serial, period) {
            (ErrorKind::MarkMoved { .. }, Some(serial), Some(period)) => {
                Error::new("reserve", self.used_up(serial, period))
            }
            _ => error,
        }
    }

    fn used_up(&self, serial: &SerialPlan, period: Period) -> ErrorKind {
        let date = serial.parts_of(period.first).period;
        let date = date.map_or_else(String::new, |date| format!(" in {date}"));
        let what = format!("source {}{date} (serial.width)", self.name);
        ErrorKind::Exhausted { what, limit: serial.number_max() }
    }
}
