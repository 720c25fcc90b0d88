//! Numbers that the store mints by its clock: tick and sequence in one number.

use snowmint_coord::{
    Bounds, Definition, ErrorKind, FastForward, Mark, Result, Retry, Segment, Ticks,
};
use snowmint_core::UnixMillis;

use super::case::{Case, TASKS, cases, code};

cases![
    numbers_carry_the_stores_time,
    a_tick_that_is_full_is_waited_for,
    ticks_just_past_serve_a_burst,
    a_clock_that_is_behind_is_led_as_far_as_allowed,
    a_layout_without_time_left_is_refused,
    other_numbers_and_those_by_the_clock_share_a_mark,
    errors_come_before_numbers,
    ticks_wider_than_a_float_are_exact,
    sixteen_callers_share_the_ticks,
];

/// Tick length of a month, so that a case runs within one tick.
const MONTH_MS: u32 = 3_000_000_000;

impl Case {
    /// Returns ticks of this length with 2^`bits` numbers each.
    async fn ticks(&self, unit_ms: u32, bits: u8) -> Ticks {
        Ticks {
            epoch: UnixMillis::new(1_500_000_000_000),
            unit_ms,
            sequence_bits: bits,
            tick_max: 1 << 41,
            lag: 0,
            lead: 0,
            now: self.now().await,
        }
    }

    async fn by_clock(&self, source: &Definition, length: u64, ticks: Ticks) -> Result<Segment> {
        self.reserve_within(source, length, Some(Bounds::Now(ticks))).await
    }
}

fn tick_at(ticks: Ticks, time: UnixMillis) -> u64 {
    time.since(ticks.epoch) / u64::from(ticks.unit_ms)
}

async fn numbers_carry_the_stores_time(case: Case) {
    let source = case.define("orders").await;
    let mut expected = 0;
    for length in [1, 2, 1000] {
        let ticks = case.ticks(1, 12).await;
        let before = case.now().await;
        let reserved = case.another().await.by_clock(&source, length, ticks).await.unwrap();
        let after = case.now().await;
        let at = reserved.at.expect("the time that decided");
        assert!(before <= at && at <= after, "{before} {at} {after}");
        assert_eq!(reserved.last - reserved.first + 1, length);
        assert_eq!(ticks.tick_of(reserved.first), tick_at(ticks, at));
        assert!(reserved.first >= expected);
        assert_eq!(reserved.catalog_version, source.version);
        assert_eq!(reserved.writes, case.writes().await);
        expected = reserved.last + 1;
    }
    assert_eq!(case.store.get("orders").await.unwrap().segment.mark, Mark::new(expected));
}

async fn a_tick_that_is_full_is_waited_for(case: Case) {
    let source = case.define("orders").await;
    let ticks = case.ticks(MONTH_MS, 2).await;
    let three = case.by_clock(&source, 3, ticks).await.unwrap();
    assert_eq!(three.first, ticks.first_of(ticks.tick_of(three.first)));
    let one = case.by_clock(&source, 3, ticks).await.unwrap();
    assert_eq!((one.first, one.last), (three.last + 1, three.last + 1), "what is left");
    let writes = case.writes().await;
    let full = case.by_clock(&source, 1, ticks).await.unwrap_err();
    let ErrorKind::TickFull { next_in_ms } = full.kind() else { panic!("{full:?}") };
    assert!((1..=u64::from(MONTH_MS)).contains(next_in_ms), "{next_in_ms}");
    assert_eq!(case.writes().await, writes, "nothing was written");
}

async fn ticks_just_past_serve_a_burst(case: Case) {
    let source = case.define("orders").await;
    let ticks = Ticks { lag: 5, ..case.ticks(MONTH_MS, 2).await };
    let many = case.by_clock(&source, 99, ticks).await.unwrap();
    let tick = tick_at(ticks, many.at.unwrap());
    assert_eq!(many.first, ticks.first_of(tick - 5));
    assert_eq!(many.last + 1, ticks.first_of(tick + 1), "six ticks and no more");
    assert_eq!(code(case.by_clock(&source, 1, ticks).await), "tick_full");
}

async fn a_clock_that_is_behind_is_led_as_far_as_allowed(case: Case) {
    let source = case.define("orders").await;
    let ticks = case.ticks(MONTH_MS, 2).await;
    // The state after a clock step back: the mark lies in the third tick from now.
    let tick = tick_at(ticks, case.now().await);
    let mark = ticks.first_of(tick + 3) + 1;
    let segments = vec![(source.name.clone(), Mark::new(mark))];
    let ahead = FastForward { segments, ..FastForward::default() };
    case.forward(&ahead).await.unwrap();
    for lead in [0, 2] {
        let ticks = Ticks { lead, ..ticks };
        let behind = case.by_clock(&source, 1, ticks).await.unwrap_err();
        let ErrorKind::ClockBehind { limit_ms, .. } = behind.kind() else { panic!("{behind:?}") };
        assert_eq!(*limit_ms, lead * u64::from(MONTH_MS));
        let Retry::AfterMs(wait_ms) = behind.retry() else { panic!("{behind:?}") };
        assert!((1..=3 * u64::from(MONTH_MS)).contains(&wait_ms), "{wait_ms}");
    }
    let led = Ticks { lead: 4, ..ticks };
    let four = case.by_clock(&source, 4, led).await.unwrap();
    assert_eq!((four.first, four.last), (mark, mark + 3), "on from the mark, over two ticks");
    let rest = case.by_clock(&source, 99, led).await.unwrap();
    assert_eq!((rest.first, rest.last + 1), (mark + 4, ticks.first_of(tick + 5)));
    assert_eq!(code(case.by_clock(&source, 1, led).await), "clock_behind");
}

async fn a_layout_without_time_left_is_refused(case: Case) {
    let source = case.define("orders").await;
    let ticks = case.ticks(1, 12).await;
    let spent = Ticks { tick_max: 1000, ..ticks };
    assert_eq!(code(case.by_clock(&source, 1, spent).await), "epoch_spent");
    let epoch = case.now().await.saturating_add(3_600_000);
    let early = Ticks { epoch, ..ticks };
    assert_eq!(code(case.by_clock(&source, 1, early).await), "clock_behind");
    for (sequence_bits, unit_ms) in [(0, 1), (63, 1), (12, 0)] {
        let odd = Ticks { sequence_bits, unit_ms, ..ticks };
        assert_eq!(code(case.by_clock(&source, 1, odd).await), "invalid");
    }
    case.by_clock(&source, 1, ticks).await.unwrap();
}

async fn other_numbers_and_those_by_the_clock_share_a_mark(case: Case) {
    let source = case.define("orders").await;
    let plain = case.reserve(&source, 10).await.unwrap();
    assert_eq!((plain.last, plain.at), (10, None));
    let ticks = case.ticks(1, 10).await;
    let timed = case.by_clock(&source, 5, ticks).await.unwrap();
    assert!(timed.first > plain.last && timed.version > plain.version);
    assert_eq!(case.reserve(&source, 1).await.unwrap().first, timed.last + 1);
}

async fn errors_come_before_numbers(case: Case) {
    let source = case.define("orders").await;
    let ticks = case.ticks(1, 12).await;
    assert_eq!(code(case.by_clock(&source, 0, ticks).await), "invalid");
    case.by_clock(&source, 1, ticks).await.unwrap();
    let altered = case.store.alter(&super::case::definition("orders", "b"), None).await.unwrap();
    assert_eq!(code(case.by_clock(&source, 1, ticks).await), "conflict");
    case.by_clock(&altered, 1, ticks).await.unwrap();
    let disabled =
        case.store.set_state("orders", snowmint_coord::SourceState::Disabled).await.unwrap();
    assert_eq!(code(case.by_clock(&disabled, 1, ticks).await), "disabled");
    let nothing = Definition { name: "nothing".into(), ..source };
    assert_eq!(code(case.by_clock(&nothing, 1, ticks).await), "not_found");
}

/// Tick and sequence of 62 bits: more than a script's numbers hold.
async fn ticks_wider_than_a_float_are_exact(case: Case) {
    let source = case.define("orders").await;
    let ticks = case.ticks(1, 21).await;
    let mut expected = 0;
    for length in [1, 3, 100_000] {
        let reserved = case.by_clock(&source, length, ticks).await.unwrap();
        assert_eq!(reserved.last - reserved.first + 1, length);
        assert_eq!(ticks.tick_of(reserved.first), tick_at(ticks, reserved.at.unwrap()));
        assert!(reserved.first >= expected);
        expected = reserved.last + 1;
    }
}

async fn sixteen_callers_share_the_ticks(case: Case) {
    let source = case.define("orders").await;
    let reserved = case
        .contend(|case, number| {
            let source = source.clone();
            async move {
                let mut reserved = Vec::new();
                while reserved.len() < 10 {
                    let ticks = case.ticks(1, 4).await;
                    match case.by_clock(&source, 1 + number, ticks).await {
                        Ok(segment) => reserved.push(segment),
                        Err(full) => {
                            // Behind: other tasks sent a later time.
                            let codes = ["tick_full", "clock_behind"];
                            assert!(codes.contains(&full.kind().code()), "{full:?}");
                            case.pass_ms(1).await;
                        }
                    }
                }
                assert!(reserved.windows(2).all(|pair| pair[0].last < pair[1].first), "in order");
                reserved
            }
        })
        .await;
    let mut all: Vec<Segment> = reserved.into_iter().flatten().collect();
    assert_eq!(all.len(), usize::try_from(TASKS * 10).unwrap());
    all.sort_by_key(|segment| segment.first);
    let overlap = all.windows(2).find(|pair| pair[0].last >= pair[1].first);
    assert!(overlap.is_none(), "handed out twice: {overlap:?}");
}
