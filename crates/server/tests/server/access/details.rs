//! Tests of the details of errors: the address of a store reaches callers with the admin right over
//! all sources, and no other caller. Without required tokens it reaches every caller.

use std::sync::Arc;

use snowmint_coord::{
    BootTimer, BoxFuture, Error, LazyStore, MemoryStore, Node, NodeSettings, Opening, Platform,
    Result, Store, StoreCall, StoreReply, Timer as _,
};
use snowmint_wire::grpc::{ListSourcesRequest, store};
use snowmint_wire::http::ErrorBody;

use super::{ADMIN, JOINER, MINTER, PEER, access, bearer, named};
use crate::common::{Server, describe_request, server_for, settings, soon, timer};
use crate::grpc::{many, wish};

/// Address that each error of the store has as its detail.
const ADDRESS: &str = "10.9.8.7:5432";
/// Sentence of each error of the store.
const SENTENCE: &str = "store is away; check that it runs";

/// Starts a server whose store cannot be opened, with or without required tokens.
async fn away(has_tokens: bool) -> Server {
    let open = || -> Opening { Box::pin(async { Err(is_away()) }) };
    server_on(Arc::new(LazyStore::new("test", open)), has_tokens).await
}

fn is_away() -> Error {
    Error::unavailable(SENTENCE).with_detail(format!("at {ADDRESS}"))
}

async fn server_on(store: Arc<dyn Store>, has_tokens: bool) -> Server {
    let node = Node::open(store, NodeSettings::default(), Platform::system()).await.unwrap();
    let mut settings = settings();
    settings.compat.leaf.enabled = true;
    settings.compat.tinyid.enabled = true;
    settings.compat.cosid.enabled = true;
    let timer = timer();
    let access = has_tokens.then(|| access(&timer));
    server_for(node, settings, (access, timer)).await
}

/// Checks a text that a caller got: with the sentence, and with the address only if `in_full`.
#[track_caller]
fn check(text: &str, in_full: bool, what: &str) {
    assert!(text.contains(SENTENCE), "{what}: {text}");
    assert_eq!(text.contains(ADDRESS), in_full, "{what}: {text}");
}

/// Paths of the server's own interface and of each compatibility API.
const CALLS: [(&str, &str, &str); 8] = [
    ("GET", "/v1/ids/numbers", ""),
    ("POST", "/v1/ids/numbers", "{\"count\":2}"),
    ("POST", "/v1/segments/numbers", "{\"length\":5}"),
    ("GET", "/v1/sources", ""),
    ("GET", "/api/segment/get/numbers", ""),
    ("GET", "/id/nextId?bizType=numbers", ""),
    ("GET", "/id/nextIdSimple?bizType=numbers", ""),
    ("GET", "/ids/numbers", ""),
];

#[tokio::test]
async fn http_shows_addresses_to_admins_over_all_alone() {
    let server = away(true).await;
    for (method, path, body) in CALLS {
        for (token, in_full) in [(MINTER, false), (PEER, false), (ADMIN, true)] {
            let response = server.send(method, path, &bearer(token), body).await;
            check(&response.body, in_full, &format!("{method} {path} {token}"));
            if path.starts_with("/v1/") {
                let whole = serde_json::from_str::<ErrorBody>(&response.body);
                assert!(whole.is_ok(), "{method} {path} {token}: {response:?}");
            }
        }
    }
    let open = away(false).await;
    for (method, path, body) in CALLS {
        let response = open.send(method, path, "", body).await;
        check(&response.body, true, &format!("{method} {path}"));
    }
}

#[tokio::test]
async fn readiness_shows_addresses_to_admins_over_all_alone() {
    let server = away(true).await;
    let response = async |headers: &str| server.send("GET", "/readyz", headers, "").await.body;
    // The node has yet to learn that the store is away.
    soon(async {
        while !response(&bearer(ADMIN)).await.contains(SENTENCE) {
            BootTimer.sleep_ms(1).await;
        }
    })
    .await;
    check(&response(&bearer(MINTER)).await, false, "minter");
    check(&response(&bearer(ADMIN)).await, true, "admin");
    assert!(!response("").await.contains("store is away"), "no sentence without a right");
}

#[tokio::test]
async fn grpc_shows_addresses_to_admins_over_all_alone() {
    let server = away(true).await;
    let mut client = server.grpc().await;
    for (token, in_full) in [(MINTER, false), (ADMIN, true)] {
        let minted = client.mint(named(wish("numbers", None), token)).await.unwrap_err();
        check(minted.message(), in_full, "mint");
        let streamed = client.mint_stream(named(many("numbers", 5), token)).await;
        let ended = match streamed {
            Ok(messages) => soon(messages.into_inner().message()).await.unwrap_err(),
            Err(refused) => refused,
        };
        check(ended.message(), in_full, "mint stream");
        let listed = client.list_sources(named(ListSourcesRequest {}, token)).await.unwrap_err();
        check(listed.message(), in_full, "list");
    }
}

#[tokio::test]
async fn store_service_shows_addresses_to_admins_over_all_alone() {
    let server = away(true).await;
    for (token, in_full) in [(JOINER, false), (ADMIN, true)] {
        let described = server.stranger(token).await.describe(describe_request()).await.unwrap();
        check_error(&described.error.unwrap(), in_full);
    }
}

/// Checks an error of the store in a response, with its detail only if `in_full`.
#[track_caller]
fn check_error(error: &store::Error, in_full: bool) {
    assert_eq!((error.code.as_str(), error.message.as_str()), ("unavailable", SENTENCE));
    assert_eq!(error.detail.contains(ADDRESS), in_full, "{error:?}");
    assert_eq!(error.detail.is_empty(), !in_full, "{error:?}");
}

/// A memory store in which every item of an extend fails by itself.
#[derive(Debug)]
struct FailsItems {
    store: MemoryStore,
}

impl Store for FailsItems {
    snowmint_coord::as_inner!(store);

    fn call<'a>(&'a self, call: StoreCall<'a>) -> BoxFuture<'a, Result<StoreReply>> {
        match call {
            StoreCall::Extend { items, .. } => {
                let failed = items.iter().map(|_| Err(is_away())).collect();
                Box::pin(async move { Ok(StoreReply::Extend(failed)) })
            }
            _ => self.store.call(call),
        }
    }
}

#[tokio::test]
async fn items_of_an_extend_show_addresses_to_admins_alone() {
    let store = FailsItems { store: MemoryStore::new("test").unwrap() };
    let server = server_on(Arc::new(store), true).await;
    let item = |slot| store::Extend {
        pool: "workers-10".into(),
        slot,
        member: Some(format!("{:032x}", 1)),
        ..store::Extend::default()
    };
    for (token, in_full) in [(JOINER, false), (ADMIN, true)] {
        let extend = store::ExtendRequest { items: vec![item(0), item(1)], now: 1 };
        let mut client = server.program(token).await;
        let extended = soon(client.call(extend)).await.unwrap();
        assert_eq!((extended.error, extended.items.len()), (None, 2), "{token}");
        for item in extended.items {
            check_error(&item.error.unwrap(), in_full);
        }
    }
}

#[tokio::test]
async fn resp_shows_addresses_to_admins_over_all_alone() {
    let server = away(true).await;
    for (name, token, in_full) in [("minter", MINTER, false), ("admin", ADMIN, true)] {
        let mut client = server.resp().await;
        assert_eq!(client.ask(&["AUTH", token]).await, "+OK");
        check(&client.ask(&["INCR", "numbers"]).await, in_full, name);
    }
    check(&away(false).await.resp().await.ask(&["INCR", "numbers"]).await, true, "no tokens");
}
