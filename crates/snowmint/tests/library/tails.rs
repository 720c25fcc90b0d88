//! A process that is stopped and started again and again, beside others on the same store: what it did
//! not use, it uses next time, and nobody else ever has it.
#![allow(clippy::print_stdout, reason = "numbers for the documents")]

use crate::common::{Seen, TempDir, open_once_free};
use snowmint::{Mint, NodeSettings, Options, Segment, SourceSpec};
use snowmint_coord::{BootTimer, Timer as _};

const ROUNDS: u32 = 50;
/// Longer than anything takes, even on a busy machine.
const BOUND_MS: u64 = 60_000;

/// A call of the store that was given up may have reserved what nobody knows of.
fn options() -> Options {
    let settings = NodeSettings { store_call_ms: BOUND_MS, ..NodeSettings::default() };
    Options::new().node_settings(settings)
}

/// Waits until no more than this of what the store has handed out is neither used nor lost, nor in stock. A fetch that is
/// on its way may have been answered by the store alone.
async fn accounted(mint: &Mint, segments: &[&Segment], gone: u64, rest: u64) {
    let begun = BootTimer.elapsed();
    loop {
        let numbers = segments.iter().map(|segment| segment.stats().numbers.unwrap());
        let numbers: Vec<_> = numbers.collect();
        let known: u64 = numbers.iter().map(|numbers| numbers.stock + numbers.lost).sum();
        let reserved = reserved(mint).await;
        if reserved <= gone + known + rest {
            return;
        }
        let waited_ms = BootTimer.elapsed().since(begun);
        assert!(waited_ms < BOUND_MS, "{reserved} reserved, {gone} gone, {numbers:?}");
        BootTimer.sleep_ms(1).await;
    }
}

/// How many numbers the store has handed out and not had back.
async fn reserved(mint: &Mint) -> u64 {
    mint.node().definition("bills").await.unwrap().next.unwrap() - 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_stops_beside_others_waste_next_to_nothing_and_repeat_nothing() {
    let dir = TempDir::new();
    let url = format!("sqlite:{}/ids.db", dir.path().display());
    let others = [open_once_free(&url, options).await, open_once_free(&url, options).await];
    let spec = r#"{"kind":"segment","step":{"rule":"fixed","size":1000}}"#;
    others[0].define("bills", &SourceSpec::from_json(spec).unwrap()).await.unwrap();
    let mut seen = Seen::default();
    let mut used = 0;
    let (mut lost, mut alone) = (0, 0);
    for round in 0..ROUNDS {
        let mint = open_once_free(&url, || options().data_dir(dir.path().join("data"))).await;
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
        accounted(&others[0], &[&bills, &one, &other], used + lost, 0).await;
        let before = reserved(&others[0]).await;
        mint.close().await.unwrap();
        // A tail is lost where another process reserves in the moment in which it goes back.
        let lost_now = bills.stats().numbers.unwrap().lost;
        if reserved(&others[0]).await <= before {
            assert_eq!(lost_now, 0, "nobody reserved since");
            alone += 1;
        }
        lost += lost_now;
    }
    // Without a journal it would be each tail in half of the rounds.
    assert!(alone >= ROUNDS / 2, "in {alone} of {ROUNDS} rounds nobody reserved");
    let [one, other] = [&others[0], &others[1]].map(|mint| mint.segment("bills"));
    let (one, other) = (one.await.unwrap(), other.await.unwrap());
    // What the journal keeps at the end is not lost: what the stop before left, and one fetch beside it.
    accounted(&others[0], &[&one, &other], used + lost, 2_000).await;
    println!("{used} used, {lost} lost in {ROUNDS} stops");
    for other in others {
        other.close().await.unwrap();
    }
}
