//! Changes by other processes in the middle of a step.

use snowmint_coord::{
    ClaimRequest, Exclude, NewDefinition, Preference, StalledMember, StoreIdentity,
};
use snowmint_core::ElapsedMillis;

use super::*;

/// A timer with waits that end at once, and are counted.
#[derive(Debug, Default)]
struct CountedWaits(AtomicU32);

#[async_trait]
impl Timer for CountedWaits {
    fn elapsed(&self) -> ElapsedMillis {
        ElapsedMillis::new(0)
    }

    async fn sleep_ms(&self, _: u64) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Keys with constant writes by other processes: every batch comes too late.
#[derive(Debug, Default)]
struct Contended {
    batches: AtomicU32,
    timer: CountedWaits,
    closed: AtomicBool,
}

#[async_trait]
impl Keys for Contended {
    type Error = Infallible;
    const SNAPSHOT: bool = true;
    const BATCH_MAX: usize = 100;

    fn info(&self) -> StoreInfo<'_> {
        StoreInfo {
            capabilities: CAPABILITIES,
            namespace: "default",
            label: "the store",
            address: None,
        }
    }

    fn timer(&self) -> &dyn Timer {
        &self.timer
    }

    async fn head_with(&self, _: &[String]) -> Result<(Head, Vec<Entry>), Failure<Self::Error>> {
        let record = StoreRecord::new("it".into(), None).write()?;
        let store = Entry { key: name::STORE.into(), value: record, version: 1, written: 1 };
        let (writes, store) = (u64::from(self.batches.load(Ordering::SeqCst)), Some(store));
        let head = Head {
            writes,
            at: writes,
            last_write: None,
            clock: None,
            server: None,
            session: None,
            store,
            namespace: None,
        };
        Ok((head, Vec::new()))
    }

    async fn get(&self, _: &str, _: u64) -> Result<Option<Entry>, Failure<Self::Error>> {
        Ok(None)
    }

    async fn list(&self, _: &str, _: u64) -> Result<Vec<Entry>, Failure<Self::Error>> {
        Ok(Vec::new())
    }

    async fn send(&self, _: &Batch) -> Result<Outcome, Failure<Self::Error>> {
        self.batches.fetch_add(1, Ordering::SeqCst);
        Ok(Outcome::RaceLost)
    }

    fn map_error(&self, error: Self::Error) -> Error {
        match error {}
    }

    fn closed(&self) -> &AtomicBool {
        &self.closed
    }
}

#[tokio::test]
async fn lost_race_is_tried_as_configured_then_reported() {
    for (attempts_max, done) in [(0, 1), (1, 1), (2, 2), (5, 5)] {
        let keyed = Keyed::open(Contended::default(), true).await.unwrap();
        let keys = Arc::clone(&keyed.keys);
        let store = BackendStore::over(keyed).trying(attempts_max);
        let new = NewDefinition {
            name: "a".into(),
            spec: "{}".into(),
            identity: "{}".into(),
            enabled: None,
        };
        let refused = store.define(&new).await.unwrap_err();
        assert_eq!(keys.batches.load(Ordering::SeqCst), done);
        assert_eq!(keys.timer.0.load(Ordering::SeqCst), done - 1, "waits by the timer of the keys");
        assert_eq!(refused.kind().code(), "unavailable");
        let attempts = format!("all {} attempts", attempts_max.max(1));
        assert!(refused.to_string().contains(&attempts), "{refused}");
    }
}

/// The second member joins and acquires a slot while the first is acquiring it too, after each of
/// its reads.
#[tokio::test]
async fn member_that_acquires_between_reads_keeps_its_slots() {
    let mut met = 0;
    for reads in 0..12 {
        let keys = OneByOne::default();
        let (store, other) = (keys.open().await, keys.another().await);
        let first = join(&store, 1).await;
        // Makes the pool.
        store.acquire(&wanting(first, &[1]), NOW).await.unwrap();
        let second = Incarnation::new(2);
        let act = Box::pin(async move {
            join(&other, 2).await;
            let acquired = other.acquire(&wanting(second, &[7]), NOW).await.unwrap();
            assert_eq!(acquired.leases.len(), 1, "it is free");
        });
        *keys.meanwhile.lock().unwrap() = Some((reads, act));
        let acquired = store.acquire(&wanting(first, &[5, 7]), NOW).await.unwrap();
        if keys.meanwhile.lock().unwrap().is_some() {
            // The step ended before the action was due.
            break;
        }
        met += 1;
        let slots: Vec<u64> = acquired.leases.iter().map(|lease| lease.slot).collect();
        assert_eq!((slots, acquired.held), (vec![5], vec![(7, second)]), "after read {reads}");
    }
    assert!(met >= 4, "an acquire reads more than {met} times");
}

/// The slot's row came with the head, and another member acquires the slot before the write.
#[tokio::test]
async fn slot_acquired_before_the_write_of_an_extend_is_not_extended() {
    let keys = OneByOne { sees_each: true, ..OneByOne::default() };
    let (store, other) = (keys.open().await, keys.another().await);
    let (first, second) = (join(&store, 1).await, join(&other, 2).await);
    let lease = store.acquire(&wanting(first, &[7]), NOW).await.unwrap().leases.remove(0);
    let act = Box::pin(async move {
        let stalled = vec![StalledMember { member: first, renewals: 0 }];
        let acquire = Acquire { stalled, ..wanting(second, &[7]) };
        assert_eq!(other.acquire(&acquire, NOW).await.unwrap().leases.len(), 1);
    });
    *keys.meanwhile.lock().unwrap() = Some((0, act));
    let extend = extending(&lease, lease.mark, Mark::new(lease.mark.get() + 10));
    let refused = store.extend(&[extend], NOW).await.unwrap().remove(0).unwrap_err();
    assert_eq!(refused.kind().code(), "fenced", "{refused}");
    assert!(keys.meanwhile.lock().unwrap().is_none(), "it came between");
}

/// Names of pools come from clients: one that is no legal key must fail only the call that has it.
#[tokio::test]
async fn illegal_key_fails_no_other_call_of_the_handle() {
    let keys = OneByOne { sees_each: true, ..OneByOne::default() };
    let store = keys.open().await;
    let member = join(&store, 1).await;
    let lease = store.acquire(&wanting(member, &[7]), NOW).await.unwrap().leases.remove(0);
    let illegal = Lease { pool: "a//b".into(), ..lease.clone() };
    let extend = extending(&illegal, lease.mark, Mark::new(lease.mark.get() + 10));
    let StoreIdentity { id, writes } = store.identity().await.unwrap();
    let seen = Seen { id: id.into(), writes, catalog_version: 0 };
    let new =
        NewDefinition { name: "a".into(), spec: "{}".into(), identity: "{}".into(), enabled: None };
    // The other call comes between the fast verb and the step over rows.
    assert_eq!(store.backend().extend(&extend, NOW, &seen).await.unwrap(), None);
    store.define(&new).await.unwrap();
    let presence = Presence { sample: NOW, renewals: 1, ttl_ms: 10_000 };
    let extends = [extend];
    let (extended, renewed) =
        tokio::join!(store.extend(&extends, NOW), store.renew(member, presence, NOW));
    let refused = extended.unwrap_err();
    assert!(refused.to_string().contains("is not a legal key"), "{refused}");
    renewed.unwrap();
}

/// The member's row was missing at the head, and exists at the write.
#[tokio::test]
async fn row_written_after_the_head_is_not_overwritten() {
    let apart = OneByOne::default().open().await;
    let member = join(&apart, 2).await;
    let mut step = apart.backend().begin(Access::Read).await.unwrap();
    let row = step.member(member).await.unwrap().unwrap();

    let keys = OneByOne::default();
    let (store, other) = (keys.open().await, keys.another().await);
    let act = Box::pin(async move {
        join(&other, 2).await;
    });
    *keys.meanwhile.lock().unwrap() = Some((0, act));
    let first = Some(FirstRow::Member(member));
    let mut step = store.backend().begin_reading(Access::Write, first).await.unwrap();
    assert!(keys.meanwhile.lock().unwrap().is_none(), "it joined after the head");
    assert!(step.member(member).await.unwrap().is_none());
    step.put_member(&row).await.unwrap();
    let ended = step.commit().await;
    assert!(matches!(ended, Err(Failure::RaceLost)), "{ended:?}");
}

/// The member's row came with the head, and is gone when the step lists the members.
#[tokio::test]
async fn row_deleted_after_the_head_is_not_written_again() {
    let keys = OneByOne::default();
    let (store, other) = (keys.open().await, keys.another().await);
    let member = join(&store, 1).await;
    let act = Box::pin(async move { other.leave(member, NOW).await.unwrap() });
    *keys.meanwhile.lock().unwrap() = Some((0, act));
    let first = Some(FirstRow::Member(member));
    let mut step = store.backend().begin_reading(Access::Write, first).await.unwrap();
    assert!(step.members().await.unwrap().is_empty());
    step.hold_member(member).await.unwrap();
    let ended = step.commit().await;
    assert!(matches!(ended, Err(Failure::RaceLost)), "{ended:?}");
}

/// A number that a member claims meanwhile is not excluded: the member mints with it already.
#[tokio::test]
async fn member_that_claims_between_reads_is_known() {
    let pool = || Pool { name: "workers".into(), slots: 4, group: 1, reuse: Reuse::Recycle };
    let mut met = 0;
    for reads in 0..12 {
        let keys = OneByOne::default();
        let (store, other) = (keys.open().await, keys.another().await);
        let exclude = |slot| {
            let label = "it".into();
            Exclude { pool: pool(), slots: vec![slot], until: Mark::MAX, label }
        };
        // Makes the pool.
        store.exclude(&exclude(2), NOW).await.unwrap();
        let act = Box::pin(async move {
            let request = ClaimRequest {
                pool: pool(),
                member: join(&other, 2).await,
                owner: String::new(),
                count: 1,
                preference: Preference::Exactly(3),
                supersedes: None,
                mark_at_most: Mark::from(NOW),
                request: 7,
            };
            other.claim(&request, NOW).await.unwrap();
        });
        *keys.meanwhile.lock().unwrap() = Some((reads, act));
        let excluded = store.exclude(&exclude(3), NOW).await;
        if keys.meanwhile.lock().unwrap().is_some() {
            break;
        }
        met += 1;
        let refused = excluded.expect_err(&format!("after read {reads}"));
        assert_eq!(refused.kind().code(), "conflict", "after read {reads}: {refused}");
    }
    assert!(met >= 4, "an avoid reads more than {met} times");
}
