//! Tests of lists of sources that wait for a store.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::BlockedStore;
use crate::common::{server_of, settings, soon};
use crate::watches::client_from;

/// All wait at the same time, and each has the whole list in the end.
#[tokio::test]
async fn waiting_lists_of_a_client_are_limited() {
    const WAITING: usize = 2;
    let store = BlockedStore::new();
    let mut limits = settings();
    // With 67 rows, each counting as 16, two lists are a client's share.
    limits.limits.unsent_max = 8_000;
    let server = server_of(store.node().await, limits).await;
    for number in 0..64 {
        let body = format!("{{\"name\":\"source-{number}\",\"kind\":\"segment\"}}");
        assert_eq!(server.post("/v1/sources", &body).await.status, 200);
    }
    assert_eq!(server.get("/v1/sources").await.status, 200);

    store.is_held.send_replace(true);
    let mut asking: FuturesUnordered<_> = (0..10).map(|_| server.get("/v1/sources")).collect();
    for _ in WAITING..10 {
        let refused = soon(asking.next()).await.unwrap();
        assert_eq!((refused.status, refused.code().as_str()), (503, "overloaded"));
        assert!(refused.body.contains("lists of sources"), "{refused:?}");
    }
    assert_eq!(server.get("/v1/ids/default").await.ids().len(), 1);
    let mut other = client_from(2, &server).await;
    other.send("GET /v1/sources HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    store.is_held.send_replace(false);
    other.expect("HTTP/1.1 200 OK\r\n").await;
    for _ in 0..WAITING {
        assert_eq!(soon(asking.next()).await.unwrap().status, 200);
    }
}
