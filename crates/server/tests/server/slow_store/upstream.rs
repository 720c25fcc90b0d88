//! Tests of another ID system's table that does not respond.

use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::segment::NumberInterval;
use snowmint_coord::spec::Span;
use snowmint_coord::{MemoryStore, Node, NodeSettings, Platform, Result, SourceSpec, Upstream};

use crate::common::{server_of, settings, soon};
use crate::grpc::wish;

/// Another ID system's table that does not respond.
#[derive(Debug)]
struct SilentUpstream;

#[async_trait]
impl Upstream for SilentUpstream {
    async fn allocate(&self, _: &str, _: u64) -> Result<NumberInterval> {
        std::future::pending().await
    }
}

/// The error names it as the configuration does, whether the source prefetches or not.
#[tokio::test]
async fn silent_upstream_is_named_as_unavailable_by_every_protocol() {
    let upstreams = [("old".to_owned(), Arc::new(SilentUpstream) as Arc<dyn Upstream>)].into();
    let node_settings = NodeSettings { builtin: true, upstreams, ..NodeSettings::default() };
    let store = Arc::new(MemoryStore::new("test").unwrap());
    let node = Node::open(store, node_settings, Platform::system()).await.unwrap();
    for (name, step) in [("bills", ""), ("each", r#","step":{"rule":"fixed","size":1}"#)] {
        let keys = format!(r#"{{"kind":"segment","upstream":"old:bills"{step}}}"#);
        node.define(name, &SourceSpec::from_json(&keys).unwrap()).await.unwrap();
    }
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
