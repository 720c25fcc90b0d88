//! Tests of the memory store, and of the verbs on replicas and rolled-back states, which it has.

use snowmint_core::UnixMillis;

use super::*;
use crate::ids::{Incarnation, Mark};
use crate::model::catalog::NewDefinition;
use crate::model::fast_forward::FastForward;
use crate::model::history::{Doubt, Evidence, JournalInfo, Proof, Recalled};
use crate::model::member::{Member, Presence};
use crate::model::segment::Reserve;
use crate::platform::timer::ManualTimer;
use crate::store::Store as _;

#[test]
fn the_docs_show_the_capabilities() {
    assert!(MemoryStore::CAPABILITIES.shown_in(include_str!("mod.rs")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_handles_run_steps_in_turn() {
    const EACH: u64 = 200;
    let store = MemoryStore::new("default").unwrap();
    let (name, text) = ("bills".to_owned(), "{}".to_owned());
    let (spec, identity) = (text.clone(), text);
    let new = NewDefinition { name, spec, identity, enabled: None };
    let version = store.define(&new).await.unwrap().version;
    let reserve =
        Reserve { source: new.name, length: 1, definition_version: version, within: None };
    let takers = (0..8).map(|_| {
        let (store, reserve) = (store.handle("default").unwrap(), reserve.clone());
        tokio::spawn(async move {
            let mut taken = Vec::new();
            for _ in 0..EACH {
                taken.push(store.reserve(&reserve).await.unwrap().first);
            }
            taken
        })
    });
    let mut taken = Vec::new();
    for taker in takers.collect::<Vec<_>>() {
        taken.append(&mut taker.await.unwrap());
    }
    taken.sort_unstable();
    assert_eq!(taken, (1..=8 * EACH).collect::<Vec<_>>());
    assert_eq!(store.identity().await.unwrap().writes, 1 + 8 * EACH);
}

fn new_store() -> MemoryStore {
    MemoryStore::new("default").unwrap()
}

async fn write(store: &MemoryStore) {
    store.accept_lead(Mark::new(7)).await.unwrap();
}

fn code<T>(result: Result<T>) -> Option<&'static str> {
    result.err().map(|error| error.kind().code())
}

/// Nothing was lost on the first server, and the address may lead back to it.
#[tokio::test]
async fn a_replica_that_lags_is_another_store_to_its_readers() {
    let store = new_store();
    let [reader, fresh] = [(); 2].map(|()| store.handle("default").unwrap());
    write(&store).await;
    let (replica, kept) = (store.backup(), store.identity().await.unwrap());
    write(&reader).await;
    let (first, seen) = (store.backup(), reader.identity().await.unwrap());
    store.take_over(replica);
    for _ in 0..2 {
        assert_eq!(code(reader.list().await), Some("store_mismatch"));
        // The caller has seen no more than the replica has, and the handle has.
        assert_eq!(code(reader.recall("it", &kept).await), Some("store_mismatch"));
        assert_eq!(code(fresh.recall("it", &seen).await), Some("store_mismatch"));
    }
    store.restore(first);
    reader.list().await.unwrap();
    assert_eq!(reader.recall("it", &seen).await.unwrap(), Recalled::Same);
    write(&reader).await;
}

/// A replica may have been recovered, and still lack what its primary has.
#[tokio::test]
async fn recovered_replica_is_another_store_to_its_readers() {
    let store = new_store();
    write(&store).await;
    let base = store.backup();
    let reader = store.handle("default").unwrap();
    write(&reader).await;
    let (first, seen) = (store.backup(), reader.identity().await.unwrap());
    store.restore(base);
    store.fast_forward(&FastForward::default()).await.unwrap();
    store.take_over(store.backup());
    for _ in 0..2 {
        assert_eq!(code(reader.list().await), Some("store_mismatch"));
        assert_eq!(code(store.recall("it", &seen).await), Some("store_mismatch"));
    }
    store.restore(first);
    reader.list().await.unwrap();
}

/// Its last writes were never acknowledged, and are gone once the first server is back.
#[tokio::test]
async fn handle_keeps_nothing_of_a_replica_that_is_ahead() {
    let store = new_store();
    write(&store).await;
    let (first, seen) = (store.backup(), store.identity().await.unwrap());
    write(&store).await;
    store.take_over(store.backup());
    let [reader, recaller] = [(); 2].map(|()| store.handle("default").unwrap());
    reader.list().await.unwrap();
    assert_eq!(recaller.recall("it", &seen).await.unwrap(), Recalled::Same);
    store.restore(first);
    for handle in [&reader, &recaller] {
        handle.list().await.unwrap();
        write(handle).await;
    }
}

fn doubt() -> Doubt {
    Doubt { evidence: "a member".into(), seen: 9, found: 7 }
}

/// Puts a store in doubt, by evidence of one more write than it has.
async fn put_in_doubt(store: &MemoryStore) {
    let found = store.identity().await.unwrap();
    let seen = StoreIdentity { writes: found.writes + 1, ..found.clone() };
    let evidence = Evidence { seen, proof: Proof::Comparison, ..Evidence::of_operator(found.id) };
    store.doubt(&doubt(), &evidence).await.unwrap();
}

/// Only the rest of the handle's own store may be read while it is in doubt.
#[tokio::test]
async fn another_store_in_doubt_is_not_read() {
    let (store, other) = (new_store(), new_store());
    let reader = store.handle("default").unwrap();
    write(&reader).await;
    put_in_doubt(&other).await;
    store.restore(other.backup());
    assert_eq!(code(reader.list().await), Some("store_mismatch"));
}

/// The recovery has moved the store past what it lost.
#[tokio::test]
async fn evidence_from_before_a_recovery_raises_no_doubt() {
    let store = new_store();
    write(&store).await;
    let base = store.backup();
    write(&store).await;
    let lost = store.identity().await.unwrap();
    store.restore(base);
    store.fast_forward(&FastForward::default()).await.unwrap();
    let id = store.identity().await.unwrap().id;
    let evidence = Evidence { seen: lost, proof: Proof::Comparison, ..Evidence::of_operator(id) };
    store.handle("default").unwrap().doubt(&doubt(), &evidence).await.unwrap();
    assert_eq!(store.standing().await.unwrap().doubt, None);
}

/// The address has led to another store since the operator looked.
#[tokio::test]
async fn server_of_another_store_than_was_looked_at_is_not_accepted() {
    let (store, other) = (new_store(), new_store());
    let looked_at = Evidence::of_operator(store.standing().await.unwrap().id);
    store.take_over(other.backup());
    let before = store.identity().await.unwrap();
    store.handle("default").unwrap().doubt(&doubt(), &looked_at).await.unwrap();
    assert_eq!(store.identity().await.unwrap(), before);
}

/// A later state must not have the count of a lost one.
#[tokio::test]
async fn recovery_exceeds_the_count_that_its_handle_remembers() {
    let store = new_store();
    write(&store).await;
    let found = store.identity().await.unwrap();
    let seen = StoreIdentity { writes: found.writes + 100, ..found };
    let handle = store.handle("default").unwrap();
    handle.remember(&seen);
    let after = handle.fast_forward(&FastForward::default()).await.unwrap();
    assert!(after.writes > seen.writes, "{after:?}");
}

/// Another process may remember as many writes of a lost history, and one of them would be hidden.
#[tokio::test]
async fn report_leaves_a_start_but_in_doubt() {
    let store = new_store();
    write(&store).await;
    let id = async || store.identity().await.unwrap().id;
    let (first, handle) = (id().await, store.handle("default").unwrap());
    let journal = JournalInfo { id: "j".into(), ..JournalInfo::default() };
    handle.report(&journal, None).await.unwrap();
    let begun = id().await;
    assert_ne!(begun, first);
    write(&handle).await;
    handle.report(&journal, None).await.unwrap();
    assert_eq!(id().await, begun, "one start is enough");
    put_in_doubt(&store).await;
    let doubted = id().await;
    store.handle("default").unwrap().report(&journal, None).await.unwrap();
    assert_eq!(id().await, doubted);
}

/// The token's program renews through a server, whose own calls come as before.
#[tokio::test]
async fn presence_of_a_program_does_not_keep_its_server_in_touch() {
    let now = UnixMillis::new(1_780_272_000_000);
    for (incarnation, leaves) in
        [(Incarnation::new(7), false), (Incarnation::of_program(1, 7), true)]
    {
        let (store, timer) = (new_store(), ManualTimer::new(0));
        let handle = store.by_timer(Arc::new(timer.clone()));
        let (owner, host, address) = Default::default();
        let member = Member { incarnation, owner, host, process: 1, address };
        let presence = Presence { sample: now, renewals: 0, ttl_ms: 60_000 };
        handle.join(&member, presence, now).await.unwrap();
        let before = store.identity().await.unwrap().id;
        timer.advance_ms(30_000);
        write(&handle).await;
        assert_eq!(store.identity().await.unwrap().id != before, leaves, "{incarnation}");
    }
}
