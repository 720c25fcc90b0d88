//! A process that is stopped and started again and again, beside others on the same store: what it did
//! not use, it uses next time, and nobody else ever has it.
#![allow(clippy::unwrap_used, reason = "these are tests")]
#![allow(clippy::print_stdout, reason = "numbers for the documents")]

mod common;

use std::time::Duration;

use common::{Seen, TempDir};
use snowmint::{Mint, Options, Segment, SourceSpec};
use snowmint_coord::{BootTimer, Timer as _};

const ROUNDS: u32 = 50;
/// Longer than anything takes, even on a busy machine.
const BOUND: Duration = Duration::from_secs(60);

async fn opened(url: &str, options: Options) -> Mint {
    options.open(url).await.unwrap()
}

/// Waits until nobody reserves: all that the store has handed out was used or lost, or is in stock.
async fn settled(mint: &Mint, segments: &[&Segment], gone: u64) {
    let settled = async {
        loop {
            let numbers = segments.iter().map(|segment| segment.stats().numbers.unwrap());
            let known: u64 = numbers.map(|numbers| numbers.stock + numbers.lost).sum();
            if reserved(mint).await == gone + known {
                return;
            }
            BootTimer.sleep_ms(1).await;
        }
    };
    tokio::time::timeout(BOUND, settled).await.unwrap();
}

/// How many numbers the store has handed out and not had back.
async fn reserved(mint: &Mint) -> u64 {
    mint.node().definition("bills").await.unwrap().next.unwrap() - 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_stops_beside_others_waste_next_to_nothing_and_repeat_nothing() {
    let dir = TempDir::new();
    let url = format!("sqlite:{}/ids.db", dir.path().display());
    let others = [opened(&url, Options::new()).await, opened(&url, Options::new()).await];
    let spec = r#"{"kind":"segment","step":{"rule":"fixed","size":1000}}"#;
    others[0].define("bills", &SourceSpec::from_json(spec).unwrap()).await.unwrap();
    let mut seen = Seen::default();
    let mut used = 0;
    let mut lost = 0;
    for round in 0..ROUNDS {
        let mint = opened(&url, Options::new().data_dir(dir.path().join("data"))).await;
        let bills = mint.segment("bills").await.unwrap();
        let [one, other] = [&others[0], &others[1]].map(|mint| mint.segment("bills"));
        let (one, other) = (one.await.unwrap(), other.await.unwrap());
        for (segment, count) in [
            (&bills, 20 + round % 7),
            // Every other time nobody has reserved in between, and the tail goes back.
            (&one, 3),
            (&other, 1_200 * (round % 2)),
        ] {
            if count > 0 {
                segment.take(count).await.unwrap().into_iter().for_each(|id| seen.add(id));
                used += u64::from(count);
            }
        }
        // A tail is lost where another process reserves in the moment in which it goes back.
        settled(&others[0], &[&bills, &one, &other], used + lost).await;
        mint.close().await.unwrap();
        lost += bills.stats().numbers.unwrap().lost;
    }
    let mut in_stock = 0;
    for other in &others {
        let numbers = other.segment("bills").await.unwrap().stats().numbers.unwrap();
        in_stock += numbers.stock;
        lost += numbers.lost;
    }
    let wasted = reserved(&others[0]).await - used - in_stock;
    // Without a journal it would be a tail in each of 25 rounds. What the journal keeps at the end is not lost: 1,000 at
    // most.
    assert_eq!(lost, 0, "of {used} are counted as lost");
    assert!(wasted <= 1_000, "{wasted} of {used} are nobody's");
    println!("{used} used, {lost} lost in {ROUNDS} stops");
    for other in others {
        other.close().await.unwrap();
    }
}
