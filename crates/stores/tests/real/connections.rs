//! Connections of stores behind a network. The next call detects connections that a server ended
//! while idle, and its caller gets no error. Connections of abandoned calls stay usable.

use std::sync::Arc;
use std::time::Duration;

use snowmint_coord::{
    ClaimRequest, Extend, Incarnation, Lease, Mark, Member, NewDefinition, Pool, Preference,
    Presence, Reuse, Store,
};
use snowmint_core::UnixMillis;
use snowmint_testkit::servers::Server;
use tokio::time::timeout;

/// A past time: no server's clock is behind it, so no mark leads.
const NOW: UnixMillis = UnixMillis::new(1_700_000_000_000);

/// Joins a member that holds a worker number.
pub(crate) async fn holder(store: &Arc<dyn Store>) -> Lease {
    let member = Incarnation::new(7);
    let presence = Presence { sample: NOW, renewals: 0, ttl_ms: 600_000 };
    let who = Member {
        incarnation: member,
        owner: "a".into(),
        host: "h".into(),
        process: 1,
        address: String::new(),
    };
    store.join(&who, presence, NOW).await.unwrap();
    let claim = ClaimRequest {
        pool: Pool { name: "workers".into(), slots: 16, group: 1, reuse: Reuse::Recycle },
        member,
        owner: "a".into(),
        count: 1,
        preference: Preference::Any,
        supersedes: None,
        mark_at_most: Mark::MAX,
        request: 1,
    };
    store.claim(&claim, NOW).await.unwrap().remove(0)
}

/// Moves the mark from there and returns the new one.
pub(crate) async fn extend(
    store: &Arc<dyn Store>,
    lease: &Lease,
    from: Mark,
    request: u64,
) -> Mark {
    let item = Extend {
        pool: lease.pool.clone(),
        slot: lease.slot,
        term: lease.term,
        holder: lease.holder,
        from,
        to: Mark::new(from.get() + 1_000),
        request,
        ahead_max_ms: None,
    };
    store.extend(&[item], NOW).await.unwrap().remove(0).unwrap().mark
}

/// Checks that calls abandoned while the server is frozen leave nothing behind: every later call
/// that returns is done, for all members.
pub(crate) async fn outlive_calls_that_are_given_up(server: Server) {
    let url = server.url();
    let open = || snowmint_stores::open(&url, "default");
    let (store, other) = (open().await.unwrap(), open().await.unwrap());
    let lease = holder(&store).await;
    let mut mark = extend(&store, &lease, lease.mark, 1).await;
    for round in 0..3 {
        let new = |name: String| NewDefinition {
            name,
            spec: "{}".into(),
            identity: "{}".into(),
            enabled: None,
        };
        let (one, two) = (new(format!("a{round}")), new(format!("b{round}")));
        server.freeze(true);
        let brief = Duration::from_millis(100);
        let given_up = tokio::join!(
            timeout(brief, store.list()),
            timeout(brief, store.list()),
            timeout(brief, store.define(&one)),
            timeout(brief, store.workers(NOW)),
        );
        server.freeze(false);
        assert!(given_up.0.is_err() && given_up.1.is_err() && given_up.2.is_err());
        for handle in [&store, &other] {
            let request = mark.get();
            mark = extend(handle, &lease, mark, request).await;
        }
        store.define(&two).await.unwrap();
        assert!(store.list().await.unwrap().definitions.iter().any(|known| known.name == two.name));
    }
    store.close().await.unwrap();
    other.close().await.unwrap();
}

pub(crate) async fn are_reopened(mut server: Server) {
    let store = snowmint_stores::open(&server.url(), "default").await.unwrap();
    let lease = holder(&store).await;
    let extend = async |from: Mark, request| extend(&store, &lease, from, request).await;
    // Twice: the first call reads the rows, and the second uses the remembered ones.
    let mark = extend(lease.mark, 1).await;
    let mark = extend(mark, 2).await;
    // Several connections.
    let (a, b, c) = tokio::join!(store.list(), store.list(), store.workers(NOW));
    assert!(a.is_ok() && b.is_ok() && c.is_ok());

    for (ends, name) in [(Server::stop as fn(&mut Server), "a"), (Server::kill, "b")] {
        ends(&mut server);
        server.start();
        let new = NewDefinition {
            name: name.into(),
            spec: "{}".into(),
            identity: "{}".into(),
            enabled: None,
        };
        store.define(&new).await.unwrap();
    }
    let mark = extend(mark, 3).await;
    server.stop();
    server.start();
    let before = store.identity().await.unwrap().writes;
    server.stop();
    server.start();
    // The separate connection for extensions is lost as well.
    extend(mark, 4).await;
    assert_eq!(store.identity().await.unwrap().writes, before + 1);
    store.close().await.unwrap();
}
