//! A layout and a worker, checked together once, in the form that minting needs.

use crate::advance::{Ordinal, Rules, TickWindow};
use crate::layout::{Field, Layout, OutOfRange, Parts};
use crate::time::{Tick, UnixMillis, Window};

use super::settings::{Rollback, Settings};

/// Maximum number of IDs taken between two reads of the clock behind a cache.
pub const GRANT_MAX: u64 = 1 << 16;

/// The position of an ordinal's bits in an ID. This type alone packs unchecked: `new` checked the
/// constant fields, and `advance` keeps tick and sequence within their bits. Time is the highest
/// field, so IDs of one worker and clock value sort like their ordinals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Worker and clock value, in place.
    base: u64,
    pub(super) unit_ms: u64,
    layout: Layout,
}

impl Shape {
    pub(super) fn new(layout: Layout, worker: u64, clock_value: u64) -> Result<Self, OutOfRange> {
        let base =
            layout.pack(Parts { tick: Tick::ZERO, clock: clock_value, worker, sequence: 0 })?;
        Ok(Self { base, unit_ms: u64::from(layout.unit_ms()), layout })
    }

    pub(super) const fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(super) const fn id(&self, ordinal: Ordinal) -> u64 {
        let sequence_bits = self.layout.bits(Field::Sequence) as u32;
        // Shifts are below 64, as a layout has at most 64 bits. `wrapping` avoids the check.
        let tick = ordinal.get().wrapping_shr(sequence_bits);
        let sequence = ordinal.get() & self.layout.sequence_max();
        tick.wrapping_shl(self.layout.shift(Field::Time) as u32)
            | sequence.wrapping_shl(self.layout.shift(Field::Sequence) as u32)
            | self.base
    }

    /// Returns the first ordinal whose ID is not below `word`. This is the ordinal of `word` itself
    /// if it is an ID of this worker; else (a counter ran over the end of its sequence) the start
    /// of a tick. So `word` never decreases, whatever ran over.
    pub(super) fn ordinal_from(&self, word: u64) -> Ordinal {
        let sequence_bits = u32::from(self.layout.bits(Field::Sequence));
        let tick = word.wrapping_shr(u32::from(self.layout.shift(Field::Time)));
        let first = Ordinal::new(tick.wrapping_shl(sequence_bits));
        let sequence = (word >> self.layout.shift(Field::Sequence)) & self.layout.sequence_max();
        let own = Ordinal::new(first.get() | sequence);
        if self.id(own) == word {
            own
        } else if self.id(first) > word {
            first
        } else {
            Ordinal::new(tick.saturating_add(1).wrapping_shl(sequence_bits))
        }
    }

    /// Returns the bits of an ID that count within a grant: at most the 16 lowest of the sequence.
    pub(super) const fn grant_mask(&self) -> u64 {
        let sequence_max = self.layout.sequence_max();
        let counted =
            if sequence_max < GRANT_MAX { sequence_max } else { GRANT_MAX.saturating_sub(1) };
        counted.wrapping_shl(self.layout.shift(Field::Sequence) as u32)
    }

    /// Returns the difference between adjacent IDs of one tick.
    pub(super) const fn stride(&self) -> u64 {
        1_u64.wrapping_shl(self.layout.shift(Field::Sequence) as u32)
    }

    /// Returns how many IDs of one tick lie between `id` and the next one in the shard of `due`,
    /// which may lie one past the end of its tick.
    pub(super) fn ids_to_turn(&self, id: u64, due: u64, shards: u64) -> u64 {
        let below_bits = u32::from(self.layout.shift(Field::Sequence));
        let shard = |id: u64| {
            let number = id.wrapping_sub(self.base).wrapping_shr(below_bits);
            number.checked_rem(shards).unwrap_or(0)
        };
        let ahead = shard(due).saturating_add(shards).saturating_sub(shard(id));
        ahead.checked_rem(shards).unwrap_or(0)
    }

    /// Writes IDs of one tick, from `id` on.
    #[inline]
    pub(super) fn write(&self, mut id: u64, out: &mut [u64]) {
        let stride = self.stride();
        for slot in out {
            *slot = id;
            id = id.wrapping_add(stride);
        }
    }

    pub(super) fn rules(&self, settings: &Settings) -> Rules {
        let ticks = |ms: u64| ms.checked_div(self.unit_ms).unwrap_or(0);
        Rules {
            sequence_bits: self.layout.bits(Field::Sequence),
            tick_bits: self
                .layout
                .shift(Field::Time)
                .saturating_sub(self.layout.shift(Field::Sequence)),
            tick_max: self.layout.tick_max().get(),
            lag_ticks: ticks(settings.burst_ms),
            lead_ticks: match settings.rollback {
                Rollback::Borrow { lead_max_ms } => ticks(lead_max_ms),
                _ => 0,
            },
            start: settings.sequence_start,
        }
    }

    /// Returns the ticks that lie wholly inside a window.
    pub(super) fn ticks_of(&self, window: Window) -> TickWindow {
        let floor_ms = window.floor.since(self.layout.epoch());
        TickWindow { floor: floor_ms.div_ceil(self.unit_ms), end: self.end_tick(window.mark) }
    }

    /// Returns the first tick that ends after `mark`.
    pub(super) fn end_tick(&self, mark: UnixMillis) -> u64 {
        mark.since(self.layout.epoch()).checked_div(self.unit_ms).unwrap_or(0)
    }

    pub(super) const fn start_of(&self, tick: u64) -> UnixMillis {
        self.layout.start_of(Tick::new(tick))
    }
}
