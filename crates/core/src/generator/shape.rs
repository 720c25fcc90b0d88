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
    shifts: Shifts,
    layout: Layout,
}

/// Three small numbers in one word. After a locked instruction every load waits for it, so that the
/// hot path is as fast as it has few of them.
#[derive(Clone, Copy, Debug)]
struct Shifts(u32);

impl Shifts {
    fn new(sequence_bits: u8, sequence: u8, time: u8) -> Self {
        Self(u32::from_le_bytes([sequence_bits, sequence, time, 0]))
    }

    /// How far an ordinal's tick is shifted.
    #[inline]
    const fn sequence_bits(self) -> u32 {
        self.0 & 0xff
    }

    /// How far an ID's sequence is shifted.
    #[inline]
    const fn sequence(self) -> u32 {
        (self.0 >> 8) & 0xff
    }

    /// How far an ID's tick is shifted.
    #[inline]
    const fn time(self) -> u32 {
        self.0 >> 16
    }
}

impl Shape {
    pub(super) fn new(layout: Layout, worker: u64, clock_value: u64) -> Result<Self, OutOfRange> {
        let base =
            layout.pack(Parts { tick: Tick::ZERO, clock: clock_value, worker, sequence: 0 })?;
        Ok(Self {
            sequence_mask: layout.sequence_max(),
            base,
            unit_ms: u64::from(layout.unit_ms()),
            shifts: Shifts::new(
                layout.bits(Field::Sequence),
                layout.shift(Field::Sequence),
                layout.shift(Field::Time),
            ),
            layout,
        })
    }

    pub(super) const fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    pub(super) const fn id(&self, ordinal: u64) -> u64 {
        // Shifts are below 64: a layout has so many bits. `wrapping` spares the check.
        let tick = ordinal.wrapping_shr(self.shifts.sequence_bits());
        let sequence = ordinal & self.sequence_mask;
        tick.wrapping_shl(self.shifts.time())
            | sequence.wrapping_shl(self.shifts.sequence())
            | self.base
    }

    /// How far apart neighbours of one tick are.
    #[inline]
    pub(super) const fn stride(&self) -> u64 {
        1 << self.shifts.sequence()
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
            sequence_bits: self.layout.bits(Field::Sequence),
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
