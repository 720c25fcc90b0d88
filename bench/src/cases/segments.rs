//! Numbers of segments, through the library and the memory store: only taking numbers is measured,
//! because the store responds at once.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use snowmint::SourceSpec;
use snowmint_core::SegmentCursor;

use crate::measure::{Case, Worker};

/// Step that is large enough to keep the store's row fetches out of the measurement.
const STEP: &str = r#"{"kind":"segment","step":{"min":1000000000,"max":1000000000}}"#;

/// Numbers that a lane takes at a time.
const BLOCK: u64 = 65_536;

fn source(mint: &snowmint::blocking::Mint, name: &str) -> snowmint::blocking::Segment {
    let spec: SourceSpec = serde_json::from_str(STEP).expect("keys of a source");
    mint.define(name, &spec).expect("a source");
    mint.segment(name).expect("a source")
}

struct Shared(&'static snowmint::blocking::Segment);

impl Worker for Shared {
    fn run(&mut self, n: u64) -> u64 {
        draw(self.0, n)
    }

    fn collect(&mut self, out: &mut [u64]) {
        for slot in out {
            *slot = until(|| self.0.try_next());
        }
    }
}

/// Runs a loop over a given handle. Reads and writes between two locked instructions wait for them,
/// or they for it.
#[inline(never)]
fn draw(numbers: &snowmint::blocking::Segment, n: u64) -> u64 {
    let mut sum = 0_u64;
    for _ in 0..n {
        sum = sum.wrapping_add(until(|| numbers.try_next()));
    }
    sum
}

struct Laned(Option<snowmint::NumberLane>);

impl Worker for Laned {
    /// Moves the lane into a local variable of the loop, as in a generator's case.
    #[inline(never)]
    fn run(&mut self, n: u64) -> u64 {
        let mut lane = self.0.take().expect("a lane outside of a case");
        let mut sum = 0_u64;
        for _ in 0..n {
            sum = sum.wrapping_add(lane.try_next().unwrap_or_else(|error| later(error, &mut lane)));
        }
        self.0 = Some(lane);
        sum
    }

    fn collect(&mut self, out: &mut [u64]) {
        let lane = self.0.as_mut().expect("a lane outside of a case");
        for slot in out {
            *slot = lane.try_next().unwrap_or_else(|error| later(error, lane));
        }
    }
}

#[cold]
#[inline(never)]
fn later(error: snowmint::Error, lane: &mut snowmint::NumberLane) -> u64 {
    again(error, || lane.try_next())
}

/// Minimum work of a lane: a counter, its end, and one word that another thread may change.
struct Counts<'a> {
    next: u64,
    end: u64,
    changed: &'a AtomicU64,
}

impl Worker for Counts<'_> {
    #[inline(never)]
    fn run(&mut self, n: u64) -> u64 {
        let Counts { mut next, mut end, changed } = *self;
        let increment = black_box(1);
        let mut sum = 0_u64;
        for _ in 0..n {
            if next == end || changed.load(Ordering::Relaxed) != 0 {
                end = black_box(end).wrapping_add(BLOCK);
            }
            sum = sum.wrapping_add(next);
            next = next.wrapping_add(increment);
        }
        (self.next, self.end) = (next, end);
        sum
    }

    fn collect(&mut self, out: &mut [u64]) {
        out.iter_mut().for_each(|slot| *slot = self.run(1));
    }
}

#[inline(always)]
fn until<E>(mut take: impl FnMut() -> Result<u64, E>) -> u64 {
    match take() {
        Ok(number) => number,
        Err(error) => again(error, take),
    }
}

#[cold]
#[inline(never)]
fn again<E>(_: E, mut take: impl FnMut() -> Result<u64, E>) -> u64 {
    loop {
        std::thread::yield_now();
        if let Ok(number) = take() {
            return number;
        }
    }
}

pub fn all() -> Vec<Case> {
    let mint = snowmint::open_blocking("memory:").expect("a store in memory");
    let mint: &'static snowmint::blocking::Mint = Box::leak(Box::new(mint));
    let shared: &'static _ = Box::leak(Box::new(source(mint, "shared")));
    let laned: &'static snowmint::blocking::Segment = Box::leak(Box::new(source(mint, "laned")));
    let case = |name, workers| Case {
        name,
        threads: &[1, 2],
        sleeps: false,
        workers,
        fresh: None,
        unique: true,
    };
    let cursor: &'static SegmentCursor = Box::leak(Box::default());
    cursor.push(1, 1 << 62).expect("a segment above none");
    let changed: &'static AtomicU64 = Box::leak(Box::default());
    let count = move |thread: usize| {
        let next = (thread as u64) << 40;
        Box::new(Counts { next, end: next + BLOCK, changed }) as Box<dyn Worker>
    };
    vec![
        case(
            "lane floor: a counter, its end, one load",
            Box::new(move |threads| (0..threads).map(count).collect()),
        ),
        case(
            "segment cursor alone, shared",
            Box::new(move |threads| {
                (0..threads)
                    .map(|_| Box::new(|| cursor.take(|| {}).unwrap_or(0)) as Box<dyn Worker>)
                    .collect()
            }),
        ),
        case(
            "segment, shared",
            Box::new(move |threads| {
                (0..threads).map(|_| Box::new(Shared(shared)) as Box<dyn Worker>).collect()
            }),
        ),
        case(
            "segment, lane",
            Box::new(|threads| {
                (0..threads)
                    .map(|_| {
                        let lane = laned.lane(BLOCK).expect("an undisguised source");
                        Box::new(Laned(Some(lane))) as Box<dyn Worker>
                    })
                    .collect()
            }),
        ),
    ]
}
