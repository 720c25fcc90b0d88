//! Store calls of a process while it mints, as the process counts them.

use std::time::{Duration, Instant};

use snowmint::{NodeSettings, SourceSpec};

use crate::place::Running;

const WINDOW_MS: u64 = 4_000;
const TTL_MS: u64 = 3_000;

/// Calls, each as a ratio to its upper limit.
pub struct Traffic {
    /// Renewals per period: a third of the TTL.
    pub renews: f64,
    /// Extends per pool and half window, which is the point where a window moves.
    pub extends: f64,
}

/// Mints from two pools for `seconds`.
pub async fn run(running: &Running, seconds: u64) -> Traffic {
    let settings = NodeSettings {
        builtin: true,
        window_ms: WINDOW_MS,
        presence_ttl_ms: TTL_MS,
        ..NodeSettings::default()
    };
    let options = snowmint::Options::new().node_settings(settings).namespace("traffic");
    let mint = options.open(&running.url).await.expect("a store");
    let wide = SourceSpec::from_json(r#"{"layout":"time=41,worker=12,sequence=10"}"#);
    mint.define("wide", &wide.expect("keys")).await.expect("a source");
    let one = mint.snowflake("default").await.expect("a source");
    let other = mint.snowflake("wide").await.expect("a source");
    let mut calls = Vec::new();
    let begun = Instant::now();
    // Counts at two moments at which most likely no call is in flight.
    for _ in 0..2 {
        let counts = ["renew", "extend"].map(|verb| count(&mint, verb));
        calls.push((begun.elapsed(), counts));
        let until = Instant::now() + Duration::from_secs(seconds);
        while calls.len() == 1 && Instant::now() < until {
            one.mint().expect("an ID");
            other.mint().expect("an ID");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    mint.close().await.expect("a store closes");
    let took_ms = (calls[1].0 - calls[0].0).as_secs_f64() * 1e3;
    let calls_of = |verb: usize| (calls[1].1[verb] - calls[0].1[verb]) as f64;
    Traffic {
        renews: calls_of(0) / (took_ms / (TTL_MS as f64 / 3.0)),
        extends: calls_of(1) / (took_ms / (WINDOW_MS as f64 / 2.0)) / 2.0,
    }
}

fn count(mint: &snowmint::Mint, verb: &str) -> u64 {
    let calls = mint.node().stats().store_calls;
    let of = calls.iter().find(|calls| calls.verb == verb).map(|calls| &calls.took);
    of.map_or(0, |took| took.counts.iter().sum::<u64>() + took.longer)
}
