//! Tests of changes while the server runs.

use snowmint_server::Limits;

use super::common::{server, settings, soon};

#[tokio::test]
async fn limits_hold_from_the_moment_that_they_are_set() {
    let server = server().await;
    let ids = async |count: u32| {
        let path = format!("/v1/ids/default?count={count}");
        soon(server.get(&path)).await.status
    };
    let service = server.handle.service();
    let limits = settings().limits;
    assert_eq!(ids(3_000).await, 200);
    service.set_limits(Limits { batch_max: 2_999, ..limits.clone() });
    assert_eq!(ids(3_000).await, 413);
    assert_eq!(ids(2_999).await, 200);
    // The limit of unsent IDs becomes smaller and larger again; a client alone may have 0.38 of it.
    for (unsent_max, status) in [(7_000, 503), (8_000, 200), (1, 503), (1, 503), (4_000_000, 200)] {
        service.set_limits(Limits { unsent_max, ..limits.clone() });
        assert_eq!(ids(3_000).await, status, "{unsent_max}");
        assert_eq!(service.limits().unsent_max, unsent_max);
    }
    assert_eq!(ids(100_000).await, 200);
    // Bounds above the limit are rejected even for callers with every right: nothing lowers a bound
    // again.
    service.set_limits(Limits { bound_max: 1_000, ..limits.clone() });
    for (bound, status) in [(1_001, 400), (1_000, 200)] {
        let body = format!("{{\"bound\":\"{bound}\"}}");
        let response = soon(server.send("PUT", "/v1/counters/counters/k", "", &body)).await;
        assert_eq!(response.status, status, "{response:?}");
    }
}
