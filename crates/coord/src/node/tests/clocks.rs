//! A node whose clock is not what others say, or whose marks lie ahead of it.

use super::*;

/// A time server that is so far ahead of this machine's clock, or does not answer.
#[derive(Debug)]
pub(super) struct TimeServer(pub(super) Option<u64>, pub(super) Arc<ManualClock>);

#[async_trait::async_trait]
impl ClockWitness for TimeServer {
    fn name(&self) -> String {
        "the time server".into()
    }

    async fn now(&self) -> Result<UnixMillis> {
        match self.0 {
            Some(ahead_ms) => Ok(self.1.unix_ms().saturating_add(ahead_ms)),
            None => std::future::pending().await,
        }
    }
}

#[tokio::test]
async fn a_window_follows_a_held_clock_while_nothing_is_minted() {
    let world = World::new();
    let after_crash = AfterCrash::Lead { max_ms: 600_000 };
    let node = world.open_with(NodeSettings { after_crash, ..NodeSettings::default() }).await;
    node.define("orders", &SourceSpec::default()).await.unwrap();
    let source = node.source("orders").await.unwrap();
    let mut last = source.try_mint().unwrap();
    world.clock.step_back_ms(400_000);
    for _ in 0..5 {
        let id = source.try_mint().unwrap();
        assert!(id > last);
        last = id;
        // The held clock, at half speed, comes to lie further ahead than a window is long.
        world.pass(100_000).await;
    }
}

#[tokio::test]
async fn an_accepted_lead_lets_a_node_mint_ahead_of_the_clock_and_no_further() {
    const HOUR_MS: u64 = 3_600_000;
    let world = World::new();
    // Every number, also of a pool that nobody has used, leads the clock by an hour.
    let ahead = Mark::from(START.saturating_add(HOUR_MS));
    let forward = FastForward { marks_at_least: ahead, ..FastForward::default() };
    let store = world.handle();
    store.fast_forward(&forward).await.unwrap();
    let node = world.open().await;
    node.define("orders", &SourceSpec::default()).await.unwrap();
    let refused = node.source("orders").await.unwrap_err();
    assert_eq!(refused.kind().code(), "pool_full");
    assert!(refused.to_string().contains("accept-lead"), "{refused}");

    store.accept_lead(Mark::new(ahead.get() - 1)).await.unwrap();
    assert!(node.source("orders").await.is_err(), "not as far as the marks lie");
    store.accept_lead(ahead).await.unwrap();
    let source = node.source("orders").await.unwrap();
    let time = |id: u64| match source.decode(&id.to_string(), None).unwrap() {
        Decoded::Snowflake { time, .. } => time,
        other => panic!("{other:?}"),
    };
    // The clock is held from the first call on.
    assert_eq!(source.try_mint().unwrap_err().kind().code(), "tick_full");
    world.pass(100).await;
    let mut last = source.try_mint().unwrap();
    let beyond_ms = time(last).since(ahead.unix_millis());
    assert!(time(last) >= ahead.unix_millis() && beyond_ms <= 100, "{beyond_ms}");
    // Extends go on, and the clock catches up: held clocks run at half speed.
    for _ in 0..150 {
        world.pass(60_000).await;
        let id = source.try_mint().unwrap();
        assert!(id > last && node.readiness().ready, "{:?}", node.readiness());
        last = id;
    }
    assert_eq!(time(last), world.clock.unix_ms());
    node.close().await.unwrap();
}

#[tokio::test]
async fn a_clock_is_held_against_a_named_witness_where_there_is_no_better() {
    for (ahead_ms, minted) in [(Some(10_000), true), (Some(10_001), false), (None, true)] {
        let world = World::new();
        let server = TimeServer(ahead_ms, Arc::clone(&world.clock));
        let settings =
            NodeSettings { clock_witness: Some(Arc::new(server)), ..NodeSettings::default() };
        let node = world.open_with(settings).await;
        node.define("orders", &SourceSpec::default()).await.unwrap();
        let opening = node.source("orders");
        let waiting = world.pass(20_000);
        let (opened, ()) = tokio::join!(opening, waiting);
        assert_eq!(opened.is_ok(), minted, "{ahead_ms:?}: {opened:?}");
        if let Err(error) = opened {
            assert!(error.to_string().contains("the time server"), "{error}");
        }
    }
}
