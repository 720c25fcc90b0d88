//! Simultaneous first claims of all worker numbers, from sixteen handles.

use std::time::Instant;

use crate::extends::{claim, join};
use crate::place::Running;

const HANDLES: u64 = 16;

/// Returns the seconds until all members had their claims.
pub async fn run(running: &Running, claims: u64) -> f64 {
    let mut members = Vec::new();
    for handle in 0..HANDLES {
        let store = snowmint_stores::open(&running.url, "claims").await.expect("a store");
        for claimer in 0..claims / HANDLES {
            let member = join(&store, &format!("owner-{handle}-{claimer}")).await;
            members.push((std::sync::Arc::clone(&store), member));
        }
    }
    let begun = Instant::now();
    let tasks: Vec<_> = members
        .iter()
        .cloned()
        .map(|(store, member)| {
            tokio::spawn(async move { claim(&store, &member, claims).await.slot })
        })
        .collect();
    let mut slots = Vec::new();
    for task in tasks {
        slots.push(task.await.expect("a claim"));
    }
    let took = begun.elapsed().as_secs_f64();
    slots.sort_unstable();
    assert_eq!(slots, (0..claims).collect::<Vec<_>>(), "every number once");
    took
}
