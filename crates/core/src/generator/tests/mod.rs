//! Generators under every clock. One file for each question.
// A panic is how these tests report a failure.
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]

mod batches;
mod burst_and_start;
mod rollback;
mod rolling;
mod steps;
mod threads;
mod windows;

use std::sync::Mutex;
use std::vec::Vec;

use super::*;
use crate::clock::{ClockStep, ManualClock, Observer};
use crate::layout::Layout;
use crate::time::{UnixMillis, Window};

/// 41 bits of milliseconds, 10 of worker, 12 of sequence.
const LAYOUT: Layout = match Layout::new(41, 10, 12) {
    Ok(layout) => layout,
    Err(_) => panic!(),
};

/// The same with 2 bits of sequence: 4 IDs a tick.
const NARROW: Layout = match Layout::new(41, 10, 2) {
    Ok(layout) => layout,
    Err(_) => panic!(),
};

/// A day after the epoch.
const START: UnixMillis = UnixMillis::new(1_767_225_600_000 + 86_400_000);

fn clock() -> ManualClock {
    ManualClock::new(START)
}

fn generator(layout: Layout, settings: Settings, clock: &ManualClock) -> Generator<&ManualClock> {
    Generator::new(layout, 7, settings, Window::UNBOUNDED, clock).unwrap()
}

fn with(rollback: Rollback) -> Settings {
    Settings::with_rollback(rollback)
}

/// Returns the ID's time minus [`START`], in milliseconds.
fn since_start(layout: &Layout, id: u64) -> i64 {
    let ms = layout.time_of(id).unwrap().get();
    i64::try_from(ms).unwrap() - i64::try_from(START.get()).unwrap()
}

/// A record of every reported step.
#[derive(Debug, Default)]
struct Steps(Mutex<Vec<ClockStep>>);

impl Steps {
    fn take(&self) -> Vec<ClockStep> {
        core::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Observer for Steps {
    fn clock_step(&self, step: &ClockStep) {
        self.0.lock().unwrap().push(*step);
    }
}
