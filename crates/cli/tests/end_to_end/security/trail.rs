//! The audit trail of store calls by programs and operators through a server, and of their errors.

use snowmint_coord::{
    Acquire, Exclude, FastForward, Mark, Pool, Relinquish, Reuse, Store as _, random,
};

use super::audit::has_line;
use super::programs::{Guest, now};
use super::{entry, path, put, token};
use crate::server::{Folder, Server};

/// Starts a server that offers its store to a token with these grants and rates, and a program with
/// this token.
async fn offered(folder: &Folder, name: &str, grants: &str, rates: &[&str]) -> (Server, Guest) {
    let made = token();
    let tokens = entry(name, &[&made.hash], &[grants]) + &format!("rates = {rates:?}\n");
    let tokens = put(folder, "tokens.toml", &tokens);
    let config = format!("[store]\noffered = true\n[tokens]\nfile = {tokens:?}\n");
    let config = put(folder, "config.toml", &config);
    let server = Server::start(&["--config", &config, "--data-dir", &path(folder, "data")], &[]);
    server.ready();
    let guest = Guest::at(&server, &made.token).await;
    (server, guest)
}

/// The calls fail by permissions, by a bound and by a rate, without a store call, and by the store's
/// state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_client_call_leaves_a_line() {
    let folder = Folder::new("not-allowed");
    let (server, guest) = offered(&folder, "guest", "join tmp-x", &["1/h *"]).await;
    let by = "who=token guest at 127.0.0.1:";
    guest.store.accept_lead(now().into()).await.unwrap_err();
    let reason = "why=token guest has no right to admin";
    has_line(&server, &["program not allowed to accept_lead", by, reason]);
    guest.join(0, 41 * 86_400_000).await.unwrap_err();
    has_line(&server, &["program not allowed to join", by, "why=", "counters.lease"]);
    guest.join(0, 10_000).await.unwrap();
    guest.claim("workers-17", 1 << 17).await.unwrap_err();
    has_line(&server, &["program not claimed", by, "why=", "workers-17"]);
    // The rate permits one of each.
    let over = "exceeds its rate";
    guest.join(1, 10_000).await.unwrap_err();
    has_line(&server, &["program not allowed to join", by, "why=", over]);
    guest.claim("workers-10", 1_024).await.unwrap_err();
    has_line(&server, &["program not allowed to claim", by, "why=", over]);
    assert_eq!(server.stop(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_that_moves_the_whole_store_leaves_a_line() {
    let folder = Folder::new("moved");
    let (server, Guest { store, .. }) = offered(&folder, "ops", "join,admin *", &[]).await;
    let by = "who=token ops at 127.0.0.1:";
    store.accept_lead(Mark::new(1)).await.unwrap();
    has_line(&server, &["store allowed to lead until 1970-01-01T00:00:00.001Z", by]);

    let pool = Pool { name: "workers-9".into(), slots: 512, group: 1, reuse: Reuse::Recycle };
    let exclude = |label: &str| {
        let (pool, label) = (pool.clone(), label.to_owned());
        Exclude { pool, slots: vec![7], until: Mark::MAX, label }
    };
    store.exclude(&exclude("leaf"), now()).await.unwrap();
    has_line(&server, &["store set to exclude 7 of pool \"workers-9\"", "for \"leaf\"", by]);
    store.exclude(&exclude("a\u{1b}"), now()).await.unwrap_err();
    has_line(&server, &["store not set to exclude 7 of pool \"workers-9\"", by, "why="]);

    let segments = vec![("numbers".to_owned(), Mark::new(1_000))];
    let forward = FastForward { segments, values_only: true, ..FastForward::default() };
    store.fast_forward(&forward).await.unwrap();
    has_line(&server, &["store raised: ", "numbers at least numbers=1000", by]);
    let new_identity = FastForward { new_identity: true, ..forward };
    store.fast_forward(&new_identity).await.unwrap_err();
    has_line(&server, &["store not raised: ", by, "why=", "belongs to a recovery"]);
}

/// A server on another server's store makes these calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acquire_and_relinquish_leave_a_line_each() {
    let folder = Folder::new("taken");
    let (server, guest) = offered(&folder, "ops", "join,admin *", &[]).await;
    let by = "who=token ops at 127.0.0.1:";
    let name = "ordered-here";
    let acquire = || Acquire {
        pool: Pool { name: name.into(), slots: 9, group: 1, reuse: Reuse::Ordered },
        member: guest.member,
        owner: "guest".into(),
        slots: vec![3],
        stalled: Vec::new(),
        supersedes: None,
        length: 0,
        request: random::request().unwrap(),
    };
    // The member has not joined yet.
    guest.store.acquire(&acquire(), now()).await.unwrap_err();
    has_line(&server, &["program not acquired", by, "why="]);
    guest.join(0, 600_000).await.unwrap();
    let lease = guest.store.acquire(&acquire(), now()).await.unwrap().leases.remove(0);
    has_line(&server, &["program acquired", by, "after=\"ordered-here\" 3 mark "]);
    let relinquish = Relinquish {
        pool: name.into(),
        member: guest.member,
        slots: vec![(lease.slot, lease.term)],
    };
    guest.store.relinquish(&relinquish, now()).await.unwrap();
    has_line(&server, &["program relinquished", by, "before=\"ordered-here\" 3 "]);
    assert_eq!(server.stop(), 0);
}
