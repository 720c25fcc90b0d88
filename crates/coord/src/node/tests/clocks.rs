//! Node with a clock that disagrees with other sources, or with marks ahead of it.

use super::*;
use crate::model::member::{Member, Presence};
use crate::store::lazy_store::LazyStore;

/// Time server that is this far ahead of this machine's clock, or does not respond.
#[derive(Debug)]
pub(super) struct TimeServer(pub(super) Option<u64>, pub(super) Arc<ManualClock>);

#[async_trait::async_trait]
impl TimeReference for TimeServer {
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
async fn accepted_lead_bounds_minting_ahead_of_the_clock() {
    const HOUR_MS: u64 = 3_600_000;
    let world = World::new();
    // Every number, also of an unused pool, leads the clock by an hour.
    let ahead = Mark::from(START.saturating_add(HOUR_MS));
    let forward = FastForward { marks_at_least: ahead, ..FastForward::default() };
    let store = world.handle();
    store.fast_forward(&forward).await.unwrap();
    let node = world.open().await;
    node.define("orders", &SourceSpec::default()).await.unwrap();
    let refused = node.source("orders").await.unwrap_err();
    assert_eq!(refused.kind().code(), "pool_full");
    assert!(refused.to_string().contains("no action is needed"), "{refused}");

    // A node with a failed claim claims again within five seconds, however many requests come.
    store.accept_lead(Mark::new(ahead.get() - 1)).await.unwrap();
    world.pass(5_000).await;
    assert!(node.source("orders").await.is_err(), "not as far as the marks lie");
    store.accept_lead(ahead).await.unwrap();
    world.pass(5_000).await;
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
    // Extends continue, and the clock catches up: held clocks run at half speed.
    for _ in 0..150 {
        world.pass(60_000).await;
        let id = source.try_mint().unwrap();
        assert!(id > last && node.readiness().ready, "{:?}", node.readiness());
        last = id;
    }
    assert_eq!(time(last), world.clock.unix_ms());
    node.close().await.unwrap();
}

/// Three embedded clients of a token, with clocks that are an hour ahead. Members with direct
/// access to the store would be believed.
#[tokio::test]
async fn embedded_clients_never_decide_the_time() {
    for (are_programs, ready) in [(true, true), (false, false)] {
        let world = World::new();
        let node = world.open().await;
        node.define("orders", &SourceSpec::default()).await.unwrap();
        let source = node.source("orders").await.unwrap();
        let store = world.handle();
        for renewals in 0..10 {
            for who in 1..=3_u64 {
                let program = Incarnation::of_program(7, who);
                let incarnation = if are_programs { program } else { Incarnation::new(who.into()) };
                let (owner, host, address) = (String::new(), String::new(), String::new());
                let member = Member { incarnation, owner, host, process: 1, address };
                let now = world.clock.unix_ms();
                let sample = now.saturating_add(3_600_000);
                let presence = Presence { sample, renewals, ttl_ms: 10_000 };
                store.join(&member, presence, now).await.unwrap();
            }
            world.pass(3_400).await;
        }
        assert_eq!(node.readiness().ready, ready, "{:?}", node.readiness());
        source.try_mint().unwrap();
    }
}

#[tokio::test]
async fn clock_is_checked_by_the_configured_time_reference() {
    for (ahead_ms, minted) in [(Some(10_000), true), (Some(10_001), false), (None, true)] {
        let world = World::new();
        let server = TimeServer(ahead_ms, Arc::clone(&world.clock));
        let settings =
            NodeSettings { time_reference: Some(Arc::new(server)), ..NodeSettings::default() };
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

/// The store leads to the time reference, as servers do, and was unavailable when the process
/// started.
#[tokio::test]
async fn lazy_store_gives_its_time_reference() {
    let world = World::new();
    let server = Arc::new(TimeServer(Some(10_001), Arc::clone(&world.clock)));
    let shared = world.store.handle("default").unwrap();
    let late = LazyStore::new("default", move || {
        let store = shared.handle("default").map(|store| {
            let mut store = Faulty::over(store);
            store.faults.time_reference = Some(Arc::clone(&server) as _);
            Arc::new(store) as Arc<dyn Store>
        });
        Box::pin(async move { store })
    });
    let node = Node::open(Arc::new(late), NodeSettings::default(), world.platform()).await.unwrap();
    node.define("orders", &SourceSpec::default()).await.unwrap();
    let (opened, ()) = tokio::join!(node.source("orders"), world.pass(20_000));
    let refused = opened.unwrap_err().to_string();
    assert!(refused.contains("the time server"), "{refused}");
}

const HOUR_MS: u64 = 3_600_000;

impl World {
    /// Returns a machine with a clock that is this far ahead; time passes there as here.
    pub(super) fn machine_ahead(&self, ahead_ms: u64) -> Self {
        let clock = Arc::new(ManualClock::new(START.saturating_add(ahead_ms)));
        Self { store: self.store.handle("default").unwrap(), clock, timer: self.timer.clone() }
    }

    /// Advances time for two machines, in steps that let tasks run in between.
    pub(super) async fn pass_with(&self, other: &Self, ms: u64) {
        for _ in 0..ms / 100 {
            other.clock.advance_ms(100);
            self.pass(100).await;
        }
    }

    /// Returns how far the marks of all worker numbers lie ahead of the right time.
    async fn marks_ahead_ms(&self) -> u64 {
        let slots = self.handle().workers(self.clock.unix_ms()).await.unwrap();
        let ahead = slots.iter().map(|slot| slot.mark.unix_millis().since(self.clock.unix_ms()));
        ahead.max().unwrap_or(0)
    }
}

/// Two members are present, whatever the third one's clock shows.
#[tokio::test]
async fn start_with_a_wrong_clock_neither_joins_nor_moves_marks() {
    for ahead in [true, false] {
        let world = World::new();
        let others = [world.open().await, world.open().await];
        others[0].define("orders", &SourceSpec::default()).await.unwrap();
        for node in &others {
            node.source("orders").await.unwrap().try_mint().unwrap();
        }
        world.pass(20_000).await;
        let wrong = world.machine_ahead(0);
        let right = world.clock.unix_ms();
        wrong.clock.set(if ahead {
            right.saturating_add(HOUR_MS)
        } else {
            right.saturating_sub(HOUR_MS)
        });
        let node = wrong.open().await;
        let (opened, ()) = tokio::join!(node.source("orders"), world.pass_with(&wrong, 12_000));
        let error = opened.unwrap_err();
        let code = if ahead { "clock_ahead" } else { "clock_behind" };
        assert_eq!(error.kind().code(), code, "{error}");
        assert!(error.to_string().contains("most members' clocks"), "{error}");
        let readiness = node.readiness();
        assert!(
            !readiness.ready && readiness.reasons[0].message.contains("most members"),
            "{readiness:?}"
        );
        assert!(world.marks_ahead_ms().await <= 60_000, "a mark was moved");
        // The other members do not notice it.
        for other in &others {
            assert!(other.readiness().ready, "{:?}", other.readiness());
        }

        wrong.clock.set(world.clock.unix_ms());
        world.pass_with(&wrong, 5_000).await;
        node.source("orders").await.unwrap().try_mint().unwrap();
        assert!(node.readiness().ready, "{:?}", node.readiness());
    }
}

#[tokio::test]
async fn node_with_a_wrong_clock_is_not_ready() {
    let world = World::new();
    let others = [world.open().await, world.open().await];
    let third = world.machine_ahead(0);
    let node = third.open().await;
    world.pass_with(&third, 10_000).await;
    assert!(node.readiness().ready, "{:?}", node.readiness());
    for wrong_ms in [HOUR_MS, 15_000] {
        third.clock.step_ahead_ms(wrong_ms);
        world.pass_with(&third, 5_000).await;
        let readiness = node.readiness();
        let says =
            |what: &str| readiness.reasons.iter().any(|reason| reason.message.contains(what));
        assert!(!readiness.ready && says("most members' clocks"), "{wrong_ms}: {readiness:?}");
        third.clock.step_back_ms(wrong_ms);
        world.pass_with(&third, 5_000).await;
        assert!(node.readiness().ready, "{:?}", node.readiness());
    }
    assert!(others.iter().all(|other| other.readiness().ready));
}

/// All members have one clock. Renewals of different ages show it.
#[tokio::test]
async fn age_of_a_renewal_is_not_a_clock_offset() {
    let world = World::new();
    let _others = [world.open().await, world.open().await];
    for age_ms in [700, 1_500, 2_600] {
        world.pass(20_000 + age_ms).await;
        let node = world.open().await;
        for _ in 0..100 {
            world.pass(100).await;
            let offset_ms = node.stats().clock_offset_ms;
            assert!(offset_ms.is_none_or(|ms| ms == 0), "{age_ms}: {offset_ms:?}");
        }
        assert_eq!(node.stats().clock_offset_ms, Some(0), "{age_ms}");
    }
}

#[tokio::test]
async fn clock_offset_from_members_has_its_direction() {
    // The members that were open before have renewed 3.3 s ago at most.
    for (wrong_ms, shown_ms) in [(5_000, 1_000..=5_000), (-5_000, -5_000..=-1_000)] {
        let world = World::new();
        let _others = [world.open().await, world.open().await];
        let third = world.machine_ahead(0);
        let node = third.open().await;
        world.pass_with(&third, 10_000).await;
        let right = world.clock.unix_ms();
        third.clock.set(UnixMillis::new(right.get().saturating_add_signed(wrong_ms)));
        world.pass_with(&third, 10_000).await;
        let offset_ms = node.stats().clock_offset_ms;
        assert!(offset_ms.is_some_and(|ms| shown_ms.contains(&ms)), "{wrong_ms}: {offset_ms:?}");
    }
}

/// Only the clock, which may be wrong, shows that they are gone.
#[tokio::test]
async fn seemingly_expired_members_get_time_to_renew() {
    let world = World::new();
    let gone = [world.open().await, world.open().await];
    gone[0].define("orders", &SourceSpec::default()).await.unwrap();
    world.pass(10_000).await;
    drop(gone);
    world.pass(60_000).await;
    let node = world.open().await;
    world.pass(4_900).await;
    assert!(node.incarnation().is_none(), "it waits");
    world.pass(600).await;
    assert!(node.incarnation().is_some(), "{:?}", node.readiness());
    node.source("orders").await.unwrap().try_mint().unwrap();
}

/// A request before the node's first check of the clocks waits for it.
#[tokio::test]
async fn unchecked_clock_moves_no_mark_of_a_minting_store() {
    let world = World::new();
    let others = [world.open().await, world.open().await];
    let by_store = spec(r#"{"layout":"redis","mint":"store","worker":77}"#);
    others[0].define("bills", &by_store).await.unwrap();
    let mark = world.handle().get("bills").await.unwrap().segment.mark;
    world.pass(20_000).await;
    let wrong = world.machine_ahead(20_000 + 10 * 8_766 * HOUR_MS);
    let node = wrong.open().await;
    let source = node.source("bills").await.unwrap();
    let (refused, ()) = tokio::join!(source.mint(1, None, 60_000), world.pass_with(&wrong, 6_000));
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind().code(), "clock_ahead", "{refused}");
    assert_eq!(world.handle().get("bills").await.unwrap().segment.mark, mark);
}
