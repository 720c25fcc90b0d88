//! Tests of tokens over gRPC: minting, the store, and long streams.

use snowmint_server::Tokens;
use snowmint_wire::error::Code as ErrorCode;
use snowmint_wire::grpc::mint_client::MintClient;
use snowmint_wire::grpc::store;
use snowmint_wire::grpc::{
    DeleteSourceRequest, ListSourcesRequest, ListWorkersRequest, ReserveRequest,
};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use super::{ADMIN, DEFINER, JOINER, MINTER, READER, bearer, guarded};
use crate::common::{describe_request, in_time, soon};
use crate::grpc::{many, reason, wish};

pub(crate) fn named<T>(message: T, token: &str) -> Request<T> {
    let mut request = Request::new(message);
    if !token.is_empty() {
        let value = format!("Bearer {token}").parse().unwrap();
        request.metadata_mut().insert("authorization", value);
    }
    request
}

#[tokio::test]
async fn grpc_requires_a_token_and_its_rights() {
    let (server, _) = guarded().await;
    let mut client = server.grpc().await;
    let error_codes =
        |outcome: Result<(), Status>| outcome.err().map(|status| (status.code(), reason(&status)));
    let unknown = Some((Code::Unauthenticated, ErrorCode::Unauthenticated));
    let forbidden = Some((Code::PermissionDenied, ErrorCode::Forbidden));
    for (token, mint, reserve, admin) in [
        ("", unknown, unknown, unknown),
        ("wrong", unknown, unknown, unknown),
        (READER, forbidden, forbidden, forbidden),
        (MINTER, None, None, forbidden),
        (ADMIN, None, None, None),
    ] {
        let minted = client.mint(named(wish("default", None), token)).await.map(drop);
        assert_eq!(error_codes(minted), mint, "{token}");
        let stream = client.mint_stream(named(many("numbers", 5), token)).await.map(drop);
        assert_eq!(error_codes(stream), mint, "{token}");
        let wanted = ReserveRequest { source: "numbers".into(), length: 2 };
        let reserved = client.reserve(named(wanted, token)).await.map(drop);
        assert_eq!(error_codes(reserved), reserve, "{token}");
        let workers = client.list_workers(named(ListWorkersRequest {}, token)).await.map(drop);
        assert_eq!(error_codes(workers), admin, "{token}");
        let wanted = DeleteSourceRequest { name: "counters".into() };
        let deleted = client.delete_source(named(wanted, token)).await.map(drop);
        assert_eq!(error_codes(deleted), admin, "{token}");
        let listed = client.list_sources(named(ListSourcesRequest {}, token)).await.map(drop);
        assert_eq!(error_codes(listed), mint.filter(|codes| Some(*codes) == unknown), "{token}");
    }
}

/// Embedded clients may take numbers of the sources that they have the right for, and move nothing
/// else.
#[tokio::test]
async fn store_service_requires_the_join_right() {
    let (server, _) = guarded().await;
    let unknown = Some(Code::Unauthenticated);
    let forbidden = Some(Code::PermissionDenied);
    for (token, join, reserve, other, operate) in [
        ("", unknown, unknown, unknown, unknown),
        ("wrong", unknown, unknown, unknown, unknown),
        (READER, forbidden, forbidden, forbidden, forbidden),
        // No other right includes this one.
        (MINTER, forbidden, forbidden, forbidden, forbidden),
        (DEFINER, forbidden, forbidden, forbidden, forbidden),
        (JOINER, None, None, forbidden, forbidden),
        (ADMIN, None, None, None, None),
    ] {
        let mut client = server.stranger(token).await;
        let described = client.describe(describe_request()).await;
        assert_eq!(described.as_ref().err().map(Status::code), join, "{token}");
        macro_rules! error_codes {
            ($message:expr) => {{
                let failed = client.call($message).await.err().map(|status| status.code());
                if client.instance.is_empty() {
                    // A caller without a described instance cannot name it; its call fails all the
                    // same.
                    assert!(failed.is_some(), "{token}");
                    join
                } else {
                    failed
                }
            }};
        }
        let segment = |source: &str| store::ReserveRequest {
            source: source.into(),
            length: 2,
            ..Default::default()
        };
        assert_eq!(error_codes!(segment("numbers")), reserve, "{token}");
        assert_eq!(error_codes!(segment("orders")), other, "{token}");
        let new = store::NewDefinition { name: "orders".into(), ..Default::default() };
        assert_eq!(error_codes!(store::DefineRequest { new: Some(new) }), other, "{token}");
        let forward = store::AcceptLeadRequest { until: 1 };
        assert_eq!(error_codes!(forward), operate, "{token}");
        assert_eq!(error_codes!(store::FastForwardRequest::default()), operate, "{token}");
        assert_eq!(error_codes!(store::ListRequest {}), join, "{token}");
    }
}

/// Each read parses all definitions. Callers that name an unknown pool share one a second.
#[tokio::test]
async fn unknown_pools_are_looked_for_once_a_second() {
    const CALLS: u64 = 8;
    let (server, _) = guarded().await;
    assert_eq!(server.send("GET", "/v1/ids/default", &bearer(ADMIN), "").await.status, 200);
    let client = server.program(JOINER).await;
    let claim = async || {
        let reuse = store::Reuse::Recycle.into();
        let pool = store::Pool { name: "workers-9".into(), slots: 512, group: 1, reuse };
        let message = store::ClaimRequest {
            pool: Some(pool),
            member: format!("{:032x}", 1),
            count: 1,
            request: 1,
            ..Default::default()
        };
        client.clone().call(message).await.unwrap().error.unwrap().message
    };
    // Each read of the definitions comes with one of these calls.
    let reads = async || {
        let page = server.send("GET", "/metrics", &bearer(ADMIN), "").await.body;
        let count = "snowmint_store_call_seconds_count{verb=\"ground\"} ";
        let reads = page.lines().find_map(|line| line.strip_prefix(count));
        reads.unwrap().parse::<u64>().unwrap()
    };
    assert!(claim().await.contains("workers-9"));
    let before = reads().await;
    let claims = futures_util::future::join_all((0..CALLS).map(|_| claim()));
    let refused = in_time(&server.timer, claims).await;
    assert!(refused.iter().all(|message| message.contains("workers-9")), "{refused:?}");
    let reads = reads().await - before;
    assert!((1..CALLS).contains(&reads), "{reads} reads");
}

/// Messages may be long there: an anonymous caller gets its error before its message has come.
#[tokio::test]
async fn store_service_rejects_anonymous_calls_before_the_message() {
    let (server, _) = guarded().await;
    for token in ["", "wrong"] {
        let mut client = Grpc::new(server.channel().await);
        client.ready().await.unwrap();
        let never = named(futures_util::stream::pending::<store::ExtendRequest>(), token);
        let codec = ProstCodec::<_, store::ExtendResponse>::default();
        let path = PathAndQuery::from_static("/snowmint.store.v1.Store/Extend");
        let refused = soon(client.client_streaming(never, path, codec)).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated, "{refused:?}");
    }
}

#[tokio::test]
async fn stream_ends_when_its_token_is_removed() {
    let (server, access) = guarded().await;
    let mut client: MintClient<_> = server.grpc().await;
    let stream = client.mint_stream(named(many("numbers", 1_000_000_000), MINTER)).await;
    let mut stream = stream.unwrap().into_inner();
    soon(stream.message()).await.unwrap().unwrap();
    access.replace(&Tokens::default()).unwrap();
    let status = loop {
        match soon(stream.message()).await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a stream that was cut off has an error"),
            Err(status) => break status,
        }
    };
    assert_eq!(reason(&status), ErrorCode::Unauthenticated, "{status:?}");
}
