//! Definitions while the store cannot be read.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use snowmint_coord::{NewDefinition, SourceSpec, Store as _};
use snowmint_server::{Access, TokenHash, TokenSettings, Tokens};
use snowmint_wire::grpc::store::{DefineRequest, NewDefinition as ProtoDefinition};
use tonic::Code;

use super::BlockedStore;
use crate::common::{server_for, settings, soon, timer};

/// The rights that a definition needs depend on the objects that its source names already.
#[tokio::test]
async fn unread_definition_is_reported_as_unavailable() {
    const BUILDER: &str = "builder-0123456789abcdef0123456789";
    const BODY: &str = r#"{"name":"built","kind":"segment","upstream":"old:bills"}"#;
    let (store, timer) = (BlockedStore::new(), timer());
    let token = TokenSettings {
        hashes: vec![TokenHash::of(BUILDER.as_bytes()).to_string()],
        grants: vec!["join,admin built*".to_owned()],
        ..TokenSettings::default()
    };
    let tokens = [("builder".to_owned(), token)].into();
    let tokens = Tokens { tokens, ..Tokens::default() };
    let access = Access::new("test", &tokens, Arc::new(timer.clone())).unwrap();
    let server = server_for(store.node().await, settings(), (Some(access), timer)).await;
    let spec = SourceSpec::from_json(r#"{"kind":"segment","upstream":"old:bills"}"#).unwrap();
    let new = NewDefinition::of("built", &spec).unwrap();
    store.store.define(&new).await.unwrap();
    let mut client = server.program(BUILDER).await;
    let NewDefinition { name, spec, identity, enabled } = new;
    let new = ProtoDefinition { name, spec, identity, enabled };
    let mut define = async || soon(client.call(DefineRequest { new: Some(new.clone()) })).await;
    let bearer = format!("authorization: Bearer {BUILDER}\r\n");

    store.is_away.store(true, Ordering::SeqCst);
    let refused = soon(server.send("POST", "/v1/sources", &bearer, BODY)).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "unavailable"), "{refused:?}");
    let refused = define().await.unwrap().error.unwrap();
    assert_eq!(refused.code, "unavailable", "{refused:?}");

    // This server does not know the upstream, but the token needs no right to it.
    store.is_away.store(false, Ordering::SeqCst);
    let known = soon(server.send("POST", "/v1/sources", &bearer, BODY)).await;
    assert_ne!(known.status, 403, "{known:?}");
    let known = define().await.map_err(|status| status.code());
    assert_ne!(known.as_ref().err(), Some(&Code::PermissionDenied), "{known:?}");
}
