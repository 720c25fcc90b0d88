//! Periods of serials: which numbers may be minted now.
//!
//! This node's clock says which period it is; the newest that was seen anywhere says which it cannot be
//! any more. So a clock that goes back stays in the newest period, and a stock of yesterday's numbers is
//! thrown away when today begins. And nobody begins a period whose clock is known to be wrong: all others would
//! have to follow.

use super::SegmentSource;
use crate::error::{Error, ErrorKind, Result};
use crate::segment::{Bounds, Within};
use crate::spec::{Period, SerialPlan};

impl SegmentSource {
    /// The lowest number that may be minted now.
    pub(super) fn lowest(&self) -> Result<u64> {
        Ok(self.period()?.map_or(0, |(period, _)| period.first))
    }

    /// The numbers that may be reserved now, of a source of serials.
    pub(super) async fn within(&self) -> Result<Option<Bounds>> {
        let Some((Period { first, end }, is_new)) = self.period()? else { return Ok(None) };
        if is_new {
            self.around.check_clock().await?;
        }
        Ok(Some(Bounds::Range(Within { first, end })))
    }

    /// The period that numbers are minted in now, and whether nobody was seen to mint in it yet.
    fn period(&self) -> Result<Option<(Period, bool)>> {
        let plan = self.plan.load();
        let Some(serial) = &plan.serial else { return Ok(None) };
        let now = serial.at(self.around.clock.unix_ms()).map_err(|why| {
            Error::invalid("mint", format!("source {}, by this clock: {why}", self.name))
        })?;
        let newest = serial.of(self.refill().newest_number);
        let is_new = now.first > newest.first;
        Ok(Some((if is_new { now } else { newest }, is_new)))
    }

    /// Whether the store said that its numbers have come to a later period; that is remembered.
    pub(super) fn has_newer_period(&self, error: &Error) -> bool {
        match error.kind() {
            ErrorKind::MarkMoved { expected, found, .. } if found > expected => {
                let mut refill = self.refill();
                // The mark at the very end of a period belongs to it.
                refill.newest_number = refill.newest_number.max(found.get().saturating_sub(1));
                true
            }
            _ => false,
        }
    }

    /// The error of a period without numbers, in words that say so.
    pub(super) fn spent_period(&self, error: Error, within: Option<Bounds>) -> Error {
        let plan = self.plan.load();
        match (error.kind(), &plan.serial, within) {
            (ErrorKind::MarkMoved { .. }, Some(serial), Some(Bounds::Range(within))) => {
                Error::new("reserve", self.used_up(serial, within))
            }
            _ => error,
        }
    }

    fn used_up(&self, serial: &SerialPlan, within: Within) -> ErrorKind {
        let period = serial.parts_of(within.first).period;
        let period = period.map_or_else(String::new, |period| format!(" in {period}"));
        let what = format!("source {}{period} (serial.width)", self.name);
        ErrorKind::Exhausted { what, limit: serial.number_max() }
    }
}
