//! A process that is stopped and started repeatedly, next to others on the same store: it uses its
//! unused numbers next time, and no other process ever gets them.
#![allow(clippy::print_stdout, reason = "numbers for the documents")]

use crate::common::{Seen, TempDir, open_once_free};
use snowmint::{Mint, NodeSettings, Options, Segment, SourceSpec};
use snowmint_coord::{BootTimer, Timer as _};

const ROUNDS: u32 = 50;
/// Longer than anything takes, even on a busy machine.
const BOUND_MS: u64 = 60_000;

/// Returns settings with a long timeout: an abandoned call of the store may have reserved numbers
/// that no process knows of.
fn options() -> Options {
    let settings = NodeSettings { store_call_ms: BOUND_MS, ..NodeSettings::default() };
    Options::new().node_settings(settings)
}

/// Waits until all numbers handed out by the store, except at most `rest`, are used, lost or
/// prefetched. The store may have replied to a fetch that its process has not received yet.
async fn accounted(mint: &Mint, segments: &[&Segment], gone: u64, rest: u64) {
    let begun = BootTimer.elapsed();
    loop {
        let numbers = segments.iter().map(|segment| segment.stats().numbers.unwrap());
        let numbers: Vec<_> = numbers.collect();
        let known: u64 = numbers.iter().map(|numbers| numbers.prefetched + numbers.lost).sum();
        let reserved = reserved(mint).await;
        if reserved <= gone + known + rest {
            return;
        }
        let waited_ms = BootTimer.elapsed().since(begun);
        assert!(waited_ms < BOUND_MS, "{reserved} reserved, {gone} gone, {numbers:?}");
        BootTimer.sleep_ms(1).await;
    }
}

/// Returns the count of numbers handed out by the store and not returned.
async fn reserved(mint: &Mint) -> u64 {
    mint.node().definition("bills").await.unwrap().next.unwrap() - 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_stops_waste_few_numbers_and_repeat_none() {
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
            // In every other round no other process reserves in between, and the unused rest is
            // returned.
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
        // The rest is lost if another process reserves at the moment of its return.
        let lost_now = bills.stats().numbers.unwrap().lost;
        if reserved(&others[0]).await <= before {
            assert_eq!(lost_now, 0, "no process reserved since");
            alone += 1;
        }
        lost += lost_now;
    }
    // Without a journal, half of the rounds would lose their rest.
    assert!(alone >= ROUNDS / 2, "in {alone} of {ROUNDS} rounds no process reserved");
    let [one, other] = [&others[0], &others[1]].map(|mint| mint.segment("bills"));
    let (one, other) = (one.await.unwrap(), other.await.unwrap());
    // Numbers in the journal at the end are not lost: the rest of the previous stop, and one fetch.
    accounted(&others[0], &[&one, &other], used + lost, 2_000).await;
    println!("{used} used, {lost} lost in {ROUNDS} stops");
    for other in others {
        other.close().await.unwrap();
    }
}
