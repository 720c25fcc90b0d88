//! Connections that a server has ended while nobody used them are found by whoever comes next, and nobody is
//! told of it.

use snowmint_coord::{
    ClaimRequest, Extend, Incarnation, Mark, Member, NewDefinition, Pool, Presence, Reuse, Wish,
};
use snowmint_core::UnixMillis;
use snowmint_testkit::servers::Server;

/// No clock of a server is before it, so no mark leads.
const NOW: UnixMillis = UnixMillis::new(1_700_000_000_000);

pub(crate) async fn are_made_anew(mut server: Server) {
    let store = snowmint_stores::open(&server.url(), "default").await.unwrap();
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
        wish: Wish::Any,
        supersedes: None,
        mark_at_most: Mark::MAX,
        request: 1,
    };
    let lease = store.claim(&claim, NOW).await.unwrap().remove(0);
    let extend = async |from: Mark, request| {
        let item = Extend {
            pool: lease.pool.clone(),
            slot: lease.slot,
            term: lease.term,
            from,
            to: Mark::new(from.get() + 1_000),
            request,
            ahead_max_ms: None,
        };
        store.extend(&[item], NOW).await.unwrap().remove(0).unwrap().mark
    };
    // Twice: the first looks at the rows, and the second knows what they say.
    let mark = extend(lease.mark, 1).await;
    let mark = extend(mark, 2).await;
    // Several connections.
    let (a, b, c) = tokio::join!(store.list(), store.list(), store.workers(NOW));
    assert!(a.is_ok() && b.is_ok() && c.is_ok());

    for (ends, name) in [(Server::stop as fn(&mut Server), "a"), (Server::kill, "b")] {
        ends(&mut server);
        server.start();
        let new = NewDefinition { name: name.into(), spec: "{}".into(), identity: "{}".into() };
        store.define(&new).await.unwrap();
    }
    let mark = extend(mark, 3).await;
    server.stop();
    server.start();
    let before = store.identity().await.unwrap().writes;
    server.stop();
    server.start();
    // By the connection of its own, which is gone as well.
    extend(mark, 4).await;
    assert_eq!(store.identity().await.unwrap().writes, before + 1);
    store.close().await.unwrap();
}
