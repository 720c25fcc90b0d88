//! Minting while the store stands still: nothing may be felt.

use std::time::{Duration, Instant};

use snowmint_testkit::servers::Zookeeper;

/// Mints one ID each 100 us for `seconds`, with the store standing still and not, in turn.
pub async fn run(seconds: u64) {
    let server = Zookeeper::start();
    let mint = snowmint::Options::new().open(&server.url()).await.expect("a store");
    let source = mint.snowflake("orders").await.expect("a source");
    let mut ratios = Vec::new();
    println!("\n| round | p99.99, us | p99.99 with the store frozen, us |");
    println!("|---|---|---|");
    for round in 0..3 {
        let free = tail_us(&source, seconds).await;
        server.freeze(true);
        let frozen = tail_us(&source, seconds).await;
        server.freeze(false);
        println!("| {round} | {free:.1} | {frozen:.1} |");
        ratios.push(frozen / free);
        // The window is filled again.
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
    println!("\nfrozen over not, median: {:.2}", crate::extends::median(ratios));
    mint.close().await.expect("a store closes");
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
