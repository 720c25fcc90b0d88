//! Time from an open store to the first ID: join, claim, extend, mint.

use std::time::Instant;

use crate::extends::median;
use crate::place::Running;

/// Returns the median, in milliseconds.
pub async fn run(running: &Running, times: usize) -> f64 {
    let mut took = Vec::new();
    for time in 0..times {
        let options = || snowmint::Options::new().namespace(format!("first-{time}"));
        // Defines the source, so that the timed process does the work of a second process.
        let before = options().open(&running.url).await.expect("a store");
        before.snowflake("orders").await.expect("a source");
        let mint = options().open(&running.url).await.expect("a store");
        let begun = Instant::now();
        let source = mint.snowflake("orders").await.expect("a source");
        source.mint().expect("an ID");
        took.push(begun.elapsed().as_secs_f64() * 1e3);
        mint.close().await.expect("a store closes");
        before.close().await.expect("a store closes");
    }
    median(took)
}
