//! Requests of a step: how many, and what their replies must contain.

use snowmint_coord::NewDefinition;

use super::*;

/// No step would use the rows: they would take memory for nothing.
#[tokio::test]
async fn rows_are_kept_only_for_steps_that_may_depend_on_them() {
    for sees_each in [false, true] {
        let keys = OneByOne { sees_each, ..OneByOne::default() };
        let store = keys.open().await;
        let member = join(&store, 1).await;
        let kept = store.backend().row_cache.with(&name::member(member));
        assert_eq!(kept.is_some(), !sees_each);
    }
}

/// The verbs that a node calls all the time: one request reads the head and their row, another
/// writes.
#[tokio::test]
async fn frequent_verbs_take_two_round_trips() {
    let keys = OneByOne { sees_each: true, ..OneByOne::default() };
    let store = keys.open().await;
    let member = join(&store, 1).await;
    let lease = store.acquire(&wanting(member, &[7]), NOW).await.unwrap().leases.remove(0);
    let new =
        NewDefinition { name: "a".into(), spec: "{}".into(), identity: "{}".into(), enabled: None };
    let definition_version = store.define(&new).await.unwrap().version;
    let mut from = lease.mark;
    for renewals in 1..4 {
        let to = Mark::new(from.get() + 10);
        let extend = extending(&lease, from, to);
        let before = keys.requests.load(Ordering::SeqCst);
        assert_eq!(store.extend(&[extend], NOW).await.unwrap().remove(0).unwrap().mark, to);
        let extended = keys.requests.load(Ordering::SeqCst);
        let presence = Presence { sample: NOW, renewals, ttl_ms: 10_000 };
        store.renew(member, presence, NOW).await.unwrap();
        let renewed = keys.requests.load(Ordering::SeqCst);
        let reserve = Reserve { source: "a".into(), length: 5, definition_version, within: None };
        store.reserve(&reserve).await.unwrap();
        let reserved = keys.requests.load(Ordering::SeqCst);
        let counts = [extended - before, renewed - extended, reserved - renewed];
        assert_eq!(counts, [2, 2, 2], "extend, renew, reserve");
        from = to;
    }
}

#[test]
fn reply_with_another_number_of_rows_is_rejected() {
    assert!(check_rows::<Infallible>(2, 2).is_ok());
    for found in [1, 3] {
        let failure = check_rows::<Infallible>(found, 2).unwrap_err();
        let error = failure.into_error("the store", |error| match error {});
        assert_eq!(error.kind().code(), "corrupt");
        let both = format!("reply has {found} rows, expected 2;");
        assert!(error.to_string().contains(&both), "{error}");
    }
}
