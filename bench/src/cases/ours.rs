//! Snowmint's own cases.

use std::sync::Arc;

use snowmint_core::{
    CachedClock, Generator, Lane, Layout, LocalGenerator, Refresher, Rollback, Settings,
    SystemClock, UnixMillis, Window,
};

use crate::measure::{Case, Fills, Worker};

/// 41 bits of milliseconds and 22 of sequence.
pub const WIDE: Layout = match Layout::new(41, 0, 22) {
    Ok(layout) => layout,
    Err(_) => panic!("41 and 22 make a layout"),
};

/// 39 bits of milliseconds and 24 of sequence: room for more IDs than a thread can write, where
/// [`WIDE`] has room for four of its IDs per nanosecond.
const ROOMY: Layout = match Layout::new(39, 0, 24) {
    Ok(layout) => layout,
    Err(_) => panic!("39 and 24 make a layout"),
};

/// 41 bits of milliseconds, 10 of worker, 12 of sequence.
pub const TWITTER: Layout = match Layout::new(41, 10, 12) {
    Ok(layout) => layout,
    Err(_) => panic!("41, 10 and 12 make a layout"),
};

/// 28 bits of seconds, 22 of worker, 13 of sequence.
const BAIDU: Layout = match Layout::new(28, 22, 13) {
    Ok(layout) => match layout.with_unit_ms(1_000) {
        Ok(layout) => layout,
        Err(_) => panic!("a second is a unit"),
    },
    Err(_) => panic!("28, 22 and 13 make a layout"),
};

/// Maximum age of a tick: the refresher's half millisecond, rounding to a millisecond, and the
/// scheduler.
const STALE_MS_MAX: u64 = 20;

type Cached = CachedClock<SystemClock>;

fn wide_ms(id: u64) -> u64 {
    WIDE.time_of(id).map_or(0, UnixMillis::get)
}

fn roomy_ms(id: u64) -> u64 {
    ROOMY.time_of(id).map_or(0, UnixMillis::get)
}

fn twitter_ms(id: u64) -> u64 {
    TWITTER.time_of(id).map_or(0, UnixMillis::get)
}

fn generator<C: snowmint_core::Clock>(
    layout: Layout,
    settings: Settings,
    clock: C,
) -> &'static Generator<C> {
    let generator = Generator::new(layout, 0, settings, Window::UNBOUNDED, clock);
    Box::leak(Box::new(generator.expect("worker 0 fits every layout")))
}

fn each<W: Worker + 'static>(
    make: impl Fn() -> W + 'static,
) -> Box<dyn Fn(usize) -> Vec<Box<dyn Worker>>> {
    Box::new(move |threads| (0..threads).map(|_| Box::new(make()) as Box<dyn Worker>).collect())
}

/// Returns a generator with a refresher of its own.
fn refreshed(layout: Layout, settings: Settings) -> &'static Generator<Cached> {
    let clock = CachedClock::new(SystemClock);
    let ids = Generator::new(layout, 0, settings, Window::UNBOUNDED, clock);
    let ids = Arc::new(ids.expect("worker 0 fits every layout"));
    let refresher = Refresher::spawn(Arc::clone(&ids)).expect("a thread can be started");
    // The refresher parks when its generator is idle, and ends with the process.
    std::mem::forget(refresher);
    Box::leak(Box::new(ids))
}

/// A lane that is a local variable of a loop.
struct Laned {
    ids: &'static Generator<Cached>,
    lane: Lane<&'static Generator<Cached>>,
}

impl Worker for Laned {
    #[inline(never)]
    fn run(&mut self, n: u64) -> u64 {
        let mut lane = std::mem::replace(&mut self.lane, self.ids.lane(1));
        let mut sum = 0_u64;
        for _ in 0..n {
            sum = sum.wrapping_add(lane.try_mint().unwrap_or(0));
        }
        self.lane = lane;
        sum
    }

    fn collect(&mut self, out: &mut [u64]) {
        for slot in out {
            *slot = self.lane.try_mint().unwrap_or(0);
        }
    }
}

/// Returns all cases; a refresher keeps `clock` fresh.
pub fn all(clock: &Arc<Cached>) -> Vec<Case> {
    let fresh = Some((wide_ms as fn(u64) -> u64, STALE_MS_MAX, 0));
    let case = |name, threads, workers| Case {
        name,
        threads,
        sleeps: false,
        workers,
        fresh,
        unique: true,
    };
    let shared = refreshed(WIDE, Settings::DEFAULT);
    let precise = generator(WIDE, Settings::DEFAULT, SystemClock);
    let laned = refreshed(WIDE, Settings::DEFAULT);
    let filled = refreshed(ROOMY, Settings::DEFAULT);
    let local = Arc::clone(clock);
    let mut cases = vec![
        case(
            "shared, cached time",
            &[1, 2, 4],
            each(move || move || shared.try_mint().unwrap_or(0)),
        ),
        case(
            "shared, precise time",
            &[1, 2, 4],
            each(move || move || precise.try_mint().unwrap_or(0)),
        ),
        case(
            "lane, cached time",
            &[1, 2, 4],
            each(move || Laned { ids: laned, lane: laned.lane(4096) }),
        ),
        case(
            "local, cached time",
            &[1],
            each(move || {
                let clock = Arc::clone(&local);
                let made =
                    LocalGenerator::new(WIDE, 0, Settings::DEFAULT, Window::UNBOUNDED, clock, ());
                let mut ids = made.expect("worker 0 fits every layout");
                move || ids.try_mint().unwrap_or(0)
            }),
        ),
        Case {
            fresh: Some((roomy_ms, STALE_MS_MAX, 0)),
            ..case(
                "fill of 4096",
                &[1, 2],
                each(move || Fills {
                    buffer: vec![0; 4096],
                    fill: move |out: &mut [u64]| filled.fill(out).expect("the layout has room"),
                }),
            )
        },
    ];
    cases.extend(bounded());
    cases
}

/// Returns the cases that a layout bounds.
fn bounded() -> Vec<Case> {
    let twitter = generator(TWITTER, Settings::DEFAULT, SystemClock);
    let spread = Settings { burst_ms: 10, ..Settings::DEFAULT };
    let bursting = generator(TWITTER, spread, SystemClock);
    // No run uses up this lead: the layout has only 8.5 years of seconds.
    let borrow = Settings::with_rollback(Rollback::Borrow { lead_max_ms: 200_000_000_000 });
    let baidu = refreshed(BAIDU, borrow);
    vec![
        Case {
            name: "Twitter layout",
            threads: &[1, 2, 4],
            sleeps: true,
            workers: each(move || move || twitter.mint().unwrap_or(0)),
            fresh: Some((twitter_ms, 1, 0)),
            unique: true,
        },
        Case {
            name: "Twitter layout, 10 ms burst span",
            threads: &[1, 2, 4],
            sleeps: true,
            workers: each(move || move || bursting.mint().unwrap_or(0)),
            fresh: Some((twitter_ms, 11, 0)),
            unique: true,
        },
        Case {
            name: "Baidu layout, borrow",
            threads: &[1, 2, 4],
            sleeps: false,
            workers: each(move || move || baidu.try_mint().unwrap_or(0)),
            fresh: None,
            unique: true,
        },
    ]
}
