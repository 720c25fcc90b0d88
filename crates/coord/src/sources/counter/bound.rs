//! Bounds of counter keys: reading a bound and raising it.

use super::key::CounterKey;
use super::{BOUND_MAX, CountError, CounterSource, WindowBounds};
use crate::error::{Error, Result};
use crate::model::segment::NUMBER_MAX;

impl CounterSource {
    /// Returns the highest number that the key may have returned to any caller; 0 if there is none.
    pub(crate) async fn bound(&self, key: &[u8], within_ms: u64) -> Result<u64> {
        let parsed = CounterKey::new(key)?;
        let section = self.slots.of(key);
        let attempt = || {
            let hold = self.sections().held_by(section);
            Ok((self.try_bound(parsed, section)?, hold))
        };
        let (bound, hold) = self.retry_on_news(within_ms, attempt).await?;
        self.check_confirmed(section, hold).await.map(|()| bound)
    }

    /// Makes every later number of the key greater than `highest`, durably once this returns.
    pub(crate) async fn raise(&self, key: &[u8], highest: u64, within_ms: u64) -> Result<()> {
        let parsed = CounterKey::new(key)?;
        if highest > BOUND_MAX {
            return Err(Error::invalid(format!(
                "bound {highest} of a key of source {:?} is above {BOUND_MAX}; \
                 use a lower one (other keys of the section continue above it)",
                self.name
            )));
        }
        let section = self.slots.of(key);
        let highest = highest.saturating_sub(self.above);
        let attempt = || {
            let hold = self.sections().held_by(section);
            self.try_raise(parsed, section, highest).map(|()| hold)
        };
        let hold = self.retry_on_news(within_ms, attempt).await?;
        self.check_confirmed(section, hold).await
    }

    /// Sets the key's last number to at least `highest`, once the section's mark lies above it: the
    /// next owner of the section then starts above it too.
    fn try_raise(&self, key: CounterKey<'_>, section: u16, highest: u64) -> Result<(), CountError> {
        let cell = self.sections().cell(section);
        let lease = self.sections().lease();
        let (mut shard, hash) = self.table.lock(key);
        match self.window(section) {
            Some(window) if highest >= window.limit => {
                drop(shard);
                return Err(self.spent(section, highest));
            }
            // A key without a record starts at the window's base, above `highest`: no record is
            // needed.
            Some(window) if highest < window.base => {}
            _ => {
                let Some((_, place)) = self.place(&mut shard, key, hash, section) else {
                    drop(shard);
                    return Err(self.not_here(section));
                };
                if *place < highest {
                    *place = highest;
                    cell.gave(highest);
                }
                self.table.count(&mut shard);
            }
        }
        drop(shard);
        self.sections().make_room();
        self.check_lease(lease)
    }

    fn try_bound(&self, key: CounterKey<'_>, section: u16) -> Result<u64, CountError> {
        let lease = self.sections().lease();
        let (shard, hash) = self.table.lock(key);
        let Some(WindowBounds { base, .. }) = self.window(section) else {
            drop(shard);
            return Err(self.not_here(section));
        };
        let known = self.table.find(&shard, key, hash).unwrap_or(0);
        // Any owner may have issued what is below the base for a key without a record.
        let bound = known.max(base.saturating_sub(1));
        drop(shard);
        self.check_lease(lease)?;
        Ok(if bound == 0 { 0 } else { bound.saturating_add(self.above).min(NUMBER_MAX) })
    }
}
