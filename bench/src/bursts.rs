//! Bursts that fit into one tick, by generators that their layout bounds: the cost of one ID while
//! the tick has room. Each generator waits for an empty tick and is timed for one burst.

use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use snowmint_core::{Generator, Settings, SystemClock, Window};

use crate::cases::ours::TWITTER;
use crate::cases::rivals;
use crate::report::median;

/// Wait that is longer than the longest tick, sonyflake's.
const EMPTY: Duration = Duration::from_millis(12);

/// A generator, and the number of IDs that fit safely into one of its ticks.
struct Burst {
    name: &'static str,
    ids: usize,
    mint: Box<dyn FnMut(usize) -> u64>,
}

fn burst(name: &'static str, ids: usize, mut next: impl FnMut() -> u64 + 'static) -> Burst {
    let mint = move |ids| (0..ids).fold(0_u64, |sum, _| sum.wrapping_add(next()));
    Burst { name, ids, mint: Box::new(mint) }
}

fn all() -> Vec<Burst> {
    let ours = Generator::new(TWITTER, 0, Settings::DEFAULT, Window::UNBOUNDED, SystemClock);
    let ours = Arc::new(ours.expect("worker 0 fits every layout"));
    let snowflaked = Arc::new(snowflaked::sync::Generator::new(0));
    let rs_snowflake = Arc::new(Mutex::new(rivals::rs_snowflake()));
    let sonyflake = rivals::sonyflake();
    vec![
        burst("snowmint, Twitter layout, precise time", 1_000, move || ours.mint().unwrap_or(0)),
        burst("snowflaked", 1_000, move || snowflaked.generate::<u64>()),
        burst("rs-snowflake real_time, mutex", 1_000, move || {
            rs_snowflake.lock().map_or(0, |mut ids| ids.real_time_generate().unsigned_abs())
        }),
        burst("sonyflake", 100, move || sonyflake.next_id().unwrap_or(0)),
    ]
}

/// Runs all in turn, `rounds` times; prints the time per ID.
pub fn run(rounds: usize) {
    let mut bursts = all();
    let mut measured = vec![Vec::new(); bursts.len()];
    for _ in 0..rounds {
        for (burst, measured) in bursts.iter_mut().zip(&mut measured) {
            std::thread::sleep(EMPTY);
            let begun = Instant::now();
            black_box((burst.mint)(burst.ids));
            measured.push(begun.elapsed().as_nanos() as f64 / burst.ids as f64);
        }
    }
    println!("\n| burst into an empty tick, 1 thread | IDs | ns an ID, median | over snowmint |");
    println!("|---|---|---|---|");
    let own = measured[0].clone();
    for (burst, measured) in bursts.iter().zip(measured) {
        let ratios = measured.iter().zip(&own).map(|(theirs, own)| theirs / own).collect();
        let (name, ids) = (burst.name, burst.ids);
        println!("| {name} | {ids} | {:.1} | {:.2} |", median(measured), median(ratios));
    }
}
