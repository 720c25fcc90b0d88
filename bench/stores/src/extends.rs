//! Extends compared with the bare statement, in turn.

use std::sync::Arc;
use std::time::Instant;

use snowmint_coord::{
    ClaimRequest, Extend, Lease, Mark, Member, Pool, Preference, Presence, Reuse, Store, random,
};
use snowmint_core::UnixMillis;

use crate::bare;
use crate::place::Running;

pub struct Extends {
    pub ours_us: f64,
    pub bare_us: f64,
    /// The median of the ratios of consecutive measurements.
    pub ratio: f64,
}

pub async fn run(running: &Running, rounds: usize) -> Extends {
    let store = snowmint_stores::open(&running.url, "extends").await.expect("a store");
    let member = join(&store, "bench").await;
    let lease = claim(&store, &member, 1).await;
    let mut bare = bare::connect(running).await;
    let (mut ours, mut bares, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut from = lease.mark;
    for round in 0..rounds + WARM_UP {
        let to = Mark::new(from.get() + 30_000);
        let begun = Instant::now();
        extend(&store, &lease, from, to).await;
        let ours_us = begun.elapsed().as_secs_f64() * 1e6;
        let begun = Instant::now();
        bare.write(i64::try_from(to.get()).unwrap_or(0)).await;
        let bare_us = begun.elapsed().as_secs_f64() * 1e6;
        from = to;
        if round >= WARM_UP {
            ours.push(ours_us);
            bares.push(bare_us);
            ratios.push(ours_us / bare_us);
        }
    }
    store.close().await.expect("a store closes");
    Extends { ours_us: median(ours), bare_us: median(bares), ratio: median(ratios) }
}

const WARM_UP: usize = 20;

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub const NOW: UnixMillis = UnixMillis::new(1_800_000_000_000);

pub async fn join(store: &Arc<dyn Store>, owner: &str) -> Member {
    let incarnation = random::incarnation().expect("randomness");
    let member = Member {
        incarnation,
        owner: owner.into(),
        host: "bench".into(),
        process: 1,
        address: String::new(),
    };
    let presence = Presence { sample: NOW, renewals: 0, ttl_ms: 600_000 };
    store.join(&member, presence, NOW).await.expect("a member joins");
    member
}

pub async fn claim(store: &Arc<dyn Store>, member: &Member, slots: u64) -> Lease {
    let request = ClaimRequest {
        pool: Pool { name: "workers".into(), slots, group: 1, reuse: Reuse::Recycle },
        member: member.incarnation,
        owner: member.owner.clone(),
        count: 1,
        preference: Preference::Any,
        supersedes: None,
        mark_at_most: Mark::MAX,
        request: random::request().expect("randomness"),
    };
    store.claim(&request, NOW).await.expect("a free number").remove(0)
}

async fn extend(store: &Arc<dyn Store>, lease: &Lease, from: Mark, to: Mark) {
    let item = Extend {
        pool: lease.pool.clone(),
        slot: lease.slot,
        term: lease.term,
        holder: lease.holder,
        from,
        to,
        request: random::request().expect("randomness"),
        ahead_max_ms: None,
    };
    let extended = store.extend(&[item], NOW).await.expect("a response of the store").remove(0);
    assert_eq!(extended.expect("an extend").mark, to);
}
