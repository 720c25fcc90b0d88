//! Servers that lag, follow another, or were restored to an older state.

use snowmint_coord::{ErrorKind, FastForward, NewDefinition, Recalled, StalledMember, Term};

use super::*;

/// A server that lags must not confirm to a member that it still has a slot (`counter.confirm`).
#[tokio::test]
async fn read_from_a_lagging_server_is_repeated() {
    let keys = OneByOne::default();
    let (store, other) = (keys.open().await, keys.another().await);
    let (first, second) = (join(&store, 1).await, join(&other, 2).await);
    let leases = store.acquire(&wanting(first, &[7]), NOW).await.unwrap().leases;
    assert_eq!(
        store.acquire(&wanting(first, &[7]), NOW).await.unwrap().leases,
        leases,
        "still his"
    );
    let before = keys.server.lock().unwrap().clone();
    let stalled = vec![StalledMember { member: first, renewals: 0 }];
    let acquired = other.acquire(&Acquire { stalled, ..wanting(second, &[7]) }, NOW).await.unwrap();
    assert_eq!(acquired.leases.len(), 1);
    *keys.behind.lock().unwrap() = Some(before);
    let refused = store.acquire(&wanting(first, &[7]), NOW).await.unwrap_err();
    assert_eq!(refused.kind().code(), "not_found", "{refused}");
}

/// The first server has what the replica lacks, and the address may lead back to it. So the replica
/// counts as another store, not as rolled back, until an operator declares it complete.
#[tokio::test]
async fn a_replica_that_lags_is_another_store_to_its_readers() {
    let keys = OneByOne::default();
    keys.server.lock().unwrap().name = Some("one".into());
    let store = keys.open().await;
    join(&store, 1).await;
    let mut replica = keys.server.lock().unwrap().clone();
    replica.name = Some("two".into());
    let kept = store.identity().await.unwrap();
    join(&store, 2).await;
    let seen = store.identity().await.unwrap();

    let first = std::mem::replace(&mut *keys.server.lock().unwrap(), replica.clone());
    let code = |error: Error| error.kind().code();
    assert_eq!(store.list().await.map_err(code), Err("store_mismatch"));
    assert_eq!(store.recall("the journal", &kept).await.map_err(code), Err("store_mismatch"));
    let fresh = keys.another().await;
    fresh.list().await.unwrap();
    assert_eq!(fresh.recall("the journal", &seen).await.map_err(code), Err("store_mismatch"));

    // The same server, restored to an older state.
    keys.server.lock().unwrap().name = Some("one".into());
    assert_eq!(store.list().await.map_err(code), Err("store_rolled_back"));

    *keys.server.lock().unwrap() = first;
    store.list().await.unwrap();
    store.recall("the journal", &seen).await.unwrap();
    join(&store, 3).await;
}

/// Nothing was lost on the primary, and nothing may be kept of a replica.
#[tokio::test]
async fn complete_replica_is_rejected_by_its_name() {
    let keys = OneByOne::default();
    let store = keys.open().await;
    join(&store, 1).await;
    let before = keys.server.lock().unwrap().clone();
    join(&store, 2).await;
    let seen = store.identity().await.unwrap();
    let primary = keys.server.lock().unwrap().clone();

    let new =
        NewDefinition { name: "a".into(), spec: "{}".into(), identity: "{}".into(), enabled: None };
    for (lags, replica) in [(false, primary.clone()), (true, before)] {
        *keys.server.lock().unwrap() = Server { name: Some(REPLICA.into()), ..replica };
        for refused in [
            store.define(&new).await.map(drop),
            store.fast_forward(&FastForward::default()).await.map(drop),
        ] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
            assert!(refused.to_string().contains("is a replica"), "{refused}");
        }
        for read in [store.list().await.map(drop), store.recall("it", &seen).await.map(drop)] {
            let code = read.map_err(|refused| refused.kind().code());
            assert_eq!(code, if lags { Err("store_mismatch") } else { Ok(()) });
        }
    }
    *keys.server.lock().unwrap() = primary;
    store.list().await.unwrap();
    join(&store, 3).await;

    let empty = OneByOne::default();
    empty.server.lock().unwrap().name = Some(REPLICA.into());
    let refused = Keyed::open(empty, true).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
}

/// The rows were read from one server, and another has the same.
#[tokio::test]
async fn a_step_that_began_on_another_server_confirms_nothing() {
    let keys = OneByOne::default();
    let move_to = |server: &str| keys.server.lock().unwrap().name = Some(server.into());
    move_to("one");
    let store = keys.open().await;
    join(&store, 1).await;
    for access in [Access::Read, Access::Write] {
        for (end, is_lost) in [("one", false), ("two", true)] {
            move_to("one");
            let mut step = store.backend().begin(access).await.unwrap();
            step.members().await.unwrap();
            move_to(end);
            let ended = step.unchanged().await;
            assert_eq!(matches!(ended, Err(Failure::RaceLost)), is_lost, "{access:?}: {ended:?}");
            assert_eq!(ended.is_ok(), !is_lost, "{access:?}: {ended:?}");
        }
    }
}

/// A store of form 2 on etcd counted what others wrote to the server. The count continues above
/// what any process has seen of it.
#[tokio::test]
async fn own_count_continues_above_the_shared_count() {
    let keys = OneByOne::default();
    join(&keys.open().await, 1).await;
    {
        let mut server = keys.server.lock().unwrap();
        server.of_others = 100;
        let record = server.keys.get_mut(name::STORE).unwrap();
        assert!(record.value.contains("\"form\":3"), "{}", record.value);
        record.value = record.value.replace("\"form\":3", "\"form\":2");
    }
    let store = keys.another().await;
    let before = store.identity().await.unwrap().writes;
    assert_eq!(before, keys.server.lock().unwrap().writes + 100);
    join(&store, 2).await;
    let after = store.identity().await.unwrap().writes;
    assert!(after > before, "{after} after {before}");
    keys.server.lock().unwrap().of_others = 200;
    assert_eq!(keys.another().await.identity().await.unwrap().writes, after);
}

/// A walk over many rows takes several steps, and each counts as a write. What was lost before it
/// stays lost, and the defaults leap once.
#[tokio::test]
async fn long_recovery_hides_no_lost_write() {
    let keys = OneByOne::default();
    let store = keys.open().await;
    join(&store, 1).await;
    let backup = keys.server.lock().unwrap().clone();
    join(&store, 2).await;
    let seen = store.identity().await.unwrap();
    *keys.server.lock().unwrap() = backup;
    let segments = (0..250).map(|number| (format!("source-{number:03}"), Mark::new(9))).collect();
    let forward = FastForward { segments, ..FastForward::default() };
    let after = keys.another().await.fast_forward(&forward).await.unwrap();
    assert!(after.writes > seen.writes + 1, "one step was enough: {after:?}");
    let fresh = keys.another().await;
    assert_eq!(fresh.recall("the journal", &seen).await.unwrap(), Recalled::Recovered);
    assert_eq!(fresh.ground().await.unwrap().term, Term::new(1 << 32));
}

/// Its steps count as writes. A process that saw lost writes must not take these counts for them,
/// wherever the command ends, and the command can be repeated.
#[tokio::test]
async fn recovery_that_ends_between_its_steps_hides_no_lost_write() {
    let segments = (0..900).map(|number| (format!("source-{number:03}"), Mark::new(9))).collect();
    let forward = FastForward { segments, ..FastForward::default() };
    let mut partly_moved = 0;
    for reads in (0..).step_by(60) {
        let keys = OneByOne::default();
        let store = keys.open().await;
        join(&store, 1).await;
        let backup = keys.server.lock().unwrap().clone();
        join(&store, 2).await;
        let seen = store.identity().await.unwrap();
        *keys.server.lock().unwrap() = backup;
        let operator = keys.open().await;
        let ended = Arc::new(tokio::sync::Notify::new());
        let ends = Arc::clone(&ended);
        let act = Box::pin(async move {
            ends.notify_one();
            std::future::pending().await
        });
        *keys.meanwhile.lock().unwrap() = Some((reads, act));
        let is_done = tokio::select! {
            moved = operator.fast_forward(&forward) => moved.is_ok(),
            () = ended.notified() => false,
        };
        *keys.meanwhile.lock().unwrap() = None;
        if is_done {
            break;
        }
        let fresh = keys.another().await;
        let found = fresh.identity().await.unwrap();
        partly_moved += u32::from(found.writes >= seen.writes);
        let refused = fresh.recall("the journal", &seen).await.unwrap_err();
        assert_eq!(refused.kind().code(), "store_rolled_back", "after {reads} reads: {refused}");
        keys.another().await.fast_forward(&forward).await.unwrap();
        assert_eq!(fresh.recall("the journal", &seen).await.unwrap(), Recalled::Recovered);
    }
    assert!(partly_moved > 0, "the whole move was one step");
}

/// Values are raised in several steps before any process has found the loss of one write. Each step
/// counts as a write, and another process writes in between.
#[tokio::test]
async fn values_raised_in_several_steps_hide_no_lost_write() {
    let keys = OneByOne::default();
    let store = keys.open().await;
    join(&store, 1).await;
    let kept = store.identity().await.unwrap();
    let backup = keys.server.lock().unwrap().clone();
    join(&store, 2).await;
    let seen = store.identity().await.unwrap();
    *keys.server.lock().unwrap() = backup;
    let segments = (0..250).map(|number| (format!("source-{number:03}"), Mark::new(9))).collect();
    let forward = FastForward { segments, values_only: true, ..FastForward::default() };
    let term = keys.another().await.ground().await.unwrap().term;
    let after = keys.another().await.fast_forward(&forward).await.unwrap();
    assert!(after.writes > seen.writes + 1, "one step was enough: {after:?}");
    let fresh = keys.another().await;
    let refused = fresh.recall("the journal", &seen).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
    assert_eq!(fresh.recall("the journal", &kept).await.unwrap(), Recalled::Same);
    assert_eq!(fresh.ground().await.unwrap().term, term, "no lease and no counter is void");
}

/// The server is restored in the middle of a step, which writes to it: only the response shows what
/// is missing, and the handle remembers it.
#[tokio::test]
async fn a_step_that_hides_a_lost_write_is_remembered() {
    let keys = OneByOne::default();
    let store = keys.open().await;
    let member = join(&store, 1).await;
    let backup = keys.server.lock().unwrap().clone();
    let presence = Presence { sample: NOW, renewals: 1, ttl_ms: 10_000 };
    store.renew(member, presence, NOW).await.unwrap();
    let seen = store.identity().await.unwrap();

    let server = Arc::clone(&keys.server);
    let restore = Box::pin(async move { *server.lock().unwrap() = backup });
    *keys.meanwhile.lock().unwrap() = Some((0, restore));
    let joining = Member {
        incarnation: Incarnation::new(2),
        owner: String::new(),
        host: String::new(),
        process: 1,
        address: String::new(),
    };
    let presence = Presence { sample: NOW, renewals: 0, ttl_ms: 10_000 };
    for _ in 0..2 {
        let refused = store.join(&joining, presence, NOW).await.unwrap_err();
        assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
    }
    let found = keys.another().await.identity().await.unwrap();
    assert_eq!(found.writes, seen.writes, "the count hides it");
    let refused = store.recall("it", &seen).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
}

/// The server is restored after the step has listed the members, and the step compares none of
/// them: their rows do not show what the server has kept.
#[tokio::test]
async fn rows_that_were_not_compared_do_not_count_as_kept() {
    let keys = OneByOne::default();
    let store = keys.open().await;
    let member = join(&store, 1).await;
    let backup = keys.server.lock().unwrap().clone();
    let kept = backup.writes;
    store.renew(member, Presence { sample: NOW, renewals: 1, ttl_ms: 10_000 }, NOW).await.unwrap();

    let server = Arc::clone(&keys.server);
    let restore = Box::pin(async move { *server.lock().unwrap() = backup });
    *keys.meanwhile.lock().unwrap() = Some((1, restore));
    let (owner, host, address) = (String::new(), String::new(), String::new());
    let joining = Member { incarnation: Incarnation::new(2), owner, host, process: 1, address };
    let presence = Presence { sample: NOW, renewals: 0, ttl_ms: 10_000 };
    let refused = store.join(&joining, presence, NOW).await.unwrap_err();
    let ErrorKind::StoreRolledBack { found, .. } = *refused.kind() else { panic!("{refused}") };
    assert!(found <= kept, "{found} were kept, of {kept}");
}

/// The server is restored after the step has read a member's row with its head, and the step
/// compares only the namespace.
#[tokio::test]
async fn unused_row_of_the_head_does_not_count_as_kept() {
    let keys = OneByOne::default();
    let store = keys.open().await;
    let member = join(&store, 1).await;
    let backup = keys.server.lock().unwrap().clone();
    let kept = backup.writes;
    store.renew(member, Presence { sample: NOW, renewals: 1, ttl_ms: 10_000 }, NOW).await.unwrap();

    let first = Some(FirstRow::Member(member));
    let mut step = store.backend().begin_reading(Access::Write, first).await.unwrap();
    *keys.server.lock().unwrap() = backup;
    let namespace = step.namespace().await.unwrap();
    step.put_namespace(namespace).await.unwrap();
    let Err(Failure::Rejected(refused)) = step.commit().await else { panic!("it is short") };
    let ErrorKind::StoreRolledBack { found, .. } = *refused.kind() else { panic!("{refused}") };
    assert!(found <= kept, "{found} were kept, of {kept}");
}
