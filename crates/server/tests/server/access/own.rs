//! Tests of sources that a token defines at run time: they decide no server's readiness.

use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::store::StoreConnector;
use snowmint_coord::{
    MemoryStore, NewDefinition, Node, NodeSettings, Platform, Result, SourceSpec, Store,
};
use snowmint_server::{Access, Tokens};
use snowmint_wire::error::Code as ErrorCode;
use snowmint_wire::grpc::store;
use tonic::Status;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::{ADMIN, BARE, JOINER, MINTER, SHARER, access, bearer, guarded, token};
use crate::common::{Server, server_for, settings, soon, timer};
use crate::grpc::reason;

const SMALL: &str = "mine-small";
/// The layout has one worker number, for two servers.
const DEFINITION: &str = r#"{"name":"mine-small","layout":"time=62,worker=0,sequence=1,unit=1ms"}"#;
/// Longer than any pause of a busy machine: no window is spent, and no member expires.
const LONG_MS: u64 = 600_000;

async fn server(store: &MemoryStore) -> Server {
    let store = Arc::new(store.handle("test").unwrap());
    let long = NodeSettings {
        builtin: true,
        presence_ttl_ms: LONG_MS,
        window_ms: LONG_MS,
        ..NodeSettings::default()
    };
    let node = Node::open(store, long, Platform::system()).await.unwrap();
    server_for(node, settings(), (Some(access(&timer())), timer())).await
}

/// Returns the sources that cannot mint at a server that must be ready, as this token learns.
async fn not_minting(server: &Server, token: &str) -> Vec<String> {
    let headers = if token.is_empty() { String::new() } else { bearer(token) };
    let response = server.send("GET", "/readyz", &headers, "").await;
    assert_eq!(response.status, 200, "{response:?}");
    let body = response.json();
    let none = serde_json::json!([]);
    assert_eq!((&body["reasons"], &body["codes"]), (&none, &none), "{body}");
    let not_minting = body["not_minting"].as_array().cloned().unwrap_or_default();
    not_minting.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// A layout with fewer worker numbers than there are servers would take some of them out of
/// service.
#[tokio::test]
async fn token_with_one_name_makes_no_server_unready() {
    let store = MemoryStore::new("test").unwrap();
    let (has, lacks) = (server(&store).await, server(&store).await);
    let get = async |server: &Server, token: &str, source: &str| {
        server.send("GET", &format!("/v1/ids/{source}"), &bearer(token), "").await
    };
    for server in [&has, &lacks] {
        assert_eq!(get(server, MINTER, "default").await.status, 200);
    }
    let defined = has.send("POST", "/v1/sources", &bearer(SHARER), DEFINITION).await;
    assert_eq!(defined.status, 200, "{defined:?}");
    assert_eq!(get(&has, SHARER, SMALL).await.status, 200);
    let full = get(&lacks, SHARER, SMALL).await;
    assert_eq!((full.status, full.code().as_str()), (503, "pool_full"));

    for token in [SHARER, ADMIN] {
        let reasons = not_minting(&lacks, token).await;
        assert!(reasons.len() == 1 && reasons[0].contains(SMALL), "{reasons:?}");
    }
    for stranger in ["", BARE, MINTER] {
        assert_eq!(not_minting(&lacks, stranger).await, [""; 0], "{stranger}");
    }
    assert_eq!(not_minting(&has, ADMIN).await, [""; 0], "it has the number");
    let mut health = HealthClient::new(lacks.channel().await);
    let request = HealthCheckRequest { service: String::new() };
    let status = soon(health.check(request)).await.unwrap().into_inner().status();
    assert_eq!(status, ServingStatus::Serving);
    let page = lacks.send("GET", "/metrics", &bearer(ADMIN), "").await.body;
    assert!(page.contains("\nsnowmint_ready 1.0\n"), "{page}");
    // The alert for each source sees it.
    let runway = format!("\nsnowmint_window_runway_seconds{{source=\"{SMALL}\"}} 0.0\n");
    assert!(page.contains(&runway), "{page}");
    assert_eq!(get(&lacks, MINTER, "default").await.status, 200);
}

/// Place of a secondary store.
#[derive(Debug)]
struct Place(MemoryStore);

#[async_trait]
impl StoreConnector for Place {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.0.handle("test")?))
    }
}

/// Returns a server with the secondary store `b`, and a token of a program.
async fn server_of_programs() -> Server {
    let place = Arc::new(Place(MemoryStore::new("test").unwrap())) as Arc<dyn StoreConnector>;
    let node_settings = NodeSettings {
        builtin: true,
        secondary_stores: [("b".to_owned(), place)].into(),
        ..NodeSettings::default()
    };
    let store = Arc::new(MemoryStore::new("test").unwrap());
    let node = Node::open(store, node_settings, Platform::system()).await.unwrap();
    let tokens = [
        ("joiner".to_owned(), token(JOINER, &["join default", "admin mine-*"], &[])),
        ("admin".to_owned(), token(ADMIN, &["join,admin *"], &[])),
    ];
    let tokens = Tokens { tokens: tokens.into(), ..Tokens::default() };
    let timer = timer();
    let access = Access::new("test", &tokens, Arc::new(timer.clone())).unwrap();
    server_for(node, settings(), (Some(access), timer)).await
}

/// A program writes the text of a definition itself, in each store of the server.
#[tokio::test]
async fn program_with_one_name_moves_marks_no_window_further() {
    let server = server_of_programs().await;
    let slow = r#"{"layout":"time=20,worker=10,sequence=22,unit=86400s"}"#;
    let slow_in_hex = r#"{"layout":"time=20,worker=10,sequence=22,unit=86400s","text":"hex"}"#;
    let (banks, leads) = (r#"{"on_rollback":"borrow"}"#, r#"{"lead_max":"1h"}"#);
    for at in ["", "/b"] {
        let write = async |token: &str, verb: &str, name: &str, keys: &str| {
            let spec = SourceSpec::from_json(keys).unwrap();
            let NewDefinition { name, spec, identity, .. } =
                NewDefinition::of(name, &spec).unwrap();
            let new = Some(store::NewDefinition { name, spec, identity, enabled: None });
            let mut client = server.program(token).await;
            client.instance += at;
            let response = if verb == "define" {
                client.call(store::DefineRequest { new }).await
            } else {
                client.call(store::AlterRequest { new, if_version: None }).await
            };
            let error = response?.error;
            assert_eq!(error, None, "{at} {verb} {keys}");
            Ok::<(), Status>(())
        };
        write(JOINER, "define", "mine-bank", banks).await.unwrap();
        for (verb, name, keys) in [
            ("define", "mine-slow", slow),
            ("define", "mine-leading", leads),
            ("alter", "mine-bank", leads),
        ] {
            let status = write(JOINER, verb, name, keys).await.unwrap_err();
            assert_eq!(reason(&status), ErrorCode::LimitExceeded, "{at} {status:?}");
            assert!(status.message().contains("worker.window"), "{at} {status:?}");
        }
        // A definition by an operator stays.
        write(ADMIN, "define", "mine-slow", slow).await.unwrap();
        write(JOINER, "alter", "mine-slow", slow_in_hex).await.unwrap();
    }
}

/// A day's tick would let worker marks lead the clock by days. After a crash with `worker.number`,
/// and after each recovery, the server's own sources would wait as long.
#[tokio::test]
async fn token_with_one_name_moves_marks_no_window_further() {
    let (server, _) = guarded().await;
    let send = async |token: &str, method: &str, path: &str, body: &str| {
        server.status_as(token, method, path, body).await
    };
    let slow = r#"{"name":"mine-slow","layout":"time=20,worker=10,sequence=22,unit=86400s"}"#;
    let leads = r#"{"name":"mine-leading","lead_max":"1h"}"#;
    for body in [slow, leads] {
        assert_eq!(send(SHARER, "POST", "/v1/sources", body).await, 413, "{body}");
    }
    let defaults = r#"{"name":"mine-bank","on_rollback":"borrow"}"#;
    assert_eq!(send(SHARER, "POST", "/v1/sources", defaults).await, 200);
    let longer = r#"{"lead_max":"1h"}"#;
    assert_eq!(send(SHARER, "PATCH", "/v1/sources/mine-bank", longer).await, 413);
    // A definition by an operator stays.
    assert_eq!(send(ADMIN, "POST", "/v1/sources", slow).await, 200);
    let off = r#"{"enabled":false}"#;
    assert_eq!(send(SHARER, "PATCH", "/v1/sources/mine-slow", off).await, 200);
    let refused = server.send("POST", "/v1/sources", &bearer(SHARER), leads).await;
    for part in ["lead_max", "worker.window", "limit", "admin *"] {
        assert!(refused.body.contains(part), "{part}: {refused:?}");
    }
}
