//! Numbers of several keys in one call.

use std::collections::{BTreeMap, BTreeSet};

use super::counters::{History, count, server};
use super::*;
use crate::error::Retry;

#[tokio::test]
async fn each_of_several_keys_has_its_number() {
    let world = World::new();
    let (node, source) = server(&world, "").await;
    // More than are taken at a time; texts and numbers, and some of them twice.
    let keys: Vec<_> = (0..50)
        .flat_map(|at| [format!("user-{at}"), format!("{}", at % 40), format!("{{one}}-{at}")])
        .collect();
    let requested: Vec<_> = keys.iter().map(String::as_bytes).collect();
    let mut history = History::default();
    // Sections that were not wanted before are acquired, and windows move.
    for round in 0..300 {
        let numbers = loop {
            match source.try_count_each(&requested) {
                Err(error) if error.retry() != Retry::Never => settle().await,
                result => break result.unwrap(),
            }
        };
        assert_eq!(numbers.len(), keys.len());
        let mut all: Vec<_> = keys.iter().zip(numbers).collect();
        all.sort();
        all.into_iter().for_each(|(key, number)| history.rises(key, number));
        if round % 3 == 0 {
            history.rises("user-7", count(&source, "user-7").await.unwrap());
        }
    }
    assert!(source.try_count_each(&[]).unwrap().is_empty());
    let refused = source.try_count_each(&[b"user-7", b""]).unwrap_err();
    assert_eq!(refused.kind().code(), "invalid");
    let before = source.bound_of(b"user-7", 0).await.unwrap();
    assert_eq!(source.try_count(b"user-7", 1).unwrap().0, before + 1, "a bad key costs no number");
    node.close().await.unwrap();
    assert_eq!(source.try_count_each(&requested).unwrap_err().kind().code(), "closed");
}

/// With keys in common, from both sides: a task that locks in another order would wait for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_callers_count_many_keys() {
    const ROUNDS: usize = 2_000;
    let world = World::new();
    let (_node, source) = server(&world, "").await;
    let keys: Vec<_> = (0..64).map(|at| format!("{{one}}-{at}")).collect();
    // The driver may be on the other thread: it notifies when it is done.
    source.count(b"{one}-0", 1, 10_000).await.unwrap();
    let takers = (0..4_usize).map(|taker| {
        let (source, keys) = (source.clone(), keys.clone());
        tokio::task::spawn_blocking(move || {
            let mut requested: Vec<_> = keys.iter().map(String::as_bytes).collect();
            requested.rotate_left(taker * 16);
            if taker % 2 == 1 {
                requested.reverse();
            }
            let mut taken = Vec::new();
            while taken.len() < ROUNDS {
                match source.try_count_each(&requested) {
                    Ok(numbers) => {
                        let by_key = requested.iter().map(|key| key.to_vec()).zip(numbers);
                        taken.push(by_key.collect::<BTreeMap<_, _>>());
                    }
                    Err(error) => assert_ne!(error.retry(), Retry::Never, "{error}"),
                }
            }
            taken
        })
    });
    let mut all = Vec::new();
    for taker in takers.collect::<Vec<_>>() {
        let taken = taker.await.unwrap();
        for (before, after) in taken.iter().zip(&taken[1..]) {
            assert!(before.iter().zip(after).all(|(before, after)| before.1 < after.1));
        }
        all.extend(taken.into_iter().flatten());
    }
    let count = all.len();
    assert_eq!(count, 4 * ROUNDS * keys.len());
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>().len(), count);
}
