//! Memory limit for the keys of all counters of a node together.

use super::counters::{History, count, server_with};
use super::*;
use crate::spec::Kind;

const BYTES_MAX: usize = 256 * 1_024;

/// Returns a node with little room for keys, and a counter source of it.
async fn narrow(world: &World) -> (Node, Source) {
    let settings = NodeSettings { counter_bytes_max: BYTES_MAX, ..NodeSettings::default() };
    server_with(world, "", settings).await
}

/// Adds a counter source.
async fn counter(node: &Node, name: &str) -> Source {
    node.define(name, &SourceSpec::of(Kind::Counter)).await.unwrap();
    node.source(name).await.unwrap()
}

/// Counts each of this many keys once.
async fn flood(source: &Source, keys: u64) {
    for number in 0..keys {
        count(source, &format!("{{one}}-{number}")).await.unwrap();
    }
}

fn keys(source: &Source) -> u64 {
    source.stats().keys.unwrap().0
}

#[tokio::test]
async fn keys_of_all_sources_stay_within_the_memory_limit() {
    let world = World::new();
    let (node, first) = narrow(&world).await;
    let mut sources = vec![first];
    for name in ["one", "two", "three"] {
        sources.push(counter(&node, name).await);
    }
    let mut history = History::default();
    for _ in 0..2 {
        for (place, source) in sources.iter().enumerate() {
            for number in 0..8_000 {
                let key = format!("{{one}}-{number}");
                history.rises(&format!("{place}:{key}"), count(source, &key).await.unwrap());
            }
            let bytes: u64 = sources.iter().map(|source| source.stats().keys.unwrap().1).sum();
            assert!(bytes <= BYTES_MAX as u64, "{bytes}");
        }
    }
}

#[tokio::test]
async fn small_source_keeps_its_keys_next_to_a_large_one() {
    let world = World::new();
    let (node, small) = narrow(&world).await;
    flood(&small, 50).await;
    let large = counter(&node, "large").await;
    flood(&large, 40_000).await;
    assert!(keys(&large) < 40_000, "its own are forgotten");
    assert_eq!(keys(&small), 50);
}

/// Its keys are of the section in which the other source's keys are forgotten.
#[tokio::test]
async fn numbers_of_a_source_that_forgets_nothing_do_not_jump() {
    let world = World::new();
    let (node, small) = narrow(&world).await;
    let first = count(&small, "{one}-0").await.unwrap();
    let large = counter(&node, "large").await;
    flood(&large, 40_000).await;
    assert!(keys(&large) < 40_000, "its own are forgotten");
    let jumped = count(&large, "{one}-0").await.unwrap();
    assert!(jumped > first + 2, "{jumped}: keys of the large one continue above all others");
    assert_eq!(small.bound_of(b"{one}-0", 0).await.unwrap(), first);
    assert_eq!(count(&small, "{one}-0").await.unwrap(), first + 1);
    assert_eq!(count(&small, "{one}-1").await.unwrap(), first, "a new key begins where one did");
}

#[tokio::test]
async fn keys_that_are_counted_together_have_the_same_room() {
    let world = World::new();
    let (_node, source) = narrow(&world).await;
    flood(&source, 1).await;
    for batch in 0..2_000 {
        let names: Vec<String> = (0..16).map(|key| format!("{{one}}-{batch}-{key}")).collect();
        let key_bytes: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        let mut tries = 0;
        while let Err(error) = source.try_count_each(&key_bytes) {
            tries += 1;
            assert!(tries < 200, "{error}");
            settle().await;
        }
        let (known, bytes) = source.stats().keys.unwrap();
        assert!(bytes <= BYTES_MAX as u64, "{bytes} bytes for {known} keys");
    }
    assert!(keys(&source) < 32_000, "some are forgotten");
}

/// It may never be defined again. If it is, its keys continue above all their numbers.
#[tokio::test]
async fn deleted_source_keeps_no_keys_and_repeats_no_number() {
    let world = World::new();
    let (node, source) = narrow(&world).await;
    flood(&source, 50).await;
    let last = count(&source, "{one}-0").await.unwrap();
    node.delete("messages").await.unwrap();
    assert_eq!(source.stats().keys.unwrap(), (0, 0));
    node.define("messages", &SourceSpec::of(Kind::Counter)).await.unwrap();
    let next = count(&source, "{one}-0").await.unwrap();
    assert!(next > last, "{next} after {last}");
}
