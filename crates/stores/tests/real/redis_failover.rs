//! Redis with a replica. If it can be promoted (`persistence=any`), both the replica and the old
//! primary, which is promoted again without a stop, may lack acknowledged writes.

use std::sync::Arc;

use snowmint_coord::{
    BootTimer, FastForward, NewDefinition, Reserve, Result, Segment, SourceState, Store, Timer as _,
};
use snowmint_testkit::proxy::Proxy;
use snowmint_testkit::servers::{Redis, Server};
use tokio::runtime::Builder;

/// Sends a server a command, and returns its reply.
async fn send_command(server: &Server, words: &str) -> String {
    let client = redis::Client::open(server.url()).unwrap();
    let mut hand = client.get_multiplexed_async_connection().await.unwrap();
    let mut words = words.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    for word in words {
        command.arg(word);
    }
    command.query_async(&mut hand).await.unwrap()
}

/// Makes a server a replica, and waits until it has everything that the primary has.
async fn follow(replica: &Server, primary: &Server) {
    send_command(replica, &format!("REPLICAOF 127.0.0.1 {}", primary.port())).await;
    let begun = BootTimer.elapsed();
    while !has_all_of(replica, primary).await {
        assert!(BootTimer.elapsed().since(begun) < 60_000, "it never follows");
        BootTimer.sleep_ms(50).await;
    }
}

async fn has_all_of(replica: &Server, primary: &Server) -> bool {
    let offset = |reply: &str, of: &str| {
        reply.lines().find_map(|line| line.trim_end().strip_prefix(of)?.parse::<u64>().ok())
    };
    let wanted = offset(&send_command(primary, "INFO replication").await, "master_repl_offset:");
    let reply = send_command(replica, "INFO replication").await;
    reply.contains("master_link_status:up") && offset(&reply, "slave_repl_offset:") >= wanted
}

fn orders() -> NewDefinition {
    let (name, spec, identity) = ("orders".into(), "{}".into(), "{}".into());
    NewDefinition { name, spec, identity, enabled: None }
}

async fn reserve(store: &Arc<dyn Store>, definition_version: u64) -> Result<Segment> {
    let reserve = Reserve { source: "orders".into(), length: 5, definition_version, within: None };
    store.reserve(&reserve).await
}

/// The address leads to a replica for a while, which lags and was not promoted. Nothing was lost.
#[test]
fn a_redis_replica_is_another_store_to_its_readers() {
    let start = || -> Server { Redis::start(&["--repl-diskless-sync-delay", "0"]).into() };
    let (first, replica) = (start(), start());
    let proxy = Proxy::start(first.port());
    // The proxy has its own runtime, and so must start and end outside any other.
    let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = snowmint_stores::open(&first.url_by(proxy.port()), "default").await.unwrap();
        let version = store.define(&orders()).await.unwrap().version;
        follow(&replica, &first).await;
        // Nothing listens there: it stays a replica, and gets no later write.
        send_command(&replica, "REPLICAOF 127.0.0.1 1").await;
        reserve(&store, version).await.unwrap();
        let seen = store.identity().await.unwrap();
        proxy.lead_to(replica.port());
        for _ in 0..2 {
            for refused in [
                at_last(async || store.list().await.map(drop)).await,
                at_last(async || store.recall("it", &seen).await.map(drop)).await,
                at_last(async || store.define(&orders()).await.map(drop)).await,
                at_last(async || reserve(&store, version).await.map(drop)).await,
            ] {
                let refused = refused.unwrap_err();
                assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
                assert!(refused.to_string().contains("is a replica"), "{refused}");
            }
        }
        proxy.lead_to(first.port());
        at_last(async || store.list().await).await.unwrap();
        at_last(async || store.recall("it", &seen).await).await.unwrap();
        reserve(&store, version).await.unwrap();
    });
}

/// A running handle and a new one both get an error for each call.
#[test]
fn a_failover_and_one_back_are_each_another_store() {
    let start = || -> Server {
        Redis::start(&["--appendfsync", "everysec", "--repl-diskless-sync-delay", "0"]).into()
    };
    let (first, second) = (start(), start());
    let proxy = Proxy::start(first.port());
    // The proxy has its own runtime, and so must start and end outside any other.
    let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(fail_over_and_back(&proxy, &first, &second));
}

async fn fail_over_and_back(proxy: &Proxy, first: &Server, second: &Server) {
    follow(second, first).await;
    let url = format!("{}?persistence=any", first.url_by(proxy.port()));
    let running = snowmint_stores::open(&url, "default").await.unwrap();
    let version = running.define(&orders()).await.unwrap().version;
    reserve(&running, version).await.unwrap();
    for (promoted, other, when) in
        [(second, first, "after the failover"), (first, second, "after failing back")]
    {
        follow(promoted, other).await;
        send_command(promoted, "REPLICAOF NO ONE").await;
        if when == "after the failover" {
            // The promoted replica lacks this write.
            reserve(&running, version).await.unwrap();
        }
        proxy.lead_to(promoted.port());
        if when == "after the failover" {
            let refused = at_last(async || running.list().await).await.unwrap_err();
            assert_eq!(refused.kind().code(), "store_mismatch", "read {when}: {refused}");
        }
        let started = snowmint_stores::open(&url, "default").await.unwrap();
        for store in [&running, &started] {
            for _ in 0..3 {
                let refused = at_last(async || reserve(store, version).await).await.unwrap_err();
                assert_eq!(refused.kind().code(), "store_mismatch", "{when}: {refused}");
            }
            let refused = store.set_state("orders", SourceState::Disabled).await.unwrap_err();
            assert_eq!(refused.kind().code(), "store_mismatch", "{when}: {refused}");
        }
    }
    let operator = snowmint_stores::open(&url, "default").await.unwrap();
    operator.fast_forward(&FastForward::default()).await.unwrap();
    // The running handle had seen the lost writes, and gets one error for the recovery.
    let error = reserve(&running, version).await.unwrap_err();
    assert_eq!(error.kind().code(), "store_rolled_back", "{error}");
    reserve(&running, version).await.unwrap();
}

/// Repeats a call until the lost connection to the previous server is detected.
async fn at_last<T>(ask: impl AsyncFn() -> Result<T>) -> Result<T> {
    let begun = BootTimer.elapsed();
    loop {
        match ask().await {
            Err(error) if error.kind().code() == "unavailable" => {
                assert!(BootTimer.elapsed().since(begun) < 60_000, "{error}");
            }
            result => return result,
        }
    }
}
