//! Reservations of programs count against their token's rate.

use std::sync::Arc;

use snowmint_client::Settings;
use snowmint_coord::{
    BootTimer, Mark, MemoryStore, NewDefinition, Node, Platform, Reserve, Retry, Store, Timer as _,
};

use crate::common::{SETTINGS, node_settings, soon};
use crate::tokens::{BILLS, ORDERS, define, remote, remote_with, serve};

#[tokio::test]
async fn numbers_reserved_by_a_client_count_against_its_rate() {
    let store = MemoryStore::new("all").unwrap();
    let (server, _) = serve(&store, "10/h burst=100 *").await;
    let spec = r#"{"kind":"segment"}"#.to_owned();
    let new = NewDefinition { name: "bills".into(), identity: spec.clone(), spec, enabled: None };
    let version = store.define(&new).await.unwrap().version;
    let within = None;
    let wanted =
        |length| Reserve { source: "bills".into(), length, definition_version: version, within };
    let bills = remote(BILLS, &[&server]).await;
    let first = bills.reserve(&wanted(90)).await.unwrap();
    assert_eq!(first.last - first.first, 89);
    let refused = bills.reserve(&wanted(90)).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused}");
    assert_eq!(store.get("bills").await.unwrap().segment.mark, Mark::new(first.last + 1));
    // A request above the burst counts as one for the whole burst.
    let refused = bills.reserve(&wanted(1_000)).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused}");
    // Another token has a count of its own.
    let orders = remote(ORDERS, &[&server]).await;
    orders.reserve(&wanted(1_000)).await.unwrap();
}

/// A program over its rate retries when it may, and not at all where that is too late for the call.
/// Its retries use up no retries of other calls.
#[tokio::test]
async fn client_over_its_rate_retries_when_allowed() {
    // A call that waits for its deadline does not return within this test.
    let within_ms = 1_200_000;
    let none_left = Settings { retries_at_once: 0, call_ms: within_ms, ..SETTINGS };
    for (rate, comes) in [("2/s burst=1 *", true), ("1/h *", false)] {
        let store = MemoryStore::new("all").unwrap();
        let (server, node) = serve(&store, rate).await;
        define(&node, "bills", r#"{"kind":"counter"}"#).await;
        define(&node, "bills-rows", r#"{"kind":"segment"}"#).await;
        let bills = remote_with(BILLS, &[&server], none_left).await;
        let owner_client = bills.owner_client().unwrap();
        let count = async || owner_client.count("bills", b"alice", 1, within_ms).await.map(|_| ());
        let reserve = async || {
            let definition_version = store.get("bills-rows").await?.version;
            let source = "bills-rows".into();
            let row = Reserve { source, length: 1, definition_version, within: None };
            bills.reserve(&row).await.map(|_| ())
        };
        // Each source has a rate of its own.
        count().await.unwrap();
        reserve().await.unwrap();
        for by_the_store in [false, true] {
            let next = async { if by_the_store { reserve().await } else { count().await } };
            let next = soon(next).await;
            assert_eq!(next.is_ok(), comes, "{rate}: {next:?}");
            if let Err(error) = next {
                assert!(matches!(error.retry(), Retry::AfterMs(1_800_000..)), "{error:?}");
            }
        }
    }
}

/// No caller got the numbers of a rejected call.
#[tokio::test]
async fn numbers_of_a_rate_limited_call_are_not_lost() {
    let store = MemoryStore::new("all").unwrap();
    let (server, node) = serve(&store, "1/h burst=10 *").await;
    define(&node, "bills", r#"{"kind":"segment","step":{"rule":"fixed","size":10}}"#).await;
    let own: Arc<dyn Store> = remote(BILLS, &[&server]).await;
    let node = Node::open(own, node_settings(), Platform::system()).await.unwrap();
    let source = node.source("bills").await.unwrap();
    source.mint(10, None, 60_000).await.unwrap();
    let refused = source.mint(1, None, 2_000).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused}");
    let numbers = source.stats().numbers.unwrap();
    assert_eq!((numbers.fetched, numbers.lost), (10, 0), "{numbers:?}");
}

/// The size of a fetch follows the consumption rate and the definition, and ignores rate limits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_within_its_rate_is_served_at_any_fetch_size() {
    for spec in
        [r#"{"kind":"segment"}"#, r#"{"kind":"segment","step":{"rule":"fixed","size":900}}"#]
    {
        let store = MemoryStore::new("all").unwrap();
        let (server, node) = serve(&store, "200/s *").await;
        define(&node, "bills", spec).await;
        let own: Arc<dyn Store> = remote(BILLS, &[&server]).await;
        let program = Node::open(own, node_settings(), Platform::system()).await.unwrap();
        let bills = program.source("bills").await.unwrap();
        // At this pace, ten seconds use 1,000 numbers and more.
        for _ in 0..100 {
            bills.mint(5, None, 60_000).await.unwrap();
            BootTimer.sleep_ms(40).await;
        }
        // Fewer numbers would not be the requested range.
        let refused = bills.reserve_range(3_000, 60_000).await.unwrap_err();
        assert_eq!(refused.kind().code(), "limit_exceeded", "{refused}");
        assert!(refused.to_string().contains("200"), "{refused}");
        program.close().await.unwrap();
    }
}
