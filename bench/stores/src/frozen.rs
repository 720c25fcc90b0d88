//! Minting while the store is frozen: callers must feel nothing.

use std::time::{Duration, Instant};

use crate::extends::median;
use crate::place::Running;

/// Time that one of ten thousand calls exceeds, in microseconds.
pub struct Tails {
    pub free_us: f64,
    pub frozen_us: f64,
    /// The median of the rounds' ratios.
    pub ratio: f64,
}

/// Mints for `seconds` with the store running, then for as long with it frozen, in turn.
pub async fn run(running: &Running, seconds: u64, rounds: usize) -> Tails {
    let mint = snowmint::Options::new().namespace("frozen").open(&running.url).await;
    let mint = mint.expect("a store");
    let source = mint.snowflake("orders").await.expect("a source");
    // The first calls are not measured.
    tail_us(&source, 1).await;
    let (mut free, mut frozen, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let free_us = tail_us(&source, seconds).await;
        let still = running.freeze().await;
        let frozen_us = tail_us(&source, seconds).await;
        still.thaw().await;
        free.push(free_us);
        frozen.push(frozen_us);
        ratios.push(frozen_us / free_us);
        // The store catches up, and the window is refilled.
        tokio::time::sleep(Duration::from_secs(seconds.min(5))).await;
    }
    mint.close().await.expect("a store closes");
    Tails { free_us: median(free), frozen_us: median(frozen), ratio: median(ratios) }
}

async fn tail_us(source: &snowmint::Snowflake, seconds: u64) -> f64 {
    let source = source.clone();
    let took = tokio::task::spawn_blocking(move || {
        let until = Instant::now() + Duration::from_secs(seconds);
        let mut took = Vec::new();
        while Instant::now() < until {
            for _ in 0..100 {
                let begun = Instant::now();
                source.mint().expect("an ID");
                took.push(begun.elapsed());
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        took
    });
    let mut took = took.await.expect("a thread");
    took.sort_unstable();
    took[took.len() * 9999 / 10_000].as_secs_f64() * 1e6
}
