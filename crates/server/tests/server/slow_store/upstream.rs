//! Tests of another ID system's table that does not respond.

use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::segment::NumberInterval;
use snowmint_coord::spec::Span;
use snowmint_coord::{MemoryStore, Node, NodeSettings, Platform, Result, SourceSpec, Upstream};
use snowmint_wire::error::Code as ErrorCode;
use tokio::sync::watch;

use crate::common::{server_of, settings, soon};
use crate::grpc::{many, reason, wish};
use crate::stop::patient;

/// Another ID system's table that does not respond. Counts the calls.
#[derive(Debug, Default)]
struct SilentUpstream(watch::Sender<usize>);

#[async_trait]
impl Upstream for SilentUpstream {
    async fn allocate(&self, _: &str, _: u64) -> Result<NumberInterval> {
        self.0.send_modify(|calls| *calls += 1);
        std::future::pending().await
    }
}

/// A source that allocates the numbers of each request.
const EACH: (&str, &str) = ("each", r#","step":{"rule":"fixed","size":1}"#);

/// Opens a node with sources that allocate from this table: names, and keys that follow others.
async fn node_from(upstream: SilentUpstream, sources: &[(&str, &str)]) -> Node {
    let upstreams = [("old".to_owned(), Arc::new(upstream) as Arc<dyn Upstream>)].into();
    let node_settings = NodeSettings { builtin: true, upstreams, ..NodeSettings::default() };
    let store = Arc::new(MemoryStore::new("test").unwrap());
    let node = Node::open(store, node_settings, Platform::system()).await.unwrap();
    for (name, step) in sources {
        let keys = format!(r#"{{"kind":"segment","upstream":"old:bills"{step}}}"#);
        node.define(name, &SourceSpec::from_json(&keys).unwrap()).await.unwrap();
    }
    node
}

/// The error names it as the configuration does, whether the source prefetches or not.
#[tokio::test]
async fn silent_upstream_is_named_as_unavailable_by_every_protocol() {
    let node = node_from(SilentUpstream::default(), &[("bills", ""), EACH]).await;
    let mut limits = settings();
    limits.limits.wait_max = Span::from_ms(50);
    let server = server_of(node, limits).await;
    for name in ["bills", "each"] {
        let minted = soon(server.get(&format!("/v1/ids/{name}"))).await;
        let reserved = soon(server.post(&format!("/v1/segments/{name}"), r#"{"length":5}"#)).await;
        for response in [minted, reserved] {
            assert_eq!((response.status, response.code().as_str()), (503, "unavailable"));
            assert!(response.body.contains(r#"upstream \"old\""#), "{response:?}");
        }
        for args in [&["INCR", name][..], &["MINT", name, "5"], &["INCRBY", name, "5"]] {
            let reply = soon(async { server.resp().await.ask(args).await }).await;
            let names_it = reply.contains(r#"upstream "old""#);
            assert!(reply.starts_with("-TRYAGAIN ") && names_it, "{reply}");
        }
        let status = soon(server.grpc().await.mint(wish(name, Some(5)))).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::Unavailable);
        assert!(status.message().contains(r#"upstream "old""#), "{status:?}");
    }
}

/// The stream waits for numbers, and the stop waits for neither.
#[tokio::test]
async fn stop_ends_a_stream_that_waits_for_an_upstream() {
    let calls = watch::Sender::new(0);
    let node = node_from(SilentUpstream(calls.clone()), &[EACH]).await;
    let mut settings = settings();
    patient(&mut settings);
    settings.limits.wait_max = Span::from_ms(3_600_000);
    let server = server_of(node, settings).await;
    let mut client = server.grpc().await;
    let mut messages = soon(client.mint_stream(many("each", 5))).await.unwrap().into_inner();
    soon(calls.subscribe().wait_for(|&calls| calls > 0)).await.unwrap();
    server.handle.stop();
    let end = soon(messages.message()).await.unwrap_err();
    assert_eq!((end.code(), reason(&end)), (tonic::Code::Unavailable, ErrorCode::Closed));
    soon(server.handle.stopped()).await;
}
