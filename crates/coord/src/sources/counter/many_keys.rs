//! One number for each of several keys.
//!
//! The number of a key usually stands in a memory line that no cache holds. The taker waits for it
//! before it may check the lease. For several keys, the lines are requested together and the lease
//! is checked once.

use std::hint::black_box;
use std::sync::atomic::Ordering;

use super::key::CounterKey;
use super::key_table::Spot;
use super::{CounterSource, TableNumbers};
use crate::error::Result;

/// Keys taken at once: about as many cache lines as a processor waits for at the same time, and few
/// enough that concurrent takers seldom need the same part of the table.
const ROUND_KEYS: usize = 16;
/// Marker for a missing number; shown numbers begin at 1.
const NONE: u64 = 0;

/// A requested key.
struct RequestedKey<'a> {
    /// Its index among all requested keys.
    index: usize,
    key: CounterKey<'a>,
    spot: Spot,
    section: u16,
}

impl CounterSource {
    /// Takes a number for each key, in order; waits at most `within_ms` for the store.
    pub(crate) async fn take_each(&self, keys: &[&[u8]], within_ms: u64) -> Result<Vec<u64>> {
        let deadline = self.ctx.deadline(within_ms);
        let mut numbers = self.take_from_memory(keys)?;
        for (key, number) in keys.iter().zip(&mut numbers) {
            if *number == NONE {
                *number = self.take(key, 1, deadline.left_ms()).await?.last;
            }
        }
        Ok(numbers)
    }

    /// Does the same as [`Self::take_each`], without waiting.
    pub(crate) fn take_each_now(&self, keys: &[&[u8]]) -> Result<Vec<u64>> {
        let mut numbers = self.take_from_memory(keys)?;
        for (key, number) in keys.iter().zip(&mut numbers) {
            if *number == NONE {
                *number = self.take_now(key, 1)?.last;
            }
        }
        Ok(numbers)
    }

    /// Takes a number for each key from memory: [`NONE`] where memory has none.
    fn take_from_memory(&self, keys: &[&[u8]]) -> Result<Vec<u64>> {
        let mut numbers = vec![NONE; keys.len()];
        // All keys are checked first: an error after the first take would lose the numbers taken.
        let requested = keys.iter().enumerate().map(|(index, key)| self.parsed(index, key));
        let mut requested: Vec<_> = requested.collect::<Result<_>>()?;
        if !self.confirm.load(Ordering::Acquire) {
            for batch in requested.chunks_mut(ROUND_KEYS) {
                self.take_round(batch, &mut numbers);
            }
        }
        Ok(numbers)
    }

    fn parsed<'a>(&self, index: usize, key: &'a [u8]) -> Result<RequestedKey<'a>> {
        let parsed = CounterKey::new(key)?;
        let (spot, section) = (self.table.spot(parsed), self.slots.of(key));
        Ok(RequestedKey { index, key: parsed, spot, section })
    }

    /// Takes numbers, and only then checks that the lease still lasts, as for one key.
    fn take_round(&self, requested: &mut [RequestedKey<'_>], numbers: &mut [u64]) {
        let lease = self.sections().lease();
        // Several parts are locked in this order everywhere, so that no two threads deadlock.
        requested.sort_by_key(|key| key.spot.shard);
        let mut taken: [Option<TableNumbers>; ROUND_KEYS] = [const { None }; ROUND_KEYS];
        self.take_sorted(requested, &mut taken);
        self.sections().make_room();
        for (key, taken) in requested.iter().zip(&taken) {
            if let Some(taken) = taken {
                self.request_ahead(key.section, taken);
            }
        }
        if self.check_lease(lease).is_err() {
            return;
        }
        for (key, taken) in requested.iter().zip(taken) {
            if let (Some(number), Some(taken)) = (numbers.get_mut(key.index), taken) {
                *number = self.shown(taken.last);
            }
        }
    }

    fn take_sorted(&self, requested: &[RequestedKey<'_>], taken: &mut [Option<TableNumbers>]) {
        let same_part =
            |one: &RequestedKey<'_>, next: &RequestedKey<'_>| one.spot.shard == next.spot.shard;
        let mut parts: Vec<_> = requested
            .chunk_by(same_part)
            .filter_map(|part| Some((self.table.lock_part(part.first()?.spot), part)))
            .collect();
        // No locked instruction from here to the end of the loop: a processor does not pass one
        // until its earlier loads have arrived.
        let all = parts.iter().flat_map(|(shard, part)| part.iter().map(move |key| (shard, key)));
        let seen = all.fold(0, |seen, (shard, RequestedKey { key, spot, section, .. })| {
            seen ^ self.table.glance(shard, *key, spot.hash) ^ self.sections().cell(*section).base()
        });
        black_box(seen);
        let mut taken = taken.iter_mut();
        for (shard, part) in &mut parts {
            for (RequestedKey { key, spot, section, .. }, taken) in part.iter().zip(taken.by_ref())
            {
                *taken = self.take_locked(shard, *key, spot.hash, *section, 1).ok();
            }
        }
    }
}
