//! A process that is stopped and started again and again, beside others on the same store: what it did
//! not use, it uses next time, and nobody else ever has it.
#![allow(clippy::unwrap_used, reason = "these are tests")]
#![allow(clippy::print_stdout, reason = "numbers for the documents")]

mod common;

use common::{Seen, TempDir};
use snowmint::{Mint, Options, SourceSpec};

const ROUNDS: u32 = 50;

async fn opened(url: &str, options: Options) -> Mint {
    options.open(url).await.unwrap()
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
        for (segment, count) in [
            (&bills, 20 + round % 7),
            // Every other time nobody has reserved in between, and the tail goes back.
            (&others[0].segment("bills").await.unwrap(), 3),
            (&others[1].segment("bills").await.unwrap(), 1_200 * (round % 2)),
        ] {
            if count > 0 {
                segment.take(count).await.unwrap().into_iter().for_each(|id| seen.add(id));
                used += u64::from(count);
            }
        }
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
    // What the journal keeps at the end is not lost: 1,000 at most. A tail is lost where another process
    // reserves in the moment in which it goes back; without a journal it would be each in 25 rounds.
    assert!(lost <= 5_000, "{lost} of {used} are counted as lost");
    assert!(
        wasted <= lost + 1_000,
        "{wasted} of {used} are nobody's, and {lost} are counted as lost"
    );
    println!("{used} used, {lost} lost in {ROUNDS} stops");
    for other in others {
        other.close().await.unwrap();
    }
}
