//! Rival generators from the registry, each used as its documentation says.

use std::sync::{Arc, Mutex};

use ferroid::generator::{AtomicSnowflakeGenerator, BasicSnowflakeGenerator, Poll};
use ferroid::time::MonotonicClock;

use crate::measure::{Case, Worker};

// 41 bits of milliseconds and 22 of sequence: a layout with time bits, unlike the layout of
// ferroid's own benchmark (which mints one ID for ever).
ferroid::define_snowflake_id!(
    Wide, u64,
    reserved: 1,
    timestamp: 41,
    machine_id: 0,
    sequence: 22
);

#[derive(Debug)]
struct WideSnowdon;

impl snowdon::Layout for WideSnowdon {
    fn construct_snowflake(timestamp: u64, sequence_number: u64) -> u64 {
        (timestamp << 22) | sequence_number
    }
    fn timestamp(input: u64) -> u64 {
        input >> 22
    }
    fn exceeds_timestamp(input: u64) -> bool {
        input >= (1 << 41)
    }
    fn sequence_number(input: u64) -> u64 {
        input & ((1 << 22) - 1)
    }
    fn exceeds_sequence_number(input: u64) -> bool {
        input >= (1 << 22)
    }
    fn is_valid_snowflake(_: u64) -> bool {
        true
    }
}

impl snowdon::Epoch for WideSnowdon {
    fn millis_since_unix() -> u64 {
        1_767_225_600_000
    }
}

fn rival<W: Worker + 'static>(
    name: &'static str,
    threads: &'static [usize],
    make: impl Fn() -> W + 'static,
) -> Case {
    let workers = move |threads| {
        (0..threads).map(|_| Box::new(make()) as Box<dyn Worker>).collect::<Vec<_>>()
    };
    Case { name, threads, sleeps: false, workers: Box::new(workers), fresh: None, unique: true }
}

fn layout_bound(mut case: Case) -> Case {
    // These generators spin: their CPU time counts in full, and the layout is the bound.
    case.sleeps = true;
    case
}

pub fn all() -> Vec<Case> {
    let epoch = std::time::Duration::from_millis(1_767_225_600_000);
    let clock = MonotonicClock::<1>::with_epoch(epoch);
    let atomic = Arc::new(AtomicSnowflakeGenerator::<Wide, _>::new(0, clock.clone()));
    let snowdon = Arc::new(snowdon::Generator::<WideSnowdon, WideSnowdon>::default());
    let snowflaked = Arc::new(snowflaked::sync::Generator::new(0));
    let real_time = Arc::new(Mutex::new(rs_snowflake()));
    let wide_core = Arc::new(Mutex::new(id_generator()));
    let sonyflake = Arc::new(sonyflake());
    let ulids = Arc::new(Mutex::new(ulid::Generator::new()));
    vec![
        rival("ferroid Atomic 41+22", &[1, 2, 4], move || {
            let ids = Arc::clone(&atomic);
            move || loop {
                if let Poll::Ready { id } = ids.poll_id() {
                    return id.to_raw();
                }
            }
        }),
        rival("ferroid Basic 41+22, one a thread", &[1], move || {
            let ids = BasicSnowflakeGenerator::<Wide, _>::new(0, clock.clone());
            move || loop {
                if let Poll::Ready { id } = ids.poll_id() {
                    return id.to_raw();
                }
            }
        }),
        rival("snowdon lock-free 41+22", &[1, 2, 4], move || {
            let ids = Arc::clone(&snowdon);
            move || ids.generate_lock_free().map_or(0, |id| id.into_inner())
        }),
        rival("idgenerator, worker 1, sequence 21, mutex", &[1, 2, 4], move || {
            let ids = Arc::clone(&wide_core);
            move || ids.lock().map_or(0, |mut ids| ids.next_id().unsigned_abs())
        }),
        rival("uuid v7 (fast-rng)", &[1, 2, 4], move || {
            // The low half suffices to detect duplicates.
            move || uuid::Uuid::now_v7().as_u64_pair().1
        }),
        rival("ulid Generator, mutex", &[1, 2, 4], move || {
            let ids = Arc::clone(&ulids);
            move || {
                let made = ids.lock().ok().and_then(|mut ids| ids.generate().ok());
                made.map_or(0, |id| (id.0 & u128::from(u64::MAX)) as u64)
            }
        }),
        layout_bound(rival("snowflaked (layout-bound)", &[1, 2, 4], move || {
            let ids = Arc::clone(&snowflaked);
            move || ids.generate::<u64>()
        })),
        layout_bound(rival("rs-snowflake real_time (layout-bound)", &[1], move || {
            let ids = Arc::clone(&real_time);
            move || ids.lock().map_or(0, |mut ids| ids.real_time_generate().unsigned_abs())
        })),
        layout_bound(rival("sonyflake (layout-bound)", &[1], move || {
            let ids = Arc::clone(&sonyflake);
            move || ids.next_id().unwrap_or(0)
        })),
    ]
}

pub fn sonyflake() -> sonyflake::Sonyflake {
    let made = sonyflake::Sonyflake::builder().machine_id(&|| Ok(1)).finalize();
    made.expect("machine 1 is a machine")
}

pub fn rs_snowflake() -> snowflake::SnowflakeIdGenerator {
    snowflake::SnowflakeIdGenerator::new(1, 1)
}

fn id_generator() -> idgenerator::CoreIdGenerator {
    let mut ids = idgenerator::CoreIdGenerator::default();
    let options =
        idgenerator::IdGeneratorOptions::new().worker_id(0).worker_id_bit_len(1).seq_bit_len(21);
    ids.init(options).expect("the options are in range");
    ids
}
