//! Tests of per-request sources, by every protocol.

use snowmint_coord::{Decoded, SourceSpec};
use snowmint_core::Layout;

use super::common::{node, request, server_of, settings};
use super::grpc::mint;

#[tokio::test]
async fn per_request_source_is_served_like_any_other() {
    let node = node().await;
    let spec = |json| SourceSpec::from_json(json).unwrap();
    let one = spec(r#"{"kind":"segment","step":{"rule":"fixed","size":1}}"#);
    node.define("bills", &one).await.unwrap();
    let by_store = spec(r#"{"layout":"redis","mint":"store","worker":5,"text":"base62"}"#);
    node.define("orders", &by_store).await.unwrap();
    let orders = node.source("orders").await.unwrap();
    let server = server_of(node, settings()).await;

    let mut resp = server.resp().await;
    for (args, reply) in [
        (&["INCR", "bills"][..], ":1\r\n"),
        (&["MINT", "bills", "2"], "*2\r\n:2\r\n:3\r\n"),
        (&["INCRBY", "bills", "5"], ":8\r\n"),
    ] {
        resp.send(request(args)).await;
        resp.expect(reply).await;
    }
    let response = server.get("/v1/ids/bills?count=2").await;
    assert_eq!((response.status, response.body.as_str()), (200, r#"{"ids":["9","10"]}"#));
    let mut grpc = server.grpc().await;
    assert_eq!(mint(&mut grpc, "bills", 3).await, [11, 12, 13]);

    let mut ids = mint(&mut grpc, "orders", 3_000).await;
    let response = server.get("/v1/ids/orders?count=2&format=decimal").await;
    assert_eq!(response.status, 200, "{response:?}");
    let texts = response.json()["ids"].as_array().unwrap().clone();
    ids.extend(texts.iter().map(|id| id.as_str().unwrap().parse::<u64>().unwrap()));
    assert_eq!(ids.len(), 3_002, "exactly as many as were asked for");
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "in one order by all protocols");
    for id in ids {
        assert_eq!(Layout::REDIS.unpack(id).unwrap().worker, 5);
    }
    let response = server.get("/v1/ids/orders").await.json();
    let decoded = orders.decode(response["ids"][0].as_str().unwrap(), None).unwrap();
    assert!(
        matches!(decoded, Decoded::Snowflake { parts, .. } if parts.worker == 5),
        "{decoded:?}"
    );
}
