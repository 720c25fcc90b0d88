//! Counters of a server that is killed several times.

use super::counters::{count, server_with};
use super::kills::{Scratch, in_time};
use super::*;

/// The server is killed again before it has taken over the sections of its earlier life. All lives
/// are known to have ended, so no caller waits for their leases to expire.
#[tokio::test]
async fn sections_of_earlier_lives_are_acquired_at_once() {
    let world = World::new();
    for kills in 1..=4 {
        let (dir, key) = (Scratch::new(), format!("key-{kills}"));
        let alive = async || {
            let settings =
                NodeSettings { data_dir: Some(dir.0.clone()), ..NodeSettings::default() };
            let alive = server_with(&world, &format!("server-{kills}"), settings).await;
            assert!(alive.0.incarnation().is_some());
            alive
        };
        let (node, source) = alive().await;
        let counted = in_time(&world, within(&source, &key)).await;
        drop((node, source));
        for _ in 1..kills {
            settle().await;
            drop(alive().await);
        }
        settle().await;
        let (node, source) = alive().await;
        let begun = world.timer.elapsed();
        assert!(in_time(&world, within(&source, &key)).await > counted);
        let away_ms = world.timer.elapsed().since(begun);
        assert!(away_ms < 1_000, "killed {kills} times, and away for {away_ms} ms");
        node.close().await.unwrap();
    }
}

/// Calls until there is a number.
async fn within(source: &Source, key: &str) -> u64 {
    loop {
        match count(source, key).await {
            Ok(number) => return number,
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// The end of the runtime frees the lock of the data directory, which proves to the next process
/// that this one has stopped minting.
#[test]
fn nothing_is_minted_once_the_runtime_of_a_node_is_gone() {
    let world = World::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (sources, counter) = runtime.block_on(async {
        let (node, counter) = server_with(&world, "a", NodeSettings::default()).await;
        let mut sources = Vec::new();
        for (name, json) in [("snowflake", "{}"), ("segment", r#"{"kind":"segment"}"#)] {
            node.define(name, &spec(json)).await.unwrap();
            let source = in_time(&world, node.source(name)).await.unwrap();
            in_time(&world, source.mint(1, None, 5_000)).await.unwrap();
            sources.push(source);
        }
        within(&counter, "key").await;
        (sources, counter)
    });
    for source in &sources {
        source.try_mint().unwrap();
    }
    drop(runtime);
    for source in &sources {
        assert!(source.try_mint().is_err(), "{}", source.name());
    }
    assert!(counter.try_count(b"key", 1).is_err());
}
