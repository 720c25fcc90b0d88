//! Tests of a secondary store that responds slowly or never: callers of the primary one are served.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use snowmint_coord::store::StoreConnector;
use snowmint_coord::{NewDefinition, Result, SourceSpec, Store};
use snowmint_wire::grpc::store::{DescribeRequest, ReserveRequest};
use tokio::sync::watch;

use super::{AT_THE_STORE, BILLS, BlockedStore, LONG, PATH, long};
use crate::common::{describe_request, server_of, settings, soon};

/// Place of a store that a test holds.
#[derive(Debug)]
struct There(Arc<BlockedStore>);

#[async_trait]
impl StoreConnector for There {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::clone(&self.0) as _)
    }
}

/// Place of a store that never responds. Counts the attempts to open it.
#[derive(Debug)]
struct Silent(watch::Sender<usize>);

#[async_trait]
impl StoreConnector for Silent {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        self.0.send_modify(|opened| *opened += 1);
        std::future::pending().await
    }
}

/// One client has all its turns at a secondary store, and is served by the primary one.
#[tokio::test]
async fn slow_secondary_store_keeps_no_turn_at_the_primary() {
    let (own, slow) = (BlockedStore::new(), BlockedStore::new());
    let place = Arc::new(There(Arc::clone(&slow))) as Arc<dyn StoreConnector>;
    let node = own.node_with([("slow".to_owned(), place)].into()).await;
    let server = server_of(node, settings()).await;
    let bills = SourceSpec::from_json(r#"{"kind":"segment"}"#).unwrap();
    let bills = slow.store.define(&NewDefinition::of("bills", &bills).unwrap()).await.unwrap();
    let definition_version = bills.version;
    let mut client = server.stranger("").await;
    let describe = DescribeRequest { store: "slow".into(), ..describe_request() };
    let described = soon(client.describe(describe)).await.unwrap();
    assert!(described.instance.ends_with("/slow"), "{described:?}");

    slow.is_held.send_replace(true);
    let mut waiting = slow.waiting.subscribe();
    let reserve = || {
        let (source, length) = ("bills".into(), LONG);
        let reserve =
            ReserveRequest { source, length, definition_version, ..ReserveRequest::default() };
        let mut client = client.clone();
        async move { client.call(reserve).await.unwrap() }
    };
    let greedy = async {
        let mut calling: FuturesUnordered<_> = (0..2 * AT_THE_STORE).map(|_| reserve()).collect();
        while let Some(reserved) = calling.next().await {
            assert_eq!(reserved.error, None);
        }
    };
    let at_primary = async {
        soon(waiting.wait_for(|(now, _)| *now == AT_THE_STORE)).await.unwrap();
        let reserved = soon(server.post(PATH, &long())).await;
        assert_eq!(reserved.status, 200, "{reserved:?}");
        slow.is_held.send_replace(false);
    };
    soon(async { tokio::join!(greedy, at_primary) }).await;
    assert_eq!(slow.waiting.borrow().1, AT_THE_STORE, "the secondary store has its bound, too");
}

/// Each change asks a secondary store whether another one may leave the source. Meanwhile it has no
/// turn at the primary store, and no other definition waits for it.
#[tokio::test]
async fn change_that_asks_a_silent_store_delays_no_other() {
    let opened = watch::Sender::new(0);
    let place = || Arc::new(Silent(opened.clone())) as Arc<dyn StoreConnector>;
    let names = || (0..AT_THE_STORE).map(|number| format!("b{number}"));
    let silent = names().chain(["a".to_owned(), "c".to_owned()]);
    let places = silent.map(|name| (name, place())).collect();
    let server = server_of(BlockedStore::new().node_with(places).await, settings()).await;
    for stays in names() {
        let keys = format!(r#"{{"name":"of-{stays}","kind":"segment","stores":"a,{stays}"}}"#);
        let defined = soon(server.post("/v1/sources", &keys)).await;
        assert_eq!(defined.status, 200, "{defined:?}");
    }
    let change = async |stays: String| {
        let keys = format!(r#"{{"stores":"{stays},c"}}"#);
        server.send("PATCH", &format!("/v1/sources/of-{stays}"), "", &keys).await
    };
    let mut changing: FuturesUnordered<_> = names().map(change).collect();
    let mut all_ask = opened.subscribe();
    let define = async {
        soon(all_ask.wait_for(|opened| *opened >= AT_THE_STORE)).await.unwrap();
        let defined = soon(server.post("/v1/sources", BILLS)).await;
        assert_eq!(defined.status, 200, "{defined:?}");
    };
    tokio::select! {
        biased;
        response = changing.next() => panic!("{response:?}"),
        () = define => {}
    }
}
