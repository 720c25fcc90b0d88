//! Minting allocates nothing: not per ID, not at a tick's end, not when it fails.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::sync::Arc;

use allocation_counter::measure;
use snowmint_core::text::Format;
use snowmint_core::{
    CachedClock, Clock, ClockSequence, Generator, Layout, LocalGenerator, ManualClock, MintError,
    Ring, Rollback, SequenceStart, Settings, SystemClock, UnixMillis, Window,
};

/// 4 IDs a tick, so that most mints here meet a new tick or a full one.
const NARROW: Layout = match Layout::new(41, 10, 2) {
    Ok(layout) => layout,
    Err(_) => panic!("41 + 10 + 2 bits make a layout"),
};
/// A day after the layout's epoch.
const START: UnixMillis = UnixMillis::new(1_767_225_600_000 + 86_400_000);

const POLICIES: [Rollback; 4] = [Rollback::HOLD, Rollback::WAIT, Rollback::Fail, Rollback::BORROW];

/// Fails when `work` allocates on its second run; the first run may set up lasting state.
fn allocates_nothing(what: &str, mut work: impl FnMut()) {
    work();
    let seen = measure(&mut work);
    assert_eq!((seen.count_total, seen.bytes_total), (0, 0), "{what}");
}

/// Makes ten thousand attempts to mint, over full ticks, new ticks and clock steps.
fn mint_over_steps(clock: &ManualClock, mut try_mint: impl FnMut() -> Result<u64, MintError>) {
    let mut minted = 0_u32;
    for round in 0..10_000_u32 {
        minted += u32::from(try_mint().is_ok());
        match round % 100 {
            7 => clock.step_back_ms(3),
            57 => clock.step_ahead_ms(4),
            n if n % 5 == 0 => clock.advance_ms(1),
            _ => {}
        }
    }
    assert!(minted > 3_000, "{minted}");
}

#[test]
fn allocation_counter_counts() {
    assert_eq!(measure(|| drop(std::hint::black_box(Box::new(7)))).count_total, 1);
}

#[test]
fn generators_allocate_nothing() {
    for rollback in POLICIES {
        let settings = Settings::with_rollback(rollback);
        let clock = ManualClock::new(START);
        let shared = Generator::new(NARROW, 7, settings, Window::UNBOUNDED, &clock).unwrap();
        allocates_nothing("Generator", || mint_over_steps(&clock, || shared.try_mint()));
        let mut lane = shared.lane(3);
        allocates_nothing("Lane", || mint_over_steps(&clock, || lane.try_mint()));
        let mut local =
            LocalGenerator::new(NARROW, 8, settings, Window::UNBOUNDED, &clock, ()).unwrap();
        allocates_nothing("LocalGenerator", || mint_over_steps(&clock, || local.try_mint()));
        let mut batch = [0; 100];
        allocates_nothing("fill", || {
            clock.advance_ms(1);
            shared.fill(&mut batch).unwrap();
        });
        allocates_nothing("mint", || {
            for _ in 0..1_000 {
                shared.mint().unwrap();
            }
        });
    }
}

#[test]
fn the_ring_and_the_clock_sequence_allocate_nothing() {
    let clock = ManualClock::new(START);
    let ring =
        Ring::new(NARROW, 7, None, SequenceStart::Zero, Window::UNBOUNDED, &clock, ()).unwrap();
    allocates_nothing("Ring", || mint_over_steps(&clock, || ring.try_mint()));
    let settings = Settings::with_rollback(Rollback::Fail);
    let layout = Layout::CLOCK_SEQUENCE;
    let clock = ManualClock::new(layout.epoch().saturating_add(86_400_000));
    let values: Vec<_> = (0..=layout.clock_max())
        .map(|value| {
            let window = Window::UNBOUNDED;
            Generator::with_observer(layout, 7, value, settings, window, &clock, ()).unwrap()
        })
        .collect();
    let sequence = ClockSequence::new(values, &clock, ());
    allocates_nothing("ClockSequence", || mint_over_steps(&clock, || sequence.try_mint()));
}

#[test]
fn real_clocks_allocate_nothing() {
    let settings = Settings::DEFAULT;
    let window = Window::UNBOUNDED;
    let precise = Generator::new(Layout::TWITTER, 7, settings, window, SystemClock).unwrap();
    allocates_nothing("SystemClock", || {
        for _ in 0..10_000 {
            precise.mint().unwrap();
        }
    });
    let clock = Arc::new(CachedClock::new(SystemClock));
    let cached = Generator::new(Layout::TWITTER, 7, settings, window, Arc::clone(&clock)).unwrap();
    allocates_nothing("CachedClock", || {
        for _ in 0..10_000 {
            clock.refresh();
            cached.mint().unwrap();
        }
        clock.forget();
        clock.read();
    });
}

#[test]
fn text_allocates_nothing() {
    let layout = Layout::TWITTER;
    let id = layout.compose(START, 7, 3).unwrap();
    allocates_nothing("text", || {
        for format in Format::ALL {
            let text = format.encode(id, Some(&layout)).unwrap();
            assert_eq!(format.decode(text.as_str(), Some(&layout)), Ok(id));
        }
    });
}

#[test]
fn sizes_match_the_documents() {
    // Three pairs of cache lines that threads write independently, and the constant rest.
    assert!(size_of::<Layout>() <= 32, "{}", size_of::<Layout>());
    assert!(size_of::<MintError>() <= 32, "{}", size_of::<MintError>());
    let generator = size_of::<Generator<SystemClock>>();
    assert!(generator <= 768, "{generator}");
    let ring = size_of::<Ring<SystemClock>>();
    assert!(ring <= 200 * 8 + 512, "{ring}");
}
