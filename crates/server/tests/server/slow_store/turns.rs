//! Tests of the turns of clients at a store: each has a few at once, and others are served.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use snowmint_coord::spec::Span;
use snowmint_server::{Access, Secret, Tokens};
use snowmint_wire::grpc::DeleteSourceRequest;
use snowmint_wire::grpc::store::ReserveRequest;

use super::{AT_THE_STORE, BILLS, BlockedStore, LONG, PATH, SURE, long};
use crate::common::{Server, in_time, request, server_for, server_of, settings, soon, timer};
use crate::grpc::mint;
use crate::watches::client_from;

/// Calls this many times at once from one address, and once from another. The client's other calls
/// wait for its own, and the call of the other client waits for none of them.
async fn few_at_the_store(call: impl AsyncFn(&Server)) {
    let store = BlockedStore::new();
    let server = server_of(store.node().await, settings()).await;
    for body in [BILLS, SURE] {
        assert_eq!(server.post("/v1/sources", body).await.status, 200);
    }
    let body = long();
    // Reads what later calls need no more.
    soon(call(&server)).await;

    store.is_held.send_replace(true);
    let mut waiting = store.waiting.subscribe();
    let greedy = async {
        let mut calling: FuturesUnordered<_> = (0..40).map(|_| call(&server)).collect();
        while calling.next().await.is_some() {}
    };
    let other = async {
        soon(waiting.wait_for(|(now, _)| *now == AT_THE_STORE)).await.unwrap();
        let mut other = client_from(2, &server).await;
        let length = body.len();
        other
            .send(format!(
                "POST {PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}"
            ))
            .await;
        soon(waiting.wait_for(|(now, _)| *now == AT_THE_STORE + 1)).await.unwrap();
        store.is_held.send_replace(false);
        other.expect("HTTP/1.1 200 OK\r\n").await;
    };
    soon(async { tokio::join!(greedy, other) }).await;
    let (now, most) = *store.waiting.borrow();
    assert_eq!((now, most), (0, AT_THE_STORE + 1));
}

#[tokio::test]
async fn waiting_store_calls_of_a_client_are_limited() {
    few_at_the_store(async |server| {
        let reserved = server.post(PATH, &long()).await;
        assert_eq!(reserved.status, 200, "{reserved:?}");
    })
    .await;
}

/// Each call of this service is one of the store.
#[tokio::test]
async fn store_calls_of_one_program_are_few_and_others_are_served() {
    few_at_the_store(async |server| {
        let mut client = server.program("").await;
        let reserve = ReserveRequest {
            source: "numbers".into(),
            length: LONG,
            definition_version: 2,
            ..ReserveRequest::default()
        };
        assert_eq!(client.call(reserve).await.unwrap().error, None);
    })
    .await;
}

/// A per-request source reserves the numbers of each request in the store.
#[tokio::test]
async fn mints_of_one_client_at_the_store_are_few_over_http() {
    few_at_the_store(async |server| {
        let path = format!("/v1/ids/bills?count={LONG}");
        assert_eq!(server.get(&path).await.ids().len(), 10_000);
    })
    .await;
}

#[tokio::test]
async fn mints_of_one_client_at_the_store_are_few_over_resp() {
    few_at_the_store(async |server| {
        let minted = server.resp().await.ask(&["MINT", "bills", "10000"]).await;
        assert_eq!(minted, "*10000");
    })
    .await;
}

#[tokio::test]
async fn mints_of_one_client_at_the_store_are_few_over_grpc() {
    few_at_the_store(async |server| {
        assert_eq!(mint(&mut server.grpc().await, "bills", LONG).await.len(), 10_000);
    })
    .await;
}

/// The store confirms each of these.
#[tokio::test]
async fn confirmations_of_one_client_at_the_store_are_few() {
    for (method, path, body) in [
        ("GET", "/v1/ids/sure?key=a", ""),
        ("GET", "/v1/counters/sure/a", ""),
        ("PUT", "/v1/counters/sure/a", r#"{"bound":"5"}"#),
    ] {
        few_at_the_store(async |server| {
            let response = server.send(method, path, "", body).await;
            assert_eq!(response.status, 200, "{response:?}");
        })
        .await;
    }
    few_at_the_store(async |server| {
        server.resp().await.ask(&["INCRBY", "sure:a", "5"]).await;
    })
    .await;
}

/// One of these changes wins, and the others may get an error.
#[tokio::test]
async fn changes_of_one_client_at_the_store_are_few() {
    const STRIPE: &str = r#"{"offset":1,"increment":2}"#;
    for (method, path, body) in
        [("POST", "/v1/sources/bills/restripe", STRIPE), ("DELETE", "/v1/sources/bills", "")]
    {
        few_at_the_store(async |server| {
            server.send(method, path, "", body).await;
        })
        .await;
    }
    few_at_the_store(async |server| {
        let mut client = server.grpc().await;
        drop(client.delete_source(DeleteSourceRequest { name: "bills".into() }).await);
    })
    .await;
}

/// One definition at a time is at the store, and those of a client that wait for it are few. The
/// client's other ones do not hold up those of others.
#[tokio::test]
async fn definitions_of_one_client_that_wait_are_few() {
    let store = BlockedStore::new();
    let mut limits = settings();
    limits.limits.wait_max = Span::from_ms(1_000);
    let server = server_of(store.node().await, limits).await;
    for (method, path, body) in
        [("POST", "/v1/sources", BILLS), ("PATCH", "/v1/sources/bills", r#"{"text":"hex"}"#)]
    {
        store.is_held.send_replace(true);
        let mut calling: FuturesUnordered<_> =
            (0..40).map(|_| server.send(method, path, "", body)).collect();
        for _ in AT_THE_STORE..40 {
            let refused = in_time(&server.timer, calling.next()).await.unwrap();
            assert_eq!((refused.status, refused.code().as_str()), (503, "overloaded"));
        }
        store.is_held.send_replace(false);
        while let Some(response) = soon(calling.next()).await {
            assert_ne!(response.status, 503, "{response:?}");
        }
    }
}

/// All clients of a peer would be one here. The peer keeps each to its share.
#[tokio::test]
async fn forwarded_requests_wait_for_no_turn() {
    const PEER: &str = "peer-0123456789abcdef0123456789abcdef";
    const AT_ONCE: usize = AT_THE_STORE + 1;
    let (store, timer) = (BlockedStore::new(), timer());
    let tokens = Tokens { peers: vec![Secret::new(PEER)], ..Tokens::default() };
    let access = Access::new("test", &tokens, Arc::new(timer.clone())).unwrap();
    let server = server_for(store.node().await, settings(), (Some(access), timer)).await;
    let shown = format!("authorization: Bearer {PEER}\r\n");
    let count = "/v1/ids/sure?key=a";
    assert_eq!(server.send("POST", "/v1/sources", &shown, SURE).await.status, 200);
    assert_eq!(server.send("GET", count, &shown, "").await.status, 200);

    store.is_held.send_replace(true);
    let mut waiting = store.waiting.subscribe();
    let forwarded = async {
        let mut calling: FuturesUnordered<_> =
            (0..AT_ONCE).map(|_| server.send("GET", count, &shown, "")).collect();
        while let Some(response) = calling.next().await {
            assert_eq!(response.status, 200, "{response:?}");
        }
    };
    let released = async {
        soon(waiting.wait_for(|(now, _)| *now == AT_ONCE)).await.unwrap();
        store.is_held.send_replace(false);
    };
    soon(async { tokio::join!(forwarded, released) }).await;
}

/// All keys of a command wait together about as long as one key may.
#[tokio::test]
async fn keys_of_a_command_wait_together_as_long_as_one() {
    let store = BlockedStore::new();
    let server = server_of(store.node().await, settings()).await;
    assert_eq!(server.post("/v1/sources", SURE).await.status, 200);
    let mut client = server.resp().await;
    let exists = &["EXISTS", "sure:a", "sure:b"];
    assert_eq!(client.ask(exists).await, ":0");

    store.is_held.send_replace(true);
    let mut waiting = store.waiting.subscribe();
    client.send(request(exists)).await;
    soon(waiting.wait_for(|(now, _)| *now == 1)).await.unwrap();
    server.timer.advance_ms(60_001);
    store.is_held.send_replace(false);
    let late = "-TRYAGAIN keys looked up after 60000 ms (limits.wait_max): 1 of 2; retry, with \
                fewer keys";
    assert_eq!(client.line().await, late);
    assert_eq!(client.ask(exists).await, ":0");
}
