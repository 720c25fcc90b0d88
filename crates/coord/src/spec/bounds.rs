//! Bounds that no other key changes. The check of a key and its row in the table use the same one.

use std::ops::RangeInclusive;

use crate::model::segment::NUMBER_MAX;

/// Leads of IDs over the clock, in milliseconds: with a longer one, IDs would say nothing about
/// time.
pub(super) const LEAD_MS: RangeInclusive<u64> = 0..=3_600_000;
/// Times that a call may wait for a clock, in milliseconds.
pub(super) const WAIT_MS: RangeInclusive<u64> = 0..=10_000;
/// Lags of a burst, in milliseconds: older ticks would make the time in an ID meaningless.
pub(super) const BURST_MS: RangeInclusive<u64> = 0..=60_000;
/// Percentages of a queue: an empty queue is always refilled, a full one never.
pub(super) const PREFILL_THRESHOLD: RangeInclusive<u64> = 1..=99;
/// Numbers taken at once, up to 2^40 of 2^63: one reserve may not use up a source's numbers.
pub(super) const STEP: RangeInclusive<u64> = 1..=1 << 40;
/// Times that a step may last, in milliseconds.
pub(super) const STEP_LASTS_MS: RangeInclusive<u64> = 100..=86_400_000;
/// Percentages of numbers that may be lost.
pub(super) const STEP_WASTE: RangeInclusive<u64> = 1..=100;
/// Numbers of a segment source.
pub(super) const NUMBER: RangeInclusive<u64> = 1..=NUMBER_MAX;
/// Lowest numbers of counters: half of all numbers lie above each.
pub(super) const COUNTER_START: RangeInclusive<u64> = 1..=NUMBER_MAX / 2;
/// Digits of a serial: the last day of the year 9999 still has numbers below 2^63.
pub(super) const SERIAL_WIDTH: RangeInclusive<u64> = 1..=12;
