//! A layout and a worker, checked together once, in the form that minting needs.

use crate::advance::{Ordinal, Rules, TickWindow};
use crate::layout::{Field, Layout, OutOfRange, Parts};
use crate::time::{Tick, UnixMillis, Window};

use super::settings::{Rollback, Settings};

/// Where an ordinal's bits go. The one place that packs unchecked: `new` checked the constant fields,
/// and `advance` keeps tick and sequence within their bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    sequence_mask: u64,
    /// Worker and clock value, in place.
    base: u64,
    pub(super) unit_ms: u64,
    sequence_bits: u8,
    sequence_shift: u8,
    time_shift: u8,
    layout: Layout,
}

impl Shape {
    pub(super) fn new(layout: Layout, worker: u64, clock_value: u64) -> Result<Self, OutOfRange> {
        let base =
            layout.pack(Parts { tick: Tick::ZERO, clock: clock_value, worker, sequence: 0 })?;
        Ok(Self {
            sequence_mask: layout.sequence_max(),
            base,
            unit_ms: u64::from(layout.unit_ms()),
            sequence_bits: layout.bits(Field::Sequence),
            sequence_shift: layout.shift(Field::Sequence),
            time_shift: layout.shift(Field::Time),
            layout,
        })
    }

    pub(super) const fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    pub(super) const fn id(&self, ordinal: u64) -> u64 {
        ((ordinal >> self.sequence_bits) << self.time_shift)
            | ((ordinal & self.sequence_mask) << self.sequence_shift)
            | self.base
    }

    /// How far apart neighbours of one tick are.
    #[inline]
    pub(super) const fn stride(&self) -> u64 {
        1 << self.sequence_shift
    }

    /// The IDs of the ordinals from `first` on, all in one tick.
    #[inline]
    pub(super) fn write(&self, first: Ordinal, out: &mut [u64]) {
        let stride = self.stride();
        let mut id = self.id(first.get());
        for slot in out {
            *slot = id;
            id = id.wrapping_add(stride);
        }
    }

    pub(super) fn rules(&self, settings: &Settings) -> Rules {
        let ticks = |ms: u64| ms.checked_div(self.unit_ms).unwrap_or(0);
        Rules {
            sequence_bits: self.sequence_bits,
            tick_max: self.layout.tick_max().get(),
            lag_ticks: ticks(settings.burst_ms),
            lead_ticks: match settings.rollback {
                Rollback::Borrow { lead_max_ms } => ticks(lead_max_ms),
                _ => 0,
            },
            start: settings.sequence_start,
        }
    }

    /// The ticks that lie wholly inside a window.
    pub(super) fn ticks_of(&self, window: Window) -> TickWindow {
        let floor_ms = window.floor.since(self.layout.epoch());
        TickWindow { floor: floor_ms.div_ceil(self.unit_ms), end: self.end_tick(window.mark) }
    }

    /// The first tick that does not end at or before `mark`.
    pub(super) fn end_tick(&self, mark: UnixMillis) -> u64 {
        mark.since(self.layout.epoch()).checked_div(self.unit_ms).unwrap_or(0)
    }

    pub(super) const fn start_of(&self, tick: u64) -> UnixMillis {
        self.layout.start_of(Tick::new(tick))
    }
}
